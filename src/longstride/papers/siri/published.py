"""SIRI at its own size: DeepSeek-R1-Distill-Qwen-1.5B on mathematics (arXiv 2509.25176, section 5.1).

| setting | published | source |
|---|---|---|
| model | DeepSeek-R1-Distill-Qwen-1.5B | section 5.1 |
| budget | a cosine from 16,384 tokens to 8,192 and back, three cycles of 640 updates | sections 5.1, 5.2 |
| batch | 128 questions | section 5.1 |
| rate | 1e-6 | section 5.1 |
| loss | clip 0.2 and 0.28, no KL | section 5.1 |
| test | 16,384 tokens, 32 answers at temperature 0.6 | section 5.1 |

Not known, and as in `siri`: answers to a question (8), passes and optimiser steps of an update, warm-up, betas. Its
40,000 questions are not here: `tasks.type=dataset tasks.path=FILE`; left out, they are the puzzles.
"""

from longstride.engines.base import Sampling
from longstride.papers.siri import recipe
from longstride.papers.siri.method import Cosine
from longstride.strategies import Direct

LONG, SHORT, CYCLE = 16_384, 8_192, 640
"""Tokens of an answer at the two ends of a cycle, and its iterations."""

RECIPE = recipe.RECIPE.replace(
    name="siri/published",
    model="deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    iterations=3 * CYCLE,
    episodes_per_iteration=128 * 8,
    budget={"turn_tokens": LONG, "tokens": Cosine(high=LONG, low=SHORT, period=CYCLE)},
    test_budget={"turn_tokens": LONG},
    learner={"lr": 1e-6},
    evaluation={
        "every": CYCLE // 2,
        "attempts": 32,
        "sampling": Sampling(temperature=0.6),
        "strategies": (Direct(),),
    },
)
