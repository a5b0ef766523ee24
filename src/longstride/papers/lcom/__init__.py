"""LCOM: a conservative model, climbed in the latent space of an autoencoder. Qi et al., 2023, arXiv 2310.10056.

Crystals cannot be moved along a gradient: few changes of a crystal give a crystal. So an autoencoder turns designs into
vectors, a model of their values is fitted to the vectors, and the climb goes through these, to be decoded at its end.
Vectors that no design has are overrated like anything that the data do not hold, so the model is trained as COMs is:

    (f(z) - y)^2 + alpha (f(z') - f(z)),   z = encode(x), z' = climb(z)
    |decode(z + noise) - x|^2 + w |z|^2 for the autoencoder

`longstride train lcom` proposes controllers of CartPole, `lcom/recorded tasks.data=FILE` designs of the user's own; files,
oracles and what comes out are those of `design_bench`. `rebuilding` of the `fit` rows says how well designs come back: the
climb is worth no more than that, so raise `model.latent` where it stays high.

| place | choice | paper | `lcom` | `lcom/exact` |
|---|---|---|---|---|
| tasks | designs that a gradient cannot move | crystals of a formula, energy by DFT | `Controllers`, or a file | `Designs`: 3 to 6 of 8 to 32 coordinates decide |
| model | autoencoder | CD-VAE, a graph diffusion model | two networks of 2 layers of 128, latent size 16 | of 64, latent size 8 |
| model | noise and norm of the latents | the variational bound | deviation 0.1, w = 0.001 | the same |
| model | conservative term | COMs | COMs (`design.models`), alpha by its dual | COMs (`exact.designs`) |
| climb | in the latent space | from known structures | 50 steps of 0.05 sqrt(16) from the 128 best of the data | 100 steps, the best length of five |
| measure | best of what is found | share of structures found | best of 128, normalised by the whole pool | the same |

Deviations: no crystals: designs are vectors of numbers or choices, and choices are rebuilt by their squared error;
autoencoder and model are trained together, and the fit gives the encoder no gradient. In one world of the exact problem,
on seeds 0 to 2, after 200 steps of 0.1 sqrt(8): with latents of size 8 the plain climb ends at 0.43 and the conservative one
at 0.90; with size 4, which is all that the designs have, at 0.87 and 0.75, so where no vector is without a design,
conservatism costs. After 10 steps it costs 0.2.

A look at seed 0, which decides nothing: the median of 128 proposals goes from 0.06, which is what designs are
worth that are only encoded and decoded, to 0.17, and without conservatism to 0.25; the best to 0.72 and 0.58.
Half a minute of processor each.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Latent Conservative Objective Models for Data-Driven Crystal Structure Prediction",
    authors="Han Qi, Xinyang Geng, Stefano Rando, Iku Ohama, Aviral Kumar, Sergey Levine",
    year=2023,
    arxiv="2310.10056",
    read="abstract",
    topics=("design", "offline"),
    systems=(41,),
)
