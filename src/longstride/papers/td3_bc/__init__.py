"""TD3+BC: a minimalist approach to offline reinforcement learning. Fujimoto et al., 2021, arXiv 2106.06860.

TD3 on given data, whose policy stays near it by a single term: beside the value, which is divided by its mean size, stands
the squared distance to the action of the data,

    -lambda Q(s, pi(s)) + |pi(s) - a|^2,   lambda = alpha / mean |Q|

so one weight serves rewards of any scale.

| place | choice | paper | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL's robots | `PointMaze`, 400 walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| value | `TDCritic` and the noise of `td3` | discount 0.99, tau 0.005 | 0.99, 0.02; clamped to 0 to 10 |
| policy | `DeterministicPolicy`, `TD3(q_weight=alpha)` | alpha 2.5 | the same |
| update | Adam 3e-4, two critic steps for one of the policy | 256 wide, batch 256, 1M updates | 1e-3; 64, 128, 2,000 |

Deviations: those of `td3`; observations are not shifted and scaled to those of the data. Rewards of a maze, networks and
rates are those of `cql`. `td3_bc/recorded` has the paper's numbers for data of others. The loss of a batch is d3rlpy's
(`make parity`).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="A Minimalist Approach to Offline Reinforcement Learning",
    authors="Scott Fujimoto, Shixiang Shane Gu",
    year=2021,
    arxiv="2106.06860",
    read="notes",
    topics=("offline", "values"),
)
