"""Advantages: the numbers of the papers by hand, and the expected gradient of every estimator over all trajectories of
enumerable problems: the exact one, or one whose bias has a formula."""

import itertools
from collections.abc import Callable, Iterable
from math import comb
from typing import Any

import numpy as np
import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.tabular import EnumerableMDP, Path, bandit, random_mdp
from longstride.methods import GAE, Credit, GroupRelative, StepRelative
from longstride.methods.advantages import gae, group_advantages, mixed, progress

PLAIN: dict[str, Any] = {"centre": "none", "scale": "none"}
LOO: dict[str, Any] = {"centre": "leave_one_out", "scale": "none"}


def turn(state: int = 0, ids: Iterable[int] = (0,), reward: float = 0.0, value: float = 0.0) -> Turn:
    ids = list(ids)
    return Turn(
        [state], ids, [-1.0] * len(ids), [0] * len(ids), f"state {state}", "text", "go", reward=reward, value=value
    )


def episode(
    reward: float, turns: int | list[Turn] = 1, group: int = 0, stop: StopReason = StopReason.ENV_ENDED
) -> Trajectory:
    turns = turns if isinstance(turns, list) else [turn(k) for k in range(turns)]
    task = Task(id="t", source="s", goal="g", start="s")
    return Trajectory(task, 0, 0, Budget(), turns, stop, reward=reward, group=group)


def of_path(path: Path, group: int = 0) -> Trajectory:
    """With values of the states that are anything but right."""
    steps = zip(path.states, path.actions, path.rewards, strict=True)
    turns = [turn(s, [a], r, value=(0.7, -2.0, 1.3)[s]) for s, a, r in steps]
    return episode(sum(path.rewards), turns, group)


def weights(credit: Credit, episodes: list[Trajectory]) -> list[list[float]]:
    return [s.weights for s in credit(episodes)]


# By hand


def test_the_advantage_of_a_step_is_divided_by_the_own_length_or_by_a_constant():
    """AsyncWebRL: r = 1, 1, 0, 0 and T = 5, 5, 12, 13."""
    group = [episode(r, t) for r, t in ((1, 5), (1, 5), (0, 12), (0, 13))]
    own, constant = GroupRelative(length="turns"), GroupRelative(length=10.0)
    for credit, expected in ((own, [0.2, 0.2, -1 / 12, -1 / 13]), (constant, [0.1, 0.1, -0.1, -0.1])):
        found = weights(credit, group)
        assert len(found) == 35
        assert [found[k][0] for k in (0, 5, 10, 22)] == pytest.approx(expected)


def test_each_is_held_against_the_others_of_its_group():
    """LOOP: r = 1, 0, 0, 1, 0, 0."""
    found = group_advantages([1, 0, 0, 1, 0, 0], [3] * 6, **LOO)
    np.testing.assert_allclose(found, [0.8, -0.4, -0.4, 0.8, -0.4, -0.4])
    mean = group_advantages([1, 0, 0, 1, 0, 0], [3] * 6, "mean", "none")
    np.testing.assert_allclose(found, mean * 6 / 5)


def test_groups_are_found_in_any_order_and_scales_are_those_of_group_batch_and_constant():
    r, g = [1.0, 4.0, 0.0, 0.0], [7, 2, 7, 2]
    np.testing.assert_allclose(group_advantages(r, g), [1, 1, -1, -1])
    np.testing.assert_allclose(group_advantages(r, g, "mean", 2.0), [0.25, 1, -0.25, -1])
    np.testing.assert_allclose(group_advantages(r, g, "mean", "batch_std"), np.array([0.5, 2, -0.5, -2]) / np.std(r))
    np.testing.assert_allclose(group_advantages(r, g, "batch", "none"), [-0.25, 2.75, -1.25, -1.25])
    np.testing.assert_allclose(group_advantages(r, g, "none", "std"), [2, 2, 0, 0])
    assert group_advantages([], []).shape == (0,)


@pytest.mark.parametrize("centre", ["mean", "leave_one_out", "batch"])
@pytest.mark.parametrize("scale", ["std", "batch_std", "none"])
def test_equal_rewards_give_exactly_nothing(centre, scale):
    assert not group_advantages([0.1] * 3 + [0.1 + 1e-9], [0, 0, 0, 0], centre, scale).any()  # means of 0.1 are rounded


