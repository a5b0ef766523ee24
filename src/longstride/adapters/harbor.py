"""Harbor's task folders (harborframework.com/docs/tasks), played on this machine: for tasks that are trusted.

| part of a folder | what becomes of it |
|---|---|
| `instruction.md` | the goal |
| `task.toml` | `environment.workdir` and `.env`, `verifier.timeout_sec` and `.env`, `metadata.difficulty` are read |
| `environment/Dockerfile` | is not executed: `COPY`, `ADD`, `WORKDIR` and `ENV` are followed, others refused |
| `tests/` | stands in `/tests` when the episode has ended, and `tests/test.sh` is run |
| `solution/solve.sh` | the demonstration |

The programs are those of this machine. The reward is what `test.sh` writes to `/logs/verifier/reward.json` (`reward`,
or the mean of what is there) or `reward.txt`; where it writes neither, 1 for status 0, and 0 otherwise.

What always holds: commands and tests run under bubblewrap, for the tasks' paths are those of a container; the agent
sees no tests, and what it left in `/tests` and `/logs/verifier` is removed before they run; tests that do not end in
time give 0, for it is the agent's program that they run; a reward that is no number fails the episode.
"""

import json
import math
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pydantic import field_validator

from longstride.adapters.kept import KeptTasks
from longstride.adapters.seeded import REWARD, SUCCESS, TERMS
from longstride.core.errors import EnvFailure, TaskError, short
from longstride.core.foreign import UnreadableError, float_of, left_behind, number, read_json
from longstride.core.numbers import Count, Share
from longstride.core.processes import Limits, confines, remove
from longstride.core.task import DIFFICULTIES, Task
from longstride.envs.base import Observation
from longstride.envs.terminal.shell import Shell
from longstride.envs.text import MARK

