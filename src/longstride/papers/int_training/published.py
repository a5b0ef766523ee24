"""InT at its own size: Qwen3-4B-Instruct-2507 on problems that it never solves (arXiv 2601.14209).

| setting | released | source: intervention-training/int, commit 4e4e800; (p): ars22/pipeline-rl, which it names, commit 83d9554 |
|---|---|---|
| model | Qwen3-4B-Instruct-2507 | `README.md` |
| budget | 16,384 tokens | `sample_rollouts.sh`, `sft.sh`; `base.yaml` (p) |
| filter | 32 continuations behind an intervention; steps end with an empty line | `sample_guided_rollouts.sh`, `parse_interventions.ipynb` |
| cloning | 1e-6, a cosine to a tenth; 4 passes, 16 answers on each of 4 GPUs | `sft.sh` |
| batch of RL | 32 problems of 8 answers; one step | `finetune/base.yaml`, `finetune/grpo.yaml` (p) |
| its rate | 1e-6, a cosine over 100,000 steps, no warm-up; betas 0.9 and 0.999, weight decay 0.01, clipped at 0.3 | the same; `optim.py` (p) |
| credit | reward minus the group's mean, not divided | `finetune/base.yaml` (p) |
| loss | a ratio up to 5, sums over tokens by episodes, entropy 0.0001, no KL | the same; `rl/__init__.py` (p) |
| iterations | 400 | notes on the paper |

The commit of (p) is the last change of these files before the paper; which one was used is not said. Errors are named there by the model itself, four
times, beside a reference solution; here they are searched for with continuations, or by a judge (`int_training`). There cloning is a run before RL;
here it is the first iterations, and each search is cloned once. Answers are sampled at temperature 0.7 and, in RL, 0.8, and here at 1, which ratios
take. Its problems are not here: `tasks.type=dataset tasks.path=FILE`; left out, they are chains.
"""

from longstride.engines.base import Sampling
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.int_training import recipe
from longstride.run.recipe import ObjectivePhase

PROBLEMS, GROUP = 32, 8
ANSWER = {"turn_tokens": 16_384}
RL = ObjectivePhase(
    after=recipe.BEFORE,
    credit=GroupRelative(normalize="none"),
    # a ratio is never below 0, which 1 - clip_low is
    loss=PPO(clip_low=1.0, clip_high=4.0, entropy=1e-4, aggregation=Constant(per="episode")),
)

RECIPE = recipe.RECIPE.replace(
    name="int_training/published",
    model="Qwen/Qwen3-4B-Instruct-2507",
    iterations=400,
    episodes_per_iteration=PROBLEMS * GROUP,
    group_size=GROUP,
    sampler={"continuations": 32, "mark": "\n\n"},
    budget=ANSWER,
    test_budget=ANSWER,
    objectives=(RL,),
    learner={
        "lr": 1e-6,
        "betas": (0.9, 0.999),
        "weight_decay": 0.01,
        "clip": 0.3,
        "warmup_steps": 0,
        "decay_steps": 100_000,
        "min_lr_ratio": 0.0,
        "epochs": 1,
        "batch_samples": PROBLEMS * GROUP,
        "checkpointing": True,
    },
    evaluation={"every": 20, "sampling": Sampling(temperature=0.7, top_p=0.8)},
)
