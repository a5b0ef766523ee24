"""Agents, learner and loop: what is trained when, on what, and that all of it follows from the seed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from longstride.control import (
    SAC,
    Agent,
    Ahead,
    Conservative,
    ControlLearner,
    ControlLoop,
    Gather,
    Given,
    Level,
    Phase,
    PolicyValue,
    Rejection,
    Relabelled,
    Sarsa,
    TransitionStore,
    algorithms,
)  # fmt: skip
from longstride.control.envs import PointMaze, Spec
from longstride.control.policies import Gaussian
from longstride.core.component import build
from longstride.core.config import dump_toml
from longstride.core.errors import ConfigError, RunError
from longstride.models.mlp import Trunk

SMALL = Trunk(width=8, depth=1)
REACH = PointMaze(maze="umaze", walks="reach", episodes=5, length=60)
WALKS = PointMaze(maze="umaze", episodes=5, length=60)
NAMED: dict[str, Agent] = {
    name: value for name, value in vars(algorithms).items() if isinstance(value, Agent)
} | {"SAC_BC": algorithms.sac_bc(5, 0.1)}  # fmt: skip


def small(agent: Agent) -> Agent:
    """The agent with networks and batches that take no time."""
    data = agent.as_data()
    data |= {"batch": 8 * agent.slices}
    for level in data["levels"]:
        level["policy"]["trunk"] = SMALL.as_data()
        if "critic" in level:
            level["critic"]["trunk"] = SMALL.as_data()
        if level["extraction"]["type"] == "rejection":
            level["extraction"]["samples"] = 3
    return build(Agent, data)


def tasks_of(agent: Agent) -> PointMaze:
    return REACH if isinstance(agent.levels[0].data.goals, Given) else WALKS


@pytest.mark.parametrize("name", NAMED)
def test_every_algorithm_is_plain_data_updates_and_acts(name: str) -> None:
    agent = NAMED[name]
    assert build(Agent, agent.as_data()) == agent and "levels" in dump_toml(agent)
    agent = small(agent)
    loop = ControlLoop(tasks_of(agent), agent, [algorithms.offline(1, updates=2)], seed=0)
    before = {key: tensor.clone() for key, tensor in loop.learner.state().items()}
    metrics = loop.update(1, horizon=20)
    assert metrics["updates"] == 2 and all(np.isfinite(v) for v in metrics.values())
    after = loop.learner.state()
    assert all(not torch.equal(before[key], after[key]) for key in before)
    tested = loop.evaluate(1, horizon=5)
    assert len(tested.episodes) == 5 and set(tested.by_task()) == set(tested.names)


WSRL = small(algorithms.WSRL)
PHASES = (algorithms.offline(1, updates=2), *algorithms.warm_started(1, 2, episodes=2, utd=0.1))


def test_a_loop_that_was_saved_and_loaded_gives_the_numbers_of_one_that_was_not() -> None:
    whole, first = (ControlLoop(REACH, WSRL, PHASES, seed=3) for _ in range(2))
    rows = [whole.update(i, horizon=15) for i in range(1, 5)]
    for i in (1, 2, 3):
        assert first.update(i, horizon=15) == rows[i - 1]
    tensors, numbers = first.state()
    resumed = ControlLoop(REACH, WSRL, PHASES, seed=3)
    resumed.load_state(tensors, numbers)
    assert resumed.update(4, horizon=15) == rows[3]
    mine, theirs = whole.state()[0], resumed.state()[0]
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)
    a, b = whole.evaluate(2, 15), resumed.evaluate(2, 15)
    assert all((x.observation == y.observation).all() for x, y in zip(a.episodes, b.episodes, strict=True))
    other = ControlLoop(REACH, WSRL, PHASES, seed=4)
    assert other.update(1, horizon=15) != rows[0]


def test_a_state_of_another_agent_is_refused() -> None:
    tensors, _ = ControlLoop(REACH, WSRL, PHASES, seed=0).state()
    with pytest.raises(RunError, match="another agent"):
        ControlLearner(small(algorithms.CQL), REACH.spec, 0).load_state(tensors)


def test_warm_up_collects_without_learning_and_online_leaves_offline_data_and_conservatism(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[list[int], bool]] = []
    update = ControlLearner.update

    def spied(self: ControlLearner, number: int, sources: Any, conservative: bool = True) -> Any:
        seen.append(([count for _, count in sources], conservative))
        return update(self, number, sources, conservative)

    monkeypatch.setattr(ControlLearner, "update", spied)
    loop = ControlLoop(REACH, WSRL, PHASES, seed=0)
    assert loop.iterations == 4
    loop.update(1, 15)
    assert seen == [([32, 0], True)] * 2
    before = loop.learner.state()["0.actor.policy.net.biases.0"].clone()
    warm = loop.update(2, 15)
    assert (warm["collected"], warm["updates"], len(seen)) == (2, 0, 2) and warm["env_steps"] == len(loop.collected)
    assert torch.equal(before, loop.learner.state()["0.actor.policy.net.biases.0"])
    online = loop.update(3, 15)
    assert online["updates"] == round(0.1 * online["env_steps"]) > 0
    assert set(map(str, seen[2:])) == {str(([0, 32], False))}
    seen.clear()
    mixed = ControlLoop(REACH, small(algorithms.CAL_QL), [algorithms.retaining(1, episodes=1, utd=0.1)], seed=0)
    mixed.update(1, 15)
    assert set(map(str, seen)) == {str(([4, 4], True))}


def test_a_batch_of_two_stores_is_of_both_in_their_shares() -> None:
    stores = []
    for sign in (1, -1):
        store = TransitionStore(4, 2, 2)
        store.extend(REACH.dataset(0))
        store.observation[:] = sign
        stores.append(store)
    learner = ControlLearner(small(algorithms.CQL), REACH.spec, 0)
    (batch,), _ = learner._draw([(stores[0], 3), (stores[1], 5)], np.random.default_rng(0))
    assert batch.state_BS[:, 0].tolist() == [1] * 3 + [-1] * 5


def test_slices_are_critic_steps_and_policies_see_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, list[int]] = {"critic": [], "policy": []}
    critic_loss, policy_loss = PolicyValue.loss, SAC.loss

    def of_critic(self: Any, nets: Any, batch: Any, *rest: Any, **more: Any) -> Any:
        sizes["critic"].append(len(batch.reward_B))
        return critic_loss(self, nets, batch, *rest, **more)

    def of_policy(self: Any, actor: Any, critic: Any, batch: Any, generator: Any) -> Any:
        sizes["policy"].append(len(batch.reward_B))
        return policy_loss(self, actor, critic, batch, generator)

    monkeypatch.setattr(PolicyValue, "loss", of_critic)
    monkeypatch.setattr(SAC, "loss", of_policy)
    ControlLoop(REACH, WSRL, [algorithms.offline(1, updates=1)], seed=0).update(1, 5)
    assert sizes == {"critic": [8, 8, 8, 8], "policy": [32]}


def test_chunks_are_acted_out_one_action_after_the_other() -> None:
    agent = small(Agent(levels=(Level(data=Gather(goals=Relabelled(), action="chunk", steps=3)),)))
    learner = ControlLearner(agent, Spec(observation=4, action=2, goal=(0, 1)), 0)
    asked: list[int] = []
    policy = learner.levels[0].actor.policy

    def numbered(state: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        asked.append(1)
        return torch.arange(6.0).expand(len(state), 6) / 10 + len(asked) - 1

    policy.best = numbered  # pyright: ignore[reportAttributeAccessIssue]
    act = learner.actor(0, explore=False)
    taken = [act(np.zeros((2, 4)), np.zeros((2, 2))) for _ in range(4)]
    np.testing.assert_allclose([a[1] for a in taken], [[0, 0.1], [0.2, 0.3], [0.4, 0.5], [1, 1]], rtol=1e-6)
    assert len(asked) == 2  # and 1.0 is cut to the box


def test_the_action_of_a_level_is_the_goal_of_the_next() -> None:
    learner = ControlLearner(small(algorithms.HIERARCHICAL_BC), Spec(observation=4, action=2, goal=(0, 1)), 0)
    seen: list[torch.Tensor] = []

    def answer(value: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
        def best(state: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            seen.append(state)
            return torch.full((len(state), 2), value)

        return best

    for level, value in zip(learner.levels, (7.0, 0.5), strict=True):
        level.actor.policy.best = answer(value)  # pyright: ignore[reportAttributeAccessIssue]
    action = learner.actor(0, explore=False)(np.ones((1, 4)), np.full((1, 2), 3.0))
    assert [s.tolist() for s in seen] == [[[1, 1, 1, 1, 3, 3]], [[1, 1, 1, 1, 7, 7]]]
    assert action.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Level(extraction=Rejection()), "needs a critic"),
        (lambda: Level(extraction=SAC(), critic=Sarsa()), "must be gaussian"),
        (lambda: Level(critic=PolicyValue(conservative=Conservative())), "a conservative critic needs densities"),
        (lambda: Level(policy_goals=Ahead(steps=2)), "beside a critic"),
        (lambda: Level(policy_goals=Ahead(steps=2), critic=Sarsa()), "data.goals are none"),
        (
            lambda: Level(
                data=Gather(goals=Relabelled()),
                policy=Gaussian(),
                critic=PolicyValue(conservative=Conservative(calibrated=True)),
            ),
            "returns of the data",
        ),
        (lambda: Agent(levels=(Level(data=Gather(action="subgoal")),)), "the last level acts"),
        (lambda: Agent(levels=(Level(), Level(data=Gather(goals=Given())))), "decides subgoals"),
        (lambda: Agent(levels=(Level(data=Gather(action="subgoal")), Level())), "needs goals"),
        (lambda: Agent(levels=(Level(),), batch=10, slices=4), "multiple of slices"),
        (lambda: Phase(iterations=1), "collects or updates"),
        (lambda: Relabelled(current=0.2), "shares of one"),
    ],
)
def test_what_does_not_fit_together_is_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_a_mistyped_part_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="sarsa"):
        build(Level, {"critic": {"type": "sarza"}})
    assert build(Level, {"policy": {"type": "gaussian"}}).policy == Gaussian()
