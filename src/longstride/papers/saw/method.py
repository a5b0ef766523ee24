"""What a flat policy learns from beside steps toward far goals (`ViaRows`), and how (`Waypoint`)."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longstride.control import Ahead, Batch, CriticNets, Extraction, NStep, PolicyNets, TransitionStore
from longstride.control.envs import Spec
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.core.numbers import Count, Positive, Weight


class ViaRows(NamedTuple):
    """B rows as SAW reads them."""

    step: Batch
    """One step toward a far goal."""
    near: Batch
    """One step toward the way-point."""
    way: Batch
    """From the state to the way-point, toward a far goal."""
    toward_BS: Tensor
    """The states of `way`, with the way-point as their goal."""


class Waypoint(Extraction):
    """Subgoal-advantage-weighted bootstrapping. Two policies are trained: one toward way-points, which are near, and the
    flat one that acts, toward goals however far. Both imitate the data by the advantage of a step; and the flat one
    imitates what the other would do to reach a way-point, by the advantage of being there:

        exp(A(s, a, w)) * imitation of a by near(s, w)
        exp(A(s, a, g)) * imitation of a by flat(s, g)
        exp(A(s, w, g)) * imitation of near's action(s, w) by flat(s, g)

    so no policy has to propose way-points: those of the data serve."""

    needs_scores = False
    draws_rows = True
    side_by_side = True

    steps: Count = 25
    """To a way-point, or fewer where the goal or the end of the episode is nearer."""
    temperature: Positive = 1.0
    """What advantages of a step are divided by, in units of the value."""
    way_temperature: Positive = 1.0
    """What advantages of way-points are divided by."""
    bootstrapped: Weight = 1.0
    """Weight of the third term; 0: the flat policy learns from single steps alone."""
    largest: Positive = 100.0
    """What weights are cut to."""

    def make(self, policy: PolicyNets) -> "TwoPolicies":
        return TwoPolicies(policy)

    def rows(
        self, data: NStep, store: TransitionStore, spec: Spec, row_B: np.ndarray, rng: np.random.Generator
    ) -> ViaRows:
        step = data(store, spec, row_B, rng)
        near = data.replace(goals=Ahead(steps=self.steps))(store, spec, row_B, rng)
        way = data.replace(steps=self.steps)(store, spec, row_B, rng)
        seen_BO, there_BG = way.state_BS[:, : spec.observation], way.next_state_BS[:, list(spec.goal)]
        return ViaRows(step, near, way, torch.cat((seen_BO, there_BG), -1))

    def cloning(self, actor: Actor, batch: Batch | ViaRows, noise: RunNoise) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(batch, ViaRows)
        return super().cloning(actor, batch.step, noise)

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch | ViaRows, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(actor, TwoPolicies) and critic is not None and isinstance(batch, ViaRows)
        losses: dict[str, Tensor] = {}
        for name, policy, part in (("near", actor.near, batch.near), ("flat", actor.policy, batch.step)):
            weight_B = self._weight(critic.advantage(part, policy, noise), self.temperature)
            losses[name] = (weight_B * policy.imitation_loss(part.state_BS, part.action_BA, noise)).mean(-1)
        with torch.no_grad():
            action_BA = actor.near.greedy(batch.toward_BS, noise)
        advantage_B = critic.advantage(batch.way, actor.policy, noise)
        imitation_B = actor.policy.imitation_loss(batch.way.state_BS, action_BA, noise)
        losses["way"] = (self._weight(advantage_B, self.way_temperature) * imitation_B).mean(-1)
        loss = losses["near"] + losses["flat"] + self.bootstrapped * losses["way"]
        return loss, {f"{name}_imitation": of for name, of in losses.items()} | {"advantage": advantage_B.mean(-1)}

    def _weight(self, advantage_B: Tensor, temperature: float) -> Tensor:
        return (advantage_B / temperature).exp().clamp(max=self.largest)


class TwoPolicies(Actor):
    """The flat policy, and the one toward way-points, which begins as its copy."""

    def __init__(self, policy: PolicyNets) -> None:
        super().__init__(policy)
        self.near = copy.deepcopy(policy)
