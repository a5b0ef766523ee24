"""AsyncWebRL on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum import BudgetSchedule, Fixed
from longstride.curriculum.schedules import PerDifficulty
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, ImportanceCorrection, Mean, MixedGroups
from longstride.rollout.scheduler import PoolConfig
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHORT
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
_LIMITS = {f"{limit}_turns": BudgetSchedule(turns=limit) for limit in (SHORT, MEDIUM, LONG)}
"""Of all episodes, in training and in the test."""
_arms = {of: ARM.replace(budget=limit, test_budget=limit) for of, limit in _LIMITS.items()}

CLAIM = Claim(
    name="asyncwebrl",
    paper="arXiv 2606.05597, abstract",
    statement="A constant in place of the episode's own length as divisor of advantages makes episodes shorter, after as many "
    "iterations, and by the more the longer they may be.",
    recipe=ARM,
    arms={f"constant_{of}": arm for of, arm in _arms.items()}
    | {f"by_length_{of}": arm.replace(credit={"length_divisor": "turns"}) for of, arm in _arms.items()},
    measure="length",
    expected=Ordering(relations=(f"by_length_{LONG}_turns > constant_{LONG}_turns by 0.5",)),
    # where all failures are as short as successes the two divisors differ by a factor alone
    dose=tuple(f"by_length_{of} > constant_{of}" for of in _LIMITS),
    reported=Ordering(relations=(f"constant_{LONG}_turns > by_length_{LONG}_turns in success",)),
    seeds=tuple(range(1820, 1830)),
    tuning_seeds=(982, 983),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    tuned_by="success",
    # shorter episodes are the effect, so environment steps cannot be held equal
    cost="iterations",
    scale=(1.0, float(LONG)),
)
