"""TTI on trails of pages, where the goal's distance is one number (see `tti`).

Shen et al. (2025, arXiv 2506.07976) grow the horizon on web sites. Here tasks lie 2 to 21 actions away, nearly half of the start's turns
are wasted, and no page asks for more than copying a name, so that what a horizon does to wandering shows in a minute and a half.

| place | choice | here |
|---|---|---|
| start | `base-dial` | .45 of its turns are wasted; it copies names that it never saw |
| plan | `Dial` | 12 iterations of 256 episodes, distances 2 to 21; held-out names |
| plan | horizon | `GROWING` by 8, 16, 24, 32 turns; `FIXED_SHORT` 8, `FIXED_LONG` 48; tests at 48 |
| roll out | `LatestObservation` | a page says all that is to be known |
| credit | `TTIReplay`, `FilteredBC` | 512 successes; equal weights, idle turns are cloned as they are in the release |

Deviations: those of `tti`.
"""

from longstride.curriculum import Fixed
from longstride.curriculum.schedules import StepList
from longstride.engines.base import Sampling
from longstride.methods import Constant, Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.papers.tti.method import TTIReplay
from longstride.setups import dial
from longstride.setups.dial import LONG, SHORT

GROWING = {"turns": StepList(steps=((4, 8), (8, 16), (10, 24), (11, 32)))}
FIXED_SHORT, FIXED_LONG = {"turns": Fixed(limit=SHORT)}, {"turns": Fixed(limit=LONG)}

RECIPE = dial.recipe(
    "tti/dial",
    credit=FilteredBC(),
    loss=Reinforce(aggregation=Constant()),
    budget=GROWING,
    sampling=Sampling(temperature=1.0, top_p=0.95),
    reward={"evidence": True},
    replay=TTIReplay(keep=512, mix=0.5),
    learner={"lr": 5e-4, "warmup_steps": 20, "decay_steps": 3000, "batch_samples": 64},
)
