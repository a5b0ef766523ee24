"""CQL in mazes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.control import ControlEvaluation, ControlRecipe, PointMaze, TrainingPhase
from longstride.setups import maze
from longstride.stats import Ordering

RECIPE = ControlRecipe(
    name="cql",
    tasks=PointMaze(maze="medium", walks="reach", episodes=400, length=maze.MEDIUM_HORIZON.limit),
    agent=maze.actor_critic(maze.CRITIC.replace(conservative=maze.CONSERVATIVE), critic_lr=1e-3),
    phases=(TrainingPhase(iterations=4, updates=500),),
    horizon=maze.MEDIUM_HORIZON,
    test_horizon=maze.MEDIUM_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

_compared = RECIPE.replace(evaluation={"every": 4, "episodes": 20})
_plain = (TrainingPhase(iterations=4, updates=500, conservative=False),)
# with noise far beyond the range of actions the data holds all actions in all places: none is left to overestimate
_covered = _compared.replace(tasks={"noise": 3.0})

CLAIM = Claim(
    name="cql",
    paper="arXiv 2006.04779",
    statement="Learning from given data alone, conservative values beat those of plain SAC.",
    recipe=_compared,
    arms={
        "cql": _compared,
        "sac": _compared.replace(phases=_plain),
        "covered_cql": _covered,
        "covered_sac": _covered.replace(phases=_plain),
    },
    expected=Ordering(relations=("cql > sac by 0.1",)),
    control=Ordering(relations=("covered_cql > covered_sac by 0.1",)),
)

FINDING = "With this scatter it would take some 110 seeds to tell the difference from its margin."
