"""Runs that are killed and go on, runs that roll out ahead, and runs on what another one stored."""

import json
import multiprocessing
import random
from pathlib import Path

import pytest
import torch
from longstride.rollout.rounds import PoolConfig
from test_trainer import OnePageTasks, Watcher, episodes_of, make_recipe, model_folder, rows_of  # noqa: F401

from longstride.core.errors import ConfigError, RunError
from longstride.models.load import load_policy
from longstride.rollout.store import TrajectoryStore
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.evaluation import load_run
from longstride.run.loop import train
from longstride.run.recipe import Recipe

KILLS = 20


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return load_run(run)[1].model.state_dict()


def same_weights(a: Path, b: Path) -> bool:
    ours, theirs = weights_of(a), weights_of(b)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in theirs)


def work(recipe: Recipe, folder: Path) -> None:
    torch.set_num_threads(1)
    train(recipe, folder, resume=True)


@pytest.fixture(scope="module")
def workers():
    """Makes processes in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_trainer", "longstride.run.loop"])
    return context


def run_in(workers, recipe: Recipe, folder: Path, killed_after: float | None = None) -> float:
    """Seconds that the process took."""
    import time

    process = workers.Process(target=work, args=(recipe, folder))
    began = time.monotonic()
    process.start()
    process.join(killed_after)
    if process.is_alive():
        process.kill()
    process.join()
    assert process.exitcode == (0 if killed_after is None or process.exitcode == 0 else -9)
    return time.monotonic() - began


def small(model: Path, **changes) -> Recipe:
    return make_recipe(model, iterations=3, episodes=6, **changes)


def test_a_run_killed_at_any_moment_goes_on_to_the_numbers_of_one_that_was_not(workers, model_folder, tmp_path):  # noqa: F811
    recipe = small(model_folder)
    run_in(workers, recipe, tmp_path / "first")  # its imports and caches would make the next one's time too long
    whole = tmp_path / "whole"
    seconds, rng = run_in(workers, recipe, whole), random.Random(0)
    reached = set()
    for k in range(KILLS):
        folder = tmp_path / f"killed-{k}"
        run_in(workers, recipe, folder, killed_after=seconds * (k + rng.random()) / KILLS)
        checkpoint = latest_checkpoint(folder)
        reached.add(-1 if checkpoint is None else checkpoint.numbers["iteration"])
        run_in(workers, recipe, folder)
        assert rows_of(folder) == rows_of(whole) and episodes_of(folder) == episodes_of(whole)
        assert same_weights(folder, whole)
    assert len(reached) > 1, "every kill came at the same place: the moments are not spread"


def test_killed_while_it_rolls_out_ahead_no_episode_is_lost_or_trained_twice(workers, model_folder, tmp_path):  # noqa: F811
    recipe = small(model_folder, pool=PoolConfig(staleness=1))
    seconds, rng = run_in(workers, recipe, tmp_path / "whole"), random.Random(1)
    for k in range(4):
        folder = tmp_path / f"killed-{k}"
        for _ in range(2):
            run_in(workers, recipe, folder, killed_after=seconds * (0.2 + 0.7 * rng.random()))
        run_in(workers, recipe, folder)
        stored = list(TrajectoryStore(folder / "trajectories.jsonl"))
        assert [t.ordinal for t in stored] == list(range(18))
        whole = TrajectoryStore(tmp_path / "whole" / "trajectories.jsonl")
        assert [(t.task.id, t.seed) for t in stored] == [(t.task.id, t.seed) for t in whole]
        assert all(0 <= t.iteration - 1 - v <= 1 for t in stored for turn in t.turns for v in turn.versions)


class TestAhead:
    @pytest.mark.parametrize("lag", [1, 2])
    def test_the_bound_holds_for_every_token_and_is_told(self, model_folder, tmp_path, lag):  # noqa: F811
        train(small(model_folder, pool=PoolConfig(staleness=lag)), tmp_path / "run")
        rows = [r for r in rows_of(tmp_path / "run") if r["kind"] == "train"]
        assert rows[0]["staleness_max"] == 0 and all(r["staleness_max"] <= lag for r in rows)
        ages = [
            [t.iteration - 1 - v for turn in t.turns for v in turn.versions]
            for t in TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")
        ]
        for row in rows:
            mine = [a for found in ages[6 * (row["iteration"] - 1) : 6 * row["iteration"]] for a in found]
            assert row["staleness_max"] == max(mine) and row["staleness"] == pytest.approx(sum(mine) / len(mine))

    def test_what_was_played_ahead_is_kept_in_the_checkpoint_and_not_played_again(self, model_folder, tmp_path):  # noqa: F811
        class Slow(Watcher):
            def __call__(self, row):
                super().__call__(row)
                if row["kind"] == "train":
                    import time

                    time.sleep(0.5)  # the next iteration is played meanwhile

        recipe = small(model_folder, pool=PoolConfig(staleness=1))
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run", Slow(stop_after=2))
        pending = latest_checkpoint(tmp_path / "run").pending()  # pyright: ignore[reportOptionalMemberAccess]
        assert pending and {t.iteration for t in pending} == {2}
        train(recipe, tmp_path / "run", resume=True)
        stored = {t.ordinal: t for t in TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")}
        assert all(stored[t.ordinal].to_json() == t.to_json() for t in pending)

    def test_a_damaged_file_of_pending_episodes_is_one_message(self, model_folder, tmp_path):  # noqa: F811
        recipe = small(model_folder, pool=PoolConfig(staleness=1))
        train(recipe, tmp_path / "run")
        newest = latest_checkpoint(tmp_path / "run").folder  # pyright: ignore[reportOptionalMemberAccess]
        (newest / "pending.jsonl").write_text('{"half": ')
        with pytest.raises(RunError, match="pending.jsonl.*played anew"):
            train(recipe.model_copy(update={"iterations": 4}), tmp_path / "run", resume=True)

    def test_an_engine_with_weights_of_its_own_samples_what_the_shared_one_does(self, model_folder, tmp_path):  # noqa: F811
        for name, lag in (("shared", 0), ("own", 1)):
            train(small(model_folder, pool=PoolConfig(staleness=lag)), tmp_path / name)
        stores = (TrajectoryStore(tmp_path / name / "trajectories.jsonl") for name in ("shared", "own"))
        # the first iteration, which the warm start samples either way
        shared, own = ([turn.sampled_ids for t in store.read(range(6)) for turn in t.turns] for store in stores)
        assert shared == own


class TestStored:
    def test_training_on_what_a_run_stored_gives_its_policy_without_a_rollout(self, model_folder, tmp_path):  # noqa: F811
        recipe = small(model_folder)
        train(recipe, tmp_path / "live")
        watcher = Watcher()
        train(recipe.model_copy(update={"stored": str(tmp_path / "live")}), tmp_path / "again", watcher)
        assert same_weights(tmp_path / "again", tmp_path / "live") and "rollout" not in watcher.phases
        assert episodes_of(tmp_path / "again") == episodes_of(tmp_path / "live")

    def test_a_run_that_stored_too_little_or_other_iterations_is_refused(self, model_folder, tmp_path):  # noqa: F811
        recipe = small(model_folder)
        train(recipe, tmp_path / "live")
        for changes in ({"iterations": 4}, {"episodes": 9}):
            other = recipe.model_copy(update={"stored": str(tmp_path / "live"), **changes})
            with pytest.raises(RunError, match="holds no iteration"):
                train(other, tmp_path / f"other-{json.dumps(changes)}")

    def test_without_an_epoch_a_run_only_rolls_out(self, model_folder, tmp_path):  # noqa: F811
        recipe = small(model_folder)
        learner = recipe.learner.model_copy(update={"epochs": 0})
        train(recipe.model_copy(update={"learner": learner}), tmp_path / "run")
        first, last = (load_policy(str(tmp_path / "run" / "checkpoints" / n)).model for n in ("000000", "000003"))
        assert all(torch.equal(a, b) for a, b in zip(first.parameters(), last.parameters(), strict=True))
        assert len(TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")) == 18
        assert {r["steps"] for r in rows_of(tmp_path / "run") if r["kind"] == "train"} == {0}

    def test_a_bound_below_zero_is_refused(self):
        with pytest.raises((ConfigError, ValueError)):
            PoolConfig(staleness=-1)
