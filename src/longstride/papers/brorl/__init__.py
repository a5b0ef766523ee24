"""BroRL: hundreds of rollouts a prompt. Hu et al., 2025, arXiv 2510.01180.

An update raises what was sampled and right and lowers what was sampled and wrong; both raise the mass of right tokens.
What was *not* sampled moves with the normaliser: where the sampled tokens are right on the whole, likely right tokens
that were missed lose more than sampled ones gain. With enough rollouts nothing likely is missed.

| place | choice | paper (ProRL's 1.5B model; the analysis is section 3) | here |
|---|---|---|---|
| plan | rollouts a prompt | 512 for 16, larger batches, rate by the square root | 512 for 16, the same step on logits |
| score | right or wrong | R_c for right, R_w for wrong ones | 1 and -1 |
| update | `MassBalance` | one step on logits, first order: the mass balance equation | the same, repeated |
| measure | `rises` | sign of the change of the mass of right tokens | share of updates after which it was larger |

The equation, with A and B the sampled right and wrong tokens, U the unsampled ones, x_2 the sum of squared
probabilities over x, Q the mass of all right or wrong tokens, and S_R = R_c P(A) + R_w P(B):

    dQ_right = (eta / N) [(R_c - S_R) Q_wrong A_2 + (S_R - R_w) Q_right B_2
                          + S_R (Q_right U_wrong2 - Q_wrong U_right2)]

Deviations: one prompt, one token and thousands of arms of which one right one is likely, as in the paper's simulation;
eta / N is held fixed, so that arms differ in what is sampled and not in the length of a step. That a saturated language
model improves again is not shown. The update that has this equation is gradient ascent on the logits for the sum of
R_i p_i over *distinct* sampled tokens; the equation is its first order in eta (tested).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="BroRL: Scaling Reinforcement Learning via Broadened Exploration",
    authors="Jian Hu, Mingjie Liu, Ximing Lu, Fang Wu, Zaid Harchaoui, Shizhe Diao, Yejin Choi, Pavlo Molchanov, Jun "
    "Yang, Jan Kautz, Yi Dong",
    year=2025,
    arxiv="2510.01180",
    read="notes",
    topics=("reasoning", "scaling"),
    systems=(82,),
)
