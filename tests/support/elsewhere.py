"""A paper's recipe away from its setup: another architecture, with random weights, and tasks of the tests' own, put in
place by settings alone, as on the command line."""

from pathlib import Path
from typing import Any

import torch
from one_page import WORDS
from transformers import GPT2Config, GPT2LMHeadModel

from longstride import papers
from longstride.core.config import resolve
from longstride.models.load import make_policy, save_policy
from longstride.models.tiny import build_tokenizer
from longstride.run.listener import Listener
from longstride.run.recipe import Recipe

SMALL = (
    "tasks.type=one_page:OnePageTasks",
    "iterations=2",
    "episodes_per_iteration=16",
    "group_size=4",
    "budget.turns=1",
    "budget.turn_tokens=3",
    "test_budget.turns=1",
    "test_budget.turn_tokens=3",
    "learner.lr=1e-2",
    "learner.warmup_steps=0",
    "learner.dtype=float32",
    "evaluation.tasks=4",
    "evaluation.every=2",
    "evaluation.baselines=false",
)
"""A run of a second, of groups of which some have a success and a failure: a text of three words is right as often as
its letters have the right number."""


def save_model(folder: Path) -> Path:
    """Saves a GPT-2 that has learnt nothing, always the same."""
    tokenizer = build_tokenizer([WORDS])
    ends: dict[str, Any] = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shape = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=128, **ends)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_policy(make_policy("gpt2", GPT2LMHeadModel(shape), tokenizer), folder)
    return folder


def train_elsewhere(
    name: str, folder: Path, *settings: str, listener: Listener | None = None, resume: bool = False
) -> Path:
    """Trains a recipe of a paper on a GPT-2 that has learnt nothing, always the same, and returns the run folder."""
    model = save_model(folder / "model")
    own = resolve(Recipe, papers.load(name), [f"model={model}", *SMALL, *settings])
    own.train(folder / "run", listener, resume=resume)
    return folder / "run"
