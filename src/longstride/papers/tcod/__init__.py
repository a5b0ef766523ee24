"""TCOD: on-policy distillation whose horizon grows. Wang et al., 2026, arXiv 2604.24005.

A student plays, and a teacher says of each token how probable it finds it. In episodes of many turns a student that errs comes to where
its teacher has never been, and what the teacher says there is worth little. So the student plays few turns at first, and more as it
learns (front to back).

| place | choice | released code | here |
|---|---|---|---|
| start | student, teacher | Qwen2.5-1.5B, a larger one | `base-dial`, which wastes half of its turns; `base-dial-straight`, which was shown none |
| plan | turns | 1 more every 6 of 250 steps, up to 30 | 4 more every iteration, up to 48 |
| credit | `NoAdvantage` | log teacher - log student, both as sampled | none: the loss has its own term |
| update | `KL` to a `Teacher` | importance weight, mean of tokens, then of turns | the same gradient, of the policy as it is: k2, coefficient 1 |
| stop | reward | none is read | the same |

The other order, back to front, is `tcod/back_to_front`.

Deviations: Ray, the queue of two versions and the benchmarks are left out. `loss.kl.anchor.model` takes a run folder or a model with the
student's tokens.

The claim is not frozen and has not been run. A look at one seed (900, distances 2 to 41) speaks against it here: the student goes from .15
to .93 where its horizon grows, and to .96 where whole episodes are played from the first. On a trail each page is read alone, so an error
does not make later pages stranger to the teacher, but for those off the trail.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="TCOD: Exploring Temporal Curriculum in On-Policy Distillation for Multi-turn Autonomous Agents",
    authors="Jiaqi Wang, Wenhao Zhang, Weijie Shi, Yaliang Li, James Cheng",
    year=2026,
    arxiv="2604.24005",
    read="notes",
    topics=("agents", "horizon", "cloning"),
)
