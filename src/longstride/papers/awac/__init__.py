"""AWAC: accelerating online reinforcement learning with offline datasets. Nair et al., 2020, arXiv 2006.09359.

Offline first, then online with the data kept. The policy is never asked for actions that nobody took: it imitates those of
the batch, each weighted by how much better it is than what the policy does,

    -exp(A(s, a) / lambda) log pi(a | s),   A(s, a) = Q(s, a) - Q(s, a'), a' drawn from the policy

which needs no model of who collected the data, and improves online without unlearning first.

| place | choice | paper | here |
|---|---|---|---|
| plan | 20 walks to one goal each, then 80 episodes of its own | 25 demonstrations and more | `PointMaze` |
| value | `TDCritic`, two critics, the least of them | discount 0.99, tau 0.005 | 0.99, 0.02; clamped to 0 to 10 |
| policy | `NormalPolicy`, `AWR`: weights have a mean of 1 in a batch | lambda 1 for MuJoCo, 0.3 for hands | 1, of values to 10 |
| update | Adam 3e-4 | 256 wide, four layers of the policy, batch 1024 | 3e-4; 64, two layers, 128 |

Deviations: the value of the policy is that of one action drawn from it (as in d3rlpy). A point in a maze stands for the
paper's hands; networks and rates are those of `cal_ql`. `awac/recorded` learns from data of others. The loss of a batch is
d3rlpy's (`make parity`).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="AWAC: Accelerating Online Reinforcement Learning with Offline Datasets",
    authors="Ashvin Nair, Abhishek Gupta, Murtaza Dalal, Sergey Levine",
    year=2020,
    arxiv="2006.09359",
    read="notes",
    topics=("offline", "values"),
)
