"""TTI in a real browser: a kind of MiniWoB++ tasks that takes several clicks, by a policy that was shown two other tasks.

Shen et al., 2025, arXiv 2506.07976, on tasks of Liu et al., 2018, arXiv 1802.08802 (MiniWoB++). Everything is as in `tti`; tasks and the
policy that it starts from are others. The start was shown how to look for a link behind tabs and in sections that fold; in more tabs and
in a tree of folders it finds its way only partly.

| place | choice | here |
|---|---|---|
| plan | `click-tab-2-hard`, `click-tab`, `navigate-tree` | 16 iterations of 256 episodes; seeds of evaluation are never trained on |
| plan | `Multiplicative` | clip(3 i, 9) turns; tests at 9 |
| roll out | Chromium, four episodes at once | a problem restarts inside its page |
| score | the page's own reward | 1 where it is positive; a wrong click ends the episode |
| update | `TTIReplay` of 512, batch 32, warm-up 10 | an iteration has some hundred successes |
| start | `base-miniwob` | made by `longstride make-base demonstrators.type=miniwob_tasks ...`, as written in models/shipped/README.md |
"""

from longstride.curriculum import Fixed, Multiplicative
from longstride.learner.config import LearnerConfig
from longstride.papers.tti import recipe as tti
from longstride.web.miniwob import Miniwob

RECIPE = tti.RELEASED.replace(
    name="tti/miniwob",
    iterations=16,
    model="base-miniwob",
    tasks=Miniwob(names=("click-tab-2-hard", "click-tab", "navigate-tree")),
    budget={"turns": Multiplicative(start=3, limit=9)},
    test_budget={"turns": Fixed(limit=9)},
    replay=tti.TTIReplay(keep=512, mix=0.5),
    learner=LearnerConfig(lr=5e-4, warmup_steps=10, decay_steps=2000, batch_samples=32),
    evaluation={"tasks": 150, "every": 4, "baselines": False},
)
