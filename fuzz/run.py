"""Coverage-guided fuzzing of everything that reads what others wrote: `python fuzz/run.py TARGET --seconds N`.

Needs atheris (`pip install atheris`), in whatever environment has Longstride. It begins from `corpus/TARGET`, stops at
the first input that breaks a promise of the target (see `targets.py`), leaves that input as `found/TARGET-*`, and then
ends with another code than 0. `python fuzz/run.py TARGET FILE` runs one input again.
"""

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SLOWEST = 10
"""Seconds that one input may take; a hundred times what is slow."""
MEGABYTES = 4096


def main() -> None:
    """Runs one target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("input", nargs="?", type=Path, help="an input to run again")
    parser.add_argument("--seconds", type=int, default=300, help="how long (default: %(default)s)")
    args = parser.parse_args()
    try:
        import atheris
    except ImportError:
        sys.exit("error: fuzzing needs atheris: pip install atheris")
    with atheris.instrument_imports(include=["longstride"]):
        sys.path.insert(0, str(HERE.parent))
        from fuzz.targets import LONGEST, TARGETS
    if args.target not in TARGETS:
        sys.exit(f"error: there is no target {args.target!r}; there are {', '.join(TARGETS)}")
    if args.input:
        TARGETS[args.target](args.input.read_bytes())
        return
    (HERE / "found").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as grown:
        options = {
            "max_total_time": args.seconds, "timeout": SLOWEST, "max_len": LONGEST, "rss_limit_mb": MEGABYTES,
            "artifact_prefix": HERE / "found" / f"{args.target}-", "print_final_stats": 1, "verbosity": 0,
        }  # fmt: skip
        given = [f"-{name}={value}" for name, value in options.items()]
        atheris.Setup([sys.argv[0], *given, grown, str(HERE / "corpus" / args.target)], TARGETS[args.target])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
