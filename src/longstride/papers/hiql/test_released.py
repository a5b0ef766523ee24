"""HIQL beside its authors' code: values that `value_loss`, `low_actor_loss` and `high_actor_loss` of seohongpark/ogbench
(`impls/agents/hiql.py`, commit 1d41409) give where networks are these tables, and what `HGCDataset`
(`impls/utils/datasets.py`) makes of given goals. A value v there is V = 1 + (1 - gamma) v here, and a way-point is
the state itself. `compute_value_loss` of seohongpark/HIQL (`src/agents/hiql.py`, commit b32c832) is the same formula."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from longstride.control import Batch, Goals, Level, NormalPolicy, NStep, TransitionStore
from longstride.control.envs import ControlEpisode, Spec
from longstride.control.implicit import ImplicitV, VNets
from longstride.control.noise import RunNoise
from longstride.control.policies import NormalNets
from longstride.models.mlp import Trunk
from longstride.papers.hiql.recipe import DISCOUNT, hiql

SMALL = Trunk(width=4, depth=1)
UNIT = 1 - DISCOUNT
"""Of a value there, in values here."""

HERE = [[-3.0, -7.5, -1.0, -12.0, -40.0], [-2.0, -8.0, -1.5, -10.0, -42.0]]
"""Two V of five states."""
NEXT = [[-2.2, -7.9, -1.2, -11.5, -38.0], [-1.7, -8.3, -1.1, -10.2, -38.6]]
"""And of the states after them, one step for actions and several for way-points."""
TARGET_HERE = [[-3.2, -7.0, -0.6, -14.0, -40.5], [-4.4, -8.2, -0.2, -10.0, -41.0]]
TARGET_NEXT = [[-1.5, -7.8, -9.0, -9.0, -38.0], [-2.5, -4.0, -8.0, -12.5, -39.5]]
"""Of the target networks: there, whether a step counts more is decided by the least of them after it, and by their mean
before it, and would be otherwise by others of these numbers."""
REACHED = [False, False, True, False, False]
VALUE_LOSS = 3.1556950400000026
VALUE_GRADIENT = [[-0.1442, 0.14664, -0.28, -0.2508, -0.3864], [0.413, -0.3648, -0.42, 0.405, -0.5306]]
"""In `HERE`; in the other tables it is 0."""

MEAN = [[0.1, -0.4], [0.7, 0.2], [-0.9, 0.05], [0.3, -0.6], [0.0, 0.5]]
TAKEN = [[0.5, -0.2], [1.0, -1.0], [-0.8, 0.3], [0.1, -0.9], [-0.6, 0.4]]
"""Actions, or way-points; the last one would weigh more than 100."""
ACTOR_LOSS = 43.76063011859272
ACTOR_GRADIENT = [
    [-0.41655838617438773, -0.20827919308719386], [-0.020996264946669233, 0.08398505978667692],
    [-0.02699717615152006, -0.06749294037880017], [0.06273248741960681, 0.09409873112941024], [12.0, 2.0],
]  # fmt: skip
"""In `MEAN`, of Gaussians of deviation 1: the same number for actions and for way-points."""

ROWS = [0, 2, 5, 6, 8, 9, 11, 1, 3, 4]
"""Of two walks, of rows 0 to 7 and 8 to 12."""
VALUE_GOALS = [11, 9, 10, 7, 8, 9, 12, 7, 7, 11]
MASKS = [1, 1, 1, 1, 0, 0, 1, 1, 1, 1]
HIGH_GOALS = [5, 4, 6, 7, 11, 11, 12, 4, 6, 6]
HIGH_TARGETS = [3, 4, 6, 7, 11, 11, 12, 4, 6, 6]
LOW_GOALS = [3, 5, 7, 7, 11, 12, 12, 4, 6, 7]
"""What it draws and makes for way-points three steps ahead, by rows."""


class Table(nn.Module):
    """Networks that give the number of each state, which says its place in the table."""

    def __init__(self, *parts: list[list[float]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + UNIT * torch.tensor(parts, dtype=torch.float64).movedim(0, 1).flatten(1))

    def forward(self, state_BS: Tensor) -> Tensor:
        return self.weight[:, state_BS[:, 0].long(), None]


class Means(nn.Module):
    """A network whose outputs have these means as their hyperbolic tangents."""

    def __init__(self) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(MEAN, dtype=torch.float64).atanh())

    def forward(self, state_BS: Tensor) -> Tensor:
        return self.raw[None]


def levels(steps: int = 25) -> tuple[Level, ...]:
    """Of way-points and of actions."""
    return hiql(SMALL, steps=steps).levels


def tables() -> VNets:
    nets = VNets(Table(HERE, NEXT))  # pyright: ignore[reportArgumentType]
    nets.target = Table(TARGET_HERE, TARGET_NEXT)  # pyright: ignore[reportAttributeAccessIssue]
    return nets


def transitions() -> Batch:
    """From the states 0 to 4 to 5 to 9."""
    reached = torch.tensor(REACHED, dtype=torch.float64)
    state, taken = torch.arange(10.0, dtype=torch.float64)[:, None], torch.tensor(TAKEN, dtype=torch.float64)
    return Batch(state[:5], taken, reached, DISCOUNT * (1 - reached), state[5:], reached)


@pytest.mark.parametrize("level", [0, 1])
def test_loss_and_gradient_of_values_are_the_released_ones(level: int) -> None:
    critic, nets = levels()[level].critic, tables()
    assert isinstance(critic, ImplicitV)
    policy = NormalPolicy(trunk=SMALL).make(1, 2, torch.Generator())
    loss, _ = critic.loss(nets, transitions(), policy, RunNoise.seeded(0), conservative=False)
    loss.backward()
    gradient = nets.v.weight.grad
    assert isinstance(gradient, Tensor) and nets.target.weight.grad is None
    assert loss.item() == pytest.approx(UNIT**2 * VALUE_LOSS, rel=1e-6)
    expected = UNIT * torch.tensor(VALUE_GRADIENT, dtype=torch.float64)
    torch.testing.assert_close(gradient, torch.cat((expected, torch.zeros_like(expected)), 1), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("level", [0, 1])
def test_what_is_imitated_weighs_as_in_the_release(level: int) -> None:
    """Both policies are Gaussians of deviation 1 there. Here that is a `NormalPolicy` before its deviation is learned,
    and the weights of way-points are those of actions."""
    extraction = levels()[level].extraction
    actor = extraction.make(NormalPolicy(trunk=SMALL).make(1, 2, torch.Generator()))
    assert isinstance(actor.policy, NormalNets)
    actor.policy.net = means = Means()  # pyright: ignore[reportAttributeAccessIssue]
    nets = tables()
    loss, _ = extraction.loss(actor, nets, transitions(), RunNoise.seeded(0))
    (slope,) = torch.autograd.grad(loss, means.raw, retain_graph=True)
    assert loss.item() == pytest.approx(ACTOR_LOSS, rel=1e-6)
    expected = torch.tensor(ACTOR_GRADIENT, dtype=torch.float64)
    torch.testing.assert_close(slope / (1 - means.raw.tanh() ** 2), expected, atol=1e-6, rtol=1e-5)
    loss.backward()
    assert nets.v.weight.grad is None


class At(Goals):
    """Goals in given rows."""

    at: tuple[int, ...]

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.array(self.at)


def test_way_points_and_what_reaches_a_goal_are_those_of_the_release() -> None:
    observation = np.arange(13.0)[:, None]
    store = TransitionStore.of(
        [ControlEpisode(o, np.zeros((len(o) - 1, 1)), np.zeros(len(o) - 1), False) for o in np.split(observation, [8])]
    )
    spec, rows, rng = Spec(observation=1, action=1, goal=(0,)), np.array(ROWS), np.random.default_rng(0)

    def made(data: NStep | None) -> Batch:
        assert data is not None
        return data(store, spec, rows, rng)

    high, low = levels(steps=3)
    of_values = made(low.data.replace(goals=At(at=tuple(VALUE_GOALS))))
    assert of_values.reward_B.tolist() == [1 - m for m in MASKS]
    assert of_values.discount_B.tolist() == pytest.approx([DISCOUNT * m for m in MASKS])
    assert high.data.replace(action="action") == low.data
    assert made(low.policy_data).state_BS[:, 1].tolist() == LOW_GOALS
    assert made(low.policy_data).next_state_BS[:, 0].tolist() == [row + 1 for row in ROWS]
    assert high.policy_data is not None
    of_high = made(high.policy_data.replace(goals=At(at=tuple(HIGH_GOALS))))
    assert of_high.action_BA[:, 0].tolist() == of_high.next_state_BS[:, 0].tolist() == HIGH_TARGETS
    assert of_high.state_BS[:, 1].tolist() == of_high.next_state_BS[:, 1].tolist() == HIGH_GOALS
