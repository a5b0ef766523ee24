"""TTI's regimes: what `tti_map/exact` predicts of a growing and of a long horizon, tried with the language model (see `tti`).

`tti_map/exact` says that growing the horizon beats a fixed long one (Shen et al., arXiv 2506.07976, section 5) where waste amplifies itself by
being cloned, that a judge who pays guesses turns the order round, and that otherwise the two are level. Five regimes, each with one thing
turned, and in each the two horizons; what is compared is success that rests on pages that were seen.

| regime | what is turned | predicted by `tti_map/exact`, growing minus long |
|---|---|---|
| wander | nothing: the wandering start, a judge that asks for evidence, equal weights of tokens | level: +.03 |
| impatient | the start: `base`, which gives up too early and hardly wanders | level: -.02 |
| favour | the weights: 1/|a|, which favours short actions | growing wins: +.06 |
| guesses | the judge: right guesses are paid | long wins: -.13 |
| links | the pages: two links to other items at the end of each, which sometimes lead on | growing wins a little: +.03 |

Turns that moved nothing are cloned like others here (`tti` leaves them out), for that is what the regimes are about. Evaluation is the
same everywhere: new tasks of the training templates, horizon 24.

Found (three seeds): undecided. Growing minus long is +.05, -.00, +.04, -.00 and +.02 in the order of the table; at equal environment steps
+.06 [.03, .09] where short actions are favoured. Paid guesses did not favour the long horizon. Intervals of .1 to .3 are too wide for
differences of this size: some twenty seeds would be needed.

Deviations: runs of seconds, a tenth of those of `tti`.
"""

from longstride.papers.card import Study

CARD = Study(title="TTI's regimes: what the map predicts, tried with a language model", topics=("agents", "horizon"))
