"""Reading metrics rows and run folders that may be incomplete.

What always holds: a missing key, a value of another type or a number that is not finite reads as None; a line cut short
by a crash is skipped and becomes a sentence in `Record.notes`; a missing folder is an error, and so is a recipe that is
not what was written. Nothing here writes.
"""

import math
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.sealed import DamagedError, cut, dumps, loads, place_of
from longstride.core.task import DIFFICULTIES
from longstride.run.experiment import RUN_FILE, check_run_folder, counted
from longstride.strategies.baselines import BASELINES

Row = Mapping[str, Any]
T = TypeVar("T")
TRAINED = ("warm_start", "agent")
MODULE = "module "
"""Before the name of a module of the user's own, in `Record.code`."""
DATA = "file "
"""Before the place of a setting that names a file, there."""


def number(row: Any, *path: str) -> float | None:
    """The finite number under the keys of `path`, or None."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    if isinstance(row, bool) or not isinstance(row, int | float):
        return None
    try:
        value = float(row)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def measure(row: Any, key: str) -> float | None:
    """A measure of the row's summary; None where it is a mean of nothing, which a summary gives as 0, and where
    `supported` says no more than `success`."""
    success, value = number(row, "summary", "success"), number(row, "summary", key)
    if number(row, "summary", "episodes") == 0 or key == "length_success" and success == 0:
        return None
    return None if key == "supported" and value == success else value


def numbers(row: Any, *path: str) -> dict[str, float]:
    """The finite numbers of the mapping under `path`, by name; empty where there is none."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    if not isinstance(row, Mapping):
        return {}
    return {str(k): v for k in row if (v := number(row, k)) is not None}


def horizons(row: Row, budget: str = "horizon") -> dict[str, float]:
    """Turns (or, by `budget`, `tokens`) by difficulty, in the order easy, medium, hard; under "" where a row gives one
    number for all."""
    one = number(row, budget)
    if one is not None:
        return {"": one}
    found = numbers(row, budget)
    known = [d for d in DIFFICULTIES if d in found]
    return {d: found[d] for d in (*known, *(d for d in found if d not in known))}


def horizon_text(row: Row) -> str:
    """`8`, or `4/8/12` where difficulties differ; `-` where nothing is known."""
    turns = list(horizons(row).values())
    return "/".join(f"{t:.0f}" for t in (turns[:1] if len(set(turns)) == 1 else turns)) or "-"


def successes(row: Row, by: str) -> dict[str, float]:
    """Success by name in a grouping of the row's summary: `by_source` (a task, or where it comes from), `by_role`."""
    return grouped(row, by, "success")


def grouped(row: Row, by: str, what: str) -> dict[str, float]:
    """A number by name in a grouping of the row's summary."""
    summary = row.get("summary")
    found = summary.get(by) if isinstance(summary, Mapping) else None
    names = found if isinstance(found, Mapping) else {}
    return {str(k): v for k in names if (v := number(names, k, what)) is not None}


def interval(row: Row) -> tuple[float, float] | None:
    """The interval of a row's success, low end first."""
    ends = row.get("interval")
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    low, high = number({"x": ends[0]}, "x"), number({"x": ends[1]}, "x")
    return None if low is None or high is None else (min(low, high), max(low, high))


def short(value: float) -> str:
    """`812`, `6.1k`, `61k`, `1.2M`: a count for a sentence."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.{1 if abs(value) < 10 * size else 0}f}{unit}"
    return f"{value:.0f}"


def returns(row: Any) -> list[float]:
    """Sums of rewards of an evaluation's episodes, where these are measured."""
    measures = row.get("measures") if isinstance(row, Mapping) else None
    found = measures.get("return") if isinstance(measures, Mapping) else None
    values = [number({"x": x}, "x") for x in found] if isinstance(found, list) else []
    return [v for v in values if v is not None] if None not in values else []


def counts_returns(evaluations: Sequence[Row], train: Sequence[Row]) -> bool:
    """Whether returns are all that was measured: nothing was ever a success."""
    ever = any(number(r, "summary", "success") for r in (*evaluations, *train))
    return any(returns(r) for r in evaluations) and not ever


