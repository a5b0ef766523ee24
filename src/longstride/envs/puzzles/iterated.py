"""Reason and summarise: a puzzle that is thought about in rounds, of which only a summary is left.

Each turn is one round of reasoning, the horizon is the number of rounds, and the observation after a turn is the
summary of all that was thought so far. With the context policy `LatestObservation` a prompt is then the puzzle and the
newest summary. The summary is made by rule from the thought; it may be wrong where the thought is, for nobody verifies
it.

| puzzle | thought so far | summary |
|---|---|---|
| `ModularChain` | all but the last two operations were done, the value is 5 | `now 5 ; * 2 ; - 3` |
| `Countdown` | an attempt ended in `yes` | `found ( 3 + 5 ) * 2` |
| `Countdown` | attempts with these first moves ended in `no` | `tried 5 + 3 ; 5 * 3` |
| either | nothing yet | |

What always holds: a summary is a function of the puzzle, the summary before and the text since; its length is
bounded by the puzzle. An answer is held and ends nothing: the last one counts when the horizon ends the episode. A task
whose `start` is a summary begins there. Rounds of this kind are those of Reasoning Cache (arXiv 2602.03773).
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import model_validator

from longstride.core.task import Task
from longstride.envs.base import HELD_ANSWER, Observation, Step, TaskSource
from longstride.envs.puzzles.base import Puzzle
from longstride.envs.puzzles.countdown import Numbers, value_of
from longstride.envs.puzzles.mixture import MixedEnv, Puzzles
from longstride.envs.puzzles.modular import STEP, Chain
from longstride.envs.text import MARK, STEP_END, thought_of

START = "start"
"""The `start` of a task about which nothing was thought yet."""
_MOVE = re.compile(r"\b([0-9]{1,2})\s*([-+*/])\s*([0-9]{1,2})\b")


def done(chain: Puzzle, summary: str, text: str) -> str:
    """The value to which a chain was worked out, and the operations that are left."""
    assert isinstance(chain, Chain)
    left = summary.split(" ; ")[1:] if summary else [f"{sign} {n}" for sign, n in chain.operations]
    steps = [step for part in thought_of(text).split(STEP_END) if (step := STEP.fullmatch(part))]
    return " ; ".join([f"now {steps[-1][4]}", *left[len(steps) :]]) if steps else summary


def tried(puzzle: Puzzle, summary: str, text: str) -> str:
    """The expression in the numbers that was found, or the distinct first moves that did not lead to one."""
    assert isinstance(puzzle, Numbers)
    *failed, newest = thought_of(text).split("again")
    answer = text.rpartition(MARK)[2].strip().removeprefix("answer ")
    if newest.endswith("yes") and not isinstance(value_of(answer, puzzle.numbers), str):
        return f"found {answer}"
    failed += [newest] if newest.endswith("no") else []
    moves = summary.removeprefix("tried ").split(" ; ") if summary.startswith("tried ") else []
    moves += [move for attempt in failed if (move := first_move(puzzle, attempt))]
    return f"tried {' ; '.join(dict.fromkeys(moves))}" if moves else summary


def first_move(puzzle: Numbers, attempt: str) -> str:
    """The first step that an attempt wrote, without its result, the larger number first; empty where it is no move."""
    found = _MOVE.search(attempt)
    if found is None or Counter(map(int, found.group(1, 3))) - Counter(puzzle.numbers):
        return ""
    a, b = sorted(map(int, found.group(1, 3)), reverse=True)
    return f"{a} {found[2]} {b}"


SUMMARIES: Mapping[type[Puzzle], Callable[[Puzzle, str, str], str]] = {Chain: done, Numbers: tried}
"""By kind of puzzle: the summary, of the puzzle, the summary before and the text."""


class Iterated(TaskSource):
    """Puzzles that are thought about in rounds; tasks and splits are those of the puzzles."""

    puzzles: Puzzles = Puzzles()
    """What is thought about: chains and Countdown."""

    @model_validator(mode="after")
    def _can_be_summarised(self) -> "Iterated":
        for source in self.puzzles.sources:
            if source.kind not in SUMMARIES:
                raise ValueError(
                    f"puzzles: there is no summary of {source.type_name()}; expected were modular_chain and countdown"
                )
        return self

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.puzzles.sample(rng, n)

    def held_out(self, n: int) -> list[Task]:
        return self.puzzles.held_out(n)

    def env(self) -> "IteratedEnv":
        return IteratedEnv(self.puzzles.env())


class IteratedEnv:
    """An `Env` that no answer ends, and that shows the summary."""

    def __init__(self, env: MixedEnv) -> None:
        self._env = env
        self._summary = ""

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the puzzle up. Raises: EnvFailure as the puzzle's own environment."""
        first = await self._env.reset(task, seed)
        self._puzzle = self._env.kind.of(task)
        self._summary = "" if task.start == START else task.start
        return replace(first, content=self._summary)

    async def step(self, text: str) -> Step:
        """Holds the answer, and shows what is left of the thought. An action that cannot be parsed is not explained:
        nothing but the summary is left of a turn."""
        step = await self._env.step(text)
        self._summary = SUMMARIES[type(self._puzzle)](self._puzzle, self._summary, text)
        info = {} if step.answer is None else {HELD_ANSWER: step.answer}
        return Step(Observation(self._summary), action=step.action, info=info)

    async def final_state(self) -> dict[str, Any]:
        """The verdict of the last answer."""
        return await self._env.final_state()

    async def close(self) -> None:
        """Forgets the puzzle."""
        await self._env.close()