SOURCE = "task.toml"
"""The file that makes a folder a task."""
WORKDIR = "/app"
"""Where commands start, where neither `task.toml` nor the Dockerfile says it."""
TAKEN = ("bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "root", "sbin", "sys", "tmp", "usr")
"""Folders of a machine into which nothing is copied."""
VERIFIER = "logs/verifier"
SECONDS = 600.0
"""For the tests, where `task.toml` does not say it."""
MOST = 20_000
"""Characters of an instruction, and bytes of a reward's file."""
PLAIN = ("ARG", "CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "SHELL", "STOPSIGNAL", "USER")
"""Instructions of a Dockerfile that change no file."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Image(NamedTuple):
    """What a Dockerfile says, as far as it is followed."""

    workdir: str
    env: dict[str, str]
    copies: tuple[tuple[Path, str], ...]
    """What is copied, and to where."""


class Harbor(KeptTasks):
    """Task folders. Whoever sets `path` trusts them: their tests are run."""

    path: Path
    """A folder of task folders, at any depth, or one of them."""
    test_path: Path | None = None
    """The same for evaluation; left out, a share of the tasks is held out."""
    test_share: Share = 0.2
    """Share of the tasks that are held out, where there is no `test_path`."""
    ignore_dockerfile: bool = False
    """Whether what a Dockerfile installs is taken to be on this machine."""
    limits: Limits = Limits(seconds=60, memory=4096, processes=256, file_size=256, folder_size=1024)
    """What a command may use."""
    network: bool = False
    """Whether commands and tests reach the network, as tests that install something need."""
    shown: Count = 4000
    """Characters of a command's output that are shown."""
    episodes: Count = 16
    """Episodes that may be live at once."""

    @field_validator("path", "test_path")
    @classmethod
    def _is_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError(f"there is no folder {value}; expected one with tasks of Harbor")
        return value

    @property
    def says_worth(self) -> bool:
        return True

    @property
    def at_once(self) -> int:
        return self.episodes

    def env(self) -> "HarborEnv":
        confines("bwrap")  # in a container's place: refused at once where it cannot be had
        return HarborEnv(self)

    def demonstrate(self, task: Task) -> list[str]:
        """The solution's script as one command. Raises: TaskError where there is none."""
        script = Path(task.meta["folder"]) / "solution" / "solve.sh"
        if not script.is_file():
            raise TaskError(f"task {task.id!r} has no solution/solve.sh")
        return [f"{MARK} sh {script.read_text(encoding='utf-8')}", f"{MARK} done"]

    def _read(self, path: Path) -> list[Task]:
        folders = sorted(found.parent for found in path.rglob(SOURCE))
        if not folders:
            raise TaskError(f"{path} has no folder with a {SOURCE}; expected tasks of Harbor")
        return [self._task(folder, path) for folder in folders]

    def _task(self, folder: Path, path: Path) -> Task:
        settings, name = settings_of(folder), folder.resolve().name
        image_of(folder, settings, self.ignore_dockerfile)
        for needed in ("instruction.md", "tests/test.sh"):
            if not (folder / needed).is_file():
                raise TaskError(f"{folder} has no {needed}")
        difficulty = _part(settings, "metadata").get("difficulty")
        return Task(
            id=f"harbor/{folder.resolve().relative_to(path.resolve().parent)}",
            source=f"harbor/{path.resolve().name}",
            goal=(folder / "instruction.md").read_text(encoding="utf-8", errors="replace")[:MOST].strip(),
            start=name,
            difficulty=difficulty if difficulty in DIFFICULTIES else "easy",
            template_id=f"harbor/{name}",
            meta={"folder": str(folder)},
        )


class HarborEnv(Shell):
    """One task folder."""

    about = "You act on a Linux machine by commands of bash, each in a shell of its own."
    program = "bash"

    def __init__(self, source: Harbor) -> None:
        super().__init__(source.limits, "bwrap", source.shown, network=source.network, path=(f"{sys.prefix}/bin",))
        self._ignore = source.ignore_dockerfile
        self._folder = Path()
        self._settings: dict[str, Any] = {}
        self._verified: dict[str, Any] | None = None

    def lay_out(self, task: Task, root: Path) -> tuple[Mapping[str, Path], str]:
        self._folder = Path(task.meta["folder"])
        self._settings = settings_of(self._folder)
        image = image_of(self._folder, self._settings, self._ignore)
        self.variables = image.env
        (root / VERIFIER).mkdir(parents=True)
        for place in (image.workdir, "/tests"):
            (root / place[1:]).mkdir(parents=True, exist_ok=True)
        for source, place in image.copies:
            _copy(source, root / place[1:], place.endswith("/"))
        tops = sorted(path.name for path in root.iterdir())
        folders = {f"/{name}": root / name for name in tops}
        self.start = image.workdir
        return folders, ""

    async def reset(self, task: Task, seed: int) -> Observation:
        first = await super().reset(task, seed)
        machine = self.sandbox.environment(self.start)  # of which a PATH in the Dockerfile is made, as of an image's
        self.variables = {name: filled(value, machine) for name, value in self.variables.items()}
        return first

    async def final_state(self) -> dict[str, Any]:
        """`{"reward": ..., "success": ..., "terms": ..., "tests": what they printed}`: runs the tests, once.

        Raises:
            EnvFailure: what they write as a reward is no number, or they cannot be put in their place.
        """
        if self._verified is None:
            self._verified = await self._verify()
        return self._verified

    async def _verify(self) -> dict[str, Any]:
        verifier, sandbox = _part(self._settings, "verifier"), self.sandbox
        tests, logs = sandbox.folders["/tests"], sandbox.folders["/logs"] / "verifier"
        try:
            logs.parent.chmod(0o755)  # the agent's own, to which it may have taken its rights away
            remove(tests)
            remove(logs)
            shutil.copytree(self._folder / "tests", tests)
            logs.mkdir()
            sandbox.own()
        except OSError as e:
            raise EnvFailure(f"the tests of {self._folder} cannot be put in their place: {e}") from e
        seconds = float(verifier.get("timeout_sec", SECONDS))
        variables = self.variables | {k: str(v) for k, v in _part(verifier, "env").items()}
        found = await sandbox.run(("bash", "/tests/test.sh"), self.start, seconds, self._shown, variables)
        terms = {} if found.late else _rewards(logs, self._folder)
        reward = terms.get(REWARD, sum(terms.values()) / len(terms)) if terms else float(found.status == 0)
        tests_said = f"{found.output}\n{found.trouble}".strip()
        return {REWARD: reward, SUCCESS: reward >= 1, TERMS: terms if len(terms) > 1 else {}, "tests": tests_said}


def settings_of(folder: Path) -> dict[str, Any]:
    """What `task.toml` says. Raises: TaskError where it cannot be read, or asks for what is not offered here."""
    try:
        settings = tomllib.loads((folder / SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise TaskError(f"{folder / SOURCE}: cannot be read ({' '.join(str(e).split())[:200]})") from e
    environment = _part(settings, "environment")
    problem = (
        "has several steps"
        if settings.get("steps")
        else "is for Windows"
        if str(environment.get("os", "linux")).lower() == "windows"
        else "asks for accelerators"
        if environment.get("gpus") or environment.get("tpu")
        else "has servers of tools"
        if environment.get("mcp_servers")
        else "has a verifier in an environment of its own"
        if _part(settings, "verifier").get("environment_mode") == "separate"
        else ""
    )
    seconds = float_of(_part(settings, "verifier").get("timeout_sec", SECONDS))
    if not 0 < seconds < math.inf:
        raise TaskError(f"{folder / SOURCE}: verifier.timeout_sec: expected a number of seconds above 0")
    if problem:
        raise TaskError(f"{folder / SOURCE}: the task {problem}, which is not offered here; play it with Harbor itself")
    return settings


def image_of(folder: Path, settings: dict[str, Any], ignore: bool) -> Image:
    """What the environment of a task has.

    Args:
        folder: the task's.
        settings: its `task.toml`.
        ignore: whether what cannot be followed is left out.

    Raises:
        TaskError: it cannot be followed; the line is named.
    """
    environment, path = _part(settings, "environment"), folder / "environment" / "Dockerfile"

    def refuse(where: Path, why: str) -> None:
        if not ignore:
            raise TaskError(
                f"{where}: {why}, and images are not built here: install on this machine what the task needs and set "
                "tasks.ignore_dockerfile=true, or play it with Harbor itself"
            )

    if compose := next((folder / "environment").glob("docker-compose.y*ml"), None):
        refuse(compose, "the task has several containers")
    if image := environment.get("docker_image"):
        refuse(folder / SOURCE, f"the task is in the image {image!r}")
    workdir, env, copies = WORKDIR, {}, []
    for line, text in _lines(path):
        word, _, rest = text.partition(" ")
        place, word = f"line {line}, {short(text, 60)[1:-1]}", word.upper()
        if word == "FROM":
            name = re.split("[:@ ]", re.sub(r"^(--\S+\s+)*", "", rest.strip()))[0]
            if "/" in name:
                refuse(path, f"{place}: the image may have files of its own")
        elif word == "WORKDIR":
            workdir = str(PurePosixPath(workdir) / rest.strip().strip("\"'"))
        elif word == "ENV":
            try:
                first, *more = shlex.split(rest)
            except ValueError:
                refuse(path, place)
                continue
            # the older form: one name, one value
            pairs = [p.partition("=") for p in (first, *more)] if "=" in first else [(first, "", " ".join(more))]
            env |= {name: filled(value, env) for name, _, value in pairs}
        elif word in ("COPY", "ADD") and (found := _copied(folder / "environment", rest, workdir)):
            copies += found
        elif word not in PLAIN:
            refuse(path, place)
    workdir = str(environment.get("workdir") or workdir)
    for place in (workdir, *(place for _, place in copies)):
        parts = PurePosixPath(place).parts
        if len(parts) < 2 or parts[0] != "/" or parts[1] in TAKEN or ".." in parts:
            raise TaskError(
                f"{folder}: {place!r} is no folder that a task may have here; expected one such as {WORKDIR}"
            )
    return Image(workdir, env | {k: str(v) for k, v in _part(environment, "env").items()}, tuple(copies))


def filled(value: str, known: Mapping[str, str]) -> str:
    """A value of a variable with what it says of others (`$NAME`, `${NAME}`), as far as they are known."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), value)


def _lines(path: Path) -> list[tuple[int, str]]:
    """The instructions of a Dockerfile, each with the number of its first line."""
    found: list[tuple[int, str]] = []
    begun = ""
    first = 0
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for number_, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if begun else number_
        begun += line.strip().removesuffix("\\") if line.rstrip().endswith("\\") else line.strip()
        if not line.rstrip().endswith("\\"):
            found.append((first, begun))
            begun = ""
    return found


def _copied(context: Path, rest: str, workdir: str) -> list[tuple[Path, str]] | None:
    """What a COPY copies and where; None where that cannot be followed."""
    try:
        parts = json.loads(rest) if rest.lstrip().startswith("[") else shlex.split(rest)
    except ValueError:
        return None
    if not all(isinstance(part, str) for part in parts):
        return None
    flags = [part for part in parts if part.startswith("--")]
    *sources, target = [part for part in parts if not part.startswith("--")] or [""]
    if not sources or any(not flag.startswith(("--chown", "--chmod")) for flag in flags):
        return None
    place = str(PurePosixPath(workdir) / target) + ("/" if target.endswith(("/", ".")) or len(sources) > 1 else "")
    found = []
    for source in sources:
        paths = sorted(context.glob(source.lstrip("/"))) if source.strip("./") else [context]
        if not paths or not all(path.resolve().is_relative_to(context.resolve()) for path in paths):
            return None
        found += [(path, place) for path in paths]
    return found


def _copy(source: Path, target: Path, into: bool) -> None:
    """Copies as Docker does: what is in a folder, or a file into a folder or to a name."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("Dockerfile"))
    else:
        folder = target if into or target.is_dir() else target.parent
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder / source.name if folder == target else target)


def _rewards(logs: Path, folder: Path) -> dict[str, float]:
    """What the tests wrote, by name; empty where they wrote nothing."""
    what = f"the tests of {folder}"
    for name in ("reward.json", "reward.txt"):
        try:
            text = left_behind(logs / name, MOST).decode(errors="replace")
        except OSError:
            continue
        if name == "reward.txt":
            with suppress(ValueError):
                return {REWARD: number(float(text), what)}
            raise EnvFailure(f"{what} wrote {short(text)} to {name}; expected a number")
        try:
            values = read_json(text)
        except UnreadableError as e:
            raise EnvFailure(f"{what} wrote a {name} that {e}") from None
        values = values if isinstance(values, dict) else {REWARD: values}
        if not values:
            raise EnvFailure(f"{what} wrote no reward to {name}")
        return {str(key)[:100]: number(value, f"{what}, {str(key)[:100]}") for key, value in values.items()}
    return {}


def _part(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}
