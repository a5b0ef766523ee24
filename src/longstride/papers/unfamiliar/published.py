"""Unfamiliar examples at their own size: Llama 2 7B on TriviaQA (arXiv 2403.05612).

| setting | released | source: katiekang1998/llm_hallucinations, commit f171e2d |
|---|---|---|
| model | Llama-2-7b | `examples/triviaqa_sft.py` |
| labels | "I don't know." for the 40 % that are least familiar | the same |
| update | adapters of rank 16, alpha 16 | the same |
| batch | 10 questions; 10,000 steps | the same |
| rate | AdamW, 1e-5, a cosine to 0 over all steps; betas 0.9 and 0.95, weight decay 1e-6 | the same |
| test | 200 questions | the same |

Not known: over how many processes a batch of 10 is (here it is one), and the longest reply, which is 32 tokens here. Familiar there is what the model
answers rightly in 12 tries with examples before it; here it is how likely it finds the label. Its questions are not here:
`tasks.type=dataset tasks.path=FILE`; left out, they are the facts of `unfamiliar`, of which there are 1,200.
"""

from longstride.models.lora import LoRA
from longstride.papers.unfamiliar import recipe
from longstride.papers.unfamiliar.method import Unknown

STEPS, BATCH = 10_000, 10
UNKNOWN = "I don't know."
REPLY = {"turn_tokens": 32}

RECIPE = recipe.RECIPE.replace(
    name="unfamiliar/published",
    model="NousResearch/Llama-2-7b-hf",
    cloning={
        "demonstrations": {"reply": UNKNOWN, "share": 0.4},
        "episodes": STEPS * BATCH,
        "learner": {
            "lr": 1e-5,
            "betas": (0.9, 0.95),
            "weight_decay": 1e-6,
            "warmup_steps": 0,
            "decay_steps": STEPS,
            "min_lr_ratio": 0.0,
            "batch_samples": BATCH,
            "checkpointing": True,
            "lora": LoRA(rank=16, alpha=16.0),
        },
    },
    budget=REPLY,
    test_budget=REPLY,
    evaluation={"tasks": 200, "measures": (Unknown(reply=UNKNOWN),)},
)
