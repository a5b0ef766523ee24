"""TTI in a real browser: MiniWoB++ tasks where what is asked for lies in a tab or a section that has to be opened first.

Shen et al., 2025, arXiv 2506.07976, on tasks of Liu et al., 2018, arXiv 1802.08802 (MiniWoB++). Everything is as in `tti`; tasks and
the policy that it starts from are others. The start clicks on some link of the first tab or section that it sees too often; to find
the right one it has to look on.

| place | choice | here |
|---|---|---|
| plan | `click-tab-2`, `click-collapsible-2` | 8 iterations of 128 episodes; seeds of evaluation are never trained on |
| plan | `Multiplicative` | clip(3 i, 9) turns; tests at 9 |
| roll out | Chromium, four episodes at once | a problem restarts inside its page |
| score | the page's own reward | 1 where it is positive; a wrong click ends the episode |
| start | `base-miniwob` | `longstride make-base demonstrators.type=miniwob_tasks ...`, as written in models/README.md |
"""

from longstride.curriculum import Fixed, Multiplicative
from longstride.envs.web.miniwob import Miniwob
from longstride.recipes import tti
from longstride.training.recipe import Evaluation

RECIPE = tti.RECIPE.model_copy(
    update={
        "name": "tti_miniwob",
        "iterations": 8,
        "episodes": 128,
        "model": "base-miniwob",
        "tasks": Miniwob(names=("click-tab-2", "click-collapsible-2")),
        "horizon": Multiplicative(start=3, limit=9),
        "test_horizon": Fixed(limit=9),
        "evaluation": Evaluation(tasks=100, every=2, baselines=False),
    }
)
