"""Nash-MP: the equilibrium of preferences by mirror prox. Tiapkin et al., 2025, arXiv 2505.19731.

Preferences need not come from a reward, so what is looked for is a policy that no other is preferred to: the equilibrium
of a game with itself, with a hold of strength beta on the reference. Mirror descent steps against the policy as it is,
and turns around the equilibrium. Mirror prox first tries the step, and then makes it from the same place against the
policy that the trial led to:

    half = argmin_p  P(policy > p) / beta + KL(p || reference) + KL(p || policy) / eta
    next = the same with P(half > p), and KL to the same policy

Each has a closed form for a table, a mixture in log-probabilities (`proximal`). With eta = 2 beta the divergence from the
equilibrium shrinks by 1 + 2 beta or more in an iteration, which is the paper's rate (1 + 2 beta)^(-N/2) in N queries.

| place | choice | paper | here |
|---|---|---|---|
| problem | `Duel` | a preference model, prompts | 12 answers in three kinds that beat each other in turn |
| update | `NashMP` | both steps in closed form (analysis); inner policy gradient with a moving target (models) | closed form |
| update | eta | 2 beta in the analysis | 2 beta |
| cost | query | the chance to win against a policy, for all answers | the same: two an iteration |
| beside | `MirrorDescentPlay`, `NashMD` | Nash-MD and others | one query an iteration; best rate of ten |

Deviations: win rates are exact, so neither the paper's approximate version with sampled gradients nor its experiment
with a language model is here. The equations were put together from the paper's abstract and a summary, and their rate
is checked: `test_nash_mp.py` holds it to the bound above.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Accelerating Nash Learning from Human Feedback via Mirror Prox",
    authors="Daniil Tiapkin, Daniele Calandriello, Denis Belomestny, Eric Moulines, Alexey Naumov, Kashif Rasul, Michal "
    "Valko, Pierre Menard",
    year=2025,
    arxiv="2505.19731",
    read="notes",
    topics=("preferences",),
    systems=(91,),
)
