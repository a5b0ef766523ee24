"""Dr. GRPO at its own size: Qwen2.5-Math-7B on MATH (arXiv 2503.20783).

| setting | published | source: sail-sg/understand-r1-zero |
|---|---|---|
| model | Qwen2.5-Math-7B | `examples/qwen2.5-math-7b.sh` |
| budget | 3,000 tokens, which the sum over tokens is divided by | the same, and `train_zero_math.py` |
| batch | 128 questions of 8 answers; one pass in steps of 128 | the same |
| rate | 1e-6, constant | the same |
| sampling | temperature 1, top-p 1; tests greedy, every 16 iterations | the same |

Not known, and as in `dr_grpo`: iterations (20 passes over the questions), clip, warm-up, betas, clipping of gradients.
Its 8,000 questions of levels 3 to 5 are not here: `tasks.type=dataset tasks.path=FILE`; left out, they are the puzzles.
"""

from longstride.engines.base import Sampling
from longstride.papers.dr_grpo import recipe

TOKENS = 3000
"""Sampled tokens of an answer, at most."""

RECIPE = recipe.RECIPE.replace(
    name="dr_grpo/published",
    model="Qwen/Qwen2.5-Math-7B",
    episodes_per_iteration=128 * 8,
    group_size=8,
    budget={"turn_tokens": TOKENS},
    test_budget={"turn_tokens": TOKENS},
    loss={"aggregation": {"length": TOKENS}},
    learner={"lr": 1e-6, "epochs": 1, "batch_samples": 128, "checkpointing": True},
    evaluation={"every": 16, "sampling": Sampling(temperature=0.0)},
)
