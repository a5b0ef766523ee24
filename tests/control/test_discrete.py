"""Discrete actions, distributions and several critics: by hand, and on a chain whose values are known."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.control import (
    DQN,
    SAC,
    Batch,
    BehaviourCloning,
    CategoricalPolicy,
    Conservative,
    ControlAgent,
    ControlEpisode,
    ControlPolicy,
    FlowPolicy,
    FurtherCritic,
    GaussianPolicy,
    Given,
    Greedy,
    Level,
    NStep,
    QNets,
    Relabelled,
    TDCritic,
    TransitionStore,
    UniformPolicy,
    WeightedCritics,
)
from longstride.control.critics import DiscreteQ
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.control.policies import CategoricalNets, UniformNets
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.models.heads import Head, Quantiles, Scalar
from longstride.models.mlp import MLP, Trunk

SMALL = Trunk(width=8, depth=1)
RELU = Trunk(width=16, depth=1, norm=False, activation="relu")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Table(MLP):
    """A network whose [E, outputs] outputs are given, whatever the state."""

    def __init__(self, *rows: list[float]) -> None:
        super().__init__(SMALL, 1, 1, seeded(), 1, 1.0)
        self.rows = torch.nn.Parameter(torch.tensor(rows, dtype=torch.float))

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        rows = self.rows.detach() if frozen else self.rows
        return rows[:, None].expand(-1, len(x), -1)


def tabled(critic: DQN, online: Table, target: list[list[float]]) -> QNets:
    other = Table(*target)
    nets = QNets(critic, DiscreteQ(critic.head, online), DiscreteQ(critic.head, other), None)
    with torch.no_grad():  # which began as the trained network
        other.rows.copy_(torch.tensor(target))
    return nets


def step(action: int, reward: float = 1.0, discount: float = 0.5) -> Batch:
    """One transition of three actions."""
    return Batch(
        torch.zeros(1, 1), torch.eye(3)[[action]], torch.tensor([reward]), torch.tensor([discount]), torch.ones(1, 1),
        torch.tensor([math.nan]),
    )  # fmt: skip


def loss_of(critic: DQN, nets: QNets, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    return critic.loss(nets, batch, UniformPolicy().make(1, 3, seeded()), RunNoise.seeded(0), conservative=False)


def test_double_targets_are_chosen_by_the_trained_network_and_valued_by_the_target_network() -> None:
    critic = DQN(trunk=SMALL)
    nets = tabled(critic, online := Table([0.0, 5.0, 4.0]), target=[[9.0, 2.0, 3.0]])
    loss, metrics = loss_of(critic, nets, step(2))
    assert metrics["q_target"].item() == 1 + 0.5 * 2  # the maximum of the target network is 9
    assert loss.item() == (4 - 2) ** 2
    loss.backward()
    assert online.rows.grad is not None and online.rows.grad.tolist() == [[0, 0, 4]]
    assert all(p.grad is None for p in nets.target.parameters())
    assert loss_of(critic, nets, step(2, discount=0.0))[1]["q_target"].item() == 1


def test_two_q_networks_choose_and_value_by_their_least() -> None:
    critic = DQN(trunk=SMALL, ensemble=2)
    nets = tabled(critic, Table([0, 5, 4], [3, 1, 9]), target=[[9, 2, 3], [9, 7, 1]])
    assert loss_of(critic, nets, step(0))[1]["q_target"].item() == 1 + 0.5 * 1  # action 2: min(4, 9), then min(3, 1)


def test_quantile_targets_are_the_returns_of_the_chosen_action() -> None:
    """Two quantiles an action: of the action that is best by its mean (1: 2 and 6), the target's (1 and 3)."""
    critic = DQN(trunk=SMALL, head=Quantiles(count=2))
    nets = tabled(critic, Table([0, 0, 2, 6, 3, 3]), target=[[9, 9, 1, 3, 9, 9]])
    loss, metrics = loss_of(critic, nets, step(2))
    assert metrics["q"].item() == 3 and metrics["q_target"].item() == 1 + 0.5 * 2
    # quantiles 1/4 and 3/4 of the action taken are 3 and 3, the targets 1.5 and 2.5: Huber losses 1 and 0.125
    assert loss.item() == pytest.approx((1 - 0.25) * (1 + 0.125) / 2 + (1 - 0.75) * (1 + 0.125) / 2)


@pytest.mark.parametrize("head", [Quantiles(count=5), Scalar()])
def test_outputs_of_any_head_are_read_by_action(head: Head) -> None:
    q = DQN(trunk=SMALL, head=head, ensemble=2).make(4, 3, seeded()).q
    assert isinstance(q, DiscreteQ)
    state, every = torch.randn(6, 4, generator=seeded(1)), torch.eye(3).expand(6, 3, 3)
    each = q.each(state)
    assert each.shape == (2, 6, 3, head.outputs)
    torch.testing.assert_close(q.raw(state, every), each)
    for action in range(3):
        torch.testing.assert_close(q.raw(state, every[:, action]), each[:, :, action])
        torch.testing.assert_close(q.score(state, every)[..., action], head.value(each[:, :, action]))


