"""Demonstrations by the scripted agents of base models, for the cloning of a recipe."""

import random
from itertools import islice
from typing import TYPE_CHECKING

from longstride.core.numbers import Weight
from longstride.methods.base import Sample
from longstride.run.imitation import Demonstrations
from longstride.run.recipe import Recipe
from longstride.starts.demonstrators import Demonstrators, Sites, turns_of

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat


class ScriptedDemonstrations(Demonstrations):
    """What scripted agents show on tasks of their own, their slips too: the recipe's tasks need no solver."""

    demonstrators: Demonstrators = Sites()
    """Who is imitated."""
    page_weight: Weight = 0.5
    """Weight of the language-model loss on an observation, beside 1 for the response to it; the weight of a response is
    shared out among its tokens."""

    def samples(self, recipe: Recipe, chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        shown = islice(self.demonstrators.demonstrations(rng.getrandbits(62)), episodes)
        return [sample for each in shown for sample in turns_of(each, chat, recipe.context, self.page_weight)]
