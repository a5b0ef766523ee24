"""Environments of the verifiers library (github.com/PrimeIntellect-ai/verifiers), single-turn and multi-turn.

Both of its interfaces are played: tasksets (`verifiers.v1`, all there is from 0.4 on), whose tasks score themselves,
and environments with a rubric (`vf.load_environment`, up to 0.3). There the library calls the model; here the
environment is called. So the library's own loop runs as a coroutine, and whenever it wants a reply it waits for the
policy's next turn.

What always holds: the reward is the library's own (the sum of its weighted rewards), given for the whole episode, with
its parts as terms; an episode that a limit cut is rewarded as it stands; what the library raises is an `EnvFailure`.
Nothing is executed: an environment that needs a container, a runtime or tool servers of its own, or several agents, is
refused with the recipe.
"""

import asyncio
import functools
import random
import warnings
from typing import Any, Literal

from longstride.adapters.seeded import REWARD, TERMS
from longstride.adapters.verifiers_worlds import Scores, VerifiersWorld, open_world
from longstride.core.errors import ConfigError, EnvFailure, LongstrideWarning, require, short
from longstride.core.foreign import bounded, guarded, number
from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive
from longstride.core.task import Task, split_of
from longstride.envs.base import Observation, Step, TaskSource

MAX_TERMS = 100
"""Parts of a reward."""
MAX_NAME = 100
"""Characters of the name of one."""
CLOSING = 2.0
"""Seconds that the library has for ending its loop."""


class Verifiers(TaskSource):
    """An environment of the verifiers library."""

    id: str
    """Its name, as the library finds it: an installed module, or one on Python's path."""
    args: dict[str, Any] = {}
    """What it is made with: arguments of `load_environment`, or settings of the taskset."""
    test_args: dict[str, Any] | None = None
    """What the environment of evaluation tasks is made with, such as `{split = "test"}`. Left out: the evaluation data
    of an environment that has some, and otherwise a share of the rows."""
    test_share: Share = 0.1
    """Share of the prompts that are held out then."""
    rows: Count = 1000
    """Rows that are read of a taskset, which may go on for ever."""

    @property
    def says_worth(self) -> bool:
        return True

    @property
    def at_once(self) -> int:
        return 64

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return rng.choices(self._of("train"), k=n)

    def held_out(self, n: int) -> list[Task]:
        return self._of("test")[:n]

    def env(self) -> "VerifiersEnv":
        return VerifiersEnv(self)

    @functools.cached_property
    def worlds(self) -> dict[bool, VerifiersWorld]:
        """The environment of evaluation tasks (True) and that of the others; the same one where a share is held out.

        Raises:
            ConfigError: there is none of that name, it cannot be made, or needs what is not to be had here.
            MissingExtra: verifiers is not installed.
        """
        require("verifiers", "verifiers")
        try:
            with guarded(f"making the environment {self.id!r} with {short(self.args)}"):
                train = open_world(self.id, self.args, self.rows)
                test = train.evaluation or train
            if self.test_args is not None:
                with guarded(f"making the environment {self.id!r} with {short(self.test_args)}"):
                    test = open_world(self.id, self.test_args, self.rows)
        except EnvFailure as e:
            raise ConfigError(f"tasks: {e}") from e
        return {False: train, True: test}

    @functools.cached_property
    def _tasks(self) -> dict[str, list[Task]]:
        train, test = self.worlds[False], self.worlds[True]
        tasks = [self._task(prompt, row, False) for row, prompt in enumerate(train.prompts)]
        held = [self._task(prompt, row, True) for row, prompt in enumerate(test.prompts)]
        if train is not test and (both := {*train.prompts} & {*test.prompts}):
            text = f"tasks: {self.id!r} has {len(both)} prompts in both of its data sets"
            warnings.warn(f"{text}: what is trained on is tested on", LongstrideWarning, stacklevel=2)
        if train is test:
            held = [task for task in held if split_of(task, self.test_share, 0) == "test"]
            tasks = [task for task in tasks if split_of(task, self.test_share, 0) == "train"]
        return {"train": tasks, "test": held}

    def _of(self, split: Literal["train", "test"]) -> list[Task]:
        if not self._tasks[split]:
            raise ConfigError(f"tasks: {self.id!r} has no rows for {split}ing; set tasks.test_share or tasks.test_args")
        return self._tasks[split]

    def _task(self, prompt: str, row: int, test: bool) -> Task:
        split = "test" if test else "train"
        return Task(
            id=f"verifiers/{self.id}/{split}/{row}",
            source=f"verifiers/{self.id}",
            split=split,
            goal=bounded(prompt),
            start=str(row),
            template_id=f"{derive(0, prompt):016x}",
            meta={"row": row, "test": test},
        )


class VerifiersEnv:
    """One episode: the library's loop, which waits for the policy's turns."""

    def __init__(self, source: Verifiers) -> None:
        self._source = source
        self._name = f"the environment {source.id!r}"
        self._questions: asyncio.Queue[str] = asyncio.Queue()
        self._replies: asyncio.Queue[str | None] = asyncio.Queue()
        self._play: asyncio.Task[Scores] | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the library's loop. Raises: EnvFailure when it ends without a question."""
        world = self._source.worlds[task.meta["test"]]
        self._play = asyncio.create_task(self._played(world, task.meta["row"]))
        goal = await self._next()
        if goal is None:
            raise EnvFailure(f"{self._name} ended before it asked anything")
        return Observation("", goal=goal)

    async def step(self, text: str) -> Step:
        """Gives the library the policy's text. Raises: EnvFailure when it raises."""
        self._replies.put_nowait(text)
        said = await self._next()
        action = f"say {' '.join(text.split())[:200]}"
        return Step(Observation(said or ""), terminated=said is None, action=action)

    async def final_state(self) -> dict[str, Any]:
        """The library's reward and its terms. Raises: EnvFailure when scoring raises."""
        if self._play is None:
            return {}
        self._replies.put_nowait(None)
        scores = await self._play
        with guarded(self._name):
            reward = number(scores.reward, f"the reward of {self._name}")
            if len(scores.terms) > MAX_TERMS:
                raise EnvFailure(
                    f"{self._name} has {len(scores.terms)} terms of its reward; expected at most {MAX_TERMS}"
                )
            terms = {
                bounded(str(name), MAX_NAME): number(value, f"{short(name)} of {self._name}")
                for name, value in scores.terms.items()
            }
        return {REWARD: reward, TERMS: terms}

    async def close(self) -> None:
        """Ends the library's loop."""
        play, self._play = self._play, None
        if play is not None:
            play.cancel()
            await asyncio.wait({play}, timeout=CLOSING)  # it may refuse
            if play.done() and not play.cancelled():
                play.exception()  # looked at, so that asyncio does not report it

    async def _played(self, world: VerifiersWorld, row: int) -> Scores:
        with guarded(self._name):
            return await world.play(row, self._ask)

    async def _ask(self, said: str) -> str | None:
        self._questions.put_nowait(bounded(said))
        return await self._replies.get()

    async def _next(self) -> str | None:
        """What is said next; None where the loop has ended."""
        assert self._play is not None
        question = asyncio.create_task(self._questions.get())
        try:
            await asyncio.wait({question, self._play}, return_when=asyncio.FIRST_COMPLETED)
            if question.done():
                return question.result()
        finally:
            question.cancel()
        self._play.result()
        return None
