"""V-GPS: a critic chooses among what a policy proposes. Nakamoto et al., 2024, arXiv 2410.13816.

A robot policy that was cloned from mixed data proposes good actions and bad ones. V-GPS leaves it as it is, trains a
critic on offline data apart from it, and at test time draws K actions and takes one with probability

    softmax(Q(s, a_1) / beta, ..., Q(s, a_K) / beta)

so any policy that can be sampled from is made better, without its weights.

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | data, tasks | Bridge and Fractal; 12 tasks, 5 generalist policies | `PointMaze`, 60 noisy walks; five test tasks |
| policy | cloned, not trained further | Octo, RT-1-X, OpenVLA | `GaussianPolicy`; any policy works (`level.policy`) |
| value | Cal-QL | language, ResNet-34; gamma 0.98, alpha 5 | `TDCritic`, calibrated; goals as state; 0.99, alpha 1 |
| test | `ReRanked` | K = 10 to 50, beta 1 and less | K = 10, beta 0.1 |
| update | Adam | critic 3e-4, 500k to 1M updates | 1e-3, 1,200 updates |

`Proposals` is the model of the claim: a table of values, where the policy that re-ranks K proposals is known. If a share
F(a) of the proposals in a state is valued no more than a, then a is taken with probability F(a)^K - F(a-)^K.

Deviations: the critic's targets take the cloned policy's actions, since a level has one policy. On the maze one run
(seed 0) goes from 0.08 to 0.60 of the test episodes; K and critics were not compared there.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Steering Your Generalists: Improving Robotic Foundation Models via Value Guidance",
    authors="Mitsuhiko Nakamoto, Oier Mees, Aviral Kumar, Sergey Levine",
    year=2024,
    arxiv="2410.13816",
    read="notes",
    topics=("robots", "values", "search"),
    systems=(53,),
)
