"""The critic of turns: what it learns on a chain whose values are known, what that is good for, and its state."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from longstride.learner.critic import Critic
from transformers import LlamaConfig, LlamaForCausalLM

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, RunError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.tabular import EnumerableMDP, Path
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.turn_critic import PREFIX, TurnCritic
from longstride.methods import GAE

STATES = 4


def learner() -> Learner:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=10, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64,
    ))  # fmt: skip
    return Learner(model, LearnerConfig(dtype="float32"))


def small(**numbers: Any) -> Critic:
    return Critic.model_validate({"width": 32, "batch_turns": 64, "epochs": 10, "lr": 1e-3, **numbers})


def trajectory(turns: list[Turn], reward: float, stop: StopReason = StopReason.ENV_ENDED) -> Trajectory:
    return Trajectory(Task(id="t", source="s", goal="g", start="s"), 0, 0, Budget(), turns, stop, reward=reward)


def turn(prompt: list[int], said: list[int], reward: float = 0.0) -> Turn:
    return Turn(prompt, said, [-1.0] * len(said), [0] * len(said), "page", "text", "go", reward=reward)


def of_path(path: Path) -> Trajectory:
    steps = zip(path.states, path.actions, path.rewards, strict=True)
    return trajectory([turn([s], [a], float(r)) for s, a, r in steps], float(sum(path.rewards)))


def chain(discount: float = 0.9) -> tuple[EnumerableMDP, np.ndarray]:
    """One action goes on to the next state, the other gives up for 0.3; going on from the last state earns 1."""
    moves, rewards = np.zeros((STATES + 1, 2, STATES + 1)), np.zeros((STATES + 1, 2))
    for s in range(STATES):
        moves[s, 0, s + 1] = moves[s, 1, STATES] = 1
    moves[STATES, :, STATES], rewards[STATES - 1, 0], rewards[:STATES, 1] = 1, 1.0, 0.3
    problem = EnumerableMDP(moves, rewards, np.eye(STATES + 1)[0], np.arange(STATES + 1) == STATES, STATES, discount)
    return problem, np.array([[1.0, 0.0]] * STATES + [[0.0, 0.0]])


def exact_values(discount: float) -> np.ndarray:
    problem, logits = chain(discount)
    values_H_S = (problem.policy(logits) * problem.action_values(logits)).sum(2)
    return values_H_S.diagonal()[:STATES]  # state s is only ever come to at step s


def taught(config: Critic, credit: GAE, rounds: int) -> TurnCritic:
    """A critic that sees some 60 episodes a round, each path as often as is probable."""
    problem, logits = chain()
    episodes = [of_path(p) for p in problem.trajectories(logits) for _ in range(round(60 * p.probability))]
    critic = config.make(learner(), seed=1)
    for k in range(rounds):
        critic.values(episodes)
        critic.fit(episodes, credit.targets(episodes), random.Random(k))
    return critic


def values_of(critic: TurnCritic) -> list[float]:
    t = trajectory([turn([s], [0]) for s in range(STATES)], 0.0)
    critic.values([t])
    return [u.value for u in t.turns]


@pytest.mark.parametrize(("head", "lam"), [("scalar", 1.0), ("scalar", 0.5), ("bce", 1.0), ("hl_gauss", 1.0)])
def test_it_learns_the_values_of_a_chain(head, lam):
    found = values_of(taught(small(head=head), GAE(values="critic", discount=0.9, lam=lam), rounds=20))
    np.testing.assert_allclose(found, exact_values(0.9), atol=0.03)
    assert max(found) - min(found) > 0.35


def test_its_values_leave_the_gradient_exact_and_take_away_variance():
    """All episodes of the chain, undiscounted so that the estimate is that of the return; lam = 1."""
    problem, logits = chain(1.0)
    critic = taught(small(), GAE(values="critic"), rounds=8)
    paths = list(problem.trajectories(logits))
    episodes = [of_path(p) for p in paths]
    critic.values(episodes)
    variance = {}
    for values in ("none", "critic"):
        credit = GAE.model_validate({"values": values})
        estimates, p = np.zeros((len(paths), *logits.shape)), np.array([path.probability for path in paths])
        for n, t in enumerate(episodes):
            for s in credit([t]):
                state, action = s.prompt_ids[0], s.sampled_ids[0]
                estimates[n, state] += s.weights[0] * ((np.arange(2) == action) - problem.policy(logits)[state])
        mean = np.einsum("n,nsa->sa", p, estimates)
        np.testing.assert_allclose(mean, problem.gradient(logits), atol=1e-12)
        variance[values] = float(p @ ((estimates - mean) ** 2).sum((1, 2)))
    assert variance["critic"] < 0.5 * variance["none"]


def test_what_a_budget_cut_off_is_worth_what_would_have_come_and_what_ended_is_not():
    """0.1 a turn at discount 0.5: 0.1 + 0.5 V = V where nobody saw the end."""
    credit, found = GAE(values="critic", discount=0.5, lam=0.0), []
    for stop in (StopReason.TURNS, StopReason.ENV_ENDED):
        critic = small().make(learner(), seed=0)
        played = [trajectory([turn([3], [1], 0.1)], 0.1, stop)] * 8
        for k in range(30):
            critic.values(played)
            critic.fit(played, credit.targets(played), random.Random(k))
        critic.values(played)
        found.append(played[0].turns[0].value)
    assert found == pytest.approx([0.2, 0.1], abs=0.01)


def test_it_reads_the_policy_at_the_end_of_each_prompt_and_never_moves_it():
    policy = learner()
    before = [p.clone() for p in policy.model.parameters()]
    critic = small().make(policy, seed=0)
    growing = trajectory([turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], []), turn([1, 2, 3, 4, 5, 6], [7])], 1.0)
    alone = [trajectory([turn(u.prompt_ids, [9])], 1.0) for u in growing.turns]
    critic.fit([growing], [[0.2, 0.5, 0.9]], random.Random(0))
    critic.values([growing, *alone])
    values = [u.value for u in growing.turns]
    assert values == pytest.approx([t.turns[0].value for t in alone], abs=1e-5) and len(set(values)) == 3
    assert all(torch.equal(a, b) for a, b in zip(before, policy.model.parameters(), strict=True))
    assert all(p.grad is None for p in policy.model.parameters())


def test_what_it_says_of_its_fit_and_targets_out_of_range():
    critic = small(low=-1.0, epochs=300, lr=1e-2).make(learner(), seed=0)
    t = trajectory([turn([1], [1]), turn([2], [1])], 0.0)
    first = critic.fit([t], [[5.0, 0.0]], random.Random(0))
    critic.values([t])
    assert [u.value for u in t.turns] == pytest.approx([1, 0], abs=0.02)
    second = critic.fit([t], [[5.0, 0.0]], random.Random(0))
    assert first["value_explained"] == pytest.approx(0, abs=1e-6) and second["value_explained"] > 0.99
    assert second["value_loss"] < 0.01
    failed = trajectory([turn([1], [1])], 0.0, StopReason.INFRA_FAILURE)
    assert critic.fit([failed], [[]], random.Random(0)) == {"value_loss": 0.0, "value_explained": 0.0}
    critic.values([])


def test_a_critic_restored_from_its_state_goes_on_as_it_would_have():
    policy, credit = learner(), GAE(values="critic")
    problem, logits = chain()
    episodes = [of_path(p) for p in problem.sample(logits, np.random.default_rng(0), 40)]
    one, other = small().make(policy, seed=0), small().make(policy, seed=5)
    assert values_of(one) != values_of(other)
    one.fit(episodes, credit.targets(episodes), random.Random(0))
    kept = {k: v.clone() for k, v in one.state().items()}
    assert all(k.startswith(PREFIX) for k in kept)
    other.load_state(kept | {"exp_avg/of.the.policy": torch.zeros(1)})
    for critic in (one, other):
        critic.fit(episodes, credit.targets(episodes), random.Random(1))
    assert values_of(one) == values_of(other)
    for config, tensors in ((small(width=16), kept), (small(), {})):
        with pytest.raises(RunError, match="another critic"):
            config.make(policy, seed=0).load_state(tensors)


def test_ranges_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="high must be above low"):
        build(Critic, {"low": 1.0})
    with pytest.raises(ConfigError, match=r"bce knows returns in \[0, 1\], not in \[-1"):
        build(Critic, {"head": "bce", "low": -1.0})
    critic = Critic(head="hl_gauss", low=-1.0)
    assert build(Critic, critic.as_data()) == critic
