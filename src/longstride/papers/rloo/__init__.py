"""RLOO: REINFORCE with a leave-one-out baseline. Ahmadian et al., 2024, arXiv 2402.14740.

An answer is one action: its reward less the mean reward of the group's other answers, times the gradient of the
log-probability of the whole answer. No ratio, no clipping, no critic; the gradient is that of the return.

| place | choice | paper | here |
|---|---|---|---|
| credit | `GroupRelative` | r - mean of the k - 1 others, k = 2 and 4 | the same, k = 8 |
| update | `Reinforce`, `Constant` | the sum over an answer's tokens, the mean over answers | the same |
| update | passes over an answer | one in two steps (Pythia), two (Llama) | one in two steps |
| update | KL to the reference | in the reward, 0.03 or 0.1 | none |
| the rest | | Pythia 6.9B and Llama 7B, a learned model of preferences as reward | as in `grpo` |

Deviations: model, tasks and rate are those of `grpo`; an iteration is two optimiser steps, the second of which is one
step off the policy that sampled.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    authors="Arash Ahmadian, Chris Cremer, Matthias Gallé, Marzieh Fadaee, Julia Kreutzer, Olivier Pietquin, Ahmet Üstün, "
    "Sara Hooker",
    year=2024,
    arxiv="2402.14740",
    read="notes",
    topics=("reasoning", "credit"),
)
