"""PTR in the U-maze; and the claim.

The dose is how few the demonstrations are. With many there is nothing left that other tasks could add.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import (
    SAC,
    BehaviourCloning,
    ControlAgent,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TrainingPhase,
)
from longstride.setups import maze
from longstride.stats import Ordering


def _phases(before: float, after: float) -> tuple[TrainingPhase, ...]:
    """By the share of demonstrations in a batch, before and after."""
    return (
        TrainingPhase(iterations=3, updates=300, demonstrated=before),
        TrainingPhase(iterations=1, updates=300, demonstrated=after),
    )


_POLICY = GaussianPolicy(trunk=maze.TRUNK)
RECIPE = maze.offline(
    "ptr", maze.CRITIC.replace(conservative=maze.CONSERVATIVE), _POLICY, SAC(temperature=0.01), policy_lr=3e-4
).replace(
    tasks={"maze": "umaze", "length": maze.SHORT_HORIZON.limit, "demonstrations": 10},
    phases=_phases(before=0.0, after=0.1),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation={"every": 1, "episodes": 20},
)
_cloning = Level(data=NStep(goals=Given()), policy=_POLICY, extraction=BehaviourCloning())


def _alone(arm: ControlRecipe) -> ControlRecipe:
    return arm.replace(phases=_phases(before=1.0, after=1.0))


_COUNTS = {"many": 50, "some": 10, "few": 5}
"""One of each of the five test tasks at least: with fewer, what the demonstrations lack is a task and not more of one."""
_ptr = {of: RECIPE.replace(tasks={"demonstrations": count}) for of, count in _COUNTS.items()}

CLAIM = Claim(
    name="ptr",
    paper="arXiv 2210.05178, abstract",
    statement="With few demonstrations of a task, offline RL on other tasks and then on both beats offline RL on the "
    "demonstrations, and the more so the fewer they are.",
    recipe=RECIPE,
    arms={f"{of}_ptr": arm for of, arm in _ptr.items()}
    | {f"{of}_alone": _alone(arm) for of, arm in _ptr.items()}
    | {"few_cloned": RECIPE.replace(agent=ControlAgent(levels=(_cloning,), batch=128))},
    expected=Ordering(relations=("few_ptr > few_alone by 0.1",)),
    dose=tuple(f"{of}_ptr > {of}_alone" for of in _COUNTS),
    reported=Ordering(relations=("few_ptr > few_cloned",)),
    worlds={"tasks.episodes": Between(low=100, high=800, log=True), "tasks.noise": Between(low=0.3, high=0.8)},
    grid={
        "agent.critic_lr": (1.6e-4, 4e-4, 1e-3, 2.5e-3, 6.4e-3, 1.6e-2, 4e-2),
        "few_cloned: agent.policy_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),  # it has no critic
    },
    tuning_seeds=(954, 955),
    seeds=tuple(range(640, 656)),
    cost="iterations",
)

FINDING = (
    "With five demonstrations, one of each task, both reach .86 of the goals; with fifty the demonstrations alone are .14 ahead. "
    "Cloning all data reaches .73 with five, 16 seeds."
)
