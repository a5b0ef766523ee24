"""`longstride simulate`: the scheduler without a model, under laws of latency: what would running ahead bring?"""

import argparse
from typing import Any

from longstride.cli.common import print_json


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "simulate",
        help="try a schedule without a model",
        description=__doc__,
        epilog="example: longstride simulate act.type=log_normal_latency act.median=0.1 slots=64 --staleness 0 1 2 4",
        allow_abbrev=False,
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting (see --show)")
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 1, 2], metavar="S", help="bounds to be tried")
    parser.add_argument("--show", action="store_true", help="print the settings as TOML and stop")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulates each bound in turn and prints a table."""
    from longstride.core.config import dump_toml, resolve
    from longstride.rollout.simulation import Simulation

    base = resolve(Simulation, Simulation(), args.overrides)
    if args.show:
        print(dump_toml(base), end="")
        return 0
    tried = [resolve(Simulation, base, [f"pool.staleness={s}"]) for s in args.staleness]
    told = []
    columns = ("seconds", "bound", "efficiency", "occupancy", "staleness", "staleness_max", "length")
    if not args.json:
        print("bound  " + "  ".join(f"{name:>13}" for name in columns), flush=True)
    for simulation in tried:
        told.append(simulation.run())
        if not args.json:
            numbers = "  ".join(f"{told[-1][name]:13.2f}" for name in columns)
            print(f"S = {simulation.pool.staleness}  {numbers}", flush=True)
    if args.json:
        print_json({"settings": base.as_data(), "results": dict(zip(map(str, args.staleness), told, strict=True))})
    return 0
