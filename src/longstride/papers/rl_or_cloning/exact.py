"""Offline RL beside behavioural cloning, where success is computed."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Share, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.worlds.chains import Walks, greedy, lanes, simulate, value_of
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.stats import Ordering


class Lanes(ExactProblem):
    """A road of lanes with critical cells, drawn by the seed, and an expert's data on it. Measures: `success`, the chance
    that the policy gets to the end (the expert: 1); `known`, share of the cells that the data holds."""

    columns: Count = 50
    """Steps to the end."""
    width: Count = 5
    """Lanes."""
    critical: Share = 0.1
    """Chance of a cell to be critical."""
    slip: Share = 0.05
    """Chance to come out in a random lane."""

    def begin(self, rng: np.random.Generator) -> State:
        """Critical cells and their right actions, and data without a walk."""
        shape = (self.columns, self.width)
        return {
            "critical": rng.random(shape) < self.critical,
            "right": rng.integers(3, size=shape),
            "counts": np.zeros((*shape, 3, self.width + 1)),
            "earned": np.zeros((*shape, 3)),
            "policy": np.full((*shape, 3), 1 / 3),
        }

    def world(self, state: Mapping[str, np.ndarray]) -> EnumerableMDP:
        return lanes(state["critical"], state["right"], self.slip)

    def expert(self, state: Mapping[str, np.ndarray], noise: float) -> np.ndarray:
        """[columns, lanes, 3] of an expert that takes a random action with the chance `noise`."""
        home = np.sign(self.width // 2 - np.arange(self.width)) + 1
        best = np.where(state["critical"], state["right"], home)
        return (1 - noise) * np.eye(3)[best] + noise / 3

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        seen = solution["counts"].sum((2, 3)) > 0
        return {"success": value_of(self.world(solution), by_state(solution["policy"])), "known": float(seen.mean())}


def by_state(policy: np.ndarray) -> np.ndarray:
    """[S, 3] of a policy [columns, lanes, 3]; the state of the end comes last."""
    return np.append(policy.reshape(-1, 3), np.full((1, 3), 1 / 3), axis=0)


class _FromData(ExactMethod[Lanes]):
    """Adds walks of the expert to the data, and makes a policy from all of it."""

    walks: Count = 5
    """An iteration."""
    noise: Share = 0.0
    """Of the expert's actions."""
    reach: Weight = 0.0
    """Lanes over which a cell that the data does not hold takes its policy from others of its column: their weight falls
    by e with each. 0: there any action is as good."""

    def start(self, problem: Lanes, rng: np.random.Generator) -> State:
        return problem.begin(rng)

    @abstractmethod
    def policy(self, counts: np.ndarray, earned: np.ndarray) -> np.ndarray:
        """[columns, lanes, 3] from what `counted` makes of all walks."""

    def step(self, problem: Lanes, state: State, rng: np.random.Generator) -> State:
        policy = by_state(problem.expert(state, self.noise))
        counts, earned = counted(simulate(problem.world(state), policy, self.walks, rng), problem.width)
        counts, earned = counts + state["counts"], earned + state["earned"]
        found = borrowed(self.policy(counts, earned), counts.sum((2, 3)) > 0, self.reach)
        return state | {"counts": counts, "earned": earned, "policy": found}

    def spent(self, problem: Lanes, state: State) -> Mapping[str, float]:
        """Walks: each begins in the first column."""
        return {"walks": float(state["counts"][0].sum())}


def borrowed(policy: np.ndarray, seen: np.ndarray, reach: float) -> np.ndarray:
    """[columns, lanes, 3] of which cells that are not `seen` [columns, lanes] have what others of their column do."""
    if not reach:
        return policy
    lanes = np.arange(seen.shape[1])
    weight = np.exp(-np.abs(lanes[:, None] - lanes) / reach) * seen[:, None]
    mixed = weight @ policy / np.maximum(weight.sum(2, keepdims=True), 1e-300)
    return np.where((~seen & seen.any(1, keepdims=True))[..., None], mixed, policy)


