"""The horizon card of a policy: what is measured for it.

What always holds: all figures are of the same held-out tasks, with the seeds of every evaluation; the forecast is made
of episodes under the smaller budget, and handed out, with the time and a hash of all that it was made of, before one
episode goes on; it is compared with these very episodes, going on where they were cut. Tokens are all that were
sampled, `spent_tokens`.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, Literal, NamedTuple

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.provenance import commit
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.rollout.players import LanguagePlayer, Player
from longstride.rollout.summary import costs
from longstride.run.evaluation import Result, evaluate_player, go_on
from longstride.run.recipe import Recipe
from longstride.scaling.horizons import Doubling, Outcome, Range, budget_for, distance_at, forecast, within
from longstride.stats import mean_interval, paired_difference, wilson_interval
from longstride.strategies import Strategy
from longstride.strategies.best_of import Majority
from longstride.strategies.check_again import CheckAgain
from longstride.strategies.think_on import ThinkOn

Unit = Literal["turns", "tokens"]
Watch = Callable[[str], Callable[[int, int], None]]
"""Gives a progress callback (done, total) for what is played."""
SHARES = (0.5, 0.8)
"""Of success, at which distances and budgets are given."""
LEAST = 2
"""The smallest budget of which a forecast is made."""


class _Setting(NamedTuple):
    """A way to spend tokens, as it was measured."""

    kind: str
    """What the tokens go to: turns, samples, checks, thoughts."""
    name: str
    turns: int
    """Of an episode, at most."""
    samples: int
    done: list[bool | None]
    """By task; None where all of its episodes failed."""
    tokens: list[float]
    """By task, all that were sampled."""

    def at(self, places: Sequence[int]) -> list[float]:
        """Success of tasks."""
        return [float(self.done[k] or 0) for k in places]

    @property
    def cost(self) -> float:
        """Mean tokens of a task."""
        return fmean(self.tokens)


def unit_of(recipe: Recipe) -> Unit:
    """What a budget is counted in: turns, or sampled tokens where an episode is one turn."""
    return "tokens" if recipe.test_budget.most("turns", 1) == 1 else "turns"


def measure_card(
    player: Player,
    recipe: Recipe,
    tasks: Sequence[Task],
    budget: int | None = None,
    samples: int = 4,
    watch: Watch | None = None,
    written: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Measures a policy and makes its card.

    Args:
        player: acts.
        recipe: as of an evaluation.
        tasks: held-out ones.
        budget: turns (tokens where an episode is one turn) of which twice as many are predicted; half of the recipe's
            test budget if left out.
        samples: episodes of a task that are played to see what tokens are best spent on; with 1 that is left out.
        watch: gives progress callbacks.
        written: is handed the card with its forecast before anything beyond it is measured.

    Returns:
        `policy`, `recipe`, `seed`, `commit`, `tasks` (`count`, `sources`, `distances` or None), `unit`, `forecast` (see
        `scaling.horizons.Doubling`, with `written` and `sha256`), then `measured` (`success`, `hit`, or None for hit
        where nothing was predicted, `at`), `curve` (see `Within`), `effective` (mean length and of successes, with
        intervals), `distance` and `budget` (by share `value`, `lo`, `hi`; 0 is below, None beyond all that was
        measured), `by_distance`, and `spending` (`settings`, `splits`), where strategies were measured; where a model
        behind a server judged, `judge_usage` (see `core.trajectory.Usage`) of all that was played.

    Raises:
        ConfigError: the budget is too small, or no episode could be played.
    """
    unit, watch = unit_of(recipe), watch or (lambda name: lambda done, total: None)
    recipe = recipe.replace(evaluation={"attempts": 1}, trial={"episodes": 1})
    most = recipe.test_budget.most("turn_tokens" if unit == "tokens" else "turns", 1) or 0
    budget = most // 2 if budget is None else budget
    if budget < LEAST:
        raise ConfigError(
            f"a card predicts success at twice a budget of {LEAST} {unit} or more, and this one is {budget}: give "
            "--budget"
        )

    def under(limit: int) -> Recipe:
        name = "turn_tokens" if unit == "tokens" else "turns"
        return recipe.replace(test_budget={name: limit})

    judge = Counter[str]()

    def counted(result: Result) -> Result:
        judge.update(result.summary.get("judge_usage", {}))
        return result

    def evaluated(limit: int) -> list[Trajectory]:
        return counted(evaluate_player(player, under(limit), tasks, None, watch(f"{limit} {unit}"))).trajectories

    early = evaluated(budget)
    kept = [k for k, t in enumerate(early) if not t.stop.failed]
    if not kept:
        raise ConfigError("every episode failed, so nothing was measured; see `longstride eval` for why")
    said = forecast([_outcome(early[k], unit, budget) for k in kept], budget, recipe.seed)
    card = _head(recipe, tasks, unit) | {"episodes": len(kept)}
    card["forecast"] = _sealed(said, [_outcome(early[k], unit, budget) for k in kept], card)
    if written:
        written(card)

    late = list(early)
    cut = [k for k in kept if _outcome(early[k], unit, budget).cut]
    if unit == "turns":
        found = go_on(player, under(2 * budget), [early[k] for k in cut], 2 * budget, watch(f"{2 * budget} {unit}"))
        judge.update(costs(found).get("judge_usage", {}))
        late = _with(late, cut, found)
    else:  # a longer turn is the same turn, sampled from its beginning
        late = evaluated(2 * budget)
    kept = [k for k in kept if not late[k].stop.failed]
    outcomes = [_outcome(late[k], unit, 2 * budget) for k in kept]
    card |= _measured(said, outcomes, unit, recipe.seed) | {"episodes": len(kept)}
    if samples > 1:
        settings = _settings(player, under(2 * budget), tasks, budget, samples, unit, watch, counted)
        card["spending"] = _spending(settings, recipe.seed)
    return card | ({"judge_usage": dict(judge)} if judge else {})


