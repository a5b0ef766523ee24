"""PA-RL in mazes: a policy of any class is cloned, then improved offline; and the claim."""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import (
    BestOfN,
    BinsPolicy,
    ControlAgent,
    ControlEvaluation,
    ControlPolicy,
    ControlRecipe,
    FlowPolicy,
    GaussianPolicy,
    TrainingPhase,
)
from longstride.models.heads import HLGauss
from longstride.papers.pa_rl.method import ActionSearch, Optimised, SearchedTD
from longstride.setups import maze
from longstride.stats import Ordering

SEARCH = ActionSearch(samples=8, kept=4, steps=3, rate=0.01)
CRITIC = SearchedTD(
    trunk=maze.TRUNK,
    head=HLGauss(low=-maze.SUCCESS, high=maze.SUCCESS, bins=51),  # so that values begin at 0
    reduction="mean",
    tau=maze.CRITIC.tau,
    conservative=maze.CONSERVATIVE.replace(weight=0.05, importance=False, calibrated=True),
    search=SEARCH,
)
POLICIES: dict[str, ControlPolicy] = {
    "flow": FlowPolicy(trunk=maze.TRUNK, steps=5),
    "gaussian": GaussianPolicy(trunk=maze.TRUNK),
    "bins": BinsPolicy(trunk=maze.TRUNK, bins=15),
}


def _agent(policy: ControlPolicy) -> ControlAgent:
    return maze.agent(
        CRITIC, policy, Optimised(search=SEARCH, temperature=0.1), critic_lr=1e-3, policy_lr=1e-3
    ).replace(batch=64)


def _ranked(policy: ControlPolicy) -> ControlAgent:
    """As `_agent`, but the policy stays cloned, and the best of as many actions is taken as it proposes."""
    critic = CRITIC.replace(search={"steps": 0})
    return maze.agent(critic, policy, BestOfN(samples=SEARCH.samples), critic_lr=1e-3, policy_lr=1e-3).replace(batch=64)


RECIPE = ControlRecipe(
    name="pa_rl",
    tasks=maze.ONLINE.replace(episodes=60, noise=1.5),
    agent=_agent(POLICIES["flow"]),
    phases=(TrainingPhase(iterations=1, updates=600, cloning=True), TrainingPhase(iterations=4, updates=250)),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

_claimed = RECIPE.replace(evaluation={"every": 5, "episodes": 20})
_NOISE = {"calm": 0.5, "noisy": 1.0, "wild": 2.0}
"""Deviation of the noise on the walks' actions: the more, the less is in cloning them."""

CLAIM = Claim(
    name="pa_rl",
    paper="arXiv 2412.06685, tables of D4RL, and the ablation of global and local optimisation",
    statement="Imitating improved actions is worth more than choosing among those of a cloned policy, and the more so the "
    "worse the data.",
    recipe=_claimed,
    arms={
        f"{noise}_{policy}_{name}": _claimed.replace(agent=agent(POLICIES[policy]), tasks={"noise": _NOISE[noise]})
        for noise, policy in (*((noise, "flow") for noise in _NOISE), ("wild", "gaussian"), ("wild", "bins"))
        for name, agent in (("imitated", _agent), ("ranked", _ranked))
    },
    expected=Ordering(
        relations=tuple(f"wild_{policy}_imitated > wild_{policy}_ranked by 0.1" for policy in POLICIES),
    ),
    dose=tuple(f"{noise}_flow_imitated > {noise}_flow_ranked" for noise in _NOISE),
    worlds={"tasks.episodes": Between(low=40, high=160, log=True), "tasks.wandering": Between(low=0.0, high=0.3)},
    grid={"agent.critic_lr": (1.6e-4, 4e-4, 1e-3, 2.5e-3, 6.4e-3, 1.6e-2)},
    tuning_seeds=(950, 951),
    seeds=tuple(range(600, 616)),
    cost="iterations",
)

FINDING = (
    "Imitating improved actions reaches .19 of the goals with flows, .19 with Gaussians and .24 with bins, and choosing among those of a cloned "
    "policy .23, .23 and .21; all are low, and two tuning seeds say little of the rates."
)
