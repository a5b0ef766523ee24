"""Lite PPO: what either deviation makes of tasks of different difficulty, exactly."""

from math import comb
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from enumerated import ascent
from helpers import make_trajectory, rows_of

from longstride.exact.answers import Answers, Grouped
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.lite_ppo import recipe
from longstride.papers.lite_ppo.exact import RECIPE

N = 4
PROBLEM = Answers(tasks=((0.1,), (0.5,)), vocabulary=2)


def scales(normalize: str) -> list[float]:
    """By task, how many times the exact gradient of success its expected update is."""
    logits = PROBLEM.begin(np.random.default_rng(0))
    loss = PPO(aggregation=Constant(per="episode"))
    found = ascent(PROBLEM, logits, GroupRelative.model_validate({"normalize": normalize}), loss, N)
    exact = PROBLEM.tree.gradient(logits, np.full(2, 0.5))
    for c in range(2):  # one task's update is along its gradient, whatever it is divided by
        assert found[c, 0, 0] * exact[c, 0, 1] == pytest.approx(found[c, 0, 1] * exact[c, 0, 0])
    return (found[:, 0, 0] / exact[:, 0, 0]).tolist()


def by_group(p: float) -> float:
    """The same in closed form for the group's deviation: E[sum of right A / p - sum of wrong A / (1 - p)] / n."""
    total = 0.0
    for k in range(1, N):
        chance, mean = comb(N, k) * p**k * (1 - p) ** (N - k), k / N
        deviation = (mean * (1 - mean)) ** 0.5
        total += chance * (k * (1 - mean) / p + (N - k) * mean / (1 - p)) / deviation / N
    return total


def test_the_group_s_deviation_raises_hard_tasks_as_its_closed_form_says() -> None:
    assert scales("std") == pytest.approx([by_group(0.1), by_group(0.5)], abs=1e-9)
    assert scales("none") == pytest.approx([(N - 1) / N] * 2, abs=1e-9)


def test_neither_deviation_of_small_groups_weighs_a_hard_task_much_otherwise_than_a_middling_one() -> None:
    for normalize in ("std", "batch_std"):
        hard, middling = scales(normalize)
        assert abs(hard / middling - 1) < 0.1


def test_where_all_tasks_are_hard_the_batch_s_deviation_is_smaller_than_a_mixed_group_s() -> None:
    method, problem = RECIPE.method, RECIPE.problem
    assert isinstance(method, Grouped) and isinstance(problem, Answers)
    episodes = problem.play(problem.begin(np.random.default_rng(0)), method.group, np.random.default_rng(0))
    batch, group = (GroupRelative.model_validate({"normalize": n})(episodes) for n in ("batch_std", "std"))
    ratios = [b.advantages[0] / g.advantages[0] for b, g in zip(batch, group, strict=True) if g.advantages[0]]
    assert min(ratios) > 1.25  # 1.6 in the mean over batches: what `longer_group` makes up for
    assert (
        min(
            np.std([t.reward for t in episodes if t.group == q])
            for q in range(16)
            if any(t.reward for t in episodes if t.group == q)
        )
        > 0.33
    )


def test_the_recipe_that_acts_has_the_credit_and_the_loss_of_the_exact_one() -> None:
    method = RECIPE.method
    assert isinstance(method, Grouped)
    assert (recipe.RECIPE.credit, recipe.RECIPE.loss) == (method.credit, method.loss)
    rewards = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5]
    played = [make_trajectory(1, r, ordinal=n, group=n // 4) for n, r in enumerate(rewards)]
    expected = [(r - (0.25 if n < 4 else 0.75)) / np.std(rewards) for n, r in enumerate(rewards)]
    assert [s.advantages[0] for s in recipe.RECIPE.credit(played)] == pytest.approx(expected)


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere("lite_ppo", tmp_path, "learner.epochs=1")
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
