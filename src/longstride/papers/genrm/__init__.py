"""GenRM: a verifier that writes before it judges. Zhang et al., 2024, arXiv 2408.15240.

A verifier that predicts tokens can reason: it goes through a solution line by line, marks what it finds wrong, and
gives its verdict on what it wrote. Rationales are sampled, so several differ, and the mean of their verdicts is a finer
score.

| place | choice | paper (section 3) | here |
|---|---|---|---|
| data | `Rationales` | written by a model that sees a reference; kept where the verdict fits the label | true marks, each wrong in `slip` cases; kept likewise |
| update | next-token loss | on rationale and verdict, beside lambda times that of right solutions | on marks and verdict; no generation |
| score | p(yes), mean over K rationales | K = 32 | the same |
| compared | `HeadVerifier` | a discriminative reward model: cross-entropy of a head at the end | the same network on one state |
| compared | direct GenRM | p(yes) without rationale | is `HeadVerifier`: two verdict tokens are a logistic head of the same state |
| measure | best of N by the score | 16 and more | best of 16 |

A solution is lines, each of a kind that is right or wrong; a wrong solution has one wrong line. A line is seen as a
vector of fewer numbers than there are kinds. One pass ends in one state of that width, the sum over lines; a rationale
reads line after line. That is the whole difference: both learn with the same network, from the same solutions.

Deviations: no language model; verifiers see what a fixed embedding of lines shows. Without a language model there is no
unified loss of verifying and generating.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Generative Verifiers: Reward Modeling as Next-Token Prediction",
    authors="Lunjun Zhang, Arian Hosseini, Hritik Bansal, Mehran Kazemi, Aviral Kumar, Rishabh Agarwal",
    year=2024,
    arxiv="2408.15240",
    read="abstract",
    topics=("judges", "search"),
    systems=(39,),
)
