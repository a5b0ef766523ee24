"""DARS-B at its own size: Qwen2.5-Math-7B on mathematics (arXiv 2508.13755).

| setting | published | source: yangzhch6/DARS |
|---|---|---|
| model | Qwen2.5-Math-7B | `experiments/DARS-7B-HW-Breadth.sh` |
| budget | 3,072 tokens | the same |
| batch | 3,072 questions of 8 answers, hard ones up to 64; all of it in one step, two passes | the same |
| rate | 5e-6, constant, no warm-up; gradients clipped at 1 | the same, and `verl/verl/trainer/config/ppo_trainer.yaml` |
| updates | 86 iterations | the same |
| loss | clip 0.2, no KL, r - mean | the same |
| test | 128 answers at temperature 1, every 14 iterations | the same |

Not known, and as in `dars`: betas, weight decay. Left out, as there: an entropy bonus of 0.001, and a sum over tokens
divided by a constant. Its questions are not here: `tasks.type=dataset tasks.path=FILE`; left out, they are the puzzles.
"""

from longstride.papers.dars import recipe

QUESTIONS, MOST = 3072, 64
"""Questions of an iteration, and most answers to one of them."""
ANSWER = {"turn_tokens": 3072}

RECIPE = recipe.RECIPE.replace(
    name="dars/published",
    model="Qwen/Qwen2.5-Math-7B",
    iterations=86,
    episodes_per_iteration=QUESTIONS * 8,
    group_size=8,
    budget=ANSWER,
    test_budget=ANSWER,
    sampler={"most": MOST},
    learner={
        "lr": 5e-6,
        "warmup_steps": 0,
        "clip": 1.0,
        "epochs": 2,
        "batch_samples": QUESTIONS * MOST,
        "checkpointing": True,
    },
    evaluation={"every": 14, "attempts": 128},
)
