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
| roll out | sampling | temperature 0.9 (online release), 16,384 tokens | temperature 1, 80 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `ProgressCredit` | outcome and progress; first released as reward less that of answering at once | both, alpha 1 as in the online release |
| update | `PPO` | GRPO | as in `dr_grpo`: no division by length or deviation |
| test | `Anytime` | normalised regret of answers forced at every step of a trace, 8 a step | the same, 1 a step |
| test | budgets | regret at 1/4 to 2 times the tokens of training | half and 2 times |

Deviations: model and tasks are those of `grpo`; those that go on do so until they answer, not for one attempt more,
so that progress is that of all that follows; its bonus is one number an episode, as in the paper (the later release
finds it better than one number an attempt). The trace that leads to the place is sampled by the newest policy, where
the paper's is older, and not trained.

The claim compares 1 - normalised regret (`anytime`, see `strategies.Anytime`). A test budget is another thing: it cuts a
thought and asks for no answer. The length penalty beside it is that of arXiv 2502.04463.
"""

from longstride.claims.claim import Claim
from longstride.core.config import override
from longstride.curriculum import Fixed
from longstride.methods import GroupRelative
from longstride.methods.length import LengthPenalty
from longstride.methods.progress import ProgressCredit
from longstride.recipes import dr_grpo, grpo
from longstride.rollout.branching import ForcedTermination
from longstride.rollout.planning import Groups
from longstride.run.recipe import Evaluation
from longstride.stats import Ordering
from longstride.strategies import Anytime, Direct

TOKENS = 80
"""Sampled tokens of a training episode; `grpo.TOKENS` of a test are twice as many."""
HALF = TOKENS // 2
BUDGETS = (Anytime(within=(HALF,)), Direct(tokens=HALF))
"""The whole budget of a turn, twice that of training, and half that of training."""

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

_outcome = GroupRelative(scale="none")
_groups = (override("sampler", Groups()), "episodes=72")
GRPO = (*_groups, override("credit", _outcome))
"""Outcome reward alone, from the start of every task, in about as many sampled tokens: GRPO as in `dr_grpo`."""
SHORT = (*_groups, override("credit", LengthPenalty(weight=0.4, credit=_outcome)))
"""The same with a penalty on length."""

CLAIM = Claim(
    name="mrt",
    paper="arXiv 2503.07572",
    statement="Paying for progress leads to less regret than paying for the outcome, and to more right answers, at half "
    "the tokens of training and at twice as many; a penalty on length leads to fewer.",
    scale=(*grpo.SCALE, "evaluation.tasks=600"),
    arms={
        "mrt": (),
        "branches": ("credit.bonus=0",),
        "grpo": GRPO,
        "short": SHORT,
        "alike_mrt": (grpo.ALIKE,),
        "alike_grpo": (grpo.ALIKE, *GRPO),
    },
    measure="anytime",
    expected=Ordering(
        relations=(
            "mrt > grpo",
            f"mrt > grpo in anytime@{HALF}",
            "mrt > branches",
            "mrt > grpo in success",
            f"mrt@direct_{HALF}_tokens > grpo@direct_{HALF}_tokens in success",
            "mrt > short in success",
        )
    ),
    # a thought of two steps has one place at which it could go on
    control=Ordering(relations=("alike_mrt > alike_grpo by 0.03",)),
)
