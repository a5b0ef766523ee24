"""ScalingInter-RL at its own size: Qwen2.5-7B-Instruct on WebArena (arXiv 2509.08755).

| setting | released | source: WooooDyy/AgentGym-RL |
|---|---|---|
| model | Qwen2.5-7B-Instruct | `examples/train/ScalingInter-RL/webarena_train.sh` |
| budget | 8, 12, then 15 turns, every 80 updates; 512 tokens a turn | the same |
| batch | 32 tasks of 4 episodes; two passes in steps of 4 tasks | the same |
| rate | 1e-6, constant, no warm-up; clipped at 1 | the same; `AgentGym-RL/verl/agent_trainer/config/ppo_trainer.yaml` |
| loss | clip 0.2, KL 1e-3 (k3), entropy 0.001 | the same |
| sampling | temperature 1 | the YAML |

Ours: 240 updates, in which all three stages are trained (the release makes 25 passes over its tasks), and a step of as
many turns as 4 tasks have at most. Not known, and as in `scaling_inter`: betas, the horizon of tests. Its sites are not
here: `tasks.type=web_benchmark tasks.format=webarena tasks.path=FILE`; left out, they are the embedded ones.
"""

from longstride.papers.scaling_inter import recipe
from longstride.papers.scaling_inter.method import StepSchedule

GROUP, STAGES, EVERY = 4, (8, 12, 15), 80
TURN = {"turn_tokens": 512}

RECIPE = recipe.RECIPE.replace(
    name="scaling_inter/published",
    model="Qwen/Qwen2.5-7B-Instruct",
    iterations=len(STAGES) * EVERY,
    episodes_per_iteration=32 * GROUP,
    group_size=GROUP,
    budget={"turns": StepSchedule(steps=STAGES, every=EVERY), **TURN},
    test_budget=TURN,
    loss={"entropy": 0.001},
    learner={
        "lr": 1e-6,
        "warmup_steps": 0,
        "clip": 1.0,
        "epochs": 2,
        "batch_samples": 4 * GROUP * STAGES[-1],
        "checkpointing": True,
    },
)
