"""BRPO: its advantages by hand, and how much of the exact gradient each segment has."""

from collections.abc import Sequence

import numpy as np
import pytest
from enumerated import ascent

from longstride.core.trajectory import Trajectory
from longstride.methods import Constant, GroupRelative, Reinforce, Sample
from longstride.papers.anytime_reasoner.exact import RECIPE, Thoughts
from longstride.papers.anytime_reasoner.method import BY_BUDGET, BudgetRelative

LOSS = Reinforce(aggregation=Constant(per="episode"))


def test_advantages_of_a_group_by_hand() -> None:
    scores = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    found = 3 * BudgetRelative().of_group(scores)
    # R (times 3): [2, 2, 1] and [1, 1, 1], V2 = [1.5, 1.5, 1]; V1: before segment 1 the scores are 0, before segment 2
    # (1 * 0 + 2 * 1) / 3 and 0, times one budget that is left
    first = [2 - 1.5, 2 - (0 + 2 * 1.5) / 3, 1 - (2 * 2 / 3 + 1) / 3]
    second = [1 - 1.5, 1 - (0 + 2 * 1.5) / 3, 1 - (0 + 1) / 3]
    np.testing.assert_allclose(found, [first, second])


def test_the_prior_weighs_budgets() -> None:
    scores = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(BudgetRelative(prior="base").of_group(scores)[:, 0], [-0.5, 0.5])
    np.testing.assert_allclose(BudgetRelative(prior="linear").of_group(scores)[:, 0], [1 / 3 - 0.5, 2 / 3 - 0.5])


def test_with_one_budget_it_is_the_mean_of_the_group() -> None:
    scores = np.array([[1.0], [0.25], [0.0]])
    np.testing.assert_allclose(BudgetRelative().of_group(scores)[:, 0], scores[:, 0] - scores.mean())


@pytest.mark.parametrize("n", [2, 3])
def test_the_expected_update_of_a_segment_is_its_known_share_of_the_exact_gradient(n: int) -> None:
    problem = Thoughts(tasks=((0.3,),), length=2, sure=0.8)
    logits = problem.begin(np.random.default_rng(0))

    def credit(episodes: Sequence[Trajectory]) -> list[Sample]:
        for t in episodes:
            first, second = t.turns[0].sampled_ids
            t.evidence[BY_BUDGET] = problem.accuracy[2 * first + second].tolist()
        return BudgetRelative()(episodes)

    found = ascent(problem, logits, credit, LOSS, n)
    tree = problem.tree
    tree = type(tree)(problem.accuracy.mean(1)[None], tree.context, tree.vocabulary, tree.length)
    exact = tree.gradient(logits, np.ones(1))
    np.testing.assert_allclose(found[0, 0], (1 - 1 / n) * exact[0, 0], atol=1e-9)  # S = 2: 1 - (S - s) / (S n)
    np.testing.assert_allclose(found[0, 1:], (1 - 1 / (2 * n)) * exact[0, 1:], atol=1e-9)


def test_what_is_found_stays_found_and_the_start_finds_with_the_chance_of_the_task() -> None:
    problem = Thoughts(tasks=((0.3,),), vocabulary=3, length=2, sure=0.9)
    assert problem.accuracy[0 * 3 + 2].tolist() == [0.9, 0.9] and problem.accuracy[5].tolist() == pytest.approx(
        [0.1, 0.1]
    )
    assert problem.replace(last_only=True).accuracy[0 * 3 + 2].tolist() == pytest.approx([0.1, 0.1])
    measured = problem.measures({"logits": problem.begin(np.random.default_rng(0))})
    at_first, at_last = 0.1 + 0.8 * 0.3, 0.1 + 0.8 * (1 - 0.7**2)
    assert measured == pytest.approx({"anytime": (at_first + at_last) / 2, "success": at_last})


def test_episodes_have_the_scores_of_all_budgets_and_earn_that_of_the_last() -> None:
    problem = RECIPE.problem
    assert isinstance(problem, Thoughts)
    for t in problem.play(problem.begin(np.random.default_rng(0)), 2, np.random.default_rng(0)):
        assert len(t.evidence[BY_BUDGET]) == 4 and t.reward == t.evidence[BY_BUDGET][-1]
        assert all(0 <= score <= 1 and (4 * score).is_integer() for score in t.evidence[BY_BUDGET])
    assert GroupRelative(normalize="none")(
        problem.play(problem.begin(np.random.default_rng(0)), 2, np.random.default_rng(0))
    )
