"""Two real servers and two learners, and faults at random moments: what becomes of a run.

    python examples/faults.py 'vllm serve {model} --served-model-name m --host 127.0.0.1 --port {port} \
        --dtype float32 --logprobs-mode processed_logprobs --max-num-batched-tokens 65536 --enforce-eager' --times 20

The learners are two processes of torchrun; both sample from both servers, each through a proxy on loopback. The model
is small and random, its episodes of three turns are rewarded for their share of vowels, and weights go by a folder. A
fault is drawn each time:

- `server`: one server is killed. It is started again, and joins at an update.
- `network`: the way to one server is cut for up to ten seconds: its connections end and new ones are refused, or, as
  often, they stay open and nothing comes through.
- `learner`: one learner is killed. The run has to end, and is resumed.
- `disk`: the disk of the run is filled (a tmpfs, so this one needs root). The run has to end, and is resumed when there
  is room again.

Adds what came to docs/faults.json. Servers run in development mode (weights change), so they listen on loopback alone,
and end with this program.
"""

import argparse
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

import longstride as ls
from longstride.core.provenance import commit
from longstride.engines.config import HTTP
from longstride.engines.weights import Folder
from longstride.learner.config import LearnerConfig
from longstride.methods import GroupRelative, OnPolicy
from longstride.models.load import load_policy, make_policy, save_policy
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.folder import read_rows

OUT, PORTS, PROXIES = Path("docs/faults.json"), (8101, 8102), (8201, 8202)
PATIENCE = 400.0
"""Seconds in which a server has to answer, and a run has to go on or to end."""
DISK = 64 << 20
"""Bytes of the disk of the run."""


class Vowels:
    """Three turns, each rewarded for its share of vowels."""

    async def reset(self, task: ls.Task, seed: int) -> ls.Observation:
        self._left = 3
        return ls.Observation("go")

    async def step(self, text: str) -> ls.Step:
        self._left -= 1
        letters = [c for c in text.lower() if c.isalpha()]
        reward = sum(c in "aeiou" for c in letters) / max(1, len(letters)) / 3
        return ls.Step(ls.Observation("go"), terminated=not self._left, reward=reward, action="say")

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


class VowelTasks(ls.TaskSource):
    """The same task again and again."""

    def sample(self, rng: random.Random, n: int) -> list[ls.Task]:
        return [ls.Task(id=f"v{rng.randrange(1000)}", source="vowels", goal="go", start="") for _ in range(n)]

    def held_out(self, n: int) -> list[ls.Task]:
        return [ls.Task(id=f"h{k}", source="vowels", goal="go", start="") for k in range(n)]

    def env(self) -> Vowels:
        return Vowels()


RECIPE = ls.Recipe(
    name="faults",
    iterations=1000,
    episodes_per_iteration=32,
    group_size=4,
    tasks=VowelTasks(),
    budget=ls.BudgetSchedule(turns=3, turn_tokens=16),
    test_budget=ls.BudgetSchedule(turns=3, turn_tokens=16),
    context=ls.FullHistory(),
    reward=ls.TaskReward(),
    replay=OnPolicy(),
    credit=GroupRelative(),
    learner=LearnerConfig(lr=1e-3),
    evaluation=ls.Evaluation(tasks=1, every=1000, baselines=False),
    engine=HTTP(
        url=tuple(f"http://127.0.0.1:{port}/v1" for port in PROXIES),
        model="m",
        weights=Folder(path="."),
        timeout=20.0,
    ),
)


def make_model(folder: Path) -> None:
    """A small random Qwen3 with the tokenizer of the shipped start."""
    tokenizer = load_policy("base").tokenizer
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=544, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
        intermediate_size=128, max_position_embeddings=1280, tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=0,
    )  # fmt: skip
    save_policy(make_policy("small", Qwen3ForCausalLM(config), tokenizer), folder)


