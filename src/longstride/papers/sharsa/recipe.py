"""SHARSA in mazes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.control import (
    SAC,
    BestOfN,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    FlowPolicy,
    GaussianPolicy,
    Level,
    NStep,
    PointMaze,
    Relabelled,
    TDCritic,
    TrainingPhase,
)
from longstride.models.heads import BCE
from longstride.models.mlp import Trunk
from longstride.papers.sharsa.method import N, Sarsa, SubgoalAhead
from longstride.setups import maze
from longstride.stats import Ordering

HINDSIGHT = Relabelled(current=0.2, future=0.5)
"""Goals that values are learned for."""
FAR = Relabelled(geometric=0.99)
"""Goals that policies are learned for."""


def sharsa(trunk: Trunk, tau: float = 0.005) -> ControlAgent:
    """The best of 32 subgoals of a flow by n-step SARSA, and a flow toward it."""
    subgoals = Level(
        data=NStep(goals=HINDSIGHT, action="subgoal", steps=N),
        policy_goals=FAR,
        critic=Sarsa(trunk=trunk, head=BCE(), tau=tau),
        policy=FlowPolicy(trunk=trunk),
        extraction=BestOfN(samples=32),
    )
    actions = Level(data=NStep(goals=SubgoalAhead()), policy=FlowPolicy(trunk=trunk))
    return ControlAgent(levels=(subgoals, actions))


def sac_bc(trunk: Trunk, tau: float, steps: int, alpha: float, temperature: float) -> ControlAgent:
    """SAC+BC with n-step returns: a flat, goal-conditioned actor-critic.

    Args:
        trunk: hidden layers of every network.
        tau: see `QCritic.tau`.
        steps: n.
        alpha: weight of the imitation; the paper's are 0.03 to 0.1 for n steps and 0.1 to 10 for one.
        temperature: where it starts; the paper's 1 needs some 15,000 updates at 3e-4 to fall to 0.01.
    """
    level = Level(
        data=NStep(goals=HINDSIGHT, steps=steps),
        policy_goals=FAR,
        critic=TDCritic(trunk=trunk, head=BCE(), tau=tau, target_range=(0.0, 1.0)),
        policy=GaussianPolicy(trunk=trunk),
        extraction=SAC(alpha=alpha, target_entropy=-0.5, temperature=temperature),
    )
    return ControlAgent(levels=(level,))


RECIPE = ControlRecipe(
    name="sharsa",
    tasks=PointMaze(maze="medium", walks="navigate"),
    agent=sharsa(Trunk(width=128, depth=2)),
    phases=(TrainingPhase(iterations=12, updates=1000),),
    horizon=maze.MEDIUM_HORIZON,
    test_horizon=maze.MEDIUM_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=4),
)

_compared = RECIPE.replace(
    tasks={"episodes": 100}, phases=(TrainingPhase(iterations=1, updates=2500),), evaluation={"episodes": 20}
)
_trunk = Trunk(width=64, depth=2)


def _flat(steps: int) -> ControlAgent:
    """SAC+BC as it does best on the short maze, on seeds 10 and 11, which the claim does not use:

    | alpha | 0.01 | 0.1 | 1 | 10 | 100 |
    |---|---|---|---|---|---|
    | one step | 0.28 | 0.52 | 0.99 | 0.80 | 0.78 |
    | 25 steps | 0.47 | 0.60 | 0.92 | 0.80 | 0.79 |

    The temperature starts low: from the paper's 1 it needs more updates to fall than there are, and the reward for
    entropy holds the policy back (0.93 and 0.84 at alpha 1; no success at all at the recipe's rates and alpha 0.3).
    """
    return sac_bc(_trunk, tau=0.02, steps=steps, alpha=1.0, temperature=0.01)


def _arm(agent: ControlAgent, layout: str, horizon: int) -> ControlRecipe:
    """With rates for 2,500 updates, which are too few at those of `RECIPE` (3e-4, tau 0.005): one-step SAC+BC reaches
    0.70 of the goals of the short maze there at the best alpha, and 0.98 with 10,000 at alpha 1 (one seed)."""
    return _compared.replace(
        agent=agent.replace(batch=128, critic_lr=1e-3, policy_lr=1e-3),
        tasks={"maze": layout},
        horizon={"limit": horizon},
        test_horizon={"limit": horizon},
    )


_agents = {"sharsa": sharsa(_trunk, tau=0.02), "n_step": _flat(N), "one_step": _flat(1)}
CLAIM = Claim(
    name="sharsa",
    paper="arXiv 2506.04168",
    statement="Where goals are far, values and policies of subgoals beat flat one-step values.",
    recipe=_compared,
    arms={
        prefix + name: _arm(agent, layout, horizon)
        for prefix, layout, horizon in (("", "large", maze.LARGE_HORIZON.limit), ("short_", "umaze", 150))
        for name, agent in _agents.items()
    },
    expected=Ordering(relations=("sharsa > one_step by 0.1",)),
    # where no goal is farther than six cells there is little horizon to reduce
    control=Ordering(relations=("short_sharsa > short_one_step by 0.1",)),
    reported=Ordering(relations=("n_step > one_step by 0.1", "short_n_step > short_one_step by 0.1")),
    seeds=tuple(range(20, 28)),
)

FINDING = """Networks of this size hardly order states far from their goal (0.60 of the steps of shortest paths, 0.52 with
one step), a table of the same data does (sharsa/exact)."""
