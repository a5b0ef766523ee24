"""Verifier-based over verifier-free: what cloned traces cannot say. Setlur et al., 2025, arXiv 2502.12118.

A base model solves a problem in several styles, some of which take long. Who clones its right traces clones all styles
that end in time: with a larger budget, slower ones too. Who knows the reward of each trace can keep to what is fast. So
the gap in reward grows with the budget and with the data, if styles differ.

| place | choice | paper | here |
|---|---|---|---|
| reward | bi-level | 0 until a trace is right, 1 a step from then on | the same: steps that are left, of the budget H |
| verifier-free | `ClonedTraces` | fine-tuning on n right traces | the likeliest distribution of styles of n right traces, by kind of prompt |
| verifier-based | `Verified` | n rewards of the base's own traces; the policy that is best at the worst reward they allow | means by kind and style, less a bound; the style with the most |
| base | heterogeneity | deviation of the reward given the prompt | styles of six speeds, as likely; which is which depends on the kind of prompt |
| budget | H | tokens of a trace, in the data and at test time | 16, 64 and 256 |

A style makes one of `needed` steps towards the answer at each token with its own probability, so the time to the answer
is a sum of geometric ones, and every reward is exact.

Deviations: a table over kinds of prompts and styles instead of a language model. The worst reward of a confidence set
is the mean less `bound` over the root of the number of traces. The theorems (a gap of the order of the root of H where
data grow with it) are not tested, only that the gap grows. It grows in steps, which is the paper's reward; as a share
of the budget it is largest at 64.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling Test-Time Compute Without Verification or RL is Suboptimal",
    authors="Amrith Setlur, Nived Rajaraman, Sergey Levine, Aviral Kumar",
    year=2025,
    arxiv="2502.12118",
    read="abstract",
    topics=("search", "scaling", "cloning"),
    systems=(6,),
)
