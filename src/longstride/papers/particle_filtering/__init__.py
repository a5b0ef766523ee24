"""Particle filtering at test time. Puri et al., 2025, arXiv 2502.01618.

Beam search takes the scorer at its word: what ranks low is gone, also where scores hardly differ. Particles are drawn
in proportion to the odds of their scores, so nothing is lost where the scorer says nothing, and much where it is sure.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | Qwen2.5-Math and Llama-3 by lines of their solutions | 12 steps, right with a known chance |
| score | scorer | a process reward model, after every step | sees clearly at every fourth step |
| search | `Particles` | weights are the odds of the newest score, drawn after every step | the same, systematic draws |
| search | `Beam` | n / M kept, M = 4 | M of 2 and 4: both were tried, 2 is the better one |
| answer | by score | the highest | the same, everywhere |

All searches make 16 continuations a step, so they spend the same tokens. The steps between two looks are where a beam
loses: their scores are nearly equal, it keeps the highest all the same, and after a few steps all of its partials
descend from one. Without noise both solve all tasks. That a beam keeps as many partials as ever, also those that it
knows to be wrong, costs it success then only where right steps are rare (`hard`).

`longstride eval particle_filtering model=MODEL tasks.type=SOURCE` is the same with a language model (`base-puzzles` if
left out), on steps of thoughts that end at `mark`; `longstride eval MODEL --strategy particles n=16` is one search. Its
scorer is how likely the model finds its own words, or what `--guide` says: a judge that was trained, a probe. A look
(seed 901, 60 chains): a beam solves 0.85 for 256 tokens, 16 particles 0.80 for 307, a vote of eight 0.37 for 139, one
answer 0.33 for 17.

Deviations: the exact problem has a world instead of a language model; the noise of its scorer is unbiased, and the
scorer knows how well it sees. `even` is the other case, a scorer that sees equally badly at all steps: there the claim
does not say who is ahead, and a beam is not behind. Its library, its_hub 1.2.0, was read as code.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="A Probabilistic Inference Approach to Inference-Time Scaling of LLMs using Particle-Based Monte Carlo "
    "Methods",
    authors="Isha Puri, Shivchander Sudalairaj, Guangxuan Xu, Kai Xu, Akash Srivastava",
    year=2025,
    arxiv="2502.01618",
    read="notes",
    topics=("search",),
    systems=(72,),
)
