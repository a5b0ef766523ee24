"""Tuning: every arm of a claim is tried under every combination of its grid, on seeds that decide nothing, and enters
at its own best.

What always holds: arms are tuned alike, the weaker sides of what is expected first; of level settings the one nearer to
the middle of the grid is taken; all that was tried is kept, and that the best is at an end of the grid is said.
"""

from collections.abc import Callable, Iterable, Mapping
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
from longstride.run.extrapolation import Extrapolation
from longstride.run.listener import Listener
from longstride.run.many import train_all
from longstride.run.recipe import Recipe
from longstride.run.sweep import folder_name

CLOSE = 1e-9
"""Means that differ by less are level."""
Tuned = dict[str, dict[str, Any]]
"""By arm: `chosen` (changes by dotted setting), `tried` (changes and the mean of every combination), `ends` (settings
whose best is the first or the last number of the grid), `whole` (changes and the mean of what was tried at full length,
where tuning is shorter)."""


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
        patience = {"patience": run.iterations + 1}
        if isinstance(run, Extrapolation) and isinstance(run.run, Recipe):
            return run.replace(run=patience)
        return run.replace(**patience) if isinstance(run, Recipe) else run
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
    """Runs what of the grid has not been run yet, and chooses; nothing is run for an arm without a grid. Where tuning
    is shorter than the claim's runs, the sides of what is expected go on from there (`tune_whole`).

    Args:
        claim: whose arms are tuned.
        home: runs stand in `home/tuning` and `home/pilot`.
        watch: by the name of its folder, whoever takes the rows of a run.
        jobs: runs at a time.

    Raises:
        ConfigError: no arm has a setting of the grid; a value that does not fit; two settings of one name; a measure
            that there is not.
        RunError: see `Experiment.train`.
    """
    found = all_axes(claim)
    every = {
        arm: [dict(zip(found[arm], values, strict=True)) for values in product(*found[arm].values())]
        for arm in dict.fromkeys([*claim.weaker, *found])
        if found[arm]
    }
    tried = _tried(claim, home, every, False, watch, jobs)
    tuned: Tuned = {arm: {"chosen": {}, "tried": tried.get(arm, []), "ends": []} for arm in claim.arms}
    for arm in tried:
        _choose(claim, tuned[arm], tried[arm], found[arm])
    for arm, whole in tune_whole(claim, claim.sides, home, tuned, watch, jobs).items():
        _choose(claim, tuned[arm], whole, found[arm])
        tuned[arm]["whole"] = whole
    return tuned


def tune_whole(
    claim: Claim, arms: Iterable[str], home: Path, tuned: Tuned, watch: Callable[[str], Listener], jobs: int
) -> dict[str, list[list[Any]]]:
    """Tries arms at the length of the claim's own runs: each at its best, and at the neighbours of that in the grid,
    until none of them is better. What is best in a short run need not be in a long one.

    Args:
        claim: whose arms they are.
        arms: which.
        home: runs stand in `home/pilot`.
        tuned: how they were tuned so far.
        watch: by the name of its folder, whoever takes the rows of a run.
        jobs: runs at a time.

    Returns:
        By arm that has a grid, the changes and the mean of all that was tried; none where tuning is no shorter.

    Raises:
        RunError: see `Experiment.train`.
    """
    grids = {arm: axes(claim, arm) for arm in arms if claim.tuning and tuned[arm]["tried"]}
    whole: dict[str, list[list[Any]]] = {arm: [] for arm in grids}
    best = {arm: tuned[arm]["chosen"] for arm in grids}
    while missing := {
        arm: new for arm in grids if (new := _around(best[arm], grids[arm], [done for done, _ in whole[arm]]))
    }:
        for arm, more in _tried(claim, home, missing, True, watch, jobs).items():
            whole[arm] += more
            best[arm] = _best(whole[arm], grids[arm], claim.sign)
    return whole


def _around(
    at: dict[str, Any], grid: Mapping[str, tuple[Any, ...]], done: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A setting and its neighbours, one key a step up or down its values, without those that are done."""
    steps = ((key, of, of.index(at[key]) + step) for key, of in grid.items() for step in (-1, 1))
    beside = [at | {key: of[k]} for key, of, k in steps if 0 <= k < len(of)]
    return [changes for changes in (at, *beside) if changes not in done]


def _tried(
    claim: Claim,
    home: Path,
    settings: Mapping[str, list[dict[str, Any]]],
    whole: bool,
    watch: Callable[[str], Listener],
    jobs: int,
) -> dict[str, list[list[Any]]]:
    """By arm, each of its settings with the mean of what it came to on the tuning seeds."""
    runs = {}
    for arm, changes in ((arm, changes) for arm, of in settings.items() for changes in of):
        for seed in claim.tuning_seeds:
            place = tuning_folder(claim, home, arm, changes, seed, whole)
            if place in runs:
                raise ConfigError(
                    f"grid: two settings of {arm} would have one folder, {place.name}, in whose name every sign "
                    "but letters, digits and .,=+- is _; leave one of them out, or write it in another way"
                )
            runs[place] = arm, tuning_run(claim, arm, changes, seed, whole)
    train_all({place: run for place, (_, run) in runs.items()}, lambda place: watch(place.name), jobs)

    measure = claim.tuned_by or claim.measure
    ends = iter([value(read_curves(place, arm, [measure])[arm][-1], measure) for place, (arm, _) in runs.items()])
    return {
        arm: [[changes, float(f"{fmean(next(ends) for _ in claim.tuning_seeds):.{DIGITS}g}")] for changes in of]
        for arm, of in settings.items()
    }


def _choose(claim: Claim, of: dict[str, Any], tried: list[list[Any]], grid: Mapping[str, tuple[Any, ...]]) -> None:
    of["chosen"] = _best(tried, grid, claim.sign)
    of["ends"] = [key for key, at in of["chosen"].items() if _at_an_end(at, grid[key])]


def _best(tried: list[list[Any]], grid: Mapping[str, tuple[Any, ...]], sign: int) -> dict[str, Any]:
    """The changes with the best mean, and of those that are level the ones nearest to the middle of the grid. What is
    no number is worst."""
    worth = [float("-inf") if isnan(mean) else sign * mean for _, mean in tried]
    level = [changes for (changes, _), w in zip(tried, worth, strict=True) if w >= max(worth) - CLOSE]
    return min(level, key=lambda c: sum(abs(of.index(c[key]) / (len(of) - 1) - 0.5) for key, of in grid.items()))


def _at_an_end(chosen: Any, of: tuple[Any, ...]) -> bool:
    numbers = [value for value in of if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return not isinstance(chosen, bool) and chosen in numbers and chosen in (min(numbers), max(numbers))
