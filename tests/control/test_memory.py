"""Memories and windows of transitions: what is read, what is masked, what is forgotten, who trains it."""

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.control import (
    DQN,
    GRU,
    SAC,
    CategoricalPolicy,
    ControlAgent,
    ControlEpisode,
    GaussianPolicy,
    Given,
    Greedy,
    Level,
    Memory,
    MemoryNets,
    NStep,
    Relabelled,
    TDCritic,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner
from longstride.control.networks import each
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk

SMALL = Trunk(width=8, depth=1)
SPEC = Spec(observation=1, action=1, goal=())


class TotalNets(MemoryNets):
    def forward(self, seen_BUI: Tensor, before_BM: Tensor) -> Tensor:
        return before_BM[:, None] + seen_BUI.cumsum(1)


class Total(Memory):
    """Keeps the sum of all that was seen."""

    def make(self, seen: int, generator: torch.Generator) -> TotalNets:
        return TotalNets(seen)


def counting(*lengths: int) -> TransitionStore:
    """Episodes with the observations 1, 2, 3 and the actions -1, -2, -3 and so on; the second has 10 times those."""
    episodes = []
    for k, n in enumerate(lengths):
        t = 10**k * np.arange(1, n + 2, dtype=np.float32)[:, None]
        episodes.append(ControlEpisode(t, -t[:-1], np.ones(n, np.float32), terminated=True))
    return TransitionStore.of(episodes)


def test_windows_by_hand() -> None:
    """Windows of two transitions of two steps, with one step read before, in episodes of three steps and of one."""
    memory, store = Total(window=2, burn_in=1), counting(3, 1)
    windows = memory.windows(NStep(steps=2), store, SPEC, np.array([0, 2, 4]), np.random.default_rng(0))
    assert windows.mask_BT.tolist() == [[True, True], [True, False], [True, False]]
    batch = windows.remembered(TotalNets(2))
    # each state is followed by the sums of the observations and of the actions before them, up to it
    assert batch.state_BS.tolist() == [[1, 1, 0], [2, 3, -1], [3, 5, -3], [10, 10, 0]]
    assert batch.next_state_BS.tolist() == [[3, 6, -3], [4, 10, -6], [4, 9, -6], [20, 30, -10]]
    assert batch.action_BA.tolist() == [[-1], [-2], [-3], [-10]]
    assert batch.discount_B.tolist() == [pytest.approx(0.99**2), 0, 0, 0]


def test_parts_of_windows_are_windows_and_join_to_the_whole() -> None:
    memory, store = Total(window=3, burn_in=2), counting(5, 4)
    windows = memory.windows(NStep(), store, SPEC, np.arange(4), np.random.default_rng(0))
    first, second = (each(lambda t: t.chunk(2)[k], windows) for k in range(2))  # noqa: B023
    assert len(first.seen_BUI) == len(second.seen_BUI) == 2
    whole, *parts = (w.remembered(TotalNets(2)) for w in (windows, first, second))
    for name in ("state_BS", "next_state_BS", "reward_B"):
        expected = getattr(whole, name)
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), expected)
        assert torch.equal(
            getattr(each(lambda *parts: torch.cat(parts), first, second).remembered(TotalNets(2)), name), expected
        )


def level(critic: bool) -> Level:
    if not critic:
        return Level(memory=GRU(size=5, window=4), policy=GaussianPolicy(trunk=SMALL))
    return Level(
        critic=TDCritic(trunk=SMALL),
        memory=GRU(size=5, window=4, burn_in=10),
        policy=GaussianPolicy(trunk=SMALL),
        extraction=SAC(),
    )


def test_an_agent_acts_on_the_memory_that_it_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    store = counting(6)
    store.action[:] /= 10  # what is taken is within [-1, 1]
    learner = ControlLearner(ControlAgent(levels=(level(critic=True),)), SPEC, 0)
    net = learner.levels[0]
    assert net.level.memory is not None and net.memory is not None
    states: list[Tensor] = []

    def greedy(state: Tensor, noise: RunNoise) -> Tensor:
        states.append(state)
        return torch.from_numpy(store.action[[len(states) - 1]])

    monkeypatch.setattr(net.actor.policy, "greedy", greedy)
    act = learner.actor(0, explore=False)
    for t in range(6):
        act(store.observation[[t]], np.zeros((1, 0)), np.array([t == 0]))
    trained = net.level.memory.windows(NStep(), store, SPEC, np.array([2]), np.random.default_rng(0))
    torch.testing.assert_close(torch.cat(states)[2:], trained.remembered(net.memory).state_BS)


