"""RAO at its own size: Qwen3-4B-Instruct-2507 on TextCraft-Synth, in contexts of 4,096 tokens (arXiv 2605.06639).

| setting | released | source: ApGa/platoon, commit 97e7601 |
|---|---|---|
| model | Qwen3-4B-Instruct-2507 | `textcraft_synth_ctx4096_recursive_hard_areal.yaml` |
| budget | 200 turns, 4,096 tokens of context | the same |
| batch | 16 tasks of 8 trees; one step | the same |
| rate | 3e-6, constant, hardly any warm-up; betas 0.9 and 0.95, weight decay 0.017, clipped at 1 | the same |
| loss | CISPO, ratios up to 5, no KL | the same |
| sampling | temperature 1 | the same |
| test | 50 tasks, every 5 steps | the same |
| iterations | 100 at most | `textcraft_synth_recursive_tinker.yaml` |

The release is of three months before the paper. Not known, and as in `rao`: bonus, depth and number of agents. There 200 turns are a whole tree's, a
context holds what an agent reads too, and trees are up to 3 steps old; here turns and sampled tokens are limited of each agent, and nothing is played
ahead. TextCraft-Synth is not here (`tasks.tasks.type=my_module:Crafting`); left out, tasks are vaults.
"""

from longstride.methods import CISPO, Mean
from longstride.papers.rao import recipe

GROUP = 8
AGENT = {"turns": 200, "tokens": 4096, "turn_tokens": 4096}

RECIPE = recipe.RECIPE.replace(
    name="rao/published",
    model="Qwen/Qwen3-4B-Instruct-2507",
    iterations=100,
    episodes_per_iteration=16 * GROUP,
    group_size=GROUP,
    cloning=None,
    actions="explained",
    budget=AGENT,
    test_budget=AGENT,
    loss=CISPO(max=5.0, min=0.0, aggregation=Mean(over="token")),
    learner={
        "lr": 3e-6,
        "betas": (0.9, 0.95),
        "weight_decay": 0.017,
        "clip": 1.0,
        "warmup_steps": 1,
        "epochs": 1,
        # a step is of all that an iteration trains on: trees of many agents, of many turns
        "batch_samples": 16 * GROUP * AGENT["turns"],
        "dtype": "bfloat16",
        "checkpointing": True,
    },
    evaluation={"every": 5, "tasks": 50},
)
