"""SQIRL: random exploration and a few steps of Q-iteration. Laidlaw et al., 2023, arXiv 2312.08369.

Much of what deep RL solves by random exploration has a short effective horizon: the values of the *random* policy,
improved by few steps of value iteration, already have the best actions as their greedy ones. A problem is
k-QVI-solvable if k is the least number with this property:

    Q^1 = values of the random policy,   Q^(j + 1)(s, a) = r(s, a) + E max_a' Q^j(s', a'),   greedy for Q^k is optimal

SQIRL plans one step of the episode after the other. For step i it collects episodes that act greedily before i and at
random from i on, fits Q^1 of step i + k - 1 to the returns, goes back to step i by k - 1 fitted backups, and keeps the
greedy policy of step i. `qvi_horizon` computes k exactly.

| place | choice | paper | here |
|---|---|---|---|
| problem | `Tunnels` | Atari, Procgen and MiniGrid with sticky actions | forks of a bait and a tunnel, one action in ten slips |
| roll out | greedy, then random | m episodes for a step | 2,000 |
| update | Q^1 | regression on returns | mean return of each state and action of the step |
| update | backups | k - 1 of fitted Q-iteration | means of r + max Q |
| plan | k | 1 to 5, the best of a run each | 3 |

What one run cannot show: a lock (`lock_k_3`) has k = 1, and is not solved, for the random policy never opens it. The
paper's effective horizon has a second term for this, the logarithm of the episodes that estimates take.

Deviations: tables for networks, so regression does not generalise, and untried actions have value 0. Each state of the
problem belongs to one step, as in the paper's analysis.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="The Effective Horizon Explains Deep RL Performance in Stochastic Environments",
    authors="Cassidy Laidlaw, Banghua Zhu, Stuart Russell, Anca Dragan",
    year=2023,
    arxiv="2312.08369",
    read="notes",
    topics=("horizon", "values"),
    systems=(71,),
)
