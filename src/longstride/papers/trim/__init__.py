"""TRIM: two models share a solution. Kapoor et al., 2026, arXiv 2601.10245.

The weak model proposes each step; a scorer sees the solution so far, and where it doubts, the strong model takes the
step instead. A wrong step is caught where it is made, so the strong model is paid for a few steps of many tasks, and
not for all steps of the tasks that are hard.

| place | choice | paper (Qwen2.5-3B and Claude 3.7 on MATH-500) | here |
|---|---|---|---|
| policy | weak, strong | steps are paragraphs | 6 steps; skill 0 and 2: 0.38 and 0.75 of the tasks in one go |
| score | scorer | a process reward model of 7B | the label with unbiased noise, as large as the label |
| route | `ByScore` | TRIM-Thr: again where the score is below k | the same |
| route | `ByBelief` | TRIM-POMDP: right, lost, last step wrong; by a solver | the same states, by dynamic programming |
| route | `ByTask` | learned routers of whole tasks | the gain of every task is known: no router does better |
| measure | `saved` | CPT95: strong tokens for 95 % of the gap | 1 - CPT95 |

Deviations: an exact world; TRIM-RL, whose policy is trained for the same price, is left out, for the belief has the
optimum of what it is trained for; transitions of the belief are those of the mean task.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="TRIM: Hybrid Inference via Targeted Stepwise Routing in Multi-Step Reasoning Tasks",
    authors="Vansh Kapoor, Aman Gupta, Hao Chen, Anurag Beniwal, Jing Huang, Aviral Kumar",
    year=2026,
    arxiv="2601.10245",
    read="notes",
    topics=("search",),
    systems=(17,),
)
