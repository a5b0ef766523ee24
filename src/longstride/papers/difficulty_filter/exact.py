"""Online difficulty filtering on tasks that want several skills, with chances that are known."""

from collections.abc import Mapping

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.papers.difficulty_filter.method import BALANCED, Band
from longstride.stats import Ordering


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


class SkillGRPO(ExactMethod[Skills]):
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

    def start(self, problem: Skills, rng: np.random.Generator) -> State:
        x, b = problem.tasks(1000, rng)
        return {"w": np.zeros(problem.skills), "x": x, "b": b, "answers": np.zeros(())}

    def step(self, problem: Skills, state: State, rng: np.random.Generator) -> State:
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


RECIPE = ExactRecipe(name="difficulty_filter/exact", problem=Skills(), method=SkillGRPO(), iterations=40)
_all = {"band": (0.0, 1.0)}
_spread = {f"spread_{spread:g}": RECIPE.replace(problem={"spread": spread}) for spread in (0.5, 2.0, 8.0)}

CLAIM = Claim(
    name="difficulty_filter/exact",
    paper="arXiv 2504.03380, abstract",
    statement="By answers that were sampled, batches of tasks that are solved about half the time teach more than any "
    "tasks, each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "balanced": RECIPE,
        "all": RECIPE.replace(method=_all),
        **{f"{name}_balanced": arm for name, arm in _spread.items()},
        **{f"{name}_all": arm.replace(method=_all) for name, arm in _spread.items()},
    },
    expected=Ordering(relations=("balanced > all by 0.02",)),
    # the more tasks differ, the more of them teach nothing
    dose=tuple(f"{name}_balanced > {name}_all" for name in _spread),
    worlds={
        "problem.spread": Between(low=1.0, high=8.0),
        "problem.level": Between(low=0.0, high=8.0),
        "problem.skills": Between(low=4, high=16),
    },
    grid={"method.rate": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)},
    cost="answers",
    equal_cost=True,
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "The earlier effect is gone. Read at equal answers and with a tuned step the band is level (0.971 and 0.992), and "
    "behind where few tasks lie in it: the lead that was kept by updates took 6.4 times the answers."
)
