"""Goedel-Prover-V2 on tasks that are solved step by step, by a prover that is told what is wrong."""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Share
from longstride.exact.answers import Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, State, recipe
from longstride.stats import Ordering


class Theorems(ExactProblem):
    """Tasks of several levels with a verifier. Measures: `success` (mean over levels), and by level `success_1`, ..."""

    levels: Annotated[tuple[Chance, ...], Field(min_length=1)] = (0.02, 0.1, 0.3, 0.6, 0.9)
    """Chance of a right proof in one go."""
    length: Count = 6
    """Steps of a proof."""
    honest: Share = 1.0
    """Chance that the verifier names the first wrong step of a proof; otherwise it names any."""

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        success = solution["won"] / max(float(solution["played"]), 1.0)
        return {"success": float(success.mean()), **{f"success_{k}": float(s) for k, s in enumerate(success, 1)}}


class Proving(ExactMethod[Theorems]):
    """Attempts at tasks, each after what the verifier said of the one before."""

    attempts: Count = 12
    """In all: of each chain the first one, and rounds of correction."""
    chains: Count = 1
    """Proofs that are begun apart from each other, among which the attempts are divided evenly."""
    told: Literal["step", "nothing"] = "step"
    """What the verifier says: a step, before which all is kept; or nothing, and the next attempt keeps no step."""
    tasks: Count = 200
    """Of each level in an iteration."""

    def start(self, problem: Theorems, rng: np.random.Generator) -> State:
        return {"won": np.zeros(len(problem.levels)), "played": np.zeros(())}

    def step(self, problem: Theorems, state: State, rng: np.random.Generator) -> State:
        chances = [p ** (1 / problem.length) for p in problem.levels]
        won = [self.proved(chance, problem.length, rng, problem.honest).sum() for chance in chances]
        return {"won": state["won"] + won, "played": state["played"] + self.tasks}

    def spent(self, problem: Theorems, state: State) -> Mapping[str, float]:
        """Attempts that were allowed; a proof that is right ends those at its chain in all arms."""
        return {"attempts": float(state["played"]) * len(problem.levels) * self.attempts}

    def proved(self, chance: float, length: int, rng: np.random.Generator, honest: float = 1.0) -> np.ndarray:
        """[N] which of `tasks` are proved, given the chance of a right step and that of a right word of the verifier."""
        shape = self.attempts // self.chains, self.tasks, self.chains
        drawn_RNCT = rng.random((*shape, length)) < chance
        honest_RNC, any_RNC = rng.random(shape) < honest, rng.integers(length, size=shape)
        kept_NC, right_NCT = np.zeros(shape[1:], int), np.zeros((*shape[1:], length), bool)
        done_NC: np.ndarray = np.zeros(shape[1:], bool)
        for drawn_NCT, honest_NC, any_NC in zip(drawn_RNCT, honest_RNC, any_RNC, strict=True):
            anew_NCT = (np.arange(length) >= kept_NC[..., None]) & ~done_NC[..., None]
            right_NCT = np.where(anew_NCT, drawn_NCT, right_NCT)
            done_NC = np.asarray(right_NCT.all(-1))
            if self.told == "step":
                kept_NC = np.where(honest_NC, right_NCT.argmin(-1), any_NC)
        return np.asarray(done_NC.any(-1))


class Conjectures(ExactProblem):
    """Tasks with several answers, each of which is known by features; a policy is a weight of each feature, and a task's
    right answer is drawn as a policy with weights that nobody knows would answer it. Measures on tasks that were not
    trained on: `success`, the chance of a right answer among `attempts`, and `pass_1`."""

    tasks: Count = 300
    """To be trained on, and as many to be tested on."""
    answers: Annotated[int, Field(ge=2)] = 16
    features: Count = 20
    truth: Positive = 0.4
    """Deviation of the weights that nobody knows."""
    known: Share = 0.5
    """How much of them the policy has at the start."""
    attempts: Count = 32

    def begin(self, rng: np.random.Generator) -> State:
        """Draws features, right answers and the weights of the start."""
        truth_F = rng.normal(size=self.features) * self.truth
        features_MAF = rng.normal(size=(2 * self.tasks, self.answers, self.features))
        noise_MA = rng.gumbel(size=features_MAF.shape[:2])
        right_M = (features_MAF @ truth_F + noise_MA).argmax(1)
        return {
            "start": self.known * truth_F,
            "weights": self.known * truth_F,
            "features": features_MAF,
            "right": right_M,
        }

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        policy_MA = chances(solution["features"][self.tasks :], solution["weights"])
        right_M = policy_MA[np.arange(self.tasks), solution["right"][self.tasks :].astype(int)]
        return {"success": float((1 - (1 - right_M) ** self.attempts).mean()), "pass_1": float(right_M.mean())}


