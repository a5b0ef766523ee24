"""Values of states that lend their trunk to values of actions (`TrunkQ`, `TrunkV`), and walks without actions beside a few
that have them (`FewLabels`)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.control import ControlEpisode, CriticNets, QNets, TDCritic
from longstride.control.critics import QEnsemble
from longstride.control.envs import OfOthers, Spec
from longstride.control.implicit import ImplicitV, VNets
from longstride.core.errors import ConfigError
from longstride.core.numbers import Share
from longstride.core.seeds import derive
from longstride.models.heads import Head
from longstride.models.mlp import MLP


class TrunkEnsemble(QEnsemble):
    """E networks from features of a state, of which all share the network, and an action to values."""

    def __init__(self, head: Head, net: MLP, trunk: MLP) -> None:
        super().__init__(head, net)
        self.trunk = trunk

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        return super().raw(F.gelu(self.trunk(state_BS, frozen)[0]), action, frozen)


class TrunkQ(TDCritic):
    """As `TDCritic`, on features of the state: hidden layers like `trunk` make as many of them, and as many read them and the
    action. A `TrunkV` beside it shares the first half."""

    side_by_side = True

    def make_q(self, state: int, action: int, generator: torch.Generator) -> TrunkEnsemble:
        width = self.trunk.width
        return TrunkEnsemble(
            self.head,
            self.trunk.make(width + action, self.head.outputs, generator, self.ensemble),
            self.trunk.make(state, width, generator),
        )


class TrunkValue(nn.Module):
    """E values of features of a state."""

    def __init__(self, trunk: MLP, net: MLP) -> None:
        super().__init__()
        self.trunk, self.net = trunk, net

    def forward(self, state_BS: Tensor) -> Tensor:
        """[E, B, 1]."""
        return self.net(F.gelu(self.trunk(state_BS)[0]))


class TrunkV(ImplicitV):
    """V(s, goal) of walks without actions, as in `ImplicitV`, on the features of a `TrunkQ`, which it trains too."""

    side_by_side = True

    def make_beside(
        self, first: CriticNets | None, spec: Spec, state: int, action: int, generator: torch.Generator
    ) -> VNets:
        if not isinstance(first, QNets) or not isinstance(first.q, TrunkEnsemble):
            raise ConfigError("trunk_v shares the trunk of the first critic of its level, which must be trunk_q")
        width = first.q.trunk.trunk.width
        net = self.trunk.make(width, 1, generator, self.ensemble, last=1e-4)
        return VNets(TrunkValue(first.q.trunk, net))  # pyright: ignore[reportArgumentType] (it is called as an MLP is)


class FewLabels(OfOthers):
    """Other tasks whose data are walks without actions and rewards; beside them stand a few walks that have both, as
    demonstrations (`TrainingPhase.demonstrated`)."""

    labelled: Share = 0.05
    """How many walks have actions and rewards, in walks that have none; one at least."""

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return [
            ControlEpisode(e.observation, np.zeros_like(e.action), np.zeros_like(e.reward), False, e.goal)
            for e in self.tasks.dataset(seed)
        ]

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        """Walks of their own, of the same kind; of recorded data, some of the same walks, drawn by the seed."""
        walks = self.tasks.dataset(seed)
        count = max(1, round(self.labelled * len(walks)))
        return [walks[k] for k in np.random.default_rng(derive(seed, "labelled")).permutation(len(walks))[:count]]
