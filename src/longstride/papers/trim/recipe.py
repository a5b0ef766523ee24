"""TRIM with language models: a strong model is made of the shipped start by cloning, and takes the steps of chains that
a router gives it; the start is the weak model.

With your own: `longstride eval WEAK --strategy longstride.papers.trim.method:RoutedSteps model=STRONG router.below=0.35`, with
`guide` as a scorer of steps (docs/guides/scorers.md).
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.papers.trim.method import RoutedSteps, Threshold
from longstride.run.imitation import Cloning
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.searched import Oracle

STEPS = RoutedSteps(
    model="base-puzzles", weak="model", guide=Oracle(noise=1.0), router=Threshold(below=0.5), per_token=0.01
)
"""A solution of the strong model has some 60 tokens; the paper's have several hundred, at 8e-4."""
TASKS = STEPS.replace(each="episode")

RECIPE = puzzles.tested(
    "trim",
    (Direct(), STEPS, STEPS.replace(router={"below": 0.35}), TASKS, STEPS.replace(router={"below": 0.0})),
    tasks=ModularChain(),
    cloning=Cloning(episodes=1500),
)

ARM = RECIPE.replace(evaluation={"strategies": (STEPS,), "tasks": 200})
BLIND = {"guide": Oracle(noise=1000.0)}
"""A scorer at chance."""


def _of(strategy: RoutedSteps) -> Recipe:
    return ARM.replace(evaluation={"strategies": (strategy,)})


CLAIM = Claim(
    name="trim",
    paper="arXiv 2601.10245, section 4",
    statement="Giving single steps to a stronger model is worth more, at a price for each of its tokens, than giving it "
    "whole tasks, each at its own best threshold.",
    recipe=ARM,
    arms={
        "by_step": _of(STEPS),
        "by_task": _of(TASKS),
        "blind_by_step": _of(STEPS.replace(**BLIND)),
        "blind_by_task": _of(TASKS.replace(**BLIND)),
    },
    measure="worth",
    expected=Ordering(relations=("by_step > by_task by 0.05",)),
    control=Ordering(relations=("blind_by_step > blind_by_task by 0.05",)),
    reported=Ordering(relations=("by_step > by_task in success", "by_task > by_step in handed_over_tokens")),
    seeds=tuple(range(350, 382)),
    tuning_seeds=(930, 931),
    grid={"evaluation.strategies.0.router.below": (0.1, 0.3, 0.5, 0.7, 0.9)},
    cost="env_steps",
)

FINDING = (
    "Steps that a strong model takes alone cost half of the tokens of whole tasks (14 against 27 a task) at the same success "
    "(.83 and .82). With a scorer at chance both hand over everything, and are worth the same."
)
