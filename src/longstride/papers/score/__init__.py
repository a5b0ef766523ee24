"""SCoRe: self-correction by reinforcement learning in two stages. Kumar et al., 2024, arXiv 2409.12917.

Trained on both attempts at once, a model learns one good answer and says it twice. So stage I teaches the second
attempt alone and holds the first to where it was: what there is to be gained is gained by correcting. Stage II credits
both, with a bonus for what the second attempt makes of the first.

| place | choice | paper (table 5: MATH, Gemini 1.5 Flash) | here |
|---|---|---|---|
| plan | `Attempts`, groups of one task | two attempts, batches of 512 | two, 32 tasks of 8 episodes |
| plan | `ObjectivePhase` | two stages, 3,000 updates | 20 iterations, then 20 |
| roll out | `FullHistory`, sampling | temperature 1; the second attempt reads the first and is asked to correct it | the same |
| score | `TaskReward` | right or wrong, each attempt | the same |
| credit | `AttemptCredit` | an attempt's own reward, less RLOO's baseline; stage II: r_2 + 10 (r_2 - r_1) for the second | the same, bonus 5 |
| update | `Reinforce` with `KLByTurn`, `KL` | stage I 0.1 on the first attempt, a small one on both; stage II 0.01 on both | 0.02 on the first attempt; 0.01 |
| update | rate | Adam, 5e-6 | 3e-4, as `grpo`, in one pass |

On your own model and tasks of one turn, each judged by its evaluator, such as a file of prompts and answers:

    longstride train score model=Qwen/Qwen3-0.6B tasks.tasks.type=dataset tasks.tasks.path=sums.jsonl learner.lr=5e-6 \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024

Deviations: model and puzzles are those of `grpo`. The bonus says how much a second attempt weighs against the first
(see `AttemptCredit`): with 10 the first is hardly trained in so few iterations, so that it is half of that. Both
attempts are the work of half a million parameters, so what holds the first one holds the second as well: held by 1
stage I learned nothing in 15 iterations, by 0.1 half as much as by 0.02. In some of the paper's runs second attempts
also follow first ones of the untrained model; here they do not.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Training Language Models to Self-Correct via Reinforcement Learning",
    authors="Aviral Kumar, Vincent Zhuang, Rishabh Agarwal, Yi Su, John D Co-Reyes, Avi Singh, Kate Baumli, Shariq Iqbal, "
    "Colton Bishop, Rebecca Roelofs, Lei M Zhang, Kay McKinney, Disha Shrivastava, Cosmin Paduraru, George "
    "Tucker, Doina Precup, Feryal Behbahani, Aleksandra Faust",
    year=2024,
    arxiv="2409.12917",
    read="notes",
    topics=("reasoning", "credit"),
    systems=(29,),
)
