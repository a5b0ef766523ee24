"""The trainer on a world of one page: what a run folder holds, exact resume, refusals, evaluation."""

import errno
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from longstride.core.budget import Budget
from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import EnvFailure, ModelError, RunError
from longstride.core.task import Task
from longstride.curriculum import Fixed, Multiplicative
from longstride.envs.base import Observation, Step, TaskSource
from longstride.learner import run_folder
from longstride.learner.config import LearnerConfig
from longstride.methods import FilteredBC, TTIReplay
from longstride.models.load import load_policy, make_policy, save_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer
from longstride.rewards import TaskReward
from longstride.rollout.context import KeepLast
from longstride.rollout.store import TrajectoryStore
from longstride.run.evaluation import evaluate_policy, load_run
from longstride.run.loop import train
from longstride.run.recipe import Evaluation, Recipe

TIMES = ("seconds", "tokens_per_second", "rollout_seconds", "train_seconds")


class OnePage:
    """Understands any text: by its length it is the right answer, a wrong one, or an action that leads nowhere."""

    async def reset(self, task: Task, seed: int) -> Observation:
        if task.source == "broken":
            raise EnvFailure("no such world")
        return Observation("home [1] red lamp")

    async def step(self, text: str) -> Step:
        observation = Observation("home [1] blue lamp")
        if len(text) % 4 < 2:
            return Step(observation, action=f"answer {text}", answer=("yes", "no")[len(text) % 4], terminated=True)
        return Step(observation, action=f"click {text}")

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


class OnePageTasks(TaskSource):
    """Tasks of `OnePage`, some of them in a world that cannot be set up."""

    broken: bool = False

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(f"train-{rng.randrange(12)}", k) for k in range(n)]

    def held_out(self, n: int) -> list[Task]:
        return [self._task(f"test-{k}", k) for k in range(n)]

    def env(self) -> OnePage:
        return OnePage()

    def _task(self, name: str, k: int) -> Task:
        source = "broken" if self.broken and k % 4 == 1 else "one_page"
        evaluator = {"type": "answer", "reference": "yes"}
        return Task(id=name, source=source, goal="red lamp", start="/", evaluator=evaluator)


