"""SAW: its rows by hand, its loss by hand, and that a flat policy learns where to turn from way-points alone."""

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.control import (
    GRU,
    Batch,
    CategoricalPolicy,
    CriticNets,
    DeterministicPolicy,
    Given,
    ImplicitV,
    Level,
    NStep,
    PolicyNets,
    Relabelled,
    TransitionStore,
)
from longstride.control.envs import ControlEpisode, Spec
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk
from longstride.papers.saw.method import ViaRows, Waypoint

SMALL = Trunk(width=8, depth=1)
SPEC = Spec(observation=2, action=1, goal=(0,))
LINE = ControlEpisode(np.stack([np.arange(9.0), np.full(9, 7.0)], 1), np.arange(8.0)[:, None] / 10, np.zeros(8), False)


def test_rows_are_a_step_to_a_far_goal_a_step_to_the_way_point_and_the_way_there() -> None:
    store, rng = TransitionStore.of([LINE]), np.random.default_rng(0)
    row = np.arange(8)
    rows = Waypoint(steps=3).rows(NStep(goals=Relabelled(), discount=0.9), store, SPEC, row, rng)
    assert rows.step.next_state_BS[:, 0].tolist() == [min(i + 1, 8) for i in row]
    assert rows.near.state_BS[:, 2].tolist() == [min(i + 3, 8) for i in row]
    assert torch.equal(rows.near.action_BA, rows.step.action_BA)
    way, far = rows.way.next_state_BS[:, 0], rows.way.state_BS[:, 2]
    assert way.tolist() == [min(i + 3, int(g), 8) for i, g in zip(row, far, strict=True)]
    assert torch.equal(rows.way.next_state_BS[:, 2], far)
    assert rows.toward_BS.tolist() == [[i, 7, w] for i, w in zip(row, way.tolist(), strict=True)]


class Nearness(CriticNets):
    """The advantage is how much nearer to the goal the first column has come, over ten."""

    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        here, after = ((s[..., 0] - s[..., 2]).abs() for s in (batch.state_BS, batch.next_state_BS))
        return (here - after) / 10


@pytest.mark.parametrize("bootstrapped", [0.0, 2.0])
def test_the_loss_by_hand(bootstrapped: float) -> None:
    store, rng, noise = TransitionStore.of([LINE]), np.random.default_rng(0), RunNoise.seeded(0)
    saw = Waypoint(steps=3, temperature=0.1, way_temperature=0.2, bootstrapped=bootstrapped, largest=4.0)
    rows = saw.rows(NStep(goals=Relabelled(), discount=0.9), store, SPEC, np.arange(8), rng)
    actor = saw.make(DeterministicPolicy(trunk=SMALL).make(3, 1, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        for p in actor.near.parameters():
            p += 0.1
    loss, _ = saw.loss(actor, Nearness(), rows, noise)

    def mode(policy: PolicyNets, state: Tensor) -> Tensor:
        return policy.greedy(state, noise)[:, 0]

    # a step brings one of ten nearer, and nothing where the goal is the last row and the step ends there
    near = np.e * (mode(actor.near, rows.near.state_BS) - rows.near.action_BA[:, 0]).square().mean()
    flat = np.e * (mode(actor.policy, rows.step.state_BS) - rows.step.action_BA[:, 0]).square().mean()
    nearer = rows.way.next_state_BS[:, 0] - rows.way.state_BS[:, 0]
    weight = (nearer / 10 / 0.2).exp().clamp(max=4.0)
    assert weight.max() == 4 and weight.min() < 2
    target = mode(actor.near, rows.toward_BS).detach()
    way = (weight * (mode(actor.policy, rows.way.state_BS) - target).square()).mean()
    torch.testing.assert_close(loss, near + flat + bootstrapped * way, check_dtype=False)
    parameters = list(actor.parameters())
    ours, theirs = (
        torch.autograd.grad(of, parameters, retain_graph=True) for of in (loss, near + flat + bootstrapped * way)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-4)
    assert (
        saw.cloning(actor, rows, noise)[0]
        == (mode(actor.policy, rows.step.state_BS) - rows.step.action_BA[:, 0]).square().mean()
    )


def test_it_needs_goals_single_actions_and_no_memory_and_takes_discrete_actions() -> None:
    parts = {"critic": ImplicitV(), "policy": CategoricalPolicy(), "extraction": Waypoint()}
    assert isinstance(Level(data=NStep(goals=Relabelled(current=0.2, future=0.8)), **parts).extraction, Waypoint)  # pyright: ignore[reportArgumentType]
    for wrong in (
        {"data": NStep()},
        {"data": NStep(goals=Given()), "memory": GRU()},
        {"data": NStep(goals=Relabelled(), action="chunk", steps=2), "policy": DeterministicPolicy()},
    ):
        with pytest.raises(ValueError, match="waypoint draws rows of its own: .* goals, single actions and no memory"):
            Level(**parts | wrong)  # pyright: ignore[reportArgumentType]
    assert ViaRows._fields == ("step", "near", "way", "toward_BS")
