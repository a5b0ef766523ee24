"""Advantages: the numbers of the papers by hand, and the expected gradient of every estimator over all trajectories of
enumerable problems: the exact one, or one whose bias has a formula."""

import random
from math import comb
from typing import Any

import numpy as np
import pytest
from estimators import all_of, by_formula, cosine, episode_of, weighted_scores
from helpers import Collected, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.trajectory import Trajectory, Turn
from longstride.exact.worlds.tabular import EnumerableMDP, Path, bandit, random_mdp
from longstride.methods import Credit, GroupRelative, MixedGroups, Replay, group_advantages
from longstride.methods.advantages import GAE, gae
from longstride.methods.trials import TrialReturn

PLAIN: dict[str, Any] = {"baseline": "none", "normalize": "none"}
LEAVE_ONE_OUT: dict[str, Any] = {"baseline": "leave_one_out", "normalize": "none"}
VALUES = (0.7, -2.0, 1.3)
"""Values of states that are anything but right."""


def state(number: int, ids: tuple[int, ...] = (0,), reward: float = 0.0, value: float = 0.0) -> Turn:
    return make_turn(ids, [number], observation=f"state {number}", reward=reward, estimates={"value": value})


def of_path(path: Path, ordinal: int, group: int) -> Trajectory:
    found = episode_of(path, ordinal=ordinal, group=group)
    for turn, s in zip(found.turns, path.states, strict=True):
        turn.estimates["value"] = VALUES[s]
    return found


def advantages(credit: Credit, episodes: list[Trajectory]) -> list[list[float]]:
    return [s.advantages for s in credit(episodes)]


# By hand


def test_the_advantage_of_a_turn_is_divided_by_the_length_of_its_episode_or_by_a_constant():
    """AsyncWebRL: r = 1, 1, 0, 0 and T = 5, 5, 12, 13."""
    group = [make_trajectory(turns, reward) for reward, turns in ((1, 5), (1, 5), (0, 12), (0, 13))]
    own, constant = GroupRelative(length_divisor="turns"), GroupRelative(length_divisor=10.0)
    for credit, expected in ((own, [0.2, 0.2, -1 / 12, -1 / 13]), (constant, [0.1, 0.1, -0.1, -0.1])):
        found = advantages(credit, group)
        assert len(found) == 35
        assert [found[k][0] for k in (0, 5, 10, 22)] == pytest.approx(expected)


def test_leave_one_out_compares_each_episode_with_the_others_of_its_group():
    """LOOP: r = 1, 0, 0, 1, 0, 0."""
    found = group_advantages([1, 0, 0, 1, 0, 0], [3] * 6, **LEAVE_ONE_OUT)
    np.testing.assert_allclose(found, [0.8, -0.4, -0.4, 0.8, -0.4, -0.4])
    mean = group_advantages([1, 0, 0, 1, 0, 0], [3] * 6, "mean", "none")
    np.testing.assert_allclose(found, mean * 6 / 5)


def test_groups_may_come_in_any_order_and_every_baseline_and_divisor_is_as_documented():
    r, g = [1.0, 4.0, 0.0, 0.0], [7, 2, 7, 2]
    np.testing.assert_allclose(group_advantages(r, g), [1, 1, -1, -1])
    np.testing.assert_allclose(group_advantages(r, g, "mean", 2.0), [0.25, 1, -0.25, -1])
    np.testing.assert_allclose(group_advantages(r, g, "mean", "batch_std"), np.array([0.5, 2, -0.5, -2]) / np.std(r))
    spread = (2 * (0.5**2 + 2**2) / 4) ** 0.5
    np.testing.assert_allclose(group_advantages(r, g, "mean", "advantage_std"), np.array([0.5, 2, -0.5, -2]) / spread)
    np.testing.assert_allclose(group_advantages(r, g, "batch", "none"), [-0.25, 2.75, -1.25, -1.25])
    np.testing.assert_allclose(group_advantages(r, g, "none", "std"), [2, 2, 0, 0])
    assert group_advantages([], []).shape == (0,)


