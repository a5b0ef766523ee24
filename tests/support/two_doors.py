"""A world in which an episode can use what an earlier one of its trial showed: a lamp is behind one of two doors, which
the seed says, and an episode opens one. For tests of trials."""

import random
from typing import Any

from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step, TaskSource
from longstride.rewards import Reward, Verdict
from longstride.rollout import ScriptedPlayer
from longstride.rollout.episode import Episode

DOORS = ("red", "blue")


class TwoDoors:
    async def reset(self, task: Task, seed: int) -> Observation:
        self.lamp, self.found = DOORS[seed % 2], False
        return Observation("two doors")

    async def step(self, text: str) -> Step:
        self.found = text == self.lamp
        seen = Observation("lamp" if self.found else "nothing")
        return Step(seen, reward=float(self.found), terminated=True, action=f"open {text}")

    async def final_state(self) -> dict[str, Any]:
        return {"found": self.found}

    async def close(self) -> None:
        pass


class TwoDoorsTasks(TaskSource):
    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.held_out(n)

    def held_out(self, n: int) -> list[Task]:
        return [Task(id=f"doors-{k}", source="doors", goal="find the lamp", start="") for k in range(n)]

    def env(self) -> TwoDoors:
        return TwoDoors()


class Found(Reward):
    """What is earned is the environment's; success is the lamp."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(0.0, state["found"])


def recall(episode: Episode) -> str:
    """Opens the red door first, and later what the episode before has shown to be right."""
    if not episode.past.earlier:
        return "red"
    (turn,) = episode.past.earlier[-1].turns
    return turn.text if turn.reward else DOORS[turn.text == "red"]


REMEMBERING, FORGETFUL = ScriptedPlayer(recall), ScriptedPlayer(lambda episode: "red")
