"""TTI: test-time interaction scaling. Shen et al., 2025, "Thinking vs. Doing", arXiv 2506.07976.

Online filtered behaviour cloning in which the turns an episode may take grow with the iteration. A short horizon
teaches to be right quickly and cannot explore; a long one from the start clones successes full of arbitrary actions;
growing it gives both.

| place | choice | paper and released code (WebVoyager) | here |
|---|---|---|---|
| plan | tasks uniform with replacement | 15 iterations of 512 episodes | 10 of 256: minutes on two cores |
| plan | `Multiplicative` | h = clip(10 i, 30), released as 10, 20, 20, 30; tests at 30 | clip(8 i, 24); tests at 24 |
| roll out | `KeepAll` | placeholder for older pages, 3 screenshots kept | all pages stay: 24 of them fit |
| roll out | sampling | temperature 1.0, top-p 0.95 | the same |
| score | `TaskReward` | prompted judge, 88.9 % agreement with people | programmatic, exact |
| credit | `TTIReplay`, `FilteredBC` | 512 successes, half recency and half site balance; 1/|a| per token | the same, 256 successes |
| update | AdamW, warm-up 20, cosine to 2000 steps, weight decay 0.01 | one epoch | the same |
| update | rate, betas, clip, batch | 4e-6, (0.9, 0.999), 0.01, 32 | 5e-4, (0.9, 0.95), 1.0, 64 |

Deviations: a model of about a million parameters on embedded sites stands for Gemma-3-12B on the web, so learning
rate, clipping and batch are a small model's; turns that could not be parsed are not cloned; replay's recency goes by
time, and is drawn once (the release groups by task and draws on every rank); an environment failure is never a reward
of 0.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed, Multiplicative
from longstride.engines.base import Sampling
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.learner.config import LearnerConfig
from longstride.methods import FilteredBC, TTIReplay
from longstride.rewards import TaskReward
from longstride.rollout.context import KeepAll
from longstride.run.recipe import Evaluation, Recipe
from longstride.stats import Ordering

SHORT, LONG = 8, 24
"""Turns: easy tasks are solved within the short horizon, few hard ones are."""

RECIPE = Recipe(
    name="tti",
    iterations=10,
    episodes=256,
    tasks=EmbeddedWeb(),
    horizon=Multiplicative(start=SHORT, limit=LONG),
    test_horizon=Fixed(limit=LONG),
    context=KeepAll(),
    sampling=Sampling(temperature=1.0, top_p=0.95),
    reward=TaskReward(),
    replay=TTIReplay(keep=256, mix=0.5),
    credit=FilteredBC(),
    learner=LearnerConfig(lr=5e-4, warmup_steps=20, decay_steps=2000, batch_samples=64),
    evaluation=Evaluation(every=2),
)

SCALE = ("evaluation.every=5", "evaluation.baselines=false")
"""An arm of a claim is a training run, evaluated less often."""


def fixed(turns: int) -> str:
    """The override for a horizon that stays."""
    return f"horizon={{type='fixed', limit={turns}}}"


def growing(start: int) -> str:
    """The override for a horizon that grows multiplicatively from `start`."""
    return f"horizon={{type='multiplicative', start={start}, limit={LONG}}}"


SHEET = "tasks.sites=['sheet']"
"""The control site: everything is on the first page, so there is nothing to explore."""

CLAIM = Claim(
    name="tti",
    paper="arXiv 2506.07976, section 5 and table 1",
    statement="Growing the horizon multiplicatively beats training at a fixed short and at a fixed long horizon.",
    scale=(*SCALE, "evaluation.tasks=400"),
    arms={
        "multiplicative": (),
        "additive": (f"horizon={{type='additive', start={SHORT}, limit={LONG}, step=1}}",),
        "fixed_short": (fixed(SHORT),),
        "fixed_long": (fixed(LONG),),
        "sheet_multiplicative": (SHEET,),
        "sheet_fixed_short": (SHEET, fixed(SHORT)),
    },
    expected=Ordering(
        relations=(
            "multiplicative > fixed_short by 0.02",
            "multiplicative > fixed_long by 0.02",
            "multiplicative > additive",
        )
    ),
    # everything is on the first page of a sheet: there is nothing to explore, so the longer horizon must not pay
    control=Ordering(relations=("sheet_multiplicative > sheet_fixed_short by 0.05",)),
    check_again="multiplicative",
)
