"""The live view of a training run, in a terminal or as lines.

What always holds: `Live` never slows training (a call stores a reference; drawing happens on a thread, four times a
second) and never raises over what a row holds or lacks. Without a terminal every row is one line of ASCII.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from longstride.core.plain import plain
from longstride.core.task import DIFFICULTIES
from longstride.report.rows import (
    TRAINED,
    Row,
    counts_returns,
    horizon_text,
    interval,
    measure,
    number,
    points,
    returns,
    short,
    successes,
)

REFRESHES = 4
"""Drawings a second."""
COMPUTED = 3
"""Measures of an exact experiment that are shown."""
_BLOCKS, _PLAIN = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588", "_.-=+*%#"


class Live:
    """A training listener: `live(row)` for each metrics row, `live.progress(phase, done, total)` while it works."""

    def __init__(self, name: str, iterations: int, console: Console | None = None) -> None:
        self._name, self._iterations = plain(name), iterations
        self._console = console or Console()
        self._screen: Screen | None = None
        self._train: list[Row] = []
        self._held_out: list[Row] = []
        self._start: Row = {}
        self._cloned: Row = {}
        self._strategy: object = None
        self._phase: tuple[str, int, int] = ("starting", 0, 0)
        self._spent, self._since = 0.0, time.monotonic()

    def __enter__(self) -> "Live":
        self._since = time.monotonic()
        if self._console.is_terminal:
            screen = Screen(get_renderable=self._view, refresh_per_second=REFRESHES, console=self._console)
            screen.start()
            self._screen = screen
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen:
            self._screen.stop()

    def __call__(self, row: Row) -> None:
        """Takes a metrics row of any completeness, and shows it."""
        self._take(row)
        if not self._screen:
            self._console.print(Text(self._line(row)), soft_wrap=True)

    def goes_on(self, rows: Iterable[Row]) -> None:
        """Takes the rows of what is resumed, so that what follows is set beside them, and shows none."""
        for row in rows:
            self._take(row)

    def _take(self, row: Row) -> None:
        if (seconds := number(row, "seconds")) is not None:
            self._spent, self._since = seconds, time.monotonic()
        main = self._is_main(row)
        if row.get("kind") == "train":
            self._train.append(row)
        elif row.get("kind") == "cloning":
            self._cloned = row
        elif main and row.get("policy") == "warm_start":
            self._start = row
        elif main and row.get("policy") == "agent":
            self._held_out.append(row)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Tells how far the current phase (`rollout`, `train`, `eval`) is."""
        self._phase = (phase, done, total)

    def _is_main(self, row: Row) -> bool:
        """Whether a row evaluates the policy that is trained under the run's first strategy."""
        if row.get("kind") != "eval" or row.get("policy") not in TRAINED:
            return False
        if self._strategy is None:
            self._strategy = row.get("strategy", "direct")
        return row.get("strategy", "direct") == self._strategy

    def _loss(self, phase: str) -> list[str]:
        """What cloning has come to, while it goes on."""
        loss = number(self._cloned, "loss")
        return [f"loss {loss:.4g}"] if phase == "cloning" and loss is not None else []

    def _seconds(self) -> float:
        return self._spent + time.monotonic() - self._since

    def _left(self) -> float | None:
        """Seconds to go at the pace of the last three iterations (a growing horizon makes the first ones too cheap)."""
        marks = [
            (i, s)
            for r in [{"iteration": 0, "seconds": 0}, *self._train[-4:]]
            if (i := number(r, "iteration")) is not None and (s := number(r, "seconds")) is not None
        ]
        first, last = marks[1 if len(marks) > 4 else 0], marks[-1]
        if last[0] <= first[0]:
            return None
        pace = (last[1] - first[1]) / (last[0] - first[0])
        return max(0.0, pace * (self._iterations - last[0]) - (time.monotonic() - self._since))

    def _change(self, row: Row) -> str:
        if row.get("policy") != "agent":
            return ""
        if self._counts_returns:
            a, b = returns(self._start), returns(row)
            return f"{fmean(b) - fmean(a):+.4g} against the warm start" if a and b else ""
        start, now = number(self._start, "summary", "success"), measure(row, "success")
        return "" if start is None or now is None else f"{points(start, now)} against the warm start"

    @property
    def _counts_returns(self) -> bool:
        """Whether nothing was a success so far and returns were measured: then these are told."""
        return counts_returns([self._start, *self._held_out], self._train)

    def _line(self, row: Row) -> str:
        """A row as one line; what is missing is left out."""
        parts = [f"{self._name} {_show(number(row, 'iteration'), 0)}/{self._iterations}", str(row.get("kind", "row"))]
        if row.get("kind") == "eval":
            parts.append(f"{row.get('policy', 'agent')} {row.get('strategy', 'direct')}")
        elif row.get("kind") == "beside":
            parts.append(f"{row.get('tasks')} {row.get('policy')}")
        if "horizon" in row:
            parts.append(f"horizon {horizon_text(row)}")
        for label, key, digits in (
            ("success", "success", 2),
            ("supported", "supported", 2),
            ("length", "length", 1),
            ("timeouts", "timeouts", 2),
            ("invalid", "invalid", 2),
        ):
            if key == "success" and self._counts_returns:
                continue
            if (value := measure(row, key)) is not None:
                parts.append(f"{label} {value:.{digits}f}")
                if key == "success" and (ends := interval(row)):
                    parts[-1] += f" [{ends[0]:.2f}, {ends[1]:.2f}]"
        if found := returns(row):
            parts.append(f"return {fmean(found):.4g}")
        parts += _computed(row)
        if self._is_main(row) and (change := self._change(row)):
            parts.append(change)
        parts += _cloning(row)
        if (loss := number(row, "loss")) is not None:
            parts.append(f"loss {loss:.4g}")
        if (updates := number(row, "updates")) is not None:
            parts.append(f"{short(updates)} updates")
        if (speed := number(row, "tokens_per_second")) is not None:
            parts.append(f"{short(speed)} tok/s")
        parts.append(f"{_clock(self._seconds())} spent")
        if row.get("kind") == "train" and (left := self._left()) is not None:
            parts.append(f"{_clock(left)} left")
        return "  ".join(" ".join(plain(part).split()).encode("ascii", "replace").decode() for part in parts)

    def _view(self) -> RenderableType:
        train, held_out = self._train[-1] if self._train else {}, self._held_out[-1] if self._held_out else self._start
        done = number(train or held_out, "iteration") or 0
        left = self._left()
        computed = _computed(held_out)
        head = Text.assemble((self._name, "bold"), f"   iteration {done:.0f}/{self._iterations}")
        clock = f"{_clock(self._seconds())} spent" + (f", {_clock(left)} left" if left is not None else "")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=12)
        if computed:
            grid.add_row("computed", Text("   ".join(computed)))
        else:
            head.append(f"   horizon {horizon_text(train)}")
            self._add_measures(grid, train, held_out)
        grid.add_row("time", Text(clock))
        phase, at, total = self._phase
        bar = Table.grid(padding=(0, 2))
        bar.add_column(style="dim", min_width=12)
        bar.add_row(
            Text(phase),
            ProgressBar(total=max(total, 1), completed=at, width=32),
            Text("  ".join([f"{at}/{total}" if total else "", *self._loss(phase)])),
        )
        return Group(head, grid, bar)

    def _add_measures(self, grid: Table, train: Row, held_out: Row) -> None:
        """Rows of what episodes came to."""
        if self._counts_returns:
            mean_return = f"{fmean(returns(held_out) or [0.0]):.4g}"
            grid.add_row("return", Text("  ".join(filter(None, (mean_return, self._change(held_out))))))
        else:
            grid.add_row("held-out", self._success([self._start, *self._held_out], held_out))
            grid.add_row("training", self._success(self._train, train))
            if parts := self._parts(held_out) or self._parts(train):
                grid.add_row("parts", Text("   ".join(parts)))
        played = held_out if number(train, "summary", "episodes") == 0 else train

        def mean(key: str, digits: int) -> str:
            return _show(measure(played, key), digits)

        grid.add_row("length", Text(f"{mean('length', 1)} steps, successes {mean('length_success', 1)}"))
        invalid = "" if measure(played, "invalid") is None else f"   invalid {mean('invalid', 2)}"
        grid.add_row("time-outs", Text(mean("timeouts", 2) + invalid))
        if (speed := number(train, "tokens_per_second")) is not None:
            grid.add_row("speed", Text(f"{short(speed)} tokens/s"))
        if (updates := number(train, "updates")) is not None:
            grid.add_row("updates", Text(short(updates)))

    def _success(self, rows: Sequence[Row], newest: Row) -> Text:
        values = [v for r in rows if (v := measure(r, "success")) is not None]
        if not values:
            return Text("-")
        text = Text.assemble((f"{values[-1]:.2f}", "bold"), "  ", (self._spark(values[-24:]), "cyan"))
        if ends := interval(newest):
            text.append(f"  [{ends[0]:.2f}, {ends[1]:.2f}]", "dim")
        if newest.get("kind") == "eval" and (change := self._change(newest)):
            text.append(f"  {change}", "green" if change.startswith("+") else "red")
        return text

    def _parts(self, row: Row) -> list[str]:
        """Success by difficulty, or by task where there is none."""
        found = {d: v for d in DIFFICULTIES if (v := number(row, "summary", "by_difficulty", d, "success")) is not None}
        return [f"{plain(name)} {share:.2f}" for name, share in (found or successes(row, "by_source")).items()]

    def _spark(self, values: Sequence[float]) -> str:
        """Shares in [0, 1] as one character each."""
        levels = _PLAIN if self._console.options.ascii_only else _BLOCKS
        return "".join(levels[min(len(levels) - 1, max(0, int(v * len(levels))))] for v in values)


def _cloning(row: Row) -> list[str]:
    """How far cloning is, and its own rate."""
    step, steps, examples = (number(row, name) for name in ("step", "steps", "examples"))
    if row.get("kind") != "cloning" or step is None or steps is None:
        return []
    return [f"step {step:.0f}/{steps:.0f}", f"{examples or 0:.0f} examples", f"lr {number(row, 'lr') or 0.0:.2g}"]


def _computed(row: Row) -> list[str]:
    """What an exact experiment measured, which has no episodes: the first few of its measures."""
    found = row.get("measures")
    if "summary" in row or not isinstance(found, Mapping):
        return []
    firsts = ((name, number({"x": v[0]}, "x") if isinstance(v, list) and v else None) for name, v in found.items())
    return [f"{plain(name)} {value:.4g}" for name, value in firsts if value is not None][:COMPUTED]


def _show(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
