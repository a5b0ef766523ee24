"""Networks beside the policy: values of turns and of actions on a language model of their own, and Adam with all that a
checkpoint keeps.

What always holds: networks that were given a state go on as those would have whose state it is, the ones that take no
gradient (targets) included.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from longstride.core.errors import RunError
from longstride.core.trajectory import Turn
from longstride.learner.batching import StreamTable, micro_batch, packs, rows_of
from longstride.learner.config import LearnerConfig
from longstride.learner.likelihood import TokenLikelihood
from longstride.learner.moments import MOMENTS, checked_moments
from longstride.methods.base import ADVANTAGES, Sample
from longstride.models.load import load_policy
from longstride.models.mlp import Trunk


class TurnEncoder(nn.Module):
    """A language model that reads turns.

    Args:
        encoder: as `Recipe.model`; its tokenizer must be the policy's.
        device: where it computes.

    Raises:
        ModelError: it cannot be loaded, or its hidden states cannot be read.
    """

    def __init__(self, encoder: str, device: str = "cpu") -> None:
        super().__init__()
        self._config, self._device = LearnerConfig(dtype="float32"), device
        self._read = TokenLikelihood(load_policy(encoder, device=device).model, self._config)
        self.size: int = self._read.model.get_input_embeddings().weight.shape[1]

    def forward(self, turns: Sequence[Turn]) -> Tensor:
        """[N, 2, D] hidden states behind prompt and action of N turns, at least one. A turn without tokens counts as
        one of the token 0."""
        # a place is read by its hidden state before the token that follows it
        taken = [turn.sampled_ids or [0] for turn in turns]
        ends = [{ADVANTAGES: [1.0, *[0.0] * (len(ids) - 1), 1.0]} for ids in taken]
        samples = [
            Sample(t.prompt_ids, [*ids, 0], e, media=t.media) for t, ids, e in zip(turns, taken, ends, strict=True)
        ]
        return self._features(samples).unflatten(0, (-1, 2))

    def _features(self, samples: Sequence[Sample]) -> Tensor:
        """The hidden state before every sampled token of an advantage other than 0, in the order of samples and tokens:
        shape (P, D). What samples share is computed once, where the model can do that."""
        table, most = StreamTable(samples), self._config.micro_tokens
        found: list[tuple[Tensor, Tensor]] = []
        for rows in packs(rows_of(samples, table, most * self._read.trees), most, padded=self._read.padded):
            batch = micro_batch(rows, table, self._device)
            found.append((batch.index_P, self._read(batch, hidden=True)))
        index_P, hidden_P_D = (torch.cat(parts) for parts in zip(*found, strict=True))
        return hidden_P_D[index_P.argsort()]


class TurnHeads(nn.Module):
    """Independent values on what an encoder says of a turn: two Q, of prompt and action, and some V, of the prompt.

    Args:
        size: D, of the encoder's hidden states.
        seed: of the initial weights, whose values are all but 0.
        trunk: the hidden layers.
        values: how many V, M.
    """

    def __init__(self, size: int, seed: int, trunk: Trunk, values: int = 2) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.q = trunk.make(2 * size, 1, generator, members=2, last=1e-2)
        self.v = trunk.make(size, 1, generator, members=values, last=1e-2)

    def forward(self, ends_N_2_D: Tensor) -> tuple[Tensor, Tensor]:
        """[2, N] values Q and [M, N] values V."""
        return self.q(ends_N_2_D.flatten(1))[..., 0], self.v(ends_N_2_D[:, 0])[..., 0]


def fill_in(turns: Sequence[Turn], q_N: Tensor, v_N: Tensor) -> None:
    """Gives turns their `action_value` and `value`."""
    for turn, q, v in zip(turns, q_N.tolist(), v_N.tolist(), strict=True):
        turn.estimates |= {"action_value": q, "value": v}


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
            RunError: it is of other networks, or damaged.
        """
        self._optimiser.state.clear()
        for name, p in self._parameters.items():
            weight = tensors.get(f"weight/{name}")
            if weight is None or weight.shape != p.shape:
                found = "nothing" if weight is None else tuple(weight.shape)
                raise RunError(f"the checkpoint is of another critic: {name} is {tuple(p.shape)} here, {found} there")
            p.copy_(weight)
            found = {key: tensors[f"{key}/{name}"] for key in MOMENTS if f"{key}/{name}" in tensors}
            for key, value in checked_moments(found, p, f"critic {name}").items():
                self._optimiser.state[p][key] = value.to(p.device, copy=True)