class Server:
    """A server that can be killed and started again."""

    def __init__(self, command: str, model: Path, port: int, log: Path) -> None:
        self.command, self.port, self.log = shlex.split(command.format(model=model, port=port)), port, log
        self.start()

    def start(self) -> None:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"VLLM_SERVER_DEV_MODE": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=env, start_new_session=True)

    def wait(self) -> None:
        """Until it answers."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5):
                    return
            except OSError:
                time.sleep(1)
        sys.exit(f"no server answers at port {self.port}; see {self.log}")

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Proxy:
    """Passes bytes on between the run and a server, until it is cut."""

    def __init__(self, port: int, to: int) -> None:
        self.port, self.to, self.open = port, to, threading.Event()
        self.refuses = False
        self.sockets: list[socket.socket] = []
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, refuses: bool) -> None:
        """Ends what is connected and refuses what comes, or keeps all of it waiting."""
        self.refuses = refuses
        self.open.clear()
        if refuses:
            self._drop()

    def mend(self) -> None:
        if self.refuses:
            self._drop()
        self.refuses = False
        self.open.set()

    def _drop(self) -> None:
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.sockets.clear()

    def _accept(self) -> None:
        while True:
            here, _ = self.listener.accept()
            if self.refuses:
                here.close()
                continue
            try:
                there = socket.create_connection(("127.0.0.1", self.to), timeout=5)
            except OSError:
                here.close()
                continue
            there.settimeout(None)
            self.sockets += [here, there]
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=self._pass_on, args=(a, b), daemon=True).start()

    def _pass_on(self, a: socket.socket, b: socket.socket) -> None:
        with suppress(OSError):
            while data := a.recv(1 << 16):
                self.open.wait()
                b.sendall(data)
        for each in (a, b):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Run:
    """A run of two learners on a disk of its own, which can be resumed."""

    def __init__(self, disk: Path, changes: list[str], log: Path) -> None:
        self.disk, self.folder, self.log = disk, disk / "run", log
        self.start(__file__, *changes, "--out", str(self.folder))

    def start(self, *arguments: str) -> None:
        """In a session of its own: what is killed leaves nothing behind."""
        begin = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        self.said = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*begin, "-m", "longstride", "train", *arguments], stdout=log, stderr=log, start_new_session=True
            )

    def rows(self) -> list[dict[str, Any]]:
        path = self.folder / "metrics.jsonl"
        return [row for row in read_rows(path) if row["kind"] == "train"] if path.exists() else []

    def comes_to(self, iterations: int) -> bool:
        """Whether it does in time."""
        return within(lambda: len(self.rows()) >= iterations or self.process.poll() is not None) and (
            self.process.poll() is None
        )

    def learners(self) -> list[int]:
        """Ids of its two processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8")
        return [int(child) for child in children.split()]

    def ends(self) -> list[str]:
        """What it says of its end, in the order of its processes, when it ends by itself in time."""
        if not within(lambda: self.process.poll() is not None):
            return []
        lines = self.log.read_bytes()[self.said :].decode("utf-8", "replace").splitlines()
        said = [line for line in lines if line.startswith(("error: ", "stopped; "))]
        return [line.replace(str(self.folder), "RUN") for line in said]

    def resume(self) -> None:
        self.start("--resume", str(self.folder))

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def within(is_so: Callable[[], bool]) -> bool:
    """Whether it comes to be so in time."""
    ends = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > ends:
            return False
        time.sleep(0.2)
    return True


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of `DISK` bytes."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


