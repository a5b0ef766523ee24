"""Density-ratio weighting: offline RL on the better part of its data, step by step. Hong et al., 2023, arXiv 2310.04413.

Where most of the data is poor, a policy that stays near all of it stays poor. Weights of whole episodes (`trajectory_weighting`)
keep the poor steps of good ones. Here each step has a weight of its own, the ratio of a better density to that of the data,

    w(s, a) ~ exp(f(s) + g(s, a)),   minimise  -sum w r + kl sum w log w + flow mean (exp(f(s) + g(s, a)) - exp(f(s')))^2

where f and g are networks that learn beside the agent. The first term moves weight to steps that earn, the second one keeps it
spread, and the third says that what flows out of a state flows into the next one, so that the way to a reward gets weight too.
The method that learns from the data is left as it is.

| place | choice | paper and released code | here |
|---|---|---|---|
| data | few good walks among poor ones | D4RL: 1, 5, 10 or 50 % expert or medium episodes, the rest random | `PointMaze`, nine walks in ten wander |
| weights | w over a batch, f and g cut at 1.2 | softmax | the same |
| weights | kl, flow | 0.2 or 1; 1 or 5 (CQL: 0; 0.001 to 5) | 0.2; 5 |
| weights | reward r | divided by its deviation over the data (TD3+BC: scaled to [0, 1]) | the deviation |
| update | losses of critics and policy | sums, weighted by w | means over a batch that is drawn anew with chances w |
| update | Adam of f and g | 1e-4, beside 3e-4 for critics | that of critics |
| method | what stays near the data | CQL, IQL, TD3+BC | TD3+BC; `density_weighting/recorded`: IQL |

`agent.levels.0.rows.type=longstride.papers.density_weighting.method:DensityRatio` gives any agent of control these weights, and
`agent.weights` (`trajectory_weighting`) goes with them, as in the paper.

The claim, frozen before its forty seeds ran, is null: where nine walks in ten wander, drawing by the ratio ends with .31 success and drawing evenly
with .38 (-.08, from -.15 to 0), where half of them do with .42 and .57, where none do with .94 and .97. Its pilot of two seeds had +.12.

Deviations: rows are drawn anew where the release weighs losses, which is the same in expectation and scatters more. Rewards of a
maze, networks and rates are those of `td3_bc`. The loss of the ratio and its gradient are those of the release
(`test_released.py`). As there, nothing keeps g a ratio of probabilities, nor the level of f where it is, so the flow can be met
without carrying weight far: on two ways of three steps, one of which ends with a reward, the step before the reward got 16 times
the weight of a poor one with flow 5, and none more with flow 1.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Beyond Uniform Sampling: Offline Reinforcement Learning with Imbalanced Datasets",
    authors="Zhang-Wei Hong, Aviral Kumar, Sathwik Karnik, Abhishek Bhandwaldar, Akash Srivastava, Joni Pajarinen, Romain "
    "Laroche, Abhishek Gupta, Pulkit Agrawal",
    year=2023,
    arxiv="2310.04413",
    read="notes",
    topics=("offline",),
    systems=(31,),
)