def _head(recipe: Recipe, tasks: Sequence[Task], unit: Unit) -> dict[str, Any]:
    distances = sorted(t.optimal for t in tasks if t.optimal is not None)
    known = len(distances) == len(tasks) and unit == "turns"
    return {
        "recipe": recipe.name,
        "settings_sha256": _hash(recipe.as_data()),
        "seed": recipe.seed,
        "commit": commit(),
        "tasks": {
            "count": len(tasks),
            "sources": sorted({t.source for t in tasks}),
            "distances": [distances[0], distances[len(distances) // 2], distances[-1]] if known else None,
        },
        "unit": unit,
    }


def _sealed(said: Doubling, outcomes: Sequence[Outcome], head: Mapping[str, Any]) -> dict[str, Any]:
    """A forecast with the time, and the hash of it, of the card's head and of the episodes that it was made of."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    data = asdict(said) | {"written": now}
    return data | {"sha256": _hash([data, head, [asdict(o) for o in outcomes]])}


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()


def _outcome(t: Trajectory, unit: Unit, budget: int) -> Outcome:
    """An episode as horizons see it; it is cut where the card's budget ended it, and not a limit of the task's own."""
    length = t.length if unit == "turns" else t.sampled_tokens
    if unit == "turns":
        cut = t.stop is StopReason.TURNS and (t.task.horizon or math.inf) > budget
    else:
        cut = bool(t.turns) and t.turns[-1].finish == "length"
    return Outcome(length, t.success, cut, t.task.optimal if unit == "turns" else None)


def _with(trajectories: Sequence[Trajectory], places: Sequence[int], new: Sequence[Trajectory]) -> list[Trajectory]:
    changed = dict(zip(places, new, strict=True))
    return [changed.get(k, t) for k, t in enumerate(trajectories)]


def _measured(said: Doubling, outcomes: Sequence[Outcome], unit: Unit, seed: int) -> dict[str, Any]:
    most = int(said.at)
    steps = range(1, most + 1) if unit == "turns" else range(4, most + 1, 4)
    success = fmean(o.success for o in outcomes)
    lengths, solved = [o.length for o in outcomes], [o.length for o in outcomes if o.success]
    distances = {f"{share:g}": distance_at(outcomes, share, seed) for share in SHARES}
    return {
        "measured": {
            "success": success,
            "interval": wilson_interval(sum(o.success for o in outcomes), len(outcomes)),
            "hit": None if said.empty else said.lo <= success <= said.hi,
            "unchanged": None if said.empty else said.lo <= said.success,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        "curve": [w._asdict() for w in within(outcomes, list(steps))],
        "effective": {
            name: {"mean": fmean(of), **dict(zip(("lo", "hi"), mean_interval(of, seed), strict=True))} if of else None
            for name, of in (("all", lengths), ("successes", solved))
        },
        "distance": {share: _range(r) for share, r in distances.items() if r is not None} or None,
        "budget": {f"{share:g}": _range(budget_for(outcomes, share, seed)) for share in SHARES},
        "by_distance": _by_distance(outcomes),
    }


def _range(r: Range) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in r._asdict().items()}


def _by_distance(outcomes: Sequence[Outcome]) -> list[dict[str, float]]:
    """Success by goal distance: of each distance, or of ranges that double where there are more than a dozen."""
    known = [(o.distance, o) for o in outcomes if o.distance]
    far = len({d for d, _ in known}) > 12
    groups: dict[int, list[tuple[float, Outcome]]] = {}
    for d, o in known:
        groups.setdefault(round(2 * math.log2(d)) if far else int(d), []).append((d, o))
    found = []
    for key in sorted(groups):
        done = sum(o.success for _, o in groups[key])
        lo, hi = wilson_interval(done, len(groups[key]))
        distance = 2 ** fmean(math.log2(d) for d, _ in groups[key])
        count = len(groups[key])
        found.append({"distance": distance, "success": done / count, "lo": lo, "hi": hi, "tasks": count})
    return found


def _settings(
    player: Player,
    recipe: Recipe,
    tasks: Sequence[Task],
    budget: int,
    samples: int,
    unit: Unit,
    watch: Watch,
    counted: Callable[[Result], Result],
) -> list[_Setting]:
    """What tokens may go to: more turns, several samples of which a majority counts, each at several limits of turns;
    answers that are checked again; thoughts that are made to go on. Strategies that this policy or these tasks do not
    have are left out."""
    often = recipe.replace(evaluation={"attempts": samples})
    several = counted(evaluate_player(player, often, tasks, None, watch(f"{samples} samples")))
    attempts = [several.trajectories[k :: len(tasks)] for k in range(len(tasks))]
    limits = sorted({2 * budget, budget, max(1, budget // 2)}) if unit == "turns" else [1]
    sizes = [n for n in (1, 2, 4, 8, 16, 32) if n < samples] + [samples]
    found = [_sampled(attempts, turns, n) for n in sizes for turns in limits]
    for kind, strategy in _strategies(player, recipe, unit):
        result = counted(evaluate_player(player, recipe, tasks, strategy, watch(strategy.name)))
        found.append(_played(kind, strategy.name, recipe.test_budget.most("turns", 1) or 1, result))
    return found


def _strategies(player: Player, recipe: Recipe, unit: Unit) -> list[tuple[str, Strategy]]:
    checks: list[tuple[str, Strategy]] = [("checks", CheckAgain(checks=n)) for n in (2, 3)] if unit == "turns" else []
    if not isinstance(player, LanguagePlayer):
        return checks
    if unit == "turns":
        return [*checks, *(("thoughts", ThinkOn(times=n)) for n in (1, 2))]
    room = (recipe.test_budget.most("turn_tokens", 1) or 0) - 16
    return [("thoughts", ThinkOn(most=n)) for n in (room // 4, room // 2, room) if n > 0]


def _sampled(attempts: Sequence[Sequence[Trajectory]], turns: int, n: int) -> _Setting:
    """The first n attempts of each task, each cut after so many turns, of which a majority counts."""
    done, tokens = list[bool | None](), list[float]()
    for of_task in attempts:
        some = [t for t in of_task[:n] if not t.stop.failed]
        ended = [t for t in some if t.length <= turns]
        done.append(bool(ended) and Majority()(ended).success if some else None)
        tokens.append(float(sum(turn.sampled_tokens for t in some for turn in t.turns[:turns])))
    if n == 1:
        return _Setting("turns", f"{turns} turns", turns, 1, done, tokens)
    return _Setting("samples", f"{n} samples of {turns} turns", turns, n, done, tokens)


def _played(kind: str, name: str, turns: int, result: Result) -> _Setting:
    done = [None if e.trajectory.stop.failed else e.trajectory.success for e in result.episodes]
    return _Setting(kind, name, turns, 1, done, [float(e.spent_tokens) for e in result.episodes])


def _spending(settings: Sequence[_Setting], seed: int) -> dict[str, Any]:
    """All settings, and which is best within one, two and four times the tokens of a plain episode."""
    tasks = [k for k in range(len(settings[0].done)) if all(s.done[k] is not None for s in settings)]
    if len(tasks) < 4:
        return {"settings": [], "splits": []}
    stream(seed, "card").shuffle(tasks)
    plain = max((s for s in settings if s.kind == "turns"), key=lambda s: s.turns)
    splits, known = [], 0
    for factor in (1, 2, 4):
        affordable = [s for s in settings if s.cost <= factor * plain.cost]
        if len(affordable) > known:
            splits.append(_split(affordable, plain, factor * plain.cost, tasks, seed))
            known = len(affordable)
    return {"settings": [_row(s, tasks) for s in settings], "splits": splits}


def _row(s: _Setting, tasks: Sequence[int]) -> dict[str, Any]:
    done = s.at(tasks)
    return {
        "kind": s.kind,
        "name": s.name,
        "turns": s.turns,
        "samples": s.samples,
        "tokens": s.cost,
        "success": fmean(done),
        "interval": wilson_interval(round(sum(done)), len(done)),
    }


def _split(
    affordable: Sequence[_Setting], plain: _Setting, tokens: float, tasks: Sequence[int], seed: int
) -> dict[str, Any]:
    """The best of the settings, chosen on one half of the tasks and measured on the other, and the other way about:
    luck in choosing is not counted as success."""

    def best(of: Sequence[_Setting], places: Sequence[int]) -> _Setting:
        return max(of, key=lambda s: (sum(s.at(places)), -s.cost))

    first, second = tasks[::2], tasks[1::2]
    came = best(affordable, second).at(first) + best(affordable, first).at(second)
    apart = paired_difference(came, plain.at([*first, *second]), seed)
    kinds = dict.fromkeys(s.kind for s in affordable)
    return {
        "tokens": tokens,
        "best": best(affordable, tasks).name,
        "success": fmean(came),
        "plain": fmean(plain.at(tasks)),
        "difference": [apart.mean, apart.lo, apart.hi],
        "by_kind": {kind: _row(best([s for s in affordable if s.kind == kind], tasks), tasks) for kind in kinds},
    }
