"""OTC: the factor of tool calls by hand, the reward of siblings, and where each reward leads."""

import numpy as np
import pytest
from helpers import make_trajectory, make_turn

from longstride.core.trajectory import Trajectory
from longstride.papers.otc.exact import CLAIM, CallGRPO, Calls
from longstride.papers.otc.method import ToolProductivity, productivity
from longstride.papers.otc.recipe import RECIPE
from longstride.rewards import TaskReward
from longstride.rollout.episode import set_verdict


@pytest.mark.parametrize(
    ("n", "factors"),
    [
        (2, {0: 0.0, 1: 0.8660, 2: 1.0, 3: 0.9511, 4: 0.8660, 5: 0.7818}),
        (0, {0: 1.0, 1: 0.8660, 2: 0.7071, 3: 0.5878}),
    ],
)
def test_the_factor_is_1_at_the_fewest_calls_and_falls_on_both_sides(n: int, factors: dict[int, float]) -> None:
    """c = 4."""
    assert {m: productivity(m, n, 4) for m in factors} == pytest.approx(factors, abs=1e-4)


def test_siblings_are_measured_by_the_fewest_calls_of_a_success_and_failures_earn_nothing() -> None:
    def episode(calls: int, won: bool) -> Trajectory:
        turns = [make_turn(action="click 1")] * calls + [make_turn(action="answer x")]
        return make_trajectory(turns, reward=float(won))

    group = [episode(1, False), episode(2, True), episode(5, True), episode(0, False)]
    verdicts = ToolProductivity(most=24).compare(group)
    assert [v.reward for v in verdicts] == pytest.approx([0, 1, 0.7818, 0], abs=1e-4)
    assert [v.success for v in verdicts] == [False, True, True, False]
    assert verdicts[2].terms == {"correct": 1.0, "tool": pytest.approx(0.7818, abs=1e-4)}
    assert all(v.reward == 0 for v in ToolProductivity(most=24).compare([episode(3, False)] * 2))


def test_a_success_that_the_environment_paid_earns_the_factor_alone() -> None:
    def episode(calls: int, reward: float) -> Trajectory:
        turns = [make_turn(action="click 1") for _ in range(calls)]
        turns[-1].reward = reward
        return make_trajectory(turns, reward, success=reward > 0)

    group = [episode(3, 1.0), episode(6, 1.0), episode(6, 0.0)]
    for t, verdict in zip(group, ToolProductivity(most=24).compare(group), strict=True):
        set_verdict(t, verdict)
    assert [t.reward for t in group] == pytest.approx([1, 0.8660, 0], abs=1e-4)


@pytest.mark.parametrize("level", range(6))
def test_with_the_factor_enough_calls_are_best_at_every_level_and_a_price_gives_up_hard_ones(level: int) -> None:
    right = Calls().right()[level]
    paid = right * [productivity(m, level, 10) for m in range(11)]
    assert int(np.argmax(paid)) == level
    priced = right - 0.1 * np.arange(11)
    assert int(np.argmax(priced)) == (level if right[level] > 0.1 * level else 0)


def test_a_step_is_the_mean_of_advantage_and_score_and_converges_to_the_best_calls() -> None:
    problem, method = Calls(solved=(1.0, 0.5)), CallGRPO(size=4)
    state = method.start(problem, np.random.default_rng(0))
    after = method.step(problem, state, np.random.default_rng(1))
    rng, p = np.random.default_rng(1), np.full(11, 1 / 11)
    for level, chance in enumerate((1.0, 0.5)):
        calls = rng.choice(11, size=4, p=p)
        won = rng.random(4) < chance * (calls >= level)
        fewest = min(calls[won], default=0)
        r = np.array([w * productivity(int(m), int(fewest), 10) for m, w in zip(calls, won, strict=True)])
        advantage = (r - r.mean()) / (r.std() or 1)
        by_hand = 0.3 * ((np.eye(11)[calls] - p) * advantage[:, None]).mean(0)
        assert np.allclose(after["logits"][level], by_hand, atol=1e-6)
    for i in range(400):
        state = CallGRPO().step(problem, state, np.random.default_rng(i))
    assert state["logits"].argmax(1).tolist() == [0, 1]


def test_the_recipe_pays_by_productivity_in_training_and_success_is_measured_without_it() -> None:
    assert isinstance(RECIPE.reward, ToolProductivity) and RECIPE.reward.most == 24 and RECIPE.group_size == 8
    assert issubclass(ToolProductivity, TaskReward) and CLAIM.recipe.type_name() == "exact_recipe"
