"""Kimi k1.5: mirror descent on the answers of the policy before. Kimi Team, 2025, arXiv 2501.12599.

The best policy near the last one, pi_i, is pi_i exp(r / tau) / Z. A policy that is it has r - tau log Z = tau log(pi /
pi_i) for every answer, so the squared difference is minimised on samples of pi_i, with the mean reward in place of tau
log Z. No ratio is clipped: the square holds the policy near pi_i however many steps are taken on one batch.

| place | choice | paper (section 2.3) | here |
|---|---|---|---|
| plan | groups of one task | k answers a prompt | 8 answers to each task |
| roll out | sampling | from pi_i, the policy at the start of the iteration | the same |
| score | right or wrong | verifier, and a reward model | 1, 0, and 0.5 for one answer that is good and not right |
| credit | `GroupRelative` | r - mean | the same |
| update | `MirrorDescent` | grad log pi (r - mean) - tau / 2 grad (log pi / pi_i)^2 | the same, tau 0.5 |
| update | steps | many on one batch; the optimiser is reset every iteration | 16, plain gradient |

Deviations: tasks are enumerable (`exact.answers`), the good answer is likely at first, and the right ones are rare. tau is
not in the paper. Partial rollouts, the reward for short answers, curriculum and long-to-short are left out. With
mean(r) for tau log Z the fixed point is not pi_i exp(r / tau): where the mean is small beside it, probabilities move
less (measured in the tests: see arXiv 2602.05933, which calls it a mix of KL and chi-squared).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Kimi k1.5: Scaling Reinforcement Learning with LLMs",
    authors="Kimi Team",
    year=2025,
    arxiv="2501.12599",
    read="notes",
    topics=("reasoning", "credit"),
    systems=(67,),
)
