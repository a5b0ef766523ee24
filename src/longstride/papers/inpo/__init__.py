"""INPO: self-play on general preferences by one squared loss. Zhang et al., 2024, arXiv 2407.00617.

Online mirror descent against the policy itself finds the equilibrium of preferences with a hold of strength tau on the
reference, but its step needs the chance of every answer to win. INPO gets the same step from pairs that the policy
sampled and a preference labelled, y_w over y_l. It minimises

    (h - 1 / (2 eta))^2,   h = log pi(y_w) / pi(y_l) - (tau / eta) log ref(y_w) / ref(y_l)
                                - (1 - tau / eta) log pi_t(y_w) / pi_t(y_l)

whose minimum over all pairs of pi_t is pi_t^(1 - tau / eta) ref^(tau / eta) exp(P(y > pi_t) / eta), normalised: the step
of mirror descent. h is the margin of `methods.preferences.IPO` against a reference that moves, the geometric mixture of ref and pi_t,
and the loss is `IPO(tau=eta)` itself. Iterated DPO has the same loop, and a loss that takes preferences for those of a
reward.

| place | choice | paper (Llama-3-8B) | here |
|---|---|---|---|
| problem | `Duel` | prompts, a preference model | 12 answers in three kinds that beat each other in turn |
| roll out | pairs of pi_t | best and worst of 8 answers | 512 pairs, one label each, drawn by its chance |
| update | `IPO` to two anchors | tau / eta = 1/3 | tau = 0.1, eta = 1: 1/10 |
| update | steps | 3 iterations of an epoch each | 40 of 50 gradient steps, rate 0.5 |

Held more strongly than suits transitive preferences, iterated DPO settles beside the equilibrium too, with ten times
INPO's gap (`held_dpo` in the claim).

Deviations: a table of logits stands for the model; pairs are drawn as the paper's analysis draws them, not as best and
worst. Constants of the paper are from a summary.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Iterative Nash Policy Optimization: Aligning LLMs with General Preferences via No-Regret Learning",
    authors="Yuheng Zhang, Dian Yu, Baolin Peng, Linfeng Song, Ye Tian, Mingyue Huo, Nan Jiang, Haitao Mi, Dong Yu",
    year=2024,
    arxiv="2407.00617",
    read="notes",
    topics=("preferences",),
    systems=(88,),
)
