"""ScaleRL: success by compute is a sigmoid, so half a run predicts its end. Khatri et al., 2025, arXiv 2510.13786.

    success(C) = start + (asymptote - start) / (1 + (midpoint / C)^exponent)

A recipe is judged by its asymptote and by how fast it gets there, before the compute is spent. Points before the
midpoint settle neither.

| place | choice | paper (Llama 3 8B and Scout, math) | here |
|---|---|---|---|
| problem | difficulty | Polaris-53K | 160 problems, chances spread evenly in a normal distribution of their logarithm, and 40 that cannot be solved |
| credit | group-relative | deviation of the batch, 16 rollouts, groups without variance dropped | deviation of the group, 16 rollouts, the same |
| update | policy gradient | CISPO on samples 8 versions old | one step a batch, fresh samples |
| measure | held-out success | mean of 16 rollouts on 1,000 problems | 16 rollouts of every problem |
| fit | `Sigmoid` | without the first 3 % of compute; grid over A and C_mid, then B | without the first 5 %, by variable projection |
| predict | the end from the first half | 100,000 GPU hours from 50,000 | iteration 120 from 60 |

Deviations: answers are enumerable (`exact.sharing`), problems share no parameters, all iterations cost the same, and
none of the recipe's details (PipelineRL, CISPO, precision of logits, no-positive-resampling, interruptions) is there:
which of them move the asymptote is not shown.

Why a sigmoid: a problem of chance p is solved once about 1 / p rollouts were spent on it, so success by the logarithm
of compute is the distribution of the logarithm of difficulty. Where that is bell-shaped, success is S-shaped; a sigmoid
follows its mean over 40 runs to a quarter of a point, and so predicts the mean end to a quarter of a point.

Why a band is too narrow: what a run happens to solve early shifts all that is measured after it, so the errors along a
run are correlated (0.8 from one measurement to the next, 0.5 over five). Taken as independent, the band held the end in
17 of 40 runs; with the correlation that is likeliest (`scaling.noise`) it holds it in four of five (`within`). Half a
run is a few correlation lengths, too few to say how long they are. What a wrong law misses looks like such errors too,
so the power law's band is wide enough to hold every end.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="The Art of Scaling Reinforcement Learning Compute for LLMs",
    authors="Devvrit Khatri, Lovish Madaan, Rishabh Tiwari, Rachit Bansal, Sai Surya Duvvuri, Manzil Zaheer, Inderjit S. "
    "Dhillon, David Brandfonbrener, Rishabh Agarwal",
    year=2025,
    arxiv="2510.13786",
    read="notes",
    topics=("scaling", "reasoning"),
    systems=(62,),
)