def test_greedy_takes_the_best_action_and_explores_by_its_share() -> None:
    critic = DQN(trunk=SMALL)
    nets, states = tabled(critic, Table([1.0, 3.0, 2.0]), [[0.0, 0.0, 0.0]]), torch.zeros(3000, 1)
    greedy = Greedy(epsilon=0.3)
    actor = greedy.make(UniformPolicy().make(1, 3, seeded()))
    best = greedy.act(actor, nets, states, RunNoise.seeded(0), explore=False)
    assert best.tolist() == [[0, 1, 0]] * 3000
    tried = greedy.act(actor, nets, states, RunNoise.seeded(0), explore=True)
    np.testing.assert_allclose(tried.mean(0), [0.1, 0.8, 0.1], atol=0.02)


def test_a_categorical_policy_has_the_shares_of_its_softmax() -> None:
    policy = CategoricalPolicy(trunk=SMALL).make(2, 3, seeded())
    assert isinstance(policy, CategoricalNets)
    with torch.no_grad():
        policy.net.biases[-1].copy_(torch.tensor([0.0, math.log(3), math.log(6)]))
        policy.net.weights[-1].zero_()
    state = torch.randn(2, 2, generator=seeded(1))
    drawn = policy.sample(state, RunNoise.seeded(2), 20_000)
    assert drawn.shape == (2, 20_000, 3) and (drawn.sum(-1) == 1).all()
    np.testing.assert_allclose(drawn.mean(1), [[0.1, 0.3, 0.6]] * 2, atol=0.02)
    assert policy.greedy(state, RunNoise.seeded(0)).tolist() == [[0, 0, 1]] * 2
    loss = policy.imitation_loss(state, torch.eye(3)[[0, 2]], RunNoise.seeded(0))
    torch.testing.assert_close(loss, -torch.tensor([0.1, 0.6]).log())
    uniform = UniformNets(4)
    assert not list(uniform.parameters())
    torch.testing.assert_close(
        uniform.imitation_loss(state, torch.eye(4)[[0, 3]], RunNoise.seeded(0)), torch.full((2,), math.log(4))
    )


CHAIN = 4
CHAIN_SPEC = Spec(observation=CHAIN, action=2, goal=(), discrete=True)


def chain(episodes: int) -> TransitionStore:
    """Random walks: action 1 leads to the next of four states, action 0 stays; the last state ends the episode, and
    reaching it earns 1. Walks are cut after eight steps."""
    rng, found = np.random.default_rng(0), []
    for _ in range(episodes):
        states, actions = [0], []
        while states[-1] < CHAIN - 1 and len(actions) < 8:
            actions.append(int(rng.integers(2)))
            states.append(states[-1] + actions[-1])
        over = states[-1] == CHAIN - 1
        reward = np.array([float(s == CHAIN - 1) for s in states[1:]], np.float32)
        one_hot, acted = (np.eye(n, dtype=np.float32)[k] for n, k in ((CHAIN, states), (2, actions)))
        found.append(ControlEpisode(one_hot, acted, reward, over))
    return TransitionStore.of(found)


def deciding(critic: DQN, **changes: Any) -> ControlAgent:
    level = Level(data=NStep(discount=0.5), critic=critic, policy=UniformPolicy(), extraction=Greedy(), **changes)
    return ControlAgent(levels=(level,), batch=64, critic_lr=1e-2)


@pytest.mark.parametrize("head", [Scalar(), Quantiles(count=4, kappa=0.1)])
def test_a_q_network_learns_the_values_of_a_chain(head: Head) -> None:
    """They are those of always going on, 0.5^k for k steps after this one, though half of the data stays."""
    learner = ControlLearner(deciding(DQN(trunk=RELU, head=head, tau=0.1)), CHAIN_SPEC, 0)
    learner.train(300, [(chain(100), 64)])
    nets = learner.levels[0].critic
    assert isinstance(nets, QNets)
    values = nets.q.value(torch.eye(CHAIN)[:-1], torch.eye(2).expand(CHAIN - 1, 2, 2))[0]
    np.testing.assert_allclose(values.detach(), [[0.125, 0.25], [0.25, 0.5], [0.5, 1.0]], atol=0.03)
    act = learner.actor(0, explore=False)
    here = np.eye(CHAIN, dtype=np.float32)[:-1]
    assert act(here, np.zeros((3, 0)), np.full(3, True)).tolist() == [[0, 1]] * 3


