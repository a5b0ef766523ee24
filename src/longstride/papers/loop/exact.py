"""LOOP on enumerable answers: a ratio clipped token by token against that of the whole trajectory.

| place | choice | `loop` | here |
|---|---|---|---|
| plan | groups of one task | 6 episodes of many turns | 6 answers of eight binary tokens |
| credit, update | `DeadZone`, `PPO` | two passes in batches | 8 steps on the whole batch |

Ratios of turns are `gspo` here: the geometric mean of a turn's tokens, as the only turn is the whole answer. What the
trajectory's ratio loses is what clipping takes: with a clip that never binds the difference is gone (the second control),
and both learn more than with it, for a table is in no danger of leaving the region where its samples say something.
"""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import PPO, Mean
from longstride.methods.ratios import GSPO
from longstride.papers.loop.method import DeadZone, TrajectoryPPO
from longstride.stats import Ordering

LOW, HIGH = 1 - 1 / 1.1, 0.1
EPISODES = Mean(over="episode")

RECIPE = recipe(
    "loop/exact",
    Answers(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.4) * 2), vocabulary=2, length=8),
    Grouped(
        credit=DeadZone(baseline="leave_one_out", normalize="none"),
        loss=PPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH),
        group=6,
        rate=16.0,
        passes=8,
    ),
    iterations=20,
)

_whole = {"loss": TrajectoryPPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH)}
_wide = {"loss": {"clip_low": 1.0, "clip_high": 1e6}}

CLAIM = Claim(
    name="loop/exact",
    paper="arXiv 2502.01600, section 5, ablation of the importance weight",
    statement="Used for several steps, rollouts teach more with a ratio clipped token by token than with that of the "
    "whole trajectory.",
    recipe=RECIPE,
    arms={
        "token": RECIPE,
        "trajectory": RECIPE.replace(method=_whole),
        "mean_of_turn": RECIPE.replace(method={"loss": GSPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH)}),
        "one_step_token": RECIPE.replace(method={"passes": 1}),
        "one_step_trajectory": RECIPE.replace(method={"passes": 1, **_whole}),
        "wide_token": RECIPE.replace(method=_wide),
        "wide_trajectory": RECIPE.replace(method=_whole).replace(method=_wide),
    },
    expected=Ordering(relations=("token > trajectory by 0.05",)),
    # the first step has ratio 1; and where the clip never binds it does not matter what it is of
    control=Ordering(
        relations=("one_step_token > one_step_trajectory by 0.01", "wide_token > wide_trajectory by 0.02")
    ),
    seeds=SEEDS,
)
