"""Worlds with logged data, and Q-learning from it whose every gradient is computed over all of the data: what the mechanisms
of CQL, Cal-QL and WSRL are shown on.

What always holds: the conservative term is that of `control.conservative`, over all actions instead of sampled ones;
values are [S, A], linear in features of a state and an action, or a table; true values are known. A return of the data is
its expectation, the value of the policy that made the data.
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from longstride.control.conservative import calibrate, gap
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero, Positive, Share, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, State
from longstride.exact.worlds.discounted import DiscountedWorld, random_world

REFRESH = 25
"""Updates between new targets."""
SEEDS = tuple(range(100, 130))
"""Of the claims; settings were chosen on seeds 0 to 9."""


class LoggedWorld(ExactProblem):
    """A random world and data of it. A solution is what `LoggedQ` keeps."""

    states: Count = 20
    actions: Count = 5
    features: CountOrZero = 0
    """Numbers that a state and an action have, normal; values are linear in them. 0: a table."""
    discount: Annotated[float, Field(ge=0, lt=1)] = 0.9
    samples: Count = 400
    """Transitions of the data, from uniformly drawn states."""
    held: Count = 5
    """Actions of each state that the data holds, drawn at random."""
    expert: Share = 0.0
    """Share of the best action in the data, which is then held too; the rest is uniform over what is held."""

    def draw(self, rng: np.random.Generator) -> State:
        """World, `phi` [S, A, F], the data's policy `behaviour` [S, A], and the data: times that an action was taken
        `count` [S, A], and led to a state `led` [S, A, S]."""
        if self.held > self.actions:
            raise ConfigError(f"a state has {self.actions} actions, and the data cannot hold {self.held} of them")
        world, pairs = random_world(rng, self.states, self.actions, self.discount), self.states * self.actions
        some = rng.random((self.states, self.actions)).argsort(1).argsort(1) < self.held
        best = np.eye(self.actions)[world.optimal.argmax(1)]
        behaviour = self.expert * best + (1 - self.expert) * some / self.held
        count = rng.multinomial(self.samples, behaviour.ravel() / self.states).reshape(behaviour.shape)
        shape = (self.states, self.actions, self.features)
        return {
            "transitions": world.transitions,
            "rewards": world.rewards,
            "behaviour": behaviour,
            "count": count.astype(float),
            "phi": rng.normal(size=shape) / np.sqrt(self.features)
            if self.features
            else np.eye(pairs).reshape(*shape[:2], -1),
            "led": rng.multinomial(count, world.transitions).astype(float),
        }

    def world(self, state: Mapping[str, np.ndarray]) -> DiscountedWorld:
        return DiscountedWorld(state["transitions"], state["rewards"], self.discount)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """`value` of the greedy policy (see `DiscountedWorld.normalised`); `overestimate`: by how much the learned values are
        above its true ones, in the mean over states; `below`: share of the states whose learned value is below that of
        the data's policy; `dip`: how far `value` fell below the one it had when it went online; `least`: down to where."""
        world, q = self.world(solution), solution["phi"] @ solution["w"]
        policy = np.eye(self.actions)[q.argmax(1)]
        return {
            "value": world.normalised(policy),
            "overestimate": float((q.max(1) - world.values(policy)).mean()),
            "below": float((q.max(1) < world.values(solution["behaviour"])).mean()),
            "dip": float(solution["dip"]),
            "least": float(solution["before"] - solution["dip"]),
        }


