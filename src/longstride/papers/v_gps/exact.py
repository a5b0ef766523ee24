"""V-GPS in random worlds: values choose among the actions that a cloned policy proposes."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.worlds.discounted import DiscountedWorld, random_world
from longstride.stats import Ordering


class Proposals(ExactProblem):
    """A random world, a policy that was cloned from mixed data, and transitions of it. A solution has `policy` [S, A]."""

    states: Count = 20
    actions: Count = 8
    discount: Share = 0.9
    samples: Count = 2000
    """Transitions of uniform states and the policy's actions."""
    noise: Weight = 0.3
    """Deviation of a reward."""
    good: Share = 0.2
    """Share of the best action in the policy; the rest is Dirichlet(1)."""

    def draw(self, rng: np.random.Generator) -> State:
        """The world, the `proposals` [S, A] of the policy, and what the data say: `mean` [S, A], `next` [S, A, S]."""
        world = random_world(rng, self.states, self.actions, self.discount)
        proposals = self.good * np.eye(self.actions)[world.optimal.argmax(1)]
        proposals = proposals + (1 - self.good) * rng.dirichlet(np.ones(self.actions), size=self.states)
        n = rng.multinomial(self.samples, proposals.ravel() / self.states).reshape(proposals.shape)
        seen = np.maximum(n, 1)
        mean = np.where(n > 0, world.rewards + self.noise / np.sqrt(seen) * rng.normal(size=n.shape), 0.0)
        after = np.where(n[..., None] > 0, rng.multinomial(n, world.transitions) / seen[..., None], 1 / self.states)
        return {
            "transitions": world.transitions,
            "rewards": world.rewards,
            "proposals": proposals,
            "mean": mean,
            "next": after,
            "luck": rng.normal(size=n.shape),
        }

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The `value` of what acts (see `DiscountedWorld.normalised`)."""
        world = DiscountedWorld(solution["transitions"], solution["rewards"], self.discount)
        return {"value": world.normalised(solution["policy"])}


class BestProposal(ExactMethod[Proposals]):
    """The values of the proposals' own policy, an iteration a backup on the data, and the best of K proposals by them."""

    proposals: Count = 10
    """K."""
    critic: Literal["learned", "random"] = "learned"
    """What ranks: the values, or numbers that say nothing."""
    sharpness: Positive = 1.0
    """Power of the policy's chances that proposals are drawn with: above 1 the likeliest come more often."""

    def start(self, problem: Proposals, rng: np.random.Generator) -> State:
        return problem.draw(rng) | {"q": np.zeros((problem.states, problem.actions))}

    def step(self, problem: Proposals, state: State, rng: np.random.Generator) -> State:
        after = (state["proposals"] * state["q"]).sum(1)
        return state | {"q": DiscountedWorld(state["next"], state["mean"], problem.discount).backup(after)}

    def solution(self, problem: Proposals, state: State) -> Mapping[str, np.ndarray]:
        score = state["q"] if self.critic == "learned" else state["luck"]
        likelier = (state["proposals"] / state["proposals"].max(1, keepdims=True)) ** self.sharpness
        return state | {"policy": best_of(likelier / likelier.sum(1, keepdims=True), score, self.proposals)}

    def spent(self, problem: Proposals, state: State) -> Mapping[str, float]:
        """Transitions that it is given; the number of proposals at a test is what arms differ in."""
        return {"samples": float(problem.samples)}


def best_of(proposals: np.ndarray, score: np.ndarray, count: int) -> np.ndarray:
    """[S, A] probability that an action is the best of `count` independent proposals; of equal scores, the first one
    drawn is taken."""
    no_more = (score[:, None, :] <= score[:, :, None]).astype(float) @ proposals[:, :, None]
    less = (score[:, None, :] < score[:, :, None]).astype(float) @ proposals[:, :, None]
    total = (no_more - less)[..., 0]
    share = np.divide(proposals, total, out=np.zeros_like(proposals), where=total > 0)
    return share * (no_more[..., 0] ** count - less[..., 0] ** count)


RECIPE = ExactRecipe(name="v_gps/exact", problem=Proposals(), method=BestProposal(), iterations=60, every=20)
_one = {"method": {"proposals": 1}}
_doses = {f"samples_{n}": RECIPE.replace(problem={"samples": n}) for n in (50, 200, 1000)}

CLAIM = Claim(
    name="v_gps/exact",
    paper="arXiv 2410.13816, abstract",
    statement="The best of ten proposals by learned values is worth more than a proposal, each with the policy as sharp as is "
    "best for it, in most of the worlds that are drawn.",
    measure="value",
    recipe=RECIPE,
    arms={
        "best_of_10": RECIPE,
        "best_of_1": RECIPE.replace(**_one),
        "best_of_3": RECIPE.replace(method={"proposals": 3}),
        "best_of_50": RECIPE.replace(method={"proposals": 50}),
        "random_of_10": RECIPE.replace(method={"critic": "random"}),
        **{f"{samples}_best_of_10": arm for samples, arm in _doses.items()},
        **{f"{samples}_best_of_1": arm.replace(**_one) for samples, arm in _doses.items()},
    },
    expected=Ordering(relations=("best_of_10 > best_of_1 by 0.2",)),
    # the fewer transitions values were learned from, the less they say of a proposal
    dose=tuple(f"{samples}_best_of_10 > {samples}_best_of_1" for samples in _doses),
    reported=Ordering(relations=("best_of_10 > best_of_3", "best_of_50 > best_of_10", "random_of_10 > best_of_1")),
    worlds={
        "problem.samples": Between(low=500, high=8000, log=True),
        "problem.good": Between(low=0.05, high=0.5),
        "problem.noise": Between(low=0.1, high=1.0, log=True),
        "problem.actions": Between(low=4, high=16),
    },
    # from nearly even proposals to the likeliest action alone
    grid={"method.sharpness": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 256.0, 4096.0, 65536.0, 1048576.0)},
    cost="samples",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "Open, and much smaller than at a policy that is not sharpened: worth 0.939 and 0.733 (+0.21 [0.11, 0.31]), "
    "above 0.2 in 35 % of the worlds [22, 50]. A cloned policy alone is best where it takes its likeliest action. "
    "Where it has at most a quarter of its chance for the best action, values choose better by 0.56; where it has "
    "more than 0.4, its likeliest action is the best one, and values are behind by 0.04."
)
