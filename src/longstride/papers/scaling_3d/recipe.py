"""Context, batch and turns with a language model: `longstride eval scaling_3d` spends more on each axis, and on all three.

On your own tasks of a single turn: `longstride eval scaling_3d model=MODEL tasks.type=dataset tasks.path=tasks.jsonl
context.type=full_history`, with the mixes in `evaluation.strategies`.
"""

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.envs.puzzles import Iterated, Puzzles
from longstride.papers.scaling_3d.method import ThreeAxes
from longstride.rollout.context import LatestObservation
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
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

RECIPE = puzzles.tested(
    "scaling_3d",
    (ONCE, *(strategy for of in WAYS.values() for strategy in of)),
    tasks=Iterated(),
    context=LatestObservation(),
    evaluation={"tasks": 120, "sampling": Sampling(), "start": False},  # nothing is trained, so the end says the same
)

CLAIM = Claim(
    name="scaling_3d",
    paper="arXiv 2511.15738, abstract",
    statement="In as many tokens, several answers of some length in several turns solve more than what is spent on answers "
    "alone, or on turns alone.",
    recipe=RECIPE,
    arms={"solved": RECIPE, "alike": RECIPE.replace(tasks={"puzzles": Puzzles(sources=(ALIKE,))})},
    ways={name: (ONCE.name, *(strategy.name for strategy in of)) for name, of in WAYS.items()},
    expected=Ordering(relations=("solved@three > solved@batch by 0.02", "solved@three > solved@turns by 0.02")),
    # what is thought in one turn needs no other
    control=Ordering(relations=("alike@three > alike@batch by 0.02",)),
    reported=Ordering(relations=("solved@batch > solved@context", "solved@turns > solved@batch")),
    seeds=tuple(range(470, 480)),
    tuning_seeds=(930, 931),
    grid={"evaluation.sampling.temperature": (0.4, 0.6, 0.8, 1.0, 1.2)},
    cost="total_tokens",
    equal_cost=True,
)
