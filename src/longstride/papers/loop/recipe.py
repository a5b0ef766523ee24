"""LOOP on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Mean
from longstride.papers.loop.method import DeadZone, TrajectoryPPO
from longstride.setups import puzzles, sites
from longstride.stats import Ordering

LOW, HIGH = 1 - 1 / 1.1, 0.1
"""How far a ratio may pull: within [1 / 1.1, 1.1]."""

RECIPE = sites.recipe(
    "loop",
    episodes_per_iteration=240,
    group_size=6,
    credit=DeadZone(baseline="leave_one_out", normalize="none"),
    loss=PPO(clip_low=LOW, clip_high=HIGH, aggregation=Mean(over="token")),
    learner={"batch_samples": 192},
)

# on tasks of one turn, where seeds are cheap: there a turn is a trajectory
ARM = puzzles.arm(puzzles.recipe("loop", credit=RECIPE.credit, loss=RECIPE.loss)).replace(evaluation={"start": False})
_whole = {"loss": TrajectoryPPO(clip_low=LOW, clip_high=HIGH, aggregation=Mean(over="token"))}


def _passes(n: int) -> dict[str, dict[str, int]]:
    return {"learner": {"epochs": n}}


CLAIM = Claim(
    name="loop",
    paper="arXiv 2502.01600, section 5, ablation of the importance weight",
    statement="By equal environment steps, answers that are used for four passes teach more with a ratio clipped token by token "
    "than with that of a whole turn, each at its own best rate.",
    recipe=ARM,
    arms={
        **{f"token_{n}": ARM.replace(**_passes(n)) for n in (1, 2, 4)},
        **{f"whole_{n}": ARM.replace(**_whole).replace(**_passes(n)) for n in (1, 2, 4)},
    },
    expected=Ordering(relations=("token_4 > whole_4 by 0.02",)),
    # the further the policy is from the one that sampled, the more a clip takes
    dose=("token_1 > whole_1", "token_2 > whole_2", "token_4 > whole_4"),
    seeds=tuple(range(1220, 1240)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    # as long as what is judged: the best rate of half a run is too high for the ratio of whole turns (see the card)
    tuning={"evaluation.tasks": 400},
    cost="env_steps",
)
