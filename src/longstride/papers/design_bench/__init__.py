"""Design-Bench's protocol, and COMs as its method. Trabucco, Geng, Kumar and Levine, 2022, arXiv 2202.08450.

Methods of offline design are compared like this: the data are the worst designs of a pool; a method proposes 128; they
are valued by the true function, and the best of them (and the median) is reported, normalised so that 0 and 1 are the
worst and the best of the *whole* pool. Above 1 is better than all that was ever made. COMs (arXiv 2107.06882) is the
conservative method that the benchmark brings, gradient ascent (`model.type=least_squares`) the baseline.

`longstride train design_bench` proposes controllers of CartPole, `design_bench/recorded tasks.data=FILE` designs of the
user's own: numbers or choices with scores, as npz or csv (`longstride.design.data`). They are valued by an oracle of the
user's own (`tasks.oracle.type=mine:Strength`, a class with `score`), or by a network that is fitted to the whole file, of which
the model sees the worst share `tasks.kept`; the proposals are in `designs.csv` or `designs.npz` of the run folder.

| place | choice | paper and released code | `design_bench` | `design_bench/exact` |
|---|---|---|---|---|
| tasks | designs | 4 discrete, 4 continuous, up to 5,126 numbers | 10 weights of a linear controller | three known functions of 8 to 32 numbers |
| tasks | data | designs below a percentile of a pool | the worst 90 % of 1,000 that were drawn | the worst 40 to 80 % of 500 to 2,000 |
| tasks | worth | simulators, or forests fitted to all data | mean return of 3 episodes; of a file: an oracle, or a network | the function |
| model | COMs: x' of equation 2 | 50 steps of 0.05 sqrt(D) | 10 steps | 10 steps |
| model | COMs: dual of alpha | Adam 0.01, from 1 or 0.1; limit 0.5 (choices: 2) | Adam 0.01, from 1; 0.5 | signed steps of 0.05, 0.5 |
| model | network, training | 2 of 2048, 50 epochs, batch 128, 3e-4 | 2 of 128, 50 epochs, 128, 1e-3 (a file: 3e-4) | 2 of 64, 300 updates, 128 |
| climb | from the 128 best of the data | 50 steps of 0.05 sqrt(D) (choices: 2) | the same | 50 steps, the best length of six |
| measure | best and median of 128, normalised | the same, 8 seeds | the same | the same, 24 drawn worlds |

Deviations: the benchmark's data need a download, so its tasks are replaced and its numbers are not comparable; they can be
brought as npz (`x`, `y`). Choices are standardised entries, of which the benchmark's logits are an affine map. Its other
baselines (CMA-ES, CbAS, REINFORCE, ...) are left out, and so is the validation of 500 designs by which nothing is chosen.

A look at seed 0, which decides nothing: the median of 128 proposals goes from 0.07 to 0.16 with COMs
and to 0.44 with ascent, which overestimates them by 0.35 (COMs by -0.13); the best reaches 0.96 and 0.97. So here
conservatism costs: good controllers lie where ascent goes. 1.5 minutes each on a busy core.
In one world of 16 numbers, with the paper's step, on seeds 0 to 2, ascent reaches -1.7, 0.15 and 0.96 of the normalised scale on Ackley's function, the
bowl and the valley, COMs 0.74, 0.87 and 0.99; where the data hold the optimum (4 dimensions, all of which decide, nothing
hidden) both reach 1.0.
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
