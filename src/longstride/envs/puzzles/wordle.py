"""Wordle: find a word of a list by guesses, of which each letter is answered by a colour.

`find the unknown of 3 ; 6` hides a word of three letters and allows six guesses; a turn is `find c a t`, and
`c grey a green t amber` says that there is no c, that a is right in its place, and that t stands elsewhere. What always
holds: a letter that is guessed more often than the word has it is grey where it is too many; an observation is of the
newest guess only, so what was learned before must be kept in the context; a guess that is not in the list is explained
and does not count, but a budget counts it. What is held out are words. Letters up to t are words of `base-trials`.

It stands for the game in LMRL-Gym (Abdulhai et al., arXiv 2311.18232). The scripted solver guesses the word that leaves
the fewest in its worst case, of those that are still possible.
"""

import functools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.errors import ConfigError
from longstride.core.task import DIFFICULTIES, Difficulty
from longstride.envs.puzzles.base import SOLVED, Action, Game, Puzzle, PuzzleSource, short
from longstride.envs.text import MARK

WORDS = tuple(
    "act age aid aim air alp ant apt arc ark arm art ash ate bad bag ban bar bat bed beg bet bid big bin "
    "bit bog cab can cap car cat cod cog cot dab dam den did dig dim din dog dot ear eat egg elm end era "
    "fad fan far fat fed fig fin fit fog gap gas gem get got had ham hat hen her him hit hot ice ink jab "
    "jam jar jet jog kid kin kit lab lad lap led leg let lid lip lit log lot mad man map mat men met mop "
    "nap net nod not oak oar odd oil one pad pan pat peg pen pet pig pin pit pod pot rag ran rat red rib "
    "rim rob rod rot sad sat sea set sin sit sob tan tap tar tea ten tin tip toe ton".split()
)
"""Of three letters up to t."""
MOST = 5_000
"""Words of a list, all of which are in each task."""
GREEN, AMBER, GREY = "green", "amber", "grey"
Word = Annotated[str, Field(pattern="^[a-z]{1,12}$")]
Guesses = Annotated[int, Field(ge=1, le=99)]
Words = Annotated[tuple[Word, ...], Field(min_length=len(DIFFICULTIES), max_length=MOST)]


def colours(secret: str, guess: str) -> tuple[str, ...]:
    """The colour of each letter of a guess, of a word of the same length."""
    left = Counter(a for a, b in zip(secret, guess, strict=True) if a != b)
    found = []
    for a, b in zip(secret, guess, strict=True):
        elsewhere = a != b and left[b] > 0
        left[b] -= elsewhere
        found.append(GREEN if a == b else AMBER if elsewhere else GREY)
    return tuple(found)


@functools.lru_cache(maxsize=10_000)
def best_guess(left: tuple[str, ...]) -> str:
    """Of words that are possible, the first that leaves the fewest in its worst case."""
    some = left[:: -(-len(left) // 200)]  # of a long list a part is tried
    return min(some, key=lambda guess: max(Counter(colours(secret, guess) for secret in left).values()))


def solved(secret: str, words: tuple[str, ...]) -> list[str]:
    """The solver's guesses at a word of a list, the word at last."""
    left, found = words, list[str]()
    while secret not in found:
        guess = best_guess(left)
        found.append(guess)
        seen = colours(secret, guess)
        left = tuple(word for word in left if word != guess and colours(word, guess) == seen)
    return found


@functools.lru_cache(maxsize=8)
def easiest_first(words: tuple[str, ...]) -> list[str]:
    """Words in the order of how many guesses the solver needs."""
    return sorted(words, key=lambda word: len(solved(word, words)))


class Spelled(Puzzle):
    """A hidden word of a list."""

    secret: Word
    words: Words
    guesses: Guesses

    @model_validator(mode="after")
    def _is_in_the_list(self) -> "Spelled":
        checked_words(self.words)
        if self.secret not in self.words:
            raise ValueError(f"the secret must be a word of the list, got {self.secret!r}")
        return self

    @property
    def goal(self) -> str:
        return f"find the unknown of {len(self.secret)} ; {self.guesses}"

    @property
    def key(self) -> str:
        return self.secret

    def start(self) -> Game:
        return Spelling(self)

    def steps(self) -> list[str]:
        """The solver's guesses; they may be more than the game allows."""
        return solved(self.secret, self.words)

    def demonstration(self) -> list[str]:
        return [f"{MARK} find {' '.join(word)}" for word in self.steps()]


class Spelling(Game):
    """Guesses at a word."""

    verbs: ClassVar[Mapping[str, int | None]] = {"find": None}

    def __init__(self, puzzle: Spelled) -> None:
        self._puzzle, self._guessed = puzzle, list[str]()

    def look(self) -> str:
        if not self._guessed:
            return ""
        guess = self._guessed[-1]
        return " ".join(
            f"{letter} {colour}" for letter, colour in zip(guess, colours(self._puzzle.secret, guess), strict=True)
        )

    def act(self, action: Action) -> str | None:
        word = "".join(action.text.split()).lower()
        if word not in self._puzzle.words:
            return f"unknown {short(' '.join(word))}"
        self._guessed.append(word)
        self.over = word == self._puzzle.secret or len(self._guessed) == self._puzzle.guesses

    def verdict(self) -> str:
        return SOLVED if self._puzzle.secret in self._guessed else "the word was not found"


class Wordle(PuzzleSource):
    """Wordle, one guess a turn. Each difficulty has a third of the words, by how many guesses the solver needs."""

    kind: ClassVar[type[Puzzle]] = Spelled
    words: Path | None = None
    """A file of lower-case words of one length, one a line, up to `MOST`; `WORDS` if left out."""
    guesses: Guesses = 6
    """Guesses of a game."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Spelled:
        words = listed(self.words)
        k, kinds, third = DIFFICULTIES.index(difficulty), len(DIFFICULTIES), -(-len(words) // len(DIFFICULTIES))
        first, end = (min(j * third, len(words) - kinds + j) for j in (k, k + 1))  # a word or more for each
        of_this = easiest_first(words)[first:end]
        return Spelled(secret=rng.choice(of_this), words=words, guesses=self.guesses)


@functools.cache
def listed(path: Path | None) -> tuple[str, ...]:
    """The words of a file.

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    if path is None:
        return WORDS
    try:
        words = tuple(dict.fromkeys(path.read_text(encoding="utf-8").split()))
        checked_words(words)
    except (OSError, ValueError) as e:
        raise ConfigError(f"tasks.words: {path}: {e}") from e
    return words


def checked_words(words: Sequence[str]) -> None:
    """Refuses words of several lengths, and what is no word.

    Raises:
        ValueError: one is not like the first.
    """
    for word in words:
        if len(word) != len(words[0]) or not (word.isascii() and word.isalpha() and word.islower()):
            raise ValueError(f"expected words of {len(words[0])} letters from a to z, got {word!r}")
    if not len(DIFFICULTIES) <= len(words) <= MOST:
        raise ValueError(f"expected three words or more, up to {MOST}, got {len(words)}")
