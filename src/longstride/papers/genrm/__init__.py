"""GenRM: a verifier that writes before it judges. Zhang et al., 2024, arXiv 2408.15240.

A verifier that predicts tokens can reason: it goes through a solution line by line, marks what it finds wrong, and
gives its verdict on what it wrote. Rationales are sampled, so several differ, and the mean of their verdicts is a finer
score.

| place | choice | paper (section 3) | here |
|---|---|---|---|
| tasks | `Judgements` | solutions of a model, labelled by their answers | those of `base-puzzles`, or of any model or file |
| data | reasons and verdict | written by a model that sees a reference; kept where the verdict fits the label | its own, sampled anew in each iteration; kept likewise (`FilteredBC`) |
| update | next-token loss | on rationale and verdict | the same |
| beside it | `RightSolutions` | lambda times the loss of right solutions | lambda 0.1 |
| score | `Ranked`, `Generative` | p(yes), mean over K rationales, K = 32 | K = 4 |
| compared | direct GenRM | p(yes) without rationale | `tasks.reasons=false` |
| compared | `RankedBy` | discriminative verifiers | a linear head on hidden states, which learns from the same solutions |
| measure | `chosen` | best of N by the score | best of 8 |

With your own: `longstride train genrm model=MODEL tasks.path=solutions.jsonl`; then `--strategy best_of by.type=scored by.judge=RUN`
(docs/guides/judge.md). The head beside it, on the held-out solutions of RUN:

    longstride eval RUN --strategy longstride.papers.genrm.method:Ranked --strategy longstride.papers.genrm.method:RankedBy \
        scorer.type=taught_probe scorer.model=MODEL scorer.solutions.path=solutions.jsonl

`exact.py` has the mechanism in small: a solution is lines, each of a kind that is right or wrong; a line is seen as a vector of fewer
numbers than there are kinds. One pass ends in one state of that width, the sum over lines; a rationale reads line after line. Both learn with
the same network from the same solutions, of which the verifier has a label for each line and the head one a solution. In one world most of the lead
was in the labels and the lengths: a head that was taught on the lengths it is tested on was level (0.040 behind [-0.018, 0.143]).

Deviations: rationales are the verifier's own, so it learns by rejection and not from a teacher; a start that knows how to go through lines
is needed (`base-judge`, or a model that follows instructions). lambda and K are ours: the paper's lambda could not be checked. The
head is on a frozen model, and no arm: verdicts without reasons are a logistic head of the same state.
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
