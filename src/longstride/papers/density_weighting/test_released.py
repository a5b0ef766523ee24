"""The loss of the ratio beside the release: values that `update_discriminator` of Improbable-AI/dw-offline-rl
(`IQL/discriminator.py`, commit d6c4029) gives for linear f and g on four rows (flow discount 1, temperature 1, clip
ratio 0.2, kl 0.2, flow 5)."""

import pytest
import torch
from torch import Tensor, nn

from longstride.control import Batch
from longstride.papers.density_weighting.method import DensityRatio

STATE = torch.tensor([[-0.8, -1.32], [-0.25, 0.42], [1.14, 0.11], [-0.55, -0.78]], dtype=torch.float64)
ACTION = torch.tensor([[0.75], [1.63], [0.27], [-1.23]], dtype=torch.float64)
NEXT = torch.tensor([[-0.96, 1.6], [0.2, -1.73], [-0.08, -1.16], [-0.63, -0.49]], dtype=torch.float64)
REWARD = torch.tensor([0.0, 2.0, 0.5, 1.0], dtype=torch.float64)
BATCH = Batch(STATE, ACTION, REWARD, REWARD, NEXT, REWARD)


class Linear(nn.Module):
    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weights, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.weight)[None, ..., None]


def test_loss_and_gradient_are_those_of_the_release() -> None:
    ratio = DensityRatio(kl=0.2, flow=5.0)
    nets = ratio.make(2, 1, torch.Generator())
    nets.f, nets.g = Linear(1.5, -0.5), Linear(0.5, 1.0, -2.0)  # pyright: ignore[reportAttributeAccessIssue]
    loss, metrics = ratio.loss(nets, BATCH)
    loss.backward()
    assert loss.item() == pytest.approx(42.080034, abs=1e-5)
    assert metrics["earned"].item() == pytest.approx(0.6962229, abs=1e-6)
    assert metrics["flow"].item() == pytest.approx(8.5899264, abs=1e-6)
    assert nets.f.weight.grad.tolist() == pytest.approx([76.6107427, -26.03725], abs=1e-5)  # pyright: ignore
    assert nets.g.weight.grad.tolist() == pytest.approx([68.571012, -3.7444911, 0.320098], abs=1e-5)  # pyright: ignore
