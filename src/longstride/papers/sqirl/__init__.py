"""SQIRL: random exploration and a few steps of Q-iteration. Laidlaw et al., 2023, arXiv 2312.08369.

Much of what deep RL solves by random exploration has a short effective horizon: the values of the *random* policy,
improved by few steps of value iteration, already have the best actions as their greedy ones. A problem is
k-QVI-solvable if k is the least number with this property:

    Q^1 = values of the random policy,   Q^(j + 1)(s, a) = r(s, a) + E max_a' Q^j(s', a'),   greedy for Q^k is optimal

SQIRL plans one step of the episode after the other. For step i it collects episodes that act greedily before i and at
random from i on, fits Q^1 to the returns, backs it up k - 1 times by fitted Q-iteration, and keeps the greedy policy of
step i. It acts so in any environment with discrete actions, with networks (`sqirl`); `sqirl/exact` is the same with tables,
in problems whose k `qvi_horizon` computes exactly.

| place | choice | paper and released code | `sqirl` | `sqirl/exact` |
|---|---|---|---|---|
| problem | | Atari, Procgen and MiniGrid with sticky actions | FrozenLake, 30 steps; `tasks.id` | `Tunnels`: forks of a bait and a tunnel, one action in ten slips |
| roll out | greedy, then random | m episodes for a step | 200 | 2,000 |
| update | Q^1 to Q^k | one network with k heads, Adam 1e-4, 10 passes | the same, 1e-3, 60 batches of 256 | Q^1 of step i + k - 1: ridge regression |
| update | what it learns from | steps from i on | the same | steps i to i + k - 1 |
| plan | k | 1 to 5, the best of a run each | 3 | the effective horizon of the world that is drawn |
| plan | end of an episode | nothing comes after it | `NStep.finite`, and the step is observed | the same |

k alone is not all: a lock (no bait, one tunnel of 15 right actions) has k = 1, and is not solved, for the random policy never opens it. The
paper's effective horizon has a second term for this, the logarithm of the episodes that estimates take.

Deviations: in `sqirl/exact` tables stand for networks, so regression does not generalise, and untried actions have value 0;
each state of the problem belongs to one step, as in the paper's analysis. In `sqirl` a network sees the step as a number
(`TimeAwareObservation` is among the wrappers), so one network serves all steps from i on, and steps that are settled keep
their own copy. Rewards are discounted by 0.99 a step; the paper has no discount (`agent.levels.0.data.discount=1`). The
released distributional head and the average of weights are not here. An iteration settles a step, so long episodes take
long. Runs are trained one by one: what is settled cannot be stacked.
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
