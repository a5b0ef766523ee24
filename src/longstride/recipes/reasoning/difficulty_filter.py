"""Online difficulty filtering: only tasks that are solved about half the time. Bae et al., 2025, arXiv 2504.03380.

A task that the policy always or never solves teaches nothing, and one that it nearly always or nearly never solves
teaches little: what an update can gain is bounded below by the variance p (1 - p) of the reward. So groups are sampled
until the batch is full of groups whose share of right answers lies in a band around one half.

| place | choice | paper | here |
|---|---|---|---|
| plan | `Balanced` sampling | 16 answers a prompt; batch of constant size, filled asynchronously | 8, until 32 groups are in, 4 stages |
| plan | band | balanced: 0.3 to 0.7 and others, symmetric around 0.5 | 0.25 to 0.75 |
| roll out, score | setup | math, verified | `setups.puzzles` |
| credit | `InBand` | GRPO's, of groups in the band | the same |
| update | `PPO` | GRPO's, KL to the start | clip 0.2, no KL |

For one skill w, right with probability p = sigmoid(w x - b), the whole group's gradient under GRPO is sqrt(m (1 - m)) x
per answer, where m is the share that was right, whatever p is. `Skills` is that model: it shows the effect without a
language model, and is what the claim is about. Only updates are saved: on seeds 0 to 7 the balanced band ends at 0.68
and all tasks at 0.39 after 100 updates, but the band sampled 6.3 times as many answers for them, and after as many
answers all tasks are at 0.84.

Deviations: the model of half a million parameters of `setups.puzzles`; the bounds are from secondary accounts. The
language model was only tried, for two iterations of 32 episodes: that its held-out success rises has not been shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative, Sample
from longstride.recipes.setups import puzzles
from longstride.rollout.planning import Planner, Sampler, Stages, by_group
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.stats import Ordering

Band = tuple[Share, Share]
BALANCED: Band = (0.25, 0.75)


def in_band(trajectories: Sequence[Trajectory], band: Band) -> list[list[Trajectory]]:
    """The groups whose share of right answers lies in the band, its ends included."""
    groups = by_group(trajectories)
    return [g for g in groups if band[0] <= sum(t.success for t in g) / len(g) <= band[1]]


class Balanced(Sampler):
    """Groups until as many as the recipe asks for are in the band; the others are for credit to leave out."""

    band: Band = BALANCED
    """Least and largest share of right answers."""
    rounds: Count = 4
    """Most stages."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            found = yield [plan for task in planner.tasks(lacking) for plan in planner.group(task)]
            played += found
            lacking -= len(in_band(found, self.band))
            if lacking <= 0:
                break
        return played


class InBand(GroupRelative):
    """Group-relative credit of the groups in the band."""

    band: Band = BALANCED
    """That of the sampler."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        return super().__call__([t for group in in_band(trajectories, self.band) for t in group])


RECIPE = puzzles.recipe("difficulty_filter", iterations=30, sampler=Balanced(), credit=InBand(), loss=PPO())


class Skills(ExactProblem):
    """Tasks x, standard normal with mean 1 in each of D skills, of difficulty b: right with probability sigmoid(w x - b).
    A solution is `w` [D], fixed held-out tasks `x` [N, D] and `b` [N], and `answers`, those that were sampled."""

    skills: Count = 8
    """D."""
    spread: Weight = 6.0
    """Deviation of the difficulty."""
    level: float = 4.0
    """Its mean."""

    def tasks(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """[N, D] and [N]: x and b of new tasks."""
        x = 1 + rng.normal(size=(n, self.skills))
        return x, self.level + self.spread * rng.normal(size=n)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The share of right answers over the held-out tasks, and the answers that were sampled."""
        right = chance(solution["w"], solution["x"], solution["b"])
        return {"success": float(right.mean()), "answers": float(solution["answers"])}


class SkillGRPO(ExactMethod):
    """GRPO on `Skills` with batches of groups in a band."""

    band: Band = BALANCED
    """Least and largest share of right answers of a group that is trained on."""
    groups: Count = 16
    """Of a batch, once it is full."""
    answers: Count = 16
    """Of a group."""
    rate: Positive = 0.02
    """Of the update."""
    rounds: Count = 20
    """Most batches that are sampled to fill one; where they do not, the batch is smaller."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Skills):
            raise ConfigError(f"skill_grpo solves skills, not {problem.type_name()}")
        x, b = problem.tasks(1000, rng)
        return {"w": np.zeros(problem.skills), "x": x, "b": b, "answers": np.zeros(())}

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
        lacking, gradient, sampled = self.groups, np.zeros(problem.skills), 0
        for _ in range(self.rounds):
            x, b = problem.tasks(lacking, rng)
            share = rng.binomial(self.answers, chance(state["w"], x, b)) / self.answers
            kept = (share >= self.band[0]) & (share <= self.band[1])
            gradient += group_gradient(share, x)[kept].sum(0)
            sampled += lacking * self.answers
            lacking -= int(kept.sum())
            if lacking == 0:
                break
        w = state["w"] + self.rate * gradient / self.groups
        return state | {"w": w, "answers": state["answers"] + sampled}


def chance(w: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[N] probability of a right answer to each task."""
    return 1 / (1 + np.exp(np.clip(b - x @ w, -50, 50)))


def group_gradient(share: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[N, D] mean over a group of advantage times gradient of the log-probability, for the share of right answers."""
    return np.sqrt(share * (1 - share))[:, None] * x


_exact = ExactRecipe(name="difficulty_filter", problem=Skills(), method=SkillGRPO(), iterations=100, every=10)
_alike = _exact.replace(problem={"spread": 0.0, "level": 0.0}, iterations=10)
_all = {"band": (0.0, 1.0)}

CLAIM = Claim(
    name="difficulty_filter",
    paper="arXiv 2504.03380, abstract",
    statement="By updates, batches of tasks that are solved about half the time teach more than any tasks.",
    recipe=_exact,
    arms={
        "balanced": _exact,
        "hard": _exact.replace(method={"band": (0.0625, 0.5)}),
        "easy": _exact.replace(method={"band": (0.5, 0.9375)}),
        "mixed": _exact.replace(method={"band": (0.0625, 0.9375)}),
        "all": _exact.replace(method=_all),
        "alike_balanced": _alike,
        "alike_all": _alike.replace(method=_all),
    },
    expected=Ordering(relations=("balanced > all by 0.05",)),
    # where all tasks are alike, and solved half the time, the band leaves out nothing that matters
    control=Ordering(relations=("alike_balanced > alike_all by 0.05",)),
    seeds=tuple(range(100, 150)),
)
