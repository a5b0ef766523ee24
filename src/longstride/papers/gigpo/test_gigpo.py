"""GiGPO: both parts of an advantage by hand, values of the released code beside them, and the gradient that they have."""

from typing import Any

import numpy as np
import pytest
from estimators import all_of, by_formula, cosine, episode_of, weighted_scores
from helpers import make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.trajectory import Trajectory, Turn
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import Credit
from longstride.papers.gigpo import published
from longstride.papers.gigpo.method import StepRelative
from longstride.papers.gigpo.recipe import RECIPE

MEAN: dict[str, Any] = {"normalize": "none"}


def state(number: int, ids: tuple[int, ...] = (0,), reward: float = 0.0) -> Turn:
    return make_turn(ids, [number], observation=f"state {number}", reward=reward)


def of_turns(credit: Credit, episodes: list[Trajectory]) -> list[float]:
    """Advantages of all turns, each of which sampled one token."""
    return [a for s in credit(episodes) for a in s.advantages]


def parted() -> list[Trajectory]:
    """Two that were in state 0 and took another way from there each; two of another group, for whom 0 is another."""
    return [
        make_trajectory([state(0), state(1)], 1),
        make_trajectory([state(0), state(2)], 0),
        make_trajectory([state(0)], 1, group=1),
        make_trajectory([state(0)], 1, group=1),
    ]


def test_turns_are_compared_with_turns_in_the_same_state_of_the_same_group():
    credit = StepRelative(**MEAN, step_weight=2.0, discount=0.5)
    by_hand = [0.5 + 2 * 0.25, 0.5, -0.5 - 2 * 0.25, -0.5, 0, 0]  # returns to go from state 0: 0.5 and 0
    assert of_turns(credit, parted()) == pytest.approx(by_hand)
    halved = credit.replace(length_divisor="turns")
    assert of_turns(halved, parted()) == pytest.approx([x / 2 for x in by_hand[:4]] + [0, 0])


def test_with_the_deviation_each_part_is_divided_by_that_of_its_own_group():
    credit = StepRelative(step_weight=0.3, discount=0.5)
    # episodes 1 and 0: deviation 1/2; returns to go from state 0, 0.5 and 0: deviation 1/4
    assert of_turns(credit, parted()) == pytest.approx([1 + 0.3, 1, -1 - 0.3, -1, 0, 0])


def test_an_episode_that_comes_back_to_a_state_is_compared_with_itself_and_counts_once_in_the_mean_of_episodes():
    """Returns to go from state 0, with discount 1/2: 1/4, 1 and 0; from state 1: 1/2 alone."""
    group = [make_trajectory([state(0), state(1), state(0)], 1), make_trajectory([state(0)], 0)]
    mean = (0.25 + 1 + 0) / 3
    by_hand = [0.5 + 0.25 - mean, 0.5, 0.5 + 1 - mean, -0.5 - mean]
    assert of_turns(StepRelative(**MEAN, discount=0.5), group) == pytest.approx(by_hand)


def test_rewards_on_the_way_are_in_the_returns_to_go():
    """Turns earn 2 and then 1, or nothing: returns to go from state 0 are 2 + 1/2 and 0, from state 1 they are 1 and 0."""
    first = make_trajectory([state(0, reward=2.0), state(1)], 3)
    second = make_trajectory([state(0), state(1)], 0)
    found = of_turns(StepRelative(**MEAN, discount=0.5), [first, second])
    assert found == pytest.approx([1.5 + 1.25, 1.5 + 0.5, -1.5 - 1.25, -1.5 - 0.5])


def test_an_error_line_does_not_tell_a_state_from_itself():
    slip = make_turn([1], [0], observation="page", action=None, error="no such link", changed=False)
    again = make_turn([2], [0], observation="page\nerror: no such link")
    group = [make_trajectory([slip, again], 1), make_trajectory([make_turn([3], [0], observation="page")], 0)]
    of_page = [1 - 2 / 3, 1 - 2 / 3, -2 / 3]  # all three turns were taken on one page: returns to go 1, 1 and 0
    by_hand = [0.5 + of_page[0], 0.5 + of_page[1], -0.5 + of_page[2]]
    assert of_turns(StepRelative(**MEAN, discount=1.0), group) == pytest.approx(by_hand)


def test_the_same_page_at_another_address_is_another_state():
    group = [make_trajectory([make_turn(url=url)], r) for url, r in (("/a", 1), ("/a", 0), ("/b", 1), ("/b", 1))]
    assert of_turns(StepRelative(**MEAN), group) == pytest.approx([0.25 + 0.5, -0.75 - 0.5, 0.25, 0.25])


