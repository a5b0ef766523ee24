"""MOORL: meta-learning between offline data and what is collected. Chaudhary et al., 2025, arXiv 2506.09574.

Methods that learn online beside offline data usually mix both in each batch, and need many critics or many updates to cope
with their mismatch. MOORL learns in blocks. Each takes one of the two, at random, makes K updates of plain SAC on it alone, and moves the
weights of policy and critic a share of that way (Reptile),

    theta <- theta + eta (theta_K - theta)

so what stays is what is good for both. There is no conservatism, and no phase of pre-training.

| place | choice | paper | here |
|---|---|---|---|
| plan | from the first step both sources, chosen at random | D4RL and online steps | 20 walks of `PointMaze`, then 8 times 10 episodes |
| plan | steps between blocks | one | blocks of updates come after 10 episodes: 250 updates |
| update | `Reptile` | K updates of actor and critic, then eta | K = 5, eta = 0.5: their numbers were not found |
| value | two critics, the least of them | SAC | `TDCritic`, without entropy in its target |
| the rest | | | as in `cal_ql` |

Deviations: those of `cal_ql` but for its conservative term. The moments of Adam and the target networks go on over the blocks,
which the algorithm does not speak of. The paper's algorithm was read as others restate it; no code was found. `moorl/recorded`
takes an environment and a file of your own, and `phases.0.reptile` goes with any other agent.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="MOORL: A Framework for Integrating Offline-Online Reinforcement Learning",
    authors="Gaurav Chaudhary, Washim Uddin Mondal, Laxmidhar Behera",
    year=2025,
    arxiv="2506.09574",
    read="notes",
    topics=("offline", "values"),
    systems=(120,),
)
