"""AVTD: what is held out trains nothing, errors by hand, the least wrong member acts; in a world of the test's own."""

import numpy as np
import pytest
import torch
from aiming import Aiming, off_after

from longstride import papers
from longstride.control import (
    SAC,
    Batch,
    ControlEpisode,
    ControlRecipe,
    GaussianPolicy,
    NStep,
    TDCritic,
    TransitionStore,
)
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers.avtd.method import LeastError, Panel, PanelNets, PenalisedTD
from longstride.papers.avtd.utd import CLAIM

SMALL = Trunk(width=4, depth=1)
PLAIN, NORM = TDCritic(trunk=SMALL.replace(norm=False)), TDCritic(trunk=SMALL)
PANEL, LEAST = Panel(critics={"plain": PLAIN, "norm": NORM}, held_out=3), LeastError()


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def batch(held: list[float]) -> Batch:
    g, n = seeded(), len(held)
    state, action = torch.randn(n, 3, generator=g), torch.rand(n, 2, generator=g) - 0.5
    return Batch(state, action, torch.rand(n, generator=g), torch.full((n,), 0.9), -state, torch.tensor(held))


def test_each_third_episode_is_held_out_with_all_its_rows() -> None:
    store = TransitionStore.of(
        [ControlEpisode(np.zeros((n + 1, 3)), np.zeros((n, 2)), np.zeros(n), False) for n in (2, 1, 3, 2)]
    )
    held_R = PANEL.returns(PANEL.make(3, 2, seeded()), NStep(), store)
    assert held_R.tolist() == [0] * 3 + [0] * 2 + [1] * 4 + [0] * 3


def test_members_learn_as_they_do_alone_from_what_is_not_held_out() -> None:
    nets, data = PANEL.make(3, 2, seeded()), batch([0, 1, 0, 0, 1])
    actor = LEAST.make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    loss, metrics = PANEL.loss(nets, data, actor.valued, RunNoise.seeded(1), conservative=False)
    elsewhere = data._replace(reward_B=torch.where(data.return_B > 0, 99.0, data.reward_B))
    assert PANEL.loss(nets, elsewhere, actor.valued, RunNoise.seeded(1), conservative=False)[0] == loss
    moved = data._replace(action_BA=torch.where(data.return_B[:, None] > 0, 0.9, data.action_BA))
    cloned, same = (LEAST.cloning(actor, of, RunNoise.seeded(1))[0] for of in (data, moved))
    assert cloned == same
    noise, kept, held = RunNoise.seeded(1), torch.tensor([0, 2, 3]), torch.tensor([1, 4])
    expected = torch.zeros(())
    nets.error.zero_()
    PANEL.loss(nets, data, actor.valued, RunNoise.seeded(1), conservative=False)
    for k, (critic, own) in enumerate(zip((PLAIN, NORM), nets.members, strict=True)):
        rows = [Batch(*(x[of] for x in data)) for of in (kept, held)]
        expected = expected + critic.loss(own, rows[0], actor.members[k].policy, noise, False)[0]
        next_action = actor.members[k].policy.sample(rows[1].next_state_BS, noise)[:, 0]
        target = rows[1].reward_B + 0.9 * own.target.value(rows[1].next_state_BS, next_action).min(0).values
        wrong = (own.q.value(rows[1].state_BS, rows[1].action_BA) - target).square().mean()
        assert nets.error[k].item() == pytest.approx(wrong.item(), rel=1e-5)
    torch.testing.assert_close(loss, expected)
    assert metrics["norm.held_error"] > 0
    first = nets.error.clone()
    PANEL.loss(nets, batch([0, 0]), actor.valued, RunNoise.seeded(2), conservative=False)
    assert torch.equal(nets.error, first)  # nothing was held out
    PANEL.loss(nets, elsewhere, actor.valued, RunNoise.seeded(2), conservative=False)
    assert (nets.error > 2 * first).all()


def test_policies_follow_their_own_critics_and_the_least_wrong_acts() -> None:
    nets, data = PANEL.make(3, 2, seeded()), batch([0, 1, 0])
    actor = LEAST.make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    with torch.no_grad():
        for p in actor.members[1].parameters():
            p += 0.3
    loss, _ = LEAST.loss(actor, nets, data, RunNoise.seeded(1))
    noise, rows = RunNoise.seeded(1), Batch(*(x[[0, 2]] for x in data))
    alone = [SAC().loss(actor.members[k], nets.members[k], rows, noise)[0] for k in range(2)]
    torch.testing.assert_close(loss, alone[0] + alone[1])
    for error, best in (([0.2, 0.1], 1), ([0.1, 0.2], 0)):
        nets.error.copy_(torch.tensor(error))
        acted = LEAST.act(actor, nets, data.state_BS, RunNoise.seeded(3), explore=False)
        torch.testing.assert_close(acted, actor.members[best].policy.greedy(data.state_BS, RunNoise.seeded(3)))
        torch.testing.assert_close(nets.score(data.state_BS, acted), nets.members[best].score(data.state_BS, acted))
    wrong = LeastError(count=3).make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    with pytest.raises(ConfigError, match="extraction.count is 3, and the panel has 2"):
        PANEL.loss(nets, data, wrong.valued, RunNoise.seeded(1), conservative=False)


def test_a_penalty_is_the_sum_of_squares_of_weights() -> None:
    critic = PenalisedTD(trunk=SMALL, penalty=0.5)
    nets, data = critic.make(3, 2, seeded()), batch([0, 0])
    policy = GaussianPolicy(trunk=SMALL).make(3, 2, seeded())
    plain, penalised = (of.loss(nets, data, policy, RunNoise.seeded(1), False)[0] for of in (NORM, critic))
    squares = sum(w.square().sum() for w in nets.q.net.weights)
    torch.testing.assert_close(penalised - plain, 0.5 * squares)


def test_it_aims_in_a_world_of_its_own_and_learns_alone() -> None:
    wide = Trunk(width=16, depth=2, activation="relu")
    critics = {"plain": TDCritic(trunk=wide.replace(norm=False)), "norm": TDCritic(trunk=wide)}
    off, learner = off_after(
        papers.load("avtd"), Aiming(noise=0.3), updates=80, extraction={"count": 2}, critics=critics, held_out=10
    )
    assert off < 0.3
    nets = learner.levels[0].critic
    assert isinstance(nets, PanelNets) and (nets.error > 0).all()
    assert set(learner.agent.alone) == {Panel.type_name(), LeastError.type_name()}
    other = ControlLearner(learner.agent, learner.spec, seed=5)
    other.load_state(*learner.state())
    again = other.levels[0].critic
    assert isinstance(again, PanelNets) and torch.equal(again.error, nets.error)


def test_an_episode_is_held_out_in_the_first_third_of_a_run() -> None:
    """Before that, members have no error to be told apart by, and the first one acts."""
    for name in ("half_avtd", "two_avtd", "eight_avtd"):
        arm = CLAIM.arms[name]
        assert isinstance(arm, ControlRecipe)
        critic = arm.agent.levels[0].critic
        assert isinstance(critic, Panel)
        assert 3 * critic.held_out <= sum(phase.iterations * phase.episodes for phase in arm.phases)