class LoggedQ(ExactMethod[LoggedWorld]):
    """Q-learning from the data, then online: plain, conservative (CQL) or calibrated (Cal-QL)."""

    weight: Weight = 0.0
    """Of the conservative term; 0: none."""
    calibrated: bool = False
    """Whether it leaves values alone that are below those of the data's policy."""
    updates: Count = 50
    """Steps of Adam in an iteration, which begins with new moments."""
    lr: Positive = 0.05
    """Their rate."""
    offline: Count = 20
    """Iterations before it goes online."""
    warmup: CountOrZero = 0
    """Iterations online in which it collects and learns nothing."""
    retained: bool = True
    """Whether the data stays, with as much weight as all that was collected."""
    conservative: bool = True
    """Whether the term stays online."""
    episodes: Count = 2
    """Collected in an iteration online, by the greedy policy; one action in ten is random."""
    length: Count = 20
    """Steps of an episode."""

    def start(self, problem: LoggedWorld, rng: np.random.Generator) -> State:
        state, top = problem.draw(rng), 1 / (1 - problem.discount)
        pairs = state["phi"].shape[2]
        new = {name: np.zeros_like(state[of]) for name, of in (("new_count", "count"), ("new_led", "led"))}
        # the values of what was never learned are anything that is possible
        w = rng.normal(size=pairs) if problem.features else rng.uniform(0, top, pairs)
        return state | new | {"w": w, "iteration": np.zeros(()), "before": np.zeros(()), "dip": np.zeros(())}

    def step(self, problem: LoggedWorld, state: State, rng: np.random.Generator) -> State:
        i = int(state["iteration"]) + 1
        state = state | {"iteration": np.array(i)}
        if i <= self.offline:
            state = state | {"w": self.learned(problem, state, state["count"], state["led"], self.weight)}
            return state | {"before": np.array(problem.measures(state)["value"])}
        count, led = collected(problem, state, self.episodes, self.length, rng)
        count, led = count + state["new_count"], led + state["new_led"]
        state = state | {"new_count": count, "new_led": led}
        if i <= self.offline + self.warmup:
            return state
        if self.retained:
            share = count.sum() / state["count"].sum()
            count, led = count + share * state["count"], led + share * state["led"]
        state = state | {"w": self.learned(problem, state, count, led, self.weight * self.conservative)}
        fallen = state["before"] - problem.measures(state)["value"]
        return state | {"dip": np.maximum(state["dip"], fallen)}

    def learned(
        self, problem: LoggedWorld, state: State, count: np.ndarray, led: np.ndarray, weight: float
    ) -> np.ndarray:
        """The weights of the features after some updates."""
        w = torch.tensor(state["w"], requires_grad=True)
        adam = torch.optim.Adam([w], lr=self.lr)
        phi, taken = torch.from_numpy(state["phi"]), torch.from_numpy(count / count.sum())
        rewards, after = torch.from_numpy(state["rewards"]), torch.from_numpy(led / np.maximum(count, 1e-9)[..., None])
        floor = torch.from_numpy(problem.world(state).values(state["behaviour"]))
        for k in range(self.updates):
            q = phi @ w
            if k % REFRESH == 0:
                with torch.no_grad():
                    target = (rewards + problem.discount * after @ q.amax(1)).clamp(0, 1 / (1 - problem.discount))
            loss = (taken * (q - target).square()).sum()
            if weight:
                loss = loss + weight * self.term(q, taken, floor)
            adam.zero_grad()
            loss.backward()
            adam.step()
        return w.detach().numpy()

    def term(self, q: Tensor, taken: Tensor, floor: Tensor) -> Tensor:
        """The conservative gap in the mean over the data: [S, A] values and shares of the data, [S] values of its policy."""
        of_state = taken.sum(1)
        data = (taken * q).sum(1) / of_state.clamp_min(1e-12)
        lowered = calibrate(q[None], floor, uniform=0) if self.calibrated else q[None]
        return (of_state * gap(lowered, torch.zeros_like(q), data[None])[0]).sum()


def collected(
    problem: LoggedWorld, state: State, episodes: int, length: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of actions [S, A] and of where they led [S, A, S] in new episodes."""
    count, led = np.zeros_like(state["count"]), np.zeros_like(state["led"])
    best, moves = (state["phi"] @ state["w"]).argmax(1), state["transitions"].cumsum(2)
    s = rng.integers(problem.states, size=episodes)
    for _ in range(length):
        a = np.where(rng.random(episodes) < 0.1, rng.integers(problem.actions, size=episodes), best[s])
        after = (moves[s, a] < rng.random((episodes, 1)) * moves[s, a, -1:]).sum(1)
        np.add.at(count, (s, a), 1)
        np.add.at(led, (s, a, after), 1)
        s = after
    return count, led
