"""Reasoning Cache at its own size: Qwen3-4B-Instruct-2507 on mathematics, its first stage (arXiv 2602.03773).

| setting | published | source: IanYHWu/rc, `training/projects/reasoning_cache` |
|---|---|---|
| model | Qwen3-4B-Instruct-2507 | `scripts/reasoning_cache_rl_script_flame.sh` |
| budget | 3 rounds of 16,384 tokens | the same |
| batch | 64 questions, 2 states of each, 8 answers from a state; one pass in two steps | the same |
| rate | 1e-6, constant, no warm-up; weight decay 0.01, gradients clipped at 1 | `config/reasoning_cache_trainer.yaml` |
| loss | clip 0.2 and 0.28, 3 where A < 0, mean over tokens, KL 0.001 (k3) | both |
| sampling | temperature 1, top-p 1 | the script |

Not known, and as in `reasoning_cache`: iterations (16 passes over the questions), betas. Summaries by the model itself
(2,048 tokens, not trained) and the second stage are not here. Nor are its questions: the puzzles stand for them, since
rounds need an environment that summarises.
"""

from longstride.methods import KL, OnPolicy
from longstride.papers.reasoning_cache import recipe

TASKS, STATES, GROUP = 64, 2, 8
ROUNDS = {"turns": 3, "turn_tokens": 16_384}
TRAINED = TASKS * STATES * GROUP

RECIPE = recipe.RECIPE.replace(
    name="reasoning_cache/published",
    model="Qwen/Qwen3-4B-Instruct-2507",
    episodes_per_iteration=TRAINED,
    group_size=GROUP,
    sampler={"states": STATES},
    budget=ROUNDS,
    test_budget=ROUNDS,
    replay=OnPolicy(),
    loss={"dual_clip": 3.0, "kl": KL(coefficient=0.001)},
    learner={
        "lr": 1e-6,
        "warmup_steps": 0,
        "weight_decay": 0.01,
        "clip": 1.0,
        "epochs": 1,
        "batch_samples": TRAINED // 2,
        "checkpointing": True,
    },
)
