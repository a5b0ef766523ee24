"""WSRL: online after offline without keeping the offline data. Zhou et al., 2024, arXiv 2412.07762.

Without the offline data, the values collapse at the start of online training: the data that would correct them is gone,
and the new data is not there yet. WSRL pre-trains with Cal-QL, lets the frozen policy collect for a while, and only
then learns on: plain SAC, with many updates per step, on the new data alone. The three phases are the method.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline: Cal-QL's losses | 1M updates in antmaze | 240 updates of four critic steps |
| plan | warm-up: collect, learn nothing | 5,000 steps | 20 episodes, at most 2,000 steps |
| plan | online: no offline data, no conservatism | the same | 8 times 10 episodes |
| value | ensemble, the least of two at random | 10 critics | 4 critics |
| value | `Conservative(calibrated=True)` | 10 actions of each of three sources | 2 of each |
| update | four critic steps per policy step | 1024 in slices of 256, once a step | 128 in 32, 250 after 10 episodes |
| the rest | | | as in `cal_ql` |

Deviations: those of `cal_ql`. Over seeds 20 to 29 it goes online at 0.59 of the test episodes and ends at 0.90; without a
warm-up it ends at 0.81, with the data kept at 0.69. Over the whole of online training, which is what the claim compares,
these differences are within the noise.
"""

from longstride.claims.claim import Claim
from longstride.control import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.recipes.setups import maze
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
