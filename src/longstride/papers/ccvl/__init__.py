"""CCVL: values for every degree of confidence, and the degree chosen while acting. Hong et al., 2022, arXiv 2212.04607.

How pessimistic values of offline data should be depends on the data, and a fixed degree suits some data only. CCVL
learns values for all degrees at once: Q(s, a, delta) is to lie below the true value with probability 1 - delta,

    Q(s, a, d) = max over d1, d2 <= d of  r(s, a) - alpha sqrt(log(1 / d1) / n(s, a)) + gamma E max_a' Q(s', a', d2)

and acting keeps a belief over delta: an episode draws one, acts greedily in its values, and every transition lowers the
belief in each delta by its squared error  Q(s, a, d) - r - gamma max_a' Q(s', a', d).

| place | choice | paper | here |
|---|---|---|---|
| problem | data | a gridworld; 1 % and 5 % of Atari's | two random worlds of 20 states: noisy, calm |
| value | counts n(s, a) | pseudo-counts of learned features | exact |
| value | delta | continuous, cosine embedding | seven values from 1e-5 to 1 |
| value | what enforces the bound | the backup above, or CQL's term weighted alike | the backup |
| test | episodes | belief updated inside an episode | 20 episodes of 20 steps, belief kept |
| test | temperature of the belief | | 2 * 3^2, on seeds 0 to 7 |

Deviations: backup and belief are from secondary accounts of the paper (its body was not readable here), so the belief's
form may differ from the original. In the noisy world the data are mostly an expert's, so pessimism pays (seeds 0 to 7:
0.73 at 1e-5, 0.14 at 1); in the calm one they are anyone's, and trust pays (0.37 and 0.77). No method is told which is
which. The best fixed degree over both was 1e-5, which the claim compares with; its gap was 0.15, its deviation 0.11.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Confidence-Conditioned Value Functions for Offline Reinforcement Learning",
    authors="Joey Hong, Aviral Kumar, Sergey Levine",
    year=2022,
    arxiv="2212.04607",
    read="notes",
    topics=("offline", "values"),
    systems=(35,),
)
