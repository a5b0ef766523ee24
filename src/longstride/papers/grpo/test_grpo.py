"""GRPO and its siblings: what each makes of the same episodes, by hand, and an iteration for real."""

from itertools import groupby

import numpy as np
import pytest
from helpers import make_trajectory, make_turn, rows_of, trajectories_of

from longstride.core.trajectory import Trajectory
from longstride.methods import PPO
from longstride.papers.dr_grpo import recipe as dr_grpo
from longstride.papers.grpo import recipe as grpo
from longstride.papers.ppo import recipe as ppo
from longstride.papers.reinforce_pp import recipe as reinforce_pp
from longstride.papers.rloo import recipe as rloo
from longstride.run.recipe import Recipe

RECIPES = {recipe.name: recipe for recipe in (m.RECIPE for m in (grpo, dr_grpo, rloo, reinforce_pp, ppo))}
ROOT = 2**0.5
BY_HAND = {
    "grpo": ([1, -1, ROOT, -ROOT / 2, -ROOT / 2], [5, 15, 10, 10, 5]),
    "dr_grpo": ([1 / 2, -1 / 2, 2 / 3, -1 / 3, -1 / 3], [160 * 5] * 5),
    "rloo": ([1, -1, 1, -1 / 2, -1 / 2], [5] * 5),
    "reinforce_pp": ([ROOT, -ROOT / 2, ROOT, -ROOT / 2, -ROOT / 2], [9] * 5),
    "ppo": (np.array([19, -17, 28, -8, -8]) / 332**0.5, [9] * 5),
}
"""Advantage of each episode, and what its tokens' terms are divided by."""


def episodes() -> list[Trajectory]:
    """Two groups, rewards 1, 0 and 1, 0, 0, with 1, 3, 2, 2 and 1 sampled tokens; a critic's values of 1/2 and 1/4."""
    found = []
    for n, (group, reward, tokens) in enumerate([(0, 1, 1), (0, 0, 3), (2, 1, 2), (2, 0, 2), (2, 0, 1)]):
        turn = make_turn([2] * tokens, estimates={"value": 1 / (2 + group)})
        found.append(make_trajectory([turn], reward, ordinal=n, group=group))
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_weighs_tokens_as_its_paper_says(name: str):
    recipe, (advantages, divisors) = RECIPES[name], BY_HAND[name]
    samples = recipe.credit(episodes())
    shares, denominator = recipe.loss.aggregation(samples)
    for sample, share, advantage, divisor in zip(samples, shares, advantages, divisors, strict=True):
        assert sample.advantages == pytest.approx([advantage] * len(sample.sampled_ids))
        assert share / denominator == pytest.approx(1 / divisor)


@pytest.mark.parametrize("name", RECIPES)
def test_siblings_differ_from_grpo_in_credit_and_loss_alone(name: str):
    recipe = RECIPES[name]
    changed = {key for key in Recipe.model_fields if getattr(recipe, key) != getattr(grpo.RECIPE, key)}
    more = {"rloo": {"learner"}, "ppo": {"critic"}}.get(name, set())
    assert changed <= {"name", "credit", "loss"} | more
    assert recipe.learner.lr == grpo.RECIPE.learner.lr


def test_only_ppo_bounds_the_ratio_of_tokens_of_negative_advantage():
    bounds = {name: recipe.loss.dual_clip for name, recipe in RECIPES.items() if isinstance(recipe.loss, PPO)}
    assert bounds == {"grpo": None, "dr_grpo": None, "reinforce_pp": None, "ppo": 3.0}


def test_an_iteration_plays_groups_of_one_task_and_trains_on_them_twice(tmp_path):
    changes = {"episodes_per_iteration": 16, "learner": {"batch_samples": 8}, "evaluation": {"tasks": 3}}
    grpo.RECIPE.replace(iterations=1, **changes).train(tmp_path / "run")
    groups = [list(group) for _, group in groupby(trajectories_of(tmp_path / "run"), lambda t: t.group)]
    assert [len(group) for group in groups] == [8, 8] and [group[0].group for group in groups] == [0, 8]
    assert all(len({(t.task.id, t.seed) for t in group}) == 1 for group in groups)
    (row,) = rows_of(tmp_path / "run", "train")
    assert (row["trained_turns"], row["steps"], row["skipped"], row["staleness_max"]) == (32, 4, 0, 0)
    assert row["summary"]["failed"] == 0 and row["summary"]["length"] == 1
    assert 0 < row["approx_kl"] < 0.1
    evaluated = [(r["policy"], r["iteration"]) for r in rows_of(tmp_path / "run", "eval")]
    assert evaluated == [("warm_start", 0), ("agent", 1)]
