"""SAC: soft actor-critic. Haarnoja et al., 2018, arXiv 1812.05905.

An actor that maximises return and entropy at once, from replayed transitions: two critics learn the values of its
actions and the least of them counts; the policy follows their gradient; the temperature, which weighs the entropy, is
moved until the entropy stands at its target.

| place | choice | paper, as later code has it | here |
|---|---|---|---|
| plan, roll out | seeds of an environment of Gymnasium | MuJoCo's robots, to 10M steps | Pendulum-v1, 40 episodes of 200 |
| value | `TDCritic`, two critics, the least of them, and the entropy of the next action | the same | the same |
| value | discount 0.99, tau | 0.005 | 0.01 |
| policy | `GaussianPolicy`, `SAC`, entropy of -1 per dimension | temperature from 1 | from 0.1, of rewards scaled by 0.1 |
| update | Adam, one update a step | 3e-4; 256 wide, 2 layers, batch 256 | 1e-3; 64 wide, batch 128 |

Deviations: networks are small and rates high, so that a run takes a minute on one core; `sac/published` has the
paper's numbers, for a robot. In the other recipes of `control` the entropy counts in the policy's loss alone,
as in the code that they follow, unless `soft=true` says otherwise.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Soft Actor-Critic Algorithms and Applications",
    authors="Tuomas Haarnoja, Aurick Zhou, Kristian Hartikainen, George Tucker, Sehoon Ha, Jie Tan, Vikash Kumar, Henry Zhu, Abhishek Gupta, Pieter Abbeel, Sergey Levine",
    year=2018,
    arxiv="1812.05905",
    read="notes",
    topics=("values",),
)
