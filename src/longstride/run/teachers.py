"""Demonstrations of a teacher: another model plays, and what succeeds is imitated."""

import random

from longstride.core.errors import ConfigError
from longstride.core.implementation import implements
from longstride.engines.config import Local
from longstride.methods.base import Sample
from longstride.models.api import ChatAPI
from longstride.models.chat import ChatFormat
from longstride.rollout.pool import Pool
from longstride.run.evaluation import language_player
from longstride.run.imitation import ModelSuccesses, training_plans, turn_samples
from longstride.run.policies import load
from longstride.run.recipe import Recipe


@implements(ModelSuccesses)
def taught(
    demonstrations: ModelSuccesses, recipe: Recipe, chat: ChatFormat, episodes: int, rng: random.Random
) -> list[Sample]:
    """The turns of the episodes of so many that succeeded; see `Demonstrations.samples`.

    Raises:
        ConfigError: none did.
    """
    model = demonstrations.model
    teacher = model if isinstance(model, ChatAPI) else load(model, recipe.chat, recipe.device)
    player = language_player(teacher, recipe.model_copy(update={"engine": Local()}))  # a server has the policy
    pool = Pool(player, recipe.env, recipe.test_reward, recipe.tasks.at_once, recipe.pool)
    played = pool.run(training_plans(recipe, episodes, rng))
    successes = [t for t in played if t.success and not t.stop.failed]
    if not successes:
        raise ConfigError(f"demonstrations: of {episodes} episodes of {model} none succeeded; take an abler teacher")
    return [sample for t in successes for sample in turn_samples(t, recipe, chat)]
