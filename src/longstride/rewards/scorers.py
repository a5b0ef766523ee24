"""Scorers: how good an answer is, as far as somebody can tell who does not know. No torch.

What always holds: a scorer asks nobody itself. It yields questions and is sent replies, so the same scorer works with
the policy in this process, with a judge over HTTP and in a test; what could not be scored is a failed `Score` and never
a low one; every token that was sampled or read for a score is counted in it.

| scorer | value of an answer |
|---|---|
| `Generative` | probability of the verdict "yes", the mean over k rationales (GenRM, arXiv 2408.15240, section 3) |
| `Pairwise` | share of the other answers that it beats, or of rounds that it wins; each pair is asked in both orders |
| `rewards.probe` | a head on the hidden states of a frozen model, from a file or fitted to labelled solutions |
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator

from longstride.core.component import Component, build
from longstride.core.errors import EngineFailure, JudgeFailure
from longstride.core.implementation import implementation
from longstride.core.numbers import Count, CountOrZero, Temperature
from longstride.envs.questions import FIRST_SECOND, YES_NO, Question


@dataclass(frozen=True)
class Reply:
    """What a judge said."""

    shares: tuple[float, ...]
    """Probability of each option, in their order."""
    tokens: int = 0
    """Sampled for it."""
    read: int = 0
    """Of its prompts."""
    verdicts: tuple[str, ...] = ()
    """The options that it chose, where a question asks for several; there are no shares then."""
    text: str = ""
    """All that it said for such a question."""


class NoVerdict(JudgeFailure):
    """A reply without a verdict. What it took is counted all the same.

    Args:
        message: what was expected, and what came.
        tokens: as `Reply.tokens`.
        read: as `Reply.read`.
    """

    def __init__(self, message: str, tokens: int, read: int) -> None:
        super().__init__(message)
        self.tokens, self.read = tokens, read


Answered = Reply | JudgeFailure | EngineFailure
"""What becomes of a question: trouble is returned, not raised, so that the others go on."""
Ask = Callable[[Sequence[Question]], Sequence[Answered]]
"""Replies to questions, in their order."""


class Score(NamedTuple):
    """What a scorer says of one answer."""

    value: float | None
    """In [0, 1], more is better; None where scoring failed."""
    tokens: int = 0
    """Sampled by the scorer."""
    read: int = 0
    """Read by it."""


Scoring = Generator[Sequence[Question], Sequence[Answered], list[Score]]
"""Yields questions, is sent replies in their order, and returns a score for every answer."""


class Judge(Component):
    """Family: who is asked, where it is not the policy itself."""

    @property
    def name(self) -> str:
        """What metrics rows call it."""
        return self.type_name()

    @property
    def reads(self) -> Literal["answer", "turn"]:
        """What it is used to being shown of an episode: the answer alone, or all that was said in the last turn."""
        return "answer"

    @abstractmethod
    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """Replies in the order of the questions; `seed` is of what is random about asking.

        Raises:
            ConfigError: nobody can be asked in this way at all.
        """

    async def answers(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """The same, beside the other work of an event loop."""
        return await asyncio.to_thread(self.ask, questions, seed)


def _judge_of(value: Any) -> Any:
    return build(Judge, {"type": "run_judge", "run": value}) if isinstance(value, str) else value


AnyJudge = Annotated[Judge, BeforeValidator(_judge_of)]
"""A judge; in a setting a text stands for the judge that a run trained: a run folder, a model's folder, or a name."""


