"""Runs on a world of one page: what a run folder holds, refusals, evaluation, and what scores and trains them."""

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import begin_run, rows_of, shown_of, trajectories_of, weights_hash
from one_page import OnePageTasks, Watcher, make_recipe, save_model

from longstride import __version__
from longstride.core.config import load_toml
from longstride.core.errors import ModelError, RunError, TaskError
from longstride.core.provenance import commit
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.models.load import load_policy
from longstride.papers.tti.method import TTIReplay
from longstride.rewards import Reward, Verdict
from longstride.rollout.summary import Measure
from longstride.run import folder as run_folder
from longstride.run.evaluation import evaluate_policy
from longstride.run.experiment import FORMAT
from longstride.run.loop import train
from longstride.run.policies import load_run
from longstride.run.recipe import Evaluation, Recipe


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def finished(model_folder, tmp_path_factory) -> tuple[Recipe, Path, Watcher]:
    recipe, folder, watcher = make_recipe(model_folder), tmp_path_factory.mktemp("runs") / "whole", Watcher()
    train(recipe, folder, watcher)
    return recipe, folder, watcher


def test_a_run_folder_holds_what_the_architecture_says(finished):
    recipe, folder, watcher = finished
    assert load_toml(Recipe, folder / "run.toml") == recipe.settled()
    assert {p.name for p in folder.iterdir()} == {
        "run.toml", "format.json", "metrics.jsonl", "trajectories.jsonl", "trajectories.index", "checkpoints",
        "episodes",
    }  # fmt: skip
    made = json.loads((folder / "format.json").read_text())
    assert made.pop("modules").keys() == {"one_page"}  # where a run of an own module finds it again
    del made["crc"]
    assert made == {"format": FORMAT, "longstride": __version__} | ({"commit": code} if (code := commit()) else {})
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
    episodes = trajectories_of(folder)
    last = [r for r in rows_of(folder) if r["kind"] == "train"][-1]
    assert last["total_episodes"] == len(episodes) == 40
    assert last["total_env_steps"] == sum(t.length for t in episodes)
    assert last["replay_size"] == sum(t.success for t in episodes)
    assert last["solved_tasks"] == len({t.task.id for t in episodes if t.success}) / len({t.task.id for t in episodes})
    assert [t.ordinal for t in episodes] == list(range(40))


def test_episodes_are_planned_under_the_horizon_of_their_iteration_and_evaluated_under_the_test_horizon(finished):
    _, folder, _ = finished
    episodes = trajectories_of(folder)
    assert [(t.iteration, t.budget.turns) for t in episodes[::10]] == [(1, 1), (2, 2), (3, 3), (4, 3)]
    assert {t.budget.turns for t in shown_of(folder, "after")} == {5}


def test_episodes_before_and_after_are_of_the_same_tasks_and_seeds(finished):
    _, folder, _ = finished
    before, after = (shown_of(folder, side) for side in ("before", "after"))
    assert [(t.task.id, t.seed) for t in before] == [(t.task.id, t.seed) for t in after] and len(before) == 8


def test_tokens_are_sampled_by_the_policy_of_the_iteration_before(finished):
    _, folder, _ = finished
    for t in trajectories_of(folder):
        assert {v for turn in t.turns for v in turn.versions} == {t.iteration - 1}


def test_the_warm_start_and_the_two_newest_checkpoints_are_kept_and_none_holds_a_pickle(finished):
    _, folder, _ = finished
    home = folder / "checkpoints"
    assert sorted(p.name for p in home.iterdir()) == ["000000", "000003", "000004"]
    files = [p for p in home.rglob("*") if p.is_file()]
    assert {p.suffix for p in files} <= {".json", ".safetensors", ".jinja"}


def test_training_on_successes_makes_more_of_them(model_folder, tmp_path):
    recipe = make_recipe(model_folder, episodes_per_iteration=40, iterations=3, replay=TTIReplay(keep=40))
    train(recipe, tmp_path / "run")
    success = [r["summary"]["success"] for r in rows_of(tmp_path / "run") if r["kind"] == "train"]
    assert success[-1] > success[0] + 0.2


