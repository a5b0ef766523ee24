"""`longstride claim`: runs a paper's effect at laptop scale and judges it; the result is kept under claims/."""

import argparse
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import print_json, program, say
from longstride.core.errors import ConfigError
from longstride.papers import catalogue

if TYPE_CHECKING:
    from longstride.claims.claim import Claim

FOLDER = Path("claims")


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("claim", help="check a paper's claim", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a claim from `longstride list`, a file with a CLAIM, or module:CLAIM"
    )
    parser.add_argument("--all", action="store_true", help="every claim")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N-1 for each arm (default: the claim's own)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)")
    parser.add_argument(
        "--pilot",
        action="store_true",
        help="tune arms, and say how many seeds the margin takes",
    )
    parser.add_argument(
        "--freeze",
        action="store_true",
        help="the same, and write the hash to commit before the claim is run",
    )
    parser.add_argument(
        "--judge", action="store_true", help="run nothing: judge what is kept by the relations that decide now"
    )
    parser.add_argument(
        "--check-tuning",
        action="store_true",
        help="run a kept result's weaker sides at full length beside their settings, where tuning was shorter",
    )
    parser.add_argument("--dry-run", action="store_true", help="run nothing: say how many runs each stage takes")
    parser.add_argument(
        "--estimate", action="store_true", help="the same, and train one iteration to say about how long it all takes"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object; progress goes to stderr")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs what has not been run yet; whatever the verdict, the exit code is 0."""
    if args.all == (args.name is not None):
        raise ConfigError("give the NAME of one claim from `longstride list`, or --all")
    alone = (args.pilot, args.freeze, args.judge, args.check_tuning, args.dry_run, args.estimate)
    if sum((*alone, args.seeds is not None)) > 1:
        raise ConfigError(
            "give one of --pilot, --freeze, --judge, --check-tuning, --dry-run, --estimate and --seeds: each of them "
            "is done alone"
        )
    if args.jobs < 1:
        raise ConfigError(f"--jobs is the number of runs at a time, at least 1; got {args.jobs}")
    names = [n for n, listed in catalogue().items() if listed.claim] if args.all else [args.name]

    from longstride.papers.naming import find_claim

    claims = [find_claim(name) for name in names]

    from rich.console import Console

    from longstride.claims.judging import judge_kept
    from longstride.claims.runner import check_tuning, run_claim
    from longstride.claims.standard import lacking, word
    from longstride.report.claims import judged, write_pages
    from longstride.report.live import Live

    seeds = None if args.seeds is None else range(args.seeds)
    results = []
    for name, claim in zip(names, claims, strict=True):

        def watch(run: str, claim: "Claim" = claim) -> Live:  # a line a row: a screen could show one run only
            arm = claim.arms[run.partition(",")[0]]
            return Live(f"{claim.name}: {run}:", arm.iterations, Console(stderr=True, force_terminal=False))

        try:
            if args.dry_run or args.estimate:
                results.append(_stages(claim, args))
                continue
            if args.pilot or args.freeze:
                results.append(_prepare(name, claim, watch, args))
                continue
            if args.judge:
                results.append(judge_kept(claim, _kept(name, claim), FOLDER))
            elif args.check_tuning:
                results.append(check_tuning(claim, _kept(name, claim), FOLDER, watch, args.jobs))
            else:
                results.append(run_claim(claim, FOLDER, seeds, watch, args.jobs, _place(name, claim), name))
            write_pages(FOLDER, results[-1])
        except KeyboardInterrupt:
            again = "--all" if args.all else shlex.quote(args.name)
            count = "" if args.seeds is None else f" --seeds {args.seeds}"
            count += " --pilot" * args.pilot + " --freeze" * args.freeze + " --estimate" * args.estimate
            count += " --check-tuning" * args.check_tuning
            jobs = "" if args.jobs == 1 else f" --jobs {args.jobs}"
            say(f"\nstopped; go on with:\n  {program()} claim {again}{count}{jobs}", file=sys.stderr)
            return 130
    if args.json:
        print_json({"claims": results} if args.all else results[0])
        return 0
    if args.pilot or args.freeze or args.dry_run or args.estimate:
        return 0
    for result in results:
        say(f"{result['name']}: {word(result)}\n  {result['statement']}\n  {result['paper']}")
        for relation, e, judgement in judged(result):
            say(f"  {relation}: {e['mean']:+.3f} [{e['lo']:+.3f}, {e['hi']:+.3f}] {judgement}")
        for reason in (*result.get("because", ()), *lacking(result)):
            say(f"  {reason}")
        say(f"  kept in {FOLDER / result['name']}.md")
    return 0


def _stages(claim: "Claim", args: argparse.Namespace) -> dict[str, Any]:
    """Says how many runs a claim takes, and about how long."""
    from longstride.claims.stages import hours, stages

    loads = stages(claim)
    if not args.json:
        say(f"{claim.name}: {claim.statement}")
        for stage, load in loads.items():
            say(f"  {stage}: {load.runs:,} runs, {load.iterations:,} iterations, {load.evaluations:,} evaluations")
    found: dict[str, Any] = {"name": claim.name} | {stage: asdict(load) for stage, load in loads.items()}
    if args.estimate:
        found["hours"] = float(f"{hours(claim):.2g}")
        if not args.json:
            say(f"  all together: about {found['hours']:g} hours of a core")
    return found


def _prepare(name: str, claim: "Claim", watch: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Tunes the arms of a claim and runs its pilot; writes what is frozen where that is asked for."""
    from longstride.claims.controls import learns_nothing
    from longstride.claims.frozen import check_unspent, freeze
    from longstride.claims.pilot import told
    from longstride.claims.runner import prepare

    if args.freeze:
        check_unspent(claim, _place(name, claim), FOLDER)
    tuned, pilot = prepare(claim, FOLDER, watch, args.jobs)
    found = {"name": claim.name, "tuned": tuned, "pilot": pilot}
    if args.freeze:
        found = freeze(claim, _place(name, claim), tuned, pilot)
    if args.json:
        return found
    say(f"{claim.name}: {told(pilot)}")
    for arm, of in tuned.items():
        chosen = ", ".join(f"{key}={value}" for key, value in of["chosen"].items()) or "not tuned"
        ends = f"; at an end of the grid: {', '.join(of['ends'])}" if of["ends"] else ""
        floor = f"; {said}" if (said := learns_nothing(claim.design, of["tried"])) else ""
        say(f"  {arm}: {chosen}{ends}{floor}")
    if args.freeze:
        say(f"  frozen in {_place(name, claim)}: commit that, then run the claim")
    return found


def _place(name: str, claim: "Claim") -> Path:
    """Where a claim is frozen: beside its kept result, or in the working folder."""
    from longstride.claims.frozen import SUFFIX

    listed = catalogue().get(name)
    if listed and listed.card and (file := sys.modules[listed.module].__file__):
        return Path(file).parent / "results" / f"{Path(file).stem}{SUFFIX}"
    return FOLDER / f"{claim.name}{SUFFIX}"


def _kept(name: str, claim: "Claim") -> Path:
    """Where the result of a claim is kept: in the working folder, or beside its recipe."""
    own, listed = FOLDER / f"{claim.name}.json", catalogue().get(name)
    path = own if own.exists() else listed and listed.result
    if path is None:
        raise ConfigError(f"nothing is kept of {claim.name} in {FOLDER}; run the claim first, without --judge")
    return path
