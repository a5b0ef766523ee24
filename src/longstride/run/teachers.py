"""Demonstrations of a teacher: another model plays, or the policy itself under a strategy, and what succeeds is
imitated."""

import copy
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from longstride.core.implementation import implements
from longstride.engines.config import Local
from longstride.engines.plain import usual_attention
from longstride.learner import parallel
from longstride.methods.base import Sample
from longstride.models.api import ChatAPI
from longstride.models.chat import ChatConfig, ChatFormat
from longstride.models.load import Policy
from longstride.rollout.players import Player
from longstride.rollout.pool import Pool
from longstride.rollout.trial import Trial
from longstride.run.evaluation import evaluate_player, language_player
from longstride.run.experiment import checkpoint_folders
from longstride.run.filters import Improved, filtered, steps_in
from longstride.run.imitation import ModelSuccesses, StrategySuccesses, training_plans, turn_samples
from longstride.run.policies import load
from longstride.run.recipe import Recipe


@implements(ModelSuccesses)
def taught(
    demonstrations: ModelSuccesses, recipe: Recipe, chat: ChatFormat, episodes: int, rng: random.Random
) -> list[Sample]:
    """The turns of the episodes of so many that succeeded; none where no episode did. Of several processes each plays a
    share of the episodes.

    Raises:
        RunError, ModelError: the teacher cannot be loaded.
    """
    model = demonstrations.model
    teacher = model if isinstance(model, ChatAPI) else _loaded(model, recipe)
    player = language_player(teacher, recipe.model_copy(update={"engine": Local()}))  # a server has the policy
    pool = Pool(player, recipe.env, recipe.test_reward, recipe.tasks.at_once, recipe.pool)
    played = parallel.unscatter(pool.run(parallel.scatter(training_plans(recipe, episodes, rng))))
    return [s for t in played if t.success and not t.stop.failed for s in turn_samples(t, recipe, chat)]


@implements(StrategySuccesses)
def searched(
    demonstrations: StrategySuccesses, policy: Policy | None, recipe: Recipe, episodes: int, rng: random.Random
) -> list[Sample]:
    """The steps of so many episodes that succeeded and pass the filters; none where no episode did.

    Raises:
        ModelError: the model cannot be loaded.
    """
    policy = policy or _loaded(demonstrations.model or recipe.start, recipe)
    player, own = beside(policy, recipe, rng)
    tasks = recipe.tasks.sample(rng, episodes)
    found = evaluate_player(player, own, tasks, demonstrations.strategy).trajectories
    usual: Sequence[float | None] = [None] * len(tasks)
    if any(isinstance(each, Improved) for each in demonstrations.filters):
        usual = evaluate_player(player, own, tasks).outcomes
    steps = [
        step
        for t, reward in zip(found, usual, strict=True)
        if t.success and not t.stop.failed
        for step in steps_in(t, reward, recipe.companions)
    ]
    return filtered(steps, demonstrations.filters)


def beside(policy: Policy, recipe: Recipe, rng: random.Random) -> tuple[Player, Recipe]:
    """A policy as a player in an engine of its own, and the recipe under which `evaluate_player` lets it play each
    training task once, with randomness of its own. The model is copied: one that is being trained may have the
    learner's attention."""
    model: Any = copy.deepcopy(policy.model)
    model.set_attn_implementation(usual_attention(model))
    evaluation = recipe.evaluation.model_copy(update={"attempts": 1})
    changes = {"engine": Local(), "evaluation": evaluation, "seed": rng.getrandbits(31), "trial": Trial()}
    own = recipe.model_copy(update=changes)
    return language_player(replace(policy, model=model), own, testing=True), own


def _loaded(name: str, recipe: Recipe) -> Policy:
    """A model, or the policy of a run; the one of the iteration before, where it is the same."""
    checkpoints = checkpoint_folders(Path(name))
    chat: Any = recipe.chat  # frozen, so it has a hash
    return _kept(name, chat, recipe.device, checkpoints[-1] if checkpoints else None)


@lru_cache(1)
def _kept(name: str, chat: ChatConfig, device: str, checkpoint: Path | None) -> Policy:
    """A loaded model; `checkpoint`, the newest, tells the states of a run apart."""
    return load(name, chat, device)


def forget() -> None:
    """Gives back the memory of the teacher that is kept for the next iteration."""
    _kept.cache_clear()
