"""AsyncWebRL on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import PerDifficulty
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, ImportanceCorrection, Mean, MixedGroups
from longstride.rollout.scheduler import PoolConfig
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "asyncwebrl",
    group_size=8,
    budget={"turns": PerDifficulty(easy=Fixed(limit=SHORT), medium=Fixed(limit=MEDIUM), hard=Fixed(limit=LONG))},
    pool=PoolConfig(staleness=2),
    replay=MixedGroups(),
    credit=GroupRelative(length_divisor=float(SHORT)),
    loss=PPO(dual_clip=3.0, correction=ImportanceCorrection(mode="mask", max=5.0), aggregation=Mean(over="token")),
    learner=LearnerConfig(lr=3e-4, warmup_steps=5, decay_steps=300, epochs=3, batch_samples=768),
)

ARM = sites.arm(RECIPE)
_by_turns = {"length_divisor": "turns"}

CLAIM = Claim(
    name="asyncwebrl",
    paper="arXiv 2606.05597, abstract",
    statement="A constant in place of the episode's own length as divisor of advantages makes episodes shorter, after as many iterations.",
    recipe=ARM,
    arms={
        "constant": ARM,
        "by_turns": ARM.replace(credit=_by_turns),
        "coupled": ARM.replace(loss={"correction": None}),
        "sheet_constant": ARM.replace(tasks=SHEET),
        "sheet_by_turns": ARM.replace(tasks=SHEET, credit=_by_turns),
    },
    measure="length",
    expected=Ordering(relations=("by_turns > constant by 0.5",)),
    # on a sheet all episodes are of one length: the two divisors differ by a factor alone
    control=Ordering(relations=("sheet_by_turns > sheet_constant by 0.5",)),
    reported=Ordering(relations=("constant > coupled in success",)),
    seeds=tuple(range(1820, 1830)),
    tuning_seeds=(982, 983),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    tuned_by="success",
    # shorter episodes are the effect, so environment steps cannot be held equal
    cost="iterations",
    scale=(1.0, float(LONG)),
)
