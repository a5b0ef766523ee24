"""CCVL acts: counts, the loss of all confidences by hand, and a belief that follows what the episode itself earns."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import rows_of
from pydantic import ValidationError
from torch import Tensor

from longstride.control import Batch, ControlEpisode, ControlTasks, Greedy, Level, NStep, Relabelled, UniformPolicy
from longstride.control.critics import DiscreteQ
from longstride.control.envs import Spec, VectorEnv, play
from longstride.control.envs.base import VectorStep
from longstride.control.exporting import export_policy
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.core.errors import ConfigError, RunError
from longstride.models.mlp import Trunk
from longstride.papers.ccvl.method import ConfidenceBelief, ConfidenceQ, ConfidentNets, pseudo_counts
from longstride.papers.ccvl.recipe import RECIPE

SMALL = ConfidenceQ(trunk=Trunk(width=8, depth=1, norm=False), drawn=3, cosines=2, gap=2.0)
POLICY = UniformPolicy().make(1, 2, torch.Generator())


class Offers(VectorEnv):
    """Three steps of two actions: the first one earns nothing, the second 0.5."""

    def __init__(self, count: int, turns: int = 1) -> None:
        self.goal, self.turns = np.zeros((count, 0)), turns

    def reset(self, seed: int) -> np.ndarray:
        self.taken = 0
        return self.seen()

    def seen(self) -> np.ndarray:
        return np.full((len(self.goal), 1), float(self.taken))

    def step(self, action_BA: np.ndarray) -> VectorStep:
        self.taken += 1
        never_B = np.zeros(len(self.goal), bool)
        reward_B = 0.5 * action_BA.argmax(1)
        return VectorStep(self.seen(), reward_B, never_B, ~never_B & (self.taken == 3), reward_B > 0)

    def close(self) -> None:
        pass


class OfferTasks(ControlTasks):
    """As data one episode of each action."""

    @property
    def spec(self) -> Spec:
        return Spec(1, 2, (), discrete=True)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        seen, twice = np.arange(4.0)[:, None], np.eye(2)[:, None].repeat(3, 1)
        return [ControlEpisode(seen, twice[a], np.full(3, 0.5 * a), False) for a in (0, 1)]

    def training(self, count: int, horizon: int) -> VectorEnv:
        return Offers(count)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return Offers(count), ["offers"] * count

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        return {"return": float(episode.reward.sum())}


def test_a_count_is_how_often_a_state_is_there() -> None:
    times = np.array([1, 3, 10, 50])
    frequency_SF = np.random.default_rng(0).normal(size=(4, 64))
    found = pseudo_counts(np.eye(4)[np.repeat(np.arange(4), times)], frequency_SF)
    assert found[np.cumsum(times) - 1] == pytest.approx(times + 1, rel=0.02)


def test_the_loss_of_all_confidences_is_that_by_hand() -> None:
    nets = SMALL.make(1, 2, torch.Generator().manual_seed(0))
    with torch.no_grad():
        nets.target.net.weights[0].neg_()
    batch = Batch(
        torch.tensor([[0.1], [0.4]]),
        torch.eye(2),
        torch.tensor([1.0, 2.0]),
        torch.tensor([0.9, 0.0]),
        torch.tensor([[0.2], [0.7]]),
        torch.tensor([2.0, 8.0]),
    )
    deltas = RunNoise.seeded(5).uniform(3).sort().values
    loss, metrics = SMALL.loss(nets, batch, POLICY, RunNoise.seeded(5), conservative=True)

    def q(net: DiscreteQ, state: Tensor, delta: Tensor) -> Tensor:
        seen = torch.cat((state, (math.pi * delta).cos()[None], (2 * math.pi * delta).cos()[None]))
        return net.each(seen[None])[0, 0, :, 0]

    assert isinstance(nets.q, DiscreteQ) and isinstance(nets.target, DiscreteQ)
    expected, gaps = [], []
    for b in range(2):
        highest = torch.tensor(-math.inf)
        for delta in deltas:
            best = q(nets.q, batch.next_state_BS[b], delta).argmax()
            highest = torch.maximum(highest, q(nets.target, batch.next_state_BS[b], delta)[best])
            target = batch.reward_B[b] + batch.discount_B[b] * highest.detach()
            now = q(nets.q, batch.state_BS[b], delta)
            gaps.append(now.logsumexp(0) - now[b])
            bound = 2 * (math.log(1 / delta) / batch.return_B[b].item()) ** 0.5
            expected.append((now[b] - target) ** 2 + bound * gaps[-1])
    torch.testing.assert_close(loss, torch.stack(expected).mean())
    torch.testing.assert_close(metrics["gap"], torch.stack(gaps).mean().detach())
    assert SMALL.loss(nets, batch, POLICY, RunNoise.seeded(5), conservative=False)[0] < loss


def learner(scale: float, deltas: tuple[float, ...] = (0.5, 1.0)) -> ControlLearner:
    """One whose confident values (delta = 0.5) are right, and whose others promise 5 for the first action."""
    level = Level(
        data=NStep(discount=0.5, reward_scale=2.0), critic=SMALL, policy=UniformPolicy(),
        extraction=ConfidenceBelief(deltas=deltas, scale=scale),
    )  # fmt: skip
    made = ControlLearner(RECIPE.agent.replace(levels=(level,)), OfferTasks().spec, 0)

    def values(q: object, state_BS: Tensor, delta_B: Tensor) -> Tensor:
        right, promised = torch.tensor([1.0, 2.0]), torch.tensor([5.0, 2.0])
        return torch.where((delta_B < 0.75)[:, None], right, promised)[None, ..., None]

    made.levels[0].critic.values = values  # pyright: ignore
    return made


def test_the_belief_falls_by_the_squared_differences_of_each_episode_apart() -> None:
    extraction = ConfidenceBelief(deltas=(0.5, 1.0), scale=1.0)
    critic = learner(1.0).levels[0].critic
    two, none = torch.zeros(2, 1), torch.full((2,), math.nan)
    step = Batch(two, torch.eye(2), torch.tensor([0.0, 1.0]), torch.full((2,), 0.5), two, none)
    known = extraction.after(critic, extraction.begun(2), step)
    # first action: 1 = 0 + 0.5 * 2, and 5 for 0 + 0.5 * 5; second: 2 = 1 + 0.5 * 2, and 2 for 1 + 0.5 * 5
    torch.testing.assert_close(known, torch.tensor([[0.0, -(2.5**2) / 2], [0.0, -(1.5**2) / 2]]))


def test_an_agent_that_was_promised_too_much_acts_by_what_it_earned_instead() -> None:
    episodes = play(Offers(400, turns=2), learner(scale=0.3).actor(0, explore=False), 0)
    chosen = np.stack([e.action.argmax(1) for e in episodes])
    # the first step of every episode, those of the second turn too, is drawn evenly; then nothing speaks for the promise
    assert chosen[:400, 0].mean() == pytest.approx(0.5, abs=0.1) == chosen[400:, 0].mean()
    assert (chosen[:, 1:] == 1).all()
    alone = play(Offers(5), learner(0.3, (1.0,)).actor(0, explore=False), 0)
    assert all((e.action.argmax(1) == 0).all() for e in alone)


def test_who_is_not_told_what_actions_earn_says_so() -> None:
    act, seen = learner(1.0).actor(0, explore=False), (np.zeros((2, 1)), np.zeros((2, 0)))
    act(*seen, np.ones(2, bool))
    with pytest.raises(RunError, match="confidence_belief learns from what its actions earn: call earned"):
        act(*seen, np.zeros(2, bool))


def test_the_recipe_learns_a_task_of_ones_own_and_is_not_exported(tmp_path: Path) -> None:
    level = RECIPE.agent.levels[0]
    recipe = RECIPE.replace(
        tasks=OfferTasks(),
        agent={
            "levels": (level.replace(data=NStep(discount=0.5), critic=SMALL),),
            "batch": 8,
            "critic_lr": 0.02,
        },
        phases=({"iterations": 1, "updates": 120},),
        evaluation={"episodes": 4, "every": 1},
    )
    recipe.train(tmp_path / "run")
    rows = rows_of(tmp_path / "run", "eval")
    assert rows[-1]["measures"]["return"] == [1.5] * 4 and rows[0]["measures"]["return"] != [1.5] * 4
    with pytest.raises(ConfigError, match="adapts while it acts"):
        export_policy(tmp_path / "run", recipe, tmp_path / "policy")


def test_values_of_no_confidence_and_goals_without_a_count_are_refused() -> None:
    with pytest.raises(ValidationError, match="needs scores of any action, which confidence_q has not"):
        Level(critic=SMALL, policy=UniformPolicy(), extraction=Greedy())
    with pytest.raises(ValidationError, match=r"data\.goals must be given, or left out"):
        Level(data=NStep(goals=Relabelled()), critic=SMALL, policy=UniformPolicy(), extraction=ConfidenceBelief())
    assert isinstance(SMALL.make(1, 2, torch.Generator()), ConfidentNets)
