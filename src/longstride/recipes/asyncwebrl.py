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
| update | `PPO` with `Correction` | clip 0.2, dual 3; w = start / sampler, masked above 5; mean over tokens, no KL | the same |
| update | passes, rate | 2 minibatches, 3 epochs; 5e-6, cosine over 300 steps to a tenth | the same passes; 3e-4 |

Deviations: a model of about a million parameters on embedded sites; an iteration starts a fixed number of groups and trains on those that
are mixed, where the paper goes on until it has 16 of them.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed, PerDifficulty
from longstride.engines.base import Sampling
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, Correction, GroupRelative, Mean, OnPolicy
from longstride.recipes import tti
from longstride.rollout.rounds import PoolConfig
from longstride.run.recipe import Recipe
from longstride.stats import Ordering

EASY, MEDIUM, HARD = 8, 16, 24
"""Turns by difficulty."""

RECIPE = Recipe(
    name="asyncwebrl",
    iterations=16,
    episodes=256,
    group=8,
    tasks=tti.RECIPE.tasks,
    horizon=PerDifficulty(easy=Fixed(limit=EASY), medium=Fixed(limit=MEDIUM), hard=Fixed(limit=HARD)),
    test_horizon=Fixed(limit=HARD),
    context=tti.RECIPE.context,
    sampling=Sampling(),
    pool=PoolConfig(staleness=2),
    reward=tti.RECIPE.reward,
    replay=OnPolicy(),
    credit=GroupRelative(length=float(EASY), mixed_only=True),
    loss=PPO(dual=3.0, correction=Correction(beyond="mask", cap=5.0), aggregation=Mean(over="token")),
    learner=LearnerConfig(lr=3e-4, warmup_steps=5, decay_steps=300, epochs=3, batch_samples=768),
    evaluation=tti.RECIPE.evaluation,
)

_by_turns = "credit.length='turns'"

CLAIM = Claim(
    name="asyncwebrl",
    paper="arXiv 2606.05597, abstract",
    statement="A constant in place of the episode's own length as divisor of advantages makes episodes shorter; where "
    "rollouts run ahead, the decoupled ratio solves more than one ratio for both.",
    scale=("iterations=9", "evaluation.every=5", "evaluation.baselines=false"),
    arms={
        "constant": (),
        "by_turns": (_by_turns,),
        "coupled": ("loss.correction=",),
        "sheet_constant": (tti.SHEET,),
        "sheet_by_turns": (tti.SHEET, _by_turns),
    },
    measure="length",
    expected=Ordering(relations=("by_turns > constant by 0.5", "constant > coupled in success")),
    # on a sheet all episodes are of one length: the two divisors differ by a factor alone
    control=Ordering(relations=("sheet_by_turns > sheet_constant by 0.5",)),
    seeds=(0, 1, 2, 3, 4),
)
