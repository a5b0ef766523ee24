"""A world of one page, and a recipe on it that runs in a second: for tests of runs. Without torch until a model is
saved, for the workers of a cluster import it."""

import random
from pathlib import Path
from typing import Any

from longstride.core.errors import EnvFailure
from longstride.core.task import Task
from longstride.curriculum import BudgetSchedule, Multiplicative
from longstride.envs.base import Observation, Step, TaskSource
from longstride.learner.config import LearnerConfig
from longstride.methods.cloning import FilteredBC
from longstride.papers.tti.method import TTIReplay
from longstride.rewards import TaskReward
from longstride.rollout import RecentObservations
from longstride.run.recipe import Evaluation, Recipe

WORDS = "home red blue lamp yes no click omitted"


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

    def demonstrate(self, task: Task) -> list[str]:
        return ["red", "home"]

    def _task(self, name: str, k: int) -> Task:
        source = "broken" if self.broken and k % 4 == 1 else "one_page"
        evaluator = {"type": "answer", "reference": "yes"}
        return Task(id=name, source=source, goal="red lamp", start="/", evaluator=evaluator)


def save_model(folder: Path) -> Path:
    """Saves a policy that knows the words of the page."""
    from helpers import tiny_policy

    from longstride.models.load import save_policy

    save_policy(tiny_policy(WORDS, seed=3), folder)
    return folder


def make_recipe(model: Path, **changes: Any) -> Recipe:
    """A recipe that learns from its successes."""
    settings: dict[str, Any] = {
        "name": "one_page",
        "iterations": 4,
        "episodes_per_iteration": 10,
        "model": str(model),
        "tasks": OnePageTasks(),
        "budget": BudgetSchedule(turns=Multiplicative(start=1, limit=3), turn_tokens=3),
        "test_budget": BudgetSchedule(turns=5, turn_tokens=3),
        "context": RecentObservations(),
        "reward": TaskReward(),
        "replay": TTIReplay(keep=6),
        "credit": FilteredBC(),
        "learner": LearnerConfig(lr=5e-3, warmup_steps=2, batch_samples=4, dtype="float32"),
        "evaluation": Evaluation(tasks=8),
    }
    return Recipe(**(settings | changes))


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
