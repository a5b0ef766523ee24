"""The pages of puzzles in rounds: their stages and states, in runs of two iterations."""

import json
from pathlib import Path

import pytest

from longstride.core.config import resolve
from longstride.core.trajectory import Trajectory
from longstride.models.load import load_policy
from longstride.recipes import reasoning_cache, score
from longstride.rollout.store import TrajectoryStore
from longstride.run.loop import train
from longstride.run.recipe import Recipe

SMALL = ("iterations=2", "episodes=16", "group=4", "evaluation.tasks=3", "evaluation.every=2")


def run(recipe: Recipe, folder: Path, *overrides: str) -> tuple[list[dict], list[Trajectory]]:
    """The training rows and the episodes of a short run."""
    train(resolve(Recipe, recipe, [*SMALL, *overrides]), folder)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    store = TrajectoryStore(folder / "trajectories.jsonl")
    return [row for row in rows if row["kind"] == "train"], list(store.read(range(len(store))))


def test_the_first_stage_of_score_credits_second_attempts_alone_and_holds_first_ones() -> None:
    first, second = score.RECIPE.at(1), score.RECIPE.at(score.RECIPE.stages[0].after + 1)
    for stage, credited, held in ((first, [0.0, 1.0], (True, False)), (second, [1.0, 1 + score.BONUS], (True, True))):
        assert stage.loss.kl is not None
        assert tuple(stage.loss.kl.at(turn) > 0 for turn in (0, 1)) == held
        assert [stage.credit.first, 1 + stage.credit.bonus] == credited  # pyright: ignore (both are AttemptCredit)


def test_score_plays_two_attempts_and_is_held_to_where_it_started(tmp_path: Path) -> None:
    rows, episodes = run(score.RECIPE, tmp_path / "run")
    assert all(t.length == 2 and t.turns[1].observation.endswith("check again") for t in episodes)
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-5) and rows[1]["kl"] >= rows[0]["kl"]


def test_rounds_of_reasoning_are_read_alone_and_trained_from_states_that_were_met(tmp_path: Path) -> None:
    _, episodes = run(reasoning_cache.RECIPE, tmp_path / "run", "evaluation.strategies=[{type='direct'}]")
    explored = [t for t in episodes if t.role == "explore"]
    assert {t.length for t in explored} == {reasoning_cache.ROUNDS}
    assert {t.length for t in episodes if t.role == "step"} == {1}
    chat = load_policy("base-puzzles").chat
    for t in episodes:
        for turn in t.turns:
            assert turn.prompt_ids == chat.head(t.task.goal) + chat.observation(turn.observation, first=True)
