"""SPCT: a judge that says first what matters. Liu et al., 2025, arXiv 2504.02495.

The judge writes principles, then a critique by them, then a score of 1 to 10 for each answer. Judgements differ in
their principles, so several see more than one, and their sums are finer than a score. Self-principled critique tuning
teaches by outcome which principles to write; a second, small model tells which judgements are likely right, and only
these are summed.

| place | choice | paper (DeepSeek-GRM) | here |
|---|---|---|---|
| cold start | `rejective` | 3 judgements an item; wrong ones are left out, and items with 3 right ones; hints for hard items | the same; a hint shows a principle that is right |
| plan | groups of one item | GRPO | 8 |
| score | 1 or -1 | whether the best answer has the one highest score | the same |
| update | `CriteriaTuned` | GRPO with a large KL term, no reward of format | beta 0.08; the gradient of KL is exact |
| vote | `votes` | k judgements, answers shuffled in each, scores summed | the same, k = 32 |
| filter | `meta` | a model of how likely a judgement is right, taught on judgements of the cold start; the better half is summed | `rewards.probe.LinearHead` on prompt, principle and margin |

An item is of a kind of prompt, which has one criterion by which its answers are right, and does not name it. A
principle is a criterion; by it each answer is read, with noise, and the first of them as a little better than it is.
The filter pays as long as judgements differ in their principles: once RL has settled on the right ones it drops half of
the votes for nothing (arms `settled`).

Deviations: the judge is a table of principles by kind of prompt; what it reads is not learned. The paper's beta could
not be checked.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Inference-Time Scaling for Generalist Reward Modeling",
    authors="Zijun Liu, Peiyi Wang, Runxin Xu, Shirong Ma, Chong Ruan, Peng Li, Yang Liu, Yu Wu",
    year=2025,
    arxiv="2504.02495",
    read="abstract",
    topics=("judges", "search"),
    systems=(73,),
)
