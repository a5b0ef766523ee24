"""SCoRe: self-correction by reinforcement learning in two stages. Kumar et al., 2024, arXiv 2409.12917.

Trained on both attempts at once, a model learns one good answer and says it twice. So stage I teaches the second
attempt alone and holds the first to where it was: what there is to be gained is gained by correcting. Stage II credits
both, with a bonus for what the second attempt makes of the first.

| place | choice | paper (table 5: MATH, Gemini 1.5 Flash) | here |
|---|---|---|---|
| plan | `Attempts`, groups of one task | two attempts, batches of 512 | two, 32 tasks of 8 episodes |
| plan | `ObjectivePhase` | two stages, 3,000 updates | 20 iterations, then 20 |
| roll out | `FullHistory`, sampling | temperature 1; the second attempt reads the first and is asked to correct it | the same |
| score | `TaskReward` | right or wrong, each attempt | the same |
| credit | `AttemptCredit` | an attempt's own reward, less RLOO's baseline; stage II: r_2 + 10 (r_2 - r_1) for the second | the same, bonus 5 |
| update | `Reinforce` with `KLByTurn`, `KL` | stage I 0.1 on the first attempt, a small one on both; stage II 0.01 on both | 0.02 on the first attempt; 0.01 |
| update | rate | Adam, 5e-6 | 3e-4, as `grpo`, in one pass |

Deviations: model and puzzles are those of `grpo`. The bonus says how much a second attempt weighs against the first
(see `AttemptCredit`): with 10 the first is hardly trained in so few iterations, so that it is half of that. Both
attempts are the work of half a million parameters, so what holds the first one holds the second as well: held by 1
stage I learned nothing in 15 iterations, by 0.1 half as much as by 0.02. In some of the paper's runs second attempts
also follow first ones of the untrained model; here they do not.
"""

from collections.abc import Sequence
from itertools import pairwise

from longstride.claims.claim import Claim
from longstride.core.numbers import Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Attempts
from longstride.envs.puzzles.attempts import scores
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, Constant, Credit, Reinforce, Sample, group_advantages
from longstride.methods.advantages import Baseline
from longstride.recipes.setups import puzzles
from longstride.rollout.context import LatestObservation
from longstride.rollout.summary import Measure
from longstride.run.recipe import ObjectivePhase
from longstride.stats import Ordering


class AttemptCredit(Credit):
    """Each attempt (a turn) has the advantage of its own reward among the attempts of the same number in its group, and is
    credited with nothing that comes after it: a first attempt is never made worse to leave room for a second.

        R_1 = first * r_1,  R_k = r_k + bonus (r_k - r_{k-1})

    The bonus is for what was corrected, and against what was spoiled. As r_{k-1} lies before attempt k, it has the
    part of a baseline there: in expectation, as the tests measure it, the gradient is that of R_1 plus (1 + bonus)
    times that of r_k. So the bonus says how much a later attempt weighs against the first; what it does beyond that, it
    does to the variance.
    """

    first: Share = 1.0
    """Share of the first attempt's own reward that is credited: 0 in the paper's stage I, 1 in stage II."""
    bonus: Weight = 0.0
    """Weight of progress from attempt to attempt, alpha (10 in the paper's stage II)."""
    baseline: Baseline = "leave_one_out"
    """See `group_advantages`."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        played = [t for t in trajectories if not t.stop.failed]
        attempts = [(t, k) for t in played for k in range(t.length)]
        numbers: dict[tuple[int, int], int] = {}
        groups_N = [numbers.setdefault((t.group, k), len(numbers)) for t, k in attempts]
        rewards_N = [reward for t in played for reward in self.rewards(t)]
        advantages_N = group_advantages(rewards_N, groups_N, self.baseline, "none")
        return [
            Sample.of(t, turn, [float(a)] * len(turn.sampled_ids))
            for (t, k), a in zip(attempts, advantages_N, strict=True)
            if (turn := t.turns[k]).sampled_ids
        ]

    def rewards(self, trajectory: Trajectory) -> list[float]:
        """[T] R of each attempt."""
        r = scores(trajectory)
        return [self.first * r[0], *(b + self.bonus * (b - a) for a, b in pairwise(r))] if r else []


class KLByTurn(KL):
    """A KL term whose weight depends on the turn: stage I holds the first attempt to where it was, and sets the second
    one free."""

    by_turn: tuple[Weight, ...]
    """What `coefficient` is multiplied by in the first turn of an episode, in the second and so on; the last one
    stays."""

    def at(self, turn: int) -> float:
        return self.coefficient * self.by_turn[min(turn, len(self.by_turn) - 1)]


class Gain(Measure):
    """What was earned after the first turn: what later attempts changed."""

    def __call__(self, trajectory: Trajectory) -> float:
        return trajectory.reward - trajectory.turns[0].reward if trajectory.turns else 0.0


BONUS = 5.0
"""Weight of what a second attempt makes of the first, in stage II."""
_PER_EPISODE = Constant(length=puzzles.TOKENS, per="episode")
_HELD = Reinforce(aggregation=_PER_EPISODE, kl=KL(coefficient=0.01))
"""Both attempts are held a little."""


def _second_stage(after: int, bonus: float) -> tuple[ObjectivePhase, ...]:
    """From an iteration on both attempts are credited."""
    return (ObjectivePhase(after=after, credit=AttemptCredit(bonus=bonus), loss=_HELD),)


RECIPE = puzzles.recipe(
    "score",
    tasks=Attempts(),
    budget={"turns": 2},
    test_budget={"turns": 2},
    credit=AttemptCredit(first=0.0),
    loss=Reinforce(aggregation=_PER_EPISODE, kl=KLByTurn(coefficient=0.02, by_turn=(1.0, 0.0))),
    learner=LearnerConfig(lr=3e-4, warmup_steps=5, batch_samples=128),
    objectives=_second_stage(after=20, bonus=BONUS),
    evaluation={"every": 5, "measures": (Gain(),)},
)

ARM = RECIPE.replace(
    iterations=24,
    episodes_per_iteration=128,
    evaluation={"every": 12, "tasks": 300},
    objectives=_second_stage(12, BONUS),
)
_neither = {"objectives": (), "loss": _HELD, "credit": AttemptCredit()}
"""Both attempts are credited with their own reward from the beginning."""
_blind = {"context": LatestObservation()}
"""The second attempt reads the task and that it is to check again, and not the first attempt."""

CLAIM = Claim(
    name="score",
    paper="arXiv 2409.12917, abstract",
    statement="Second attempts gain more on first ones in two stages with the bonus than without the bonus, and than where "
    "both attempts are credited with their own reward from the beginning.",
    recipe=ARM,
    arms={
        "two_stages": ARM,
        "no_bonus": ARM.replace(objectives=_second_stage(12, 0.0)),
        "neither": ARM.replace(**_neither),
        "blind_two_stages": ARM.replace(**_blind),
        "blind_neither": ARM.replace(**_blind, **_neither),
    },
    measure="gain",
    expected=Ordering(relations=("two_stages > neither",)),
    # what was not read cannot be corrected
    control=Ordering(relations=("blind_two_stages > blind_neither by 0.03",)),
    reported=Ordering(relations=("two_stages > no_bonus", "two_stages > neither in success")),
    seeds=(0, 1, 2, 3, 4),
)
