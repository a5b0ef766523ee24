"""BRC: one large value network for many tasks. Nauman et al., 2025, arXiv 2505.23150.

Values of several tasks in one network disturb each other: rewards differ in size, and squared errors follow the largest.
BRC makes one actor-critic of them all: a wide network with normalisation and skips, a histogram of the return under the
cross-entropy instead of a number under the squared error, a learned vector of length 1 for each task, and rewards that are
divided, task by task, by the largest return that was seen.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan, roll out | `Several`: environments as one | 283 tasks; one robot's, or Atari's | three pendulums, rewards from 0.1 to 10 times |
| data | `NormalisedReturns` | largest return plus the largest entropy to come | the former |
| value | `CategoricalReturns`, two of them, the mean of both | 101 returns from -10 to 10 | the same |
| value | `BroNet` | 4096 wide (code: 512), two blocks | 64 wide, two blocks |
| value | a task's vector | of 32, of the critic, which the policy reads too | of 32, of the critic; the policy reads zeros with a one |
| policy | `SAC`, entropy of -1/2 per dimension | 256 wide, one block; temperature from 0.1 | 64 wide, one block; 0.1 |
| update | AdamW 3e-4, tau 0.005, decay 1e-4 | 10 updates a step in the code's default, batch 1024 | 1e-3, 0.01, 1e-4 of critics; half an update a step, batch 128 |

`brc` takes any environments whose actions are a box (`tasks.parts`); `brc/scales` has the claim.

Deviations: the entropy counts in the policy's loss alone, so it is no part of what rewards are
divided by; the policy's first layer takes the place of the critic's vector; Adam of the temperature is that of the policy.
Nothing is as big as the paper's networks, so that what it says of size is not shown. Histogram and layers are computed by
hand in the tests, and rewards are those of the released normaliser.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Bigger, Regularized, Categorical: High-Capacity Value Functions are Efficient Multi-Task Learners",
    authors="Michal Nauman, Marek Cygan, Carmelo Sferrazza, Aviral Kumar, Pieter Abbeel",
    year=2025,
    arxiv="2505.23150",
    read="notes",
    topics=("values", "scaling"),
    systems=(3,),
)
