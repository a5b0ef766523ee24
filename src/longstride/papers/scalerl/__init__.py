"""ScaleRL: success by compute is a sigmoid, so half a run predicts its end. Khatri et al., 2025, arXiv 2510.13786.

    success(C) = start + (asymptote - start) / (1 + (midpoint / C)^exponent)

A recipe is judged by its asymptote and by how fast it gets there, before the compute is spent. Points before the
midpoint settle neither.

| place | choice | paper (Llama 3 8B and Scout, math) | here |
|---|---|---|---|
| draw | `NoPositiveResampling` | prompts solved in 0.9 of their rollouts are left out for good | the same, of tasks that come again |
| filter | groups without variance | dropped | `MixedGroups` |
| credit | group-relative | (r - mean) / deviation of the batch's r - mean (section 4), 16 rollouts | the same |
| update | `CISPO` | mean by prompt, samples up to 8 versions old, logits in float32 | the same, one pass over fresh samples |
| measure | held-out success | mean of 16 rollouts on 1,000 problems | once on 200 |
| fit | `Sigmoid` | without the first 1,500 of 100,000 GPU hours; grid over A and C_mid, then B | `--since`, by variable projection |
| predict | the end from the first half | 100,000 GPU hours from 50,000 | the second half of 30 iterations from the first |

On your own model and tasks, a run and what its first part says of the rest, beside a power law:

    longstride train scalerl model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 --out runs/sums
    longstride fit runs/sums --law sigmoid --since 2 --until 20 --rival power

The exact problem has 200 problems, of which the seed draws how many cannot be solved, and median and deviation of the
normal distribution in which the logarithms of the other chances are spread evenly; it predicts iteration 120 from 60.

Deviations: PipelineRL and forced interruptions are left out: the curriculum decides by what came before, so nothing is
rolled out ahead. Puzzles are made anew, so that none of them comes again; the exact problem has none of the recipe's
details. Which of them move the asymptote is not shown.

Why a sigmoid: a problem of chance p is solved once about 1 / p rollouts were spent on it, so success by the logarithm
of compute is the distribution of the logarithm of difficulty. Where that is bell-shaped, success is S-shaped; a sigmoid
follows the mean over 40 exact runs to a quarter of a point, and so predicts the mean end to a quarter of a point.

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
