"""Compute-optimal test-time compute. Snell et al., 2024, arXiv 2408.03314.

No way to spend a budget is best for all tasks. Where a model is often right, its answers agree, and a vote needs no
scorer; where it is rarely right, the vote is wrong, and only a search that a scorer leads finds anything. So difficulty
decides the strategy: it is chosen by level on one half of the tasks and tested on the other, and the other way round. In
one world a prediction of difficulty by this scorer was worth half as much (`by_predicted`), and only where its samples are
free, as they are in the paper: taken out of the same tokens they cost more than the choice was worth (`by_predicted_paid`).

| place | choice | paper | here |
|---|---|---|---|
| tasks | difficulty | quintiles of pass@1, of 2,048 samples or by the scorer | four levels, known |
| policy | steps | PaLM 2-S* on MATH | 3 to 12 steps, right with a known chance |
| score | scorer | a process reward model from roll-outs | the label with unbiased noise, 3 to 12 times as large |
| search | strategies | best of n weighted, beam with M of 4 and sqrt(n), lookahead; revisions | best of n and beams, by score and weighted |
| choice | `ChosenByLevel` | two folds | two folds |
| choice | `ChosenByPrediction` | the verifier's mean score over 2,048 samples, which are not counted | over 512, which are |

`longstride eval compute_optimal` is the same with a language model: votes, a beam and particles of about as many tokens
each, led by how likely the model finds its own words; `Chosen` is the component of both, with the difficulty of the
tasks themselves or, from four answers that are counted, as a guide sees it, and with a budget of tokens a task. With
your own: `longstride eval compute_optimal model=MODEL tasks.type=SOURCE`, and `evaluation.strategies` for what there
is to choose from; `longstride advise RUN` fits curves instead.

A search may go by any scorer that was trained, a head or a judge, as one of these strategies (docs/guides/scorers.md):

    {type="searched", search={type="beam", n=8}, guide={type="asked", scorer={type="taught_probe", model="MODEL"}}}
    {type="searched", search={type="beam", n=8}, guide={type="asked", scorer={type="generative"}, judge="RUN"}}

Deviations: the exact problem has a world instead of a language model; where levels are known nothing is spent on
finding out about them; revisions are `revise`'s, and the comparison with a larger model at equal FLOPs is left out.
Lookahead was tried in that world and was best at no level.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling LLM Test-Time Compute Optimally can be More Effective than Scaling Model Parameters",
    authors="Charlie Snell, Jaehoon Lee, Kelvin Xu, Aviral Kumar",
    year=2024,
    arxiv="2408.03314",
    read="notes",
    topics=("search", "scaling"),
    systems=(40,),
)
