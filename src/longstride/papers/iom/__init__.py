"""IOM: invariant objective models. Qi, Su, Kumar and Levine, 2022, arXiv 2211.11349.

Optimising a model of the data leads to designs that the data say nothing of, and that the model overrates. Instead of
lowering their values, IOM takes from the model what tells them apart: a representation phi is trained so that the
designs that the optimiser finds look, on average, like those of the data. A design that is too far loses the features
that would make it good, and is predicted to be average, so there is nothing to gain by going there. The loss is

    (f(phi(x)) - y)^2 + lambda |mean over the data of phi(x) - phi(x')|^2,    x' = climb(x)

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | data without the best designs | Design-Bench | `Designs`: Ackley's function on a hidden subspace |
| model | phi, and f on top of it | networks of 2048 | 16 to 16 features by 64 units, 64 units |
| model | distance of the features | a discriminator (paper) or their means (a released variant) | their means |
| model | lambda | by validation: the least error among the most invariant | 10, on seeds 0 to 2 |
| model | x' | 50 steps | 10 steps |
| climb | gradient ascent from the 128 best of the data | 50 steps of 0.05 sqrt(D) | the same |
| measure | best of 128, normalised by the whole pool | the same | the same |

Deviations: means of features take the place of the paper's discriminator; lambda is fixed. The proof is a gradient: with
linear features the penalty and its slope have closed forms, and a lambda that outweighs the fit makes every prediction
the mean of the data.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Data-Driven Offline Decision-Making via Invariant Representation Learning",
    authors="Han Qi, Yi Su, Aviral Kumar, Sergey Levine",
    year=2022,
    arxiv="2211.11349",
    read="abstract",
    topics=("design", "offline"),
    systems=(34,),
)
