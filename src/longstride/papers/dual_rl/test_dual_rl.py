"""The losses of f-DVL and XQL by hand, where they are least, and where only one of them stays finite."""

import math

import pytest
import torch

from longstride.control import Maximiser
from longstride.papers.dual_rl.method import ChiSquare, Gumbel, TotalVariation


def test_losses_by_hand() -> None:
    ahead = torch.tensor([2.0, -2.0, -8.0])  # u + u^2 / 4 is 3, -1, 8
    assert ChiSquare(lam=0.75)(ahead).tolist() == [0.75 * 3 - 0.5, 0.5, 0.75 * 8 + 2]
    assert TotalVariation(lam=0.75)(ahead).tolist() == [0.75 * 2 - 0.5, 0.5, 2]
    z = [math.log(4), 0.0, -3.0]
    losses = Gumbel(scale=2.0)(2 * torch.tensor(z))
    # divided by the exponential of the largest z, which is 4
    torch.testing.assert_close(losses, torch.tensor([(math.exp(x) - x - 1) / 4 for x in z]))


def test_runs_side_by_side_are_scaled_apart() -> None:
    ahead = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(Gumbel()(ahead), torch.stack([Gumbel()(row) for row in ahead]))


KNOWN = torch.tensor([0.0, 1.0, 2.0, 6.0])


def least(loss: Maximiser) -> float:
    """Where the slope of the mean loss over four values turns: Gumbel's is scaled by each batch, its slope is not bent."""
    v = torch.linspace(-1, 7, 1601)[:, None].requires_grad_()
    loss(KNOWN - v).sum().backward()
    assert v.grad is not None
    return v[int((v.grad[:, 0] > -1e-6).nonzero()[0])].item()


@pytest.mark.parametrize(
    "losses",
    [
        [ChiSquare(lam=lam) for lam in (0.5, 0.7, 0.9)],
        [TotalVariation(lam=lam) for lam in (0.55, 0.7, 0.9)],
        [Gumbel(scale=scale, most=50.0) for scale in (9.0, 3.0, 1.0)],
    ],
)
def test_v_is_nearer_to_the_largest_q_the_sharper_the_loss(losses: list[Maximiser]) -> None:
    found = [least(loss) for loss in losses]
    assert found == sorted(found) and found[0] < found[-1] <= 6


def test_v_is_a_quantile_and_a_soft_maximum() -> None:
    # the quantiles 4 / 7 and 2 / 7
    assert least(TotalVariation(lam=0.7)) == pytest.approx(2, abs=0.01)
    assert least(TotalVariation(lam=7 / 12)) == pytest.approx(1, abs=0.01)
    assert least(Gumbel(scale=2.0)) == pytest.approx(2 * (KNOWN / 2).exp().mean().log().item(), abs=0.01)


def test_a_value_far_above_moves_v_under_the_chi_square_and_not_under_gumbels_loss() -> None:
    for loss, moves in ((ChiSquare(), True), (Gumbel(scale=0.1), False)):
        v = torch.zeros(1, requires_grad=True)
        loss(9 - v).mean().backward()
        assert v.grad is not None and torch.isfinite(v.grad).all() and (v.grad.item() < 0) == moves
