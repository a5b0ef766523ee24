"""Values of several tasks in one network: residual layers (`BroNet`), the return as a histogram under the cross-entropy
(`CategoricalReturns`), a learned vector for each task, and rewards of one size for all (`NormalisedReturns`).

What always holds: all tasks share all weights but their own vector, which has length 1; no target lies beyond the histogram.
"""

import math
from typing import Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.control import Batch, Given, NStep, PolicyNets, QCritic, QNets, TransitionStore
from longstride.control.critics import QEnsemble
from longstride.control.envs import Spec
from longstride.control.noise import RunNoise
from longstride.control.targets import bellman_target
from longstride.core.numbers import Count, Positive
from longstride.models.heads import Atoms, Head
from longstride.models.mlp import MLP, Trunk


class BroNet(Trunk):
    """Hidden layers with skips (BRO, arXiv 2405.16158): linear, normalisation, ReLU; then `depth` times
    x + norm(linear(relu(norm(linear(x)))))."""

    width: Count = 512
    depth: Count = 2
    """Residual blocks of two layers each."""
    norm: Literal[True] = True
    activation: Literal["relu"] = "relu"

    def make(
        self, inputs: int, outputs: int, generator: torch.Generator, members: int = 1, last: float = 1.0
    ) -> "ResidualMLP":
        """Networks of these layers; see `ResidualMLP`."""
        return ResidualMLP(self, inputs, outputs, generator, members, last)


class ResidualMLP(MLP):
    """See `BroNet`; arguments and shapes are those of `MLP`. Weights start orthogonal, sqrt 2 long, the last layer's
    `last` times in variance."""

    def __init__(
        self, trunk: BroNet, inputs: int, outputs: int, generator: torch.Generator, members: int, last: float
    ) -> None:
        nn.Module.__init__(self)
        self.trunk = trunk
        hidden = 1 + 2 * trunk.depth
        sizes = [inputs, *[trunk.width] * hidden, outputs]
        gains = [math.sqrt(2)] * hidden + [math.sqrt(2 * last)]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        for i, o, gain in zip(sizes, sizes[1:], gains, strict=False):
            weight = torch.empty(members, i, o)
            for of_member in weight:
                nn.init.orthogonal_(of_member, gain, generator=generator)
            self.weights.append(weight)
            self.biases.append(torch.zeros(members, 1, o))
        for _ in range(hidden):
            self.gains.append(torch.ones(members, 1, trunk.width))
            self.shifts.append(torch.zeros(members, 1, trunk.width))

    def forward(self, x: Tensor, frozen: bool = False, apart: bool = False) -> Tensor:
        x = x if apart else x.expand(len(self.weights[0]), *x.shape)
        networks, x = x.shape[:-2], x.flatten(0, -3)
        weights, biases, gains, shifts = (
            [(p.detach() if frozen else p).flatten(0, -3) for p in group]
            for group in (self.weights, self.biases, self.gains, self.shifts)
        )

        def layer(k: int, x: Tensor) -> Tensor:
            x = F.layer_norm(torch.baddbmm(biases[k], x, weights[k]), (self.trunk.width,))
            return torch.addcmul(shifts[k], gains[k], x)

        x = layer(0, x).relu()
        for k in range(1, len(gains), 2):
            x = x + layer(k + 1, layer(k, x).relu())
        return torch.baddbmm(biases[-1], x, weights[-1]).unflatten(0, networks)


class KnowingQ(QEnsemble):
    """Q that reads a learned vector in the place of the columns that say which task it is.

    Args:
        head: what outputs mean.
        net: takes a vector of size D in the place of K columns.
        columns: where the K columns begin and end.
        table_KD: [K, D] the vectors.
    """

    def __init__(self, head: Head, net: MLP, columns: tuple[int, int], table_KD: Tensor) -> None:
        super().__init__(head, net)
        self.columns = columns
        self.table = nn.Parameter(table_KD[None])  # members share it, and runs have an axis behind them

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        first, end = self.columns
        table_KD = F.normalize((self.table.detach() if frozen else self.table)[0], dim=-1)
        known_BD = state_BS[..., first:end] @ table_KD
        return super().raw(torch.cat((state_BS[..., :first], known_BD, state_BS[..., end:]), -1), action, frozen)


