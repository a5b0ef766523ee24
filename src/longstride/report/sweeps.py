"""What the runs of a sweep came to, a row for each combination of settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longstride.core.component import unknown
from longstride.core.errors import RunError
from longstride.report.curves import flat, measured
from longstride.report.rows import read_record
from longstride.report.tables import table
from longstride.stats import mean_interval


def summary(folders: Sequence[Path], keys: Sequence[str], measure: str) -> dict[str, Any]:
    """The last evaluation of each run, by combination.

    Args:
        folders: run folders of finished runs.
        keys: the settings that were swept.
        measure: what is shown.

    Returns:
        `measure`, `keys`, and `rows`: `settings`, `values` by seed, `mean`, and `interval` over seeds (None for one).

    Raises:
        RunError: a run has no such measure.
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for folder in folders:
        record = read_record(folder)
        last = record.learning[-1] if record.learning else {}
        if (value := measured(last, measure)) is None:
            known = [*(last.get("measures") or {}), *(last.get("summary") or {})]
            raise RunError(f"{folder}: {unknown('measure', measure, known)}")
        groups.setdefault(tuple(_setting(record.recipe, key) for key in keys), []).append(value)
    rows = [
        {
            "settings": dict(zip(keys, settings, strict=True)),
            "values": values,
            "mean": sum(values) / len(values),
            "interval": mean_interval(values, seed=0) if len(values) > 1 else None,
        }
        for settings, values in groups.items()
    ]
    return {"measure": measure, "keys": list(keys), "rows": rows}


def _setting(recipe: Mapping[str, Any], key: str) -> str:
    """A setting by its dotted key; one that is a table by all that is in it."""
    found = {
        name.removeprefix(key).lstrip("."): str(value)
        for name, value in flat(recipe)
        if name == key or name.startswith(f"{key}.")
    }
    return found.get("") or ",".join(f"{name}={value}" for name, value in found.items()) or "-"


def as_text(found: dict[str, Any]) -> str:
    """What `summary` found, as a table."""
    rows = [[*found["keys"], "seeds", found["measure"], "95 %"]]
    for row in found["rows"]:
        ends = row["interval"]
        rows.append(
            [
                *row["settings"].values(),
                str(len(row["values"])),
                f"{row['mean']:.4g}",
                f"{ends[0]:.4g} to {ends[1]:.4g}" if ends else "-",
            ]
        )
    return table(rows)
