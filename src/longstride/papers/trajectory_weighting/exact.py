"""Trajectory weighting in random worlds, on episodes of which few are good."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.worlds.chains import draw
from longstride.exact.worlds.discounted import DiscountedWorld, random_world
from longstride.stats import Ordering


class MixedEpisodes(ExactProblem):
    """A random world, and episodes of which a share comes from a good policy. A solution is the world and a `policy`
    [S, A]."""

    states: Count = 20
    actions: Count = 4
    discount: Share = 0.9
    episodes: Count = 100
    """E."""
    length: Count = 20
    """H, the steps of each."""
    good: Share = 0.05
    """Share of them whose actions are the best ones four times out of five, and else uniform."""
    noise: Weight = 0.3
    """Deviation of a reward."""

    def draw(self, rng: np.random.Generator) -> State:
        """The world and the data: `state` [E, H + 1], `action` and `reward` [E, H]. Poor episodes share a random policy,
        half of it uniform."""
        world = random_world(rng, self.states, self.actions, self.discount)
        best = np.eye(self.actions)[world.optimal.argmax(1)]
        poor = 0.5 / self.actions + 0.5 * rng.dirichlet(np.full(self.actions, 0.5), size=self.states)
        policies = np.stack([0.8 * best + 0.2 / self.actions, poor])
        of_E = (np.arange(self.episodes) >= round(self.good * self.episodes)).astype(int)
        state = np.zeros((self.episodes, self.length + 1), int)
        action = np.zeros((self.episodes, self.length), int)
        state[:, 0] = rng.integers(self.states, size=self.episodes)
        choose, move = policies.cumsum(2), world.transitions.cumsum(2)
        for t in range(self.length):
            action[:, t] = draw(choose[of_E, state[:, t]], rng)
            state[:, t + 1] = draw(move[state[:, t], action[:, t]], rng)
        reward = world.rewards[state[:, :-1], action] + self.noise * rng.normal(size=action.shape)
        return {
            "transitions": world.transitions,
            "rewards": world.rewards,
            "state": state,
            "action": action,
            "reward": reward,
        }

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The `value` of the policy (see `DiscountedWorld.normalised`)."""
        world = DiscountedWorld(solution["transitions"], solution["rewards"], self.discount)
        return {"value": world.normalised(solution["policy"])}


class NearTheData(ExactMethod[MixedEpisodes]):
    """Values of the policy pi ~ pi_data exp(Q / lambda), all of episodes that are weighted; an iteration is a backup, and
    the start is cloning."""

    weights: Literal["uniform", "return", "advantage"] = "return"
    """Of episodes: all the same, RW, AW."""
    alpha: Positive = 0.1
    """Temperature of the weights."""
    temperature: Positive = 0.3
    """lambda: how near the policy stays to the data."""

    def start(self, problem: MixedEpisodes, rng: np.random.Generator) -> State:
        return problem.draw(rng) | {"q": np.zeros((problem.states, problem.actions))}

    def step(self, problem: MixedEpisodes, state: State, rng: np.random.Generator) -> State:
        world, data = self.model(problem, state)
        return state | {"q": world.backup((self.tilted(data, state["q"]) * state["q"]).sum(1))}

    def solution(self, problem: MixedEpisodes, state: State) -> Mapping[str, np.ndarray]:
        return state | {"policy": self.tilted(self.model(problem, state)[1], state["q"])}

    def tilted(self, data: np.ndarray, q: np.ndarray) -> np.ndarray:
        """[S, A] the policy: `data` times exp(Q / lambda), normalised."""
        policy = data * np.exp((q - q.max(1, keepdims=True)) / self.temperature)
        return policy / policy.sum(1, keepdims=True)

    def probabilities(self, returns: np.ndarray, first: np.ndarray) -> np.ndarray:
        """[E] of drawing a step of each episode.

        Args:
            returns: [E] sums of rewards.
            first: [E] first states.
        """
        if self.weights == "uniform":
            return np.full(len(returns), 1 / len(returns))
        x = returns
        if self.weights == "advantage":
            x = returns - np.array([returns[first == s].mean() for s in first])
        scaled = (x - x.min()) / max(float(np.ptp(x)), 1e-12)
        p = np.exp((scaled - 1) / self.alpha)
        return p / p.sum()

    def model(self, problem: MixedEpisodes, state: State) -> tuple[DiscountedWorld, np.ndarray]:
        """What the weighted data say of the world, and the policy [S, A] that they come from; of an action without data,
        no reward and any next state, and of a state without data, any action."""
        p_E = self.probabilities(state["reward"].sum(1), state["state"][:, 0])
        s, a, after = state["state"][:, :-1], state["action"], state["state"][:, 1:]
        counts = np.zeros((problem.states, problem.actions, problem.states))
        rewards = np.zeros(counts.shape[:2])
        weight = np.broadcast_to(p_E[:, None], a.shape)
        np.add.at(counts, (s, a, after), weight)
        np.add.at(rewards, (s, a), weight * state["reward"])
        n = counts.sum(2)
        seen = np.where(n > 0, n, 1.0)
        moves = np.where(n[..., None] > 0, counts / seen[..., None], 1 / problem.states)
        total = n.sum(1, keepdims=True)
        policy = np.where(total > 0, n / np.where(total > 0, total, 1.0), 1 / problem.actions)
        return DiscountedWorld(moves, rewards / seen, problem.discount), policy


RECIPE = ExactRecipe(
    name="trajectory_weighting/exact", problem=MixedEpisodes(), method=NearTheData(), iterations=150, every=50
)

_uniform = {"weights": "uniform"}
_good = RECIPE.replace(problem={"good": 1.0})
_more = {f"good_{share}": RECIPE.replace(problem={"good": share / 100}) for share in (60, 20)}
_weighted = ("return", "advantage", *(f"{share}_return" for share in _more))

CLAIM = Claim(
    name="trajectory_weighting/exact",
    paper="arXiv 2306.13085, abstract and figure on mixed datasets",
    statement="Where few episodes of the data are good, drawing them by their return makes the policy better, each at its own "
    "best temperature, in most of the worlds that are drawn.",
    measure="value",
    recipe=RECIPE,
    arms={
        "return": RECIPE,
        "uniform": RECIPE.replace(method=_uniform),
        "advantage": RECIPE.replace(method={"weights": "advantage"}),
        **{f"{share}_return": arm for share, arm in _more.items()},
        **{f"{share}_uniform": arm.replace(method=_uniform) for share, arm in _more.items()},
    },
    expected=Ordering(relations=("return > uniform by 0.1",)),
    # the fewer are good, the less data that count alike say of good actions
    dose=(*(f"{share}_return > {share}_uniform" for share in _more), "return > uniform"),
    worlds={
        "problem.states": Between(low=10, high=30),
        "problem.actions": Between(low=3, high=6),
        "problem.episodes": Between(low=50, high=200, log=True),
        "problem.noise": Between(low=0.1, high=1.0, log=True),
    },
    grid={
        "method.temperature": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        **{f"{arm}: method.alpha": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0) for arm in _weighted},
    },
    cost="iterations",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "The earlier effect is gone. Each at its own best temperature drawing by return ends with 0.934 of the scale and drawing evenly "
    "with 0.930 (+0.004 [-0.001, 0.011]), and in none of 40 worlds is the lead 0.1. At the temperature of 0.3 that was kept "
    "before, a policy had to stay near poor data; tuned, it is 0.01 and lower, and evenly drawn data say enough to leave them."
)
