"""Tasks that differ by a seed, and the reward of an environment that rewards itself.

What always holds: a task is its seed, so it is the same problem in every run; training and evaluation share no seed.
Where the seed does not make the problem, they share the problem.
"""

import random
from abc import abstractmethod
from typing import Any, Literal

from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.envs.interface import flag, number
from longstride.rewards import Reward, Verdict

SEEDS = 1 << 30
"""Training seeds are below, evaluation seeds from here on; all of them fit into 32 bits."""
SUCCESS = "success"
"""Key of the final state: what the environment says of success, where it says something."""
REWARD, TERMS = "reward", "terms"
"""Keys of the final state: what the environment gives the whole episode, and the parts of it by name."""


class SeededTasks(TaskSource):
    """Family: one environment, with a task for every seed."""

    @property
    @abstractmethod
    def world(self) -> str:
        """The environment's name: the `source` of its tasks is `TYPE/WORLD`."""

    @abstractmethod
    def goal_of(self, seed: int) -> str:
        """What the agent reads."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(rng.randrange(SEEDS), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        rng = stream(0, "held-out", self.type_name(), self.world)
        return [self._task(SEEDS + rng.randrange(SEEDS), "test") for _ in range(n)]

    def _task(self, seed: int, split: Literal["train", "test"]) -> Task:
        source = f"{self.type_name()}/{self.world}"
        return Task(
            id=f"{source}/{seed}",
            source=source,
            split=split,
            goal=self.goal_of(seed),
            start=self.world,
            template_id=f"{source}/{seed}",
            meta={"seed": seed},
        )


class EnvironmentReward(Reward):
    """The reward is the environment's own, turn by turn and for the whole episode.

    Whether the task was done is what the environment says (Gymnasium's `info["success"]`, a game that was won); where
    it says nothing, whether it gave enough.
    """

    success_above: float = 0.0
    """What an episode has to earn more than, to count as a success, where the environment does not say."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        given = number(state.get(REWARD, 0), f"its {REWARD!r}", _place)
        earned = given + trajectory.earned
        claim = state.get(SUCCESS)
        success = earned > self.success_above if claim is None else flag(claim, f"its {SUCCESS!r}", _place)
        expected = f"more than {self.success_above:g}" if claim is None else "success"
        evidence = {"evaluator": self.type_name(), "matched": success, "expected": expected, "got": earned}
        return Verdict(given, success, state.get(TERMS, {}), evidence)


def _place() -> str:
    return "final_state of the environment"
