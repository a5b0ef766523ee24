"""Kimi k1.5: mirror descent on the answers of the policy before. Kimi Team, 2025, "Scaling Reinforcement Learning with
LLMs", arXiv 2501.12599.

The best policy near the last one, pi_i, is pi_i exp(r / tau) / Z. A policy that is it has r - tau log Z = tau log(pi /
pi_i) for every answer, so the squared difference is minimised on samples of pi_i, with the mean reward in place of tau
log Z. No ratio is clipped: the square holds the policy near pi_i however many steps are taken on one batch.

| place | choice | paper (section 2.3) | here |
|---|---|---|---|
| plan | groups of one task | k answers a prompt | 8 answers to each task |
| roll out | sampling | from pi_i, the policy at the start of the iteration | the same |
| score | right or wrong | verifier, and a reward model | 1, 0, and 0.5 for one answer that is good and not right |
| credit | `GroupRelative` | r - mean | the same |
| update | `MirrorDescent` | grad log pi (r - mean) - tau / 2 grad (log pi / pi_i)^2 | the same, tau 0.5 |
| update | steps | many on one batch; the optimiser is reset every iteration | 16, plain gradient |

Deviations: tasks are enumerable (`setups.arms`), the good answer is likely at first, and the right ones are rare. tau is
not in the paper. Partial rollouts, the reward for short answers, curriculum and long-to-short are left out. With
mean(r) for tau log Z the fixed point is not pi_i exp(r / tau): where the mean is small beside it, probabilities move
less (measured in the tests: see arXiv 2602.05933, which calls it a mix of KL and chi-squared).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longstride.claims.claim import Claim
from longstride.core.numbers import Weight
from longstride.methods import PPO, Constant, GroupRelative, Mean, Reinforce, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.losses import LossTerms, Tokens, sequence_sums
from longstride.recipes.setups import arms
from longstride.stats import Ordering

if TYPE_CHECKING:
    from torch import Tensor


TAU = "mirror_coefficient"
"""Stream of tau, times the share of the aggregation."""


class MirrorDescent(Reinforce):
    """-A log pi + tau / 2 (log pi / old)^2 of a sequence, whose tokens share the square equally.

    Its gradient is that of (A - tau log pi / old)^2 / (2 tau), the paper's objective, up to what does not depend on the
    policy. At the sampling policy it is that of `Reinforce`.
    """

    tau: Weight = 0.5
    """What it costs to leave the policy that sampled."""

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {TAU: [self.tau] * len(samples)}

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        number_P, log_ratio_P = tokens.sequence_P, logp_P - tokens.streams[BEHAVIOUR]
        length_P = sequence_sums(logp_P.new_ones(len(logp_P)), number_P)
        square_P = sequence_sums(log_ratio_P, number_P).square() / length_P
        return LossTerms(-tokens.streams[ADVANTAGES] * logp_P + tokens.streams[TAU] / 2 * square_P)


RECIPE = arms.recipe(
    "kimi",
    arms.Answers(tasks=tuple((chance,) for chance in (0.02, 0.05, 0.1, 0.1) * 4), vocabulary=32, decoy=0.7),
    arms.Grouped(
        credit=GroupRelative(normalize="none"),
        loss=MirrorDescent(aggregation=Constant(per="episode")),
        rate=64.0,
        passes=16,
    ),
    iterations=30,
)

_plain = {"loss": Reinforce(aggregation=Constant(per="episode"))}

CLAIM = Claim(
    name="kimi",
    paper="arXiv 2501.12599, section 2.3.2",
    statement="Where each batch is used for sixteen steps, mirror descent ends with more success than the plain policy "
    "gradient.",
    recipe=RECIPE,
    arms={
        "mirror": RECIPE,
        "plain": RECIPE.replace(method=_plain),
        "clipped": RECIPE.replace(method={"loss": PPO(aggregation=Mean(over="episode"))}),
        "one_step_mirror": RECIPE.replace(method={"passes": 1}),
        "one_step_plain": RECIPE.replace(method={"passes": 1, **_plain}),
    },
    expected=Ordering(relations=("mirror > plain by 0.1",)),
    # the first step from the policy that sampled is the same
    control=Ordering(relations=("one_step_mirror > one_step_plain by 0.01",)),
    seeds=arms.SEEDS[:30],
)
