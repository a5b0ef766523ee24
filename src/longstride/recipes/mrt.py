"""MRT: meta reinforcement fine-tuning. Qu, Yang et al., 2025, "Optimizing Test-Time Compute via Meta Reinforcement
Fine-Tuning", arXiv 2503.07572.

A long thought is a sequence of attempts, and each should bring an answer nearer, whatever the budget will be: to
minimise regret over the tokens that are spent. So episodes begin in the middle of the policy's own thought; a part of
them must answer at once, and the others are paid for what they add to that.

| place | choice | paper and release (R1-Distill-Qwen-1.5B, DeepScaleR-1.5B) | here |
|---|---|---|---|
| plan | `ForcedTermination` | a trace, cut after a random number of attempts; half of the rollouts must answer, half go on | the same, cut before any step or the answer |
| plan | groups | 4 branches a boundary in the online release | 8 from a place, of 32 traces |
| roll out | what forces an answer | "time is up" and the end of the thought | `Action: answer` |
| roll out | sampling | temperature 0.9, 16,384 tokens | temperature 1, 80 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `ProgressCredit` | outcome and progress, alpha 1; released as reward less that of answering at once | outcome and progress, alpha 1 |
| update | `PPO` | GRPO | as in `dr_grpo`: no division by length or deviation |
| test | budgets | accuracy and normalised regret at budgets up to 2 times that of training | success at half, 1 and 2 times |

Deviations: model and tasks are those of `grpo`; those that go on do so until they answer, not for one attempt more,
so that progress is that of all that follows; its bonus is one number an episode, as in the paper (the later release
finds it better than one number an attempt). The trace that leads to the place is sampled by the newest policy and
not trained.

Normalised regret is measured on what `longstride train mrt model=POLICY iterations=1 learner.epochs=0
sampler.everywhere=true sampler.forced=1` stores, by `algorithms.progress.regrets`: a success rate of forced answers at
every place of a trace. A test budget is another thing: it cuts a thought and asks for no answer.
"""

from longstride.algorithms.progress import ProgressCredit
from longstride.curriculum import Fixed
from longstride.recipes import dr_grpo, grpo
from longstride.rollout.branching import ForcedTermination
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.training.recipe import Claim, Evaluation

TOKENS = 80
"""Sampled tokens of a training episode; `grpo.TOKENS` of a test are twice as many."""
BUDGETS = (Direct(), Direct(tokens=TOKENS // 2), Direct(tokens=TOKENS))
"""The whole budget of a turn, and parts of it."""

RECIPE = dr_grpo.RECIPE.model_copy(
    update={
        "name": "mrt",
        "iterations": 60,
        "tokens": Fixed(limit=TOKENS),
        "sampler": ForcedTermination(),
        "credit": ProgressCredit(bonus=1.0),
        "evaluation": Evaluation(every=20, baselines=False, strategies=BUDGETS),
    }
)

OUTCOME = ("sampler={type='groups'}", "credit={type='group_relative', scale='none'}")
"""Outcome reward alone, from the start of every task: GRPO as in `dr_grpo`."""

CLAIM = Claim(
    name="mrt",
    paper="arXiv 2503.07572",
    statement="Paying for progress gives more at every budget than paying for the outcome: at half the tokens of "
    "training, and at twice as many.",
    scale=(*grpo.SCALE, "evaluation.samples=4"),
    arms={
        "mrt": (),
        "mrt_half": ("credit.bonus=0.5",),
        "branches": ("credit.bonus=0",),
        "grpo": (*OUTCOME, "episodes=72"),
        "alike_mrt": (grpo.ALIKE,),
        "alike_grpo": (grpo.ALIKE, *OUTCOME),
    },
    expected=Ordering(
        relations=(
            f"mrt@direct_{TOKENS // 2}_tokens > grpo@direct_{TOKENS // 2}_tokens",
            "mrt > grpo",
            "mrt > branches",
        )
    ),
    # a thought of two steps has one place at which it could go on
    control=Ordering(relations=("alike_mrt > alike_grpo by 0.03",)),
    seeds=(0, 1, 2, 3, 4),
)
