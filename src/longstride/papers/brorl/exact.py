"""BroRL on one distribution over tokens: which updates raise the mass of right ones."""

from collections.abc import Mapping

import numpy as np
from scipy.special import softmax

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive
from longstride.exact.answers import SEEDS, Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, State
from longstride.exact.learner import recipe
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
        return {"logits": problem.begin(rng), "falls": np.zeros(()), "updates": np.zeros(())}

    def step(self, problem: OneLikely, state: State, rng: np.random.Generator) -> State:
        p, right = softmax(state["logits"]), problem.is_right
        below = p.cumsum()
        sampled = np.zeros(len(p), bool)
        sampled[np.searchsorted(below, rng.random(self.rollouts) * below[-1])] = True
        logits = state["logits"] + self.step_size * ascent(p, right, sampled)
        fell = softmax(logits)[right].sum() < p[right].sum()
        return {"logits": logits, "falls": state["falls"] + fell, "updates": state["updates"] + 1}


def ascent(p: np.ndarray, right: np.ndarray, sampled: np.ndarray) -> np.ndarray:
    """The gradient of the sum of R_i p_i over sampled tokens in the logits; R is 1 for right and -1 for wrong ones."""
    earned = np.where(right, 1.0, -1.0) * sampled * p
    return earned - p * earned.sum()


def mass_balance(p: np.ndarray, right: np.ndarray, sampled: np.ndarray) -> float:
    """The bracket of the mass balance equation (see above), for R_c = 1 and R_w = -1."""
    mood = p[sampled & right].sum() - p[sampled & ~right].sum()
    q_right, q_wrong, square = p[right].sum(), p[~right].sum(), p**2
    unsampled = q_right * square[~sampled & ~right].sum() - q_wrong * square[~sampled & right].sum()
    seen = (1 - mood) * q_wrong * square[sampled & right].sum() + (mood + 1) * q_right * square[sampled & ~right].sum()
    return float(seen + mood * unsampled)


RECIPE = recipe("brorl/exact", OneLikely(), MassBalance(), iterations=100)
FEW = OneLikely(right=2, wrong=3, likely=0.3, others=0.2)

CLAIM = Claim(
    name="brorl/exact",
    paper="arXiv 2510.01180, section 3",
    statement="With 512 rollouts a larger share of updates raises the mass of right tokens than with 16.",
    recipe=RECIPE,
    arms={
        "rollouts_512": RECIPE,
        "rollouts_64": RECIPE.replace(method={"rollouts": 64}),
        "rollouts_16": RECIPE.replace(method={"rollouts": 16}),
        "few_tokens_512": RECIPE.replace(problem=FEW),
        "few_tokens_16": RECIPE.replace(problem=FEW, method={"rollouts": 16}),
    },
    measure="rises",
    expected=Ordering(relations=("rollouts_512 > rollouts_16 by 0.05",)),
    # of five tokens 16 rollouts miss none that is likely
    control=Ordering(relations=("few_tokens_512 > few_tokens_16 by 0.05",)),
    seeds=SEEDS,
)
