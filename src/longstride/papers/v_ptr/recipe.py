"""V-PTR in the U-maze, where one walk in twenty has actions and rewards; and the claim.

The dose is how few walks are labelled. Where all are, values of actions can be learned from as much as values of states are.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import (
    SAC,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    Expectile,
    FurtherCritic,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    PointMaze,
    Relabelled,
    TrainingPhase,
)
from longstride.papers.v_ptr.method import FewLabels, TrunkQ, TrunkV
from longstride.setups import maze
from longstride.stats import Ordering

VALUE = "value"
"""Name of the critic of states."""


def agent(critic: TrunkQ, value: TrunkV, reward_scale: float, batch: int) -> ControlAgent:
    """CQL, and values of states toward what walks reach, on one trunk."""
    level = Level(
        data=NStep(goals=Given(), reward_scale=reward_scale),
        critic=critic,
        further={
            VALUE: FurtherCritic(critic=value, data=NStep(goals=Relabelled(current=0.2, future=0.5, geometric=0.98)))
        },
        policy=GaussianPolicy(trunk=critic.trunk),
        extraction=SAC(temperature=0.01),
    )
    return ControlAgent(levels=(level,), batch=batch, critic_lr=1e-3)


def phases(before: int, after: int, updates: int) -> tuple[TrainingPhase, ...]:
    """Iterations of values of states from all walks, and then of CQL from labelled ones."""
    states = TrainingPhase(iterations=max(before, 1), updates=updates, learning=(VALUE,))
    actions = TrainingPhase(iterations=after, updates=updates, learning=("critic",), demonstrated=1.0)
    return (states, actions) if before else (actions,)


_trunk = maze.TRUNK.replace(depth=1)
RECIPE = ControlRecipe(
    name="v_ptr",
    tasks=FewLabels(tasks=PointMaze(maze="umaze", walks="reach", episodes=200, length=maze.SHORT_HORIZON.limit)),
    agent=agent(
        TrunkQ(trunk=_trunk, tau=0.02, target_range=(0.0, maze.SUCCESS), conservative=maze.CONSERVATIVE),
        TrunkV(trunk=_trunk, tau=0.02, maximiser=Expectile(expectile=0.9)),
        maze.SUCCESS,
        batch=128,
    ),
    phases=phases(before=2, after=2, updates=300),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=20, every=2),
)


def _scratch(arm: ControlRecipe) -> ControlRecipe:
    """As many updates, all of them CQL's."""
    return arm.replace(phases=phases(before=0, after=4, updates=300))


_SHARES = {"all": 1.0, "some": 0.2, "few": 0.05}
_pretrained = {of: RECIPE.replace(tasks={"labelled": share}, evaluation={"every": 4}) for of, share in _SHARES.items()}

CLAIM = Claim(
    name="v_ptr",
    paper="arXiv 2309.13041, abstract",
    statement="Where few walks have actions and rewards, offline RL on a trunk that has learned values of walks without them beats "
    "offline RL from scratch, and the more so the fewer they are.",
    recipe=RECIPE.replace(evaluation={"every": 4}),
    arms={f"{of}_pretrained": arm for of, arm in _pretrained.items()}
    | {f"{of}_scratch": _scratch(arm) for of, arm in _pretrained.items()},
    expected=Ordering(relations=("few_pretrained > few_scratch by 0.1",)),
    dose=tuple(f"{of}_pretrained > {of}_scratch" for of in _SHARES),
    worlds={
        "tasks.tasks.episodes": Between(low=100, high=400, log=True),
        "tasks.tasks.noise": Between(low=0.3, high=0.8),
    },
    grid={"agent.critic_lr": (3e-4, 6e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)},
    tuning_seeds=(982, 983),
    seeds=tuple(range(780, 796)),
    cost="iterations",
)
