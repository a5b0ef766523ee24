"""Claims: a paper's effect at laptop scale, with its expected ordering written down before the run.

What always holds: all arms of a seed start from one warm start and are evaluated on the same held-out tasks with the
same seeds, so every effect is paired by task and seed; the verdict follows from `stats.Ordering` alone; an
interrupted claim goes on where it stopped and gives the numbers of one that was not. A null result is a result and is
written down like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longstride.claims.claim import SPENT, Claim, nested
from longstride.claims.curves import Curves, all_curves, at_equal_cost, costs_differ, matched, paired_values
from longstride.claims.frozen import check_runs, frozen_at
from longstride.claims.kept import differences, read_kept, write_kept
from longstride.claims.pilot import run_pilot
from longstride.claims.tuning import Tuned, tune
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.lock import held
from longstride.core.provenance import clean, commit
from longstride.core.sealed import DamagedError, read_object, write_object
from longstride.models.load import load_policy
from longstride.run.checkpoint import FIRST, open_checkpoint
from longstride.run.evaluation import evaluate_policy
from longstride.run.listener import Listener, Silent
from longstride.run.many import train_all
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe
from longstride.stats import Effect, Finding, Judgement, Ordering, mean_interval, overall
from longstride.strategies import Direct
from longstride.strategies.check_again import CheckAgain

COSTS = 0.05
"""Share by which the costs of two arms may differ."""
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
    place: Path | None = None,
) -> dict[str, Any]:
    """Runs what of a claim has not been run yet, and judges it. Arms are tuned first, where that is not frozen.

    Args:
        claim: what is claimed.
        folder: runs stand in `folder/NAME/ARM-SEED`, the result in `folder/NAME.json`.
        seeds: instead of the claim's own; at least two.
        watch: by `ARM, seed N`, whoever takes the rows of that run (see `Experiment.train`); with several jobs, when
            it has ended.
        jobs: runs at a time, each in a process of its own with an equal share of the processor's threads.
        place: where the claim is frozen (see `claims.frozen`); where a history can hold that, it has to be, before a
            seed of its own is run.

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
            of answers where none are given, or seeds that are unspent and not frozen; after the runs: a measure that
            none has, or a run that is evaluated too seldom to be read at equal cost.
        RunError: see `Experiment.train`; another process runs this claim; a run was begun before it was frozen.
    """
    with held(folder / claim.name):
        frozen = frozen_at(claim, place) if seeds is None and place else None
        if frozen and place:
            runs = (folder / claim.name / f"{arm}-{seed}" for arm in claim.arms for seed in claim.seeds)
            check_runs(runs, frozen["commit"], place)
        return _run_claim(claim, folder, seeds, watch, jobs, frozen)


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
    for arm, _, strategy in (side.partition("@") for relation in claim.relations for side in relation[:2]):
        run = claim.arms[arm]
        others = [s.name for s in run.evaluation.strategies[1:]] if isinstance(run, Recipe) else []
        if strategy and strategy not in others:
            raise ConfigError(f"{arm}@{strategy}: {unknown('strategy', strategy, others)}")
    origin = {"commit": commit(), "clean": clean()}

    def named(run: str) -> Listener:
        return watch(run) if watch else Silent()

    tuned: Tuned = frozen["tuned"] if frozen else tune(claim, home, named, jobs)
    arms = {arm: recipe.replace(**nested(tuned[arm]["chosen"])) for arm, recipe in claim.arms.items()}
    sides = {home / f"{arm}-{seed}": (arm, seed) for seed in seeds for arm in arms}
    runs = {run: arms[arm].replace(seed=seed) for run, (arm, seed) in sides.items()}
    train_all(runs, lambda run: named("{}, seed {}".format(*sides[run])), jobs)
    curves = all_curves({run: arm for run, (arm, _) in sides.items()}, claim.measures)
    checks = [_check_again(home / f"{claim.check_again}-{seed}") for seed in seeds] if claim.check_again else []

    final = {measure: paired_values(curves, measure) for measure in claim.measures}
    findings, controls, reported = (
        _judge(of, claim, final, curves) for of in (claim.expected, claim.control, claim.reported)
    )
    costs = _costs(claim, curves)
    verdict, because = _held(verdict_of(findings, controls), claim, tuned, costs)
    result = {
        "name": claim.name,
        "paper": claim.paper,
        "statement": claim.statement,
        "measure": claim.measure,
        **({"along": claim.along} if claim.along else {}),
        "verdict": verdict,
        "because": because,
        "ordering": list(claim.expected.relations),
        "control": list(claim.control.relations) if claim.control else [],
        "recipe": claim.recipe.as_data(),
        "seeds": list(seeds),
        "effects": [_effect(f) for f in findings],
        "control_effects": [_effect(f) for f in controls],
        "reported": [_effect(f) for f in reported],
        "matched": matched(claim.expected.relations, claim.measure, curves),
        "design": claim.design,
        "costs": costs,
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
        "command": f"longstride claim {claim.name}",
        "seconds": sum(seed_curve[-1]["seconds"] for arm in claim.arms for seed_curve in curves[arm]),
    }
    return write_kept(folder / f"{claim.name}.json", result)


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

    with held(home := folder / claim.name):
        tuned = tune(claim, home, named, jobs)
        return tuned, run_pilot(claim, tuned, home, named, jobs)


def _judge(
    of: Ordering | None, claim: Claim, final: Mapping[str, Mapping[str, np.ndarray]], curves: Curves
) -> list[Finding]:
    """What the runs say to some relations, at the end or at equal cost."""
    if of is None or not claim.equal_cost:
        return of.judge(final, claim.measure, seed=0) if of else []
    findings = []
    for text, relation in zip(of.relations, of.parsed, strict=True):
        measure = relation.measure or claim.measure
        at = {measure: at_equal_cost(relation, measure, claim.cost, curves)}
        findings += Ordering(relations=(text,)).judge(at, measure, seed=0)
    return findings


def _costs(claim: Claim, curves: Curves) -> dict[str, float]:
    """By which share the costs of the two sides of each expected relation differ; empty where no cost is named."""
    relations = zip(claim.expected.relations, claim.expected.parsed, strict=True) if claim.cost else ()
    return {text: costs_differ(relation, claim.cost, curves) for text, relation in relations}


def _held(verdict: Judgement, claim: Claim, tuned: Tuned, costs: Mapping[str, float]) -> tuple[Judgement, list[str]]:
    """The verdict that the standard allows, and what forbids a better one: nothing is judged at unequal cost, and an
    effect over an arm that could be tuned further is none."""
    unequal = [
        f"{text}: {claim.cost} differ by {100 * share:.0f} %"
        for text, share in costs.items()
        if share > COSTS and not claim.equal_cost
    ]
    weaker = dict.fromkeys(relation.worse.partition("@")[0] for relation in claim.expected.parsed)
    ends = [
        f"{arm} is at its best at an end of the grid, {key}={tuned[arm]['chosen'][key]}"
        for arm in weaker
        for key in tuned[arm]["ends"]
    ]
    if unequal or (ends and verdict == "reproduced"):
        return "undecided", [*unequal, *ends]
    return verdict, []


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


def _effect(finding: Finding) -> dict[str, Any]:
    e = finding.effect
    interval = {"mean": e.mean, "lo": e.lo, "hi": e.hi}
    return {"relation": finding.relation, **interval, "gap": finding.gap, "verdict": finding.verdict}


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
