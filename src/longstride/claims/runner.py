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

from longstride.claims.claim import Claim
from longstride.claims.kept import differences, read_kept, write_kept
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.lock import held
from longstride.core.provenance import clean, commit
from longstride.core.sealed import DamagedError, read_object, write_object
from longstride.models.load import load_policy
from longstride.run.checkpoint import FIRST, open_checkpoint
from longstride.run.evaluation import evaluate_policy
from longstride.run.folder import read_rows
from longstride.run.listener import Listener, Silent
from longstride.run.many import train_all
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe
from longstride.stats import Effect, Finding, Judgement, Relation, mean_interval, overall, paired_difference
from longstride.strategies import Direct
from longstride.strategies.check_again import CheckAgain

Curves = dict[str, list[list[dict[str, Any]]]]
"""Evaluations of each side of a relation, by seed."""
SPENT = ("env_steps", "sampled_tokens")
"""What arms are compared at equal amounts of."""
LOWEST_FIRST = ("not reproduced", "undecided", "reproduced")
"""Verdicts."""
CHECKS = (1, 2, 3, 4)
"""Times that an answer has to be given: TTI's direct, double, triple and fourth check (figure of section 3)."""


def run_claim(
    claim: Claim,
    folder: Path,
    seeds: Sequence[int] | None = None,
    watch: Callable[[str], Listener] | None = None,
    jobs: int = 1,
) -> dict[str, Any]:
    """Runs what of a claim has not been run yet, and judges it.

    Args:
        claim: what is claimed.
        folder: runs stand in `folder/NAME/ARM-SEED`, the result in `folder/NAME.json`.
        seeds: instead of the claim's own; at least two.
        watch: by `ARM, seed N`, whoever takes the rows of that run (see `Experiment.train`); with several jobs, when
            it has ended.
        jobs: runs at a time, each in a process of its own with an equal share of the processor's threads.

    Returns:
        What `NAME.json` holds: `name`, `paper`, `statement`, `measure`, `along` (where the claim has it), `ordering`,
        `control`, `recipe`, `arms` (by `ARM`, and by `ARM@STRATEGY` for all but the first strategy: `changes` from the
        recipe, by measure the final value with its interval over seeds and by seed, what was spent by seed), `seeds`,
        `effects`, `control_effects`, `reported` (relation, mean, lo, hi, gap, verdict), `matched`, `check_again`,
        `verdict`, `commit`, `clean` (whether the code was that commit's), `command`, `seconds`.

    Raises:
        ConfigError: before anything is run: fewer than two seeds, a strategy that an arm is not evaluated under,
            or checks of answers where none are given; after the runs: a measure that none has.
        RunError: see `Experiment.train`; another process runs this claim.
    """
    with held(folder / claim.name):
        return _run_claim(claim, folder, seeds, watch, jobs)


