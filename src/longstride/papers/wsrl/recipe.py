"""WSRL in mazes: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.control import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.setups import maze
from longstride.stats import Ordering


def phases(warmup: int, retained: float, conservative: bool) -> tuple[TrainingPhase, ...]:
    """Offline, warm-up, online. After the offline phase: ten iterations of 10 episodes, 2,000 updates in all.

    Args:
        warmup: iterations in which the frozen policy collects and nothing is learned.
        retained: share of offline data in a batch of online training.
        conservative: whether online training keeps the conservative term.
    """
    online = 10 - warmup
    offline = TrainingPhase(iterations=4, updates=60)
    warm = (TrainingPhase(iterations=warmup, episodes=10),) if warmup else ()
    learning = TrainingPhase(
        iterations=online, episodes=10, updates=2000 // online, retained=retained, conservative=conservative
    )
    return (offline, *warm, learning)


RECIPE = ControlRecipe(
    name="wsrl",
    tasks=maze.ONLINE,
    agent=maze.actor_critic(
        maze.CRITIC.replace(ensemble=4, subset=2, conservative=maze.CONSERVATIVE.replace(calibrated=True)), slices=4
    ),
    phases=phases(warmup=2, retained=0.0, conservative=False),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

CLAIM = Claim(
    name="wsrl",
    paper="arXiv 2412.07762",
    statement="Without offline data, collecting with the frozen policy before learning online avoids a collapse.",
    measure="online_success",
    recipe=RECIPE,
    arms={
        "warm": RECIPE,
        "cold": RECIPE.replace(phases=phases(warmup=0, retained=0.0, conservative=False)),
        "retaining": RECIPE.replace(phases=phases(warmup=0, retained=0.5, conservative=True)),
        "retaining_warm": RECIPE.replace(phases=phases(warmup=2, retained=0.5, conservative=True)),
    },
    expected=Ordering(relations=("warm > cold by 0.02",)),
    # with the offline data kept, the states that a warm-up provides are there already
    control=Ordering(relations=("retaining_warm > retaining by 0.05",)),
    reported=Ordering(relations=("warm > retaining",)),
    seeds=tuple(range(20, 30)),
)

FINDING = (
    "Nothing collapses without a warm-up: success while online is 0.70 without, 0.73 with one, 0.70 with the data kept."
)
