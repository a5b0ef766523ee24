"""WebGym at its own size: Qwen3-VL-8B-Instruct on 292,000 tasks (arXiv 2601.02439).

| setting | released | source: microsoft/webgym, `scripts/config/main` |
|---|---|---|
| model | Qwen3-VL-8B-Instruct | the paper, as in its table here |
| budget | 10, 20, 30 turns by difficulty, of 3,072 tokens; tests at 30, 50, 70 | `rollout_train.yaml`, `rollout_test.yaml`, `default.yaml` |
| batch | 1,024 episodes, tasks uniform; two passes in steps of 3 turns, 4 times accumulated, on each GPU | `rollout_train.yaml`, `update_online.yaml` |
| rate | 1e-6, constant after a warm-up of 30 steps; weight decay 0.01, clipped at 1 | `update_online.yaml` |
| sampling | temperature 1, top-p 0.99 (and top-k 2, which is not here) | `default.yaml` |
| context | the newest 4 rounds with their images, and a memory | the paper, as in its table here |

Not known, and as in `webgym`: iterations, betas; GPUs, so a step is that of one. Replay keeps episodes here, where
1,800 turns of the last 4 iterations are drawn: its number is that of `webgym`. Screenshots, memory and judge are not
here, nor are the sites: `tasks.type=web_benchmark tasks.format=webgym tasks.path=FILE`; left out, they are the embedded
ones.
"""

from longstride.curriculum import Fixed
from longstride.curriculum.schedules import PerDifficulty
from longstride.engines.base import Sampling
from longstride.papers.webgym import recipe
from longstride.rollout.context import RecentObservations

TURN = {"turn_tokens": 3072}

TRAIN = PerDifficulty(easy=Fixed(limit=10), medium=Fixed(limit=20), hard=Fixed(limit=30))
TEST = PerDifficulty(easy=Fixed(limit=30), medium=Fixed(limit=50), hard=Fixed(limit=70))

RECIPE = recipe.RECIPE.replace(
    name="webgym/published",
    model="Qwen/Qwen3-VL-8B-Instruct",
    episodes_per_iteration=1024,
    budget={"turns": TRAIN, **TURN},
    test_budget={"turns": TEST, **TURN},
    context=RecentObservations(keep=4),
    sampling=Sampling(top_p=0.99),
    learner={
        "lr": 1e-6,
        "warmup_steps": 30,
        "weight_decay": 0.01,
        "clip": 1.0,
        "epochs": 2,
        "batch_samples": 3 * 4,
    },
)
