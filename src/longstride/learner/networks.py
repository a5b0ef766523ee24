"""Networks beside the policy: a language model that is read and trained, and Adam with all that a checkpoint keeps.

What always holds: networks that were given a state go on as those would have whose state it is, the ones that take no
gradient (targets) included. They compute on the CPU.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from longstride.core.errors import RunError
from longstride.learner.batching import StreamTable, micro_batch, packs, rows_of
from longstride.learner.config import LearnerConfig
from longstride.learner.likelihood import Likelihood
from longstride.methods.base import Sample
from longstride.models.load import load_policy


class Encoder(nn.Module):
    """A language model of a critic's own, which reads ids. It is a `HiddenStates`, with gradient.

    Args:
        name: as `Recipe.model`; its tokenizer must be the policy's.

    Raises:
        ModelError: it cannot be loaded.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._config = LearnerConfig(dtype="float32")
        self._read = Likelihood(load_policy(name).model, self._config)

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        return self._read.model.get_input_embeddings().weight.shape[1]

    def features(self, samples: Sequence[Sample]) -> Tensor:
        """The last hidden state before every sampled token of an advantage other than 0, in the order of samples and
        tokens: shape (P, D), float32. What samples share is computed once, where the model can do that."""
        table, most = StreamTable(samples), self._config.micro_tokens
        found: list[tuple[Tensor, Tensor]] = []
        for rows in packs(rows_of(samples, table, most * self._read.trees), most):
            batch = micro_batch(rows, table)
            found.append((batch.index_P, self._read(batch, hidden=True)))
        index_P, hidden_P_D = (torch.cat(parts) for parts in zip(*found, strict=True))
        return hidden_P_D[index_P.argsort()]


class TrainedNetworks:
    """Adam over the networks' parameters that take a gradient.

    Args:
        networks: by name; they are trained in place.
        lr: learning rate.
        clip: largest norm of the gradient of a step; none if left out.
    """

    def __init__(self, networks: Mapping[str, nn.Module], lr: float, clip: float | None = None) -> None:
        self._parameters = {f"{k}/{name}": p for k, net in networks.items() for name, p in net.named_parameters()}
        self._trained = [p for p in self._parameters.values() if p.requires_grad]
        self._optimiser, self._clip = torch.optim.Adam(self._trained, lr, fused=True), clip

    def step(self, loss: Tensor) -> None:
        """One optimiser step down the gradient of a loss."""
        self._optimiser.zero_grad()
        loss.backward()
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._trained, self._clip)
        self._optimiser.step()

    def state(self) -> dict[str, Tensor]:
        """All that an exact resume needs, for safetensors; shared parameters once."""
        moments = {
            f"{key}/{name}": value
            for name, p in self._parameters.items()
            for key, value in self._optimiser.state.get(p, {}).items()
        }
        return moments | {f"weight/{name}": p.detach() for name, p in self._parameters.items()}

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave.

        Raises:
            RunError: it is of other networks.
        """
        self._optimiser.state.clear()
        for name, p in self._parameters.items():
            weight = tensors.get(f"weight/{name}")
            if weight is None or weight.shape != p.shape:
                found = "nothing" if weight is None else tuple(weight.shape)
                raise RunError(f"the checkpoint is of another critic: {name} is {tuple(p.shape)} here, {found} there")
            p.copy_(weight)
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if (value := tensors.get(f"{key}/{name}")) is not None:
                    self._optimiser.state[p][key] = value.clone()
