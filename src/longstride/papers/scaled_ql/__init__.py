"""Scaled Q-learning: one offline Q for many tasks that gains from width. Kumar et al., 2022, arXiv 2211.15144.

Offline Q-learning used to get no better, or worse, with larger networks. With three choices it does: returns as a distribution
under the cross-entropy (C51) in place of a squared error, features that are divided by their length before the last layer, and
ResNets. Each is put on CQL with discrete actions, where the gap is exact,

    loss = cross-entropy(projected r + gamma Z'(s', argmax_a Q(s', a)), Z(s, a)) + weight (logsumexp_a Q(s, a) - Q(s, a of the data))

| place | choice | paper | here |
|---|---|---|---|
| data | poor and good play of many tasks | 40 games of Atari, 400M steps | 400 walks to any goal in each of two mazes, noise 0.8 |
| tasks | which one it is | a head for each game | `Several`: a row of zeros with a one, beside the goal |
| actions | discrete | the game's | stay, or full force in four directions |
| value | `Scaled`: C51, double targets | 51 atoms or more (from memory) | 51 on [0, 10] |
| value | weight of the gap | 0.05 (from memory) | 0.05; tuned in the claim, as it weighs less beside a squared error |
| value | features | divided by their length | the same |
| networks | ResNet-101 with group normalisation and learned spatial embeddings | up to 80M parameters | no images: two layers, 64 wide |
| policy | the best action | greedy | the same |

Deviations: no games, and no ResNet, which is about images. Features that are divided by their length are a hidden layer more
(`UnitFeatures`), which plain ones lack, so in the claim the sides differ in depth too. `scaled_ql/recorded` takes discrete
data of your own; several environments, each with its data, are one with `Several`. Target and gap are held to numbers by
hand.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Offline Q-Learning on Diverse Multi-Task Data Both Scales And Generalizes",
    authors="Aviral Kumar, Rishabh Agarwal, Xinyang Geng, George Tucker, Sergey Levine",
    year=2022,
    arxiv="2211.15144",
    read="notes",
    topics=("offline", "values", "scaling"),
    systems=(25,),
)
