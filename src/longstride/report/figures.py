"""From metrics rows to figures: plain data that `static/charts.js` draws.

What always holds: a figure with nothing to show is not made; every value is a finite number or None; names are plain
text (escaping is the page's work). A figure is a dict: `kind` "lines" (`axes`, `series` of points `x` (one entry an
axis), `y`, `lo`, `hi`, and horizontal `rules`), "bars" (`categories`, `series` of `values`), "paths" (`paths` of
`points` and a `goal`, in one plane) or "map" (`rows` of shares in the cells of a plane, from `low` to `high`).
"""

import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from longstride.core.task import DIFFICULTIES
from longstride.report.curves import measured
from longstride.report.rows import (
    Record,
    Row,
    grouped,
    horizons,
    interval,
    measure,
    number,
    numbers,
    returns,
    short,
    successes,
    thinned,
)
from longstride.stats import mean_interval
from longstride.strategies.baselines import BASELINES

MOST_POINTS = 400
"""A series is thinned evenly to this many points: more cannot be distinguished at the width of a page."""
BANDS = 3
"""Runs whose intervals are drawn in one figure: of more they cover each other."""
_HUES = ("green", "blue", "vermilion", "purple", "orange", "sky", "ink", "grey")
HUES = tuple(zip(_HUES * 3, ("circle", "square", "triangle") * len(_HUES), strict=True))
"""Hue and mark of each series of a figure whose series are not known in advance: each pair once."""
_MARKS = {"easy": ("sky", "circle"), "medium": ("blue", "square"), "hard": ("vermilion", "triangle")}
_ENDS = (("before training", "orange", "square"), ("after", "blue", "circle"))
"""The two policies that a report compares, as it draws them."""
_CHECKS = re.compile(r"check_again_(\d+)(.*)", re.DOTALL)
Figure = dict[str, Any]
Read = Callable[[Row], float | None]


def figures(record: Record) -> list[Figure]:
    """All figures of a run, in the order in which they tell its story."""
    made = (
        _returns(record),
        None if record.counts_returns else _learning(record),
        *_in_trials(record),
        _data(record),
        _coverage(record),
        *_paths(record),
        _test_horizons(record),
        _lengths(record),
        _tokens(record),
        _difficulty(record),
        _distance(record),
        _tasks(record),
        _strategies(record),
        _roles(record),
        _trouble(record),
        _shares(record, "actions", "Actions", "Share of all turns by verb, on the held-out tasks.", "share of turns"),
        _shares(record, "stops", "Why episodes stopped", "Share of the held-out episodes.", "share of episodes"),
        _checks(record),
        _loss(record),
        _values(record),
        _ways(record),
        *_measured(record),
    )
    return [figure for figure in made if figure]


def _measured(record: Record) -> list[Figure | None]:
    """A figure for each exact measure of a problem whose answer is known; start and end alone are no curve."""
    out = []
    for name, found in record.measured.items():
        rows = [{"iteration": at, "value": value} for at, value in found]
        series = [_series(name.replace("_", " "), rows, [_iteration], _get("value"), "blue", mark="circle")]
        title = name.replace("_", " ").capitalize()
        if len(found) > 2:
            out.append(_lines(title, "Computed from the solution at the marks.", name, series, free=True))
    return out


def _learning(record: Record) -> Figure | None:
    """Held-out and training success against what was spent, over the policies that need no training."""
    held_out, train = record.learning, record.train
    axes = _axes((*held_out, *train))
    rules = [{"name": "warm start", "y": y} for r in record.curve("warm_start")[-1:] if (y := _success(r)) is not None]
    for policy in BASELINES:
        rules += [
            {"name": policy.replace("_", " "), "y": y}
            for r in record.curve(policy)[-1:]
            if (y := _success(r)) is not None
        ]
    along = [read for _, read in axes]
    series = [
        _series("training", train, along, _success, "orange", dash="5 4"),
        _series("held-out", held_out, along, _success, "blue", mark="circle", band=interval),
        _series("supported", held_out, along, _measure("supported"), "green", mark="square"),
    ]
    return _lines(
        "Success",
        "Held-out tasks with their 95% interval, training episodes as they came, and what policies without training "
        "reach.",
        "success",
        series,
        axes=[name for name, _ in axes],
        rules=rules,
        share=True,
        wide=True,
    )


