"""Makes `losses.npz`: the losses that d3rlpy computes for a batch under CQL and Cal-QL, with everything they depend on.

Run it where d3rlpy is installed (`pip install torch==2.13.0 d3rlpy==2.8.1`): `python make.py`. The tests need only the
file that it writes. d3rlpy's networks are made small, so that their weights fit in the file; the actions that it
samples are recorded as they are drawn.
"""

# pyright: reportMissingImports=false

from pathlib import Path

import d3rlpy
import numpy as np
import torch
from d3rlpy.algos.qlearning.torch import utility
from d3rlpy.models.encoders import VectorEncoderFactory
from d3rlpy.torch_utility import TorchMiniBatch

OBSERVATION, ACTION, BATCH, SAMPLES, GAMMA = 3, 2, 6, 4, 0.97


def numbers(calibrated: bool) -> dict[str, np.ndarray]:
    """Losses of one batch, and what they were computed from."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    config = d3rlpy.algos.CalQLConfig if calibrated else d3rlpy.algos.CQLConfig
    encoder = VectorEncoderFactory([8, 8])
    algorithm = config(
        gamma=GAMMA, n_action_samples=SAMPLES, conservative_weight=5.0, alpha_threshold=0.0, initial_alpha=1.0,
        alpha_learning_rate=0.0, soft_q_backup=False, max_q_backup=True, actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
    ).create()  # fmt: skip
    algorithm.create_impl((OBSERVATION,), ACTION)
    impl = algorithm.impl

    def given(*shape: int) -> torch.Tensor:
        return torch.tensor(rng.normal(size=shape), dtype=torch.float32)

    batch = TorchMiniBatch(
        observations=given(BATCH, OBSERVATION), actions=given(BATCH, ACTION).tanh(), rewards=given(BATCH, 1),
        next_observations=given(BATCH, OBSERVATION), next_actions=given(BATCH, ACTION),
        returns_to_go=given(BATCH, 1) * 0.1, terminals=torch.tensor([[0.0], [0], [1], [0], [0], [1]]),
        intervals=torch.ones(BATCH, 1), device="cpu",
    )  # fmt: skip

    with torch.no_grad():
        for p in impl.modules.targ_q_funcs.parameters():  # else they are the critics themselves
            p.add_(given(*p.shape) * 0.1)
    q_nets = [*impl.q_function, *impl.modules.targ_q_funcs]
    drawn: list[tuple[np.ndarray, np.ndarray]] = []
    build, uniform = utility.build_squashed_gaussian_distribution, torch.Tensor.uniform_

    def recorded(output):  # noqa: ANN001, ANN202
        distribution = build(output)
        draw = distribution.sample_n_with_log_prob

        def sample(n: int):  # noqa: ANN202
            actions, log_density = draw(n)
            drawn.append((actions.detach().numpy(), log_density.detach().numpy()))
            return actions, log_density

        distribution.sample_n_with_log_prob = sample
        return distribution

    def recorded_uniform(self, low, high):  # noqa: ANN001, ANN202
        actions = uniform(self, low, high)
        drawn.append((actions.numpy().reshape(BATCH, SAMPLES, ACTION), np.zeros(0)))
        return actions

    utility.build_squashed_gaussian_distribution = recorded
    torch.Tensor.uniform_ = recorded_uniform  # pyright: ignore[reportAttributeAccessIssue]
    target = impl.compute_target(batch)
    loss = impl.compute_critic_loss(batch, target)
    utility.build_squashed_gaussian_distribution, torch.Tensor.uniform_ = build, uniform
    backup, here, following, free = drawn
    weights = {
        f"{'q' if k < 2 else 'target'}_{k % 2}_{n}": t.detach().numpy()
        for k, net in enumerate(q_nets)
        for n, t in enumerate(net.parameters())
    }
    return weights | {
        "state": batch.observations.numpy(), "action": batch.actions.numpy(), "reward": batch.rewards.numpy()[:, 0],
        "next_state": batch.next_observations.numpy(), "terminal": batch.terminals.numpy()[:, 0],
        "return": batch.returns_to_go.numpy()[:, 0], "backup_actions": backup[0], "here_actions": here[0],
        "here_log_density": here[1][..., 0], "next_actions": following[0], "next_log_density": following[1][..., 0],
        "uniform_actions": free[0], "target": target.detach().numpy()[:, 0],
        "conservative": np.float32(loss.conservative_loss.item()),
        "td": np.float32(loss.critic_loss.item() - loss.conservative_loss.item()),
    }  # fmt: skip


if __name__ == "__main__":
    both = {f"{name}_{k}": v for name in ("cql", "calql") for k, v in numbers(name == "calql").items()}
    np.savez_compressed(Path(__file__).with_name("losses.npz"), allow_pickle=False, **both)
    for key, value in both.items():
        print(key, value.shape, value if value.size < 7 else "")