def test_one_without_others_has_no_advantage_over_them():
    assert group_advantages([5.0, 1.0, 0.0], [0, 1, 1], **LOO).tolist() == [0.0, 1.0, -1.0]


@pytest.mark.parametrize("successes", range(9))
def test_what_a_group_is_pushed_in_all_is_largest_at_half_success(successes):
    """DARS: sum |A| / n is 2 a (1 - a), and twice the square root of a (1 - a) with the deviation."""
    r, a = [1.0] * successes + [0.0] * (8 - successes), successes / 8
    assert np.abs(group_advantages(r, [0] * 8, "mean", "none")).mean() == pytest.approx(2 * a * (1 - a))
    assert np.abs(group_advantages(r, [0] * 8)).mean() == pytest.approx(2 * (a * (1 - a)) ** 0.5)


def test_mixed_groups_alone_are_kept_and_what_remains_is_the_same():
    group = [episode(r, group=g) for r, g in ((1, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 2))]
    assert mixed([t.reward for t in group], [t.group for t in group]).tolist() == [False] * 2 + [True] * 2 + [False] * 2
    assert weights(GroupRelative(), group) == [[0], [0], [1], [-1], [0], [0]]
    assert weights(GroupRelative(mixed_only=True), group) == [[1], [-1]]
    assert weights(GroupRelative(mixed_only=True), group[:2]) == []


@pytest.mark.parametrize("credit", [GroupRelative(), StepRelative(), GAE(), GAE(values="group", whiten=True)])
def test_a_failed_episode_is_in_no_mean_and_a_turn_without_tokens_is_no_sample(credit):
    played = [episode(1, [turn(0, [4, 5]), turn(1, [])]), episode(0, [turn(0, [6])])]
    failed = episode(0, 3, stop=StopReason.INFRA_FAILURE)
    assert credit([*played, failed]) == credit(played)
    assert [s.sampled_ids for s in credit(played)] == [[4, 5], [6]]
    assert credit([failed]) == [] == credit([])
    assert credit([episode(0, [], group=1, stop=StopReason.CONTEXT)]) == []


def test_samples_know_their_episode_and_group():
    (sample,) = GroupRelative()([episode(1, [turn(3, [4, 5])], group=8)])
    assert (sample.prompt_ids, sample.logprobs, sample.episode, sample.group) == ([3], [-1, -1], 0, 8)


def test_turns_are_compared_with_turns_in_the_same_state_of_the_same_group():
    """Both were in state 0, each took another way from there; state 0 of another group is another state."""
    group = [
        episode(1, [turn(0), turn(1)]),
        episode(0, [turn(0), turn(2)]),
        episode(1, [turn(0)], group=1),
        episode(1, [turn(0)], group=1),
    ]
    credit = StepRelative(centre="mean", scale="none", step_weight=2.0, discount=0.5)
    by_hand = [0.5 + 2 * 0.25, 0.5, -0.5 - 2 * 0.25, -0.5, 0, 0]  # returns to go from state 0: 0.5 and 0
    assert [w for (w,) in weights(credit, group)] == pytest.approx(by_hand)
    assert [w for (w,) in weights(credit.model_copy(update={"length": "turns"}), group)] == pytest.approx(
        [x / 2 for x in by_hand[:4]] + [0, 0]
    )


def test_generalised_advantages_by_hand():
    """delta = 1 + 0.5 * 2 - 3 = -1 and 2 + 0.5 * 4 - 2 = 2; A_1 = 2, A_0 = -1 + 0.5 * 0.5 * 2."""
    np.testing.assert_allclose(gae([1, 2], [3, 2], after=4, discount=0.5, lam=0.5), [-0.5, 2])
    np.testing.assert_allclose(gae([1, 2, 4], [0, 0, 0], discount=0.5), [3, 4, 4])
    with pytest.raises(ValueError, match="zip"):
        gae([1, 2], [3])


