"""V-GPS: a critic chooses among what a policy proposes. Nakamoto et al., 2024, arXiv 2410.13816.

A robot policy that was cloned from mixed data proposes good actions and bad ones. V-GPS leaves it as it is, trains a
critic on offline data apart from it, and at test time draws K actions and takes one with probability

    softmax(Q(s, a_1) / beta, ..., Q(s, a_K) / beta)

so any policy that can be sampled from is made better, without its weights.

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | data, tasks | Bridge and Fractal; 12 tasks, 5 generalist policies | `PointMaze`, 60 noisy walks; five test tasks |
| policy | cloned, not trained further | Octo, RT-1-X, OpenVLA | `GaussianPolicy`; any policy works (`level.policy`) |
| value | Cal-QL | language, ResNet-34; gamma 0.98, alpha 5 | `TDCritic`, calibrated; goals as state; 0.99, alpha 1 |
| test | `ReRanked` | K = 10 to 50, beta 1 and less | K = 10, beta 0.1 |
| update | Adam | critic 3e-4, 500k to 1M updates | 1e-3, 1,200 updates |

`Proposals` is the model of the claim: a table of values, where the policy that re-ranks K proposals is known. If a share
F(a) of the proposals in a state is valued no more than a, then a is taken with probability F(a)^K - F(a-)^K.

Deviations: the critic's targets take the cloned policy's actions, since a level has one policy. On the maze one run
(seed 0) goes from 0.08 to 0.60 of the test episodes; K and critics were not compared there.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from longstride.claims.claim import Claim
from longstride.control import (
    BestOfN,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    CriticNets,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TrainingPhase,
)
from longstride.control.extraction import Actor
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.envs.exact.worlds import World, random_world
from longstride.recipes.setups import maze
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.stats import Ordering


class ReRanked(BestOfN):
    """One of K proposals of a cloned policy, drawn by the softmax of their scores."""

    samples: Count = 10
    """K."""
    beta: Positive = 0.1
    """Temperature, in units of the value; towards 0 the best is taken."""

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, generator, self.samples)
        weight_BK = (critic.score(state_BS, action_BKA) / self.beta).softmax(1)
        chosen_B = torch.multinomial(weight_BK, 1, generator=generator)[:, 0]
        return action_BKA[torch.arange(len(chosen_B)), chosen_B]


RECIPE = ControlRecipe(
    name="v_gps",
    tasks=maze.ONLINE.replace(episodes=60, noise=1.5),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(goals=Given(), reward_scale=maze.SUCCESS),
                critic=maze.CRITIC.replace(conservative=maze.CONSERVATIVE.replace(calibrated=True)),
                policy=GaussianPolicy(trunk=maze.TRUNK),
                extraction=ReRanked(),
            ),
        ),
        batch=128,
        critic_lr=1e-3,
        policy_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=4, updates=300),),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=2),
)


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
            "transitions": world.transitions, "rewards": world.rewards, "proposals": proposals, "mean": mean,
            "next": after, "luck": rng.normal(size=n.shape),
        }  # fmt: skip

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The `value` of what acts (see `World.normalised`)."""
        world = World(solution["transitions"], solution["rewards"], self.discount)
        return {"value": world.normalised(solution["policy"])}


class BestProposal(ExactMethod):
    """The values of the proposals' own policy, an iteration a backup on the data, and the best of K proposals by them."""

    proposals: Count = 10
    """K."""
    critic: Literal["learned", "random"] = "learned"
    """What ranks: the values, or numbers that say nothing."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Proposals):
            raise ConfigError(f"best_proposal solves proposals, not {problem.type_name()}")
        return problem.draw(rng) | {"q": np.zeros((problem.states, problem.actions))}

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
        after = (state["proposals"] * state["q"]).sum(1)
        return state | {"q": World(state["next"], state["mean"], problem.discount).backup(after)}

    def solution(self, problem: Any, state: State) -> Mapping[str, np.ndarray]:
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


_exact = ExactRecipe(name="v_gps", problem=Proposals(), method=BestProposal(), iterations=60, every=20)
_random = {"critic": "random"}

CLAIM = Claim(
    name="v_gps",
    paper="arXiv 2410.13816, abstract",
    statement="The best of ten proposals by learned values is worth more than a proposal.",
    measure="value",
    recipe=_exact,
    arms={
        **{f"best_of_{k}": _exact.replace(method={"proposals": k}) for k in (1, 3, 10, 50)},
        "random_of_10": _exact.replace(method=_random),
        "random_of_1": _exact.replace(method=_random | {"proposals": 1}),
    },
    expected=Ordering(relations=("best_of_10 > best_of_1 by 0.2",)),
    # what ranks by chance ranks nothing
    control=Ordering(relations=("random_of_10 > random_of_1 by 0.2",)),
    seeds=tuple(range(100, 150)),
)
