"""Tuning: every arm of a claim is tried under every combination of its grid, on seeds that decide nothing, and enters
at its own best.

What always holds: arms are tuned alike, the weaker sides of what is expected first; of level settings the one nearer to
the middle of the grid is taken; all that was tried is kept, and that the best is at an end of the grid is said.
"""

from collections.abc import Callable, Mapping
from itertools import product
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from longstride.claims.claim import Claim, nested, setting
from longstride.claims.curves import GAINED, read_curves, value
from longstride.claims.kept import DIGITS
from longstride.claims.worlds import world
from longstride.core.errors import ConfigError
from longstride.run.experiment import Experiment
from longstride.run.listener import Listener
from longstride.run.many import train_all
from longstride.run.recipe import Recipe
from longstride.run.sweep import folder_name

CLOSE = 1e-9
"""Means that differ by less are level."""
Tuned = dict[str, dict[str, Any]]
"""By arm: `chosen` (changes by dotted setting), `tried` (changes and the mean of every combination), `ends` (settings
whose best is the first or the last number of the grid)."""


def axes(claim: Claim, arm: str) -> dict[str, tuple[Any, ...]]:
    """What an arm is tuned over: the settings of the grid that are its own alone, and those that it has with the value
    that the recipe has, or with one of those that are tried."""
    ours, recipe = claim.arms[arm].as_data(), claim.recipe.as_data()
    found = {}
    for name, of in claim.grid.items():
        owner, _, key = name.rpartition(": ")
        value = setting(ours, key)
        shared = not owner and (value == setting(recipe, key) or value in of)
        if value is not None and (owner == arm or shared):
            found[key] = of
    return found


def all_axes(claim: Claim) -> dict[str, dict[str, tuple[Any, ...]]]:
    """What every arm is tuned over (`axes`).

    Raises:
        ConfigError: no arm has a setting of the grid.
    """
    found = {arm: axes(claim, arm) for arm in claim.arms}
    for name in claim.grid:
        owner, _, key = name.rpartition(": ")
        if not any(key in of for arm, of in found.items() if owner in ("", arm)):
            raise ConfigError(f"grid: no arm has {name} to be tuned; name it as `method.rate`, or `ARM: method.rate`")
    return found


def arm_run(claim: Claim, arm: str, changes: Mapping[str, Any], seed: int) -> Experiment:
    """The run of an arm with changes in the world of a seed. It is not given up: that an arm learns nothing is a
    result, and one whose episodes fail is refused where it is read.

    Raises:
        ConfigError: the arm refuses a change, or the world that the seed draws.
    """
    ours, recipe = claim.arms[arm].as_data(), claim.recipe.as_data()
    drawn = {key: of for key, of in world(claim.worlds, seed).items() if setting(ours, key) == setting(recipe, key)}
    try:
        run = claim.arms[arm].replace(**nested({**drawn, **changes, "seed": seed}))  # at once: each copy is checked
        return run.replace(patience=run.iterations + 1) if isinstance(run, Recipe) else run
    except ConfigError as e:
        drew = f", in the world that seed {seed} draws: {drawn}" if drawn else ""
        raise ConfigError(f"{arm}: {e}{drew}") from e


def check_seeds(claim: Claim) -> None:
    """Raises: ConfigError where an arm refuses what one of the claim's own seeds draws: before that is spent."""
    for seed in claim.seeds:
        for arm in claim.arms:
            arm_run(claim, arm, {}, seed)


def tuning_run(claim: Claim, arm: str, changes: Mapping[str, Any], seed: int, whole: bool) -> Experiment:
    """The run of an arm on a tuning seed, as long as the claim's own runs where it is `whole`. One that is not is
    evaluated at its end alone, or at its start too where it is chosen by what it gained."""
    run = arm_run(claim, arm, changes if whole else {**changes, **claim.tuning}, seed)
    if whole or not claim.tuning or not isinstance(run, Recipe):
        return run
    gained = (claim.tuned_by or claim.measure).startswith(GAINED)
    return run.replace(evaluation={"start": gained, "every": run.iterations})


def tuning_folder(claim: Claim, home: Path, arm: str, changes: Mapping[str, Any], seed: int, whole: bool) -> Path:
    """Where it stands: named by its settings, so that a grid that grows keeps what was run."""
    grid = axes(claim, arm)
    plain = (int, float, str, type(None))
    shown = {key: of if isinstance(of, plain) else grid[key].index(of) for key, of in changes.items()}
    name = folder_name(arm, *(f"{key.rpartition('.')[2]}={of}" for key, of in shown.items()), f"seed={seed}")
    return home / ("pilot" if whole and claim.tuning else "tuning") / name


def tune(claim: Claim, home: Path, watch: Callable[[str], Listener], jobs: int) -> Tuned:
    """Runs what of the grid has not been run yet, and chooses; nothing is run for an arm without a grid.

    Args:
        claim: whose arms are tuned.
        home: runs stand in `home/tuning`.
        watch: by the name of its folder, whoever takes the rows of a run.
        jobs: runs at a time.

    Raises:
        ConfigError: no arm has a setting of the grid; a value that does not fit; two settings of one name; a measure
            that there is not.
        RunError: see `Experiment.train`.
    """
    found = all_axes(claim)
    runs = {}
    for arm in dict.fromkeys([*claim.weaker, *found]):
        for values in product(*found[arm].values()) if found[arm] else ():
            changes = dict(zip(found[arm], values, strict=True))
            for seed in claim.tuning_seeds:
                place = tuning_folder(claim, home, arm, changes, seed, whole=False)
                if place in runs:
                    raise ConfigError(
                        f"grid: two settings of {arm} would have one folder, {place.name}, in whose name every sign "
                        "but letters, digits and .,=+- is _; leave one of them out, or write it in another way"
                    )
                runs[place] = arm, changes, tuning_run(claim, arm, changes, seed, whole=False)
    train_all({place: run for place, (*_, run) in runs.items()}, lambda place: watch(place.name), jobs)

    measure = claim.tuned_by or claim.measure
    tuned: Tuned = {arm: {"chosen": {}, "tried": [], "ends": []} for arm in claim.arms}
    for place, (arm, changes, _) in runs.items():
        tried = tuned[arm]["tried"]
        if not tried or tried[-1][0] != changes:
            tried.append([changes, []])
        tried[-1][1].append(value(read_curves(place, arm, [measure])[arm][-1], measure))
    for arm, of in tuned.items():
        if of["tried"]:
            of["tried"] = [[changes, float(f"{fmean(values):.{DIGITS}g}")] for changes, values in of["tried"]]
            of["chosen"] = _best(of["tried"], found[arm], -1 if claim.lower_is_better else 1)
            of["ends"] = [key for key, at in of["chosen"].items() if _at_an_end(at, found[arm][key])]
    return tuned


def _best(tried: list[list[Any]], grid: Mapping[str, tuple[Any, ...]], sign: int) -> dict[str, Any]:
    """The changes with the best mean, and of those that are level the ones nearest to the middle of the grid. What is
    no number is worst."""
    worth = [float("-inf") if isnan(mean) else sign * mean for _, mean in tried]
    level = [changes for (changes, _), w in zip(tried, worth, strict=True) if w >= max(worth) - CLOSE]
    return min(level, key=lambda c: sum(abs(of.index(c[key]) / (len(of) - 1) - 0.5) for key, of in grid.items()))


def _at_an_end(chosen: Any, of: tuple[Any, ...]) -> bool:
    numbers = [value for value in of if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return not isinstance(chosen, bool) and chosen in numbers and chosen in (min(numbers), max(numbers))
