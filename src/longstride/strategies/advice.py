"""Advice: which strategy to use on tasks of one's own, for each difficulty, at a budget of tokens a task.

What always holds: half of the tasks of each difficulty are for choosing and the other half for testing, and no result
of the second enters a choice; what a strategy spends is `spent_tokens`, all tokens that it samples; an advised setting
is never expected to spend more than the budget. The idea is that of arXiv 2408.03314: difficulty decides the strategy.

On the first half every kind is played at a few small settings. For each difficulty a logistic curve in the logarithm
of tokens is fitted to whether tasks were done, and read off at the settings that the budget allows; the setting with
the highest prediction is advised, the cheapest of equals. On the second half the advised settings are played, and what
a fixed strategy is: one answer, and each kind at its largest setting.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, log2
from statistics import fmean
from typing import NamedTuple

from longstride.core.errors import ConfigError
from longstride.core.seeds import stream
from longstride.core.task import DIFFICULTIES, Task
from longstride.scaling.logistic import chance, line
from longstride.stats import mean_interval, sign_test, wilson_interval
from longstride.strategies import Direct, Strategy
from longstride.strategies.anytime import LONGEST
from longstride.strategies.best_of import BestOf, Likelihood, Majority
from longstride.strategies.revise import Revise
from longstride.strategies.search import Beam, Particles
from longstride.strategies.searched import Searched
from longstride.strategies.think_on import ThinkOn

SMALL = (1, 2, 4)
"""Settings that are played on the first half, as far as the budget allows."""
EVAL = "`longstride eval` for why"
Evaluate = Callable[[Strategy, Sequence[Task]], Sequence[tuple[bool, int] | None]]
"""Plays tasks under a strategy: whether each was done, and the tokens spent; None where it failed."""


def kinds(mark: str, answer: float, single: bool = False) -> dict[str, Callable[[int], Strategy]]:
    """What is tried, by name: a strategy that costs about n answers, for n of 2 or more; one answer is `Direct`.

    Args:
        mark: what ends a step of a thought; empty where a step is a turn, and then thoughts keep their lengths.
        answer: tokens of one answer.
        single: whether episodes have one turn.
    """
    forced = {"think_on": lambda n: ThinkOn(most=round(n * answer))} if mark else {}
    return {
        "vote": lambda n: BestOf(attempts=n, by=Majority()),
        "likeliest": lambda n: BestOf(attempts=n, by=Likelihood()),
        "beam": lambda n: Searched(search=Beam(n=n, width=2), mark=mark),
        "particles": lambda n: Searched(search=Particles(n=n), mark=mark),
        **forced,
        **({"revise": lambda n: Revise(answers=n)} if single else {}),
    }


class Played(NamedTuple):
    """A task under a strategy."""

    task: int
    """Its place in its half: two tasks may be alike."""
    difficulty: str
    done: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A strategy with its size."""

    kind: str
    n: int
    tokens: float
    """That it is expected to spend on a task."""


@dataclass(frozen=True, slots=True)
class Advised:
    """What is advised for a difficulty."""

    difficulty: str
    strategy: str
    tokens: float
    """Expected for a task."""
    predicted: float
    """Share of tasks done."""
    observed: float | None
    """The same on the second half; None where all of it failed."""
    interval: tuple[float, float]
    """95 % Wilson interval of `observed`."""
    tasks: int
    """Of the second half that did not fail."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is advised, and how it did on the second half."""

    by_difficulty: tuple[Advised, ...]
    success: float
    """Of what is advised, over the tasks of the second half."""
    fixed: dict[str, float]
    """The same of every fixed strategy, by name, best first."""
    difference: tuple[float, float, float]
    """Of what is advised and the best fixed strategy, which the second half itself names, with its 95 % interval, tasks
    paired."""
    p: float
    """Of an exact sign test of the same."""

    @property
    def best_fixed(self) -> str:
        return next(iter(self.fixed))

    @property
    def beats(self) -> bool:
        """Whether it did better than every fixed strategy, by more than chance would have it."""
        return self.difference[1] > 0 and self.p < 0.05


