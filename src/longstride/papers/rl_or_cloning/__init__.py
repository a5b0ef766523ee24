"""When to prefer offline RL to behavioural cloning. Kumar, Hong, Singh and Levine, 2022, arXiv 2204.05618.

Cloning does what the expert did, and is lost in states where he was not seen: a slip leads there, and with a long
horizon slips are many. Data of a *noisy* expert holds the states beside his path too, with the way back. Cloning copies
the noise; values tell it apart from what was good, as long as noise is forgiven: in most states any action will do, and
only critical ones have a single right action. So with a long horizon and few critical states, pessimistic values from
noisy data beat cloning of the expert himself. Where every state is critical, noisy walks end early, and they do not.

The values are those of pessimistic value iteration in the model that the data counts, with a penalty b / sqrt(n) (VI-LCB,
as in the paper's analysis), at least 0, and 0 for what was never tried:

    Q(s, a) = max(0, r(s, a) + sum_s' n(s, a, s') / n(s, a) V(s') - b / sqrt(n(s, a))),   V(s) = max_a Q(s, a)

| place | choice | paper | here |
|---|---|---|---|
| problem | `Lanes` | gridworlds, robots, Atari, sparse rewards | 25 to 100 columns of 3 to 9 lanes, 3 to 30 % of cells critical |
| data | walks of an expert | with and without noise, as many of both | 8 to 48; noise: one to four actions in ten are random |
| value | `Pessimistic` | VI-LCB (analysis), CQL (experiments) | VI-LCB, penalty 0.01 |
| beside | `ExpertCloning` | BC | shares of actions; unseen states: random, or as near lanes do, for both |

That is the exact problem. `rl_or_cloning` acts: CQL on walks of a noisy expert in mazes, beside cloning of as many walks without
noise. `rl_or_cloning/recorded` and `rl_or_cloning/cloned` are the two sides on a file of your own.

The claim, frozen before its sixteen seeds ran, is open: in large mazes CQL on a noisy expert's walks ends with .35 success and cloning of the expert
with .16 (+.19, from .08 to .30; .2 was asked for), but in medium ones with .43 and .69, and in the U-maze both with .98. So it is not the longer the
way the better.

Deviations: in the exact problem tables, and a penalty that is smaller than a proof needs; the expert is optimal everywhere, and where
any action will do he goes to the middle lane. In mazes walls forgive most errors, and no cell is critical.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="When Should We Prefer Offline Reinforcement Learning Over Behavioral Cloning?",
    authors="Aviral Kumar, Joey Hong, Anikait Singh, Sergey Levine",
    year=2022,
    arxiv="2204.05618",
    read="abstract",
    topics=("offline", "cloning", "horizon"),
    systems=(23,),
)