def _returns(record: Record) -> Figure | None:
    """Returns of test episodes against what was spent, over the mean of the offline data."""
    rows = record.learning
    axes = _axes((*rows, *record.train))

    def band(row: Row) -> tuple[float, float] | None:
        return mean_interval(returns(row), seed=0) if len(returns(row)) > 1 else None

    def mean(row: Row) -> float | None:
        return statistics.fmean(returns(row)) if returns(row) else None

    series = [_series("test episodes", rows, [read for _, read in axes], mean, "blue", mark="circle", band=band)]
    of_data = number(record.data, "return")
    return _lines(
        "Return",
        "Sum of an episode's rewards: mean of the test episodes with its 95% interval"
        + (", and of the offline data." if of_data is not None else "."),
        "return",
        series,
        axes=[name for name, _ in axes],
        rules=[] if of_data is None else [{"name": "offline data", "y": of_data}],
        free=True,
        wide=True,
    )


def _data(record: Record) -> Figure | None:
    """How the returns of the offline data are spread; nothing where all are alike."""
    histogram = record.data.get("histogram")
    edges, counts = (histogram.get(k) if isinstance(histogram, Mapping) else None for k in ("edges", "counts"))
    if not isinstance(edges, list) or not isinstance(counts, list) or len(edges) != len(counts) + 1:
        return None
    ends, each = [[number({"x": x}, "x") for x in found] for found in (edges, counts)]
    known, many = [e for e in ends if e is not None], [c for c in each if c is not None]
    if len(known) < len(ends) or len(many) < len(each) or known[0] == known[-1] or not sum(many) > 0:
        return None
    steps = number(record.data, "steps")
    return {
        "kind": "bars",
        "title": "Returns of the offline data",
        "caption": f"Share of its {sum(many):.0f} episodes" + (f", {short(steps)} steps." if steps else "."),
        "x": "share of episodes",
        "categories": [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(known)],
        "series": [{"name": "data", "hue": "grey", "counts": many, "values": [c / sum(many) for c in many]}],
    }


def _coverage(record: Record) -> Figure | None:
    """Where the states of the offline data are."""
    found = record.data.get("coverage")
    of = found if isinstance(found, Mapping) else {}
    low, high, counts = _place(of.get("low")), _place(of.get("high")), of.get("counts")
    if low is None or high is None or not isinstance(counts, list) or not counts:
        return None
    rows = [[number({"x": x}, "x") for x in row] if isinstance(row, list) else [] for row in counts]
    known = [[x for x in row if x is not None and x >= 0] for row in rows]
    total = sum(map(sum, known))
    if (
        {len(row) for row in known} != {len(rows[0])}
        or known != rows
        or not total
        or not (low[0] < high[0] and low[1] < high[1])
    ):
        return None
    seen = sum(x > 0 for row in known for x in row)
    plane = (
        "the plane of their places"
        if of.get("places") is True
        else "the plane of the two leading principal components of the standardised observations"
    )
    return {
        "kind": "map",
        "title": "Where the offline data are",
        "caption": f"Share of the states in each cell of {plane}; {seen} of {sum(map(len, known))} cells have any.",
        "low": low,
        "high": high,
        "rows": [[x / total for x in row] for row in known],
    }


def _paths(record: Record) -> list[Figure | None]:
    """The ways of test episodes before and after training, where these are places."""
    return [_drawn(f"Ways {name}", row or {}) for (name, _, _), row in zip(_ENDS, record.ends, strict=True)]


def _drawn(title: str, row: Row) -> Figure | None:
    found = row.get("paths")
    paths = []
    for path, (hue, mark) in zip(found if isinstance(found, list) else [], HUES[: len(_HUES)], strict=False):
        of = path if isinstance(path, Mapping) else {}
        places = of.get("places")
        ways = [_place(place) for place in places] if isinstance(places, list) else []
        points = [place for place in ways if place is not None]
        if points and len(points) == len(ways):
            goal = {"goal": _place(of.get("goal")), "solved": of.get("solved") is True}
            paths.append({"name": str(of.get("task", ""))[:60], "hue": hue, "mark": mark, "points": points} | goal)
    return (
        {
            "kind": "paths",
            "title": title,
            "caption": "The first test episode of each task, from its start toward its goal (a ring; full: reached).",
            "paths": paths,
        }
        if paths
        else None
    )


def _place(found: Any) -> list[float] | None:
    """Two finite coordinates."""
    read = [number({"x": x}, "x") for x in found] if isinstance(found, list) and len(found) == 2 else []
    known = [x for x in read if x is not None]
    return known if len(known) == 2 else None


