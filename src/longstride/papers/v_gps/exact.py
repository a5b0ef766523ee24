"""V-GPS in random worlds: values choose among the actions that a cloned policy proposes."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Share, Weight
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

    def start(self, problem: Proposals, rng: np.random.Generator) -> State:
        return problem.draw(rng) | {"q": np.zeros((problem.states, problem.actions))}

    def step(self, problem: Proposals, state: State, rng: np.random.Generator) -> State:
        after = (state["proposals"] * state["q"]).sum(1)
        return state | {"q": DiscountedWorld(state["next"], state["mean"], problem.discount).backup(after)}

    def solution(self, problem: Proposals, state: State) -> Mapping[str, np.ndarray]:
        score = state["q"] if self.critic == "learned" else state["luck"]
        return state | {"policy": best_of(state["proposals"], score, self.proposals)}


def best_of(proposals: np.ndarray, score: np.ndarray, count: int) -> np.ndarray:
    """[S, A] probability that an action is the best of `count` independent proposals; of equal scores, the first one
    drawn is taken."""
    no_more = (score[:, None, :] <= score[:, :, None]).astype(float) @ proposals[:, :, None]
    less = (score[:, None, :] < score[:, :, None]).astype(float) @ proposals[:, :, None]
    total = (no_more - less)[..., 0]
    share = np.divide(proposals, total, out=np.zeros_like(proposals), where=total > 0)
    return share * (no_more[..., 0] ** count - less[..., 0] ** count)


RECIPE = ExactRecipe(name="v_gps/exact", problem=Proposals(), method=BestProposal(), iterations=60, every=20)
_random = {"critic": "random"}

CLAIM = Claim(
    name="v_gps/exact",
    paper="arXiv 2410.13816, abstract",
    statement="The best of ten proposals by learned values is worth more than a proposal.",
    measure="value",
    recipe=RECIPE,
    arms={
        **{f"best_of_{k}": RECIPE.replace(method={"proposals": k}) for k in (1, 3, 10, 50)},
        "random_of_10": RECIPE.replace(method=_random),
        "random_of_1": RECIPE.replace(method=_random | {"proposals": 1}),
    },
    expected=Ordering(relations=("best_of_10 > best_of_1 by 0.2",)),
    # what ranks by chance ranks nothing
    control=Ordering(relations=("random_of_10 > random_of_1 by 0.2",)),
    seeds=tuple(range(100, 150)),
)
