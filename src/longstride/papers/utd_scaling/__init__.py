"""Predictable scaling of value-based RL: data to a threshold by updates each. Rybkin et al., 2025, arXiv 2502.04327.

With sigma updates to each transition, the transitions until a threshold J is reached follow

    D_J(sigma) = D_min + (sigma / beta)^-alpha

Updates buy data, down to what no update can make up for: D_min, what has to be seen. So a few small ratios predict a
large one, and the ratio that is cheapest at given prices of data and compute (`scaling.cheapest`).

| place | choice | paper (SAC, BRO, PQL; DMC, Gym, IsaacGym) | here |
|---|---|---|---|
| problem | threshold J | a return | values off by at most 0.14 to 0.4 of the largest |
| plan | data | on-policy actor, replay of all | random walks on a chain of 5 to 12 states, replay of all |
| update | sigma a transition | batches, learning rate and batch size fitted by sigma | one replayed transition, rate 0.1 to 0.4 |
| fit | `Power`, sigma from 1 to 16 | grid and L-BFGS | by variable projection, the best weight on large sigma |
| predict | sigma = 64 | ratios that were held out | the same |

That is `utd_scaling/exact`. `utd_scaling` acts: an actor-critic in an environment of your own, whose updates to a step, batch
and rate are swept, and `longstride fit --reach` fits the three laws to what the runs came to: data to a return by updates to a
step, at the best batch and rate of each, and the best batch and the best rate by updates to a step, which the paper has as
powers (in its released tables about -0.31 and -0.29 for Gym, -0.49 and -0.32 for DMC). `utd_scaling/batches` has
the claim of what acts: the more updates to a step, the smaller the best batch.

Deviations: the law is read from the paper's released analysis; a table learns by Q-learning, so nothing overfits and no
plasticity is lost; rate and batch are fixed, so their laws in sigma are not shown in the exact problem; the measured curve is the mean over
the streams so far, one an iteration. Of runs, what a level costs is the mean over seeds, read between evaluations; the paper
smooths returns and bootstraps the best settings, and it shares the slopes of batch and rate among tasks.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Value-Based Deep RL Scales Predictably",
    authors="Oleh Rybkin, Michal Nauman, Preston Fu, Charlie Snell, Pieter Abbeel, Sergey Levine, Aviral Kumar",
    year=2025,
    arxiv="2502.04327",
    read="notes",
    topics=("scaling", "values"),
    systems=(7,),
)