def _test_horizons(record: Record) -> Figure | None:
    """Success within h turns, for every h up to the test horizon. A policy does not know its horizon, so an episode
    under a shorter one is the beginning of the same episode: one evaluation has them all."""
    series = []
    for (name, hue, mark), row in zip(_ENDS, record.ends, strict=True):
        longest, found = max(horizons(row or {}).values(), default=0), _solved_lengths(row or {})
        if found is None or not 1 < longest <= MOST_POINTS:
            continue
        solved, tasks = found
        points = [{"h": h, "share": sum(n <= h for n in solved) / tasks} for h in range(1, int(longest) + 1)]
        series.append(_series(name, points, [_get("h")], _get("share"), hue, mark=mark))
    return _lines(
        "Success by test horizon",
        "Share of the held-out tasks that are done within so many turns.",
        "success",
        series,
        axes=["turns"],
        share=True,
    )


def _solved_lengths(row: Row) -> tuple[list[float], int] | None:
    """Lengths of the episodes that did their task, and how many episodes did not fail; None where a row does not say
    that of single episodes."""
    measures = row.get("measures")
    successes, lengths = (measures.get(k) if isinstance(measures, dict) else None for k in ("success", "length"))
    if not isinstance(successes, list) or not isinstance(lengths, list) or len(successes) != len(lengths):
        return None
    pairs = [(number({"x": s}, "x"), number({"x": n}, "x")) for s, n in zip(successes, lengths, strict=True)]
    played = [(s, n) for s, n in pairs if s is not None and n is not None]
    if not played or any(s not in (0, 1) for s, _ in played):  # means of several samples
        return None
    return [n for s, n in played if s], len(played)


def _axes(rows: Sequence[Row]) -> list[tuple[str, Read]]:
    """What success may be seen against: of what was spent, whatever these rows have."""
    reads: list[tuple[str, Read]] = [
        ("environment steps", _get("total_env_steps")),
        ("episodes", _get("total_episodes")),
        ("minutes", lambda r: None if (s := number(r, "seconds")) is None else s / 60),
        ("iteration", _iteration),
    ]
    axes = [(name, read) for name, read in reads if any(read(r) for r in rows)]  # an axis of zeros shows nothing
    return axes or [(name, read) for name, read in reads if any(read(r) is not None for r in rows)]


def comparison(records: Mapping[str, Record]) -> list[Figure]:
    """Held-out success and length of several runs, by name, against what was spent."""
    axes = _axes([row for record in records.values() for row in (*record.learning, *record.train)])
    along, out = [read for _, read in axes], []
    told = "with their 95% interval" if (few := len(records) <= BANDS) else "whose intervals stand in the tables below"
    for title, key, caption, band in (
        ("Success", "success", f"Held-out tasks, {told}.", interval if few else None),
        ("Length", "length", "Mean environment steps on held-out tasks.", None),
    ):
        series = [
            _series(name, record.learning, along, _measure(key), hue, mark=mark, band=band)
            for (name, record), (hue, mark) in zip(records.items(), itertools.cycle(HUES), strict=False)
        ]
        names = [name for name, _ in axes]
        out.append(_lines(title, caption, key, series, axes=names, share=key == "success", wide=True))
    return [figure for figure in out if figure]


def _lengths(record: Record) -> Figure | None:
    """The horizon schedule over what episodes really took; nothing where an episode is one turn always."""
    turns = {h for r in record.train for h in horizons(r).values()}
    if turns == {1.0} or all(number(r, "summary", "episodes") == 0 for r in record.train):
        return None  # or from given data: no horizon was at work
    return _lines(
        "Horizon and length",
        "What the schedule allowed and what training episodes took.",
        "environment steps",
        [
            *_allowed(record, "horizon"),
            _series("mean, all", record.train, [_iteration], _measure("length"), "orange", mark="circle"),
            _series("mean, successes", record.train, [_iteration], _measure("length_success"), "blue", mark="square"),
        ],
    )


def _tokens(record: Record) -> Figure | None:
    """The schedule of tokens over what episodes really sampled; where there is one, or where turns tell nothing."""
    limits = _allowed(record, "tokens")
    if not limits and {h for r in record.train for h in horizons(r).values()} != {1.0}:
        return None

    def each(row: Row) -> float | None:
        tokens, episodes = (number(row, "summary", name) for name in ("sampled_tokens", "episodes"))
        return tokens / episodes if tokens is not None and episodes else None

    mean = _series("mean", record.train, [_iteration], each, "orange", mark="circle")
    caption = "What training episodes sampled" + (", and what the schedule allowed." if limits else ".")
    return _lines("Tokens", caption, "sampled tokens an episode", [*limits, mean])


