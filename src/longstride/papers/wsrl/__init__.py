"""WSRL: online after offline without keeping the offline data. Zhou et al., 2024, arXiv 2412.07762.

Without the offline data, the values collapse at the start of online training: the data that would correct them is gone,
and the new data is not there yet. WSRL pre-trains with Cal-QL, lets the frozen policy collect for a while, and only
then learns on: plain SAC, with many updates per step, on the new data alone. The three phases are the method.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline: Cal-QL's losses | 1M updates in antmaze | 240 updates of four critic steps |
| plan | warm-up: collect, learn nothing | 5,000 steps | 20 episodes, at most 2,000 steps |
| plan | online: no offline data, no conservatism | the same | 8 times 10 episodes |
| value | ensemble, the least of two at random | 10 critics | 4 critics |
| value | `Conservative(calibrated=True)` | 10 actions of each of three sources | 2 of each |
| update | four critic steps per policy step | 1024 in slices of 256, once a step | 128 in 32, 250 after 10 episodes |
| the rest | | | as in `cal_ql` |

Deviations: those of `cal_ql`. Over seeds 20 to 29 it goes online at 0.59 of the test episodes and ends at 0.90; without a
warm-up it ends at 0.81, with the data kept at 0.69. Over the whole of online training, which is what the claim compares,
these differences are within the noise.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Efficient Online Reinforcement Learning Fine-Tuning Need Not Retain Offline Data",
    authors="Zhiyuan Zhou, Andy Peng, Qiyang Li, Sergey Levine, Aviral Kumar",
    year=2024,
    arxiv="2412.07762",
    read="notes",
    topics=("offline", "values"),
    systems=(9,),
)
