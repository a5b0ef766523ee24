"""Which strategy a policy and a scorer want. Liu et al., 2025, arXiv 2502.06703.

A strategy that is chosen with one scorer need not serve another: a beam follows its scorer into its errors, a vote needs
no scorer. So the choice is conditioned on the scorer, theta*(policy, scorer, budget), and not on the budget alone.

| place | choice | paper and code | here |
|---|---|---|---|
| policy | the run's, or any | Llama 3 and Qwen2.5, 0.5B to 72B | `base-puzzles`, or any model; a choice is one policy's |
| score | `guides` | seven process reward models | the policy's confidence at each step; `base-judge`, a trained judge of whole solutions (`WholeSolutions`); or any |
| search | `searches` | best of n, beam of width 4, DVTS, each with several ways to add scores up and to vote | the same three, by score and weighted |
| choice | `ChosenByScorer` | by policy, scorer and difficulty, in absolute bins of pass@1 | by scorer, on one half of the tasks, and tested on the other |
| compared | `aware=false` | one choice for all scorers | the same |

On your own model, tasks and scorers:

    longstride eval scorer_aware model=MODEL tasks.type=SOURCE evaluation.strategies.0.guides.1.guide.judge.run=JUDGE \\
        evaluation.strategies.1.guides.1.guide.judge.run=JUDGE

The row says which search each scorer wants (`search_GUIDE`) and what it comes to (`solved_GUIDE`).

`exact.py` has the mechanism in small: two policies, the second of which is the better one, and two scorers, one noisy, one that likes an
error for some steps, with a beam of width 2 besides. Skill, noise and steps are drawn. In one world a strategy for each pair was worth
0.068 [0.056, 0.081].

Deviations: difficulty is `compute_optimal`'s, and not in this choice; scores of steps are the newest one, not their minimum or mean.
That a small model passes one four hundred times as large is not shown.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Can 1B LLM Surpass 405B LLM? Rethinking Compute-Optimal Test-Time Scaling",
    authors="Runze Liu, Junqi Gao, Jian Zhao, Kaiyan Zhang, Xiu Li, Biqing Qi, Wanli Ouyang, Bowen Zhou",
    year=2025,
    arxiv="2502.06703",
    read="notes",
    topics=("search", "scaling"),
    systems=(96,),
)
