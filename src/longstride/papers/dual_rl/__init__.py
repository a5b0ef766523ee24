"""Dual RL: implicit maximisation by a choice of divergence, and imitation without rewards. Sikchi et al., 2023, arXiv 2302.08560.

Offline RL that stays near its data by a divergence has a dual problem in V alone. Its loss of u = Q - V decides how V comes
near the best Q of the data: the reverse KL gives XQL's exponential, which a single large u can blow up; chi-square and total
variation give a square and a line,

    lam max(u + u^2 / 4, 0) - (1 - lam) u,    lam max(u, 0) - (1 - lam) u

which do not. All else is `iql`. That is f-DVL. ReCOIL imitates an expert of whom a few episodes are known, from these and from data of
anyone, which need not be told apart otherwise: with M the largest of all values,

    Q(s, a) toward M on the expert's steps, and toward -(1 - gamma) M + gamma V(s') on the others; V near the best Q of the others

so a step of anyone is worth as much as it leads to what the expert does.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL | `PointMaze`, 400 walks |
| value | `ImplicitQ(ChiSquare)`, two critics, the least of them | lam by task, 0.5 to 0.9 and near | 0.8 |
| value | Q | Huber's loss beyond errors of 20 | the square: errors are below 10 |
| value | discount, tau | 0.99, 0.005 | 0.99, 0.02 |
| policy | `NormalPolicy`, `AWR`, weights of at most 100 | temperature by task | that of `iql` |
| update | Adam 3e-4, rates fall by a cosine | 256 wide, batch 256, 1M updates | 1e-3, constant; 64, 128, 2,000 |
| ReCOIL | M, and the loss of V | 2 / (1 - gamma); Gumbel's, scale 2.5 and more | 10; Gumbel's, 1 |
| ReCOIL | what is imitated, by exp((Q - V) / temperature) | steps of anyone | all |
| ReCOIL | data | an expert's walk, 200 more among others' | 10 walks to the goals of the tests, 200 of which nine in ten wander |
| `Gumbel` | XQL's loss (arXiv 2301.02328): z at most 5, scaled by the largest z of the batch | the same | the same |

Deviations: those of `iql`. Adding uniform actions to the loss of V is not here. The losses are held to numbers by hand, and ReCOIL's are
after notes on the released code. `dual_rl/recoil` is ReCOIL in a maze: no run of it was looked at, and what is tested is that it tells an expert's
actions from any in a small world. `dual_rl/recorded` and `dual_rl/recoil_recorded` take data of others.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Dual RL: Unification and New Methods for Reinforcement and Imitation Learning",
    authors="Harshit Sikchi, Qinqing Zheng, Amy Zhang, Scott Niekum",
    year=2023,
    arxiv="2302.08560",
    read="notes",
    topics=("offline", "values"),
    systems=(119,),
)