@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "batch"])
@pytest.mark.parametrize("normalize", ["std", "batch_std", "advantage_std", "none"])
def test_equal_rewards_give_exactly_zero(baseline, normalize):
    rewards = [0.1] * 3 + [0.1 + 1e-9]  # their mean is rounded
    assert not group_advantages(rewards, [0, 0, 0, 0], baseline, normalize).any()


def test_an_episode_alone_in_its_group_has_no_advantage_under_leave_one_out():
    assert group_advantages([5.0, 1.0, 0.0], [0, 1, 1], **LEAVE_ONE_OUT).tolist() == [0.0, 1.0, -1.0]


@pytest.mark.parametrize("successes", range(9))
def test_the_absolute_advantages_of_a_group_are_largest_at_half_success(successes):
    """DARS: sum |A| / n is 2 a (1 - a), and twice the square root of a (1 - a) with the deviation."""
    r, a = [1.0] * successes + [0.0] * (8 - successes), successes / 8
    assert np.abs(group_advantages(r, [0] * 8, "mean", "none")).mean() == pytest.approx(2 * a * (1 - a))
    assert np.abs(group_advantages(r, [0] * 8)).mean() == pytest.approx(2 * (a * (1 - a)) ** 0.5)


@pytest.mark.parametrize("credit", [GroupRelative(), GAE(), GAE(values="group", whiten=True)])
def test_a_failed_episode_is_in_no_mean_and_a_turn_without_tokens_is_no_sample(credit):
    played = [make_trajectory([state(0, (4, 5)), state(1, ())], 1), make_trajectory([state(0, (6,))], 0)]
    failed = make_trajectory(3, stop=StopReason.INFRA_FAILURE)
    assert credit([*played, failed]) == credit(played)
    assert [s.sampled_ids for s in credit(played)] == [[4, 5], [6]]
    assert credit([failed]) == [] == credit([])
    assert credit([make_trajectory([], group=1, stop=StopReason.CONTEXT)]) == []


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
    def beside_a_success(stop: StopReason) -> list[list[float]]:
        return advantages(GAE(values="group"), [make_trajectory(2, 1), make_trajectory(2, 0, stop=stop)])[2:]

    assert beside_a_success(StopReason.ANSWERED) == [[-1], [-1]]
    for stop in (StopReason.TURNS, StopReason.TOKENS, StopReason.ENV_TRUNCATED, StopReason.MARK):
        assert beside_a_success(stop) == [[0], [0]]  # its state is worth 1, and nobody saw what came of it


def test_gae_reads_the_values_that_a_critic_estimated_and_its_targets_are_lambda_returns():
    """delta = 1 + 0.5 * 2 - 3 = -1 and 2 - 2 = 0 where it ended; 2 + 0.5 * 2 - 2 = 1 where a budget ended it."""
    turns = lambda: [state(0, (4, 5), 1.0, 3.0), state(1, (6,), 2.0, 2.0)]  # noqa: E731
    ended, cut = (make_trajectory(turns(), 3, stop=s) for s in (StopReason.ENV_ENDED, StopReason.TURNS))
    failed = make_trajectory(turns(), 3, stop=StopReason.INFRA_FAILURE)
    credit = GAE(values="critic", discount=0.5, lam=0.5)
    assert advantages(credit, [ended, failed, cut]) == [[-1, -1], [0], [-0.75, -0.75], [1]]
    for whiten in (False, True):
        found = credit.replace(whiten=whiten).targets([ended, failed, cut])
        assert found == [[2, 2], [], [2.25, 3]]
    silent = make_trajectory([state(0, (), value=0.5), state(1, (4, 5), value=0.25)], 1)
    over_tokens = GAE(values="critic", over="tokens", discount=0.5)
    assert advantages(over_tokens, [silent]) == [[0.25, 0.75]] and over_tokens.targets([silent]) == [[0.25, 0.5]]


def test_gae_asks_for_estimates_only_where_its_values_are_a_critics():
    assert [GAE.model_validate({"values": v}).estimates for v in ("none", "group", "critic")] == [
        frozenset(), frozenset(), frozenset({"value"}),
    ]  # fmt: skip


