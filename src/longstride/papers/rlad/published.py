"""RLAD at its own size: Qwen3-1.7B on mathematics (arXiv 2510.02263).

| setting | released | source: CohenQU/verl-stable, commit a31a504, `scripts/grpo/sol_gen_rl` |
|---|---|---|
| model | Qwen3-1.7B, from an earlier stage on easy problems | `sol_gen_rl_v8.sh` |
| solutions | 16,384 tokens; 8 with each of 128 abstractions, in 4 steps | the same |
| abstractions | 4,096 tokens; 4 of a problem | `hint_gen_rl_v1.sh`, of a Qwen3-4B |
| rate | 1e-6, constant, no warm-up; betas 0.9 and 0.999, weight decay 0.01, clipped at 1 | the same; `verl/trainer/config/ppo_trainer.yaml` |
| loss | clip 0.2 and 0.5, 3 where A < 0, mean over tokens, KL 0.001 (k3), entropy 0.001 | both |
| iterations | 150 | `sol_gen_rl_v8.sh` |
| test | every 30 iterations, temperature 0.6 | the same |

These are the scripts of one of the authors, put there five days before the paper; which of them gave its figures is not said. There solutions and
abstractions are trained in runs of their own; here together. Training samples at temperature 0.6 there, and here at 1, which ratios take. Not
known: how the model was fine-tuned on abstractions before. Its problems are not here: `tasks.type=dataset tasks.path=FILE`; left out, they are
Countdown.
"""

from longstride.engines.base import Sampling
from longstride.methods import KL, OnPolicy
from longstride.papers.rlad import recipe
from longstride.papers.rlad.method import Abstracting, AbstractionForm
from longstride.strategies import Direct
from longstride.strategies.best_of import Verifier

ABSTRACTIONS, SOLUTIONS = 4, 8
"""Of a problem; with each abstraction."""
BATCH = 128 * SOLUTIONS
FORM = AbstractionForm(tokens=4096)
ANSWER = {"turn_tokens": 16_384}

RECIPE = recipe.RECIPE.replace(
    name="rlad/published",
    model="Qwen/Qwen3-1.7B",
    iterations=150,
    episodes_per_iteration=BATCH,
    group_size=ABSTRACTIONS * SOLUTIONS,
    cloning=None,
    sampler={"form": FORM, "abstractions": ABSTRACTIONS},
    budget=ANSWER,
    test_budget=ANSWER,
    replay=OnPolicy(),
    loss={"clip_low": 0.2, "clip_high": 0.5, "dual_clip": 3.0, "entropy": 0.001, "kl": KL(coefficient=0.001)},
    learner={
        "lr": 1e-6,
        "betas": (0.9, 0.999),
        "weight_decay": 0.01,
        "clip": 1.0,
        "warmup_steps": 0,
        "epochs": 1,
        "batch_samples": BATCH // 4,
        "dtype": "auto",
        "kernels": "torch",
        "threads": 1,
        "checkpointing": True,
    },
    evaluation={
        "every": 30,
        "sampling": Sampling(temperature=0.6),
        "strategies": (Direct(), Abstracting(form=FORM, abstractions=4, attempts=4, by=Verifier())),
    },
)