def counted(walks: Walks, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Transitions counted [columns, lanes, 3, lanes + 1], the last for the end, and rewards added up [columns, lanes, 3]."""
    columns = walks.actions.shape[1]
    counts, earned = np.zeros((columns, width, 3, width + 1)), np.zeros((columns, width, 3))
    s, a, after = (x[walks.alive] for x in (walks.states[:, :-1], walks.actions, walks.states[:, 1:]))
    np.add.at(counts, (s // width, s % width, a, np.where(after == columns * width, width, after % width)), 1)
    np.add.at(earned, (s // width, s % width, a), walks.rewards[walks.alive])
    return counts, earned


class ExpertCloning(_FromData):
    """Does what the data's expert did, as often."""

    def policy(self, counts: np.ndarray, earned: np.ndarray) -> np.ndarray:
        taken = counts.sum(3)
        total = taken.sum(2, keepdims=True)
        return np.where(total > 0, taken / np.maximum(total, 1), 1 / 3)


class Pessimistic(_FromData):
    """Value iteration with lower confidence bounds, from the last column to the first."""

    penalty: Weight = 0.01
    """b."""

    def policy(self, counts: np.ndarray, earned: np.ndarray) -> np.ndarray:
        return greedy(self.values(counts, earned))

    def values(self, counts: np.ndarray, earned: np.ndarray) -> np.ndarray:
        """[columns, lanes, 3] pessimistic values."""
        n = counts.sum(3)
        some = np.maximum(n, 1)
        q, ahead = np.zeros(n.shape), np.zeros(n.shape[1] + 1)
        for c in reversed(range(len(q))):
            q[c] = (earned[c] + counts[c] @ ahead) / some[c] - self.penalty / np.sqrt(some[c])
            q[c] = np.where(n[c] > 0, np.maximum(q[c], 0), 0)
            ahead[:-1] = q[c].max(1)
        return q


RECIPE = ExactRecipe(name="rl_or_cloning/exact", problem=Lanes(), method=Pessimistic(noise=0.2), iterations=4)

_rl = RECIPE.replace(every=4)
_cloning = _rl.replace(method=ExpertCloning())
_shares = {f"critical_{k:g}": {"critical": k} for k in (0.3, 0.15, 0.08)}

CLAIM = Claim(
    name="rl_or_cloning/exact",
    paper="arXiv 2204.05618, abstract",
    statement="With a long horizon and few critical states, pessimistic values from as many walks of a noisy expert beat "
    "cloning of the expert, each at its own best reach, in most of the worlds that are drawn; the more states are critical, "
    "the less.",
    recipe=_rl,
    arms={
        "rl_noisy": _rl,
        "cloning": _cloning,
        **{f"{share}_rl_noisy": _rl.replace(problem=problem) for share, problem in _shares.items()},
        **{f"{share}_cloning": _cloning.replace(problem=problem) for share, problem in _shares.items()},
    },
    measure="success",
    expected=Ordering(relations=("rl_noisy > cloning by 0.05",)),
    # where half of the cells are critical no noisy walk arrives, and values of nothing are at the floor
    dose=tuple(f"{share}_rl_noisy > {share}_cloning" for share in _shares),
    worlds={
        "problem.columns": Between(low=25, high=100, log=True),
        "problem.width": Between(low=3, high=9),
        "problem.critical": Between(low=0.03, high=0.3, log=True),
        "problem.slip": Between(low=0.02, high=0.15, log=True),
        "method.walks": Between(low=2, high=12, log=True),
        "method.noise": Between(low=0.1, high=0.4),
    },
    # cloning has no penalty, so it is that of before for all
    grid={"method.reach": (0.0, 0.3, 1.0, 3.0, 10.0)},
    cost="walks",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It is open, and there in about half of the worlds: values from noisy walks lead in 55 % of them [40, 69] and are behind "
    "in 33 %, with success of 0.806 and 0.775 (+0.031 [-0.032, 0.085]), each at its own best reach. The cause is the one that "
    "is claimed: the lead is -0.219 with 30 % of the cells critical, -0.017 with 15 % and +0.037 with 8 %. In three worlds "
    "values end at 0, where cloning reaches 0.39 to 0.68; in the 37 others the lead is 0.075. A longer way does not help: it "
    "is -0.040 in the longest third."
)