def test_a_further_critic_learns_from_data_of_its_own_and_weighs_in() -> None:
    """FurtherCritic the values at discount 0.5 those of the doubled reward at discount 0.9."""
    far = FurtherCritic(critic=DQN(trunk=RELU, tau=0.1), data=NStep(discount=0.9, reward_scale=2.0), weight=-2.0)
    agent = deciding(DQN(trunk=RELU, tau=0.1), further={"far": far})
    assert build(ControlAgent, agent.as_data()) == agent
    learner = ControlLearner(agent, CHAIN_SPEC, 0)
    metrics = learner.train(300, [(chain(100), 64)])
    assert {"q_loss", "far.q_loss"} <= metrics.keys()
    nets = learner.levels[0].critic
    assert isinstance(nets, WeightedCritics)
    first, going_on = torch.eye(CHAIN)[[0]], torch.eye(2)[[1]]
    values = {name: part.score(first, going_on).item() for name, part in nets.parts.items()}
    assert values == {"critic": pytest.approx(0.5**2, abs=0.03), "far": pytest.approx(2 * 0.9**2, abs=0.05)}
    assert nets.score(first, going_on).item() == pytest.approx(values["critic"] - 2 * values["far"])
    again = ControlLearner(agent, CHAIN_SPEC, 1)
    again.load_state(*learner.state())
    restored = again.levels[0].critic
    assert restored is not None and restored.score(first, going_on) == nets.score(first, going_on)


def test_each_of_two_levels_has_a_critic_of_its_own_kind() -> None:
    spec = Spec(observation=4, action=2, goal=(0, 1))
    above = Level(
        data=NStep(goals=Relabelled(), action="subgoal", steps=3),
        critic=TDCritic(trunk=SMALL, head=Quantiles(count=3)),
        policy=GaussianPolicy(trunk=SMALL),
        extraction=SAC(),
    )
    below = Level(
        data=NStep(goals=Relabelled(current=0.2, future=0.8)),
        critic=TDCritic(trunk=SMALL, ensemble=3, subset=2),
        policy=GaussianPolicy(trunk=SMALL),
        extraction=SAC(),
    )
    learner = ControlLearner(ControlAgent(levels=(above, below), batch=8, slices=2), spec, 0)
    rng = np.random.default_rng(0)
    observation, action = rng.normal(size=(6, 4)), rng.uniform(-1, 1, (5, 2))
    metrics = learner.train(2, [(TransitionStore.of([ControlEpisode(observation, action, np.zeros(5), False)]), 8)])
    assert {f"level_{k}.{name}" for k in (0, 1) for name in ("q", "q_target", "q_loss", "score")} <= metrics.keys()
    upper, lower = (net.critic for net in learner.levels)
    assert isinstance(upper, QNets) and isinstance(lower, QNets)
    assert len(upper.q.net.weights[0]) == 2 and len(lower.q.net.weights[0]) == 3
    act = learner.actor(0, explore=True)
    assert act(observation[:1], observation[:1, :2], np.array([True])).shape == (1, 2)


def test_discrete_actions_are_cloned_too() -> None:
    level = Level(policy=CategoricalPolicy(trunk=SMALL), extraction=BehaviourCloning())
    learner = ControlLearner(ControlAgent(levels=(level,), batch=32, policy_lr=1e-2), CHAIN_SPEC, 0)
    losses = [learner.train(40, [(chain(30), 32)])["imitation"] for _ in range(2)]
    assert losses[1] == pytest.approx(math.log(2), abs=0.03)  # walks are random


@pytest.mark.parametrize(
    ("policy", "discrete"),
    [(GaussianPolicy(), True), (FlowPolicy(), True), (CategoricalPolicy(), False), (UniformPolicy(), False)],
)
def test_a_policy_for_other_actions_than_the_tasks_have_is_refused(policy: ControlPolicy, discrete: bool) -> None:
    spec = Spec(observation=3, action=2, goal=(), discrete=discrete)
    with pytest.raises(ConfigError, match=f"policy {policy.type_name()} does not fit: the actions of this level are"):
        ControlLearner(ControlAgent(levels=(Level(policy=policy),)), spec, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"critic": DQN()}, "dqn needs discrete actions: policy must be .* not flow_policy"),
        ({"critic": TDCritic(), "extraction": Greedy()}, "extraction greedy needs discrete actions"),
        ({"policy": UniformPolicy(), "data": NStep(action="chunk", steps=2)}, "one at a time"),
        ({"further": {"far": FurtherCritic(critic=TDCritic())}}, "set critic"),
        ({"critic": TDCritic(), "further": {"critic": FurtherCritic(critic=TDCritic())}}, "a word other than `critic`"),
        ({"critic": TDCritic(), "further": {"a.b": FurtherCritic(critic=TDCritic())}}, "not 'a.b'"),
        (
            {"critic": TDCritic(), "further": {"far": FurtherCritic(critic=TDCritic(), data=NStep(goals=Given()))}},
            "value the same actions in the same kind of state",
        ),
        (
            {"critic": TDCritic(), "further": {"low": FurtherCritic(critic=TDCritic(conservative=Conservative()))}},
            "densities",
        ),
    ],
)
def test_critics_and_policies_that_do_not_fit_together_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Level(**fields)