class Scene:
    """The run, its servers and what lies between, and the faults that come to them. A fault says what it did; the run
    goes on with it, or has ended and was resumed."""

    def __init__(self, run: Run, servers: list[Server], proxies: list[Proxy], draw: random.Random) -> None:
        self.run, self.servers, self.proxies, self.draw = run, servers, proxies, draw
        self.faults = {"server": self.server, "network": self.network, "learner": self.learner, "disk": self.disk}

    def server(self) -> dict[str, Any]:
        server = self.draw.choice(self.servers)
        server.kill()
        went_on = self.run.comes_to(len(self.run.rows()) + 3)
        server.start()
        server.wait()
        return {"went_on": went_on}

    def network(self) -> dict[str, Any]:
        proxy, refuses = self.draw.choice(self.proxies), self.draw.random() < 0.5
        proxy.cut(refuses)
        time.sleep(self.draw.random() * 10)
        proxy.mend()
        return {"refuses": refuses, "went_on": self.run.comes_to(len(self.run.rows()) + 3)}

    def learner(self) -> dict[str, Any]:
        os.kill(self.draw.choice(self.run.learners()), signal.SIGKILL)
        return self._resumed()

    def disk(self) -> dict[str, Any]:
        filler = self.run.disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        ended = within(lambda: self.run.process.poll() is not None)
        filler.unlink()
        return self._resumed() if ended else {"went_on": False}

    def _resumed(self) -> dict[str, Any]:
        said = self.run.ends()
        before = len(self.run.rows())
        self.run.stop()
        self.run.resume()
        return {"said": said, "went_on": self.run.comes_to(before + 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("serve", help="the command of a server, with {model} and {port}")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    draw, found = random.Random(args.seed), []
    with ExitStack() as ends:
        home = Path(ends.enter_context(TemporaryDirectory()))
        disk = ends.enter_context(small_disk(home / "disk"))
        model, push = home / "model", home / "push"
        push.mkdir()
        make_model(model)
        servers = [Server(args.serve, model, port, Path(f"faults-{port}.log").absolute()) for port in PORTS]
        for server in servers:
            ends.callback(server.kill)
        proxies = [Proxy(here, there) for here, there in zip(PROXIES, PORTS, strict=True)]
        for server in servers:
            server.wait()
        changes = [f"model={model}", f"engine.weights.path={push}", f"seed={args.seed}", "patience=1000"]
        run = Run(disk, changes, Path("faults-run.log").absolute())
        ends.callback(run.stop)
        if not run.comes_to(2):
            sys.exit(f"the run does not begin; see {run.log}")
        scene = Scene(run, servers, proxies, draw)
        for k in range(args.times):
            time.sleep(draw.random() * 3)
            fault, began = draw.choice(list(scene.faults)), time.monotonic()
            found.append({"fault": fault, **scene.faults[fault](), "seconds": round(time.monotonic() - began, 1)})
            print(f"{k + 1} of {args.times}: {json.dumps(found[-1])}", flush=True)
            if not found[-1]["went_on"]:
                break
        run.process.send_signal(signal.SIGINT)
        within(lambda: run.process.poll() is not None)
        rows, episodes = run.rows(), list(TrajectoryStore(run.folder / TRAJECTORIES))
        counted = Counter(each["fault"] for each in found)
        result = {
            "command": f"python examples/faults.py SERVE --times {args.times} --seed {args.seed}",
            "commit": commit(),
            "faults": dict(counted),
            "went_on": sum(each["went_on"] for each in found),
            "each": found,
            "iterations": len(rows),
            "iterations_are_contiguous": [row["iteration"] for row in rows] == list(range(1, len(rows) + 1)),
            "iterations_with_one_server": sum(row["servers"] == 1 for row in rows),
            "iterations_with_two_servers": sum(row["servers"] == 2 for row in rows),
            "turns_asked_again": sum(row["asked_again"] for row in rows),
            "episodes": len(episodes),
            "ordinals_are_contiguous": [t.ordinal for t in episodes] == list(range(len(episodes))),
            "failed_episodes": sum(t.stop.failed for t in episodes),
            "tokens": sum(t.sampled_tokens for t in episodes),
            "tokens_of_a_wrong_version": sum(
                v != t.iteration - 1 for t in episodes for turn in t.turns for v in turn.versions
            ),
        }
        kept = json.loads(OUT.read_text("utf-8")) if OUT.exists() else []
        OUT.write_text(json.dumps([*kept, result], indent=1) + "\n", encoding="utf-8")
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
