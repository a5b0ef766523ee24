"""TTI: test-time interaction scaling. Shen et al., 2025, "Thinking vs. Doing", arXiv 2506.07976.

Online filtered behaviour cloning in which the turns an episode may take grow with the iteration. A short horizon teaches to be right quickly
and cannot explore; a long one from the start clones successes full of arbitrary actions; growing it gives both.

| place | choice | paper and released code (WebVoyager) | `RELEASED` | `RECIPE` |
|---|---|---|---|---|
| start | a base model | prompted to act | `base`: impatient | `base-wander`: it slips, loops and makes detours |
| plan | tasks uniform with replacement | 15 iterations of 512 episodes | 10 of 256 | 20 of 512 |
| plan | `Multiplicative` | h = clip(10 i, 30), released as 10, 20, 20, 30; tests at 30 | clip(8 i, 24); tests at 24 | the same |
| roll out | `FullHistory` | placeholder for older pages, 3 screenshots kept | all pages stay: 24 of them fit | the same |
| roll out | sampling | temperature 1.0, top-p 0.95 | the same | the same |
| score | `TaskReward` | judge that asks for evidence, 88.9 % agreement with people | programmatic, exact | pages that the answer rests on were seen |
| credit | `TTIReplay` | 512 successes, half recency, half site balance | 256 | 1,024 |
| credit | `FilteredBC` | 1 over the length of a turn, per token | the same | equal weights; turns that moved nothing are left out |
| update | AdamW, warm-up 20, cosine, weight decay 0.01 | one epoch, to 2000 steps | the same | to 3200 steps: it takes 2400 |
| update | rate, betas, clip, batch | 4e-6, (0.9, 0.999), 0.01, 32 | 5e-4, (0.9, 0.95), 1.0, 64 | the same |
| test | held-out tasks | of WebVoyager's own sites | new templates, sites and names | new sites and names; new templates beside |

Equal weights are a deviation. TTI's turns all carry a long thought; here `home` has 3 tokens and `type search ...` 7, and 1/|a| pays for
the short one: cloned with its own successes, the policy says `home` for ever. Without evidence a third of the early successes are guesses.
Tasks that act on six items are left out, for the model cannot reach them (`longstride bench ceiling`).

Deviations: a model of about a million parameters on embedded sites stands for Gemma-3-12B on the web, so learning rate, clipping and batch
are a small model's; turns that could not be parsed are not cloned; replay's recency goes by time, and is drawn once (the release groups by
task and draws on every rank); an environment failure is never a reward of 0.
"""

import heapq
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from longstride.claims.claim import Claim
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Share
from longstride.core.trajectory import EpisodeRecord
from longstride.curriculum import Fixed, Multiplicative
from longstride.curriculum.stages import StepList
from longstride.engines.base import Sampling
from longstride.learner.config import LearnerConfig
from longstride.methods import Constant, Reinforce, Replay
from longstride.methods.cloning import FilteredBC
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import LONG, MEDIUM, SHORT
from longstride.stats import Ordering


