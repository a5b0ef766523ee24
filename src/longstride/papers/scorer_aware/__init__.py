"""Which strategy a policy and a scorer want. Liu et al., 2025, arXiv 2502.06703.

A strategy that is chosen with one scorer need not serve another: a beam follows its scorer into its errors, a vote does
without. So the choice is conditioned on the scorer, theta*(policy, scorer, budget), and not on the budget alone.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | Llama 3 and Qwen2.5, 0.5B to 72B | skill 0 and 1: 0.1 and 0.39 of the tasks in one go |
| score | scorer | seven process reward models | two: noisy; misled, one that likes an error for two steps |
| search | strategies | best of n, beam of width 4, DVTS | the same, by score and weighted, and a beam of width 2 |
| choice | `ChosenByLevel` | by difficulty, in absolute bins | by policy and scorer; tasks are of one difficulty |

Deviations: an exact world; the choice is made on one half of the tasks and tested on the other. That a small model passes
one four hundred times as large is not shown.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Can 1B LLM Surpass 405B LLM? Rethinking Compute-Optimal Test-Time Scaling",
    authors="Runze Liu, Junqi Gao, Jian Zhao, Kaiyan Zhang, Xiu Li, Biqing Qi, Wanli Ouyang, Bowen Zhou",
    year=2025,
    arxiv="2502.06703",
    read="abstract",
    topics=("search", "scaling"),
    systems=(96,),
)