def _allowed(record: Record, budget: str) -> list[dict[str, Any]]:
    """What a schedule allowed, as steps: a series for each difficulty where these differ."""
    train = [r for r in record.train if horizons(r, budget)]
    names = list(dict.fromkeys(d for r in train for d in horizons(r, budget)))
    alike = all(len(set(horizons(r, budget).values())) == 1 for r in train)
    series = []
    for i, name in enumerate(names[:1] if alike else names[:3]):
        read = lambda r, n=name: (  # noqa: E731
            next(iter(horizons(r, budget).values()), None) if alike else horizons(r, budget).get(n)
        )
        label = {"horizon": "horizon", "tokens": "limit"}[budget] + ("" if alike or not name else f", {name}")
        series.append(_series(label, train, [_iteration], read, "ink", dash=("", "6 3", "2 3")[i], step=True))
    return series


def _difficulty(record: Record) -> Figure | None:
    held_out = any(numbers(r, "summary", "by_difficulty", d) for r in record.learning for d in DIFFICULTIES)
    rows = record.learning if held_out else record.train
    series = [
        _series(d, rows, [_iteration], _get("summary", "by_difficulty", d, "success"), hue, mark=mark)
        for d, (hue, mark) in _MARKS.items()
    ]
    where = "Held-out" if held_out else "Training"
    return _lines("Success by difficulty", f"{where} tasks.", "success", series, share=True)


def _distance(record: Record) -> Figure | None:
    """Success of the start and of the newest policy by goal distance, where tasks know it and differ in it."""
    series = []
    for (name, hue, mark), row in zip(_ENDS, record.ends, strict=True):
        points = _by_range(row or {})
        if len(points) > 1:
            series.append(_series(name, points, [_get("d")], _get("share"), hue, mark=mark))
    caption = "Held-out tasks by the fewest actions that do them, the answer included; many distances stand in ranges."
    return _lines("Success by distance", caption, "success", series, axes=["goal distance"], share=True)


def _by_range(row: Row) -> list[dict[str, float]]:
    """Success at each goal distance, or in each half of an octave where there are more than a dozen: few tasks have one
    and the same."""
    success, episodes = (grouped(row, "by_distance", what) for what in ("success", "episodes"))
    groups: dict[float, list[str]] = {}
    for d in sorted((d for d in success if episodes.get(d)), key=float):
        groups.setdefault(round(2 * math.log2(float(d))) if len(success) > 12 else float(d), []).append(d)
    mean = lambda inside, value: sum(episodes[d] * value(d) for d in inside) / sum(episodes[d] for d in inside)  # noqa: E731
    return [{"d": mean(inside, float), "share": mean(inside, success.__getitem__)} for inside in groups.values()]


def _tasks(record: Record) -> Figure | None:
    """Success by source: the sites of language agents, the test tasks of control."""
    rows = record.learning
    names = dict.fromkeys(name for r in rows for name in successes(r, "by_source"))
    series = [
        _series(name, rows, [_iteration], lambda r, n=name: successes(r, "by_source").get(n), hue, mark=mark)
        for name, (hue, mark) in zip(names, itertools.cycle(HUES), strict=False)
    ]
    return _lines(
        "Success by task",
        "By where held-out tasks come from: a site, a maze task, a puzzle.",
        "success",
        series,
        share=True,
    )


def _strategies(record: Record) -> Figure | None:
    """Success under each test-time strategy of the run, where there are several; see `_checks` for check-again."""
    names = [name for name in record.strategies if not _CHECKS.fullmatch(name)]
    series = [
        _series(name.replace("_", " "), record.learning_under(name), [_iteration], _success, hue, mark=mark)
        for name, (hue, mark) in zip(names, itertools.cycle(HUES), strict=False)
    ]
    caption = "Held-out success by what is done at test time."
    return _lines("Success by strategy", caption, "success", series, share=True) if len(series) > 1 else None


