"""Two real servers, killed again and again at random moments while a run samples from both: what becomes of the run.

    python examples/faults.py 'vllm serve {model} --served-model-name m --host 127.0.0.1 --port {port} \
        --dtype float32 --logprobs-mode processed_logprobs --max-num-batched-tokens 65536 --enforce-eager' --kills 20

The model is small and random, its episodes of three turns are rewarded for their share of vowels, and weights go by a
folder. A server that was killed is started again, and joins at an update. Writes docs/faults.json. Servers run in
development mode (weights change), so they listen on loopback alone, and end with this program.
"""

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
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

OUT, PORTS = Path("docs/faults.json"), (8101, 8102)
START_SECONDS = 400.0


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
        url=tuple(f"http://127.0.0.1:{port}/v1" for port in PORTS), model="m", weights=Folder(path="."), timeout=120.0
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


class Killed:
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
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5):
                    return
            except OSError:
                time.sleep(1)
        sys.exit(f"no server answers at port {self.port}; see {self.log}")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def rows_of(run: Path) -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    return [row for row in read_rows(path) if row["kind"] == "train"] if path.exists() else []


def wait_for(run: Path, iterations: int, process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether the run comes to so many iterations in time."""
    ends = time.monotonic() + seconds
    while len(rows_of(run)) < iterations:
        if process.poll() is not None or time.monotonic() > ends:
            return False
        time.sleep(0.2)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("serve", help="the command of a server, with {model} and {port}")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    draw, found = random.Random(args.seed), []
    with TemporaryDirectory() as home:
        model, run, push = (Path(home, name) for name in ("model", "run", "push"))
        push.mkdir()
        make_model(model)
        servers = [Killed(args.serve, model, port, Path(f"faults-{port}.log").absolute()) for port in PORTS]
        process = None
        try:
            for server in servers:
                server.wait()
            changes = [f"model={model}", f"engine.weights.path={push}", f"seed={args.seed}", "patience=1000"]
            command = [sys.executable, "-m", "longstride", "train", __file__, *changes, "--out", str(run)]
            process = subprocess.Popen(command)
            if not wait_for(run, 2, process, START_SECONDS):
                sys.exit("the run does not begin")
            for k in range(args.kills):
                time.sleep(draw.random() * 2)
                server, before, began = draw.choice(servers), len(rows_of(run)), time.monotonic()
                server.kill()
                went_on = wait_for(run, before + 3, process, 300)
                found.append({"went_on": went_on, "seconds": round(time.monotonic() - began, 1)})
                print(f"kill {k + 1} of {args.kills}: port {server.port}, went on: {went_on}", flush=True)
                if not went_on:
                    break
                server.start()
                server.wait()
                wait_for(run, len(rows_of(run)) + 2, process, 300)
            process.send_signal(signal.SIGINT)
            process.wait(120)
            rows, episodes = rows_of(run), list(TrajectoryStore(run / TRAJECTORIES))
            wrong = sum(v != t.iteration - 1 for t in episodes for turn in t.turns for v in turn.versions)
            result = {
                "command": f"python examples/faults.py SERVE --kills {args.kills} --seed {args.seed}",
                "commit": commit(),
                "kills": len(found),
                "went_on": sum(f["went_on"] for f in found),
                "seconds_for_three_iterations": [f["seconds"] for f in found],
                "iterations": len(rows),
                "iterations_with_one_server": sum(row["servers"] == 1 for row in rows),
                "iterations_with_two_servers": sum(row["servers"] == 2 for row in rows),
                "turns_asked_again": sum(row["asked_again"] for row in rows),
                "episodes": len(episodes),
                "failed_episodes": sum(t.stop.failed for t in episodes),
                "tokens": sum(t.sampled_tokens for t in episodes),
                "tokens_of_a_wrong_version": wrong,
            }
            OUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(json.dumps(result, indent=1))
        finally:
            if process is not None and process.poll() is None:
                process.kill()
            for server in servers:
                if server.process.poll() is None:
                    server.kill()


if __name__ == "__main__":
    main()