class CategoricalReturns(QCritic):
    """Members learn a histogram of the return (BRC, arXiv 2505.23150): the mean of the target networks' histograms in the
    next state, each return z moved to r + gamma^h z, is shared out to the histogram's own returns, and each member has
    the cross-entropy to that."""

    side_by_side = True

    trunk: Trunk = BroNet()
    head: Atoms = Atoms()
    """Which returns the histogram has."""
    reduction: Literal["mean"] = "mean"
    """The mean of the members' probabilities, whose value is the mean of their values."""
    embedding: Count | None = 32
    """D, the size of the vector that a task of several has; None: its row of zeros with a one."""

    def make_for(self, spec: Spec, state: int, action: int, generator: torch.Generator) -> QNets:
        if not spec.tasks or self.embedding is None:
            return self.make(state, action, generator)
        count, size = len(spec.tasks), self.embedding
        first = spec.tasks[0]

        def known() -> KnowingQ:
            table_KD = torch.randn(count, size, generator=generator)
            inputs = state - count + size + action
            net = self.trunk.make(inputs, self.head.outputs, generator, self.ensemble)
            return KnowingQ(self.head, net, (first, first + count), table_KD)

        return QNets(self, known(), known(), None)

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        raw = nets.q.raw(batch.state_BS, batch.action_BA)
        with torch.no_grad():
            next_BA = policy.sample(batch.next_state_BS, noise).squeeze(-2)
            chance_BN = nets.target.raw(batch.next_state_BS, next_BA).softmax(-1).mean(0)
            moved_BN = bellman_target(batch.reward_B[..., None], batch.discount_B[..., None], self.head.atoms(raw))
            goal_BN = self.head.shared_out(moved_BN, chance_BN)
            target_B1 = (goal_BN * self.head.atoms(raw)).sum(-1, keepdim=True)
        loss = -(goal_BN * raw.log_softmax(-1)).sum(-1).mean(-1).sum(0)
        return loss, self.metrics(self.head.value(raw), target_B1, loss)


class NormalisedReturns(NStep):
    """Transitions whose rewards are divided so that no return is larger than `largest`: in each task by the largest absolute
    discounted return from any step of the data so far, where what is cut goes on with the mean reward of its episode.

    The data are what a batch is drawn from: recorded data and what was collected have each a divisor of their own, so
    learn from one of them (`retained` 0 or 1).
    """

    largest: Positive = 10.0
    """What returns are scaled to: where the critic's histogram ends."""

    @model_validator(mode="after")
    def _rewarded(self) -> Self:
        if not isinstance(self.goals, Given | None):
            raise ValueError("returns are normalised by the rewards of the data, which relabelled goals do not have")
        return self

    def __call__(
        self,
        store: TransitionStore,
        spec: Spec,
        row_B: np.ndarray,
        rng: np.random.Generator,
        return_R: np.ndarray | None = None,
    ) -> Batch:
        batch = super().__call__(store, spec, row_B, rng, return_R)
        divisor_K, number_R = self.divisors(store, spec)
        divisor_B = torch.from_numpy(divisor_K[number_R[row_B]].astype(np.float32))
        return batch._replace(reward_B=batch.reward_B / divisor_B, return_B=batch.return_B / divisor_B)

    def divisors(self, store: TransitionStore, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """[K] what the rewards of each task are divided by, and [R] which task each row is of. A task without a reward
        yet has 1."""
        tasks = list(spec.tasks)
        number_R = store.observation[:, tasks].argmax(1) if tasks else np.zeros(store.rows, int)
        length_E = store.last - store.first
        ahead_R = np.zeros(store.rows)
        mean_E = self.reward_scale * store.earned / length_E + self.reward_shift
        ahead_R[store.last] = mean_E / (1 - self.discount)
        return_R = store.lambda_returns(ahead_R, self.discount, 1.0, self.reward_scale, self.reward_shift)
        return_R[store.last] = 0  # nothing is taken there
        most_K = np.zeros(max(len(tasks), 1))
        np.maximum.at(most_K, number_R, np.abs(return_R))
        return np.where(most_K > 0, most_K / self.largest, 1.0), number_R