def _in_trials(record: Record) -> list[Figure | None]:
    """What the episodes of a trial earn by their place in it, at the run's end: of the policy, and of whatever plays in
    its place. And regret, where it is measured, added up over them."""
    rows = {name: found[-1] for name in record.strategies if (found := record.learning_under(name))}
    whose = "Held-out trials at the end, weights fixed; the policy, and what is played in its place"
    return [
        _by_place(rows, "reward", "Learning inside a context", f"What each episode earns. {whose}.", "return"),
        _by_place(
            rows, "regret", "Regret inside a context", f"Added up over the episodes. {whose}.", "regret so far", True
        ),
    ]


def _by_place(rows: Mapping[str, Row], of: str, title: str, caption: str, y: str, added: bool = False) -> Figure | None:
    """A measure of trials (`reward@1`, `reward@2` and so on) by the place of an episode, with 95 % intervals."""
    series = [
        _series(
            name.replace("_", " "),
            _places(row, of, added),
            [_get("place")],
            _get("mean"),
            hue,
            mark=mark,
            band=(lambda place: (place["lo"], place["hi"])) if k < BANDS else None,
        )
        for k, ((name, row), (hue, mark)) in enumerate(zip(rows.items(), itertools.cycle(HUES), strict=False))
    ]
    return _lines(title, caption, y, series, axes=["episode in one context"], free=True)


def _places(row: Row, of: str, added: bool) -> list[dict[str, float]]:
    """Of each place in a trial, the mean over tasks and its interval; nothing where a row has less than two places."""
    found, columns = row.get("measures"), []
    while isinstance(found, Mapping) and isinstance(column := found.get(f"{of}@{len(columns) + 1}"), list):
        columns.append([number({"x": x}, "x") for x in column])
    tasks = [[x for x in values if x is not None] for values in zip(*columns, strict=False)]
    whole = [list(itertools.accumulate(t)) if added else t for t in tasks if len(t) == len(columns) > 1]
    places = [(k, values, mean_interval(values, seed=0)) for k, values in enumerate(zip(*whole, strict=True), 1)]
    return [{"place": k, "mean": statistics.fmean(values), "lo": lo, "hi": hi} for k, values, (lo, hi) in places]


def _roles(record: Record) -> Figure | None:
    """Success of training episodes by what the sampler made them for, where it made several kinds."""
    names = dict.fromkeys(name for r in record.train for name in successes(r, "by_role"))
    series = [
        _series(
            name.replace("_", " ") or "plain",
            record.train,
            [_iteration],
            lambda r, n=name: successes(r, "by_role").get(n),
            hue,
            mark=mark,
        )
        for name, (hue, mark) in zip(names, itertools.cycle(HUES), strict=False)
    ]
    caption = "Training episodes by what the sampler made them for."
    return _lines("Success by role", caption, "success", series, share=True)


def _trouble(record: Record) -> Figure | None:
    series = [
        _series("time-outs", record.train, [_iteration], _measure("timeouts"), "vermilion", mark="circle"),
        _series("invalid", record.train, [_iteration], _measure("invalid"), "purple", mark="square"),
    ]
    title, caption = "Time-outs", "Training: share of episodes cut by a budget."
    if series[1]["points"]:
        title = "Time-outs and invalid actions"
        caption = f"{caption[:-1]}, share of turns whose action could not be parsed."
    return _lines(title, caption, "share", series, share=True)


def _loss(record: Record) -> Figure | None:
    return _metrics(record, "Loss", "Mean training loss of each iteration.", "loss", ("loss", "imitation"))


def _values(record: Record) -> Figure | None:
    return _metrics(
        record,
        "Values",
        "What critics say of the states and actions that they are trained on: mean of each iteration.",
        "value",
        ("q", "v", "target"),
    )


def _ways(record: Record) -> Figure | None:
    """How values go along shortest ways, where these are known."""

    def mean(key: str) -> Read:
        return lambda row: number({key: measured(row, key)}, key)

    named = (("order", "values rise", "blue", "circle"), ("sign", "ahead is better", "green", "square"))
    series = [_series(name, record.learning, [_iteration], mean(key), hue, mark=mark) for key, name, hue, mark in named]
    caption = (
        "Share of the steps from cell to cell by which values of states rise, and of the cells in which the action "
        "along the way is scored higher than the opposite one; half is chance."
    )
    return _lines("Values along shortest ways", caption, "share", series, share=True)


