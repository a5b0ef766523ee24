"""LOOP: leave-one-out PPO for long episodes. Chen et al., 2025, "Reinforcement Learning for Long-Horizon Interactive
LLM Agents", arXiv 2502.01600.

PPO without a critic, in which rollouts are used for several steps. What is clipped matters then: the ratio of a whole
trajectory is the product over its tokens, leaves the clip range after a small step and loses its gradient; ratios of
single tokens stay inside.

| place | choice | paper and released code (Qwen2.5-32B on AppWorld) | here |
|---|---|---|---|
| plan | groups of one task | 6 rollouts, 40 tasks | 6 rollouts, 8 tasks |
| score | the final state | share of unit tests that pass | right or wrong |
| credit | `DeadZone` | r - mean of the others, not divided; none below 0.01 | the same |
| update | `PPO` | token by token, ratio clipped to [1 / 1.1, 1.1] | the same |
| update | steps | 2 epochs of batches of 32 | 8 on the whole batch |

Deviations: an episode is one answer of eight binary tokens (`setups.arms`), not forty turns; no LoRA, no clipping of
gradients, no rule for stragglers. Ratios of turns are `gspo` here: the geometric mean of a turn's tokens, as the only
turn is the whole answer. What the trajectory's ratio loses is what clipping takes: with a clip that never binds the
difference is gone (the second control), and both learn more than with it, for a table is in no danger of leaving the
region where its samples say something.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longstride.claims.claim import Claim
from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative, Mean, Sample
from longstride.methods.base import ADVANTAGES
from longstride.methods.losses import Tokens, sequence_sums
from longstride.methods.ratios import GSPO
from longstride.recipes.setups import arms
from longstride.stats import Ordering

if TYPE_CHECKING:
    from torch import Tensor


class DeadZone(GroupRelative):
    """Group-relative advantages, of which small ones are none."""

    below: Weight = 0.01
    """The smallest advantage that is trained on."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        samples = super().__call__(trajectories)
        for s in samples:
            s.streams[ADVANTAGES] = [a if abs(a) >= self.below else 0.0 for a in s.advantages]
        return samples


class TrajectoryPPO(PPO):
    """`PPO` in the ratio of a whole sequence, the product of its tokens'; its term is shared equally by the tokens, so
    that at ratio 1 the gradient is that of `PPO`. All tokens of a sequence have one advantage."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        number_P = tokens.sequence_P
        loss_P, clipped_P = super()._terms(logp_P, sequence_sums(log_ratio_P, number_P), tokens)
        return loss_P / sequence_sums(loss_P.new_ones(len(loss_P)), number_P), clipped_P


LOW, HIGH = 1 - 1 / 1.1, 0.1
EPISODES = Mean(over="episode")

RECIPE = arms.recipe(
    "loop",
    arms.Answers(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.4) * 2), vocabulary=2, length=8),
    arms.Grouped(
        credit=DeadZone(baseline="leave_one_out", normalize="none"),
        loss=PPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH),
        group=6,
        rate=16.0,
        passes=8,
    ),
    iterations=20,
)

_whole = {"loss": TrajectoryPPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH)}
_wide = {"loss": {"clip_low": 1.0, "clip_high": 1e6}}

CLAIM = Claim(
    name="loop",
    paper="arXiv 2502.01600, section 5, ablation of the importance weight",
    statement="Used for several steps, rollouts teach more with a ratio clipped token by token than with that of the "
    "whole trajectory.",
    recipe=RECIPE,
    arms={
        "token": RECIPE,
        "trajectory": RECIPE.replace(method=_whole),
        "mean_of_turn": RECIPE.replace(method={"loss": GSPO(aggregation=EPISODES, clip_low=LOW, clip_high=HIGH)}),
        "one_step_token": RECIPE.replace(method={"passes": 1}),
        "one_step_trajectory": RECIPE.replace(method={"passes": 1, **_whole}),
        "wide_token": RECIPE.replace(method=_wide),
        "wide_trajectory": RECIPE.replace(method=_whole).replace(method=_wide),
    },
    expected=Ordering(relations=("token > trajectory by 0.05",)),
    # the first step has ratio 1; and where the clip never binds it does not matter what it is of
    control=Ordering(
        relations=("one_step_token > one_step_trajectory by 0.01", "wide_token > wide_trajectory by 0.02")
    ),
    seeds=arms.SEEDS,
)