def advise(
    tasks: Sequence[Task], budget: int, mark: str, turn: int, seed: int, evaluate: Evaluate, single: bool = False
) -> Advice:
    """Measures, fits, chooses and tests.

    Args:
        tasks: at least four of each difficulty that there is.
        budget: tokens that may be spent on a task, in the mean.
        mark: see `kinds`.
        turn: tokens of a turn, in which the longest thought leaves room for an answer.
        seed: which tasks are in which half.
        evaluate: plays them.
        single: see `kinds`.

    Raises:
        ConfigError: too few tasks, a budget that is too small for one answer, or episodes that all failed.
    """
    first, second = halves(tasks, seed)
    played = dict[tuple[str, int], list[Played]]()

    def play(strategy: Strategy, half: Sequence[Task]) -> list[Played]:
        found = evaluate(strategy, half)
        return [
            Played(k, t.difficulty, *came)
            for k, (t, came) in enumerate(zip(half, found, strict=True))
            if came is not None
        ]

    one = play(Direct(), first)
    if not one:
        raise ConfigError(f"every episode failed, so there is nothing to go by; see {EVAL}")
    least = _tokens(one)
    if budget < least:
        raise ConfigError(
            f"a budget of {budget} tokens is too small for one answer; the least that works is {ceil(least)}"
        )
    tried, sizes = kinds(mark, least, single), dict[str, list[Setting]]()
    for kind in tried:
        room, most = float(budget), inf
        if kind == "think_on":  # it is called by the tokens that it thinks for, and those have to fit too
            room, most = max(least, min(budget, turn - LONGEST)), (turn - LONGEST) / least
        played[kind, 1], settings = one, [Setting(kind, 1, least)]
        for n in SMALL[1:]:
            if n <= most and settings[-1].tokens * n / settings[-1].n <= room:
                played[kind, n] = play(tried[kind](n), first)
                if not played[kind, n]:
                    name = tried[kind](n).name
                    raise ConfigError(f"every episode of {name} failed, so there is nothing to go by; see {EVAL}")
                settings.append(Setting(kind, n, _tokens(played[kind, n])))
        sizes[kind] = _affordable(settings, room, most)
    chosen = {d: _best(d, sizes, played) for d in DIFFICULTIES if any(t.difficulty == d for t in tasks)}
    fixed = [Setting("vote", 1, least), *(of[-1] for of in sizes.values())]
    key = lambda s: (s.kind if s.n > 1 else "vote", s.n)  # noqa: E731
    results = {
        (of, n): play(tried[of](n) if n > 1 else Direct(), second)
        for of, n in dict.fromkeys(map(key, [*(s for s, _ in chosen.values()), *fixed]))
    }
    advised = tuple(_tested(d, s, p, _name(tried, s), results[key(s)]) for d, (s, p) in chosen.items())
    came = {of.task: of.done for d, (s, _) in chosen.items() for of in results[key(s)] if of.difficulty == d}
    rivals = {_name(tried, s): {of.task: of.done for of in results[key(s)]} for s in fixed if results[key(s)]}
    if not (came and rivals):
        raise ConfigError(f"every episode of the second half failed, so nothing was tested; see {EVAL}")
    rivals = dict(sorted(rivals.items(), key=lambda item: -fmean(item[1].values())))
    best = next(iter(rivals.values()))
    apart = [float(came[task]) - float(best[task]) for task in came.keys() & best.keys()] or [0.0]
    return Advice(
        advised,
        fmean(came.values()),
        {name: fmean(done.values()) for name, done in rivals.items()},
        (fmean(apart), *mean_interval(sorted(apart), seed=seed)),
        sign_test(sum(a > 0 for a in apart), sum(a < 0 for a in apart)),
    )


def halves(tasks: Sequence[Task], seed: int) -> tuple[list[Task], list[Task]]:
    """Two halves with the same number of tasks of each difficulty; an odd one out is left out.

    Raises:
        ConfigError: fewer than four of one.
    """
    first, second = list[Task](), list[Task]()
    for d in DIFFICULTIES:
        of = [t for t in tasks if t.difficulty == d]
        if of and len(of) < 4:
            raise ConfigError(f"advice needs four tasks of each difficulty, and {d} has {len(of)}; ask for more tasks")
        stream(seed, "advice", d).shuffle(of)
        first += of[: len(of) // 2]
        second += of[len(of) // 2 : len(of) // 2 * 2]
    return first, second


def _affordable(measured: Sequence[Setting], budget: float, most: float) -> list[Setting]:
    """Those that were measured and, doubled from the last of them up to a largest, those that the budget allows
    besides."""
    found = [s for s in measured if s.tokens <= budget]
    if found[-1] is measured[-1]:
        while 2 * (last := found[-1]).tokens <= budget and 2 * last.n <= most:
            found.append(Setting(last.kind, 2 * last.n, 2 * last.tokens))
    return found


def _best(
    difficulty: str, sizes: dict[str, list[Setting]], played: dict[tuple[str, int], list[Played]]
) -> tuple[Setting, float]:
    """The setting with the highest prediction for a difficulty, the cheapest of equals, and the prediction."""
    found: list[tuple[float, float, Setting]] = []
    for kind, settings in sizes.items():
        points = [
            (log2(_tokens(of)), one.done)
            for (name, _), of in played.items()
            if name == kind
            for one in of
            if one.difficulty == difficulty
        ]
        if not points:
            continue
        height, slope = line([x for x, _ in points], [ok for _, ok in points])
        found += [(float(chance(height + slope * log2(s.tokens))), -s.tokens, s) for s in settings]
    if not found:
        raise ConfigError(f"every episode of a task that is {difficulty} failed; see {EVAL}")
    predicted, _, setting = max(found, key=lambda of: of[:2])
    return setting, predicted


def _tested(difficulty: str, s: Setting, predicted: float, name: str, came: Sequence[Played]) -> Advised:
    done = [of.done for of in came if of.difficulty == difficulty]
    interval = wilson_interval(sum(done), len(done)) if done else (0.0, 1.0)
    return Advised(difficulty, name, s.tokens, predicted, fmean(done) if done else None, interval, len(done))


def _name(tried: dict[str, Callable[[int], Strategy]], s: Setting) -> str:
    return tried[s.kind](s.n).name if s.n > 1 else Direct().name


def _tokens(came: Sequence[Played]) -> float:
    return max(1.0, fmean(of.tokens for of in came))
