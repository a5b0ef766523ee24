"""Tasks of the `reasoning-gym` package (extra `reasoning-gym`): any of its datasets, judged by its own scorers.

What always holds: an instance is a dataset's name, its settings and a seed, from which the package makes question and
reference again; the split goes by the question, so no question is in both. A score of 1 is the reward; any other is
kept as evidence (`score 0.37`). A scorer that breaks on an answer scores it 0, for what it was given is untrusted.

Some scorers pass the answer to Python's `eval` or to a parser built on it. What a policy writes is never executed here,
so these datasets are refused. The package is imported on first use.
"""

import functools
import random
from typing import Any, ClassVar

from longstride.core.component import unknown
from longstride.core.errors import MissingExtra, TaskError
from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, Game, OneAnswer, Puzzle, PuzzleSource, answered, at

EXECUTED = frozenset(
    "binary_matrix composite countdown intermediate_integration n_queens polynomial_multiplication puzzle24 "
    "simple_integration spiral_matrix string_insertion".split()
)
"""Datasets whose scorer executes the answer, as of reasoning-gym 0.1.25; `composite` may hold any of them."""


def dataset(name: str, seed: int, settings: dict[str, Any]) -> Any:
    """A dataset of one entry.

    Raises:
        MissingExtra: the package is not installed.
        TaskError: there is no such dataset, its scorer executes answers, or it does not take these settings.
    """
    try:
        from reasoning_gym.factory import DATASETS, create_dataset  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise MissingExtra("reasoning-gym is needed for these tasks; pip install 'longstride[reasoning-gym]'") from e
    if name in EXECUTED:
        raise TaskError(f"the scorer of {name!r} executes what the policy answers, so it is refused; take another")
    if name not in DATASETS:
        raise TaskError(unknown("reasoning-gym dataset", name, set(DATASETS) - EXECUTED))
    try:
        return create_dataset(name, **settings, seed=seed, size=1)
    except (AssertionError, TypeError, ValueError) as e:
        raise TaskError(f"reasoning-gym dataset {name!r} does not take the settings {settings}: {e}") from e


class Entry(Puzzle):
    """One entry of a dataset."""

    dataset: str
    settings: dict[str, Any] = {}
    seed: int

    @functools.cached_property
    def made(self) -> tuple[Any, dict[str, Any]]:
        """The dataset and its entry: `question`, `answer`, `metadata`."""
        made = dataset(self.dataset, self.seed, self.settings)
        return made, made[0]

    @property
    def goal(self) -> str:
        return self.made[1]["question"]

    @property
    def key(self) -> str:
        return self.goal

    def start(self) -> Game:
        _ = self.made  # a name that is unknown or refused is known at the start
        return OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of the dataset's own scorer."""
        made, entry = self.made
        try:
            score = float(made.score_answer(answer, entry))
        except (Exception, SystemExit) as e:  # whatever an answer breaks in a scorer, it is no solution
            return f"score 0 : {type(e).__name__}"
        return SOLVED if score >= 1 else f"score {score}"

    def steps(self) -> list[str]:
        """None: the package has references, and no steps that lead to them."""
        return []

    def demonstration(self) -> list[str]:
        """The package's reference; a few datasets (`rush_hour`, `boxnet`) have none that their scorer accepts."""
        return [answered([], str(self.made[1]["answer"]))]


class ReasoningGym(PuzzleSource):
    """A dataset of `reasoning-gym`, single-turn."""

    kind: ClassVar[type[Puzzle]] = Entry
    dataset: str
    """Its name, such as `chain_sum`."""
    easy: dict[str, Any] = {}
    """Settings of the dataset in easy tasks, such as `{max_terms = 3}`."""
    medium: dict[str, Any] = {}
    """Settings in medium tasks."""
    hard: dict[str, Any] = {}
    """Settings in hard tasks."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Entry:
        settings = at((self.easy, self.medium, self.hard), difficulty)
        return Entry(dataset=self.dataset, settings=settings, seed=rng.getrandbits(31))
