"""Four habits at their own size: Llama 3.2 3B on Countdown (arXiv 2503.01307).

| setting | released | source: kanishkg/cognitive-behaviors, commit 9c90d33 |
|---|---|---|
| model | Llama-3.2-3B | `scripts/sft.sh` |
| priming | 1,000 traces of all four behaviours, 5 passes in batches of 64 | the paper; `scripts/sft.sh` |
| its rate | 1e-5 after a tenth of the steps, then a cosine to 0; betas 0.9 and 0.95, weight decay 0.01, clipped at 1 | `sft_trainer.yaml` |
| budget | 1,024 tokens | `scripts/train_tiny_zero_n4_cd.sh` |
| batch | 256 tasks of 4 answers; one pass in two steps | the same |
| iterations | 250 | the paper |
| rate | 1e-6, constant, no warm-up; betas 0.9 and 0.999, weight decay 0.01, clipped at 1 | `ppo_trainer.yaml`; `fsdp_workers.py` |
| credit | a critic, lambda 1, discount 1 | `ppo_trainer.yaml` |
| loss | clip 0.2, entropy 0.001, KL 0.001 | the same |

There the critic is a model of its own and KL is taken off the reward; here it is a head on the policy's hidden states, whose numbers are its own, and a
term of the loss. Left out: 0.1 for the form of an answer. Traces by Claude
(`cloning.demonstrations='{type="file_successes",path=FILE,unjudged=true}'`) and tasks of three and four numbers up to 99
(`tasks.type=dataset tasks.path=FILE`) are not here; left out, they are those of a script, and smaller ones.
"""

from longstride.learner.critics import TokenValue
from longstride.methods import KL
from longstride.methods.advantages import GAE
from longstride.papers.cognitive_behaviours import recipe
from longstride.starts.puzzle_behaviours import PuzzleBehaviours

ANSWER = {"turn_tokens": 1024}
EPISODES = 256 * 4
PASSES, BATCH = 5, 64
PRIMING = PASSES * -(-1000 // BATCH)
"""Optimiser steps."""

RECIPE = recipe.RECIPE.replace(
    name="cognitive_behaviours/published",
    model="meta-llama/Llama-3.2-3B",
    iterations=250,
    episodes_per_iteration=EPISODES,
    group_size=4,
    cloning={
        "demonstrations": {"demonstrators": PuzzleBehaviours()},
        "learner": {
            "lr": 1e-5,
            "betas": (0.9, 0.95),
            "weight_decay": 0.01,
            "clip": 1.0,
            "warmup_steps": PRIMING // 10,
            "decay_steps": PRIMING,
            "min_lr_ratio": 0.0,
            "epochs": PASSES,
            "batch_samples": BATCH,
            "checkpointing": True,
        },
    },
    budget=ANSWER,
    test_budget=ANSWER,
    credit=GAE(over="tokens", values="critic", lam=1.0, whiten=True),
    critic=TokenValue(),
    loss={"entropy": 0.001, "kl": KL(coefficient=0.001)},
    learner={
        "lr": 1e-6,
        "betas": (0.9, 0.999),
        "weight_decay": 0.01,
        "warmup_steps": 0,
        "clip": 1.0,
        "epochs": 1,
        "batch_samples": EPISODES // 2,
        "checkpointing": True,
    },
    evaluation={"every": 10},
)
