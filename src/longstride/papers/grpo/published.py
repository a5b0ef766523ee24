"""GRPO at its own size: DeepSeekMath-Instruct 7B on mathematics (arXiv 2402.03300, section 4.2).

| setting | published | source |
|---|---|---|
| model | DeepSeekMath-Instruct 7B | section 4.2 |
| budget | 1,024 tokens | section 4.2 |
| batch | 1,024 answers, 64 to a question; one update after each exploration | section 4.2 |
| rate | 1e-6 | section 4.2 |
| loss | KL 0.04, the estimate that is never negative | section 4.2, equation 4 |

Not known, and as in `grpo`: updates, temperature, clip, warm-up, betas. That the batch counts answers, and not
questions, is our reading. Its 144,000 questions of GSM8K and MATH are not here (`tasks.type=dataset tasks.path=FILE`),
nor is its learned reward model: left out, both are the puzzles'.
"""

from longstride.methods import KL
from longstride.papers.grpo import recipe

ANSWER = {"turn_tokens": 1024}
RECIPE = recipe.RECIPE.replace(
    name="grpo/published",
    model="deepseek-ai/deepseek-math-7b-instruct",
    episodes_per_iteration=1024,
    group_size=64,
    budget=ANSWER,
    test_budget=ANSWER,
    loss={"kl": KL(coefficient=0.04)},
    learner={"lr": 1e-6, "epochs": 1, "batch_samples": 1024},
)
