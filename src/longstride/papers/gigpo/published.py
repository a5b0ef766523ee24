"""GiGPO at its own size: Qwen2.5-1.5B-Instruct on WebShop (arXiv 2505.10978).

| setting | released | source: langfengQ/verl-agent, as copies of it have it |
|---|---|---|
| model | Qwen2.5-1.5B-Instruct | `run_webshop.sh` |
| budget | 15 turns of 512 tokens | `run_webshop.sh` |
| batch | 150 iterations of 16 tasks of 8 episodes; one pass in steps of 64 turns | `run_webshop.sh`; `ppo_trainer.yaml` |
| rate | 1e-6, constant, no warm-up; weight decay 0.01, clipped at 1 | `run_webshop.sh`; `ppo_trainer.yaml` |
| reward | 10 for a success | `envs.py` of WebShop |
| credit | less the mean, no deviation; discount 0.95, omega 1 | `run_webshop.sh` |
| loss | clip 0.2, dual 3; mean over tokens; KL 0.01 (k3), entropy 0.001 | `run_webshop.sh`; `ppo_trainer.yaml` |
| sampling | temperature 1, tests at 0.4 | `ppo_trainer.yaml`; `run_webshop.sh` |
| context | the last two turns beside the newest page | `ppo_trainer.yaml` |

Not known, and as in `gigpo`: betas. Left out: the penalty of 0.1 for an action that is none, and the mean over turns in
place of episodes. A reward of 10 is a divisor of 0.1 here. Here the context keeps all actions, and pages of three turns.
WebShop is not here: tasks are those of the embedded sites.
"""

from longstride.engines.base import Sampling
from longstride.papers.gigpo import recipe
from longstride.rollout.context import RecentObservations

GROUP = 8
EPISODE = {"turns": 15, "turn_tokens": 512}

RECIPE = recipe.RECIPE.replace(
    name="gigpo/published",
    model="Qwen/Qwen2.5-1.5B-Instruct",
    iterations=150,
    episodes_per_iteration=16 * GROUP,
    group_size=GROUP,
    budget=EPISODE,
    test_budget=EPISODE,
    context=RecentObservations(keep=3),
    credit={"normalize": 0.1},
    loss={"dual_clip": 3.0, "entropy": 0.001},
    learner={"lr": 1e-6, "warmup_steps": 0, "weight_decay": 0.01, "clip": 1.0, "epochs": 1, "batch_samples": 64},
    evaluation={"every": 5, "sampling": Sampling(temperature=0.4)},
)
