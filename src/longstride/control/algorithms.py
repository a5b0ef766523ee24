"""Algorithms as configurations: each is an `Agent`, and what trains it online as `Phase`s.

Numbers are those of the papers' code, except that networks, batches and n are sized for `PointMaze` on a processor:
three layers of 256, batch 256, n = 25, gamma 0.99.
"""

from longstride.control.agent import Agent, Level
from longstride.control.batches import Ahead, Gather, Given, Relabelled
from longstride.control.conservative import Conservative
from longstride.control.critics import PolicyValue, Sarsa
from longstride.control.extraction import SAC, Rejection
from longstride.control.loop import Phase
from longstride.control.policies import Gaussian
from longstride.models.heads import BCE
from longstride.models.mlp import Trunk

N = 25
"""Steps of an n-step return, and to a subgoal."""
HINDSIGHT = Relabelled(current=0.2, future=0.5)
"""Goals that values are learnt for."""
FAR = Relabelled(geometric=0.99)
"""Goals that policies are learnt for."""

IMITATE = Level(data=Gather(goals=FAR))
"""Actions toward a goal, as in the data."""
FOLLOW = Level(data=Gather(goals=Ahead(steps=N)))
"""Actions toward a subgoal n steps ahead, as in the data."""

FLOW_BC = Agent(levels=(IMITATE,))
"""Behaviour cloning by a flow."""

HIERARCHICAL_BC = Agent(levels=(Level(data=Gather(goals=FAR, action="subgoal", steps=N)), FOLLOW))
"""Behaviour cloning of subgoals, and of actions toward them."""

SHARSA = Agent(
    levels=(
        Level(
            data=Gather(goals=HINDSIGHT, action="subgoal", steps=N),
            policy_goals=FAR,
            critic=Sarsa(head=BCE()),
            extraction=Rejection(samples=32),
        ),
        FOLLOW,
    )
)
"""n-step SARSA of subgoals, the best of 32 subgoals of a flow, a flow toward it (arXiv 2506.04168)."""

DOUBLE_SHARSA = Agent(
    levels=(
        SHARSA.levels[0],
        Level(
            data=Gather(goals=Relabelled(geometric=1 - 1 / N), discount=1 - 1 / N),
            policy_goals=Ahead(steps=N),
            critic=Sarsa(head=BCE()),
            extraction=Rejection(samples=32),
        ),
    )
)
"""SHARSA that also chooses the best of 32 actions toward the subgoal."""


def sac_bc(steps: int, alpha: float, temperature: float = 1.0) -> Agent:
    """SAC+BC with n-step returns (arXiv 2506.04168): a flat, goal-conditioned actor-critic.

    The policy climbs the least of the two critics; the paper's climbs their mean.

    Args:
        steps: n.
        alpha: weight of the imitation; the paper's are 0.03 to 0.1 for n steps and 0.1 to 10 for one.
        temperature: where it starts; the paper's 1 needs some 15,000 updates at 3e-4 to fall to 0.01.
    """
    level = Level(
        data=Gather(goals=HINDSIGHT, steps=steps),
        policy_goals=FAR,
        critic=PolicyValue(head=BCE(), range=(0.0, 1.0)),
        policy=Gaussian(),
        extraction=SAC(alpha=alpha, entropy=-0.5, temperature=temperature),
    )
    return Agent(levels=(level,))


def sized(agent: Agent, trunk: Trunk) -> Agent:
    """An agent with other hidden layers, the same in all of its networks."""
    levels = []
    for level in agent.levels:
        critic = level.critic.model_copy(update={"trunk": trunk}) if level.critic is not None else None
        policy = level.policy.model_copy(update={"trunk": trunk})
        levels.append(level.model_copy(update={"critic": critic, "policy": policy}))
    return agent.model_copy(update={"levels": tuple(levels)})


def reaching(critic: PolicyValue) -> Level:
    """SAC's level for tasks that earn 1 at success and end there; each step costs 1 until then."""
    return Level(data=Gather(goals=Given(), shift=-1.0), critic=critic, policy=Gaussian(), extraction=SAC())


CALIBRATED = Conservative(calibrated=True)

CQL = Agent(levels=(reaching(PolicyValue(conservative=Conservative())),), policy_lr=1e-4)
"""arXiv 2006.04779."""

CAL_QL = Agent(levels=(reaching(PolicyValue(conservative=CALIBRATED)),), policy_lr=1e-4)
"""arXiv 2303.05479."""

WSRL = Agent(
    levels=(reaching(PolicyValue(trunk=Trunk(depth=2), ensemble=10, subset=2, conservative=CALIBRATED)),),
    policy_lr=1e-4,
    batch=1024,
    slices=4,
)
"""What WSRL (arXiv 2412.07762) pre-trains and goes on with: Cal-QL's losses first, ten critics of which two make a
target, four critic steps a policy step."""


def offline(iterations: int, updates: int = 1000) -> Phase:
    """Updates on the offline data."""
    return Phase(iterations=iterations, updates=updates)


def retaining(iterations: int, episodes: int, utd: float = 1.0) -> Phase:
    """Online with half of each batch from the offline data: Cal-QL's fine-tuning."""
    return Phase(iterations=iterations, episodes=episodes, utd=utd, retained=0.5)


def warm_started(warmup: int, iterations: int, episodes: int, utd: float = 1.0) -> tuple[Phase, Phase]:
    """WSRL's online part: collect with the frozen policy, then plain SAC on what was collected alone."""
    return (
        Phase(iterations=warmup, episodes=episodes),
        Phase(iterations=iterations, episodes=episodes, utd=utd, retained=0.0, conservative=False),
    )