def test_a_run_stopped_before_its_first_checkpoint_starts_again(finished, tmp_path, monkeypatch):
    recipe, whole, _ = finished

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run_folder, "save_checkpoint", interrupted)
        train(recipe, tmp_path / "run")
    assert rows_of(tmp_path / "run")
    train(recipe.replace(iterations=1), tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(whole)[:6]


def test_a_finished_run_resumes_to_nothing_and_may_be_given_more_iterations(finished, tmp_path):
    recipe, whole, _ = finished
    shutil.copytree(whole, tmp_path / "run")
    watcher = Watcher()
    train(recipe, tmp_path / "run", watcher, resume=True)
    assert watcher.rows == []
    train(recipe.replace(iterations=5), tmp_path / "run", watcher, resume=True)
    assert [r["iteration"] for r in watcher.rows] == [5, 5]
    assert load_toml(Recipe, tmp_path / "run" / "run.toml").iterations == 5


def test_a_folder_with_a_run_is_refused_unless_it_is_resumed_with_its_recipe(finished):
    recipe, folder, _ = finished
    with pytest.raises(RunError, match="holds a run already"):
        train(recipe, folder)
    with pytest.raises(RunError, match="another recipe: 'seed' is 0 there and 1 here"):
        train(recipe.replace(seed=1), folder, resume=True)
    with pytest.raises(RunError, match=r"another recipe: 'learner\.lr' is \S+ there and 0\.5 here;"):
        train(recipe.replace(learner={"lr": 0.5}), folder, resume=True)
    with pytest.raises(RunError, match="is a file"):
        recipe.train(folder / "run.toml")


@pytest.mark.parametrize(
    ("file", "text"),
    [
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
    assert loaded == recipe.settled()
    assert (result.outcomes, result.summary, list(result.interval)) == tuple(
        last[k] for k in ("outcomes", "summary", "interval")
    )


def test_evaluation_is_every_so_many_iterations_and_at_the_end(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=3, evaluation=Evaluation(tasks=4, every=2, baselines=False))
    train(recipe, tmp_path / "run")
    assert [r["iteration"] for r in rows_of(tmp_path / "run") if r["kind"] == "eval"] == [0, 2, 3]


def test_a_start_that_is_not_evaluated_changes_nothing_but_that(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=2, evaluation=Evaluation(tasks=4, baselines=False))
    train(recipe, tmp_path / "whole")
    train(recipe.replace(evaluation={"start": False}), tmp_path / "short")
    found = [[r for r in rows_of(tmp_path / run) if r["kind"] == "eval"] for run in ("whole", "short")]
    assert [r["iteration"] for r in found[1]] == [1, 2]
    assert [r["measures"] for r in found[1]] == [r["measures"] for r in found[0][1:]]
    assert weights_hash(tmp_path / "short") == weights_hash(tmp_path / "whole")


class Accompanied(OnePageTasks):
    @property
    def beside(self) -> dict[str, TaskSource]:
        return {"others": OnePageTasks(broken=True)}


def test_other_tasks_are_evaluated_beside_at_the_start_and_at_the_end(model_folder, tmp_path):
    evaluation = Evaluation(tasks=4, baselines=False)
    train(make_recipe(model_folder, iterations=2, tasks=Accompanied(), evaluation=evaluation), tmp_path / "run")
    rows = [r for r in rows_of(tmp_path / "run") if r["kind"] == "beside"]
    assert [(r["iteration"], r["tasks"], r["policy"]) for r in rows] == [
        (0, "others", "warm_start"), (2, "others", "agent"),
    ]  # fmt: skip
    assert [(r["summary"]["episodes"], r["summary"]["failed"]) for r in rows] == [(3, 1), (3, 1)]


def test_an_evaluation_without_tasks_is_refused(model_folder):
    with pytest.raises(TaskError, match="no tasks to evaluate on"):
        evaluate_policy(load_policy(str(model_folder)), make_recipe(model_folder), [])


def test_a_run_whose_model_was_mistyped_can_be_started_again_in_its_folder(model_folder, tmp_path):
    with pytest.raises(ModelError):
        train(make_recipe(tmp_path / "nothing"), tmp_path / "run")
    train(make_recipe(model_folder, iterations=1), tmp_path / "run")
    assert len(rows_of(tmp_path / "run")) == 6


def test_a_folder_without_a_run_cannot_be_loaded(tmp_path, model_folder):
    with pytest.raises(RunError, match=r"no run\.toml"):
        load_run(tmp_path)
    begin_run(tmp_path, make_recipe(model_folder))
    with pytest.raises(RunError, match="no checkpoint yet"):
        load_run(tmp_path)


def test_a_checkpoint_loads_as_an_ordinary_policy(finished):
    _, folder, _ = finished
    policy = load_policy(str(folder / "checkpoints" / "000004"))
    assert policy.max_context == 128


@pytest.mark.parametrize(
    ("text", "named"),
    [(None, "run format 1"), ('{"format": 2}', "run format 2"), ("{", "cannot be read"), ("[]", "cannot be read")],
)
def test_a_folder_of_another_format_is_refused_with_one_line_that_says_what_to_do(finished, tmp_path, text, named):
    recipe, whole, _ = finished
    shutil.copytree(whole, tmp_path / "run")
    mark = tmp_path / "run" / "format.json"
    mark.unlink() if text is None else mark.write_text(text)
    before = weights_hash(tmp_path / "run")
    for use in (lambda: train(recipe, tmp_path / "run", resume=True), lambda: load_run(tmp_path / "run")):
        with pytest.raises(RunError, match=named) as caught:
            use()
        said = str(caught.value).replace('"format": ', "format ")
        assert "\n" not in said and f"format {FORMAT}" in said
    assert weights_hash(tmp_path / "run") == before


class Half(Reward):
    """Half a reward for an answer, and a success for `yes` alone."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        parts = {"answered": 0.5 * trajectory.stop.terminated, "yes": 0.5 * (trajectory.answer == "yes")}
        return Verdict(sum(parts.values()), trajectory.answer == "yes", parts)


class Shortest(Half):
    """Beside its siblings, an episode is a success where no other was shorter; all else stays."""

    def compare(self, group: Sequence[Trajectory]) -> Sequence[Verdict] | None:
        least = min(t.length for t in group)
        return [Verdict(float(t.length == least), t.length == least, evidence={"least": least}) for t in group]


def test_partial_credit_is_a_reward_and_no_success(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=1, reward=Half(), evaluation=Evaluation(tasks=8, reward=Half()))
    train(recipe, tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    assert {(t.reward, t.success) for t in episodes} == {(0.5, False), (1.0, True), (0.0, False)}
    (row,) = rows_of(tmp_path / "run", "train")
    assert row["summary"]["success"] == sum(t.success for t in episodes) / 10 < row["summary"]["reward"]
    assert row["summary"]["terms"].keys() == {"answered", "yes"}
    assert sum(row["summary"]["terms"].values()) == pytest.approx(row["summary"]["reward"])
    assert row["replay_size"] == sum(t.success for t in episodes)
    evaluated = rows_of(tmp_path / "run", "eval")[0]
    assert evaluated["measures"]["reward"] == evaluated["outcomes"] != evaluated["measures"]["success"]
    assert set(evaluated["measures"]["success"]) <= {0.0, 1.0}


def test_a_reward_may_compare_the_episodes_of_a_group(model_folder, tmp_path):
    recipe = make_recipe(model_folder, iterations=3, group_size=5, reward=Shortest(), learner={"epochs": 0})
    train(recipe, tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    for k in range(0, 30, 5):
        least = min(t.length for t in episodes[k : k + 5])
        assert [t.success for t in episodes[k : k + 5]] == [t.length == least for t in episodes[k : k + 5]]
        assert all(t.reward == t.success and t.evidence == {"least": least} for t in episodes[k : k + 5])
    assert {t.success for t in episodes} == {True, False}


class Words(Measure):
    def __call__(self, trajectory: Trajectory) -> float:
        return float(sum(len(turn.text.split()) for turn in trajectory.turns))


def test_a_recipe_may_measure_more_of_an_episode(model_folder, tmp_path):
    evaluation = Evaluation(tasks=4, measures=(Words(),), baselines=False)
    recipe = make_recipe(model_folder, iterations=1, evaluation=evaluation)
    train(recipe, tmp_path / "run")
    assert load_toml(Recipe, tmp_path / "run" / "run.toml") == recipe.settled()
    shown = shown_of(tmp_path / "run", "after")
    assert rows_of(tmp_path / "run", "eval")[-1]["measures"]["words"] == [Words()(t) for t in shown]


def test_a_recipe_is_read_without_torch():
    code = "import sys, longstride.run.recipe; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    path = Path(run_folder.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(path)}).returncode == 0
