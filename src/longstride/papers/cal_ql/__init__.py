"""Cal-QL: calibrated values for fine-tuning online. Nakamoto et al., 2023, arXiv 2303.05479.

CQL's values are far too low where offline training stops, so the first steps online look like a discovery and what was
learned is lost. Cal-QL is CQL with one change: in CQL's gap, for the actions of the policy,

    max(Q(s, a), return of the data from s)

takes the place of Q(s, a), so that no value is lowered below that return. Values stay on the scale of returns, and
online training costs no success at its start. The change is `calibrate` in `control.conservative`, which WSRL uses too.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline, then online | 1M updates in antmaze, then online | 600 updates, then 8 times 10 episodes |
| plan | online on what is tested | the same start and goal | the five test tasks |
| value | `Conservative(calibrated=True)` | the policy's actions alone are calibrated | the same |
| value | return to go | of the data's episodes; failures: r / (1 - gamma) | the same |
| update | online: half of a batch is offline data | one update a step | 250 updates after 10 episodes |
| the rest | | as in `cql` | as in `cql`; Adam 3e-4, U-maze, 20 walks |

Deviations: those of `cql`; updates come after complete episodes, since a return is known only at the end. At this size
CQL's values do end further below the returns, but they lose nothing online, so its claim stands undecided.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Cal-QL: Calibrated Offline RL Pre-Training for Efficient Online Fine-Tuning",
    authors="Mitsuhiko Nakamoto, Yuexiang Zhai, Anikait Singh, Max Sobol Mark, Yi Ma, Chelsea Finn, Aviral Kumar, Sergey "
    "Levine",
    year=2023,
    arxiv="2303.05479",
    read="notes",
    topics=("offline", "values"),
    systems=(21,),
)
