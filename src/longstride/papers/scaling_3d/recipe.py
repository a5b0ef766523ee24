"""Context, batch and turns with a language model: `longstride eval scaling_3d` spends more on each axis, and on all three.

On your own tasks of a single turn: `longstride eval scaling_3d model=MODEL tasks.type=dataset tasks.path=tasks.jsonl
context.type=full_history`, with the mixes in `evaluation.strategies`.
"""

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.envs.puzzles import Iterated
from longstride.papers.scaling_3d.method import ThreeAxes
from longstride.rollout.context import LatestObservation
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering


def mix(context: int, batch: int, turns: int) -> ThreeAxes:
    """Rounds of a puzzle, of which a summary is left (`envs.puzzles.Iterated`)."""
    return ThreeAxes(context=context, batch=batch, turns=turns, asks=False)


ONCE = mix(96, 1, 1)
WAYS = {
    "context": (mix(16, 1, 1), mix(32, 1, 1), mix(160, 1, 1)),
    "batch": (mix(96, 2, 1), mix(96, 4, 1), mix(96, 8, 1)),
    "turns": (mix(96, 1, 2), mix(96, 1, 4), mix(96, 1, 8)),
    "three": (mix(48, 2, 2), mix(48, 2, 4), mix(48, 3, 4)),
}
"""Ways to spend more: on one axis, and on all."""

_batch = "three@three > batch@batch"

RECIPE = puzzles.tested(
    "scaling_3d",
    (ONCE, *(strategy for of in WAYS.values() for strategy in of)),
    tasks=Iterated(),
    context=LatestObservation(),
    evaluation={"tasks": 120, "sampling": Sampling(), "start": False},  # nothing is trained, so the end says the same
)


def _spent(way: str) -> Recipe:
    """The recipe under one way alone, its largest mix first: that is what its temperature is chosen by."""
    return RECIPE.replace(evaluation={"strategies": (*reversed(WAYS[way]), ONCE)})


CLAIM = Claim(
    name="scaling_3d",
    paper="arXiv 2511.15738, abstract",
    statement="In as many tokens, several answers of some length in several turns solve more than what is spent on answers "
    "alone, the more so the more steps a task takes, and more than what is spent on turns alone.",
    recipe=RECIPE,
    arms={way: _spent(way) for way in WAYS},
    ways={name: (ONCE.name, *(strategy.name for strategy in of)) for name, of in WAYS.items()},
    expected=Ordering(relations=(f"{_batch} by 0.05", "three@three > turns@turns by 0.05")),
    # what is thought in one turn needs no other
    dose=tuple(f"{_batch} in success_{steps}" for steps in ("easy", "medium", "hard")),
    reported=Ordering(relations=("batch@batch > context@context", "turns@turns > batch@batch")),
    seeds=tuple(range(470, 486)),
    tuning_seeds=(930, 931),
    grid={"evaluation.sampling.temperature": (0.1, 0.2, 0.4, 0.7, 1.0)},
    cost="total_tokens",
    equal_cost=True,
)

FINDING = (
    "At equal tokens all three axes come to less than answers alone and than turns alone, and by the more the more steps a task "
    "takes. Turns alone are ahead of answers alone by 0.026."
)