class Watcher:
    """Keeps rows; interrupts after the train row of one iteration."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.phases: set[str] = set()
        self.stop_after = stop_after

    def __call__(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if row["kind"] == "train" and row["iteration"] == self.stop_after:
            raise KeyboardInterrupt

    def progress(self, phase: str, done: int, total: int) -> None:
        assert 0 < done <= total
        self.phases.add(phase)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    tokenizer = build_tokenizer(["home red blue lamp yes no click omitted"])
    shape = TinyConfig(width=32, layers=2, heads=2, kv_heads=1, ffn=64, context=128)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_policy(make_policy("tiny", build_model(shape, len(tokenizer), seed=3), tokenizer), folder)
    return folder


def make_recipe(model: Path, **changes) -> Recipe:
    settings: dict[str, Any] = {
        "name": "one_page",
        "iterations": 4,
        "episodes": 10,
        "model": str(model),
        "tasks": OnePageTasks(),
        "horizon": Multiplicative(start=1, limit=3),
        "test_horizon": Fixed(limit=5),
        "budget": Budget(turn_tokens=3),
        "context": KeepLast(),
        "reward": TaskReward(),
        "replay": TTIReplay(keep=6),
        "credit": FilteredBC(),
        "learner": LearnerConfig(lr=5e-3, warmup_steps=2, batch_samples=4, dtype="float32"),
        "evaluation": Evaluation(tasks=8),
    }
    return Recipe(**(settings | changes))


def rows_of(run: Path, times: bool = False) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if times or k not in TIMES} for row in rows]


def episodes_of(run: Path) -> list[Any]:
    episodes = []
    for trajectory in TrajectoryStore(run / "trajectories.jsonl"):
        data = json.loads(trajectory.to_json())
        del data["seconds"]
        for turn in data["turns"]:
            del turn["seconds"]
        episodes.append(data)
    return episodes


@pytest.fixture(scope="module")
def finished(model_folder, tmp_path_factory) -> tuple[Recipe, Path, Watcher]:
    recipe, folder, watcher = make_recipe(model_folder), tmp_path_factory.mktemp("runs") / "whole", Watcher()
    train(recipe, folder, watcher)
    return recipe, folder, watcher


def test_a_run_folder_holds_what_the_architecture_says(finished):
    recipe, folder, watcher = finished
    assert load_toml(Recipe, folder / "run.toml") == recipe
    names = {p.name for p in folder.iterdir()}
    assert names == {"run.toml", "metrics.jsonl", "trajectories.jsonl", "trajectories.index", "checkpoints", "episodes"}
    rows = rows_of(folder, times=True)
    assert rows == watcher.rows and watcher.phases == {"rollout", "train", "eval"}
    common = {"kind", "iteration", "total_episodes", "total_env_steps", "seconds"}
    train_keys = {"horizon", "summary", "loss", "grad_norm", "lr", "trained_turns", "trained_tokens", "replay_size"}
    train_keys |= {"solved_tasks", "tokens_per_second", "rollout_seconds", "train_seconds"}
    for row in rows:
        extra = train_keys if row["kind"] == "train" else {"policy", "strategy", "horizon", "summary", "interval"}
        assert common | extra <= row.keys()
    assert [r["iteration"] for r in rows if r["kind"] == "train"] == [1, 2, 3, 4]
    policies = [(r["iteration"], r["policy"]) for r in rows if r["kind"] == "eval"]
    at_start = ["warm_start", "answer_at_once", "first_result", "random_walk"]
    assert policies == [(0, p) for p in at_start] + [(i, "agent") for i in (1, 2, 3, 4)]


def test_counters_add_up_to_the_trajectories(finished):
    _, folder, _ = finished
    episodes = list(TrajectoryStore(folder / "trajectories.jsonl"))
    last = [r for r in rows_of(folder) if r["kind"] == "train"][-1]
    assert last["total_episodes"] == len(episodes) == 40
    assert last["total_env_steps"] == sum(t.length for t in episodes)
    assert last["replay_size"] == sum(t.success for t in episodes)
    assert last["solved_tasks"] == len({t.task.id for t in episodes if t.success}) / len({t.task.id for t in episodes})
    assert [t.ordinal for t in episodes] == list(range(40))


def test_episodes_are_planned_under_the_horizon_of_their_iteration_and_evaluated_under_the_test_horizon(finished):
    _, folder, _ = finished
    episodes = list(TrajectoryStore(folder / "trajectories.jsonl"))
    assert [(t.iteration, t.budget.turns) for t in episodes[::10]] == [(1, 1), (2, 2), (3, 3), (4, 3)]
    assert {t.budget.turns for t in TrajectoryStore(folder / "episodes" / "after.jsonl")} == {5}


def test_episodes_before_and_after_are_of_the_same_tasks_and_seeds(finished):
    _, folder, _ = finished
    before, after = (list(TrajectoryStore(folder / "episodes" / f"{n}.jsonl")) for n in ("before", "after"))
    assert [(t.task.id, t.seed) for t in before] == [(t.task.id, t.seed) for t in after] and len(before) == 8


def test_tokens_are_sampled_by_the_policy_of_the_iteration_before(finished):
    _, folder, _ = finished
    for t in TrajectoryStore(folder / "trajectories.jsonl"):
        assert {v for turn in t.turns for v in turn.versions} == {t.iteration - 1}


def test_the_warm_start_and_the_two_newest_checkpoints_are_kept_and_none_holds_a_pickle(finished):
    _, folder, _ = finished
    home = folder / "checkpoints"
    assert sorted(p.name for p in home.iterdir()) == ["000000", "000003", "000004", "latest.json"]
    files = [p for p in home.rglob("*") if p.is_file()]
    assert {p.suffix for p in files} <= {".json", ".safetensors", ".jinja"}


def test_training_on_successes_makes_more_of_them(model_folder, tmp_path):
    recipe = make_recipe(model_folder, episodes=40, iterations=3, replay=TTIReplay(keep=40))
    train(recipe, tmp_path / "run")
    success = [r["summary"]["success"] for r in rows_of(tmp_path / "run") if r["kind"] == "train"]
    assert success[-1] > success[0] + 0.2


def test_a_resumed_run_gives_exactly_the_numbers_of_one_that_was_not_stopped(finished, tmp_path):
    recipe, whole, _ = finished
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", Watcher(stop_after=3))
    assert len(TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")) == 30  # more than the last checkpoint knows
    train(recipe, tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(whole)
    assert episodes_of(tmp_path / "run") == episodes_of(whole)
    ours, theirs = (load_run(f)[1].model.state_dict() for f in (tmp_path / "run", whole))
    assert all(torch.equal(ours[k], theirs[k]) for k in theirs)
    seconds = [r["seconds"] for r in rows_of(tmp_path / "run", times=True)]
    assert seconds == sorted(seconds)


def test_a_run_stopped_before_its_first_checkpoint_starts_again(finished, tmp_path, monkeypatch):
    recipe, whole, _ = finished

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run_folder, "save_checkpoint", interrupted)
        train(recipe, tmp_path / "run")
    assert rows_of(tmp_path / "run")
    train(recipe.model_copy(update={"iterations": 1}), tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(whole)[:6]


def test_a_finished_run_resumes_to_nothing_and_may_be_given_more_iterations(finished, tmp_path):
    recipe, whole, _ = finished
    shutil.copytree(whole, tmp_path / "run")
    watcher = Watcher()
    train(recipe, tmp_path / "run", watcher, resume=True)
    assert watcher.rows == []
    train(recipe.model_copy(update={"iterations": 5}), tmp_path / "run", watcher, resume=True)
    assert [r["iteration"] for r in watcher.rows] == [5, 5]
    assert load_toml(Recipe, tmp_path / "run" / "run.toml").iterations == 5


def test_a_folder_with_a_run_is_refused_unless_it_is_resumed_with_its_recipe(finished):
    recipe, folder, _ = finished
    with pytest.raises(RunError, match="holds a run already"):
        train(recipe, folder)
    with pytest.raises(RunError, match="another recipe: 'seed' is 0 there and 1 here"):
        train(recipe.model_copy(update={"seed": 1}), folder, resume=True)
    with pytest.raises(RunError, match="is a file"):
        train(recipe, folder / "run.toml")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("checkpoints/latest.json", '{"folder": "../../elsewhere"}'),
        ("checkpoints/latest.json", "{"),
        ("checkpoints/000004/trainer.json", "[]"),
        ("checkpoints/000004/trainer.json", '{"iteration": "four"}'),
        ("checkpoints/000004/trainer.safetensors", "no tensors"),
        ("metrics.jsonl", ""),
        ("trajectories.jsonl", ""),
    ],
)
def test_a_damaged_run_is_refused_with_one_message(finished, tmp_path, file, text):
    recipe, whole, _ = finished
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / file).write_text(text)
    with pytest.raises(RunError):
        train(recipe, tmp_path / "run", resume=True)


def test_a_full_disk_says_what_is_kept_and_the_run_can_go_on(finished, tmp_path, monkeypatch):
    recipe, whole, _ = finished
    save = run_folder.save_checkpoint

    def full(run, iteration, *rest):
        if iteration == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(run, iteration, *rest)

    with monkeypatch.context() as patch, pytest.raises(RunError, match="disk is full.*iteration 1.*resume"):
        patch.setattr(run_folder, "save_checkpoint", full)
        train(recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(whole)


def test_a_failed_episode_is_counted_and_neither_trained_on_nor_a_reward(model_folder, tmp_path):
    recipe = make_recipe(model_folder, tasks=OnePageTasks(broken=True), iterations=1)
    train(recipe, tmp_path / "run")
    evaluated, trained = rows_of(tmp_path / "run")[0], rows_of(tmp_path / "run")[4]
    assert (trained["summary"]["failed"], trained["summary"]["episodes"], trained["total_episodes"]) == (3, 7, 10)
    assert [k for k, r in enumerate(evaluated["outcomes"]) if r is None] == [1, 5]
    played = [r for r in evaluated["outcomes"] if r is not None]
    assert evaluated["summary"]["success"] == sum(played) / len(played)


def test_the_last_checkpoint_evaluated_alone_gives_the_last_row(finished):
    recipe, folder, _ = finished
    loaded, policy = load_run(folder)
    result = evaluate_policy(policy, loaded)
    last = rows_of(folder)[-1]
    assert loaded == recipe
    assert (result.outcomes, result.summary, list(result.interval)) == tuple(
        last[k] for k in ("outcomes", "summary", "interval")
    )


def test_evaluation_is_every_so_many_iterations_and_at_the_end(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=3, evaluation=Evaluation(tasks=4, every=2, baselines=False))
    train(recipe, tmp_path / "run")
    assert [r["iteration"] for r in rows_of(tmp_path / "run") if r["kind"] == "eval"] == [0, 2, 3]


def test_a_run_whose_model_was_mistyped_can_be_started_again_in_its_folder(model_folder, tmp_path):
    with pytest.raises(ModelError):
        train(make_recipe(tmp_path / "nothing"), tmp_path / "run")
    train(make_recipe(model_folder, iterations=1), tmp_path / "run")
    assert len(rows_of(tmp_path / "run")) == 6


def test_a_folder_without_a_run_cannot_be_loaded(tmp_path, model_folder):
    with pytest.raises(RunError, match=r"no run\.toml"):
        load_run(tmp_path)
    (tmp_path / "run.toml").write_text(dump_toml(make_recipe(model_folder)))
    with pytest.raises(RunError, match="no checkpoint yet"):
        load_run(tmp_path)


def test_a_checkpoint_loads_as_an_ordinary_policy(finished):
    _, folder, _ = finished
    policy = load_policy(str(folder / "checkpoints" / "000004"))
    assert policy.max_context == 128


def test_a_recipe_is_read_without_torch():
    code = "import sys, longstride.run.recipe; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    path = Path(run_folder.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(path)}).returncode == 0
