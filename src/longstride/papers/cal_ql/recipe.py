"""Cal-QL in mazes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.control import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.setups import maze
from longstride.stats import Ordering

RECIPE = ControlRecipe(
    name="cal_ql",
    tasks=maze.ONLINE,
    agent=maze.actor_critic(maze.CRITIC.replace(conservative=maze.CONSERVATIVE.replace(calibrated=True))),
    phases=(
        TrainingPhase(iterations=4, updates=150),
        TrainingPhase(iterations=8, episodes=10, updates=250, retained=0.5),
    ),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)


def _weighted(calibrated: bool, weight: float) -> ControlRecipe:
    term = maze.CONSERVATIVE.replace(calibrated=calibrated, weight=weight)
    return RECIPE.replace(agent=maze.actor_critic(maze.CRITIC.replace(conservative=term)))


CLAIM = Claim(
    name="cal_ql",
    paper="arXiv 2303.05479",
    statement="Going online after offline training, calibrated values lose less than those of CQL.",
    measure="online_success",
    recipe=RECIPE,
    arms={
        "cal_ql": RECIPE,
        "cql": _weighted(calibrated=False, weight=1.0),
        "slight_cal_ql": _weighted(calibrated=True, weight=0.01),
        "slight_cql": _weighted(calibrated=False, weight=0.01),
    },
    expected=Ordering(relations=("cal_ql > cql by 0.02",)),
    # where values are hardly lowered, there is nothing to keep up
    control=Ordering(relations=("slight_cal_ql > slight_cql by 0.02",)),
    seeds=tuple(range(20, 30)),
)

FINDING = "At this size CQL loses nothing online, so there is nothing to keep up."
