"""GRPO and its siblings: what each makes of the same episodes, by hand, and one iteration for real."""

import json

import numpy as np
import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.config import resolve
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.methods import PPO
from longstride.recipes import dr_grpo, grpo, ppo, reinforce_pp, rloo
from longstride.rollout.store import TrajectoryStore
from longstride.run.loop import train
from longstride.run.recipe import Recipe

PAGES = {page.RECIPE.name: page.RECIPE for page in (grpo, dr_grpo, rloo, reinforce_pp, ppo)}
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
    task = Task(id="t", source="s", goal="g", start="s")
    found = []
    for n, (group, reward, tokens) in enumerate([(0, 1, 1), (0, 0, 3), (2, 1, 2), (2, 0, 2), (2, 0, 1)]):
        turn = Turn([1], [2] * tokens, [-1.0] * tokens, [0] * tokens, "", "text", value=1 / (2 + group))
        found.append(Trajectory(task, n, 0, Budget(), [turn], StopReason.ENV_ENDED, reward=reward, group=group))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_each_page_weighs_tokens_as_its_paper_says(name: str) -> None:
    recipe, (advantages, divisors) = PAGES[name], BY_HAND[name]
    samples = recipe.credit(episodes())
    shares, denominator = recipe.loss.aggregation(samples)
    for sample, share, advantage, divisor in zip(samples, shares, advantages, divisors, strict=True):
        assert sample.weights == pytest.approx([advantage] * len(sample.sampled_ids))
        assert share / denominator == pytest.approx(1 / divisor)


@pytest.mark.parametrize("name", PAGES)
def test_siblings_differ_from_grpo_in_credit_and_loss_alone(name: str) -> None:
    recipe = PAGES[name]
    changed = {key for key in Recipe.model_fields if getattr(recipe, key) != getattr(grpo.RECIPE, key)}
    more = {"rloo": {"learner"}, "ppo": {"critic"}}.get(name, set())
    assert changed <= {"name", "credit", "loss"} | more
    assert recipe.learner.lr == grpo.RECIPE.learner.lr
    assert resolve(Recipe, recipe, []) == recipe  # checked as a whole, which model_copy does not do


def test_only_ppo_bounds_the_ratio_of_bad_tokens() -> None:
    bounds = {name: recipe.loss.dual for name, recipe in PAGES.items() if isinstance(recipe.loss, PPO)}
    assert bounds == {"grpo": None, "dr_grpo": None, "reinforce_pp": None, "ppo": 3.0}


def test_an_iteration_plays_groups_of_one_task_and_trains_on_them_twice(tmp_path) -> None:
    recipe = resolve(Recipe, grpo.RECIPE, [
        "iterations=1", "episodes=16", "learner.batch_samples=8", "evaluation.tasks=6",
    ])  # fmt: skip
    train(recipe, tmp_path / "run")
    episodes = TrajectoryStore(tmp_path / "run" / "trajectories.jsonl").read(range(16))
    assert len({t.task.id for t in episodes[:8]}) == len({t.seed for t in episodes[:8]}) == 1
    assert [t.group for t in episodes] == [0] * 8 + [8] * 8
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    (row,) = [r for r in rows if r["kind"] == "train"]
    assert (row["trained_turns"], row["steps"], row["skipped"], row["staleness_max"]) == (32, 4, 0, 0)
    assert row["summary"]["failed"] == 0 and row["summary"]["length"] == 1
    assert 0 < row["approx_kl"] < 0.1
    assert [(r["policy"], r["iteration"]) for r in rows if r["kind"] == "eval"] == [("warm_start", 0), ("agent", 1)]
