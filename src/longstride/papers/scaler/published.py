"""SCALER at its own size: Qwen3-4B-Base on environments made of programs (arXiv 2601.04809).

| setting | released | source: molumolua/SCALER, commit 60f8dc3 |
|---|---|---|
| model | Qwen3-4B-Base | `recipe/environment/qwen3-4b-2739-envs.sh` |
| tasks | 64 environments at a time, of 2,739; a prompt of each | the same |
| curriculum | retired after 5 visits without a success, or 5 at the highest level | the same |
| budget | 8,192 tokens | the same |
| batch | 64 prompts of 8 answers; one step | the same |
| rate | 1e-6, constant after 20 steps of warm-up; betas 0.9 and 0.999, no weight decay, clipped at 1 | the same; `optim/fsdp.yaml` |
| loss | clip 0.2, 10 where A < 0, mean over tokens, no KL | the same |
| sampling | temperature 1, tests at 0.6 with top-p 0.95 | the same |

Not known, and as in `scaler`: iterations (it runs until it is stopped). Its environments are not here, and those of `scaler` stand for them: name
your own in a file, as the page of `scaler` shows, with `base = "scaler/published"`.
"""

from longstride.engines.base import Sampling
from longstride.methods import Mean
from longstride.papers.scaler import recipe

ENVIRONMENTS, GROUP = 64, 8
ANSWER = {"turn_tokens": 8192}

RECIPE = recipe.RECIPE.replace(
    name="scaler/published",
    model="Qwen/Qwen3-4B-Base",
    episodes_per_iteration=ENVIRONMENTS * GROUP,
    group_size=GROUP,
    curriculum={"active": ENVIRONMENTS, "patience": 5},
    budget=ANSWER,
    test_budget=ANSWER,
    loss={"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 10.0, "aggregation": Mean(over="token")},
    learner={
        "lr": 1e-6,
        "betas": (0.9, 0.999),
        "warmup_steps": 20,
        "weight_decay": 0.0,
        "clip": 1.0,
        "epochs": 1,
        "batch_samples": ENVIRONMENTS * GROUP,
        "checkpointing": True,
    },
    evaluation={"every": 20, "sampling": Sampling(temperature=0.6, top_p=0.95)},
)
