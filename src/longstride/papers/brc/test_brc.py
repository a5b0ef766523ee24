"""BRC: the histogram's target and the layers by hand, rewards beside the authors' normaliser, and two tasks at once in a
world of the test's own."""

import math

import numpy as np
import pytest
import torch
from aiming import Aiming, off_after

from longstride import papers
from longstride.control import Batch, ControlEpisode, ControlTasks, GaussianPolicy, Several, TransitionStore
from longstride.control.envs import Spec
from longstride.control.noise import RunNoise
from longstride.models.heads import Atoms
from longstride.models.mlp import Trunk
from longstride.papers.brc.method import BroNet, CategoricalReturns, KnowingQ, NormalisedReturns

ATOMS = Atoms(low=-1.0, high=1.0, count=5)
POLICY = GaussianPolicy(trunk=Trunk(width=4, depth=1)).make(3, 1, torch.Generator())


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_a_return_is_shared_out_to_the_two_nearest_and_keeps_its_value() -> None:
    shared = ATOMS.shared_out(torch.tensor([[0.1, -0.5], [7.0, -7.0]]), torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    torch.testing.assert_close(shared, torch.tensor([[0, 0.5, 0.4, 0.1, 0], [0, 0, 0, 0, 1.0]]))
    assert (shared[0] @ ATOMS.atoms(shared)).item() == pytest.approx(-0.2)
    raw = torch.randn(5, generator=seeded())
    by_hand = -(0.8 * raw.log_softmax(0)[2] + 0.2 * raw.log_softmax(0)[3])
    torch.testing.assert_close(ATOMS.loss(raw, torch.tensor(0.1)), by_hand)


def test_the_loss_is_the_cross_entropy_to_the_moved_histogram_of_both_target_networks() -> None:
    critic = CategoricalReturns(trunk=BroNet(width=4), head=ATOMS)
    nets, state = critic.make(3, 1, seeded()), torch.randn(2, 3, generator=seeded())
    with torch.no_grad():
        for p in nets.target.parameters():
            p += 0.3 * torch.randn(p.shape, generator=seeded())
    batch = Batch(state, state[:, :1], torch.tensor([0.3, -2.0]), torch.tensor([0.5, 0.0]), -state, state[:, 0])
    loss, metrics = critic.loss(nets, batch, POLICY, RunNoise.seeded(4), conservative=False)
    after = nets.target.raw(-state, POLICY.sample(-state, RunNoise.seeded(4))[:, 0]).softmax(-1).mean(0)
    expected, target = 0.0, 0.0
    for b in range(2):
        goal = [0.0] * 5
        for k, z in enumerate((-1.0, -0.5, 0.0, 0.5, 1.0)):
            place = (min(max(batch.reward_B[b].item() + batch.discount_B[b].item() * z, -1.0), 1.0) + 1) / 0.5
            low = math.floor(place)
            goal[low] += after[b, k].item() * (low + 1 - place)
            goal[min(low + 1, 4)] += after[b, k].item() * (place - low)
        target += sum(g * (0.5 * k - 1) for k, g in enumerate(goal)) / 2
        logs = nets.q.raw(state, state[:, :1])[:, b].log_softmax(-1)
        expected -= sum(logs[e, k].item() * goal[k] for e in range(2) for k in range(5)) / 2
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert metrics["q_target"].item() == pytest.approx(target, abs=1e-6)


def test_layers_are_those_of_torch_with_skips() -> None:
    net, x = BroNet(width=6, depth=1).make(3, 2, seeded(), members=2), torch.randn(4, 3, generator=seeded())
    with torch.no_grad():
        for p in (*net.biases, *net.gains, *net.shifts):
            p += 0.5 * torch.randn(p.shape, generator=seeded())
    for member, found in enumerate(net(x)):
        w, b, g, s = ([p[member] for p in of] for of in (net.weights, net.biases, net.gains, net.shifts))

        def layer(k: int, x: torch.Tensor, w=w, b=b, g=g, s=s) -> torch.Tensor:
            return torch.nn.functional.layer_norm(x @ w[k] + b[k], (6,), g[k][0], s[k][0])

        h = layer(0, x).relu()
        h = h + layer(2, layer(1, h).relu())
        torch.testing.assert_close(found, h @ w[3] + b[3])
        torch.testing.assert_close(w[1] @ w[1].mT, 2 * torch.eye(6), atol=1e-5, rtol=1e-5)


def test_a_task_is_a_vector_of_length_one_which_policies_do_not_move() -> None:
    critic, spec = CategoricalReturns(trunk=BroNet(width=4), head=ATOMS, embedding=7), Spec(4, 1, (), tasks=(2, 3))
    nets = critic.make_for(spec, 4, 1, seeded())
    q = nets.q
    assert isinstance(q, KnowingQ) and q.net.weights[0].shape == (2, 2 + 7 + 1, 4)
    first, second = torch.tensor([[0.3, 0.4, 1.0, 0.0]]), torch.tensor([[0.3, 0.4, 0.0, 1.0]])
    action = torch.tensor([[0.5]], requires_grad=True)
    vector = q.table[0, 1] / q.table[0, 1].norm()
    torch.testing.assert_close(q.raw(second, action), q.net(torch.cat((second[0, :2], vector, action[0]))[None]))
    assert not torch.allclose(q.raw(first, action), q.raw(second, action))
    nets.score(first, action).sum().backward()
    assert q.table.grad is None and action.grad is not None
    q.raw(first, action).sum().backward()
    assert q.table.grad is not None and q.table.grad[0, 0].abs().sum() > 0 and not q.table.grad[0, 1].any()


def test_rewards_are_divided_as_by_the_authors() -> None:
    """`RewardNormalizer` of naumix/BiggerRegularizedCategorical (`jaxrl/normalizer.py`, commit eec512f) at a temperature
    of 0: largest returns of 9 and 76.25, and rewards of 1 that become these."""
    spec = Spec(3, 1, (), tasks=(1, 2))
    told = [
        (0, [1.0, -2.0, 3.0], False), (0, [0.5, 0.5], True), (1, [-10.0, 0.0, 5.0, -20.0], False)
    ]  # fmt: skip
    store = TransitionStore.of([
        ControlEpisode(np.eye(3)[[1 + k] * (len(r) + 1)], np.zeros((len(r), 1)), np.array(r), ended) for k, r, ended in told
    ])  # fmt: skip
    data, row_B = NormalisedReturns(discount=0.9), np.array([0, 2, 10])
    assert data.divisors(store, spec)[0] * 10 == pytest.approx([9.0, 76.25])
    batch = data(store, spec, row_B, np.random.default_rng(0))
    assert batch.reward_B.tolist() == pytest.approx([1.11111114, 3 * 1.11111114, -20 * 0.13114754])


def test_two_tasks_whose_rewards_differ_a_thousandfold_are_learned_at_once() -> None:
    parts: dict[str, ControlTasks] = {"small": Aiming(scale=0.03, noise=0.1), "large": Aiming(scale=30.0, noise=0.1)}
    off, learner = off_after(papers.load("brc"), Several(parts=parts), updates=100)
    critic = learner.levels[0].critic
    assert off < 0.25 and critic is not None
    action = torch.tensor([[0.5]])
    earned = [critic.score(torch.tensor([[-0.5, *of]]), action) for of in ((1.0, 0.0), (0.0, 1.0))]
    assert all(value.item() < -1 for value in earned)
