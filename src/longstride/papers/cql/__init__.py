"""CQL: conservative Q-learning. Kumar et al., 2020, arXiv 2006.04779.

An offline critic overestimates actions that its data does not hold, and the policy finds them. CQL(H) adds to the
critic's loss, with a weight, the gap

    T logsumexp_a(Q(s, a) / T) - Q(s, a of the data)      (equation 4; T = 1 in the paper)

so that the values of sampled actions go down, those of the data's actions go up, and the policy is trained on a lower
bound. `control.conservative` computes it, with importance weights for the sampled actions.

| place | choice | paper and Cal-QL's released code | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL; its antmaze has the same reward | `PointMaze`, 400 walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| value | `TDCritic`, two critics, the least of them | gamma 0.99, no entropy in the target | clamped to 0 to 10 |
| value | reward | 10 r - 5 in antmaze: values from -500 to 5 | 10 r: from 0 to 10 |
| value | `Conservative` | weight 5, T = 1, 10 actions of each of three sources | 1, 0.1, 2 of each |
| policy | `GaussianPolicy`, `SAC`, entropy of -1 per dimension | temperature tuned, from 1 | from 0.01 |
| update | Adam 3e-4, policy 1e-4, tau 0.005 | 256 wide, batch 256, 1M updates | 1e-3, 3e-4, 0.02; 64, 128, 2,000 |

Deviations: a point in a maze stands for D4RL's robots, so that data, training and tests take a minute on two cores. A
step costs nothing (see `setups.maze`). Weight and temperatures are smaller, as values are; the weight is fixed, not
tuned to a target gap.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Conservative Q-Learning for Offline Reinforcement Learning",
    authors="Aviral Kumar, Aurick Zhou, George Tucker, Sergey Levine",
    year=2020,
    arxiv="2006.04779",
    read="full",
    topics=("offline", "values"),
)
