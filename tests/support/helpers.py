"""What many tests build (tasks, turns, episodes, plans, a policy small enough to train) and read of a run folder."""

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from safetensors.torch import load_file, save_file
from transformers import LlamaForCausalLM

from longstride.core.budget import Budget, StopReason
from longstride.core.component import Component
from longstride.core.config import dump_toml
from longstride.core.sealed import read_object, seal_toml, unseal_lines, write_object
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn
from longstride.curriculum import BudgetSchedule, TaskCurriculum, Uniform
from longstride.envs.base import TaskSource
from longstride.methods import OnPolicy, Replay
from longstride.models.chat import ChatFormat
from longstride.models.load import Policy, make_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer
from longstride.rollout import Plan, Planner, TrajectoryStore, Trial
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import FORMAT, FORMAT_FILE, RUN_FILE
from longstride.run.folder import read_rows

T = TypeVar("T")

SMALL = TinyConfig(width=32, layers=2, heads=2, kv_heads=1, ffn=64, context=128)
"""A model that a test can train in a second."""
TIMES = ("seconds", "tokens_per_second", "rollout_seconds", "train_seconds")
"""Fields of metrics rows that no two runs share."""


SLOW = 30.0
"""Seconds within which a busy machine does what takes it none, and less than what a test hangs for when it fails."""


def eventually(holds: Callable[[], object]) -> None:
    """Waits until it holds, and fails where it does not within the time that a busy machine needs."""
    end = time.monotonic() + SLOW
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.001)


def times_as_long(work: Callable[[Any], object], large: Any, small: Any) -> float:
    """How many times as long work takes for the large input as for the small one: CPU time, least of three tries."""

    def seconds(value: Any) -> float:
        began = time.process_time()
        work(value)
        return time.process_time() - began

    tries = [(seconds(large), seconds(small)) for _ in range(3)]
    long, short = map(min, zip(*tries, strict=True))
    return long / short


def make_task(name: str = "t", **fields: Any) -> Task:
    """A task of no world in particular."""
    return Task(**{"id": name, "source": "s", "goal": "g", "start": "/", **fields})


def make_turn(ids: Iterable[int] = (1,), prompt: Iterable[int] = (0,), **fields: Any) -> Turn:
    """A turn whose `ids` were sampled after `prompt` by version 0, each with log-probability -1."""
    ids = list(ids)
    values: dict[str, Any] = {
        "behaviour_logprobs": [-1.0] * len(ids), "versions": [0] * len(ids), "observation": "page", "text": "text",
    }  # fmt: skip
    return Turn(list(prompt), ids, **(values | fields))


def make_trajectory(turns: int | Sequence[Turn] = 1, reward: float = 0.0, **fields: Any) -> Trajectory:
    """An episode that its environment ended, of so many turns of one token; a success where `reward` is positive."""
    turns = [make_turn(prompt=[k]) for k in range(turns)] if isinstance(turns, int) else list(turns)
    values = {
        "task": make_task(), "ordinal": 0, "seed": 0, "budget": Budget(), "stop": StopReason.ENV_ENDED,
        "success": reward > 0,
    }  # fmt: skip
    return Trajectory(turns=turns, reward=reward, **(values | fields))


def hard_to_keep(ordinal: int, tokens: int = 3) -> Trajectory:
    """An answered episode with a line separator and half a character in its goal, and a turn of so many tokens."""
    task = make_task(f"t{ordinal}", goal="caf\u00e9 \u2028 \ud83d")
    turn = make_turn(range(tokens), [1, 2], observation="page\nline", action="back")
    return make_trajectory([turn], 1.0, task=task, ordinal=ordinal, stop=StopReason.ANSWERED, answer="red")


def played(plan: Plan, ids: Iterable[int] = (), reward: float = 0.0, **fields: Any) -> Trajectory:
    """The answered episode of a plan: one turn of `ids` after what the plan begins with."""
    turn = make_turn(ids, plan.prefix, given=len(plan.prefix))
    values = {
        "task": plan.task, "ordinal": plan.ordinal, "seed": plan.seed, "budget": plan.budget, "group": plan.group,
        "iteration": plan.iteration, "role": plan.role, "stop": StopReason.ANSWERED, "env_seed": plan.env_seed,
    }  # fmt: skip
    return make_trajectory([turn], reward, **(values | fields))


def cut_thought(plan: Plan, ids: Sequence[int], given: int, **fields: Any) -> Trajectory:
    """The same, of a turn of `ids` whose thought its budget cut: so many of them were given then."""
    turn = make_turn(ids[given:], ids[:given], given=given)
    return replace(played(plan, **fields), turns=[turn])


def run_stages(
    stages: Generator[Sequence[Plan], list[Trajectory], list[T]], play: Callable[[Plan], Trajectory]
) -> tuple[list[list[Plan]], list[T]]:
    """Sends back what `play` makes of the plans of each stage; the plans by stage, and what is returned."""
    plans, stage = [], next(stages)
    while True:
        plans.append(list(stage))
        try:
            stage = stages.send([play(plan) for plan in stage])
        except StopIteration as e:
            return plans, e.value


