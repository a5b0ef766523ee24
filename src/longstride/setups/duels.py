"""The setup of recipes that know preferences alone: answers to chains modulo 7, of which it is said which is better.

Preferences go round in a circle (`rewards.InTurn`), by the remainder of the number that is answered, so whatever is
answered always can be beaten, and the best that a policy can do is to give answers of all kinds. With
`reward.preference.right=1` they are a verifier's, and the best is to be right.
"""

from typing import Any

from longstride.methods import Loss, SiblingPairs
from longstride.rewards import Duels, InTurn
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.strategies.duelled import Duelled

IN_TURN = InTurn()


def recipe(name: str, loss: Loss, **changes: Any) -> Recipe:
    """A recipe of self-play, with changes as `Component.replace` takes them."""
    return puzzles.recipe(
        name,
        credit=SiblingPairs(),
        loss=loss,
        iterations=20,
        tasks=ALIKE,
        reward=Duels(preference=IN_TURN),
        learner={"lr": 1e-3, "batch_samples": 256},
        evaluation={"strategies": (Duelled(preference=IN_TURN),), "tasks": 60},
    ).replace(**changes)


def preferring(right: float) -> dict[str, Any]:
    """The change of a recipe to preferences in which a verifier has this weight."""
    preference = InTurn(right=right)
    return {
        "reward": {"preference": preference},
        "evaluation": {"strategies": (Duelled(preference=preference),)},
    }
