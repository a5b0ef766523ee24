"""CCVL: values for every degree of confidence, and the degree chosen while acting. Hong et al., 2022, arXiv 2212.04607.

How pessimistic values of offline data should be depends on the data, and a fixed degree suits some data only. CCVL
learns values for all degrees at once: Q(s, a, delta) is to lie below the true value with probability 1 - delta,

    Q(s, a, d) = max over d1, d2 <= d of  r(s, a) - alpha sqrt(log(1 / d1) / n(s, a)) + gamma E max_a' Q(s', a', d2)

and acting keeps a belief over delta, from which each step draws one and acts greedily in its values; every transition
lowers the belief in each delta by its squared error  Q(s, a, d) - r - gamma max_a' Q(s', a', d).

| place | choice | paper | `ccvl` | `ccvl/exact` |
|---|---|---|---|---|
| problem | data | a gridworld; 1 % and 5 % of Atari's | 30 walks in a maze with discrete actions; `ccvl/recorded`: files | two random worlds of 20 states: noisy, calm |
| value | counts n | pseudo-counts of learned features | pseudo-counts of random features, of states | exact, of states and actions |
| value | delta | continuous, cosine embedding | continuous, 8 drawn for a batch, 16 cosines beside the state | seven values from 1e-5 to 1 |
| value | what enforces the bound | the backup above, or CQL's term weighted alike | CQL's term (`ConfidenceQ`), a double DQN | the backup |
| test | belief | over deltas, updated inside an episode | the same, over eight (`ConfidenceBelief`) | an episode draws one, belief kept over 20 episodes |
| test | temperature of the belief | | 2 * 1^2, as it came | 2 * 3^2, on seeds 0 to 7 |

`ccvl` acts: what an episode has earned so far reaches the policy (`Extraction.adapts`), which begins every episode
without a belief. Its own data: `ccvl/recorded`. With `agent.levels.0.extraction.deltas=[0.1]` it is a conservative method of one degree, on
the same values.

One look that decides nothing (seed 900, 750 updates, 100 test episodes of 20 actions): success 0.63 with the belief over eight deltas; with
one of them 0.68 to 0.70 at 0.01 and below, 0.61 at 0.25, 0.08 at 1. So adapting avoided the bad degrees and did not beat the good ones there.
How long an action is held, and the discount, were chosen on that seed: with the first choice a plain double DQN had learned nothing.

Deviations: backup, loss and belief are from secondary accounts of the paper (its body was not readable here, and no code was found), so the belief's
form may differ from the original. Actions are discrete, as in the paper. In the exact problem's noisy world the data are mostly an expert's, so pessimism pays (seeds 0 to 7:
0.73 at 1e-5, 0.14 at 1); in the calm one they are anyone's, and trust pays (0.37 and 0.77). No method is told which is
which. The best fixed degree over both was 1e-5, which a first claim compared with (+0.166). Where
noise, number of data and share of the expert are drawn, and the scale of the bound is each one's best, hardly anything of that is left (+0.020).
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