def thinned(curve: Sequence[T], most: int) -> Sequence[T]:
    """So many entries at most, evenly spaced, the first and the last among them."""
    n = len(curve)
    return curve if n <= most else [curve[round(k * (n - 1) / (most - 1))] for k in range(most)]


def points(before: float, after: float) -> str:
    """The change of a share in percentage points: `+31 points`. What floats lose in the difference decides no half."""
    return f"{round(round(100 * (after - before), 6)):+d} points"


def embed(data: Any) -> str:
    """JSON that cannot end the script element it stands in, nor open a tag or a comment."""
    text = dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@dataclass
class Record:
    """What a run folder holds, as far as it can be read."""

    name: str
    code: dict[str, Any] = field(default_factory=dict)
    """The version and the commit that wrote it, and the files of the user's own modules, as far as it says."""
    recipe_text: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """One sentence for each thing that is missing or damaged."""
    tasks: list[str] | None = None
    """Ids of the tasks that its measures are of, where they stand there: in files of episodes."""

    @property
    def train(self) -> list[dict[str, Any]]:
        """Training rows, one an iteration (the newest where a row came twice), in order."""
        return _one_each([r for r in self.rows if r.get("kind") == "train"])

    @property
    def evals(self) -> list[dict[str, Any]]:
        """Evaluation rows as they came."""
        return [r for r in self.rows if r.get("kind") == "eval"]

    @property
    def beside(self) -> list[dict[str, Any]]:
        """Evaluations on other tasks than the run's own, as they came."""
        return [r for r in self.rows if r.get("kind") == "beside"]

    @property
    def data(self) -> dict[str, Any]:
        """What is said of the offline data; empty where there is none."""
        return next((r for r in self.rows if r.get("kind") == "data"), {})

    @property
    def counts_returns(self) -> bool:
        """Whether `counts_returns` of its evaluations and iterations."""
        return counts_returns(self.learning, self.train)

    @property
    def strategy(self) -> object:
        """The run's first test-time strategy: the one that its learning curve is made of."""
        return next((r.get("strategy") for r in self.evals if r.get("policy") in TRAINED), "direct")

    @property
    def strategies(self) -> list[str]:
        """All test-time strategies, the run's first one first."""
        return list(dict.fromkeys(str(r.get("strategy")) for r in self.evals if r.get("policy") in TRAINED))

    def curve(self, policy: str, strategy: object = None) -> list[dict[str, Any]]:
        """Evaluations of one policy, one an iteration, in order: of a trained one under the run's first strategy where
        no other is named."""
        rows, strategy = [r for r in self.evals if r.get("policy") == policy], strategy or self.strategy
        return _one_each([r for r in rows if policy in BASELINES or r.get("strategy") == strategy])

    @property
    def learning(self) -> list[dict[str, Any]]:
        """`learning_under` the run's first strategy."""
        return self.learning_under(self.strategy)

    def learning_under(self, strategy: object) -> list[dict[str, Any]]:
        """The agent's held-out evaluations, opened by the warm start's (the agent before its first update)."""
        agent = self.curve("agent", strategy)
        if agent and number(agent[0], "iteration") == 0:
            return agent
        return [r for r in self.curve("warm_start", strategy)[:1] if number(r, "iteration") == 0] + agent

    @property
    def ends(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The evaluations to compare: the start's, or what was kept of an evaluation alone; and the agent's last after
        training. None where there is none."""
        agent = [r for r in self.curve("agent") if measure(r, "success") is not None]
        start = [r for r in self.curve("warm_start") if measure(r, "success") is not None]
        first = next((r for r in [*start, *agent] if self.trained_nothing or not number(r, "iteration")), None)
        last = agent[-1] if agent and agent[-1] is not first and number(agent[-1], "iteration") else None
        return first, last

    @property
    def has_trajectories(self) -> bool:
        """Whether it is a run of a language agent, whose episodes can be read step by step."""
        return self.recipe.get("type", "recipe") == "recipe"

    @property
    def measured(self) -> dict[str, list[tuple[float, float]]]:
        """For a problem whose answer is known: of each measure, (iteration, value); of each law by its name, for laws
        that are held to runs."""
        found: dict[str, list[tuple[float, float]]] = {}
        for row in self.evals:
            at, measures = number(row, "iteration"), row.get("measures")
            if at is None or "summary" in row or not isinstance(measures, Mapping):
                continue
            law = f" by {row['strategy']}" if len(self.strategies) > 1 else ""
            for name, values in measures.items():
                value = number({"x": values[0]}, "x") if isinstance(values, list) and values else None
                if value is not None:
                    found.setdefault(f"{name}{law}", []).append((at, value))
        return found

    @property
    def trained_nothing(self) -> bool:
        """Whether it is an evaluation alone, which was kept."""
        return not self.train and bool(self.curve("agent"))

    @property
    def model(self) -> str:
        """What it starts from."""
        model = self.recipe.get("model", "-")
        return str(model.get("name", "-") if isinstance(model, Mapping) else model)

    @property
    def planned(self) -> float | None:
        """Iterations that the recipe asks for, where it is known: its own, or those of its phases."""
        phases = self.recipe.get("phases")
        if not isinstance(phases, list):
            return number(self.recipe, "iterations")
        return sum(number(phase, "iterations") or 0.0 for phase in phases)

    @property
    def last_iteration(self) -> int:
        return int(max((number(r, "iteration") or 0 for r in self.rows), default=0))


def read_record(run: Path) -> Record:
    """Reads a run folder, also one that has no recipe or no rows yet.

    Raises:
        RunError: there is no such folder; it is of another format; `format.json` or `run.toml` is damaged.
    """
    if not run.is_dir():
        raise RunError(f"expected a run folder, found none at {run}; name the folder that `longstride train` wrote")
    record = Record(name=run.resolve().name)
    path = run / RUN_FILE
    if path.exists():
        said = check_run_folder(run)
        record.code = {key: said[key] for key in ("longstride", "commit") if key in said}
        for what, before in (("modules", MODULE), ("files", DATA)):
            known: Any = said.get(what)
            for name, of in known.items() if isinstance(known, Mapping) else ():
                if isinstance(of, Mapping):
                    record.code[f"{before}{name}"] = str(of.get("sha256"))[:12]
        record.recipe_text = path.read_text(encoding="utf-8")
        try:
            record.recipe = tomllib.loads(record.recipe_text)
        except (ValueError, RecursionError) as e:  # a number of 5,000 digits is a ValueError
            raise RunError(f"{path} cannot be read: not TOML: {e}") from e
    else:
        record.notes.append(f"There is no {RUN_FILE}: the recipe is not known.")
    if isinstance(record.recipe.get("name"), str):
        record.name = record.recipe["name"]
    if not (run / "metrics.jsonl").is_file():
        record.notes.append("There is no metrics.jsonl: nothing was measured yet.")
    bad = []
    for k, line in enumerate(cut(content(run / "metrics.jsonl"))):
        try:
            record.rows.append(loads(line, place_of(k)))
        except DamagedError:
            bad.append(k + 1)
    damage = [left_out("metrics.jsonl", bad)] if bad else []
    if (missing := counted(run, "rows") - len(record.rows) - len(bad)) > 0:
        damage.append(f"metrics.jsonl has lost its last {missing} rows.")
    for note in damage:
        warnings.warn(f"{run}: {note}", LongstrideWarning, stacklevel=2)
    record.notes += damage
    return record


def content(path: Path) -> bytes:
    """The content of a file; nothing where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def left_out(name: str, bad: list[int]) -> str:
    """The sentence about lines that are not what was written there."""
    named = ", ".join(map(str, bad[:10])) + ", ..." * (len(bad) > 10)
    return f"{name}: line{'s' * (len(bad) > 1)} {named} could not be read and {'were' if bad[1:] else 'was'} left out."


def _one_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    newest = {it: r for r in rows if (it := number(r, "iteration")) is not None}
    return [newest[it] for it in sorted(newest)]
