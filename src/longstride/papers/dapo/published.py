"""DAPO at its own size: Qwen2.5-32B on mathematics (arXiv 2503.14476, section 4.1).

| setting | published | source |
|---|---|---|
| model | Qwen2.5-32B, base | section 4 |
| budget | 16,384 tokens, and 4,096 over which the punishment rises | section 4.1 |
| batch | 512 prompts of 16 answers; 16 steps of 512 answers | section 4.1 |
| rate | AdamW, 1e-6, constant after a warm-up of 20 iterations | section 4.1 |
| loss | clip 0.2 and 0.28, mean over tokens, no KL | sections 3.1, 3.3, 4.1 |
| test | 32 answers, temperature 1, top-p 0.7 | section 4.1 |

Not known, and as in `dapo`: iterations, betas, weight decay, the most stages of sampling. Its 17,000 questions are not
here: `tasks.type=dataset tasks.path=FILE tasks.match=number`; left out, they are the puzzles.
"""

from longstride.engines.base import Sampling
from longstride.papers.dapo import recipe

PUNISHED = 4096
"""Tokens before the limit over which the punishment rises."""
ANSWER = {"turn_tokens": 16_384 + PUNISHED}
STEPS = 16
"""Optimiser steps of an iteration."""

RECIPE = recipe.RECIPE.replace(
    name="dapo/published",
    model="Qwen/Qwen2.5-32B",
    episodes_per_iteration=512 * 16,
    group_size=16,
    budget=ANSWER,
    test_budget=ANSWER,
    reward={"cache": PUNISHED},
    learner={"lr": 1e-6, "warmup_steps": 20 * STEPS, "epochs": 1, "batch_samples": 512 * 16 // STEPS},
    evaluation={"attempts": 32, "sampling": Sampling(top_p=0.7)},
)