def _run_claim(
    claim: Claim, folder: Path, seeds: Sequence[int] | None, watch: Callable[[str], Listener] | None, jobs: int
) -> dict[str, Any]:
    seeds = tuple(claim.seeds if seeds is None else seeds)
    if len(set(seeds)) < 2:
        raise ConfigError(f"a claim needs at least two different seeds to say anything, got {list(seeds)}")
    if claim.check_again and not isinstance(claim.recipe, Recipe):
        raise ConfigError(f"check_again is for language agents, and {claim.name} is about others: leave it out")
    home = folder / claim.name
    runs = {(arm, seed): recipe.replace(seed=seed) for seed in seeds for arm, recipe in claim.arms.items()}
    for arm, _, strategy in (side.partition("@") for relation in claim.relations for side in relation[:2]):
        run = runs[arm, seeds[0]]
        others = [s.name for s in run.evaluation.strategies[1:]] if isinstance(run, Recipe) else []
        if strategy and strategy not in others:
            raise ConfigError(f"{arm}@{strategy}: {unknown('strategy', strategy, others)}")
    origin = {"commit": commit(), "clean": clean()}
    curves: Curves = {}
    folders = {home / f"{arm}-{seed}": (arm, seed) for arm, seed in runs}

    def watched(folder: Path) -> Listener:
        arm, seed = folders[folder]
        return watch(f"{arm}, seed {seed}") if watch else Silent()

    train_all({folder: runs[side] for folder, side in folders.items()}, watched, jobs)
    for arm, seed in runs:
        for side, curve in _curves(home / f"{arm}-{seed}", arm, claim.measures).items():
            curves.setdefault(side, []).append(curve)
    checks = [_check_again(home / f"{claim.check_again}-{seed}") for seed in seeds] if claim.check_again else []

    final = {measure: _paired_values(curves, measure) for measure in claim.measures}
    findings, controls, reported = (
        of.judge(final, claim.measure, seed=0) if of else [] for of in (claim.expected, claim.control, claim.reported)
    )
    result = {
        "name": claim.name,
        "paper": claim.paper,
        "statement": claim.statement,
        "measure": claim.measure,
        **({"along": claim.along} if claim.along else {}),
        "verdict": verdict_of(findings, controls),
        "ordering": list(claim.expected.relations),
        "control": list(claim.control.relations) if claim.control else [],
        "recipe": claim.recipe.as_data(),
        "seeds": list(seeds),
        "effects": [_effect(f) for f in findings],
        "control_effects": [_effect(f) for f in controls],
        "reported": [_effect(f) for f in reported],
        "matched": _all_matched(claim.expected.relations, claim.measure, curves),
        "check_again": checks,
        "arms": {
            side: _arm(
                claim.changes(side.partition("@")[0]), by_seed, {m: of[side] for m, of in final.items() if side in of}
            )
            for side, by_seed in curves.items()
        },
        **origin,
        "command": f"longstride claim {claim.name}",
        "seconds": sum(seed_curve[-1]["seconds"] for arm in claim.arms for seed_curve in curves[arm]),
    }
    return write_kept(folder / f"{claim.name}.json", result)


def verdict_of(findings: Sequence[Finding], controls: Sequence[Finding]) -> Judgement:
    """All relations must be reproduced, and no control: an effect that stays without its cause has another one."""
    verdict = overall(findings)
    against = {f.verdict for f in controls}
    if "reproduced" in against:
        return "not reproduced"
    return "undecided" if verdict == "reproduced" and "undecided" in against else verdict


def judge_kept(claim: Claim, path: Path, folder: Path) -> dict[str, Any]:
    """Judges the result of a claim in `path` by the relations that decide now, and keeps it in `folder/NAME.json`.
    Nothing is run: differences and intervals are those of the run. Relations that were chosen after the run can lower
    its verdict and never raise it.

    Returns:
        What `run_claim` does, with `judged` (every verdict, the first one first) and, where the claim has changed since
        then, `earlier`: in what (see `kept.differences`).

    Raises:
        ConfigError: nothing is kept of one of its relations.
        RunError: what is kept is damaged.
    """
    return write_kept(folder / f"{claim.name}.json", _judged_again(claim, read_kept(path)))


def _judged_again(claim: Claim, result: dict[str, Any]) -> dict[str, Any]:
    kept = {e["relation"]: e for part in ("effects", "control_effects", "reported") for e in result.get(part, [])}
    expected, control, reported = (
        list(of.relations) if of else [] for of in (claim.expected, claim.control, claim.reported)
    )
    for text in (*expected, *control, *reported):
        if text not in kept:
            raise ConfigError(f"{claim.name}: nothing is kept of {text!r}; run the claim again, without --judge")

    def findings(texts: Sequence[str]) -> list[Finding]:
        found = [kept[text] for text in texts]
        return [Finding(e["relation"], Effect(e["mean"], e["lo"], e["hi"]), e["gap"], e["verdict"]) for e in found]

    judged = [*result.get("judged", [result["verdict"]]), verdict_of(findings(expected), findings(control))]
    found = result | {
        "verdict": min(judged, key=LOWEST_FIRST.index),
        "judged": judged,
        "statement": claim.statement,
        "ordering": expected,
        "control": control,
        "effects": [kept[text] for text in expected],
        "control_effects": [kept[text] for text in control],
        "reported": [kept[text] for text in reported],
    }
    earlier = differences(claim, found)
    return found | ({"earlier": earlier} if earlier else {})


