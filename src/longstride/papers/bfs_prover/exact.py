"""BFS-Prover-V2 on theorems with a goal, by a prover that is a table and a verifier that checks each step."""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, CountOrZero, Positive, Weight
from longstride.exact.experiment import ExactMethod, ExactRecipe, State
from longstride.exact.proofs import GoalTheorems, Step, proof_of
from longstride.stats import Ordering
from longstride.strategies.search import BestFirst


class ExpertIteration(ExactMethod[GoalTheorems]):
    """Each iteration searches proofs of all training theorems, and trains on their steps, each once a theorem."""

    search: BestFirst = BestFirst(expansions=24, width=4)
    low: Weight = 1.6
    """Perplexity, 1 / p, below which a step is trivial and left out; 0 keeps all."""
    high: Positive = 40.0
    """Above which it is noise and left out."""
    theorems: Count = 60
    """That are trained on."""
    passes: Count = 10
    """Gradient steps of an iteration."""
    rate: Positive = 2.0
    """Length of a step, in logits for a unit of gradient."""
    patience: CountOrZero = 0
    """Iterations without a larger share of proved theorems after which the first model is trained; 0 is never."""
    again: Count = 5
    """Times `passes` that a restarted model is trained."""
    known: float = 3.0
    """Logit of the trivial tactic at the start; special tactics have 0 in the mean and deviation 0.5."""
    odd: float = -1.0
    """Mean of idle ones."""

    def start(self, problem: GoalTheorems, rng: np.random.Generator) -> State:
        logits = 0.5 * rng.normal(size=(problem.kinds, problem.tactics))
        logits[:, 0] = self.known
        logits[:, 1 + problem.special : -1] += self.odd
        theorems = problem.draw(self.theorems, rng)
        return {
            "logits": logits,
            "first": logits.copy(),
            "theorems": theorems,
            "proved": np.zeros(()),
            "best": np.zeros(()),
            "stale": np.zeros(()),
        }

    def step(self, problem: GoalTheorems, state: State, rng: np.random.Generator) -> State:
        policy = softmax(state["logits"], axis=-1)
        proofs = [proof_of(problem, theorem, policy, self.search, rng) for theorem in state["theorems"]]
        proved = np.array(sum(map(bool, proofs)) / len(proofs))
        stale = np.zeros(()) if proved > state["best"] else state["stale"] + 1
        after = dict(state, proved=proved, best=np.maximum(proved, state["best"]), stale=stale)
        data = self.kept([step for steps in proofs for step in dict.fromkeys(steps)], policy)
        restarts = self.patience and stale >= self.patience
        if restarts:
            after |= {"stale": np.zeros(())}
        logits = state["first" if restarts else "logits"]
        after["logits"] = self.trained(logits, data, self.passes * (self.again if restarts else 1))
        return after

    def kept(self, steps: Sequence[Step], policy: np.ndarray) -> list[Step]:
        """The steps without both tails of perplexity."""
        return [step for step in steps if self.low <= 1 / policy[step] <= self.high]

    def trained(self, logits: np.ndarray, steps: Sequence[Step], passes: int) -> np.ndarray:
        """The logits after gradient steps on the mean log-probability of the steps."""
        if not steps:
            return logits
        counts = np.zeros_like(logits)
        np.add.at(counts, tuple(np.transpose(steps)), 1 / len(steps))
        for _ in range(passes):
            logits = logits + self.rate * (counts - counts.sum(-1, keepdims=True) * softmax(logits, axis=-1))
        return logits


RECIPE = ExactRecipe(name="bfs_prover/exact", problem=GoalTheorems(), method=ExpertIteration(), iterations=16, every=16)
_all = {"method": {"low": 0.0, "high": 1e9}}
_doses = {f"idle_{k}": RECIPE.replace(problem={"idle": k}) for k in (0, 15, 90)}

CLAIM = Claim(
    name="bfs_prover/exact",
    paper="arXiv 2509.06493, tactic filtering and retraining",
    statement="A prover that is trained without the steps of lowest and highest perplexity proves more than one that is "
    "trained on all, each at its own best step and threshold, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "both": RECIPE,
        "all": RECIPE.replace(**_all),
        "restarted": RECIPE.replace(method={"patience": 3}),
        **{f"{idle}_both": arm for idle, arm in _doses.items()},
        **{f"{idle}_all": arm.replace(**_all) for idle, arm in _doses.items()},
    },
    expected=Ordering(relations=("both > all by 0.01",)),
    # where every accepted step closes a goal, there is no noise to leave out; the more steps close none, the more there is
    dose=tuple(f"{idle}_both > {idle}_all" for idle in _doses),
    reported=Ordering(relations=("restarted > both",)),
    worlds={
        "problem.idle": Between(low=10, high=90),
        "problem.trivial": Between(low=0.3, high=0.8),
        "problem.kinds": Between(low=4, high=16),
        "problem.goals": Between(low=2, high=5),
    },
    grid={
        "method.rate": (0.5, 1.0, 2.0, 4.0, 8.0),
        # an arm that leaves nothing out has no threshold
        "method.high": (20.0, 40.0, 100.0, 400.0, 2000.0),
    },
    # gradient steps, and searches of all training theorems before them
    cost="iterations",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "The cause that was claimed is not it. With step and threshold tuned, leaving both tails out proves 0.425 and "
    "training on all 0.404 (+0.021 [0.002, 0.036]), ahead by 0.01 in 67 % of 24 worlds [47, 82]. But the lead "
    "falls with the number of steps that close nothing: 0.050 where there are none, 0.009 with 15 and with 90. "
    "The best threshold is the highest that was tried, which leaves out nearly no noise. It turns with the goals "
    "of a theorem, behind with four and five; a restart loses 0.057."
)
