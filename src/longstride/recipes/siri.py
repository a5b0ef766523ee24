"""SIRI: reinforcement learning under a length limit that goes down and up. Wen et al., 2025, arXiv 2509.25176.

Under a tight limit only what is said early enough earns anything, so the model learns to say it shortly; under a wide
one it learns to search. Taken in turns, each cycle begins from a denser policy than the one before.

| place | choice | paper (section 5.1: R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 128 prompts an update | 32 tasks, 8 answers each |
| plan | `Cosine` over tokens | 16,384 down to 8,192 and back, cycles of 640 updates | 128 to 48, cycles of 12 iterations |
| roll out | sampling | temperature 1 | the same |
| score | `TaskReward` | 1 if the answer within the limit is right | the same: what is cut has no answer |
| credit | `GroupRelative` | GRPO | (r - mean) / deviation |
| update | `PPO` | clip 0.2 and 0.28, no KL | the same, mean over tokens |
| update | rate | 1e-6 | 3e-4, as `grpo` |

Deviations: model and tasks are those of `grpo`; three cycles in all, as in the paper. The released models were
trained with the cosine; stair and stair-cosine, which the paper compares with it, are arms of the claim. The limit binds
what is sampled in training; evaluation allows 160 tokens always, and 64 beside it.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Cosine
from longstride.methods import PPO, Mean
from longstride.recipes import grpo
from longstride.stats import Ordering
from longstride.strategies import Direct

LONG, SHORT, CYCLE = 128, 48, 12
"""Tokens of an answer at the two ends of a cycle, and its iterations."""

RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "siri",
        "iterations": 3 * CYCLE,
        "tokens": Cosine(high=LONG, low=SHORT, period=CYCLE),
        "loss": PPO(high=0.28, aggregation=Mean(over="token")),
        "evaluation": grpo.RECIPE.evaluation.model_copy(
            update={"every": CYCLE // 2, "strategies": (Direct(), Direct(tokens=64))}
        ),
    }
)

CLAIM = Claim(
    name="siri",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends more accurate within few tokens than a constant long one, and more "
    "accurate with many than a constant short one.",
    scale=(
        *grpo.SCALE, f"tokens={{type='cosine', high={LONG}, low={SHORT}, period=8}}",
        "evaluation.strategies=[{type='direct'}, {type='direct', tokens=64}]",
    ),
    arms={
        "siri": (),
        "stair": ("tokens.type=stair",),
        "stair_cosine": ("tokens.type=stair_cosine",),
        "long": (f"tokens={{type='fixed', limit={LONG}}}",),
        "short": (f"tokens={{type='fixed', limit={SHORT}}}",),
        "alike_siri": (grpo.ALIKE,),
        "alike_long": (grpo.ALIKE, f"tokens={{type='fixed', limit={LONG}}}"),
    },
    expected=Ordering(relations=("siri@direct_64_tokens > long@direct_64_tokens", "siri > short")),
    # two steps need 20 tokens: no limit binds
    control=Ordering(relations=("alike_siri > alike_long by 0.03",)),
)  # fmt: skip
