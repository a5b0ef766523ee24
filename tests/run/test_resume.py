"""Runs that are killed and go on, runs that roll out ahead, and runs on what another one stored."""

import copy
import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Set
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from helpers import content, eventually, rows_of, tiny_policy, trajectories_of, weights_hash
from one_page import WORDS, OnePage, OnePageTasks, Watcher, make_recipe, save_model

from longstride.adapters.gateway.agents import Command
from longstride.adapters.gateway.source import ChatGateway
from longstride.core.content import Media, media_of
from longstride.core.errors import ConfigError, LongstrideWarning, ModelError, RunError
from longstride.core.experience import Experience
from longstride.core.processes import Limits
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.curriculum import BudgetSchedule, TaskCurriculum
from longstride.engines.base import Request, Sampling
from longstride.engines.config import Local
from longstride.engines.local import LocalEngine
from longstride.envs.base import Observation, TaskSource
from longstride.learner.batching import chains
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import TurnValue
from longstride.methods import KL, PPO, GroupRelative, OnPolicy, Reinforce
from longstride.methods.advantages import GAE
from longstride.methods.kl import Latest, MovingAverage
from longstride.models.chat import ChatConfig
from longstride.models.load import load_policy, save_policy
from longstride.models.tiny import TinyConfig
from longstride.rewards import TaskReward
from longstride.rollout import (
    AsRequested,
    FullHistory,
    Planner,
    Pool,
    RecentObservations,
    Sampler,
    Stages,
    Trial,
    TrialHistory,
)
from longstride.rollout.scheduler import PoolConfig
from longstride.run.checkpoint import latest_checkpoint, open_checkpoint
from longstride.run.evaluation import evaluate_policy
from longstride.run.experiment import checkpoint_folders
from longstride.run.imitation import Cloning, Imitation, StoredSuccesses
from longstride.run.loop import train
from longstride.run.policies import EarlierSelf, companion_players, load_run
from longstride.run.recipe import Companion, ObjectivePhase, Recipe
from longstride.run.session import COMPANION, taken

KILLS = 6
TOUCHES = {"open", "os.mkdir", "os.remove", "os.rename", "os.truncate", "shutil.rmtree"}
"""Audit events of Python whose first argument is a file or folder."""
STARTS = {"subprocess.Popen"}
"""Those of programs that are started."""
PROGRAM = Path(__file__).parents[1] / "support" / "gateway_one_page.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


def small(model: Path, **changes: Any) -> Recipe:
    return make_recipe(model, **({"iterations": 3, "episodes_per_iteration": 6} | changes))


def same(a: Path, b: Path) -> bool:
    """Whether two runs have the same numbers, episodes and weights."""
    episodes = ([content(t) for t in trajectories_of(run)] for run in (a, b))
    return rows_of(a) == rows_of(b) and next(episodes) == next(episodes) and weights_hash(a) == weights_hash(b)


class Repeated(Sampler):
    """As many groups as are asked for, and one more for every iteration so far, which only its memory knows."""

    def plan(self, planner: Planner) -> Stages:
        memory = planner.experience.memory(self)
        memory["seen"] = memory.get("seen", 0) + 1
        groups = planner.groups + memory["seen"]
        return (yield [plan for task in planner.tasks(groups) for plan in planner.group(task)])


