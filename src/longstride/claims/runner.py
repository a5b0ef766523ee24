"""Claims: a paper's effect at laptop scale, with its expected ordering written down before the run.

What always holds: all arms of a seed start from one warm start and are evaluated on the same held-out tasks with the
same seeds, so every effect is paired by task and seed; the verdict follows from `stats.Ordering` alone; an
interrupted claim goes on where it stopped and gives the numbers of one that was not. A null result is a result and is
written down like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from longstride.claims.claim import SPENT, Claim
from longstride.claims.curves import all_curves, check_evaluated, matched, paired_values
from longstride.claims.frozen import check_runs, frozen_at
from longstride.claims.judging import judge
from longstride.claims.kept import differences, read_kept, write_kept
from longstride.claims.pilot import check_pilot, run_pilot
from longstride.claims.tuning import Tuned, arm_run, check_seeds, tune, tune_whole
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.lock import held
from longstride.core.provenance import clean, commit
from longstride.core.sealed import DamagedError, read_object, write_object
from longstride.models.load import load_policy
from longstride.rollout.summary import HORIZONS
from longstride.run.checkpoint import FIRST, open_checkpoint
from longstride.run.evaluation import evaluate_policy
from longstride.run.listener import Listener, Silent
from longstride.run.many import train_all
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe
from longstride.stats import mean_interval
from longstride.strategies import Direct
from longstride.strategies.check_again import CheckAgain

CHECKS = (1, 2, 3, 4)
"""Times that an answer has to be given: TTI's direct, double, triple and fourth check (figure of section 3)."""
EXPLORED = ".explored"
"""Behind the name of a result that is of other seeds than the claim's own."""


def run_claim(
    claim: Claim,
    folder: Path,
    seeds: Sequence[int] | None = None,
    watch: Callable[[str], Listener] | None = None,
    jobs: int = 1,
    place: Path | None = None,
    called: str = "",
) -> dict[str, Any]:
    """Runs what of a claim has not been run yet, and judges it. Arms are tuned first, where that is not frozen.

    Args:
        claim: what is claimed.
        folder: runs stand in `folder/NAME/ARM-SEED`, the result in `folder/NAME.json`.
        seeds: instead of the claim's own; at least two. The result is one of another name, `NAME.explored`.
        watch: by `ARM, seed N`, whoever takes the rows of that run (see `Experiment.train`); with several jobs, when
            it has ended.
        jobs: runs at a time, each in a process of its own with an equal share of the cores.
        place: where the claim is frozen (see `claims.frozen`); where a history can hold that, it has to be, before a
            seed of its own is run.
        called: what the command line calls it, where that is not its name.

    Returns:
        What `NAME.json` holds: `name`, `paper`, `statement`, `measure`, `along` (where the claim has it), `ordering`,
        `control`, `recipe`, `arms` (by `ARM`, and by `ARM@STRATEGY` for all but the first strategy: `changes` from the
        recipe, by measure the final value with its interval over seeds and by seed, what was spent by seed), `seeds`,
        `effects`, `control_effects`, `reported` (relation, mean, lo, hi, gap, verdict), `matched`, `check_again`,
        `design` (how it is held to be fair), `tuned` (by arm, see `claims.tuning`), `frozen` (its hash, and the commit
        that holds it; None), `pilot` (None), `costs` (by expected relation, by which share its sides' differ),
        `verdict`, `because` (what forbids a better one), `commit`, `clean` (whether the code was that
        commit's), `command`, `seconds`.

    Raises:
        ConfigError: before anything is run: fewer than two seeds, a strategy that an arm is not evaluated under, checks
            of answers where none are given, seeds that are unspent and not frozen, or a frozen result that this one
            would replace; after the runs: a measure that none has, or a run that is evaluated too seldom to be read at
            equal cost.
        RunError: see `Experiment.train`; another process runs this claim; a run was begun before it was frozen.
    """
    with held(folder / claim.name):
        frozen = frozen_at(claim, place) if seeds is None and place else None
        if frozen and place:
            check_runs(claim, folder / claim.name, frozen["commit"], place)
        name = claim.name if seeds is None else f"{claim.name}{EXPLORED}"
        _check_replaced(folder / f"{name}.json", frozen)
        result = _run_claim(claim, folder, seeds, watch, jobs, frozen)
        result |= {"name": name, "command": f"longstride claim {called or claim.name}"}
        return write_kept(folder / f"{name}.json", result)


