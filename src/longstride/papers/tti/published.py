"""TTI at its own size: Gemma 3 12B on WebVoyager (arXiv 2506.07976).

| setting | published | source: test-time-interaction/TTI |
|---|---|---|
| model | gemma-3-12b-it | `scripts/config/main/webvoyager_rl.yaml` |
| budget | 10, 20, 20, then 30 turns of 1,024 tokens; tests at 30 | `scripts/webvoyager_train.sh`; the YAML |
| batch | 15 iterations of 512 episodes; 512 of all successes so far | the same |
| update | one pass in steps of 4 turns, twice accumulated, on four GPUs: 32 | the YAML and the script |
| rate | AdamW, 4e-6, warm-up 20, cosine to 2,000 steps, betas 0.9 and 0.999, weight decay 0.01, clipped at 0.01 | the YAML; `tti/algorithms/filteredbc/trainer.py`; `onpolicy_train_loop.py` |
| sampling | temperature 1, top-p 0.95 | the YAML; `tti/models/gemma_vllm_agent.py` |
| context | older pages are placeholders | the release, as in this paper's table |

Not known, and as in `tti`: the floor of the cosine. Screenshots (the newest 3) are not here, nor are its sites:
`tasks.type=web_benchmark tasks.format=tti tasks.path=FILE`; left out, they are the embedded ones, which their own
checks judge.
"""

from longstride.curriculum.schedules import StepList
from longstride.papers.tti import recipe
from longstride.rollout.context import RecentObservations

TURN = {"turn_tokens": 1024}

RECIPE = recipe.RELEASED.replace(
    name="tti/published",
    model="google/gemma-3-12b-it",
    iterations=15,
    episodes_per_iteration=512,
    budget={"turns": StepList(steps=((1, 10), (3, 20), (4, 30))), **TURN},
    test_budget={"turns": 30, **TURN},
    context=RecentObservations(),
    replay={"keep": 512},
    learner={
        "lr": 4e-6,
        "betas": (0.9, 0.999),
        "weight_decay": 0.01,
        "clip": 0.01,
        "warmup_steps": 20,
        "decay_steps": 2000,
        "epochs": 1,
        "batch_samples": 32,
    },
)
