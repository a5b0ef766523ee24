"""What is fuzzed, by name: each target takes arbitrary bytes and raises where a promise is broken.

The promise of all: what is malformed is a typed error with one clear message, or a sentence for the policy, and nothing
else. Seals do not protect from whoever can write a file (SECURITY.md), so what a seal covers is fuzzed behind right
ones, too.
"""

import asyncio
import atexit
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from zlib import crc32

from fuzz.promise import MESSAGE, typed
from fuzz.servers import SERVERS

from longstride.adapters.dataset import Dataset
from longstride.core.component import build
from longstride.core.config import dump_toml, parse_override, read_toml, resolve
from longstride.core.sealed import cut, place_of, seal, seal_lines, seal_toml, write_object
from longstride.core.task import read_tasks
from longstride.core.trajectory import Trajectory
from longstride.envs.sites import application
from longstride.envs.sites.actions import MANUAL, WebAction
from longstride.envs.sites.actions import parse as parse_action
from longstride.envs.sites.browser import TextBrowser
from longstride.envs.sites.page import WebPage
from longstride.envs.tools import parse, parse_calls
from longstride.learner.config import LearnerConfig
from longstride.models import chat, size
from longstride.models.tiny import build_tokenizer
from longstride.papers import load
from longstride.report.episodes import read_episodes
from longstride.report.rows import read_record
from longstride.rollout.store import TrajectoryStore
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import FORMAT, FORMAT_FILE, RUN_FILE, load_run_experiment
from longstride.run.folder import read_rows
from longstride.run.recipe import Recipe
from longstride.web.benchmarks.tti_files import read_tti
from longstride.web.benchmarks.webarena import read_webarena
from longstride.web.benchmarks.webgym import read_webgym
from longstride.web.benchmarks.webvoyager import read_webvoyager
from longstride.web.browsergym.grammar import from_browsergym
from longstride.web.chromium.gateway import Gateway, _Connection
from longstride.web.chromium.reach import Reach

LONGEST = 20_000
"""Bytes of an input."""
SECONDS_PER_100_KB = 1.0
"""For reading a page: twenty times what SECURITY.md promises, as fuzzing runs instrumented and on a busy machine."""
TOOLS = {tool.name: tool for tool in MANUAL.tools}


