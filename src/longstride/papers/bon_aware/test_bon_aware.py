"""BoN-aware fine-tuning: its weights have the exact gradient of solving a task with N answers, and a known optimum."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from enumerated import ascent
from helpers import rows_of

from longstride.claims.stages import stages
from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.exact.answers import Answers
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.papers.bon_aware.exact import CHANCES, RECIPE
from longstride.papers.bon_aware.method import PassAtN
from longstride.papers.bon_aware.recipe import CLAIM
from longstride.run.recipe import Recipe

PLAIN = Reinforce(aggregation=Constant(per="episode"))
PROBLEM = Answers(tasks=((0.35,),), vocabulary=3)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_expected_update_is_the_exact_gradient_of_the_best_of_n(n: int) -> None:
    logits = PROBLEM.begin(np.random.default_rng(0))
    fails = 1 - PROBLEM.tree.success(logits)
    exact = PROBLEM.tree.gradient(logits, n * fails ** (n - 1))
    np.testing.assert_allclose(ascent(PROBLEM, logits, PassAtN(n=n), PLAIN, size=4), exact, atol=1e-9)


def test_with_the_power_of_an_estimate_the_update_is_too_large() -> None:
    """Why the share of failing sets is taken: the mean of the square of an estimate is above the square of its mean."""
    fails, others = 0.65, 3
    counts = np.arange(others + 1)
    chances = np.array([1, 3, 3, 1]) * fails**counts * (1 - fails) ** (others - counts)
    assert chances @ (counts / others) ** 2 > fails**2 + 0.05
    assert chances @ (counts * (counts - 1) / (others * (others - 1))) == pytest.approx(fails**2)


def test_with_one_answer_it_is_the_mean_of_the_others() -> None:
    episodes = PROBLEM.episodes(PROBLEM.begin(np.random.default_rng(0)), np.array([[0, 1, 2, 2, 1]]))
    plain = GroupRelative(baseline="leave_one_out", normalize="none")(episodes)
    assert [s.advantages[0] for s in PassAtN(n=1)(episodes)] == pytest.approx([s.advantages[0] for s in plain])


def test_a_group_smaller_than_n_is_refused_and_a_task_that_is_solved_weighs_nothing() -> None:
    logits = PROBLEM.begin(np.random.default_rng(0))
    right = int(PROBLEM.tree.rewards[0].argmax())
    wrong = (right + 1) % 3
    with pytest.raises(ConfigError, match="n = 4 needs groups of 4 or more, got 3"):
        PassAtN(n=4)(PROBLEM.episodes(logits, np.array([[0, 1, 2]])))
    lost = PROBLEM.episodes(logits, np.array([[right, wrong, wrong] * 2]))
    lost[0].stop = StopReason.INFRA_FAILURE
    for t in lost[3:]:
        t.group = 1
    assert {s.episode for s in PassAtN(n=3)(lost)} == {3, 4, 5}, "a group that lost an answer ends no run"
    solved = PassAtN(n=3)(PROBLEM.episodes(logits, np.array([[right, right, right, wrong]])))
    assert [s.advantages[0] for s in solved] == [0, 0, 0, 0]
    once = PassAtN(n=3)(PROBLEM.episodes(logits, np.array([[right, wrong, wrong, wrong]])))
    # for the right one all sets of two others fail: 3 * 1 * (1 - 0); for a wrong one 1 of 3: 3 / 3 * (0 - 1 / 3)
    assert [s.advantages[0] for s in once] == pytest.approx([3.0, -1 / 3, -1 / 3, -1 / 3])


def test_where_tasks_look_alike_the_optimum_tries_their_answers_equally_often() -> None:
    """The maximum of the mean of 1 - (1 - p_q)^N under sum p_q = 1 is p_q = 1/4; a single answer wants one of them."""
    problem, n = Answers(tasks=(CHANCES,), vocabulary=8), 16
    ends = []
    for weights in (lambda p: n * (1 - p) ** (n - 1), np.ones_like):
        logits = problem.begin(np.random.default_rng(0))
        for _ in range(3000):
            logits = logits + 2.0 * problem.tree.gradient(logits, weights(problem.tree.success(logits)))
        ends.append(problem.tree.success(logits))
    np.testing.assert_allclose(ends[0], 0.25, atol=1e-3)
    # all four earn the same for a single answer, so the start decides, and the likeliest is far ahead
    assert ends[1].max() > 0.6 and ends[1].min() < 0.1


def test_a_short_run_raises_what_sixteen_answers_solve() -> None:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    before = RECIPE.problem.measures(state)["pass@16"]
    for i in range(8):
        state = RECIPE.method.step(RECIPE.problem, state, np.random.default_rng(i))
    assert RECIPE.problem.measures(state)["pass@16"] > before + 0.05


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere("bon_aware", tmp_path, "credit.n=3", "evaluation.attempts=4")
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    assert {"pass@2", "pass@4"} <= set(rows_of(run, "eval")[-1]["measures"])


def test_the_claim_is_read_at_equal_tokens_and_measures_what_it_compares() -> None:
    stages(CLAIM)
    assert CLAIM.equal_cost and CLAIM.cost == "sampled_tokens"
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and arm.evaluation.attempts == 16 and arm.iterations == 3 * arm.evaluation.every