def test_truncation_bootstraps_and_termination_does_not():
    """A reward of 1 a step without end is worth 1 / (1 - 0.9) = 10 everywhere."""
    for lam in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(gae([1, 1, 1], [10, 10, 10], after=10, discount=0.9, lam=lam), 0, atol=1e-12)
    np.testing.assert_allclose(gae([1, 1, 1], [10, 10, 10], discount=0.9), [-7.29, -8.1, -9])


def test_a_truncated_episode_goes_on_from_the_value_of_its_last_state():
    def against_a_success(stop: StopReason) -> list[list[float]]:
        return weights(GAE(values="group"), [episode(1, 2), episode(0, 2, stop=stop)])[2:]

    assert against_a_success(StopReason.ANSWERED) == [[-1], [-1]]
    assert against_a_success(StopReason.TURNS) == [[0], [0]]  # its state is worth 1, and nobody saw what came of it


def test_a_critics_values_are_those_of_the_turns_and_its_targets_are_lambda_returns():
    """delta = 1 + 0.5 * 2 - 3 = -1 and 2 - 2 = 0 where it ended; 2 + 0.5 * 2 - 2 = 1 where a budget ended it."""
    turns = lambda: [turn(0, [4, 5], 1.0, 3.0), turn(1, [6], 2.0, 2.0)]  # noqa: E731
    ended, cut = (episode(3, turns(), stop=s) for s in (StopReason.ENV_ENDED, StopReason.TURNS))
    failed = episode(3, turns(), stop=StopReason.INFRA_FAILURE)
    credit = GAE(values="critic", discount=0.5, lam=0.5)
    assert weights(credit, [ended, failed, cut]) == [[-1, -1], [0], [-0.75, -0.75], [1]]
    for whiten in (False, True):
        found = credit.model_copy(update={"whiten": whiten}).targets([ended, failed, cut])
        assert found == [[2, 2], [], [2.25, 3]]
    silent = episode(1, [turn(0, [], value=0.5), turn(1, [4, 5], value=0.25)])
    over = GAE(values="critic", over="tokens", discount=0.5)
    assert weights(over, [silent]) == [[0.25, 0.75]] and over.targets([silent]) == [[0.25, 0.5]]


def test_over_tokens_the_last_token_of_a_turn_takes_its_reward():
    found = weights(GAE(over="tokens", discount=0.5), [episode(3, [turn(0, [1, 2], reward=1), turn(1, [3, 4])])])
    assert found == [[1 * 0.5 + 2 / 8, 1 + 2 / 4], [1, 2]]  # 1 for the first turn, 2 by the evaluator
    found = weights(GAE(over="turns", discount=0.5), [episode(3, [turn(0, [1, 2], reward=1), turn(1, [3, 4])])])
    assert found == [[2, 2], [2, 2]]


