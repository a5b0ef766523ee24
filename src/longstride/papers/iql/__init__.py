"""IQL: offline reinforcement learning with implicit Q-learning. Kostrikov et al., 2021, arXiv 2110.06169.

No action that the data lacks is ever valued. V(s) is an expectile of Q(s, a) over the actions of the data, which for
expectiles near 1 is the value of the best of them; Q is moved toward r + gamma V(s'); and the policy imitates the data with
weights exp(beta (Q - V)).

| place | choice | paper | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL; its antmaze has the same reward | `PointMaze`, 400 walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| value | `ImplicitQ(Expectile)`, two critics, the least of them | expectile 0.7, in antmaze 0.9 | 0.9 |
| value | discount, tau | 0.99, 0.005 | 0.99, 0.02 |
| policy | `NormalPolicy`, `AWR`, weights of at most 100 | beta 3, in antmaze 10 | `temperature` 1/3: its inverse |
| update | Adam 3e-4, the policy's falls by a cosine | 256 wide, batch 256, 1M updates | 1e-3; 64, 128, 2,000 |

Deviations: V, Q and the policy are moved after each other, V and Q by one step of one optimiser (as in d3rlpy); the
policy's rate is constant. Rewards of a maze and networks are those of `cql`. `iql/recorded` has the paper's numbers for
robots. The loss of a batch is d3rlpy's (`make parity`).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Offline Reinforcement Learning with Implicit Q-Learning",
    authors="Ilya Kostrikov, Ashvin Nair, Sergey Levine",
    year=2021,
    arxiv="2110.06169",
    read="notes",
    topics=("offline", "values"),
)