def test_a_failed_episode_is_in_no_mean_and_a_turn_without_tokens_is_no_sample():
    played = [make_trajectory([state(0, (4, 5)), state(1, ())], 1), make_trajectory([state(0, (6,))], 0)]
    failed = make_trajectory([state(0)] * 3, stop=StopReason.INFRA_FAILURE)
    credit = StepRelative()
    assert credit([*played, failed]) == credit(played)
    assert [s.sampled_ids for s in credit(played)] == [[4, 5], [6]]
    assert credit([failed]) == [] == credit([])


def test_it_is_built_again_from_its_data():
    credit = StepRelative(step_weight=0.5, discount=0.9, baseline="leave_one_out")
    assert build(Credit, credit.as_data()) == credit
    assert credit.as_data()["type"] == "longstride.papers.gigpo.method:StepRelative"


def test_a_reward_of_ten_is_a_divisor_of_a_tenth():
    """The released reward of WebShop is 10, and its advantages are divided by nothing."""
    tenfold = [10 * a for a in of_turns(RECIPE.credit, parted())]
    assert of_turns(published.RECIPE.credit, parted()) == pytest.approx(tenfold)
    assert any(tenfold)


# The released values (`gigpo/core_gigpo.py` of verl-agent, as in its authors' langfengQ/DrMAS, commit 3b556f2): what
# `compute_gigpo_outcome_advantage` gives with returns to go of `compute_step_discounted_returns`, discount 0.95


def walks(*episodes: tuple[str, float], group: int = 0) -> list[Trajectory]:
    """By the states that an episode came through, and its reward."""
    return [make_trajectory([state(int(s)) for s in states], reward, group=group) for states, reward in episodes]


def test_advantages_are_the_released_ones() -> None:
    """Mode `mean_norm`. Some episodes come back to a state, and the groups have states of the same name."""
    episodes = walks(("11000", 0.0), ("02", 1.0), ("11221", 1.0))
    episodes += walks(("2022", 0.0), ("210", 1.0), ("2002", 0.0), group=1)
    released = [
        [-1.20104, -1.20104, -0.90417, -0.90417, -0.90417, 1.04583, 0.3825],
        [0.61346, 0.65633, 0.285, 0.3325, 0.79896],
        [-0.48375, -0.58333, -0.48375, -0.48375, 1.41875, 0.66667, 1.41667, -0.48375, -0.58333, -0.58333, -0.48375],
    ]
    assert of_turns(StepRelative(**MEAN, discount=0.95), episodes) == pytest.approx(sum(released, []), abs=1e-5)


@pytest.mark.parametrize(
    ("omega", "released"),
    [
        (1.0, [1.982, 2.01624, -1.98292, -2.01707, -0.03332, 0.03507]),
        (0.5, [1.491, 1.50812, -1.49146, -1.50853, -0.01666, 0.01754]),
    ],
)
def test_with_deviations_they_are_the_released_ones_times_the_root_of_n_over_n_less_1(
    omega: float, released: list[float]
) -> None:
    """Mode `mean_std_norm`; three episodes, and each state has three turns."""
    credit = StepRelative(normalize="std", step_weight=omega, discount=0.95)
    found = of_turns(credit, walks(("01", 1.0), ("10", 0.0), ("10", 0.5)))
    assert found == pytest.approx([x * 1.5**0.5 for x in released], abs=1e-4)


# The expected gradient


def test_a_state_weighs_as_often_as_other_episodes_come_there():
    """A tree of two steps: state 0, then 1 or 2 by the action; nobody comes to a state twice. Pairs of episodes."""
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1:, :, 3] = 1
    rewards, logits = np.random.default_rng(4).normal(size=(4, 2)), np.random.default_rng(5).normal(size=(4, 2))
    problem = EnumerableMDP(moves, rewards, np.eye(4)[0], np.arange(4) == 3, horizon=2)
    credit = StepRelative(baseline="leave_one_out", normalize="none", discount=1.0)
    policy, paths, found = problem.policy(logits), list(problem.trajectories(logits)), np.zeros_like(logits)
    for pair, chance in all_of(paths, paths):
        samples = credit([episode_of(path, ordinal=k) for k, path in enumerate(pair)])
        found += chance * weighted_scores(policy, samples) / 2
    visits_S = np.append([1.0], policy[0])
    steps = by_formula(problem, logits, lambda path, t: visits_S[path.states[t]] * sum(path.rewards[t:]))
    np.testing.assert_allclose(found, problem.gradient(logits) + steps, atol=1e-12)
    assert cosine(found, problem.gradient(logits)) < 0.999
