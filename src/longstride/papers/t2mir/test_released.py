"""Both losses beside those of T2MIR's authors: what `contrastive_loss` (transformers_moe.py) and the
`balance_loss` of `TopKBalancedNoisyGate` (moe.py) of NJU-RL/T2MIR (commit 5e946c5) give for these numbers,
and their gradients.

The released gate decides by the noise alone whether an expert was chosen, and not by the logit with noise as Shazeer et
al. do. The inputs are some for which both say the same.
"""

import pytest
import torch

from longstride.models.experts import LEAST, balance, contrast

QUERY = [[0.49, 0.27, 0.24], [0.31, 0.56, 0.14], [0.31, 0.63, 0.06], [0.35, 0.21, 0.43]]
KEY = [[0.13, 0.42, 0.46], [0.16, 0.44, 0.4], [0.56, 0.28, 0.17], [0.09, 0.56, 0.34]]
LIKENESS = [[-0.4, 0.2, -1.2], [0.5, -1.5, -0.6], [0.2, -0.2, 0.5]]


def test_the_contrast_is_the_released_one() -> None:
    query, likeness = (torch.tensor(x, requires_grad=True) for x in (QUERY, LIKENESS))
    loss = contrast(query, torch.tensor(KEY), likeness)
    loss.backward()
    assert loss.item() == pytest.approx(0.7295323, abs=1e-6)
    assert query.grad is not None and likeness.grad is not None
    assert query.grad[0].tolist() == pytest.approx([0.0045007, -0.0851756, -0.0073136], abs=1e-6)
    assert query.grad[3].tolist() == pytest.approx([-0.0079409, -0.0026056, 0.0034742], abs=1e-6)
    assert likeness.grad[1].tolist() == pytest.approx([0.0270584, -0.0140775, -0.0124377], abs=1e-6)


def test_the_balance_is_the_released_one() -> None:
    x = torch.tensor([[0.44, 0.08, 1.03], [2.3, 0.62, -0.45], [1.05, 0.61, 0.48]], requires_grad=True)
    drawn = torch.tensor([[-1.62, 0.41, 0.57], [-0.48, 1.21, -0.19], [2.37, 0.11, 1.44]])
    spread = torch.nn.functional.softplus(x) + LEAST  # the released gate, its weights being the identity
    loss = balance(x, x + drawn * spread, spread, 1)
    loss.backward()
    assert loss.item() == pytest.approx(0.2178643, abs=1e-6)
    assert x.grad is not None
    wanted = [0.1247718, -0.0452524, -0.0612501, 0.2501734, -0.5717733, -0.0000047, 0.1587248, -0.0029481, -0.2033514]
    assert x.grad.flatten().tolist() == pytest.approx(wanted, abs=1e-6)


def test_the_balance_of_two_experts_a_token_is_the_released_one() -> None:
    drawn = [
        [0.45, 0.11, 0.64, 0.44],
        [0.21, -0.45, -0.57, -0.56],
        [0.59, 1.54, 0.51, -0.59],
        [-1.33, 0.19, -0.07, -0.49],
        [-1.5, -0.19, 0.44, 1.33],
    ]
    logits = torch.zeros(5, 4)
    spread = torch.nn.functional.softplus(logits) + LEAST
    assert balance(logits, torch.tensor(drawn) * spread, spread, 2).item() == pytest.approx(0.1125959, abs=1e-6)
