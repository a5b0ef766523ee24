"""BroRL on one distribution over tokens: which updates raise the mass of right ones.

| place | choice | `brorl` | here |
|---|---|---|---|
| plan | rollouts a prompt | 512 for 16, as many in all | 512 for 16, the same step on logits |
| score | right or wrong | | 1 and -1 |
| update | `MassBalance` | `PPO`; `DistinctMass` is this update as a credit | one step on logits, first order: the mass balance equation |
| measure | `rises` | | share of updates after which the mass of right tokens was larger |

One prompt, one token and thousands of arms of which one right one is likely, as in the paper's simulation; eta / N is
held fixed, so that arms differ in what is sampled and not in the length of a step. The update that has this equation is
gradient ascent on the logits for the sum of R_i p_i over *distinct* sampled tokens; the equation is its first order in
eta (tested).
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import softmax

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive
from longstride.exact.answers import Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.learner import recipe
from longstride.papers.brorl.method import mass
from longstride.stats import Ordering


class OneLikely(ExactProblem):
    """A prompt with right and wrong tokens; one right token is likely. Measures: `success`, the mass of right tokens,
    and `rises`, the share of updates so far that raised it (1 before the first)."""

    right: Count = 101
    """Right tokens, the likely one among them."""
    wrong: Count = 20_000
    """Wrong tokens."""
    likely: Chance = 0.05
    """Chance of the likely one at the start."""
    others: Chance = 0.1
    """Chance of all other right ones together."""

    @property
    def is_right(self) -> np.ndarray:
        return np.arange(self.right + self.wrong) < self.right

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """Logits of a random policy with the given chances."""
        if self.right < 2 or self.likely + self.others >= 1:
            raise ConfigError("one_likely needs two right tokens or more, and chances that add up to less than 1")
        p = np.exp(0.5 * rng.normal(size=self.right + self.wrong))
        for part, share in (
            (slice(0, 1), self.likely),
            (slice(1, self.right), self.others),
            (slice(self.right, None), 1 - self.likely - self.others),
        ):
            p[part] *= share / p[part].sum()
        return np.log(p)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {
            "success": float(softmax(solution["logits"])[self.is_right].sum()),
            "rises": float(1 - solution["falls"] / max(float(solution["updates"]), 1.0)),
        }


class MassBalance(ExactMethod[OneLikely]):
    """Gradient ascent on the logits for the sum of R_i p_i over the distinct tokens of N rollouts, divided by N: logit j
    moves by step p_j (R_j [j was sampled] - S_R). The division is in `step`."""

    rollouts: Count = 512
    """N."""
    step_size: Positive = 0.2
    """eta / N, the same for any N."""

    def start(self, problem: OneLikely, rng: np.random.Generator) -> State:
        return {"logits": problem.begin(rng), "falls": np.zeros(()), "updates": np.zeros(()), "samples": np.zeros(())}

    def step(self, problem: OneLikely, state: State, rng: np.random.Generator) -> State:
        p, right = softmax(state["logits"]), problem.is_right
        below = p.cumsum()
        sampled = np.zeros(len(p), bool)
        sampled[np.searchsorted(below, rng.random(self.rollouts) * below[-1])] = True
        logits = state["logits"] + self.step_size * ascent(p, right, sampled)
        fell = softmax(logits)[right].sum() < p[right].sum()
        return {
            "logits": logits,
            "falls": state["falls"] + fell,
            "updates": state["updates"] + 1,
            "samples": state["samples"] + self.rollouts,
        }

    def spent(self, problem: OneLikely, state: State) -> Mapping[str, float]:
        """Rollouts."""
        return {"samples": float(state["samples"])}


def ascent(p: np.ndarray, right: np.ndarray, sampled: np.ndarray) -> np.ndarray:
    """The gradient of the sum of R_i p_i over sampled tokens in the logits; R is 1 for right and -1 for wrong ones."""
    earned = mass(np.where(right, 1.0, -1.0), p) * sampled
    return earned - p * earned.sum()


def mass_balance(p: np.ndarray, right: np.ndarray, sampled: np.ndarray) -> float:
    """The bracket of the mass balance equation (see above), for R_c = 1 and R_w = -1."""
    mood = p[sampled & right].sum() - p[sampled & ~right].sum()
    q_right, q_wrong, square = p[right].sum(), p[~right].sum(), p**2
    unsampled = q_right * square[~sampled & ~right].sum() - q_wrong * square[~sampled & right].sum()
    seen = (1 - mood) * q_wrong * square[sampled & right].sum() + (mood + 1) * q_right * square[sampled & ~right].sum()
    return float(seen + mood * unsampled)


ROLLOUTS = 6400
"""Of every arm."""


def _by(rollouts: int) -> ExactRecipe:
    updates = ROLLOUTS // rollouts
    return recipe("brorl/exact", OneLikely(), MassBalance(rollouts=rollouts), iterations=updates)


RECIPE = _by(512)

CLAIM = Claim(
    name="brorl/exact",
    paper="arXiv 2510.01180, section 3",
    statement="For the same rollouts in all, updates on 512 rollouts raise the mass of right tokens further than updates on "
    "16, each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={f"rollouts_{n}": _by(n) for n in (512, 1600, 128, 16)},
    expected=Ordering(relations=("rollouts_512 > rollouts_16 by 0.02",)),
    # the broader, the better
    dose=tuple(f"rollouts_{n} > rollouts_16" for n in (128, 512, 1600)),
    worlds={
        "problem.likely": Between(low=0.01, high=0.2, log=True),
        "problem.others": Between(low=0.02, high=0.2, log=True),
        "problem.wrong": Between(low=1000, high=10_000, log=True),
    },
    grid={"method.step_size": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1030)),
)

FINDING = (
    "The earlier effect is gone. For the same rollouts, each at its best step, 16 rollouts an update reach 1.000 and "
    "512 0.999: the lead that was kept in one world was that of 32 times the rollouts at one step length."
)
