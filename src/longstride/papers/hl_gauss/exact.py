"""HL-Gauss in a random world with noisy rewards, whose values are known."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.worlds.discounted import DiscountedWorld, random_world
from longstride.models import flat
from longstride.models.heads import Head, HLGauss, Scalar
from longstride.models.mlp import MLP, Trunk
from longstride.stats import Ordering


class NoisyRewards(ExactProblem):
    """Values from transitions whose rewards are noisy. A solution is a world, and its estimated values `q` [S, A]."""

    states: Count = 20
    actions: Count = 3
    features: Count = 8
    """Numbers that a network sees of a state, standard normal."""
    discount: Share = 0.9
    samples: Count = 400
    """Transitions."""
    noise: Weight = 1.0
    """Deviation of a reward; its mean lies in [0, 1]."""

    def draw(self, rng: np.random.Generator) -> State:
        """A world, the features of its states, and data: `state`, `action`, `reward`, `after` [N]."""
        world = random_world(rng, self.states, self.actions, self.discount)
        s, a = rng.integers(self.states, size=self.samples), rng.integers(self.actions, size=self.samples)
        after = np.array([rng.choice(self.states, p=p) for p in world.transitions[s, a]])
        return {
            "transitions": world.transitions,
            "rewards": world.rewards,
            "state": s,
            "action": a,
            "after": after,
            "features": rng.normal(size=(self.states, self.features)).astype(np.float32),
            "reward": world.rewards[s, a] + self.noise * rng.normal(size=self.samples),
        }

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """`accuracy`: minus the root mean squared error of the values; `value` of the greedy policy (see
        `DiscountedWorld.normalised`)."""
        world = DiscountedWorld(solution["transitions"], solution["rewards"], self.discount)
        greedy = np.eye(self.actions)[solution["q"].argmax(1)]
        error = np.sqrt(((solution["q"] - world.optimal) ** 2).mean())
        return {"accuracy": -float(error), "value": world.normalised(greedy)}


class FittedQ(ExactMethod[NoisyRewards]):
    """Q-learning with a network, whose head says what its outputs mean and how they are moved."""

    head: Head
    """HL-Gauss, or a number under the squared error."""
    clamp: bool = True
    """Whether targets are clamped to the values that are possible, as the bins do."""
    trunk: Trunk = Trunk(width=64, depth=2, norm=False, activation="relu")
    """Hidden layers."""
    lr: Positive = 1e-3
    """Rate of Adam."""
    batch: Count = 64
    """Transitions of an update."""
    updates: Count = 10
    """Of an iteration; after it the target network is the network."""

    def start(self, problem: NoisyRewards, rng: np.random.Generator) -> State:
        net = self._net(problem, int(rng.integers(2**31)))
        return problem.draw(rng) | flat.arrays(net)

    def step(self, problem: NoisyRewards, state: State, rng: np.random.Generator) -> State:
        net, target = (flat.loaded(self._net(problem, 0), state) for _ in range(2))
        adam = flat.adam(net, state, self.lr)
        x, reward = torch.from_numpy(state["features"]), torch.from_numpy(state["reward"]).float()
        for _ in range(self.updates):
            rows = rng.integers(problem.samples, size=self.batch)
            with torch.no_grad():
                after = self.head.value(self.raw(problem, target, x[state["after"][rows]])).amax(1)
                goal = reward[rows] + problem.discount * after
            adam.zero_grad()
            self.loss(self.raw(problem, net, x[state["state"][rows]]), state["action"][rows], goal, problem).backward()
            adam.step()
        return state | flat.arrays(net, adam)

    def raw(self, problem: NoisyRewards, net: MLP, x: Tensor) -> Tensor:
        """[B, A, outputs] of [B, F] features."""
        return net(x)[0].unflatten(-1, (problem.actions, self.head.outputs))

    def loss(self, raw: Tensor, action: np.ndarray, target: Tensor, problem: NoisyRewards) -> Tensor:
        """A scalar, of [B, A, outputs] with [B] actions and targets."""
        chosen = raw[torch.arange(len(raw)), torch.from_numpy(action)]
        return self.head.loss(chosen, target.clamp(0.0, 1 / (1 - problem.discount)) if self.clamp else target).mean()

    def solution(self, problem: NoisyRewards, state: State) -> Mapping[str, np.ndarray]:
        with torch.no_grad():
            net = flat.loaded(self._net(problem, 0), state)
            q = self.head.value(self.raw(problem, net, torch.from_numpy(state["features"])))
        return state | {"q": q.double().numpy()}

    def _net(self, problem: NoisyRewards, seed: int) -> MLP:
        outputs = problem.actions * self.head.outputs
        return self.trunk.make(problem.features, outputs, torch.Generator().manual_seed(seed))


RECIPE = ExactRecipe(
    name="hl_gauss/exact",
    problem=NoisyRewards(),
    method=FittedQ(head=HLGauss(low=0.0, high=10.0, bins=51)),
    iterations=100,
    every=100,
)

_squared = {"head": Scalar()}
_noises = {f"noise_{k:g}": RECIPE.replace(problem={"noise": k}) for k in (0.0, 0.25)}

CLAIM = Claim(
    name="hl_gauss/exact",
    paper="arXiv 2403.03950, abstract and on noisy rewards",
    statement="Where rewards are noisy, values that are learned by classification are nearer to the true ones by 0.2 than those "
    "of a squared error, each at the step with which they are nearest, in most of the worlds that are drawn.",
    measure="accuracy",
    recipe=RECIPE,
    arms={
        "hl_gauss": RECIPE,
        "squared": RECIPE.replace(method=_squared),
        **{f"{noise}_hl_gauss": arm for noise, arm in _noises.items()},
        **{f"{noise}_squared": arm.replace(method=_squared) for noise, arm in _noises.items()},
    },
    expected=Ordering(relations=("hl_gauss > squared by 0.2",)),
    # where rewards are what they are, there is no noise to follow
    dose=(*(f"{noise}_hl_gauss > {noise}_squared" for noise in _noises), "hl_gauss > squared"),
    reported=Ordering(relations=("hl_gauss > squared in value",)),
    worlds={
        "problem.states": Between(low=10, high=40, log=True),
        "problem.actions": Between(low=2, high=6),
        "problem.features": Between(low=4, high=16, log=True),
        # values end at 1 / (1 - discount), and the bins at 10
        "problem.discount": Between(low=0.8, high=0.9),
        "problem.samples": Between(low=200, high=1600, log=True),
        "problem.noise": Between(low=0.5, high=2.0, log=True),
    },
    # a short step is an early stop, which is what a squared error needs where it follows noise
    grid={"method.lr": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    scale=(-10.0, 0.0),
    cost="iterations",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "The lead is there on average, and whether in most worlds is open: values nearer to the true ones by 0.33 [0.15, 0.53], by the margin "
    "in 58 % of the worlds [39, 76]. It rises with noise: none without, none at 0.25. It turns with how little there is to "
    "learn from: below 370 samples, and with 4 or 5 features, it holds in six and seven of eight worlds, from 10 features on in two "
    "of eight. What its greedy policy earns is the same (0.48 and 0.51)."
)
