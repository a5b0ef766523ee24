"""What tests of adapters share: a model of few words, a recipe that runs in a second, an episode by hand."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from longstride.core.task import Task
from longstride.curriculum import BudgetSchedule
from longstride.envs.base import Env, Observation, Step, TaskSource
from longstride.learner.config import LearnerConfig
from longstride.methods import GroupRelative, OnPolicy
from longstride.models.load import make_policy, save_policy
from longstride.models.tiny import CHAT, SPECIALS, TOKEN, TinyConfig, build_model, words_of
from longstride.rewards import Reward, TaskReward
from longstride.rollout import FullHistory
from longstride.run.loop import train
from longstride.run.recipe import Evaluation, Recipe


def few_words(folder: Path, words: str) -> str:
    """A model that knows these words and nothing else, so that chance says each of them often; its folder."""
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys([*SPECIALS, *words_of(words)]))}
    pad, unknown, user, agent, end = SPECIALS
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), behavior="removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=pad, unk_token=unknown, eos_token=end, additional_special_tokens=[user, agent]
    )
    tokenizer.chat_template = CHAT
    shape = TinyConfig(width=32, layers=2, heads=2, kv_heads=1, ffn=64, context=4096)
    save_policy(make_policy("few", build_model(shape, len(vocabulary), seed=3), tokenizer), folder)
    return str(folder)


def small(tasks: TaskSource, model: str, reward: Reward | None = None, **changes: Any) -> Recipe:
    """One iteration of sixteen short episodes in groups of four, evaluated on four tasks."""
    reward = reward or TaskReward()
    return Recipe(
        name="small",
        iterations=1,
        episodes_per_iteration=16,
        group_size=4,
        model=model,
        tasks=tasks,
        budget=BudgetSchedule(turns=4, turn_tokens=2),
        test_budget=BudgetSchedule(turns=4, turn_tokens=2),
        context=FullHistory(),
        reward=reward,
        replay=OnPolicy(),
        credit=GroupRelative(),
        learner=LearnerConfig(lr=1e-3, batch_samples=16, warmup_steps=0, dtype="float32"),
        evaluation=Evaluation(tasks=4, reward=reward, baselines=False),
    ).replace(**changes)


def run(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Trains; the row of the last iteration."""
    train(recipe, folder / "run")
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == "train"][-1]


def play(env: Env, task: Task, says: Iterable[str]) -> tuple[Observation, Sequence[Step], dict[str, Any]]:
    """One episode by hand: the first observation, the steps, the final state."""

    async def episode() -> tuple[Observation, Sequence[Step], dict[str, Any]]:
        try:
            first = await env.reset(task, 7)
            steps = [await env.step(text) for text in says]
            return first, steps, await env.final_state()
        finally:
            await env.close()

    return asyncio.run(episode())
