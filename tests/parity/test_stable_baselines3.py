"""PPO of control against that of Stable-Baselines3 on the same episodes and batch (skips without it)."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from longstride.control import Batch, CategoricalPolicy, LambdaReturns, Proximal, TransitionStore
from longstride.control.envs import ControlEpisode
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk

pytest.importorskip("stable_baselines3", reason="compares with Stable-Baselines3: make parity")
ppo_of_theirs = pytest.importorskip("stable_baselines3.ppo.ppo")
buffers = pytest.importorskip("stable_baselines3.common.buffers")
spaces = pytest.importorskip("gymnasium.spaces")

B, A, S = 32, 3, 4
TRUNK = Trunk(width=8, depth=1)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_lambda_returns_are_theirs() -> None:
    """Three steps that end in a terminal state, then four that a limit cuts."""
    rng, lengths = np.random.default_rng(0), (3, 4)
    episodes = [
        ControlEpisode(rng.normal(size=(n + 1, S)), np.zeros((n, 1)), rng.normal(size=n), n == 3) for n in lengths
    ]
    store = TransitionStore.of(episodes)
    value = rng.normal(size=store.rows).astype(np.float32)
    ours = store.lambda_returns(value, 0.9, 0.8)

    steps = [row for row in range(store.rows) if row not in store.last]
    theirs = buffers.RolloutBuffer(len(steps), spaces.Box(-1, 1, (S,)), spaces.Discrete(A), "cpu", 0.8, 0.9)
    for row in steps:
        theirs.add(
            np.zeros((1, S)), np.zeros((1, 1)), store.reward[[row]], np.array([row in store.first]),
            torch.tensor([value[row]]), torch.zeros(1),
        )  # fmt: skip
    theirs.compute_returns_and_advantage(torch.tensor([value[-1]]), dones=np.array([False]))
    np.testing.assert_allclose(ours[steps], theirs.returns[:, 0], atol=1e-5)
    np.testing.assert_allclose((ours - value)[steps], theirs.advantages[:, 0], atol=1e-5)


class Asked(torch.nn.Module):
    """Our networks as their policy."""

    def __init__(self, policy: Any, v: Any) -> None:
        super().__init__()
        self.policy, self.v = policy, v
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.0)

    def set_training_mode(self, mode: bool) -> None: ...

    def evaluate_actions(self, state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, ...]:
        log_prob = torch.distributions.Categorical(logits=self.policy.logits(state)).log_prob(action)
        return self.v(state)[0], log_prob, torch.zeros(len(state))


def test_the_losses_and_gradients_of_ppo_are_theirs() -> None:
    ppo, critic, noise = Proximal(clip=0.2), LambdaReturns(trunk=TRUNK), RunNoise.seeded(0)
    nets = critic.make(S, A, torch.Generator().manual_seed(1))
    actor = ppo.make(CategoricalPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0)))
    assert actor.target is not None
    with torch.no_grad():
        for k, p in enumerate(actor.target.parameters()):
            p += 0.5 * normal(*p.shape, seed=k)
    chosen, nothing = torch.arange(B) % A, torch.zeros(B)
    batch = Batch(
        normal(B, S, seed=1), torch.eye(A)[chosen], nothing, nothing, torch.zeros(B, S), 2 * normal(B, seed=2)
    )

    ours, metrics = ppo.loss(actor, nets, batch, noise)
    ours_v, _ = critic.loss(nets, batch, actor.policy, noise, conservative=False)
    (ours + 0.5 * ours_v).backward()
    learned = [*actor.policy.parameters(), *nets.v.parameters()]
    gradients = [p.grad.clone() for p in learned if p.grad is not None]
    assert 0 < metrics["clipped"] < 1

    said: dict[str, float] = {}
    theirs: Any = object.__new__(ppo_of_theirs.PPO)
    theirs.policy, theirs.action_space, theirs.batch_size = Asked(actor.policy, nets.v), spaces.Discrete(A), B
    theirs.n_epochs, theirs._n_updates, theirs.max_grad_norm, theirs.target_kl = 1, 0, 1e9, None
    theirs.clip_range, theirs.clip_range_vf, theirs.normalize_advantage = (lambda _: 0.2), None, True
    theirs.ent_coef, theirs.vf_coef, theirs._current_progress_remaining = 0.0, 0.5, 1.0
    theirs._update_learning_rate = lambda _: None
    theirs._logger = SimpleNamespace(record=lambda name, value, **_: said.update({name: value}))
    rows = SimpleNamespace(
        observations=batch.state_BS, actions=chosen, returns=batch.return_B,
        old_log_prob=-actor.target.imitation_loss(batch.state_BS, batch.action_BA, noise).detach(),
        advantages=nets.advantage(batch, actor.policy, noise),
    )  # fmt: skip
    theirs.rollout_buffer = SimpleNamespace(get=lambda _: [rows], values=np.zeros(B), returns=np.ones(B))
    theirs.train()
    assert ours.item() == pytest.approx(said["train/policy_gradient_loss"], abs=1e-5)
    assert ours_v.item() == pytest.approx(said["train/value_loss"], abs=1e-5)
    assert metrics["kl"].item() == pytest.approx(said["train/approx_kl"], abs=1e-5)
    assert metrics["clipped"].item() == pytest.approx(said["train/clip_fraction"])
    for p, gradient in zip(learned, gradients, strict=True):
        torch.testing.assert_close(p.grad, gradient, atol=1e-5, rtol=1e-4)
