"""CQL (ReDS): the gap and the weights of rho by hand, where rho goes, and what that takes from the values of poor actions."""

import math

import pytest
import torch
from torch import Tensor

from longstride.claims.tuning import axes
from longstride.control import Batch, Conservative, GaussianPolicy, PointMaze, TransitionStore
from longstride.control.conservative import gap
from longstride.control.critics import QEnsemble
from longstride.control.noise import RunNoise
from longstride.models.heads import Scalar
from longstride.models.mlp import MLP, Trunk
from longstride.papers.reds.method import MinedNets, Reweighted
from longstride.papers.reds.recipe import CLAIM

SMALL = Trunk(width=8, depth=1)
CRITIC = Reweighted(trunk=SMALL, rho=GaussianPolicy(trunk=SMALL), conservative=Conservative(actions=3), temperature=0.5)
POLICY = GaussianPolicy(trunk=SMALL).make(1, 1, torch.Generator().manual_seed(9))


class Line(QEnsemble):
    """Two members whose values are 2a and 2a - 1."""

    def __init__(self) -> None:
        super().__init__(Scalar(), MLP(SMALL, 2, 1, torch.Generator(), 2, 1.0))

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        return torch.stack((2 * action, 2 * action - 1))


def nets() -> MinedNets:
    made = CRITIC.make(1, 1, torch.Generator().manual_seed(0))
    made.q = made.target = Line()
    return made


def batch(*actions: float) -> Batch:
    n = len(actions)
    zeros = torch.zeros(n)
    return Batch(torch.zeros(n, 1), torch.tensor(actions)[:, None], zeros, zeros, torch.zeros(n, 1), zeros)


def test_half_of_what_is_lowered_are_actions_of_rho() -> None:
    of, data = nets(), batch(0.5, -0.5)
    q_EB = of.q.value(data.state_BS, data.action_BA)
    found = CRITIC.gap(of, q_EB, data, POLICY, RunNoise.seeded(3))
    noise = RunNoise.seeded(3)  # the same actions again: rho's first, then those of CQL
    poor_BKA = of.rho.sample(data.state_BS, noise, 3)
    action_BKA, density_BK = CRITIC.conservative.candidates(data, POLICY, noise)  # pyright: ignore[reportOptionalMemberAccess]
    cql_EB = gap(of.q.value(data.state_BS, action_BKA), density_BK, q_EB)
    mean_B = 2 * poor_BKA.mean((-2, -1))
    torch.testing.assert_close(found, 0.5 * cql_EB + 0.5 * (torch.stack((mean_B, mean_B - 1)) - q_EB))


def test_the_weights_of_rho_by_hand() -> None:
    """Q is 2a - 1/2 on average of the data's action and 2a' - 1 at least of the policy's, which is drawn again here."""
    data = batch(0.5, -0.5, 0.9)
    drawn_B = POLICY.sample(data.state_BS, RunNoise.seeded(5))[:, 0, 0]
    ahead = [(2 * a - 0.5) - (2 * b - 1) for a, b in zip((0.5, -0.5, 0.9), drawn_B.tolist(), strict=True)]
    for tau in (0.5, 0.01):
        found = CRITIC.replace(temperature=tau).weights(nets(), data, POLICY, RunNoise.seeded(5))
        assert found.tolist() == pytest.approx([math.exp(max(-10, min(-x / tau, 5))) for x in ahead], rel=1e-4)


def test_rho_finds_the_poor_actions_of_the_data_and_the_loss_moves_nothing_else_by_it() -> None:
    of, data, noise = nets(), batch(0.6, -0.6), RunNoise.seeded(0)
    optimiser = torch.optim.Adam(of.rho.parameters(), lr=0.1)
    for _ in range(40):
        optimiser.zero_grad()
        CRITIC.loss(of, data, POLICY, noise, conservative=False)[0].backward()
        optimiser.step()
    assert of.rho.greedy(data.state_BS, noise)[0, 0].item() < -0.45
    assert all(p.grad is None for p in POLICY.parameters())


def test_what_rho_covers_is_lowered_more_than_by_cql_and_what_it_leaves_less() -> None:
    """The slope of the gap in the value of an action of the data, when rho is all at the poor one."""

    class Two(QEnsemble):
        """A value for actions above 0 and one for others."""

        def __init__(self) -> None:
            super().__init__(Scalar(), MLP(SMALL, 2, 1, torch.Generator(), 1, 1.0))
            self.values = torch.zeros(2, requires_grad=True)

        def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
            return self.values[(action > 0).long()][None]

    slopes = []
    for share in (0.0, 0.5):
        critic, of = CRITIC.replace(share=share), nets()
        of.q = two = Two()
        of.rho.sample = lambda state_BS, noise, count=1: torch.full((len(state_BS), count, 1), -0.5)
        data = batch(*[0.5, -0.5] * 200)
        q_EB = two.value(data.state_BS, data.action_BA)
        critic.gap(of, q_EB, data, POLICY, RunNoise.seeded(0)).mean().backward()
        slopes.append(two.values.grad.tolist())  # pyright: ignore[reportOptionalMemberAccess]
    assert sum(slopes[0]) == pytest.approx(0, abs=1e-5)
    # mixture - data: (CQL's softmax + rho) / 2 - 1/2, where the softmax of equal values is even
    assert slopes[0] == pytest.approx([0, 0], abs=0.1)
    assert slopes[1] == pytest.approx([0.25, -0.25], abs=0.05)


def test_a_term_that_is_not_there_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="set conservative, or take td_critic"):
        Reweighted(conservative=None)


def test_uneven_walks_vary_in_one_half_of_the_maze() -> None:
    def spread(uneven: float) -> list[float]:
        walks = PointMaze(maze="umaze", walks="reach", episodes=60, length=60, noise=0.0, uneven=uneven)
        store = TransitionStore.of(walks.dataset(0))
        speed = torch.from_numpy(store.action).norm(dim=1)
        right = torch.from_numpy(store.observation[:, 0]) > 2.5
        moving = speed > 0
        return [speed[moving & side].std().item() for side in (right, ~right)]

    (even_right, even_left), (right, left) = spread(0.0), spread(0.8)
    assert even_right < 1e-3 and even_left < 1e-3
    assert right > 0.2 and left < 1e-3


def test_each_arm_is_tuned_over_how_conservative_it_is() -> None:
    """With half of the weight on actions of rho, CQL of the same weight would lower the policy's twice as much."""
    for arm in CLAIM.arms:
        assert list(axes(CLAIM, arm)) == ["agent.critic_lr", "agent.levels.0.critic.conservative.weight"]
