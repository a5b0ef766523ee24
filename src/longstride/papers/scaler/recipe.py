"""SCALER on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum import Uniform
from longstride.envs.base import TaskSource
from longstride.envs.levels import Environments, Ladder
from longstride.envs.puzzles import Countdown, ModularChain
from longstride.methods import PPO, GroupRelative
from longstride.papers.scaler.method import Controlled
from longstride.setups import puzzles
from longstride.stats import Ordering


def _chains(*lengths: int, modulus: int = 7) -> tuple[TaskSource, ...]:
    return tuple(ModularChain(lengths=(n, n, n), modulus=modulus) for n in lengths)


def _countdown(*numbers: int) -> tuple[TaskSource, ...]:
    return tuple(Countdown(numbers=(n, n, n), largest=10, most=30) for n in numbers)


# with five numbers the start never succeeds, and with residues of 97 no more often than by chance
BEYOND = (
    Ladder(name="countdown_of_five", levels=_countdown(5)),
    Ladder(name="chains_of_97", levels=_chains(1, 2, modulus=97)),
)
"""Environments whose lowest level is out of reach."""


def _tasks(chains: int, countdown: int, beyond: bool = False) -> Environments:
    """Environments of so many levels, the first of all that there are."""
    lengths, numbers = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16), (2, 3, 4)
    reached = (
        Ladder(name="chains", levels=_chains(*lengths[:chains])),
        Ladder(name="countdown", levels=_countdown(*numbers[:countdown])),
    )
    return Environments(environments=reached + (BEYOND if beyond else ()))


RECIPE = puzzles.recipe(
    "scaler",
    episodes_per_iteration=128,
    tasks=_tasks(10, 3, beyond=True),
    curriculum=Controlled(),
    credit=GroupRelative(),
    loss=PPO(),
    learner={"batch_samples": 64},
)

ARM = puzzles.arm(RECIPE).replace(tasks=_tasks(10, 3), evaluation={"every": 4, "tasks": 480})
_low, _middle, _beyond = {"tasks": _tasks(2, 1)}, {"tasks": _tasks(5, 2)}, {"tasks": RECIPE.tasks}
_uniform = ARM.replace(curriculum=Uniform())

CLAIM = Claim(
    name="scaler",
    paper="arXiv 2601.04809, abstract",
    statement="By equal sampled tokens, levels that are held where half of the tasks are done teach more than tasks of all levels alike, and by "
    "the more the higher the levels go.",
    recipe=ARM,
    arms={
        "controlled": ARM,
        "uniform": _uniform,
        "controlled_middle": ARM.replace(**_middle),
        "uniform_middle": _uniform.replace(**_middle),
        "controlled_low": ARM.replace(**_low),
        "uniform_low": _uniform.replace(**_low),
        "beyond": ARM.replace(**_beyond),
        "beyond_kept": ARM.replace(**_beyond, curriculum={"retiring": False}),
    },
    expected=Ordering(relations=("controlled > uniform by 0.03",)),
    dose=("controlled_low > uniform_low", "controlled_middle > uniform_middle", "controlled > uniform"),
    # where half of the environments are out of reach
    reported=Ordering(relations=("beyond > beyond_kept",)),
    seeds=tuple(range(1300, 1312)),
    tuning_seeds=(930, 931),
    grid={"learner.lr": (4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3)},
    tuning={"iterations": 8, "evaluation.every": 8},
    cost="sampled_tokens",
    equal_cost=True,
)

FINDING = (
    "Tasks of all levels alike teach more: .53 against .45 where there are all levels, .84 against .74 where there are half of them; with the "
    "lowest alone both end at .95."
)