def test_over_tokens_the_last_token_of_a_turn_takes_its_reward():
    episode = make_trajectory([state(0, (1, 2), reward=1), state(1, (3, 4))], 3)  # 1 for a turn, 2 by the verdict
    assert advantages(GAE(over="tokens", discount=0.5), [episode]) == [[1 * 0.5 + 2 / 8, 1 + 2 / 4], [1, 2]]
    assert advantages(GAE(over="turns", discount=0.5), [episode]) == [[2, 2], [2, 2]]


def test_whitened_advantages_have_mean_0_and_deviation_1_over_all_tokens():
    episodes = [make_trajectory([state(0, (1, 2, 3))], 1), make_trajectory([state(0, (4,))], 0)]
    found = advantages(GAE(whiten=True), episodes)
    flat = np.array([a for of_turn in found for a in of_turn])
    assert [len(of_turn) for of_turn in found] == [3, 1]
    np.testing.assert_allclose([flat.mean(), flat.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(flat * np.sqrt(3), [1, 1, 1, -3], atol=1e-12)


@pytest.mark.parametrize("credit", [GroupRelative(normalize=2.0, length_divisor="turns"), GAE(lam=0.9)])
def test_credit_is_built_again_from_its_data(credit):
    assert build(Credit, credit.as_data()) == credit


# Expected gradients over all trajectories


def expected_gradient(
    problem: EnumerableMDP, logits: np.ndarray, credit: Credit, sizes: tuple[int, ...], replay: Replay | None = None
) -> np.ndarray:
    """The exact mean of the estimate from groups of these sizes, per episode that counts."""
    policy, total, paths = problem.policy(logits), np.zeros_like(logits), list(problem.trajectories(logits))
    groups = [g for g, n in enumerate(sizes) for _ in range(n)]
    for drawn, chance in all_of(*[paths] * len(groups)):
        episodes = [of_path(p, n, g) for n, (p, g) in enumerate(zip(drawn, groups, strict=True))]
        if replay is not None:
            experience = Collected(episodes)
            records = replay.draw(experience.records, len(episodes), random.Random(0), experience)
            episodes = experience.read(records)
        samples = credit(episodes)
        total += chance * weighted_scores(policy, samples) / max(len({s.episode for s in samples}), 1)
    return total


def problem_of(seed: int = 18, discount: float = 1.0) -> tuple[EnumerableMDP, np.ndarray]:
    rng = np.random.default_rng(seed)
    return random_mdp(rng, 3, 2, 2, stochastic=False, discount=discount), rng.normal(size=(3, 2))


@pytest.mark.parametrize(
    ("credit", "sizes", "factor"),
    [
        (GroupRelative(**PLAIN), (1,), 1.0),
        (GroupRelative(**PLAIN, length_divisor=10.0), (1,), 0.1),
        (GroupRelative(**LEAVE_ONE_OUT), (2,), 1.0),
        (GroupRelative(**LEAVE_ONE_OUT), (3,), 1.0),
        (GroupRelative(baseline="mean", normalize="none"), (2,), 1 / 2),
        (GroupRelative(baseline="mean", normalize="none"), (3,), 2 / 3),
        (GroupRelative(baseline="mean", normalize=4.0), (2,), 1 / 8),
        (GroupRelative(baseline="batch", normalize="none"), (1, 2), 2 / 3),
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


def test_dividing_by_the_length_of_the_episode_follows_the_return_per_turn():
    problem, logits = problem_of()
    found = expected_gradient(problem, logits, GroupRelative(**PLAIN, length_divisor="turns"), (1,))
    per_turn = by_formula(problem, logits, lambda path, t: sum(path.rewards) / len(path.actions))
    np.testing.assert_allclose(found, per_turn, atol=1e-12)
    assert cosine(found, problem.gradient(logits)) < 0.999


def test_leaving_out_groups_of_equal_rewards_makes_the_step_larger_where_they_are_many():
    """Of two groups of two, each mixed with probability m: (2 - m) times the gradient that counts them all."""
    problem, logits = bandit([1.0, 0.0, 0.0]), np.log([[0.2, 0.5, 0.3]])
    m = 2 * 0.2 * 0.8
    every = expected_gradient(problem, logits, GroupRelative(baseline="mean", normalize="none"), (2, 2))
    some = expected_gradient(problem, logits, GroupRelative(baseline="mean", normalize="none"), (2, 2), MixedGroups())
    np.testing.assert_allclose(every, problem.gradient(logits) / 2, atol=1e-12)
    np.testing.assert_allclose(some, (2 - m) * every, atol=1e-12)


def test_whitening_one_step_returns_is_whitening_rewards_over_the_batch():
    problem, logits = bandit([1.0, 0.25, 0.0]), np.log([[0.2, 0.5, 0.3]])
    whitened = expected_gradient(problem, logits, GAE(whiten=True), (3,))
    batch = GroupRelative(baseline="batch", normalize="batch_std")
    np.testing.assert_allclose(whitened, expected_gradient(problem, logits, batch, (1, 1, 1)), atol=1e-12)
    assert cosine(whitened, problem.gradient(logits)) < 1 - 1e-6


def test_below_lambda_1_values_that_are_not_the_policys_own_bias_the_gradient():
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
def test_the_policys_own_values_bias_the_gradient_at_no_lambda(lam):
    problem, logits = problem_of()
    values_H_S = (problem.policy(logits) * problem.action_values(logits)).sum(2)
    found = by_formula(
        problem, logits,
        lambda path, t: gae(path.rewards, [values_H_S[k, s] for k, s in enumerate(path.states)], lam=lam)[t],
    )  # fmt: skip
    np.testing.assert_allclose(found, problem.gradient(logits), atol=1e-12)


def test_a_discount_leaves_out_the_factor_in_front_of_each_turn():
    problem, logits = problem_of(discount=0.5)
    found = expected_gradient(problem, logits, GAE(discount=0.5), (1,))
    to_go = by_formula(problem, logits, lambda path, t: sum(0.5**k * r for k, r in enumerate(path.rewards[t:])))
    in_front = by_formula(
        problem, logits, lambda path, t: 0.5**t * sum(0.5**k * r for k, r in enumerate(path.rewards[t:]))
    )
    np.testing.assert_allclose(found, to_go, atol=1e-12)
    np.testing.assert_allclose(in_front, problem.gradient(logits), atol=1e-12)
    assert not np.allclose(found, in_front, atol=1e-3)


# Trials


def of_trials() -> list[Trajectory]:
    """Two trials of three episodes, of which the last of the second one was not played."""
    after = ((), (0,), (0, 1), (), (3,), (3, 4))
    found = [
        make_trajectory(1, r, ordinal=n, group=n % 3, after=a)
        for n, (r, a) in enumerate(zip((0, 1, 2, 4, 8, 0), after, strict=True))
    ]
    found[5].stop = StopReason.UNPLAYED
    return found


def test_an_episode_is_paid_for_what_came_after_it_in_its_trial_and_for_nothing_before() -> None:
    assert [t.reward for t in TrialReturn(discount=0.5).returns(of_trials())] == [1.0, 2.0, 2.0, 8.0, 8.0, 0.0]
    assert [t.reward for t in of_trials()] == [0, 1, 2, 4, 8, 0]  # the stored ones are as they were


def test_trials_are_compared_place_by_place() -> None:
    credit = TrialReturn(credit=GroupRelative(normalize="none"), discount=0.5)
    samples = credit(of_trials())
    assert {s.episode: s.advantages for s in samples} == {0: [-3.5], 1: [-3.0], 2: [0.0], 3: [3.5], 4: [3.0]}
    assert credit.targets(of_trials())[:2] == [[1.0], [2.0]]


def test_without_trials_it_is_the_credit_that_it_is_made_of() -> None:
    alone = [make_trajectory(2, r, ordinal=n) for n, r in enumerate((0.0, 1.0))]
    assert build(Credit, {"type": "trial_return", "discount": 0.3})(alone) == GroupRelative()(alone)