def _metrics(record: Record, title: str, caption: str, y: str, kinds: Sequence[str]) -> Figure | None:
    """Training metrics whose name ends in one of `kinds`, such as `loss`, `q_loss` and `level_0.q_loss`."""
    names = [n for n in dict.fromkeys(k for r in record.train for k in r) if re.split(r"[._]", n)[-1] in kinds]
    series = [
        _series(name.replace("_", " ").replace(".", ": "), record.train, [_iteration], _get(name), hue, mark=mark)
        for name, (hue, mark) in zip(names, itertools.cycle(HUES), strict=False)
    ]
    return _lines(title, caption, y, series, free=True)


def _checks(record: Record) -> Figure | None:
    """Success of the newest evaluations against the answers it takes until one counts: 1 is direct, k check-again."""
    kinds: dict[tuple[str, str], dict[int, Row]] = {}
    direct = {}
    for row in record.evals:
        if row.get("strategy") == "direct":
            direct[str(row.get("policy"))] = row
        found = _CHECKS.fullmatch(str(row.get("strategy")))
        if found and len(found[1]) < 4:
            kinds.setdefault((str(row.get("policy")), found[2]), {})[int(found[1])] = row
    series = []
    for (policy, suffix), rows in list(kinds.items())[:4]:
        if policy in direct:
            rows[1] = direct[policy]
        ordered = [{**rows[n], "checks": n} for n in sorted(rows)]
        look = ("blue", "circle") if policy == "agent" else ("orange", "square")
        label = (policy + suffix).replace("_", " ")
        series.append(_series(label, ordered, [_get("checks")], _success, *look, band=interval))
    return _lines(
        "Checking again before answering",
        "Held-out success when an answer counts only after it was given several times, and the page came back in "
        "between (1: direct).",
        "success",
        series,
        axes=["answers until one counts"],
        share=True,
    )


def _shares(record: Record, key: str, title: str, caption: str, x: str) -> Figure | None:
    """Grouped bars of a histogram before and after training."""
    first, last = record.ends
    if first is None and last is None and record.train:
        first, last = record.train[0], record.train[-1] if len(record.train) > 1 else None
        caption = caption.replace("held-out", "training")
    sides = [("before", numbers(first, "summary", key), "grey"), ("after", numbers(last, "summary", key), "blue")]
    sides = [(name, counts, hue) for name, counts, hue in sides if sum(counts.values()) > 0]
    if not sides:
        return None
    newest = sides[-1][1]
    names = sorted({n for _, counts, _ in sides for n in counts}, key=lambda n: (-newest.get(n, 0), n))[:12]
    return {
        "kind": "bars",
        "title": title,
        "caption": caption,
        "x": x,
        "categories": [n.replace("_", " ") for n in names],
        "series": [
            {
                "name": side,
                "hue": hue,
                "counts": [counts.get(n, 0) for n in names],
                "values": [counts.get(n, 0) / sum(counts.values()) for n in names],
            }
            for side, counts, hue in sides
        ],
    }


def _lines(
    title: str,
    caption: str,
    y: str,
    series: Iterable[Figure],
    axes: Sequence[str] = ("iteration",),
    rules: Sequence[Figure] = (),
    share: bool = False,
    free: bool = False,
    wide: bool = False,
) -> Figure | None:
    """A figure of lines; None where no series has a point. `share`: at most 1; `free`: the y axis need not show 0."""
    kept = [s for s in series if s["points"]]
    if not kept:
        return None
    return {
        "kind": "lines",
        "title": title,
        "caption": caption,
        "y": y,
        "axes": list(axes),
        "series": kept,
        "rules": list(rules),
        "share": share,
        "free": free,
        "wide": wide,
    }


def _series(
    name: str,
    rows: Sequence[Row],
    along: Sequence[Read],
    read: Read,
    hue: str,
    mark: str = "",
    dash: str = "",
    step: bool = False,
    band: Callable[[Row], tuple[float, float] | None] | None = None,
) -> Figure:
    found = []
    for row in rows:
        x, y = [read_x(row) for read_x in along], read(row)
        if y is None or all(v is None for v in x):
            continue
        lo, hi = (band(row) if band else None) or (None, None)
        found.append({"x": x, "y": y, "lo": lo, "hi": hi})
    kept = thinned(found, MOST_POINTS)
    return {"name": name[:60], "hue": hue, "mark": mark, "dash": dash, "step": step, "points": kept}


def _get(*path: str) -> Read:
    return lambda row: number(row, *path)


def _measure(key: str) -> Read:
    return lambda row: measure(row, key)


_iteration, _success = _get("iteration"), _measure("success")