def test_whitened_weights_have_mean_0_and_deviation_1_over_all_tokens():
    found = weights(GAE(whiten=True), [episode(1, [turn(0, [1, 2, 3])]), episode(0, [turn(0, [4])])])
    flat = np.array([w for ws in found for w in ws])
    assert [len(ws) for ws in found] == [3, 1]
    np.testing.assert_allclose([flat.mean(), flat.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(flat * np.sqrt(3), [1, 1, 1, -3], atol=1e-12)


def test_progress_adds_up_to_what_was_gained():
    np.testing.assert_allclose(progress([0.25, 0.75, 0.5, 1.0]), [0.5, -0.25, 0.5])
    assert progress([0.3, 0.1, 0.9]).sum() == pytest.approx(0.6)


@pytest.mark.parametrize("credit", [GroupRelative(scale=2.0, length="turns"), StepRelative(), GAE(lam=0.9)])
def test_credit_is_built_again_from_its_data(credit):
    assert build(Credit, credit.as_data()) == credit


# Against all trajectories


def expected_gradient(problem: EnumerableMDP, logits: np.ndarray, credit: Credit, sizes: tuple[int, ...]) -> np.ndarray:
    """The exact mean of the estimate from groups of these sizes: weights times scores over the episodes that count."""
    policy, total = problem.policy(logits), np.zeros_like(logits)
    groups = [g for g, n in enumerate(sizes) for _ in range(n)]
    for paths in itertools.product(problem.trajectories(logits), repeat=len(groups)):
        episodes = [of_path(p, g) for p, g in zip(paths, groups, strict=True)]
        for n, t in enumerate(episodes):
            t.ordinal = n
        samples = credit(episodes)
        counted = len({s.episode for s in samples})
        for s in samples:
            state, action = s.prompt_ids[0], s.sampled_ids[0]
            score = -policy[state] + (np.arange(policy.shape[1]) == action)
            total[state] += np.prod([p.probability for p in paths]) * s.weights[0] * score / counted
    return total


def by_formula(problem: EnumerableMDP, logits: np.ndarray, weight: Callable[[Path, int], float]) -> np.ndarray:
    """Sum over paths and turns of probability, weight and score."""
    policy, total = problem.policy(logits), np.zeros_like(logits)
    for path in problem.trajectories(logits):
        for t, (s, a) in enumerate(zip(path.states, path.actions, strict=True)):
            total[s] += path.probability * weight(path, t) * (-policy[s] + (np.arange(policy.shape[1]) == a))
    return total


def problem_of(seed: int = 18, discount: float = 1.0) -> tuple[EnumerableMDP, np.ndarray]:
    rng = np.random.default_rng(seed)
    return random_mdp(rng, 3, 2, 2, stochastic=False, discount=discount), rng.normal(size=(3, 2))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("credit", "sizes", "factor"),
    [
        (GroupRelative(**PLAIN), (1,), 1.0),
        (GroupRelative(**PLAIN, length=10.0), (1,), 0.1),
        (GroupRelative(**LOO), (2,), 1.0),
        (GroupRelative(**LOO), (3,), 1.0),
        (GroupRelative(centre="mean", scale="none"), (2,), 1 / 2),
        (GroupRelative(centre="mean", scale="none"), (3,), 2 / 3),
        (GroupRelative(centre="mean", scale=4.0), (2,), 1 / 8),
        (GroupRelative(centre="batch", scale="none"), (1, 2), 2 / 3),
        (GAE(), (1,), 1.0),
        (GAE(values="group"), (2,), 1.0),
        (GAE(values="group"), (3,), 1.0),
        (GAE(values="group", over="tokens"), (2,), 1.0),
        (GAE(values="critic"), (1,), 1.0),
        (GAE(values="critic", over="tokens"), (2,), 1.0),
    ],
)
def test_the_expected_gradient_is_the_exact_one_times_a_known_factor(credit, sizes, factor):
    problem, logits = problem_of()
    assert {len(p.actions) for p in problem.trajectories(logits)} == {1, 2}
    found = expected_gradient(problem, logits, credit, sizes)
    np.testing.assert_allclose(found, factor * problem.gradient(logits), atol=1e-12)


@pytest.mark.parametrize("n", [2, 4])
def test_dividing_by_the_deviation_weighs_a_binary_prompt_by_its_success_rate(n):
    """(E[A | r = 1] - E[A | r = 0]) times the gradient of p, over how many of the n - 1 others succeed."""
    problem, logits = bandit([1.0, 0.0, 0.0]), np.log([[0.2, 0.5, 0.3]])
    p = 0.2

    def mean_of(own: int) -> float:
        total = 0.0
        for k in range(n):
            a = (k + own) / n
            if 0 < a < 1:
                total += comb(n - 1, k) * p**k * (1 - p) ** (n - 1 - k) * (own - a) / (a * (1 - a)) ** 0.5
        return total

    found = expected_gradient(problem, logits, GroupRelative(), (n,))
    np.testing.assert_allclose(found, (mean_of(1) - mean_of(0)) * problem.gradient(logits), atol=1e-12)


def test_dividing_by_the_deviation_of_other_rewards_points_elsewhere():
    problem, logits = problem_of()
    found = expected_gradient(problem, logits, GroupRelative(), (3,))
    assert cosine(found, problem.gradient(logits)) < 0.999


def test_dividing_by_the_own_length_follows_the_return_per_turn():
    problem, logits = problem_of()
    found = expected_gradient(problem, logits, GroupRelative(**PLAIN, length="turns"), (1,))
    per_turn = by_formula(problem, logits, lambda path, t: sum(path.rewards) / len(path.actions))
    np.testing.assert_allclose(found, per_turn, atol=1e-12)
    assert cosine(found, problem.gradient(logits)) < 0.999


def test_leaving_out_groups_without_spread_makes_the_step_larger_where_they_are_many():
    """Of two groups of two, each mixed with probability m: (2 - m) times the gradient that counts them all."""
    problem, logits = bandit([1.0, 0.0, 0.0]), np.log([[0.2, 0.5, 0.3]])
    m = 2 * 0.2 * 0.8
    every = expected_gradient(problem, logits, GroupRelative(centre="mean", scale="none"), (2, 2))
    some = expected_gradient(problem, logits, GroupRelative(centre="mean", scale="none", mixed_only=True), (2, 2))
    np.testing.assert_allclose(every, problem.gradient(logits) / 2, atol=1e-12)
    np.testing.assert_allclose(some, (2 - m) * every, atol=1e-12)


def test_whitened_returns_of_one_step_are_rewards_whitened_over_the_batch():
    problem, logits = bandit([1.0, 0.25, 0.0]), np.log([[0.2, 0.5, 0.3]])
    whitened = expected_gradient(problem, logits, GAE(whiten=True), (3,))
    batch = GroupRelative(centre="batch", scale="batch_std")
    np.testing.assert_allclose(whitened, expected_gradient(problem, logits, batch, (1, 1, 1)), atol=1e-12)
    assert cosine(whitened, problem.gradient(logits)) < 1 - 1e-6


def test_without_lambda_1_values_that_are_not_the_policys_own_bias():
    """At lam = 0 a turn gets its reward and what another episode earns on average from the next turn on."""
    problem, logits = problem_of()
    later = sum(p.probability * p.rewards[1] for p in problem.trajectories(logits) if len(p.actions) > 1)
    found = expected_gradient(problem, logits, GAE(values="group", lam=0.0), (2,))
    one_step = by_formula(
        problem, logits, lambda path, t: path.rewards[t] + (later if t + 1 < len(path.actions) else 0.0)
    )
    np.testing.assert_allclose(found, one_step, atol=1e-12)
    assert not np.allclose(found, problem.gradient(logits), atol=1e-3)


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_the_policys_own_values_bias_at_no_lambda(lam):
    problem, logits = problem_of()
    values_H_S = (problem.policy(logits) * problem.action_values(logits)).sum(2)
    found = by_formula(
        problem, logits,
        lambda path, t: gae(path.rewards, [values_H_S[k, s] for k, s in enumerate(path.states)], lam=lam)[t],
    )  # fmt: skip
    np.testing.assert_allclose(found, problem.gradient(logits), atol=1e-12)


def test_a_discount_leaves_out_its_factor_in_front_of_a_turn():
    problem, logits = problem_of(discount=0.5)
    found = expected_gradient(problem, logits, GAE(discount=0.5), (1,))
    to_go = by_formula(problem, logits, lambda path, t: sum(0.5**k * r for k, r in enumerate(path.rewards[t:])))
    in_front = by_formula(
        problem, logits, lambda path, t: 0.5**t * sum(0.5**k * r for k, r in enumerate(path.rewards[t:]))
    )
    np.testing.assert_allclose(found, to_go, atol=1e-12)
    np.testing.assert_allclose(in_front, problem.gradient(logits), atol=1e-12)
    assert not np.allclose(found, in_front, atol=1e-3)


def test_a_state_weighs_as_often_as_others_come_there():
    """A tree of two steps: state 0, then 1 or 2 by the action; nobody comes to a state twice."""
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1:, :, 3] = 1
    rewards, logits = np.random.default_rng(4).normal(size=(4, 2)), np.random.default_rng(5).normal(size=(4, 2))
    problem = EnumerableMDP(moves, rewards, np.eye(4)[0], np.arange(4) == 3, horizon=2)
    came_S = np.append([1.0], problem.policy(logits)[0])
    found = expected_gradient(problem, logits, StepRelative(**LOO, discount=1.0), (2,))
    steps = by_formula(problem, logits, lambda path, t: came_S[path.states[t]] * sum(path.rewards[t:]))
    np.testing.assert_allclose(found, problem.gradient(logits) + steps, atol=1e-12)
    assert cosine(found, problem.gradient(logits)) < 0.999