def test_a_copy_whose_episode_begins_forgets_and_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = ControlLearner(ControlAgent(levels=(Level(memory=Total(), policy=GaussianPolicy(trunk=SMALL)),)), SPEC, 0)
    states: list[list[list[float]]] = []

    def greedy(state: Tensor, noise: RunNoise) -> Tensor:
        states.append(state.tolist())
        return torch.full((2, 1), 0.5)

    monkeypatch.setattr(learner.levels[0].actor.policy, "greedy", greedy)
    act = learner.actor(0, explore=False)
    for first in ([True, True], [False, False], [False, True]):
        act(np.array([[1.0], [2.0]]), np.zeros((2, 0)), np.array(first))
    assert states == [[[1, 1, 0], [2, 2, 0]], [[1, 2, 0.5], [2, 4, 0.5]], [[1, 3, 1.0], [2, 2, 0]]]


@pytest.mark.parametrize("critic", [True, False])
def test_a_memory_is_trained_by_the_critic_or_where_there_is_none_by_the_policy(critic: bool) -> None:
    learner = ControlLearner(ControlAgent(levels=(level(critic),), batch=4, slices=2), SPEC, 0)
    net = learner.levels[0]
    assert net.memory is not None
    of = {name: {id(p) for group in o.param_groups for p in group["params"]} for name, o in learner.optimisers.items()}
    weights = {id(p) for p in net.memory.parameters()}
    assert weights <= of["critic" if critic else "policy"] and not (critic and weights & of["policy"])
    before = [p.clone() for p in net.memory.parameters()]
    learner.train(1, [(counting(6, 3), 4)])
    assert all(not torch.equal(b, p) for b, p in zip(before, net.memory.parameters(), strict=True))


def recall(rng: np.random.Generator, episodes: int) -> list[ControlEpisode]:
    """The first of four observations has a cue, 1 or -1, and the last one asks for it: then action 0 or 1 is right, and
    action 0 before."""
    found = []
    for cue in rng.choice([-1, 1], episodes):
        observation = np.zeros((5, 2), np.float32)
        observation[0, 0], observation[3, 1] = cue, 1
        action = np.eye(2, dtype=np.float32)[[0, 0, 0, int(cue < 0)]]
        found.append(ControlEpisode(observation, action, np.zeros(4, np.float32), terminated=True))
    return found


def right(agent: ControlAgent) -> float:
    """The share of ten last actions that are right after training."""
    spec = Spec(observation=2, action=2, goal=(), discrete=True)
    learner = ControlLearner(agent, spec, 0)
    learner.train(150, [(TransitionStore.of(recall(np.random.default_rng(0), 40)), 32)])
    episodes, act = recall(np.random.default_rng(1), 10), learner.actor(0, explore=False)
    assert len({e.observation[0, 0] for e in episodes}) == 2
    for t in range(4):
        taken = act(np.stack([e.observation[t] for e in episodes]), np.zeros((10, 0)), np.full(10, t == 0))
    return float(np.mean([(taken[b] == e.action[3]).all() for b, e in enumerate(episodes)]))


def test_a_memory_recalls_what_a_policy_without_one_cannot_know() -> None:
    with_memory = Level(memory=GRU(size=16, window=4, burn_in=3), policy=CategoricalPolicy(trunk=SMALL))
    without = with_memory.replace(memory=None)
    assert right(ControlAgent(levels=(with_memory,), policy_lr=1e-2)) == 1
    assert right(ControlAgent(levels=(without,), policy_lr=1e-2)) < 1


@pytest.mark.parametrize(
    "data",
    [NStep(goals=Relabelled()), NStep(goals=Given(), action="subgoal"), NStep(action="chunk", steps=2)],
)
def test_a_memory_of_goals_or_actions_that_no_episode_has_is_refused(data: NStep) -> None:
    with pytest.raises(ValueError, match="a memory goes with"):
        Level(memory=GRU(), policy=GaussianPolicy(), data=data)


def test_a_q_network_learns_on_windows_too() -> None:
    agent = ControlAgent(
        levels=(
            Level(critic=DQN(trunk=SMALL), memory=GRU(size=3), policy=UniformPolicy(), extraction=Greedy(epsilon=0.0)),
        ),
        batch=8,
    )
    spec = Spec(observation=2, action=2, goal=(), discrete=True)
    learner = ControlLearner(agent, spec, 0)
    metrics = learner.train(2, [(TransitionStore.of(recall(np.random.default_rng(0), 6)), 8)])
    assert metrics.keys() == {"q", "q_target", "q_loss"} and "policy" not in learner.optimisers
