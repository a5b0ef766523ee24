"""AsyncWebRL: multi-step GRPO with rollouts that run ahead of the update. arXiv 2606.05597.

A pool that never waits for an iteration's slowest episode makes training off-policy by up to two versions; decoupled PPO corrects that.
Dividing every step's advantage by a constant k, and not by the length of its own episode, takes away a bias: long failures were punished
less for each token than short successes were praised, which teaches to fail slowly.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes; waits for 16 groups with unequal rewards | 8; 32 groups, those with equal rewards dropped |
| plan | `PerDifficulty` | trains at 10, 20, 30 turns, tests at 30, 50, 70 | 8, 16, 24; tests at 24 |
| roll out | `pool.staleness` | at most 2 versions, 1280 episodes in flight | the same bound |
| roll out | sampling, context | temperature 1; only the newest page | temperature 1; all pages stay (the base was made so) |
| score | `TaskReward` | a rubric's judge | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std, divided by k = 10 | the same, k = 8, the easy horizon |
| update | `PPO` with `ImportanceCorrection` | clip 0.2, dual 3; w = start / sampler, masked above 5; mean over tokens, no KL | the same |
| update | passes, rate | 2 minibatches, 3 epochs; 5e-6, cosine over 300 steps to a tenth | the same passes; 3e-4 |

Deviations: a model of about a million parameters on embedded sites; an iteration starts a fixed number of groups and trains on those that
are mixed, where the paper goes on until it has 16 of them. A mean over tokens divides by the turns of the whole batch, so part of the
bias stays: `asyncwebrl_length` computes how much.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.curriculum.stages import PerDifficulty
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, ImportanceCorrection, Mean
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.rollout.scheduler import PoolConfig
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "asyncwebrl",
    group_size=8,
    budget={"turns": PerDifficulty(easy=Fixed(limit=SHORT), medium=Fixed(limit=MEDIUM), hard=Fixed(limit=LONG))},
    pool=PoolConfig(staleness=2),
    credit=GroupRelative(length_divisor=float(SHORT), drop_zero_variance=True),
    loss=PPO(dual_clip=3.0, correction=ImportanceCorrection(mode="mask", max=5.0), aggregation=Mean(over="token")),
    learner=LearnerConfig(lr=3e-4, warmup_steps=5, decay_steps=300, epochs=3, batch_samples=768),
)

ARM = sites.arm(RECIPE)
_by_turns = {"length_divisor": "turns"}

CLAIM = Claim(
    name="asyncwebrl",
    paper="arXiv 2606.05597, abstract",
    statement="A constant in place of the episode's own length as divisor of advantages makes episodes shorter.",
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
    seeds=(0, 1, 2, 3, 4),
)
