"""SHARSA: horizon reduction for offline goal reaching. Park et al., 2025, arXiv 2506.04168.

Offline, goal-conditioned RL does not improve with more data because its horizon is long: errors of one-step targets add
up, and far goals are hard to map to actions. SHARSA shortens both. A level above learns values of subgoals n steps
ahead by n-step SARSA, proposes 32 subgoals by a flow and takes the one with the highest value; a level below is a flow
toward the subgoal. The paper compares it with SAC+BC, with one-step and with n-step returns.

| place | choice | paper | here |
|---|---|---|---|
| plan | walks without a task as data | 1M to 1B transitions of four OGBench tasks | 200,000 of `PointMaze`, navigate |
| roll out | none: offline | five test tasks, 15 episodes each | five test tasks, 10 episodes each |
| value | `Sarsa`, `BCE`, two critics, the least of them | n = 25 or 50, gamma 0.999 | n = 25, gamma 0.99 |
| value | `Relabelled` goals | 20 % current, 50 % future, 30 % random | the same |
| policy | `FlowPolicy`, 10 Euler steps, `BestOfN` of 32 subgoals | goals by environment | geometric, the same episode |
| update | Adam 3e-4, tau 0.005 | 4 layers of 1024, batch 1024, 5M updates | 2 of 128, batch 256, 12,000 updates |

Deviations: a point in a maze stands for OGBench's robots, so that data, training and tests take minutes on two cores;
an episode that ends n or fewer steps ahead is no success unless it ends at the goal (the release counts it as one);
SAC+BC climbs the least of the two critics, where the paper's climbs their mean. At the size of the claim, SHARSA, 25
steps and one step each reach a fifth of the far goals: that a shorter horizon pays is undecided.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Horizon Reduction Makes RL Scalable",
    authors="Seohong Park, Kevin Frans, Deepinder Mann, Benjamin Eysenbach, Aviral Kumar, Sergey Levine",
    year=2025,
    arxiv="2506.04168",
    read="notes",
    topics=("offline", "horizon", "values", "scaling"),
    systems=(2,),
)