def _curves(run: Path, arm: str, measures: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The policy's evaluations in a finished run, the warm start's first: under the arm's name for the first strategy,
    as `ARM@STRATEGY` for every other one. `values` has what of the measures there is, by task."""
    try:
        curves: dict[str, list[dict[str, Any]]] = {}
        tokens, first = 0, None
        for row in read_rows(run / "metrics.jsonl"):
            if row["kind"] == "train":
                tokens += row["summary"].get("sampled_tokens", 0)
            if row["kind"] != "eval" or row["policy"] not in ("warm_start", "agent"):
                continue
            first = first or row["strategy"]
            curves.setdefault(arm if row["strategy"] == first else f"{arm}@{row['strategy']}", []).append(
                {
                    "iteration": row["iteration"],
                    "episodes": row["total_episodes"],
                    "env_steps": row["total_env_steps"],
                    "sampled_tokens": tokens,
                    "seconds": row["seconds"],
                    **{name: row["summary"][name] for name in ("success", "length", "timeouts") if "summary" in row},
                    "values": {m: row["measures"][m] for m in measures if m in row["measures"]},
                }
            )
        return curves
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunError(
            f"{run / 'metrics.jsonl'} cannot be read: {type(e).__name__}: {e}; delete {run} to run it anew"
        ) from e


def _value(point: dict[str, Any], measure: str) -> float:
    """The mean over tasks of a measure at a point of a curve."""
    if not (values := [v for v in point["values"][measure] if v is not None]):
        raise RunError(f"no task has {measure!r} after {point['iteration']} iterations; see `failed` in metrics.jsonl")
    return fmean(values)


def _paired_values(curves: Curves, measure: str) -> dict[str, np.ndarray]:
    """Final values (seeds, tasks) by side that has the measure. A task that failed anywhere is left out everywhere:
    pairs stay pairs."""
    last = {
        side: [curve[-1]["values"][measure] for curve in by_seed]
        for side, by_seed in curves.items()
        if all(measure in point["values"] for curve in by_seed for point in curve)
    }
    if not last:
        raise ConfigError(f"no evaluation has the measure {measure!r}; take one of `measures` in a run's metrics.jsonl")
    n = min(len(values) for by_seed in last.values() for values in by_seed)
    whole = [k for k in range(n) if all(v[k] is not None for by_seed in last.values() for v in by_seed)]
    if not whole:
        raise RunError("every held-out task failed in some run; see `failed` in their metrics.jsonl")
    return {side: np.array([[v[k] for k in whole] for v in by_seed], float) for side, by_seed in last.items()}


def _effect(finding: Finding) -> dict[str, Any]:
    e = finding.effect
    interval = {"mean": e.mean, "lo": e.lo, "hi": e.hi}
    return {"relation": finding.relation, **interval, "gap": finding.gap, "verdict": finding.verdict}


def _all_matched(relations: Sequence[str], measure: str, curves: Curves) -> list[dict[str, Any]]:
    """`_matched` for everything that all sides have spent some of."""
    return [
        _matched(text, measure, spent, curves)
        for text in relations
        for spent in SPENT
        if all(curve[-1][spent] for by_seed in curves.values() for curve in by_seed)
    ]


def _matched(text: str, measure: str, spent: str, curves: Curves) -> dict[str, Any]:
    """The two sides compared where both have spent as much as the thriftier one in all (curves interpolated).

    An iteration of a long horizon costs more steps than one of a short horizon, and probes cost tokens: equal
    iterations are not equal work.
    """
    better, worse, _, named = Relation.of(text)
    budgets, ours, theirs = [], [], []
    for a, b in zip(curves[better], curves[worse], strict=True):
        budgets.append(min(a[-1][spent], b[-1][spent]))
        for curve, out in ((a, ours), (b, theirs)):
            out.append(
                float(np.interp(budgets[-1], [p[spent] for p in curve], [_value(p, named or measure) for p in curve]))
            )
    e = paired_difference(ours, theirs, seed=0)
    return {
        "relation": text,
        "spent": spent,
        "budgets": budgets,
        "better": ours,
        "worse": theirs,
        "mean": e.mean,
        "lo": e.lo,
        "hi": e.hi,
    }


def _arm(
    changes: Mapping[str, Any], by_seed: list[list[dict[str, Any]]], final: dict[str, np.ndarray]
) -> dict[str, Any]:
    measures = {}
    for measure, values_ST in final.items():
        values = [float(v) for v in values_ST.mean(axis=1)]
        interval = list(mean_interval(values, seed=0))
        measures[measure] = {"value": float(values_ST.mean()), "interval": interval, "by_seed": values}
    return {
        "changes": dict(changes),
        "measures": measures,
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
