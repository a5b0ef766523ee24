"""MiroThinker: more interaction, with the newest results alone in view. MiroMind, 2025, arXiv 2511.11793.

What an agent can do grows with how often it may look something up, if its context does not overflow: every thought and
action stays, of the results of tools only the newest five. Then success goes on rising with the calls that are allowed,
up to 600, and reinforcement learning is what makes the policy use them.

| place | choice | paper and released code (MiroRL) | here |
|---|---|---|---|
| start | fine-tuning, preferences | on trajectories of agents | `base-keep-last`, which imitates a scripted agent |
| plan | groups of one task | 8, at most 40 turns, 64 tasks | 8, 24 turns, 32 tasks |
| roll out | `RecentObservations(keep=5)` | results of the newest 5 calls | pages of the newest 5 turns |
| score | `Formatted` | 1 if right, plus 0.1 for well-formed calls | the same, for the share of turns that parse |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO`, no KL | GRPO, asynchronous and partial rollouts | clip 0.2, synchronous |
| test | `Direct(turns=n)` | 256k tokens, up to 600 calls | 6, 12 and 24 turns |

Deviations: a model of about a million parameters on embedded sites; the shipped start was made with one page in view, not
five. The preference stage is left out. No episode of seeds 0 and 1 took more than 12 turns, before or after training, so
the claim compares with 6: +0.035 and +0.020, for which five seeds are enough. Over its five seeds the turns are
worth 0.022 before training and 0.028 after it: that they pay is shown, that training makes the policy use them is not.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import SHEET
from longstride.rewards import TaskReward, Verdict
from longstride.rollout.context import RecentObservations
from longstride.stats import Ordering
from longstride.strategies import Direct


class Formatted(TaskReward):
    """The task's own reward, and a little for turns that could be parsed."""

    weight: Weight = 0.1
    """Of the share of turns that could be."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = super().__call__(trajectory, state, seed)
        parsed = sum(turn.action is not None for turn in trajectory.turns) / max(trajectory.length, 1)
        terms = {"outcome": verdict.reward, "format": self.weight * parsed}
        return Verdict(sum(terms.values()), verdict.success, terms, verdict.evidence)


RECIPE = sites.recipe(
    "mirothinker",
    iterations=12,
    group_size=8,
    model="base-keep-last",
    context=RecentObservations(keep=5),
    reward=Formatted(),
    credit=GroupRelative(),
    loss=PPO(),
    evaluation={"every": 4, "strategies": tuple(Direct(turns=n) for n in (24, 12, 6))},
)

ARM = sites.arm(RECIPE, iterations=8, every=8)
_sheet = ARM.replace(tasks=SHEET)

CLAIM = Claim(
    name="mirothinker",
    paper="arXiv 2511.11793, on interactive scaling",
    statement="After reinforcement learning, success rises with the turns that an episode may take.",
    recipe=ARM,
    arms={"trained": ARM, "sheet": _sheet},
    expected=Ordering(relations=("trained > trained@direct_6_turns by 0.01",)),
    # on a sheet everything is on the first page: there is nothing that more turns could find
    control=Ordering(relations=("sheet > sheet@direct_6_turns by 0.01",)),
    reported=Ordering(relations=("trained > trained@direct_12_turns",)),
    seeds=tuple(range(100, 105)),
)

FINDING = "Turns are worth nearly as much before training (0.022) as after it (0.028)."