def _check_replaced(kept: Path, frozen: Mapping[str, Any] | None) -> None:
    """Refuses to write over a frozen result with another one."""
    was = read_kept(kept).get("frozen") if kept.exists() else None
    if was and (not frozen or frozen["hash"] != was["hash"]):
        raise ConfigError(
            f"{kept} keeps the result of what was frozen as {was['hash'][:12]}, and the claim is another one now: give "
            "it another name and other seeds, or move that file away"
        )


def _run_claim(
    claim: Claim,
    folder: Path,
    seeds: Sequence[int] | None,
    watch: Callable[[str], Listener] | None,
    jobs: int,
    frozen: dict[str, Any] | None,
) -> dict[str, Any]:
    seeds = tuple(claim.seeds if seeds is None else seeds)
    if len(set(seeds)) < 2:
        raise ConfigError(f"a claim needs at least two different seeds to say anything, got {list(seeds)}")
    if claim.check_again and not isinstance(claim.recipe, Recipe):
        raise ConfigError(f"check_again is for language agents, and {claim.name} is about others: leave it out")
    home = folder / claim.name
    for arm, _, under in (side.partition("@") for relation in claim.relations for side in relation[:2]):
        strategies = claim.arms[arm].strategies
        for name in claim.ways.get(under, [under] if under else []):
            if name not in (others := strategies if under in claim.ways else strategies[1:]):
                raise ConfigError(f"{arm}@{under}: {unknown('strategy', name, others)}")
    check_evaluated(claim)
    origin = {"commit": commit(), "clean": clean()}

    def named(run: str) -> Listener:
        return watch(run) if watch else Silent()

    tuned: Tuned = frozen["tuned"] if frozen else tune(claim, home, named, jobs)
    sides = {home / f"{arm}-{seed}": (arm, seed) for seed in seeds for arm in claim.arms}
    runs = {run: arm_run(claim, arm, tuned[arm]["chosen"], seed) for run, (arm, seed) in sides.items()}
    train_all(runs, lambda run: named("{}, seed {}".format(*sides[run])), jobs)
    curves = all_curves({run: arm for run, (arm, _) in sides.items()}, claim)
    checks = [_check_again(home / f"{claim.check_again}-{seed}") for seed in seeds] if claim.check_again else []

    final = {measure: paired_values(curves, measure) for measure in claim.measures}
    result = {
        "paper": claim.paper,
        "statement": claim.statement,
        "measure": claim.measure,
        **({"along": claim.along} if claim.along else {}),
        **judge(claim, curves, tuned, seeds),
        "ordering": list(claim.expected.relations),
        "control": list(claim.control.relations) if claim.control else [],
        "recipe": claim.recipe.as_data(),
        "seeds": list(seeds),
        "matched": matched(claim.expected.relations, claim.measure, curves),
        "design": claim.design,
        "frozen": {"hash": frozen["hash"], "commit": frozen["commit"]} if frozen else None,
        "pilot": frozen["pilot"] if frozen else None,
        "tuned": tuned,
        "check_again": checks,
        "arms": {
            side: _arm(
                claim.changes(side.partition("@")[0]), by_seed, {m: of[side] for m, of in final.items() if side in of}
            )
            for side, by_seed in curves.items()
        },
        **origin,
        "seconds": sum(seed_curve[-1]["seconds"] for arm in claim.arms for seed_curve in curves[arm]),
    }
    return result


