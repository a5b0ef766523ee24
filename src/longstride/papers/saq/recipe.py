"""SAQ in mazes: actions become codes, and CQL for discrete actions learns their values; and the claim."""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import DQN, CategoricalPolicy, ControlAgent, Greedy, TrainingPhase
from longstride.control.critics import ControlCritic
from longstride.control.extraction import Extraction
from longstride.papers.saq.method import VQCodes
from longstride.setups import maze
from longstride.stats import Ordering

CODES = VQCodes(count=16, size=8, trunk=maze.TRUNK)
CRITIC = DQN(trunk=maze.TRUNK, tau=maze.CRITIC.tau, gap=0.3)


def saq(codes: VQCodes = CODES, critic: ControlCritic = CRITIC, extraction: Extraction | None = None) -> ControlAgent:
    """Codes, and what learns of them.

    Args:
        codes: how actions become codes.
        critic: of discrete actions.
        extraction: None: the code with the greatest value.
    """
    policy = CategoricalPolicy(trunk=maze.TRUNK)
    agent = maze.agent(critic, policy, extraction or Greedy(), critic_lr=1e-3, policy_lr=1e-3)
    (level,) = agent.levels
    return agent.replace(levels=(level.replace(codes=codes),))


_cloned = TrainingPhase(iterations=1, updates=1000, cloning=True)
RECIPE = maze.offline("saq", CRITIC, CategoricalPolicy(trunk=maze.TRUNK), Greedy()).replace(
    agent=saq(), phases=(_cloned, TrainingPhase(iterations=4, updates=500))
)

_claimed = RECIPE.replace(evaluation={"every": 5, "episodes": 20})
_WANDERING = {"good": 0.0, "mixed": 0.4, "poor": 0.8}
"""Share of walks that go anywhere: the more, the more is there that a method must not do."""
_agents = {
    "saq": saq(),
    "blind": saq(CODES.replace(knows_state=False)),
    "cql": maze.actor_critic(maze.CRITIC.replace(conservative=maze.CONSERVATIVE), critic_lr=1e-3).replace(
        policy_lr=1e-3
    ),
}

CLAIM = Claim(
    name="saq",
    paper="arXiv 2310.11731, abstract and the ablation of states",
    statement="CQL on codes of actions is worth more than on the actions, and the more so the more kinds of walks the data mix.",
    recipe=_claimed,
    arms={
        f"{name}_{kind}": _claimed.replace(agent=agent, tasks={"wandering": share})
        for kind, share in _WANDERING.items()
        for name, agent in _agents.items()
        if name != "blind" or kind == "poor"
    },
    expected=Ordering(relations=("saq_poor > cql_poor by 0.1",)),
    dose=tuple(f"saq_{kind} > cql_{kind}" for kind in _WANDERING),
    reported=Ordering(relations=("saq_poor > blind_poor by 0.1",)),
    worlds={"tasks.episodes": Between(low=200, high=800, log=True), "tasks.noise": Between(low=0.3, high=1.0)},
    # how conservative each is, too: their weights are of terms that are not computed alike
    grid={
        "agent.critic_lr": (1.6e-4, 4e-4, 1e-3, 2.5e-3, 6.4e-3, 1.6e-2),
        "agent.levels.0.critic.gap": (0.03, 0.1, 0.3, 1.0, 3.0),
        "agent.levels.0.critic.conservative.weight": (0.1, 0.3, 1.0, 3.0, 10.0),
    },
    tuning_seeds=(950, 951),
    seeds=tuple(range(680, 712)),
    cost="iterations",
)