@cache
def folder() -> Path:
    """An empty folder in memory, where the machine has such."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="longstride-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, made)
    return made


def written(name: str, data: bytes) -> Path:
    """A file with this content."""
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def actions(data: bytes) -> None:
    """What a policy says, in every form: an action or a sentence, and a spelled action means itself."""
    text = data.decode("utf-8", "surrogateescape")  # has lone surrogates
    found = parse_action(text)
    found.encode() if isinstance(found, str) else str(found).encode()
    if isinstance(found, WebAction):
        assert str(parse_action(str(found))) == str(found)
    for read in (parse, parse_calls):
        call = read(text, TOOLS)
        if isinstance(call, str):
            assert 0 < len(call) <= MESSAGE
        else:
            TOOLS[call.tool].spelled(call.arguments)
    found = from_browsergym(text, {"a1": 1})
    assert found


def tasks(data: bytes) -> None:
    """Task files of each kind, and data sets."""
    path = written("tasks.jsonl", data)
    with typed():
        list(read_tasks(path))
    for read in (read_webgym, read_tti, read_webarena, read_webvoyager):
        with typed():
            read(path, *([{}] if read is not read_webgym else []))
    for match in ("exact", "number", "regex", "judged", "none"):
        with typed():
            Dataset(path=path, match=match).sample(random.Random(0), 2)


@cache
def whole_run() -> Path:
    """A run folder whose recipe is right."""
    run = folder() / "run"
    run.mkdir()
    (run / RUN_FILE).write_text(seal_toml(dump_toml(load("grpo"))))
    write_object(run / FORMAT_FILE, {"format": FORMAT})
    return run


def run_files(data: bytes) -> None:
    """One file of a run folder, which the first byte names, as it is and behind right seals; then all is read."""
    names = ["metrics.jsonl", "trajectories.jsonl", "trajectories.index", "episodes/before.jsonl", "run.toml",
             "format.json", "checkpoints/000000/trainer.json"]  # fmt: skip
    kind, data = (data[0], data[1:]) if data else (0, data)
    name, forged = names[kind % len(names)], kind >= 128
    if forged:
        data = forge(name, data)
    run = Path(shutil.copytree(whole_run(), folder() / "damaged", dirs_exist_ok=True))
    path = written(f"damaged/{name}", data)
    try:
        with typed():
            load_run_experiment(run)
        with typed():
            read_rows(run / "metrics.jsonl") if (run / "metrics.jsonl").exists() else None
        with typed():
            store = TrajectoryStore(run / "trajectories.jsonl")
            store.check(len(store))
            list(store.records)
        with typed():
            latest_checkpoint(run)
        with typed():
            read_record(run)
        with typed():
            read_episodes(run)
        with typed():
            Trajectory.from_json(data.decode("utf-8", "replace"))
    finally:
        path.unlink()


def forge(name: str, data: bytes) -> bytes:
    """Content with right seals."""
    lines = [line.decode("ascii", "replace").encode("ascii", "replace").decode() + "}" for line in cut(data)]
    if name == "run.toml":
        return seal_toml(data.decode("utf-8", "replace") + "\n").encode()
    if name == "trajectories.index":
        return b"".join(b"%08x %s\n" % (crc32(line + b"\n"), line) for line in cut(data))
    if name.startswith("episodes/"):
        return seal_lines(lines).encode()
    if name.endswith(".json"):
        return (seal(lines[0] if lines else "{}") + "\n").encode()
    return "".join(seal(line, place_of(k)) + "\n" for k, line in enumerate(lines)).encode()


def page(data: bytes) -> None:
    """HTML: shown in bounded time, without lone surrogates, in lines of bounded length."""
    began = time.process_time()
    text = WebPage(data).text()
    took = time.process_time() - began
    assert took <= SECONDS_PER_100_KB * (1 + len(data) / 100_000), f"{took:.1f} s for {len(data)} bytes"
    text.encode()


def config(data: bytes) -> None:
    """TOML of recipes, and overrides on the command line."""
    text = data.decode("utf-8", "replace")
    with typed(20 * LONGEST):
        parse_override(text)
    with typed(20 * LONGEST):
        resolve(LearnerConfig, LearnerConfig(), [line for line in text.splitlines() if ":" not in line][:5])
    if b":" not in data:  # a type with a colon imports a module, which is trusted
        with typed(20 * LONGEST):
            build(Recipe, read_toml(written("recipe.toml", data)))


@cache
def tokenizer():
    """One that knows a few words."""
    return build_tokenizer(["sentinel a b"])


def models(data: bytes) -> None:
    """A chat template's rendering of a conversation, pieces of text between the turns, by which it is cut; and a
    `config.json` beside the header of weights."""
    first, _, rest = data.partition(b"\0")
    pieces = [piece.decode("utf-8", "replace") for piece in rest.split(b"\0")]

    def rendered(*_: object) -> str:
        marks = chat._MARKS[-len(pieces) :] if first[:1] == b"e" else chat._MARKS
        return "".join(a + b for a, b in zip(pieces, [*marks, *[""] * len(pieces)], strict=False))

    real, chat.text_of = chat.text_of, rendered
    try:
        with typed():
            form = chat.ChatFormat(tokenizer(), chat.ChatConfig(system="b" if first[-1:] == b"s" else ""))
            form.head("a")
            form.observation("b", first=True)
    finally:
        chat.text_of = real
    written("model/config.json", first)
    written("model/a.safetensors", rest if rest[:1] == b"\xff" else len(rest).to_bytes(8, "little") + rest)
    with typed():
        size.check_size("model", folder() / "model")


def served(data: bytes) -> None:
    """What the embedded sites are asked for, by a visitor of the text browser: an address, and a form."""
    text = data.decode("utf-8", "replace")
    browser = TextBrowser(application(), "http://sites.test")

    async def visit() -> None:
        await browser.open("/shop/1/")
        for address in text.split("\n")[:4]:
            await browser.goto(address)  # an EnvFailure here would drop the episode of a policy that asked for it
            assert browser.status < 500, f"status {browser.status} for {address[:200]!r}"
            browser.text().encode()

    asyncio.run(visit())


class _Wire:
    """A transport that goes nowhere."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def set_protocol(self, protocol: object) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default


def gateway(data: bytes) -> None:
    """What a browser sends to its way out: greetings and requests of SOCKS, in pieces. Nothing is ever contacted."""

    async def talk() -> None:
        gate = Gateway(Reach({"app.test": application()}))
        gate._config.load()
        connection = _Connection(gate)
        connection.transport = _Wire()  # type: ignore
        for piece in (data[: len(data) // 2], data[len(data) // 2 :]):
            connection.data_received(piece)
        if connection.task is not None:
            await connection.task

    asyncio.run(talk())


TARGETS: dict[str, Callable[[bytes], None]] = {
    "actions": actions, "tasks": tasks, "run_files": run_files, "page": page, "config": config, "models": models,
    "served": served, "gateway": gateway, **SERVERS,
}  # fmt: skip
