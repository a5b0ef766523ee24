"""How a claim is judged: what its runs say to its relations, and what the standard allows to conclude.

What always holds: a verdict follows from intervals and margins. What the standard asks for never makes it "reproduced":
without arms that were tuned far enough, a control that could have failed, most of the worlds it is not, and at unequal
cost or with few seeds nothing is decided.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.controls import dose_void, rise, void
from longstride.claims.curves import Curves, at_equal_cost, costs_differ, paired_values
from longstride.claims.kept import differences, read_kept, write_kept
from longstride.claims.tuning import Tuned
from longstride.claims.worlds import share_of_worlds, summary, world
from longstride.core.errors import ConfigError
from longstride.stats import Effect, Finding, Judgement, Ordering, Relation, overall
from longstride.stats.ordering import FEWEST

COSTS = 0.05
"""Share by which the costs of two arms may differ."""
LOWEST_FIRST: tuple[Judgement, ...] = ("not reproduced", "undecided", "reproduced")
"""Verdicts."""
Sides = Mapping[str, np.ndarray]
"""Values (seeds, tasks) by side, those of a relation among them."""


def judge(claim: Claim, curves: Curves, tuned: Tuned, seeds: Sequence[int]) -> dict[str, Any]:
    """What the runs of a claim say to it.

    Args:
        claim: what is claimed.
        curves: of its runs.
        tuned: how its arms were tuned.
        seeds: of the runs, in the order of the curves.

    Returns:
        `verdict`, `because` (what forbids a better one), `effects`, `control_effects`, `reported`, `dose`, `costs` of a
        kept result (see `claims.runner.run_claim`).

    Raises:
        ConfigError: a measure that none has, or a run that is evaluated too seldom to be read at equal cost.
    """
    final = {measure: paired_values(curves, measure) for measure in claim.measures}

    def sides(relation: Relation) -> Sides:
        measure = relation.measure or claim.measure
        return at_equal_cost(relation, measure, claim.cost, curves) if claim.equal_cost else final[measure]

    def found(of: Ordering | None) -> list[Finding]:
        return [_finding(text, claim.measure, sides) for text in (of.relations if of else ())]

    findings, controls, reported = found(claim.expected), found(claim.control), found(claim.reported)
    drawn = [world(claim.worlds, seed) for seed in seeds]
    effects = [_effect(f) for f in findings]
    for effect, relation in zip(effects, claim.expected.parsed, strict=True) if claim.worlds else ():
        constants = {key: [summary(of[key]) for of in drawn] for key in claim.worlds}
        by_world = _differences(sides(relation), relation).mean(axis=1)
        effect["worlds"] = share_of_worlds(by_world, relation.gap, constants)
    control_effects = [_effect(f) for f in controls]
    for effect, relation in zip(control_effects, claim.control.parsed if claim.control else (), strict=True):
        at = sides(relation)
        if effect["verdict"] == "reproduced":  # whatever room it had: the effect stays without its cause
            continue
        if reason := void(claim, relation, at[relation.better], at[relation.worse]):
            effect["void"] = reason
    doses = [Relation.of(text) for text in claim.dose]
    strengths = [_differences(sides(relation), relation) for relation in doses]
    if claim.equal_cost:  # tasks that failed are left out of each relation by itself
        strengths = [of.mean(axis=1, keepdims=True) for of in strengths]
    dose = rise(claim.dose, strengths) if doses else None
    if dose and (reason := dose_void(claim, [_means(sides(relation), relation) for relation in doses])):
        dose["void"] = reason
    costs = _costs(claim, curves)
    valid = [f for f, effect in zip(controls, control_effects, strict=True) if "void" not in effect]
    verdicts: list[Judgement] = [
        verdict_of(findings, valid),
        *(_of_worlds(effect) for effect in effects if "worlds" in effect),
    ]
    if dose and "void" not in dose:
        verdicts.append(dose["verdict"])
    verdict = min(verdicts, key=LOWEST_FIRST.index)
    few, unequal, untuned = _few_worlds(effects), _unequal(claim, costs), _at_ends(claim, tuned)
    scarce = [f"{len(seeds)} seeds, and fewer than {FEWEST} decide nothing"] if len(seeds) < FEWEST else []
    uncontrolled = _uncontrolled(valid, control_effects, dose)
    if unequal or scarce or (verdict == "reproduced" and (untuned or uncontrolled)):
        verdict = "undecided"
    return {
        "verdict": verdict,
        "because": [*unequal, *scarce, *few, *untuned, *uncontrolled] if verdict != "reproduced" else [],
        "effects": effects,
        "control_effects": control_effects,
        "reported": [_effect(f) for f in reported],
        **({"dose": dose} if dose else {}),
        "costs": costs,
    }


def verdict_of(findings: Sequence[Finding], controls: Sequence[Finding]) -> Judgement:
    """All relations must be reproduced, and no control: an effect that stays without its cause has another one."""
    verdict = overall(findings)
    against = {f.verdict for f in controls}
    if "reproduced" in against:
        return "not reproduced"
    return "undecided" if verdict == "reproduced" and "undecided" in against else verdict


def _uncontrolled(valid: Sequence[object], controls: Sequence[object], dose: Mapping[str, Any] | None) -> list[str]:
    """Where nothing could have shown that an effect has another cause."""
    if valid or (dose and "void" not in dose):
        return []
    if dose:
        return [f"the dose is void: {dose['void']}"]
    return ["every control is void" if controls else "it has no control"]


def _finding(text: str, measure: str, sides: Callable[[Relation], Sides]) -> Finding:
    relation = Relation.of(text)
    named = relation.measure or measure
    return Ordering(relations=(text,)).judge({named: sides(relation)}, named, seed=0)[0]


def _means(sides: Sides, relation: Relation) -> tuple[float, float]:
    return float(np.mean(sides[relation.better])), float(np.mean(sides[relation.worse]))


def _differences(sides: Sides, relation: Relation) -> np.ndarray:
    return sides[relation.better] - sides[relation.worse]


def _effect(finding: Finding) -> dict[str, Any]:
    e = finding.effect
    interval = {"mean": e.mean, "lo": e.lo, "hi": e.hi}
    return {"relation": finding.relation, **interval, "gap": finding.gap, "verdict": finding.verdict}


def _of_worlds(effect: Mapping[str, Any]) -> Judgement:
    """Whether a relation holds in most of the worlds; where there is one, nothing speaks against it."""
    if not (worlds := effect.get("worlds")):
        return "reproduced"
    return "reproduced" if worlds["lo"] > 0.5 else "not reproduced" if worlds["hi"] <= 0.5 else "undecided"


def _few_worlds(effects: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        "{} holds in {:.0f} % of the worlds [{:.0f}, {:.0f}]".format(
            effect["relation"], *(100 * effect["worlds"][name] for name in ("share", "lo", "hi"))
        )
        for effect in effects
        if _of_worlds(effect) != "reproduced"
    ]


def _costs(claim: Claim, curves: Curves) -> dict[str, float]:
    """By which share the costs of the two sides of each expected relation differ; empty where no cost is named."""
    relations = zip(claim.expected.relations, claim.expected.parsed, strict=True) if claim.cost else ()
    return {text: costs_differ(relation, claim.cost, curves) for text, relation in relations}


def _unequal(claim: Claim, costs: Mapping[str, float]) -> list[str]:
    """Where nothing can be judged: one side has spent more."""
    return [
        f"{text}: {claim.cost} differ by {100 * share:.0f} %"
        for text, share in costs.items()
        if share > COSTS and not claim.equal_cost
    ]


def _at_ends(claim: Claim, tuned: Tuned) -> list[str]:
    """Where an effect is over an arm that could be tuned further."""
    return [
        f"{arm} is at its best at an end of the grid, {key}={tuned[arm]['chosen'][key]}"
        for arm in claim.weaker
        for key in tuned[arm]["ends"]
    ]


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

    valid = [text for text in control if "void" not in kept[text] or kept[text]["verdict"] == "reproduced"]
    judged = [*result.get("judged", [result["verdict"]]), verdict_of(findings(expected), findings(valid))]
    dose, because = result.get("dose"), list(result.get("because", []))
    if chosen := [text for text in expected if text not in result["ordering"]]:
        judged.append("undecided")
        because += [f"{text} was only reported when the claim was run" for text in chosen]
    alike = dose is not None and list(claim.dose) == dose["relations"]
    means = [_kept_means(claim, result, text) for text in claim.dose] if alike else []
    if dose and means and (reason := dose_void(claim, means)):
        dose = dose | {"void": reason}
    if min(judged, key=LOWEST_FIRST.index) == "reproduced" and dose:
        because += _uncontrolled(valid, control, dose)
        judged += ["undecided"] if because else []
    found = {key: value for key, value in result.items() if key != "earlier"} | {
        "verdict": min(judged, key=LOWEST_FIRST.index),
        "judged": judged,
        "because": because,
        **({"dose": dose} if dose else {}),
        "statement": claim.statement,
        "ordering": expected,
        "control": control,
        "effects": [kept[text] for text in expected],
        "control_effects": [kept[text] for text in control],
        "reported": [kept[text] for text in reported],
    }
    earlier = differences(claim, found)
    return found | ({"earlier": earlier} if earlier else {})


def _kept_means(claim: Claim, result: Mapping[str, Any], text: str) -> tuple[float, float]:
    """Of both arms of a relation, over seeds."""
    relation = Relation.of(text)
    measure = relation.measure or claim.measure
    of = [result["arms"][side]["measures"][measure]["by_seed"] for side in (relation.better, relation.worse)]
    return float(np.mean(of[0])), float(np.mean(of[1]))
