"""Design-Bench's protocol, and COMs as its method. Trabucco, Geng, Kumar and Levine, 2022, arXiv 2202.08450.

Methods of offline design are compared like this: the data are the worst designs of a pool; a method proposes 128; they
are valued by the true function, and the best of them (and the median) is reported, normalised so that 0 and 1 are the
worst and the best of the *whole* pool. Above 1 is better than all that was ever made. COMs (arXiv 2107.06882) is the
conservative method that the benchmark brings, gradient ascent the baseline that it is compared with.

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | tasks | 4 discrete, 4 continuous, up to 5,126 dimensions | three known functions of 16 dimensions, `Designs` |
| problem | data | designs below a percentile of a pool | the worst 60 % of 1,000 |
| model | COMs: x' of equation 2 | 50 steps of 0.05 sqrt(D) | 10 steps |
| model | COMs: dual of alpha | Adam, limit 0.5 (some tasks: -2) | signed steps of 0.05, limit 0.5 |
| model | network, training | 2 of 2048, 50 epochs, batch 128 | 2 of 64, 400 updates, batch 128 |
| climb | from the 128 best of the data | 50 steps of 0.05 sqrt(D) | the same |
| measure | best and median of 128, normalised | the same, 8 seeds | the same, 30 seeds |

Deviations: the benchmark's data need a download, so its functions are replaced and its numbers are not comparable; its
other baselines (CMA-ES, CbAS, REINFORCE, ...) are left out. On seeds 0 to 2 ascent reaches -1.7, 0.15 and 0.96 of the
normalised scale on Ackley's function, the bowl and the valley, COMs 0.74, 0.87 and 0.99; where the data hold the optimum
(4 dimensions, all of which decide, nothing hidden) both reach 1.0.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Design-Bench: Benchmarks for Data-Driven Offline Model-Based Optimization",
    authors="Brandon Trabucco, Xinyang Geng, Aviral Kumar, Sergey Levine",
    year=2022,
    arxiv="2202.08450",
    read="notes",
    topics=("design", "offline"),
    systems=(48,),
)