class LeastPlayed(TaskCurriculum):
    """The tasks that were drawn least often so far, by counts that it keeps."""

    adaptive: ClassVar[bool] = True

    def draw(self, source: TaskSource, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        counts = experience.memory(self).setdefault("counts", {})
        tasks = sorted(source.held_out(8), key=lambda t: (counts.get(t.id, 0), rng.random()))[:n]
        for task in tasks:
            counts[task.id] = counts.get(task.id, 0) + 1
        return tasks


class TwoSpeakers(OnePage):
    """Another model speaks in every other turn."""

    turn = 0

    async def step(self, text: str) -> Any:
        step = await super().step(text)
        self.turn += 1
        step.observation = Observation(step.observation.text, speaker=("", "guide")[self.turn % 2])
        return step


class GuidedTasks(OnePageTasks):
    def env(self) -> TwoSpeakers:
        return TwoSpeakers()


class Pictured(OnePage):
    """Shows the page as a picture too."""

    async def reset(self, task: Task, seed: int) -> Any:
        return self.pictured(await super().reset(task, seed))

    async def step(self, text: str) -> Any:
        step = await super().step(text)
        step.observation = self.pictured(step.observation)
        return step

    def pictured(self, page: Observation) -> Observation:
        return Observation((page.text, Media(page.text.encode())))


class PicturedTasks(OnePageTasks):
    def env(self) -> Pictured:
        return Pictured()


def held(anchor: Any) -> dict[str, Any]:
    return {"loss": Reinforce(kl=KL(coefficient=0.1, anchor=anchor)), "replay": OnPolicy()}


def guided(model: Path, **changes: Any) -> dict[str, Any]:
    companion = Companion(model=str(model), context=FullHistory(), **changes)
    return {
        "tasks": GuidedTasks(),
        "companions": {"guide": companion},
        "budget": BudgetSchedule(turns=4, turn_tokens=3),
    }


def through_gateway(model: Path) -> dict[str, Any]:
    """A program that asks: few episodes, for each starts a process."""
    agent = Command(command=(sys.executable, "-I", str(PROGRAM)), limits=Limits(seconds=300.0, memory=2048))
    return {
        "tasks": ChatGateway(agent=agent, tasks=OnePageTasks(), result="answer", calls="text"),
        "context": AsRequested(),
        "iterations": 2,
        "episodes_per_iteration": 4,
        "evaluation": {"tasks": 2, "baselines": False},
    }


VARIANTS = {
    "plain": lambda model: {},
    "a fixed anchor": lambda model: held(KL().anchor),
    "an anchor that follows the average": lambda model: held(MovingAverage(decay=0.7)),
    "an anchor that is renewed": lambda model: held(Latest(every=2)),
    "a loss of a later objective that needs a reference": lambda model: {
        "objectives": (ObjectivePhase(after=1, loss=held(MovingAverage(decay=0.5))["loss"]),)
    },
    "a critic": lambda model: {
        "replay": OnPolicy(), "credit": GAE(values="critic"), "loss": PPO(), "critic": TurnValue(width=16, warmup=1),
    },
    "a sampler that keeps memory": lambda model: {"sampler": Repeated()},
    "a curriculum that keeps memory": lambda model: {"curriculum": LeastPlayed()},
    "cloning": lambda model: {"cloning": Cloning(episodes=8)} | held(MovingAverage(decay=0.7)),
    "imitation": lambda model: {"imitation": Imitation(episodes=3, weight=0.5)},
    "a companion": guided,
    "a companion that follows the policy": lambda model: guided(model, follows=MovingAverage(decay=0.5)),
    "trials": lambda model: {
        "trial": Trial(episodes=3, turns=6, until_success=True), "context": TrialHistory(within=RecentObservations()),
    },
    "a program that asks through the gateway": through_gateway,
    "an outer step that goes a part of the way": lambda model: {"learner": {"outer": 0.5}},
    "pictures that are left out": lambda model: {"tasks": PicturedTasks(), "chat": ChatConfig(media="leave_out")},
}  # fmt: skip

QUICK = (
    "plain", "an anchor that follows the average", "a critic", "a sampler that keeps memory", "cloning", "a companion",
    "a companion that follows the policy", "trials",
)  # fmt: skip
"""One of each kind of what a checkpoint keeps."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in VARIANTS]
)
def test_a_run_that_was_stopped_gives_exactly_the_numbers_of_one_that_was_not(name, model, tmp_path):
    recipe = small(model, **({"iterations": 2} | VARIANTS[name](model)))
    train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "cut", Watcher(stop_after=2))
    newest = latest_checkpoint(tmp_path / "cut")
    assert newest is not None and newest.numbers["iteration"] == 1
    assert len(trajectories_of(tmp_path / "cut")) > newest.numbers["episodes"]  # more than the checkpoint knows
    train(recipe, tmp_path / "cut", resume=True)
    assert same(tmp_path / "cut", tmp_path / "whole")
    seconds = [r["seconds"] for r in rows_of(tmp_path / "cut", times=True)]
    assert seconds == sorted(seconds)


def test_memory_is_in_the_checkpoint_and_decides_what_is_played(model, tmp_path):
    recipe = small(model, sampler=Repeated(), curriculum=LeastPlayed(), learner={"epochs": 0})
    train(recipe, tmp_path / "run")
    newest = latest_checkpoint(tmp_path / "run")
    assert newest is not None
    memory = newest.numbers["memory"]
    assert memory["sampler"] == {"seen": 3} and sum(memory["curriculum"]["counts"].values()) == 7 + 8 + 8
    assert [r["summary"]["episodes"] for r in rows_of(tmp_path / "run", "train")] == [7, 8, 8]


@pytest.fixture(scope="module")
def workers():
    """Makes processes in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["one_page", "longstride.run.session", "longstride.run.loop"])
    return context


