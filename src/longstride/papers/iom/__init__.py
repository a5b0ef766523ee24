"""IOM: invariant objective models. Qi, Su, Kumar and Levine, 2022, arXiv 2211.11349.

Optimising a model of the data leads to designs that the data say nothing of, and that the model overrates. Instead of
lowering their values, IOM takes from the model what tells them apart: a representation phi is trained so that the
designs that the optimiser finds look like those of the data. A design that is too far loses the features that would make
it good, and is predicted to be average, so there is nothing to gain by going there. The loss is

    (f(phi(x)) - y)^2 + lambda d(phi(x), phi(x')),    x' = climb(x)

where d is how well a discriminator, which learns beside, tells one from the other, or the distance of their means.

`longstride train iom` proposes controllers of CartPole, `iom/recorded tasks.data=FILE` designs of the user's own; files,
oracles and what comes out are those of `design_bench`. `model.weight` is lambda: raise it while what is proposed is
`overestimated`, as long as `held_out` stays (the paper chooses it by validation: the least error among the most invariant).

| place | choice | paper and released code | `iom` | `iom/exact` |
|---|---|---|---|---|
| tasks | data without the best designs | Design-Bench | `Controllers`, or a file | `Designs`: one of three functions on a hidden subspace |
| model | phi, and f on top of it | networks of 2048, phi of length 1 | to 64 features by 128 units, length 1; 128 units | to 16 features by 64 units; 64 units |
| model | d | a discriminator (least squares, Adam 1e-3 and 0.5), or means in an earlier version | the discriminator; `model.distance=means` | means |
| model | lambda | by validation | 1 | 10, on seeds 0 to 2 of one world |
| model | x' | 50 steps from the batch; a later version: one step an update of a set that is kept | 10 steps from the batch | 10 steps |
| climb | gradient ascent from the 128 best of the data | 50 steps of 0.05 sqrt(D) | the same | 50 steps, the best length of six |
| measure | best of 128, normalised by the whole pool | the same | the same | the same |

Deviations: lambda is fixed. x' starts from the batch. The proof is a gradient: with linear features the penalty and its
slope have closed forms, and a lambda that outweighs the fit makes every prediction the mean of the data.

A look at seed 0, which decides nothing: the median of 128 proposals goes from 0.07 to 0.24, with lambda 0 to
0.30; the best reaches 1.0 with both. Half a minute of processor each.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Data-Driven Offline Decision-Making via Invariant Representation Learning",
    authors="Han Qi, Yi Su, Aviral Kumar, Sergey Levine",
    year=2022,
    arxiv="2211.11349",
    read="notes",
    topics=("design", "offline"),
    systems=(34,),
)
