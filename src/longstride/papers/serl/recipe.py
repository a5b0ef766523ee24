"""SERL in mazes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.control import (
    SAC,
    BehaviourCloning,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TrainingPhase,
)
from longstride.setups import maze
from longstride.stats import Ordering

_data = NStep(goals=Given(), reward_scale=maze.SUCCESS, discount=0.97)
_policy = GaussianPolicy(trunk=maze.TRUNK)
_rlpd = ControlAgent(
    levels=(
        Level(
            data=_data,
            critic=maze.CRITIC.replace(ensemble=10, subset=2, trunk=maze.TRUNK.replace(norm=True)),
            policy=_policy,
            extraction=SAC(temperature=0.01),
        ),
    ),
    batch=128,
    slices=4,
    critic_lr=1e-3,
)
_cloning = ControlAgent(levels=(Level(data=_data, policy=_policy, extraction=BehaviourCloning()),), batch=128)


def online(retained: float) -> tuple[TrainingPhase, ...]:
    """From the first episode on; `retained` is the share of demonstrations in a batch."""
    return (TrainingPhase(iterations=10, episodes=10, updates=250, retained=retained, conservative=False),)


RECIPE = ControlRecipe(
    name="serl",
    tasks=maze.ONLINE,
    agent=_rlpd,
    phases=online(retained=0.5),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=2),
)

_few = RECIPE.replace(tasks={"episodes": 5})
_arms = {
    "rlpd": _few,
    "cloning": _few.replace(agent=_cloning, phases=(TrainingPhase(iterations=10, updates=250),)),
}
_many = {"episodes": 400, "noise": 0.1}

CLAIM = Claim(
    name="serl",
    paper="arXiv 2401.16013, section on demonstrations; arXiv 2302.02948",
    statement="Online learning that keeps five demonstrations in every batch ends above cloning them.",
    recipe=_few,
    arms=_arms | {f"expert_{name}": arm.replace(tasks=_many) for name, arm in _arms.items()},
    expected=Ordering(relations=("rlpd > cloning by 0.1",)),
    # cloning many good demonstrations leaves nothing to gain
    control=Ordering(relations=("expert_rlpd > expert_cloning by 0.1",)),
    seeds=tuple(range(100, 106)),
)

FINDING = (
    "Two of six runs stayed at 0.60, and left the interval too wide for the margin; the effect is gone with many walks."
)