def chances(features_MAF: np.ndarray, weights_F: np.ndarray) -> np.ndarray:
    """[M, A] of answers."""
    logits_MA = features_MAF @ weights_F
    p_MA = np.exp(logits_MA - logits_MA.max(1, keepdims=True))
    return p_MA / p_MA.sum(1, keepdims=True)


class Sharpening(ExactMethod[Conjectures]):
    """Gradient ascent on the success at training tasks; what is measured is an average with the start."""

    lr: Positive = 1.0
    steps: Count = 20
    """In an iteration."""
    share: Share = 1.0
    """Of the trained weights in the average."""

    def start(self, problem: Conjectures, rng: np.random.Generator) -> State:
        return problem.begin(rng)

    def step(self, problem: Conjectures, state: State, rng: np.random.Generator) -> State:
        weights_F, features_MAF = state["weights"], state["features"][: problem.tasks]
        tasks, right_M = np.arange(problem.tasks), state["right"][: problem.tasks].astype(int)
        for _ in range(self.steps):
            policy_MA = chances(features_MAF, weights_F)
            mean_MF = np.einsum("ma,maf->mf", policy_MA, features_MAF)
            p_M = policy_MA[tasks, right_M]
            weights_F = weights_F + self.lr * (p_M[:, None] * (features_MAF[tasks, right_M] - mean_MF)).mean(0)
        return state | {"weights": weights_F}

    def solution(self, problem: Conjectures, state: State) -> Mapping[str, np.ndarray]:
        return state | {"weights": (1 - self.share) * state["start"] + self.share * state["weights"]}


RECIPE = recipe("goedel_prover/exact", Theorems(), Proving(), iterations=10)
TRAINED = recipe("goedel_prover/exact", Conjectures(), Sharpening(), iterations=10)
_doses = {f"honest_{chance:g}": RECIPE.replace(problem={"honest": chance}) for chance in (0.0, 0.4, 0.8)}

CLAIM = Claim(
    name="goedel_prover/exact",
    paper="arXiv 2508.03613, abstract",
    statement="Told which step is wrong, a prover solves more in twelve attempts than without a word, each at its own best "
    "division of them into chains, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "told": RECIPE,
        "blind": RECIPE.replace(method={"told": "nothing"}),
        **_doses,
        "trained": TRAINED,
        "averaged": TRAINED.replace(method={"share": 0.8}),
        "start": TRAINED.replace(method={"share": 0.0}),
    },
    expected=Ordering(relations=("told > blind by 0.05",)),
    # a verifier that names any step whatever helps nobody; the more often it is right, the more it does
    dose=tuple(f"{honest} > blind" for honest in _doses),
    reported=Ordering(
        relations=("averaged > trained", "trained > averaged in pass_1", "trained > start in pass_1"),
    ),
    worlds={
        "problem.levels": Between(low=0.005, high=0.5, log=True, shape=(5,)),
        "problem.length": Between(low=3, high=12),
        "problem.honest": Between(low=0.3, high=1.0),
    },
    grid={"method.chains": (1, 2, 3, 4, 6, 12)},
    cost="attempts",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It holds in all 40 worlds: of twelve attempts a prover that is told solves 0.81 and a blind one 0.47 (+0.34 "
    "[0.30, 0.39]). Told, it is best in one chain; blind, any division is as good. The more often the verifier is "
    "right, the larger the lead, 0.21 where that is a third to a half of its words; where it names any step "
    "whatever nothing is gained or lost, by chains of one attempt."
)
