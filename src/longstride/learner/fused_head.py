"""The head of a large vocabulary by Liger's kernel (Hsu et al., arXiv 2410.10989): log-probabilities without whole
logits, as `head` has them, in one kernel for each part.

What always holds: a version of the kernel is used only after its values and gradients agreed with torch's on a few
tokens of this device: older ones gave the tokens of `reduction="none"` one common weight. Not yet run on a GPU.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from longstride.core.errors import MissingExtra, ModelError

Head = Callable[[Tensor, Tensor], Tensor]
"""Makes log pi of (P,) targets, float32, of (P, D) hidden states."""


def liger_head(head: Any, float32: bool) -> Head:
    """The head of a model by Liger's kernel.

    Args:
        head: a linear layer onto the vocabulary.
        float32: whether the learner wants its head in float32, which this kernel has not.

    Raises:
        MissingExtra: liger-kernel is not installed.
        ModelError: its kernel is wrong, does not run here, or is asked for in float32.
    """
    if float32:
        raise ModelError("learner.float32_head and learner.head = 'liger' exclude each other; leave one out")
    try:
        from liger_kernel.transformers import functional  # pyright: ignore[reportMissingImports]

        kernel: Any = functional.liger_fused_linear_cross_entropy
    except ImportError as e:
        raise MissingExtra("learner.head = 'liger' needs liger-kernel: pip install 'longstride[liger]'") from e

    def logprobs(hidden_P_D: Tensor, target_P: Tensor) -> Tensor:
        return -kernel(hidden_P_D, head.weight, target_P, bias=head.bias, reduction="none").float()

    _check(kernel, head.weight.device)
    return logprobs


def _check(kernel: Callable[..., Tensor], device: torch.device) -> None:
    """Holds the kernel against torch, on tokens of different weights."""
    made = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, 64, generator=made).to(device) for n in (16, 256))
    target, share = torch.arange(16, device=device) * 15, torch.linspace(-1, 2, 16, device=device)
    found = []
    for by_kernel in (True, False):
        x, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        try:
            loss_P = (
                kernel(x, w, target, reduction="none")
                if by_kernel
                else F.cross_entropy(F.linear(x, w), target, reduction="none")
            )
            (share * loss_P).sum().backward()
        except Exception as e:  # whatever a kernel's compiler has
            raise ModelError(f"learner.head: Liger's kernel does not run on {device}: {str(e)[:200]}") from e
        found.append((loss_P.detach(), x.grad, w.grad))
    if not all(torch.allclose(a, b, rtol=2e-2, atol=2e-2) for a, b in zip(*found, strict=True)):
        raise ModelError(
            "learner.head: the kernel of this liger-kernel gives wrong gradients to tokens of different weights; "
            "install a newer one, or leave learner.head out"
        )