def work(recipe: Recipe, folder: Path, moment: int, counted: Set[str]) -> None:
    """Trains, and dies at the `moment`-th event that counts; says how many there were."""
    happened = 0

    def happens(event: str, args: tuple[Any, ...]) -> None:
        nonlocal happened
        if event in counted and (event in STARTS or str(args[0]).startswith(str(folder))):
            happened += 1
            if happened == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(happens)
    torch.set_num_threads(1)
    train(recipe, folder, resume=True)
    folder.with_suffix(".happened").write_text(str(happened))


def run_in(workers: Any, recipe: Recipe, folder: Path, moment: int = 0, counted: Set[str] = TOUCHES) -> int:
    """Runs it in a process that dies at a moment; returns how many events counted, 0 where it died."""
    process = workers.Process(target=work, args=(recipe, folder, moment, counted))
    process.start()
    process.join()
    assert process.exitcode == (-signal.SIGKILL if moment else 0)
    return 0 if moment else int(folder.with_suffix(".happened").read_text())


@pytest.mark.slow
def test_a_run_killed_at_any_moment_goes_on_to_the_numbers_of_one_that_was_not(workers, model, tmp_path):
    recipe = small(model)
    moments = run_in(workers, recipe, tmp_path / "whole")
    reached = []
    for k in range(KILLS):
        folder = tmp_path / f"killed-{k}"
        run_in(workers, recipe, folder, 1 + moments * k // KILLS)
        checkpoint = latest_checkpoint(folder)
        reached.append(-1 if checkpoint is None else checkpoint.numbers["iteration"])
        train(recipe, folder, resume=True)
        assert same(folder, tmp_path / "whole")
    assert reached == sorted(reached) and {-1, 0, 1, 2} <= set(reached)


@pytest.mark.slow
def test_a_run_killed_while_programs_play_goes_on_to_the_numbers_of_one_that_was_not(workers, model, tmp_path):
    recipe = small(model, **through_gateway(model))
    started = run_in(workers, recipe, tmp_path / "whole", counted=STARTS)
    for k in (1, 2, 3):
        folder = tmp_path / f"killed-{k}"
        run_in(workers, recipe, folder, started * k // 4, STARTS)
        train(recipe, folder, resume=True)
        assert same(folder, tmp_path / "whole")


def test_what_an_evaluation_cached_is_forgotten(model, tmp_path, monkeypatch):
    """A run that goes on after it has no such caches, and its last bits are the same."""
    forgotten, forget = [], LocalEngine.forget

    def count(self, *args):
        forgotten.append(self.version)
        forget(self, *args)

    monkeypatch.setattr(LocalEngine, "forget", count)
    train(small(model, iterations=1), tmp_path / "run")
    assert forgotten[-2:] == [1, 1]  # new weights, and after the last evaluation


@pytest.mark.slow
def test_killed_while_it_rolls_out_ahead_no_episode_is_lost_or_trained_twice(workers, model, tmp_path):
    recipe = small(model, pool=PoolConfig(staleness=1))
    moments = run_in(workers, recipe, tmp_path / "whole")
    whole = trajectories_of(tmp_path / "whole")
    for k in range(2):
        folder = tmp_path / f"killed-{k}"
        run_in(workers, recipe, folder, moments * (k + 1) // 3)
        train(recipe, folder, resume=True)
        stored = trajectories_of(folder)
        assert [t.ordinal for t in stored] == list(range(18))
        assert [(t.task.id, t.seed) for t in stored] == [(t.task.id, t.seed) for t in whole]
        assert all(0 <= t.iteration - 1 - v <= 1 for t in stored for turn in t.turns for v in turn.versions)


class TestAhead:
    @pytest.mark.parametrize("lag", [1, 2])
    def test_the_bound_holds_for_every_token_and_stands_in_the_rows(self, model, tmp_path, lag):
        train(small(model, pool=PoolConfig(staleness=lag)), tmp_path / "run")
        rows = rows_of(tmp_path / "run", "train")
        assert rows[0]["staleness_max"] == 0 and all(r["staleness_max"] <= lag for r in rows)
        ages = [
            [t.iteration - 1 - v for turn in t.turns for v in turn.versions] for t in trajectories_of(tmp_path / "run")
        ]
        for row in rows:
            mine = [a for found in ages[6 * (row["iteration"] - 1) : 6 * row["iteration"]] for a in found]
            assert row["staleness_max"] == max(mine) and row["staleness"] == pytest.approx(sum(mine) / len(mine))

    def test_what_was_played_ahead_is_kept_in_the_checkpoint_and_not_played_again(self, model, tmp_path, monkeypatch):
        pools = []

        class Opened(Pool):
            def __enter__(self):
                pools.append(self)
                return super().__enter__()

        class Slow(Watcher):
            def __call__(self, row):
                super().__call__(row)
                if row["kind"] == "train":  # the next iteration is played meanwhile
                    eventually(lambda: len(pools[0].finished()) == 6)

        monkeypatch.setattr("longstride.run.placement.Pool", Opened)
        recipe = small(model, pool=PoolConfig(staleness=1))
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run", Slow(stop_after=2))
        pending = latest_checkpoint(tmp_path / "run").pending()  # pyright: ignore[reportOptionalMemberAccess]
        assert [t.iteration for t in pending] == [2] * 6
        train(recipe, tmp_path / "run", resume=True)
        stored = {t.ordinal: t for t in trajectories_of(tmp_path / "run")}
        assert all(stored[t.ordinal].to_json() == t.to_json() for t in pending)

    def test_where_the_file_of_pending_episodes_is_damaged_the_run_goes_on_from_an_iteration_before(
        self, model, tmp_path
    ):
        recipe = small(model, pool=PoolConfig(staleness=1))
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run", Watcher(stop_after=3))
        newest = latest_checkpoint(tmp_path / "run")
        assert newest is not None and newest.numbers["iteration"] == 2
        (newest.folder / "pending.jsonl").write_text('{"half": ')
        with pytest.warns(LongstrideWarning, match=r"pending\.jsonl is damaged.*going on from iteration 1"):
            train(recipe, tmp_path / "run", resume=True)
        assert [t.ordinal for t in trajectories_of(tmp_path / "run")] == list(range(18))

    def test_an_engine_with_weights_of_its_own_samples_what_the_shared_one_does(self, model, tmp_path):
        for name, lag in (("shared", 0), ("own", 1)):
            train(small(model, iterations=1, pool=PoolConfig(staleness=lag)), tmp_path / name)
        shared, own = ([content(t) for t in trajectories_of(tmp_path / name)] for name in ("shared", "own"))
        turns = [[turn for episode in run for turn in episode["turns"]] for run in (shared, own)]
        for one, other in zip(*turns, strict=True):  # their passes hold other rows, and sums are rounded by size
            assert one.pop("logprobs") == pytest.approx(other.pop("logprobs"), abs=1e-5)
        assert shared == own


class TestTrials:
    changes: ClassVar[dict[str, Any]] = {"trial": Trial(episodes=3), "context": TrialHistory()}

    def test_an_episode_reads_on_where_the_one_before_it_ended(self, model, tmp_path):
        train(small(model, iterations=2, **self.changes), tmp_path / "run")
        stored = trajectories_of(tmp_path / "run")
        assert [t.after for t in stored] == [tuple(range(n - n % 3, n)) for n in range(12)]
        for before, t in zip(stored, stored[1:], strict=False):
            if t.place:
                last = before.turns[-1]
                said = last.prompt_ids + last.sampled_ids
                assert t.turns[0].prompt_ids[: len(said)] == said and before.final
        samples = GroupRelative()(stored)
        assert samples and max(map(len, chains(samples))) > max(t.length for t in stored)  # a row is a whole trial

    def test_evaluations_tell_the_places_of_a_trial_apart(self, model, tmp_path):
        train(small(model, iterations=1, **self.changes), tmp_path / "run")
        for row in rows_of(tmp_path / "run", "eval"):
            found = row["measures"]
            assert row["summary"]["episodes"] == 3 * 8 and not any(name.startswith("pass@") for name in found)
            places = list(zip(*(found[f"success@{k}"] for k in (1, 2, 3)), strict=True))
            assert [pytest.approx(sum(p) / 3, abs=1e-6) for p in places] == found["success"]
            assert [list(accumulate(p, max)) for p in places] == [
                list(w) for w in zip(*(found[f"within@{k}"] for k in (1, 2, 3)), strict=True)
            ]

    def test_trials_are_rolled_out_ahead_and_go_on_where_they_were_stopped(self, model, tmp_path):
        recipe = small(model, pool=PoolConfig(staleness=1), **self.changes)
        train(recipe, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run", Watcher(stop_after=2))
        train(recipe, tmp_path / "run", resume=True)
        stored, whole = trajectories_of(tmp_path / "run"), trajectories_of(tmp_path / "whole")
        assert [(t.ordinal, t.task.id, t.seed, t.after) for t in stored] == [
            (t.ordinal, t.task.id, t.seed, t.after) for t in whole
        ]
        assert all(0 <= t.iteration - 1 - v <= 1 for t in stored for turn in t.turns for v in turn.versions)


class TestMedia:
    def test_what_was_left_out_is_counted_and_kept_in_the_run(self, model, tmp_path):
        recipe = small(model, iterations=1, **VARIANTS["pictures that are left out"](model))
        train(recipe, tmp_path / "run")
        stored = trajectories_of(tmp_path / "run")
        (row,) = rows_of(tmp_path / "run", "train")
        assert row["summary"]["left_out"] == sum(t.length for t in stored) > 0
        pages = {media_of(turn.observation)[0].data for t in stored for turn in t.turns}
        assert pages <= {b"home [1] red lamp", b"home [1] blue lamp"}
        assert {p.read_bytes() for p in (tmp_path / "run" / "media").iterdir()} >= pages

    def test_a_model_of_text_alone_refuses_them_and_says_what_to_do(self, model, tmp_path):
        with pytest.raises(ModelError, match=r"a prompt has \[image/png, 17 bytes, .*set chat.media=leave_out"):
            train(small(model, tasks=PicturedTasks()), tmp_path / "run")
        assert not (tmp_path / "run").exists()


class TestStored:
    def test_training_on_what_a_run_stored_gives_its_policy_without_a_rollout(self, model, tmp_path):
        recipe = small(model)
        train(recipe, tmp_path / "live")
        watcher = Watcher()
        train(recipe.replace(stored_run=str(tmp_path / "live")), tmp_path / "again", watcher)
        assert same_but_for_rollout(tmp_path / "again", tmp_path / "live") and "rollout" not in watcher.phases

    def test_a_run_that_stored_too_little_or_other_iterations_is_refused(self, model, tmp_path):
        recipe = small(model, iterations=2)
        train(recipe, tmp_path / "live")
        for changes in ({"iterations": 3}, {"episodes_per_iteration": 9}):
            with pytest.raises(RunError, match="holds no iteration"):
                train(recipe.replace(stored_run=str(tmp_path / "live"), **changes), tmp_path / json.dumps(changes))
        with pytest.raises(ConfigError, match="stored_run: there is no .*none; give the folder of a run"):
            train(recipe.replace(stored_run=str(tmp_path / "none")), tmp_path / "other")

    def test_a_whole_run_is_one_iteration_where_it_is_asked_for_all_episodes(self, model, tmp_path):
        recipe = small(model, iterations=3)
        train(recipe, tmp_path / "live")
        train(
            recipe.replace(stored_run=str(tmp_path / "live"), iterations=1, episodes_per_iteration=18), tmp_path / "one"
        )
        stored, live = trajectories_of(tmp_path / "one"), trajectories_of(tmp_path / "live")
        assert {t.iteration for t in stored} == {1} and {t.iteration for t in live} == {1, 2, 3}
        assert [t.turns for t in stored] == [t.turns for t in live]

    def test_without_an_epoch_a_run_only_rolls_out(self, model, tmp_path):
        train(small(model, learner={"epochs": 0}), tmp_path / "run")
        first, last = (load_policy(str(tmp_path / "run" / "checkpoints" / n)).model for n in ("000000", "000003"))
        assert all(torch.equal(a, b) for a, b in zip(first.parameters(), last.parameters(), strict=True))
        assert len(trajectories_of(tmp_path / "run")) == 18
        assert {r["steps"] for r in rows_of(tmp_path / "run", "train")} == {0}

    def test_a_bound_below_zero_is_refused(self):
        with pytest.raises((ConfigError, ValueError)):
            PoolConfig(staleness=-1)


def same_but_for_rollout(a: Path, b: Path) -> bool:
    episodes = ([content(t) for t in trajectories_of(run)] for run in (a, b))
    return next(episodes) == next(episodes) and weights_hash(a) == weights_hash(b)


FAST = LearnerConfig(lr=1e-2, warmup_steps=0, batch_samples=8, dtype="float32")


def imitated(trajectories: list[Trajectory]) -> float:
    """The share of episodes that went as `OnePageTasks` demonstrates."""
    shown = OnePageTasks().demonstrate(trajectories[0].task)
    return sum([turn.text for turn in t.turns] == shown for t in trajectories) / len(trajectories)


class TestDemonstrations:
    def test_cloning_makes_the_policy_that_iteration_0_is(self, model, tmp_path):
        recipe = small(model, iterations=1, cloning=Cloning(episodes=128, learner=FAST))
        watcher = Watcher()
        train(recipe, tmp_path / "run", watcher)
        start = next(row for row in watcher.rows if row["kind"] == "eval")
        assert (start["policy"], start["iteration"]) == ("warm_start", 0)
        plain = evaluate_policy(load_policy(str(model)), recipe)
        kept = evaluate_policy(load_policy(str(tmp_path / "run" / "checkpoints" / "000000")), recipe)
        assert kept.outcomes == start["outcomes"]
        assert imitated(kept.trajectories) > 0.8 > 0.2 > imitated(plain.trajectories)

    def test_a_reference_of_a_cloned_policy_is_the_policy_after_cloning(self, model, tmp_path):
        loss = Reinforce(kl=KL(coefficient=0.1))
        recipe = small(model, iterations=1, cloning=Cloning(episodes=32), loss=loss, replay=OnPolicy())
        train(recipe, tmp_path / "run")
        (row,) = rows_of(tmp_path / "run", "train")
        assert row["steps"] == 1 and row["kl"] == pytest.approx(0.0, abs=1e-6)

    def test_imitation_trains_the_policy_beside_what_it_collected(self, model, tmp_path):
        recipe = small(model, iterations=4, learner={"epochs": 1, "lr": 1e-2}, imitation=Imitation(episodes=16))
        train(recipe, tmp_path / "run")
        losses = [r["imitation_loss"] for r in rows_of(tmp_path / "run", "train")]
        assert losses[-1] < losses[0]

    def test_successes_of_another_run_may_be_imitated_and_nothing_else_of_it(self, model, tmp_path):
        recipe = small(model, iterations=2)
        train(recipe, tmp_path / "first")
        demonstrations = StoredSuccesses(run=tmp_path / "first")
        policy = load_policy(str(model))
        samples = demonstrations.samples(recipe, policy.chat, 1000, random.Random(0))
        solved = [t for t in trajectories_of(tmp_path / "first") if t.success]
        assert [(s.prompt_ids, s.sampled_ids, s.episode) for s in samples] == [
            (turn.prompt_ids, turn.sampled_ids, t.ordinal) for t in solved for turn in t.turns
        ]
        assert {w for s in samples for w in s.advantages} == {1.0}
        assert len({s.episode for s in demonstrations.samples(recipe, policy.chat, 2, random.Random(0))}) == 2

    def test_a_run_without_successes_gives_no_demonstrations(self, model, tmp_path):
        recipe = small(model, iterations=1, reward=TaskReward(false_negative=1.0))
        train(recipe, tmp_path / "run")
        chat = load_policy(str(model)).chat
        with pytest.raises(ConfigError, match="no successful episode"):
            StoredSuccesses(run=tmp_path / "run").samples(recipe, chat, 4, random.Random(0))

    def test_tasks_without_a_solver_are_refused(self, model, tmp_path):
        class Unsolved(TaskSource):
            def held_out(self, n: int) -> list[Task]:
                return OnePageTasks().held_out(n)

            def env(self) -> OnePage:
                return OnePage()

        recipe = small(model, tasks=Unsolved(), cloning=Cloning())
        with pytest.raises(ConfigError, match="unsolved has no"):
            train(recipe, tmp_path / "run")


class TestCompanions:
    def test_the_last_checkpoint_evaluated_alone_gives_the_last_row(self, model, tmp_path):
        train(small(model, iterations=1, **guided(model)), tmp_path / "run")
        recipe, policy = load_run(tmp_path / "run")
        assert evaluate_policy(policy, recipe).outcomes == rows_of(tmp_path / "run", "eval")[-1]["outcomes"]

    def test_a_companion_is_never_trained(self, model, tmp_path):
        train(small(model, **guided(model)), tmp_path / "run")
        turns = [turn for t in trajectories_of(tmp_path / "run") for turn in t.turns]
        guide = [turn for turn in turns if turn.speaker == "guide"]
        assert guide and not any(turn.sampled_ids for turn in guide) and all(turn.given for turn in guide)
        assert sum(r["summary"]["sampled_tokens"] for r in rows_of(tmp_path / "run", "train")) == sum(
            len(turn.sampled_ids) for turn in turns
        )

    def test_one_that_follows_is_the_policy_at_the_start_of_a_phase(self, model, tmp_path):
        train(small(model, iterations=3, **guided(model, follows=Latest(every=2))), tmp_path / "run")
        first, second, third = checkpoint_folders(tmp_path / "run")  # those of iterations 0, 2 and 3
        for folder, phase in ((first, str(model)), (second, str(second)), (third, str(second))):
            kept = taken(open_checkpoint(folder).tensors(), f"{COMPANION}guide/")
            began = dict(load_policy(phase).model.named_parameters())
            assert kept.keys() == began.keys() and all(torch.equal(kept[name], of) for name, of in began.items())
        later, last = ((folder / "model.safetensors").read_bytes() for folder in (second, third))
        assert later != last

    def test_one_that_follows_answers_as_the_policy_that_it_is(self, model, tmp_path):
        recipe = small(model, **guided(model, follows=Latest(every=1)))
        policy = load_policy(str(model), recipe.chat)
        moved = replace(policy, model=copy.deepcopy(policy.model))
        with torch.no_grad():
            for p in moved.model.parameters():
                p.mul_(1.5)
        earlier = companion_players(policy, recipe)["guide"]
        assert isinstance(earlier, EarlierSelf)
        asked = lambda: Request([3, 4, 5], 4, seed=7)  # noqa: E731
        before = earlier.engine.generate([asked()])[0]
        earlier.follow(moved.model, 1)
        after, wanted = (
            earlier.engine.generate([asked()])[0],
            Local().make(moved, 1, [Sampling()]).generate([asked()])[0],
        )
        assert (after.ids, after.logprobs) == (wanted.ids, wanted.logprobs) != (before.ids, before.logprobs)

    def test_one_that_cannot_follow_is_refused(self, model, tmp_path):
        following = {
            "model": str(model),
            "context": {"type": "full_history"},
            "follows": {"type": "teacher", "model": "x"},
        }
        with pytest.raises(ConfigError, match="follows moves weights"):
            small(model).replace(companions={"guide": following})
        other = tiny_policy(WORDS, shape=TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16, context=256))
        save_policy(other, tmp_path / "other")
        with pytest.raises(ModelError, match=r"companions\.guide\.follows: .* has weights of other shapes"):
            train(small(model, **guided(tmp_path / "other", follows=Latest(every=1))), tmp_path / "run")

    def test_a_model_of_another_vocabulary_is_refused(self, model, tmp_path):
        save_policy(tiny_policy(WORDS, "green"), tmp_path / "other")
        with pytest.raises(ModelError, match=r"companions\.guide.*another vocabulary"):
            train(small(model, **guided(tmp_path / "other")), tmp_path / "run")