def prepare(
    claim: Claim, folder: Path, watch: Callable[[str], Listener] | None = None, jobs: int = 1
) -> tuple[Tuned, dict[str, Any]]:
    """Tunes the arms of a claim and runs its pilot, on tuning seeds alone: what comes before it is frozen. As
    `run_claim`.

    Returns:
        What was tuned, and what the pilot says (see `claims.pilot`).

    Raises:
        ConfigError: see `tune` and `run_pilot`.
        RunError: see `Experiment.train`; another process runs this claim.
    """

    def named(run: str) -> Listener:
        return watch(run) if watch else Silent()

    check_pilot(claim)
    with held(home := folder / claim.name):
        check_seeds(claim)
        check_evaluated(claim)
        tuned = tune(claim, home, named, jobs)
        return tuned, run_pilot(claim, tuned, home, named, jobs)


def check_tuning(
    claim: Claim, path: Path, folder: Path, watch: Callable[[str], Listener] | None = None, jobs: int = 1
) -> dict[str, Any]:
    """Tries the weaker sides of the result in `path`, whose tuning was shorter than their runs, at full length beside
    the settings that they entered with (see `claims.tuning.tune_whole`), and keeps it in `folder/NAME.json` with what
    came. Only tuning seeds are run. The result is no longer shown where a rival gains too much (see `claims.standard`).

    Args:
        claim: of the result, as it stands.
        path: of the result.
        folder: as in `run_claim`.
        watch: by the name of its folder, whoever takes the rows of a run.
        jobs: runs at a time.

    Returns:
        The result, with `whole` under `tuned` of each weaker side.

    Raises:
        ConfigError: the claim is another one than that of the result, or its tuning is no shorter.
        RunError: see `Experiment.train`; the result is damaged; another process runs this claim.
    """
    result = read_kept(path)
    if changed := differences(claim, result):
        raise ConfigError(f"{path} is of an earlier form of {claim.name}, which has otherwise: {changed[0]}")
    if not claim.tuning:
        raise ConfigError(f"the arms of {claim.name} were tuned at their full length, so there is nothing to check")
    with held(home := folder / claim.name):
        whole = tune_whole(
            claim, claim.weaker, home, result["tuned"], lambda run: watch(run) if watch else Silent(), jobs
        )
    tuned = {arm: of | ({"whole": whole[arm]} if arm in whole else {}) for arm, of in result["tuned"].items()}
    return write_kept(folder / f"{claim.name}.json", result | {"tuned": tuned})


def _arm(
    changes: Mapping[str, Any], by_seed: list[list[dict[str, Any]]], final: dict[str, np.ndarray]
) -> dict[str, Any]:
    measures, horizons = {}, [curve[-1]["horizons"] for curve in by_seed]
    for measure, values_ST in final.items():
        values = [float(v) for v in values_ST.mean(axis=1)]
        interval = list(mean_interval(values, seed=0))
        measures[measure] = {"value": float(values_ST.mean()), "interval": interval, "by_seed": values}
    return {
        "changes": dict(changes),
        "measures": measures,
        "horizons": {name: fmean(h[name] for h in horizons) for name in HORIZONS if all(name in h for h in horizons)},
        **{spent: [curve[-1][spent] for curve in by_seed] for spent in SPENT},
    }


def _check_again(run: Path) -> dict[str, list[dict[str, float]]]:
    """Success and length of the warm start and of the final policy with 1 to 4 checks; kept in the run folder."""
    path = run / "check_again.json"
    if path.exists():
        try:
            return read_object(path)
        except (OSError, DamagedError) as e:
            raise RunError(f"{path} cannot be read: {e}; remove it, and it is made again") from e
    recipe, agent = load_run(run)
    start = load_policy(str(open_checkpoint(run / "checkpoints" / FIRST).folder), recipe.chat, agent.device)
    policies = {"warm_start": start, "agent": agent}
    result: dict[str, list[dict[str, float]]] = {}
    for name, policy in policies.items():
        result[name] = []
        for checks in CHECKS:
            strategy = Direct() if checks == 1 else CheckAgain(checks=checks)
            summary = evaluate_policy(policy, recipe, strategy=strategy).summary
            result[name].append({"checks": checks, "success": summary["success"], "length": summary["length"]})
    write_object(path, result)
    return result
