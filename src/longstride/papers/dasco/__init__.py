"""DASCO: dual-generator adversarial support constraint. Vuong et al., 2022, arXiv 2211.01471.

A discriminator D that tells actions of the data from those of the policy says how far the policy has left its data. But one policy
cannot look like all of the data and earn more than it. So there are two generators: the policy earns, a second one makes the rest
of the data, and only their mixture has to look like it. The policy is then free to be any part of the data, and nothing beyond,

    D: tell the data from a mixture, half of it the policy's actions and half the second generator's
    second generator: maximise log D
    policy: maximise (D(s, a) / D(s, a of the data)) Q(s, a) / mean |Q| + weight log D(s, a)

where the ratio, which is not differentiated, turns Q off outside the data.

| place | choice | paper | here |
|---|---|---|---|
| data | walks that vary unevenly | D4RL's antmazes with such data | that of `reds`: the U-maze, many actions random in its right half |
| generators | two, and a mixture of both that is like the data | abstract | half of each; D by the cross-entropy |
| policy | return and D | return is weighed by D (from memory) | the formula above, weight 1 |
| value | `TDCritic`, two critics, the least of them | TD with the policy's actions (from memory) | clamped to 0 to 10 |
| networks | D and generators | not found | 64 wide, of the critic's rate |

Deviations: the paper was read as an abstract, and no code was found. That a mixture of two generators has to look like the data, and
why, is its; how Q and D are weighed against each other, and all numbers, are from memory or ours. Rewards of a maze, networks and
rates are those of `cql`. `dasco/recorded` learns from data of others; `other=0` leaves the policy alone against D.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Dual Generator Offline Reinforcement Learning",
    authors="Quan Vuong, Aviral Kumar, Sergey Levine, Yevgen Chebotar",
    year=2022,
    arxiv="2211.01471",
    read="abstract",
    topics=("offline", "values"),
    systems=(38,),
)
