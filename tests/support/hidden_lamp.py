"""A world that no package brings, with a model that reads it: lamps whose switch is hidden, and a small Qwen3."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.models.chat import ChatFormat
from longstride.models.load import Policy, save_policy
from longstride.models.tiny import build_tokenizer

WORDS = "light the lamp dark bright up down left right next 0 1"
SWITCHES = ("up", "down", "left", "right")
TOKENIZER = build_tokenizer([WORDS])
CHAT = ChatFormat(TOKENIZER)


class Lamp:
    """Three tries at the switch of a lamp."""

    async def reset(self, task: Task, seed: int) -> Observation:
        self.right, self.turns = task.meta["switch"], 0
        return Observation("dark")

    async def step(self, text: str) -> Step:
        said, self.turns = text.strip(), self.turns + 1
        lit = said == self.right
        known = said if said in SWITCHES else None
        return Step(Observation("bright" if lit else "dark"), float(lit), lit or self.turns == 3, action=known)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass

    def choices(self) -> Sequence[str]:
        return SWITCHES

    def best(self) -> Sequence[str]:
        return [self.right]

    def features(self) -> Sequence[Sequence[float]]:
        return [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)]


class Lamps(TaskSource):
    """Lamps, each with a switch."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(rng.choice(SWITCHES), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        return [self._task(SWITCHES[k % 4], "test") for k in range(n)]

    def env(self) -> Lamp:
        return Lamp()

    def _task(self, switch: str, split: Any) -> Task:
        meta = {"switch": switch}
        return Task(id=switch, source="lamps", split=split, goal="light the lamp", start="", meta=meta)


def save_model(folder: Path) -> str:
    """A Qwen3 of some thousand parameters, untrained; its folder."""
    ends: dict[str, Any] = {"eos_token_id": TOKENIZER.eos_token_id, "pad_token_id": TOKENIZER.pad_token_id}
    shape = Qwen3Config(
        vocab_size=len(TOKENIZER),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        **ends,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Qwen3ForCausalLM(shape)
    save_policy(Policy("own", model.eval(), TOKENIZER, CHAT, 256), folder)
    return str(folder)


def small(model: str) -> dict[str, Any]:
    """Settings that make a recipe on trials a matter of seconds, on lamps and with an own model."""
    return {
        "model": model,
        "tasks": Lamps(),
        "trial": {"episodes": 3},
        "episodes_per_iteration": 24,
        "cloning": {"episodes": 240, "learner": {"batch_samples": 8, "epochs": 1}},
        "evaluation": {"tasks": 4, "measures": ()},
    }
