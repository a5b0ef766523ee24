"""`longstride doctor`: what is installed, what is missing and the command that installs it, and a short self-test."""

import argparse
import importlib.metadata
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from packaging.requirements import Requirement

from longstride import __version__
from longstride.cli.common import print_json
from longstride.core.errors import ConfigError, LongstrideError


@dataclass
class Check:
    """One line of the diagnosis."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    """The command that installs what is missing."""
    needed: bool = True
    """Whether Longstride cannot do its main job without."""


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("doctor", help="look at this installation", description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a line a check; 1 where something that is needed does not work."""
    checks = []
    for check in diagnose():
        checks.append(check)
        if not args.json:
            mark = "ok  " if check.ok else "FAIL" if check.needed else "-   "
            print(
                f"{mark} {check.name:22} {check.found}" + (f"\n     {'':22} {check.fix}" if check.fix else ""),
                flush=True,
            )
    healthy = all(check.ok for check in checks if check.needed)
    if args.json:
        print_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
    return 0 if healthy else 1


def diagnose() -> Iterator[Check]:
    """The checks, in the order in which they make sense."""
    yield Check("longstride", True, __version__)
    yield Check("python", sys.version_info >= (3, 11), f"{platform.python_version()} on {platform.platform()}")
    yield Check(
        "cores", True, str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    )
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        yield Check("memory", gib >= 3, f"{gib:.1f} GiB (training the base model needs 3)")
    yield from _packages()
    yield _tried("torch", _torch)
    yield _tried("kernels of small models", _kernels)
    yield _chromium()
    yield _tested("self-test: device", _passes)
    yield _tested("self-test: web", _web_episode)
    yield _tested("self-test: base model", _generation)


def _packages() -> Iterator[Check]:
    """What Longstride needs and what its extras add, as the metadata of its installation has it."""
    try:
        extras = importlib.metadata.metadata("longstride").get_all("Provides-Extra", [])
    except importlib.metadata.PackageNotFoundError:
        yield Check(
            "requirements", False, "not known, for Longstride is not installed", "pip install -e .", needed=False
        )
        return
    for extra in ("", *extras):
        wanted = _wanted("longstride", extra)
        missing = [name for requirement in wanted for name in _missing(requirement)]
        there = (f"{r.name} {importlib.metadata.version(r.name)}" for r in wanted)
        found = f"missing: {', '.join(missing)}" if missing else ", ".join(there)
        fix = f"pip install 'longstride[{extra}]'" if extra else "pip install longstride"
        name = f"extra {extra}" if extra else "requirements"
        yield Check(name, not missing, found, fix if missing else "", needed=not extra)


def _wanted(package: str, extra: str = "") -> list[Requirement]:
    """What an installed package requires here, or what one of its extras adds to that."""

    def asked(requirement: Requirement, extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})

    every = map(Requirement, importlib.metadata.requires(package) or [])
    return [r for r in every if asked(r, extra) and not (extra and asked(r, ""))]


def _missing(requirement: Requirement) -> list[str]:
    """What a requirement lacks: itself, a newer version, or what its own extras ask for."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return [requirement.name]
    if not requirement.specifier.contains(version, prereleases=True):
        return [f"{requirement.name}{requirement.specifier} ({version} is installed)"]
    return [name for extra in requirement.extras for r in _wanted(requirement.name, extra) for name in _missing(r)]


def _torch() -> Check:
    import torch

    return Check("torch", True, torch.__version__)


def _kernels() -> Check:
    from longstride.models.native import library, trouble

    if library() is None:
        why = trouble()
        advice = f"they could not be built: {why}" if why else "install a C++ compiler (g++ or clang++)"
        slower = "; without them everything works, at a third of the speed"
        return Check("kernels of small models", False, "torch", advice + slower, needed=False)
    return Check("kernels of small models", True, "native, built by this machine's compiler")


def _chromium() -> Check:
    from longstride.web.chromium.host import find_chromium

    try:
        return Check("chromium", True, find_chromium(), needed=False)
    except ConfigError as e:
        found, _, fix = str(e).partition("; ")
        return Check("chromium", False, found, fix, needed=False)


def _tried(name: str, check: Callable[[], Check]) -> Check:
    """A check; whatever it raises is its finding."""
    try:
        return check()
    except LongstrideError as e:
        return Check(name, False, str(e))
    except Exception as e:  # a library that cannot be loaded raises what it likes
        return Check(name, False, f"{type(e).__name__}: {e}")


def _tested(name: str, test: Callable[[], str]) -> Check:
    """A self-test, and how long it took."""
    start = time.perf_counter()
    return _tried(name, lambda: Check(name, True, f"{test()}, {time.perf_counter() - start:.1f} s"))


def _web_episode() -> str:
    """The scripted solver on one embedded task, through browser, pool and judge."""
    from longstride.core.budget import Budget
    from longstride.core.errors import EnvFailure
    from longstride.core.seeds import stream
    from longstride.envs.sites.demonstrator import Demonstrator
    from longstride.envs.sites.tasks import EmbeddedWeb
    from longstride.rewards import TaskReward
    from longstride.rollout.episode import Plan
    from longstride.rollout.players import ScriptedPlayer
    from longstride.rollout.pool import Pool

    source = EmbeddedWeb()
    task = source.sample(stream(0, "doctor"), 1)[0]
    solver = Demonstrator(task, random.Random(0))
    player = ScriptedPlayer(lambda episode: solver.say(episode.page))
    plan = Plan(task=task, ordinal=0, seed=0, budget=Budget(turns=60))
    episode = Pool(player, source.env, TaskReward()).run([plan])[0]
    if not episode.success:
        raise EnvFailure(
            f"the solver did not solve {task.goal!r}: it stopped ({episode.stop}) after {episode.length} steps"
        )
    return f"{task.source} solved in {episode.length} steps"


def _passes() -> str:
    """A forward and a backward pass on the device that a run of a model that is not tiny would use."""
    from longstride.core.errors import EngineFailure
    from longstride.models.device import available, described, try_on
    from longstride.models.load import load_policy

    device = available()
    try:
        try_on(load_policy("base", device=device).model)
    except RuntimeError as e:  # whatever torch has for a driver that does not fit, no memory or a broken card
        raise EngineFailure(
            f"runs use {described(device)}, and a pass on it fails ({str(e).splitlines()[0]}); mend it, or set "
            "device=cpu"
        ) from e
    return f"runs use {described(device)}: forward and backward pass"


def _generation() -> str:
    """A few tokens from the shipped model."""
    from longstride.core.errors import EngineFailure
    from longstride.engines.base import Request
    from longstride.engines.local import LocalEngine
    from longstride.models.load import load_policy

    policy = load_policy("base")
    engine = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
    prompt = policy.chat.head("what is the color of happy lantern") + policy.chat.observation("home [1]", first=True)
    completion = engine.generate([Request(prompt=prompt, max_new=16, seed=0)])[0]
    if not completion.ids:
        raise EngineFailure("the base model generated nothing")
    return f"generated {policy.chat.decode(completion.ids)!r}"
