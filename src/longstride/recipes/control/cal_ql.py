"""Cal-QL: calibrated values for fine-tuning online. Nakamoto et al., 2023, arXiv 2303.05479.

CQL's values are far too low where offline training stops, so the first steps online look like a discovery and what was
learned is lost. Cal-QL is CQL with one change: in CQL's gap, for the actions of the policy,

    max(Q(s, a), return of the data from s)

takes the place of Q(s, a), so that no value is lowered below that return. Values stay on the scale of returns, and
online training costs no success at its start. The change is `calibrate` in `control.conservative`, which WSRL uses too.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline, then online | 1M updates in antmaze, then online | 600 updates, then 8 times 10 episodes |
| plan | online on what is tested | the same start and goal | the five test tasks |
| value | `Conservative(calibrated=True)` | the policy's actions alone are calibrated | the same |
| value | return to go | of the data's episodes; failures: r / (1 - gamma) | the same |
| update | online: half of a batch is offline data | one update a step | 250 updates after 10 episodes |
| the rest | | as in `cql` | as in `cql`; Adam 3e-4, U-maze, 20 walks |

Deviations: those of `cql`; updates come after complete episodes, since a return is known only at the end. At this size
CQL's values do end further below the returns, but they lose nothing online, so its claim stands undecided.
"""

from longstride.claims.claim import Claim
from longstride.control import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.recipes.setups import maze
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
