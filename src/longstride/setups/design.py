"""Offline design: what recipes share that propose better designs than those of a pool, and their claims.

The recipe of a paper acts on linear controllers of CartPole (`design.Controllers`; in any environment of control by
`tasks.tasks.id=Acrobot-v1`): the worst 90 % of a thousand that were drawn at random, most of which fall at once.
`longstride train PAPER/recorded tasks.data=FILE` acts on the user's own designs and scores.

This world was changed twice before any claim. The number of steps and the share that is shown were set after single
runs of COMs and of plain ascent, by the spread of the scores. Then controllers with a layer of 8 units, on which
every method had run once, gave way to linear ones: there the ranks of held-out designs correlate by 0.1 with what is
predicted, so a model has learned nothing to climb on; of linear ones it is 0.5, by which they were chosen.
"""

from collections.abc import Mapping
from typing import Any

from longstride.claims.claim import Claim
from longstride.claims.worlds import Among, Between
from longstride.design import Controllers, DesignRecipe, FileDesigns, ScoreModel
from longstride.exact.worlds.designs import FUNCTIONS
from longstride.models.mlp import Trunk
from longstride.stats import Ordering

TRUNK = Trunk(width=128, depth=2, norm=False, activation="relu")
"""Hidden layers of every network (released: 2 of 2048)."""
RATES = {"short": 0.02, "usual": 0.05, "long": 0.2}
"""Lengths of a step of the climb: the farther it goes, the more there is to overrate."""

FUNCTIONS_DRAWN = {
    "problem.function": Among(values=tuple(FUNCTIONS)),
    "problem.dims": Between(low=8, high=32, log=True),
    "problem.inner": Between(low=2, high=8, log=True),
    "problem.optimum": Between(low=0.5, high=2.0, log=True),
    "problem.penalty": Between(low=0.5, high=2.0, log=True),
    "problem.pool": Between(low=500, high=2000, log=True),
    "problem.kept": Between(low=0.4, high=0.8),
    "problem.noise": Between(low=0.025, high=0.1, log=True),
}
"""The worlds of exact claims on functions whose optimum is known (`exact.designs.Designs`)."""


def controllers(name: str, model: ScoreModel) -> DesignRecipe:
    """The recipe of a model, on controllers."""
    return DesignRecipe(name=name, tasks=Controllers(kept=0.9), model=model.replace(lr=1e-3))


def recorded(name: str, model: ScoreModel) -> DesignRecipe:
    """The recipe of a model, on a file of designs and scores."""
    return DesignRecipe(name=name, tasks=FileDesigns(data="designs.csv"), model=model)


def claim(recipe: DesignRecipe, paper: str, what: str, plain: Mapping[str, Any]) -> Claim:
    """That proposals of a recipe's model are worth more than those of the model that `plain` changes it to, the more so
    the farther the climb goes.

    Args:
        recipe: of a paper, on controllers.
        paper: where it says so.
        what: the models, for the statement.
        plain: changes of the model.
    """
    arm, ours = recipe.replace(every=recipe.iterations), recipe.name
    sides = {of: arm.replace(model={"rate": rate}) for of, rate in RATES.items()}
    return Claim(
        name=recipe.name,
        paper=paper,
        statement=f"After a climb of {recipe.iterations} steps proposals of {what}, the more so the longer a step is.",
        recipe=arm,
        arms={f"{of}_{ours}": side for of, side in sides.items()}
        | {f"{of}_plain": side.replace(model=plain) for of, side in sides.items()},
        measure="median",
        expected=Ordering(relations=(f"usual_{ours} > usual_plain by 0.05",)),
        dose=tuple(f"{of}_{ours} > {of}_plain" for of in RATES),
        reported=Ordering(
            relations=(f"usual_{ours} > usual_plain in best", f"usual_plain > usual_{ours} in overestimated")
        ),
        worlds={"tasks.designs": Between(low=300, high=1500, log=True), "tasks.kept": Between(low=0.8, high=0.95)},
        grid={"model.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
        tuning_seeds=(930, 931),
        seeds=tuple(range(700, 720)),
        cost="proposals",
    )
