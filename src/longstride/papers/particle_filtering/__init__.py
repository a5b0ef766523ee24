"""Particle filtering at test time. Puri et al., 2025, arXiv 2502.01618.

Beam search takes the scorer at its word: what ranks low is gone, also where scores hardly differ. Particles are drawn
in proportion to the odds of their scores, so nothing is lost where the scorer says nothing, and much where it is sure.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | Qwen2.5-Math and Llama-3 by lines of their solutions | 12 steps, right with a known chance |
| score | scorer | a process reward model, after every step | sees clearly at every fourth step |
| search | `Particles` | weights are the odds of the newest score, drawn after every step | the same, systematic draws |
| search | `Beam` | n / M kept, M = 4 | M of 2 and 4: both were tried, 4 is the better one where worlds are drawn |
| answer | by score | the highest | the same, everywhere |

All searches make 16 continuations a step, so they spend the same tokens. Between two looks scores are nearly equal; a beam
keeps the highest all the same, so after a few steps all of its partials may descend from one. Where worlds are drawn the claim is
not reproduced: who is ahead depends on the world.

`longstride eval particle_filtering model=MODEL tasks.type=SOURCE` is the same with a language model (`base-puzzles` if
left out), on steps of thoughts that end at `mark`; `longstride eval MODEL --strategy particles n=16` is one search. Its
scorer is how likely the model finds its own words, or what `--guide` says: a judge that was trained, a probe. A look
(seed 901, 60 chains): a beam solves 0.85 for 256 tokens, 16 particles 0.80 for 307, a vote of eight 0.37 for 139, one
answer 0.33 for 17.

Deviations: the exact problem has a world instead of a language model; the noise of its scorer is unbiased, and the
scorer knows how well it sees. Its library, its_hub 1.2.0, was read as code.
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
