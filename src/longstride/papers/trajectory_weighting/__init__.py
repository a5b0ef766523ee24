"""Trajectory weighting: offline RL that stays near the better part of its data. Hong et al., 2023, arXiv 2306.13085.

Offline methods stay near the policy that collected the data, and where most episodes are poor that policy is poor. So
episodes are not drawn uniformly: all steps of episode i are drawn with a probability that grows with its return G_i (RW),
or with what that return is above the one expected from its first state (AW), and the method itself is left as it is:

    p_i ~ exp(x_i / alpha),   x = G scaled to [0, 1] (RW), or G - V(s_0) scaled to [0, 1] (AW)

which is the data of a policy that is no worse, however few good episodes there are.

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | data | D4RL: few expert or medium episodes, the rest random | a random world, 5 % near-best episodes |
| method | weights | alpha = 0.1 | tuned |
| method | V(s_0) of AW | linear regression of the return on the first state | the same: means by first state |
| method | what stays near the data | CQL, IQL, TD3+BC | pi ~ pi_data exp(Q / lambda), exact; lambda is tuned |
| measure | the policy | normalised score | its exact value: 0 is the uniform policy's, 1 the best one's |

That is the exact problem. `trajectory_weighting` acts: `ByReturn` draws the steps that any agent of control learns from
(`agent.weights`) by RW, here TD3+BC in the U-maze on walks of which nine in ten wander; `trajectory_weighting/recorded` is IQL on data
of others. `agent.weights.over_start=true` is AW, where V(s_0) is the paper's linear regression.

The claim, frozen before its sixteen seeds ran, is open: where nine walks in ten wander, drawing by return ends with .67 success and drawing evenly with
.38 (+.28, from .13 to .43), where half of them do with .96 and .41, where none do with .95 and .92. The relation is kept; that the effect rises with
the share of walks that wander is not decided (+.25, from .05 to .45), and it is not greatest where that is.

Deviations: in the exact problem values and policy are computed from the weighted counts of a table instead of being learned by sampling: it
is the limit of many updates. On seeds 0 to 5, with 5 % good episodes, alpha 0.1 and lambda 0.3, cloning them rises from 0.02 to
0.53 of the scale and the method from 0.65 to 0.81. The second is not the weights' own: with lambda tuned, to 0.01 and lower, the
method ends with 0.93 whether episodes are drawn by return or evenly.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Harnessing Mixed Offline Reinforcement Learning Datasets via Trajectory Weighting",
    authors="Zhang-Wei Hong, Pulkit Agrawal, Rémi Tachet des Combes, Romain Laroche",
    year=2023,
    arxiv="2306.13085",
    read="notes",
    topics=("offline",),
    systems=(130,),
)
