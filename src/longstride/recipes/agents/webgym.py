"""WebGym: short horizons in training, longer ones at the test. Bai et al., 2026, arXiv 2601.02439.

With many real tasks the plainest method goes far: play, keep what succeeded, imitate it. What WebGym adds is what is kept.
Tasks get few turns, by difficulty: a success that took a detour is none, and is not imitated; the test allows more. Turns
that changed nothing on the page are left out. And what is imitated is recent, of the last four iterations.

| place | choice | paper and released code (Qwen3-VL-8B) | here |
|---|---|---|---|
| plan | tasks, uniform | 292,000 with rubrics; difficulty is the number of facts | embedded sites; 256 an iteration |
| plan | `PerDifficulty` | 10, 20, 30 turns; tests at 30, 50, 70 | 6, 10, 16; tests at 24 |
| roll out | context, sampling | 4 rounds of images and a memory; temperature 1, top-p 0.99, top-k 2 | all pages; temperature 1 |
| score | `TaskReward` | rubric, judged from screenshots, with a check of the answer's evidence | exact; the pages must have been seen |
| credit | `RecentSuccesses` | 1,800 turns of the last 4 iterations, p ~ (k + 1)^2 | 256 episodes of these |
| credit | `FilteredBC(drop_unchanged=True)` | turns whose screenshot equals the next are left out | turns after which the page looks the same |
| update | epochs, rate | 2, 1e-6, batch 12 a device | 2, 5e-4, 64 |

Deviations: episodes are drawn instead of turns, so that a trajectory is imitated whole; a model of about a million
parameters on embedded sites, so horizons, rate and batch are its. The asynchronous rollout is the pool (`rollout.pool`), in
no recipe. `webgym_walk` computes what the horizon does. On seed 0 short horizons gain 0.023 over long ones. Differences
of such runs scatter by some 0.05 between seeds (`asyncwebrl`), so it was expected that three seeds tell 0.08 from the
margin, and that to tell 0.023 from nothing takes some 40.
"""

import heapq
import random
from collections.abc import Sequence

from longstride.claims.claim import Claim
from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.trajectory import EpisodeRecord
from longstride.curriculum import Fixed
from longstride.curriculum.stages import PerDifficulty
from longstride.learner.config import LearnerConfig
from longstride.methods import Reinforce, Replay
from longstride.methods.cloning import FilteredBC
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import LONG, SHEET
from longstride.stats import Ordering


class RecentSuccesses(Replay):
    """Successes of the last iterations, drawn without replacement with probabilities ~ (k + 1)^2, k = 0, 1, ... being the
    position in time."""

    iterations: Count = 4
    """How many iterations back, the present one included."""
    keep: Count = 256
    """Most episodes of an update."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return episode.success and not episode.infeasible

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        """Drawn like `TTIReplay`, as a race of exponential clocks (Efraimidis and Spirakis, 2006)."""
        now = experience.records[-1].iteration if experience.records else 0
        recent = [r for r in kept if r.iteration > now - self.iterations]
        rings = [(rng.expovariate((k + 1) ** 2), k) for k in range(len(recent))]
        return [recent[k] for k in sorted(k for _, k in heapq.nsmallest(self.keep, rings))]


SHORT = PerDifficulty(easy=Fixed(limit=6), medium=Fixed(limit=10), hard=Fixed(limit=16))
"""Turns in training."""

RECIPE = sites.recipe(
    "webgym",
    iterations=12,
    model="base-wander",
    budget={"turns": SHORT},
    reward={"evidence": True},
    replay=RecentSuccesses(),
    credit=FilteredBC(drop_unchanged=True),
    loss=Reinforce(),
    learner=LearnerConfig(lr=5e-4, warmup_steps=20, epochs=2, batch_samples=64),
    evaluation={"every": 4},
)

ARM = sites.arm(RECIPE, iterations=8, every=8).replace(evaluation={"tasks": 300})
_long = {"turns": LONG}

CLAIM = Claim(
    name="webgym",
    paper="arXiv 2601.02439, ablation of the training horizon",
    statement="Tested with many turns, what was trained with few by difficulty solves more than what was trained with many.",
    recipe=ARM,
    arms={
        "short": ARM,
        "long": ARM.replace(budget=_long),
        "sheet_short": ARM.replace(tasks=SHEET),
        "sheet_long": ARM.replace(tasks=SHEET, budget=_long),
    },
    expected=Ordering(relations=("short > long by 0.02",)),
    # on a sheet everything is on the first page, so no success takes a detour
    control=Ordering(relations=("sheet_short > sheet_long by 0.05",)),
    reported=Ordering(relations=("long > short in length",)),
    seeds=(103, 104, 105),
)

FINDING = """Short horizons solve 0.05 more on each of the three seeds, with episodes 2.9 turns shorter; the interval is of seeds
and of 300 tasks. At equal turns, which decides nothing here, it is 0.086 (0.030 to 0.121)."""
