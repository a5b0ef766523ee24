"""GiGPO: both parts of an advantage by hand, the released formula beside them, and the gradient that they have."""

from collections.abc import Callable, Sequence
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


# The released formula (`compute_gigpo_outcome_advantage` of verl-agent, with means over trajectories)


def less_mean(scores: Sequence[float]) -> list[float]:
    """Mode `mean_norm`."""
    return [x - float(np.mean(scores)) for x in scores]


def over_deviation(scores: Sequence[float]) -> list[float]:
    """Mode `mean_std_norm`, times sqrt(n / (n - 1)): its deviation has the divisor n - 1."""
    n = len(scores)
    if n == 1:
        return [0.0]
    return [x / (float(np.std(scores, ddof=1)) + 1e-6) * (n / (n - 1)) ** 0.5 for x in less_mean(scores)]


def released(episodes: list[Trajectory], norm: Callable[..., list[float]], omega: float, gamma: float) -> list[float]:
    """Advantages of all turns, of groups of two episodes or more. Here a turn's reward is 0 but for the last one's."""
    found, clusters = [], {}
    for e in episodes:
        siblings = [o for o in episodes if o.group == e.group]
        of_episode = norm([o.reward for o in siblings])[[o is e for o in siblings].index(True)]
        for k, turn in enumerate(e.turns):
            cluster = clusters.setdefault((e.group, turn.observation), [])
            cluster.append((len(found), gamma ** (len(e.turns) - 1 - k) * e.reward))
            found.append(of_episode)
    for cluster in clusters.values():
        for (row, _), of_turn in zip(cluster, norm([g for _, g in cluster]), strict=True):
            found[row] += omega * of_turn
    return found


@pytest.mark.parametrize(("normalize", "norm"), [("none", less_mean), ("std", over_deviation)])
def test_advantages_are_those_of_the_released_formula_up_to_the_divisor_of_its_deviation(normalize, norm):
    rng = np.random.default_rng(7)
    episodes = [
        make_trajectory([state(int(s)) for s in rng.integers(4, size=rng.integers(1, 6))], float(r), group=g)
        for g in range(5)
        for r in (rng.integers(2, size=6) if g else np.ones(3))
    ]
    found = of_turns(StepRelative(normalize=normalize, step_weight=0.7, discount=0.95), episodes)
    np.testing.assert_allclose(found, released(episodes, norm, 0.7, 0.95), atol=1e-4)
    assert np.std(found) > 0.1


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
