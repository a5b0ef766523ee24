"""V-GPS: how often each proposal is chosen, exactly and by drawing."""

from itertools import product

import numpy as np
import pytest
import torch

from longstride.control import TransitionStore
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.papers.v_gps.exact import BestProposal, Proposals, best_of
from longstride.papers.v_gps.method import ReRanked
from longstride.papers.v_gps.recipe import RECIPE


@pytest.mark.parametrize("score", [[1.0, 3.0, 2.0], [1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
def test_the_best_of_k_is_what_all_draws_of_k_say(score: list[float]) -> None:
    p = np.array([[0.5, 0.2, 0.3]])
    by_hand = np.zeros(3)
    for drawn in product(range(3), repeat=4):
        first_best = max(drawn, key=lambda a: score[a])  # `max` takes the first of equals
        by_hand[first_best] += np.prod(p[0, list(drawn)])
    assert np.allclose(best_of(p, np.array([score]), 4)[0], by_hand, atol=1e-6)
    assert np.allclose(best_of(p, np.array([score]), 1), p)


def test_a_sharper_policy_proposes_what_is_likely_more_often() -> None:
    problem = Proposals(states=3, actions=4)
    state = BestProposal().start(problem, np.random.default_rng(0))
    p = state["proposals"]
    squared = BestProposal(proposals=1, sharpness=2.0).solution(problem, state)["policy"]
    assert squared == pytest.approx(p**2 / (p**2).sum(1, keepdims=True), abs=1e-12)
    sure = BestProposal(proposals=1, sharpness=1e6).solution(problem, state)["policy"]
    assert sure == pytest.approx(np.eye(4)[p.argmax(1)], abs=1e-6)


def test_values_are_those_of_the_proposals_policy() -> None:
    problem, method = Proposals(states=6, actions=3), BestProposal()
    state = method.start(problem, np.random.default_rng(0))
    for _ in range(300):
        state = method.step(problem, state, np.random.default_rng(0))
    v = np.linalg.solve(
        np.eye(6) - 0.9 * np.einsum("sa,sak->sk", state["proposals"], state["next"]),
        (state["proposals"] * state["mean"]).sum(1),
    )
    assert np.allclose(state["q"], state["mean"] + 0.9 * state["next"] @ v, atol=1e-6)
    values = [problem.measures(BestProposal(proposals=k).solution(problem, state))["value"] for k in (1, 10)]
    assert values[1] > values[0]


def test_a_proposal_is_drawn_by_the_softmax_of_its_score_over_beta() -> None:
    """A policy that proposes -1 or 1, of which the critic prefers 1 by 0.3."""

    class Policy:
        def sample(self, state: torch.Tensor, noise: RunNoise, count: int) -> torch.Tensor:
            return torch.tensor([[[-1.0]] + [[1.0]] * (count - 1)]).expand(len(state), count, 1)

    class Actor:
        policy = Policy()

    class Critic:
        def score(self, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
            return 0.15 * action[..., 0]

    state, noise = torch.zeros(40_000, 1), RunNoise.seeded(0)
    for beta in (0.1, 1.0):
        method = ReRanked(samples=3, beta=beta)
        taken = method.act(Actor(), Critic(), state, noise, explore=False)  # pyright: ignore[reportArgumentType]
        exact = 2 / (2 + np.exp(-0.3 / beta))
        assert float((taken > 0).float().mean()) == pytest.approx(exact, abs=0.01)


def test_the_policy_is_cloned_whatever_the_critic_says() -> None:
    """The gradient of the policy is that of imitation: two critics, one policy."""
    tasks = RECIPE.tasks.replace(episodes=2)
    store = TransitionStore.of(tasks.dataset(0))
    after = []
    for reward in (1.0, 10.0):
        (level,) = RECIPE.agent.levels
        agent = RECIPE.agent.replace(levels=(level.replace(data={"reward_scale": reward}),))
        learner = ControlLearner(agent, tasks.spec, seed=0)
        learner.train(2, [(store, agent.batch)])
        after.append([p.detach().clone() for p in learner.levels[0].actor.policy.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*after, strict=True))
