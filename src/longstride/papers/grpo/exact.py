"""The baseline of `grpo`, where its noise can be computed: a group's own mean against the mean of the batch.

An update of sampled answers is the exact gradient of success and noise. A right answer to an easy task says little, and
a baseline of the task's own keeps it from weighing much; the mean of a batch of easy and hard tasks does not.

| place | choice | `grpo` | here |
|---|---|---|---|
| plan | groups of one task | 8 answers | the same, 8 tasks |
| credit | `GroupRelative` | r - mean of the group, divided by its deviation | not divided: a deviation is no baseline |
| update | `PPO`, `Mean` over episodes | two passes, in steps | one step on all answers |
| measure | `alignment` | | cosine of an update with the exact gradient, mean over updates |

Deviations: tasks are enumerable (`exact.answers`), each with logits of its own, so that an update of one task does nothing
to another and what noise costs in success is small: beside the alignment the page has the success, which is that of
longer steps too (the mean of a group makes them (n - 1) / n as long). Half of the answers are right: where one answer
alone is, no baseline has no noise, for what earns 0 moves nothing and what earns 1 is always the same answer.
"""

from collections.abc import Mapping

import numpy as np

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.experiment import State
from longstride.exact.learner import recipe
from longstride.methods import PPO, GroupRelative, Mean
from longstride.stats import Ordering


class Noisy(Answers):
    """`Answers` with one measure more: `alignment`, the mean cosine of updates so far with the exact gradient of success
    (1 before the first)."""

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        n = float(solution["iteration"])
        return super().measures(solution) | {"alignment": float(solution["alignment"]) / n if n else 1.0}


class Aligned(Grouped):
    """`Grouped` that adds up the cosines of its updates with the exact gradient."""

    def start(self, problem: Answers, rng: np.random.Generator) -> State:
        return super().start(problem, rng) | {"alignment": np.zeros(())}

    def step(self, problem: Answers, state: State, rng: np.random.Generator) -> State:
        after, tree = super().step(problem, state, rng), problem.tree
        exact = tree.gradient(state["logits"], np.ones(len(tree.context)))
        moved = after["logits"] - state["logits"]
        length = np.linalg.norm(moved) * np.linalg.norm(exact)
        return after | {"alignment": state["alignment"] + ((moved * exact).sum() / length if length else 0.0)}


MIXED = Noisy(tasks=tuple((chance,) for chance in (0.05, 0.3, 0.7, 0.95) * 2), right=8)

RECIPE = recipe(
    "grpo/exact",
    MIXED,
    Aligned(credit=GroupRelative(normalize="none"), loss=PPO(aggregation=Mean(over="episode")), rate=4.0),
    iterations=20,
)

_batch = {"credit": {"baseline": "batch"}}
_alike = {"problem": {"tasks": ((0.5,),) * 8}}

CLAIM = Claim(
    name="grpo/exact",
    paper="arXiv 2402.03300, section 4.1",
    statement="Where tasks differ in difficulty, updates under the mean of a task's own group are nearer to the exact "
    "gradient than under the mean of the batch.",
    recipe=RECIPE,
    arms={
        "group": RECIPE,
        "batch": RECIPE.replace(method=_batch),
        "none": RECIPE.replace(method={"credit": {"baseline": "none"}}),
        "alike_group": RECIPE.replace(**_alike),
        "alike_batch": RECIPE.replace(**_alike, method=_batch),
    },
    measure="alignment",
    expected=Ordering(relations=("group > batch by 0.02",)),
    # where all tasks are alike, the batch knows their mean as well
    control=Ordering(relations=("alike_group > alike_batch by 0.02",)),
    reported=Ordering(relations=("group > none", "group > batch in success")),
    seeds=SEEDS,
)