class RunJudge(Judge):
    """The policy of a run that learned to judge (`longstride train genrm`), or another model that can be loaded here: a
    verdict is read off as a share, and what it reads and samples is counted. Loaded once in a process."""

    run: str
    """A run folder, a model's folder, or a name, such as `base-judge`."""
    temperature: Temperature = 1.0
    """At which its tokens are drawn: several votes differ above 0."""

    @property
    def name(self) -> str:
        return f"run_{Path(self.run).name}" + ("" if self.temperature == 1 else f"_at_{self.temperature:g}")

    @property
    def reads(self) -> Literal["answer", "turn"]:
        return "turn"

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """Raises: ConfigError where it was trained on other questions, RunError or ModelError where it cannot be
        loaded."""
        return implementation(RunJudge)(self).ask(questions, seed)

    async def answers(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return await implementation(RunJudge)(self).answers(questions, seed)


class Scorer(Component):
    """Family: says how good the answers to a task are."""

    asks: ClassVar[bool] = True
    """Whether it asks somebody."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What metrics rows call it."""

    @abstractmethod
    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        """Scores answers to one task, one or more. An answer may be a solution as far as it goes."""


def score(scorer: Scorer, tasks: Sequence[tuple[str, Sequence[str]]], ask: Ask) -> list[list[Score]]:
    """Scores the answers to several tasks; what is open of all of them is asked at once.

    Args:
        scorer: says how good an answer is.
        tasks: each with its answers.
        ask: gives replies.
    """
    under_way = {k: scorer.run(task, answers) for k, (task, answers) in enumerate(tasks)}
    found: dict[int, list[Score]] = {}
    replies: dict[int, Sequence[Answered] | None] = dict.fromkeys(under_way)
    while under_way:
        asked: dict[int, Sequence[Question]] = {}
        for k, scoring in list(under_way.items()):
            try:
                reply = replies[k]
                asked[k] = next(scoring) if reply is None else scoring.send(reply)
            except StopIteration as end:
                found[k] = end.value
                del under_way[k]
        came = iter(ask([q for of_one in asked.values() for q in of_one]) if asked else ())
        replies = {k: [next(came) for _ in of_one] for k, of_one in asked.items()}
    return [found[k] for k in range(len(tasks))]


class Generative(Scorer):
    """A language model that says whether an answer is right, after reasons of its own where it may reason. The votes
    that failed are left out; where none is left, scoring failed."""

    question: str = "Is the answer correct?"
    """What is asked; the verdict is yes or no."""
    reasons: CountOrZero = 256
    """Tokens of a rationale; 0 asks for the verdict at once."""
    votes: Count = 1
    """Rationales whose verdicts are averaged."""

    @property
    def name(self) -> str:
        return f"generative_{self.votes}{_asked(self)}"

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        replies = yield [
            Question(self.question, {"task": task, "answer": answer}, YES_NO, self.reasons, vote)
            for answer in answers
            for vote in range(self.votes)
        ]
        return [_mean(replies[k : k + self.votes]) for k in range(0, len(replies), self.votes)]


def _asked(scorer: "Generative | Pairwise") -> str:
    """How the name of a scorer goes on where it asks otherwise than by default."""
    usual = {name: field.default for name, field in type(scorer).model_fields.items()}
    reasons = {0: "_direct", usual["reasons"]: ""}.get(scorer.reasons, f"_{scorer.reasons}_reasons")
    return reasons + ("" if scorer.question == usual["question"] else f"_{scorer.question!r}")


def _mean(votes: Sequence[Answered]) -> Score:
    came = [vote for vote in votes if isinstance(vote, Reply)]
    value = fmean(vote.shares[0] for vote in came) if came else None
    taken = [vote for vote in votes if isinstance(vote, Reply | NoVerdict)]
    return Score(value, sum(vote.tokens for vote in taken), sum(vote.read for vote in taken))


@dataclass(slots=True)
class _Played:
    """What one answer came to in a tournament."""

    won: list[float] = field(default_factory=list)
    """Of each match that did not fail, the probability that it is the better one."""
    failed: bool = False
    """Whether one of its matches did."""
    tokens: int = 0
    """Of the matches in which it is the first of the pair: each is counted once."""
    read: int = 0


class Pairwise(Scorer):
    """A language model that says which of two answers is better. Each pair is asked in both orders, so that a liking
    for one place cancels (Wang et al., 2023, arXiv 2305.17926); a reply that failed takes its pair with it.

    `round_robin`: all pairs, n (n - 1) questions a vote; the value is the mean probability of being the better one, and
    scoring of an answer failed where all its pairs did. `knockout`: n - 1 pairs; winners go on, and the value is the
    share of the rounds that were won (an answer without a partner goes on); both answers of a pair that failed did. One
    answer alone is worth 0.5."""

    question: str = "Which of the two answers is better?"
    """What is asked; the verdict is first or second."""
    reasons: CountOrZero = 256
    """Tokens of a rationale; 0 asks for the verdict at once."""
    votes: Count = 1
    """Replies to each pair in each order."""
    tournament: Literal["round_robin", "knockout"] = "round_robin"
    """Which pairs are asked about."""

    @property
    def name(self) -> str:
        return f"pairwise_{self.tournament}_{self.votes}{_asked(self)}"

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        n = len(answers)
        played = [_Played() for _ in answers]
        if self.tournament == "round_robin":
            yield from self._matches(task, answers, list(combinations(range(n), 2)), played)
            return [Score(fmean(p.won) if p.won else 0.5 if n == 1 else None, p.tokens, p.read) for p in played]
        rounds, left, wins = max(1, (n - 1).bit_length()), list(range(n)), [0] * n
        while len(left) > 1:
            pairs = list(zip(left[::2], left[1::2], strict=False))
            decided = yield from self._matches(task, answers, pairs, played)
            on = [pair[0 if p >= 0.5 else 1] for pair, p in zip(pairs, decided, strict=True) if p is not None]
            left = on + left[2 * len(pairs) :]
            for k in left:
                wins[k] += 1
        return [
            Score(None if p.failed else wins[k] / rounds if n > 1 else 0.5, p.tokens, p.read)
            for k, p in enumerate(played)
        ]

    def _matches(
        self, task: str, answers: Sequence[str], pairs: Sequence[tuple[int, int]], played: Sequence[_Played]
    ) -> Generator[Sequence[Question], Sequence[Answered], list[float | None]]:
        """The probability that the first of each pair is the better one; None where that failed."""
        replies = yield [
            Question(
                self.question, {"task": task, "first": answers[a], "second": answers[b]}, FIRST_SECOND, self.reasons, v
            )
            for pair in pairs
            for a, b in (pair, pair[::-1])
            for v in range(self.votes)
        ]
        decided: list[float | None] = []
        for k, (a, b) in enumerate(pairs):
            there, back = (
                _mean(replies[(2 * k + order) * self.votes : (2 * k + order + 1) * self.votes]) for order in (0, 1)
            )
            played[a].tokens += there.tokens + back.tokens
            played[a].read += there.read + back.read
            if there.value is None or back.value is None:
                decided.append(None)
                played[a].failed = played[b].failed = True
            else:
                p = (there.value + 1 - back.value) / 2
                decided.append(p)
                played[a].won.append(p)
                played[b].won.append(1 - p)
        return decided
