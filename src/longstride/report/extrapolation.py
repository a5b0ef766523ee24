"""The work of `run.extrapolation.Extrapolation`: experiments are run, laws are fitted to their first part, and held to
the rest."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from longstride.core.errors import ConfigError
from longstride.core.implementation import implements
from longstride.report.curves import Curve, curve_of
from longstride.report.fits import error_of, fit_curves, held_out, means_at, points_of
from longstride.report.rows import number, read_record
from longstride.run.experiment import Experiment
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.run.folder import RunFiles
from longstride.run.listener import Listener, Silent
from longstride.run.many import train_all
from longstride.run.placement import Placement
from longstride.scaling import FitError, Power


def planned(experiment: Extrapolation, folder: Path) -> dict[Path, tuple[str, Experiment]]:
    """The runs by their folders, each with its setting."""
    seeds = range(experiment.seed * experiment.seeds, (experiment.seed + 1) * experiment.seeds)
    return {
        folder / "runs" / f"{setting}-{seed}": (setting, run.replace(seed=seed))
        for setting, run in experiment.variants.items()
        for seed in seeds
    }


@implements(Extrapolation)
def train(
    experiment: Extrapolation,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> None:
    """See `Experiment.train`. Each law is a metrics row of kind `eval`, whose strategy is the law's name.

    Raises:
        ConfigError: it is to be placed elsewhere than in this process.
        RunError: as of its runs; or one of them has no such x or y.
    """
    if placement is not None:
        raise ConfigError(f"{experiment.name} runs in one process; leave out --cluster, and place its runs one by one")
    watch = listener or Silent()
    files = RunFiles(experiment, folder, watch, resume)
    if files.checkpoint is not None:
        return
    with files.undone_before_the_start(), files.explains_trouble():
        runs = planned(experiment, folder)
        train_all({place: run for place, (_, run) in runs.items()}, lambda _: watch, jobs=1)
        curves: dict[str, list[Curve]] = {}
        for place, (setting, _) in runs.items():
            curves.setdefault(setting, []).append(curve_of(place, experiment.x, experiment.y))
            last = read_record(place).rows[-1]
            files.episodes += int(number(last, "total_episodes") or 0)
            files.env_steps += int(number(last, "total_env_steps") or 0)
        files.iteration = experiment.iterations
        for name, reading in experiment.readings.items():
            found = read(reading, list(curves.values()))
            files.row(
                "eval",
                policy="agent",
                strategy=name,
                measures={measure: [value] for measure, value in found.items()},
            )
        files.keep(Path.mkdir, {}, {}, durable=False)


def read(reading: Reading, groups: Sequence[Sequence[Curve]]) -> dict[str, float]:
    """What a law foretells of curves, those of a group together: the measures of an `Extrapolation`.

    Raises:
        RunError: see `points_of`.
        ConfigError: nothing is held out.
    """
    found, ends, promised = [], [], []
    for curves in groups:
        points = points_of(reading.law or Power(), curves)
        x, most = points[:, -2], points[:, -2].max()
        early = x <= reading.until * most
        seen, later = points[early & (x >= reading.since * most)], points[~early]
        if not len(later) or not len(seen):
            raise ConfigError(f"{len(seen)} points are seen and {len(later)} held out: evaluate more often")
        stays = _stays(points[early], later)
        held, doubts = stays, True
        if reading.law is not None:
            try:
                fitted = fit_curves(reading.law, "", seen)
                held, doubts = held_out(fitted, later), bool(fitted.doubts)
            except FitError:
                pass
        came, predicted, low, high = held.T[-4:]
        found.append(
            {
                "error": error_of(held),
                "closer": error_of(stays) - error_of(held),
                "within": float(np.mean((low <= came) & (came <= high))),
                "refused": float(doubts and reading.law is not None),
            }
        )
        ends.append(float(came[-1]))
        promised.append(float(predicted[-1]))
    chosen = {"chosen": ends[int(np.argmax(promised))]} if len(groups) > 1 else {}
    return {name: fmean(of[name] for of in found) for name in found[0]} | {"reached": fmean(ends)} | chosen


def _stays(seen: np.ndarray, later: np.ndarray) -> np.ndarray:
    """What `held_out` would be if every run stayed at what was measured last."""
    last = {run: seen[seen[:, 0] == run][-1, -1] for run in np.unique(seen[:, 0])}
    stayed = np.column_stack([later[:, :-1], [last[run] for run in later[:, 0]]])
    return np.column_stack([means_at(later), *[means_at(stayed)[:, -1]] * 3])