class TTIReplay(Replay):
    """All successes so far; when there are more than `keep`, a draw that prefers new ones and rare classes.

    With k = 1..n the position in time (n the newest) and c_k the inverse frequency of the class of k, normalised: p_k
    = mix * k / sum(k) + (1 - mix) * c_k. Two quirks of the released code are not copied: there k counts in groups by
    task (only roughly in time), and every data-parallel rank draws its own set. The paper's Algorithm 1 has mix = 1.
    """

    keep: Count = 512
    """Trajectories of one update."""
    mix: Share = 0.5
    """Share of recency in p; the rest balances classes."""
    balance: Literal["source", "difficulty", "template_id"] = "source"
    """Field of the task that is the class (TTI: the site)."""
    top_p: Share = 1.0
    """Of the successes of one task only those no longer than this percentile of their lengths; 1 keeps all."""

    def wants(self, episode: EpisodeRecord) -> bool:
        # An `answer n/a` is the cheapest way to be right: cloned, it would be the answer to everything.
        return episode.success and not episode.infeasible

    def weights(self, kept: Sequence[EpisodeRecord]) -> list[float]:
        """The p_k of `kept`, oldest first; they sum to 1."""
        classes = [getattr(t.task, self.balance) for t in kept]
        count, n = Counter(classes), len(kept)
        # Inverse frequencies add up to the number of classes: each class has the same share.
        rare = {c: (1 - self.mix) / (size * len(count)) for c, size in count.items()}
        return [self.mix * k / (n * (n + 1) / 2) + rare[c] for k, c in enumerate(classes, 1)]

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        """`keep` of the short successes without replacement (`fresh` makes no difference: TTI replays all of history).

        Drawn as a race of exponential clocks with rates p_k (Efraimidis and Spirakis, 2006): the first `keep` to ring
        are distributed like successive draws without replacement.
        """
        short = self._short(kept)
        if len(short) <= self.keep:
            return short
        rings = [(rng.expovariate(p), k) for k, p in enumerate(self.weights(short))]
        return [short[k] for k in sorted(k for _, k in heapq.nsmallest(self.keep, rings))]

    def _short(self, kept: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
        if self.top_p == 1:
            return list(kept)
        lengths: defaultdict[str, list[int]] = defaultdict(list)
        for t in kept:
            lengths[t.task.id].append(t.length)
        # No length lies between two neighbours in order, so the lower neighbour serves as the interpolated percentile.
        longest = {
            task: sorted(found)[math.floor((len(found) - 1) * self.top_p + 1e-9)] for task, found in lengths.items()
        }
        return [t for t in kept if t.length <= longest[t.task.id]]


RELEASED = sites.recipe(
    "tti",
    credit=FilteredBC(weight="by_length"),
    loss=Reinforce(aggregation=Constant()),
    iterations=10,
    budget={"turns": Multiplicative(start=SHORT, limit=LONG)},
    sampling=Sampling(temperature=1.0, top_p=0.95),
    replay=TTIReplay(keep=256, mix=0.5),
    learner=LearnerConfig(lr=5e-4, warmup_steps=20, decay_steps=2000, batch_samples=64),
)
"""TTI without what is mended in `RECIPE`."""

RECIPE = RELEASED.replace(
    model="base-wander",
    iterations=20,
    episodes_per_iteration=512,
    tasks={"new_templates": False, "most_acted": 4},
    reward={"evidence": True},
    credit=FilteredBC(drop_unchanged=True),
    replay={"keep": 1024},
    engine={"processes": "auto", "kernels": "auto"},
    learner={"decay_steps": 3200, "dtype": "float32", "micro_tokens": 512, "kernels": "auto", "threads": "auto"},
    evaluation={"every": 4},
)

SLOWLY = {"turns": StepList(steps=((3, SHORT), (6, MEDIUM), (7, LONG)))}
FIXED_SHORT, FIXED_LONG = {"turns": Fixed(limit=SHORT)}, {"turns": Fixed(limit=LONG)}

SMALL = RECIPE.replace(
    iterations=12,
    episodes_per_iteration=128,
    engine={"processes": 1},
    learner={"decay_steps": 2000},
    evaluation={"every": 6, "baselines": False, "tasks": 250},
)
"""`RECIPE` as small as the arms of claims are."""

# as released, but for evidence; the rate is doubled and the batch halved, so that so few episodes change the policy
ARM = SMALL.replace(
    budget=SLOWLY,
    credit=FilteredBC(weight="by_length"),
    replay={"keep": 256},
    learner={"lr": 1e-3, "batch_samples": 32},
)

CLAIM = Claim(
    name="tti",
    paper="arXiv 2506.07976, section 5 and table 1",
    statement="With the weights as released and a start that wanders, growing the horizon beats a fixed long one.",
    recipe=ARM,
    arms={"growing": ARM, "long": ARM.replace(budget=FIXED_LONG), "short": ARM.replace(budget=FIXED_SHORT)},
    expected=Ordering(relations=("growing > long by 0.05",)),
    reported=Ordering(
        relations=("growing > long in supported", "growing > short", "long > short", "growing > short in supported")
    ),
    seeds=(30, 31, 32, 33, 34, 35),
)
