"""CQL (ReDS): a support constraint on CQL by reweighting its data. Singh et al., 2022, arXiv 2211.01052.

CQL keeps a policy as near to its data in one place as in another. Where the data varies more in some places than in others, that
is too near where half of the actions are poor, or too far where all are alike. It would be enough to stay among the actions that
the data has. So half of what CQL lowers are now the actions of a second policy rho, which finds the poor actions of the data,

    gap = (T logsumexp_a(Q(s, a) / T) + E_{a ~ rho} Q(s, a)) / 2 - Q(s, a of the data)
    rho: maximise exp(-A(s, a) / tau) log rho(a | s) over the data,   A(s, a) = Q(s, a) - Q(s, a'), a' drawn from the policy

which takes back from poor actions what the last term gives them, and leaves the good ones of the data alone.

| place | choice | paper and released code | here |
|---|---|---|---|
| data | walks that vary unevenly | antmazes, Atari, manipulation with such data | the U-maze, where many actions in its right half are random |
| value | rho's share of what is lowered | half (abstract: a mixture of the two policies) | the same |
| value | A | mean of the critics at the data's action, least of them at the policy's | the same |
| value | exponent of rho's weights | cut to [-10, 5] | the same |
| value | 1 / tau | 0.0001 to 1, tuned | 1, of values to 10 |
| value | gap of the policy | `Conservative`: 10 actions of each source, weight 1 to 20 | that of `cql` |
| update | Adam of rho | the policy's rate, 3e-4 | that of critics |

Deviations: those of `cql`. The first form of the release takes half of a second log-sum-exp over rho's actions, with importance
weights, and its last one puts them into the first: each of these estimates the integral of exp Q that the policy's own term is
of, whatever rho does. Here stands the expectation under rho, which the abstract's mixture means. What is written of the formulas
follows the code; the paper itself was read as an abstract. `reds/recorded` learns from data of others.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Offline RL With Realistic Datasets: Heteroskedasticity and Support Constraints",
    authors="Anikait Singh, Aviral Kumar, Quan Vuong, Yevgen Chebotar, Sergey Levine",
    year=2022,
    arxiv="2211.01052",
    read="notes",
    topics=("offline", "values"),
    systems=(27,),
)
