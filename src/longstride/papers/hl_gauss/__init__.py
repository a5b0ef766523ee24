"""HL-Gauss: values by classification. Farebrother et al., 2024, arXiv 2403.03950.

A squared error follows every noisy target as far as it is away. HL-Gauss predicts a histogram of the value instead, with
the cross-entropy to a Gaussian around the target, cut into the histogram's bins:

    p_i(y) = (Phi((z_i+1 - y) / s) - Phi((z_i - y) / s)) / (Phi((z_m - y) / s) - Phi((z_1 - y) / s)),   Q = sum_i p_i c_i

so that a target changes the prediction by a bounded amount. Nothing else changes: target and read-out are numbers.

| place | choice | paper | here |
|---|---|---|---|
| problem | noise | on rewards of Atari | a random world of 10 to 40 states, Gaussian noise on rewards |
| problem | data | replay of DQN | 200 to 1,600 transitions of random states and actions |
| value | `HLGauss` | 51 bins on [-10, 10], s = 0.75 bins | 51 bins on [0, 10], s = 0.75 bins |
| value | targets | r + gamma max Q of a target network, clipped to the bins | the same, clipped for both losses |
| value | target network | DQN's | every 10 updates |
| update | Adam, network | DQN's and larger ones | the best rate of seven, two layers of 64 units on 8 features of a state |
| measure | what is compared | score | error of the values; value of the greedy policy |

That is `hl_gauss/exact`. Others act, in an environment of Gymnasium (`tasks.id`) or on recorded data: `hl_gauss` is an
actor-critic, `hl_gauss/discrete` a double DQN, `hl_gauss/recorded` CQL. Any critic of control takes the head:
`agent.levels.0.critic.head.type=hl_gauss`, with `low` and `high` where the returns end. `hl_gauss/noise` has the claim of what
acts: with noisy rewards classification learns better to swing a pole up, and the more so the noisier they are.

Deviations: a table of states stands for Atari, where the best values are known, and small networks act in small
environments, so that what the paper says of scale is not shown. In one world, on seeds 0 to 7, noise 1, the error is 0.47,
that of a squared error 0.94, and 2.02 where its targets are not clamped; the greedy policies are worth the same (0.48, 0.48
and 0.51 of the best), so what the paper shows of scores is not shown there, only of values. Most of that was when training
stopped: three times as long the lead was 0.14, and at a third of the rate, or with 3,200 transitions, the squared error led by
0.92 and 0.66. So the claim tunes the rate of both, down to where hardly anything is learned.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Stop Regressing: Training Value Functions via Classification for Scalable Deep RL",
    authors="Jesse Farebrother, Jordi Orbay, Quan Vuong, Adrien Ali Taïga, Yevgen Chebotar, Ted Xiao, Alex Irpan, Sergey "
    "Levine, Pablo Samuel Castro, Aleksandra Faust, Aviral Kumar, Rishabh Agarwal",
    year=2024,
    arxiv="2403.03950",
    read="abstract",
    topics=("values", "scaling"),
    systems=(51,),
)