class Collected:
    """An `Experience` of these episodes, without models."""

    critic = None

    def __init__(self, trajectories: Sequence[Trajectory] = ()) -> None:
        self.trajectories = list(trajectories)
        self.kept: dict[str, dict[str, Any]] = {}
        """What each component keeps, by its name."""

    @property
    def records(self) -> list[EpisodeRecord]:
        return [t.record() for t in self.trajectories]

    def read(self, records: Sequence[EpisodeRecord]) -> list[Trajectory]:
        by_ordinal = {t.ordinal: t for t in self.trajectories}
        return [by_ordinal[record.ordinal] for record in records]

    def memory(self, owner: Component) -> dict[str, Any]:
        return self.kept.setdefault(owner.type_name(), {})

    def logprobs(self, samples: Sequence[Any]) -> list[list[float]]:
        raise AssertionError("nothing asks for log-probabilities here")

    def openings(self, tasks: Sequence[Task]) -> list[Trajectory]:
        raise AssertionError("nothing asks for openings here")

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        if trajectories:
            raise AssertionError("nothing asks for proposals here")
        return []


def make_planner(
    source: TaskSource,
    iteration: int = 1,
    first: int = 0,
    episodes: int = 8,
    size: int = 4,
    seed: int = 0,
    budget: Budget | BudgetSchedule | None = None,
    chat: Any = None,
    experience: Any = None,
    curriculum: TaskCurriculum | None = None,
    replay: Replay | None = None,
    trial: Trial | None = None,
) -> Planner:
    """A planner of tasks of `source`, each under the same budget unless that is a schedule."""

    def budget_of(task: Task) -> Budget:
        return budget.at(iteration, task.difficulty) if isinstance(budget, BudgetSchedule) else budget or Budget()

    past, choice, trained = experience or Collected(), curriculum or Uniform(), replay or OnPolicy()
    return Planner(source, choice, past, trained, budget_of, chat, seed, iteration, first, episodes, size, trial)


def tiny_model(vocabulary: int = 64, seed: int = 0, shape: TinyConfig = SMALL) -> LlamaForCausalLM:
    """A model from scratch."""
    return build_model(shape, vocabulary, seed)


def tiny_policy(*texts: str, seed: int = 0, shape: TinyConfig = SMALL) -> Policy:
    """A policy from scratch that knows the words of these texts."""
    tokenizer = build_tokenizer(texts)
    return make_policy("tiny", build_model(shape, len(tokenizer), seed), tokenizer)


def word_chat(*texts: str) -> ChatFormat:
    """A chat format in which each word of these texts is a token."""
    return ChatFormat(build_tokenizer(texts))


def rows_of(run: Path, kind: str = "", times: bool = False) -> list[dict[str, Any]]:
    """The metrics rows of a run folder (of one kind, if given), without their times unless these are wanted."""
    rows = read_rows(run / "metrics.jsonl")
    kept = [row for row in rows if not kind or row["kind"] == kind]
    return kept if times else [{k: v for k, v in row.items() if k not in TIMES} for row in kept]


def begin_run(folder: Path, recipe: Component | str) -> None:
    """Writes what makes a folder one of a run, of a recipe or of TOML text (whole lines)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN_FILE).write_text(
        seal_toml(recipe if isinstance(recipe, str) else dump_toml(recipe)), encoding="utf-8"
    )
    write_object(folder / FORMAT_FILE, {"format": FORMAT})


def forge(checkpoint: Path, tensors: Callable[[Any], Any] | None = None, **numbers: Any) -> None:
    """Changes the tensors and numbers of a checkpoint, with the right checksums: what only their meaning tells."""
    path = checkpoint / "trainer.safetensors"
    if tensors is not None:
        found = load_file(path)
        tensors(found)
        save_file(found, path)
    data = path.read_bytes()
    known = read_object(checkpoint / "trainer.json")
    known["files"][path.name] = {"bytes": len(data), "crc": f"{crc32(data):08x}"}
    write_object(checkpoint / "trainer.json", {k: v for k, v in (known | numbers).items() if v is not ...})


def shown_of(run: Path, side: str) -> list[Trajectory]:
    """The evaluation episodes that a run folder keeps, those `before` or `after`."""
    lines = unseal_lines((run / "episodes" / f"{side}.jsonl").read_bytes())
    return [Trajectory.from_json((line or b"").decode("ascii")) for line in lines]


def trajectories_of(run: Path) -> list[Trajectory]:
    """The episodes of a run folder."""
    return list(TrajectoryStore(run / "trajectories.jsonl"))


def content(trajectory: Trajectory) -> dict[str, Any]:
    """All that stands on disk of an episode but its times: what two runs of one recipe share."""
    data = json.loads(trajectory.to_json())
    del data["seconds"]
    for turn in data["turns"]:
        del turn["seconds"]
    return data


def weights_hash(run: Path) -> str:
    """A hash of all tensors in the newest checkpoint: policy, optimiser, critic and anchor."""
    checkpoint = latest_checkpoint(run)
    assert checkpoint is not None, f"{run} has no checkpoint"
    files = sorted(checkpoint.folder.glob("*.safetensors"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
