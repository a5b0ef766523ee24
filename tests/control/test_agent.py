"""Agents and their learner: what fits together, what an update reads, how an agent acts, and that it follows from the
seed."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from longstride import papers
from longstride.control import (
    GRU,
    SAC,
    BestOfN,
    Conservative,
    ControlAgent,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    PointMaze,
    Relabelled,
    TDCritic,
    TrainingPhase,
    TransitionStore,
)
from longstride.control.envs import ControlEpisode, Spec, play
from longstride.control.learner import ControlLearner
from longstride.control.meta import Reptile
from longstride.control.noise import RunNoise
from longstride.core.component import build
from longstride.core.config import dump_toml
from longstride.core.errors import ConfigError, RunError
from longstride.models.mlp import Trunk
from longstride.papers.martingale_evaluation.method import MartingaleValue
from longstride.papers.sharsa.method import Sarsa, SubgoalAhead
from longstride.papers.sharsa.recipe import CLAIM

SMALL = Trunk(width=8, depth=1)
REACH = PointMaze(maze="umaze", walks="reach", episodes=5, length=60)
WALKS = PointMaze(maze="umaze", episodes=5, length=60)
SPEC = Spec(observation=4, action=2, goal=(0, 1))


def of_experiment(experiment: object) -> ControlAgent:
    assert isinstance(experiment, ControlRecipe)
    return experiment.agent


PAPERS = ("cql", "cal_ql", "wsrl", "sharsa", "td3_bc", "awac", "iql", "hiql")
AGENTS = {name: of_experiment(papers.load(name)) for name in PAPERS}
AGENTS |= {name: of_experiment(CLAIM.arms[name]) for name in ("n_step", "one_step")}


def small(agent: ControlAgent) -> ControlAgent:
    """The agent with networks and batches that take no time."""
    levels = tuple(
        level.replace(
            policy={"trunk": SMALL},
            critic=level.critic.replace(trunk=SMALL) if level.critic else None,
            extraction=BestOfN(samples=3) if isinstance(level.extraction, BestOfN) else level.extraction,
        )
        for level in agent.levels
    )
    return agent.replace(levels=levels, batch=8 * agent.slices)


def tasks_of(agent: ControlAgent) -> PointMaze:
    return REACH if isinstance(agent.levels[0].data.goals, Given) else WALKS


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_is_plain_data_updates_all_its_weights_and_acts(name: str) -> None:
    agent = AGENTS[name]
    assert build(ControlAgent, agent.as_data()) == agent and "levels" in dump_toml(agent)
    agent, tasks = small(agent), tasks_of(agent)
    learner = ControlLearner(agent, tasks.spec, seed=0)
    before = {key: tensor.clone() for key, tensor in learner.state()[0].items()}
    metrics = learner.train(2, [(TransitionStore.of(tasks.dataset(0)), agent.batch)])
    assert metrics and all(np.isfinite(v) for v in metrics.values())
    after = learner.state()[0]
    assert all(not torch.equal(before[key], after[key]) for key in before)
    episodes = play(tasks.tests(1, horizon=5)[0], learner.actor(0, explore=False), 0)
    assert len(episodes) == 5 and all(e.length <= 5 and np.isfinite(e.action).all() for e in episodes)


WSRL, CQL = small(AGENTS["wsrl"]), small(AGENTS["cql"])


def test_a_restored_learner_continues_with_the_same_numbers() -> None:
    sources = [(TransitionStore.of(REACH.dataset(0)), WSRL.batch)]
    learner, restored, other = (ControlLearner(WSRL, REACH.spec, seed) for seed in (3, 3, 4))
    first = learner.train(3, sources)
    restored.load_state(*learner.state())
    assert restored.train(2, sources) == learner.train(2, sources)
    mine, theirs = learner.state(), restored.state()
    assert mine[1] == theirs[1] == {"updates": 5} and mine[0].keys() == theirs[0].keys()
    assert all(torch.equal(mine[0][key], theirs[0][key]) for key in mine[0])
    assert other.train(3, sources) != first


def test_a_state_of_another_agent_and_a_damaged_one_are_refused() -> None:
    tensors, numbers = ControlLearner(WSRL, REACH.spec, 0).state()
    for agent, damaged in ((CQL, numbers), (WSRL, {}), (WSRL, {"updates": "many"})):
        with pytest.raises(RunError, match="another agent"):
            ControlLearner(agent, REACH.spec, 0).load_state(tensors, damaged)


def test_a_batch_from_two_stores_holds_both_in_their_shares() -> None:
    stores = []
    for sign in (1, -1):
        store = TransitionStore.of(REACH.dataset(0))
        store.observation[:] = sign
        stores.append(store)
    learner = ControlLearner(CQL, REACH.spec, 0)
    (rows,) = learner.draw([(stores[0], 3), (stores[1], 5)], updates=2)
    batch = learner.levels[0].read(rows["critic"], learn=True)
    assert batch.state_BS[..., 0].tolist() == [[1] * 3 + [-1] * 5] * 2


def test_critics_step_on_each_slice_and_policies_once_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, list[int]] = {"critic": [], "policy": []}
    shares: list[float] = []
    critic_loss, policy_loss = TDCritic.loss, SAC.loss
    zeros, ones = (TransitionStore.of(REACH.dataset(0)) for _ in range(2))
    zeros.observation[:], ones.observation[:] = 0, 1

    def of_critic(self: Any, nets: Any, batch: Any, *rest: Any) -> Any:
        sizes["critic"].append(len(batch.reward_B))
        shares.append(batch.state_BS[:, 0].mean().item())
        return critic_loss(self, nets, batch, *rest)

    def of_policy(self: Any, actor: Any, critic: Any, batch: Any, noise: Any) -> Any:
        sizes["policy"].append(len(batch.reward_B))
        return policy_loss(self, actor, critic, batch, noise)

    monkeypatch.setattr(TDCritic, "loss", of_critic)
    monkeypatch.setattr(SAC, "loss", of_policy)
    ControlLearner(WSRL, REACH.spec, 0).train(1, [(zeros, WSRL.batch // 2), (ones, WSRL.batch // 2)])
    assert sizes == {"critic": [8, 8, 8, 8], "policy": [32]}
    assert shares == [0.5] * 4  # of two sources each slice has its share


def test_critics_of_td3_value_the_actions_of_a_target_actor_that_follows_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = small(AGENTS["td3_bc"]).replace(policy_lr=0.1)
    learner, valued = ControlLearner(agent, REACH.spec, 0), []
    critic_loss = TDCritic.loss

    def of_critic(self: Any, nets: Any, batch: Any, policy: Any, *rest: Any) -> Any:
        valued.append(policy)
        return critic_loss(self, nets, batch, policy, *rest)

    monkeypatch.setattr(TDCritic, "loss", of_critic)
    actor, begun = learner.levels[0].actor, copy.deepcopy(learner.levels[0].actor)
    assert actor.target is not None and begun.target is not None
    learner.train(1, [(TransitionStore.of(REACH.dataset(0)), agent.batch)])
    assert all(policy is actor.target for policy in valued) and len(valued) == agent.slices
    parts = (net.parameters() for net in (actor.target, begun.target, actor.policy))
    for target, before, policy in zip(*parts, strict=True):
        assert not torch.equal(policy, before)
        torch.testing.assert_close(target, 0.98 * before + 0.02 * policy)


def test_the_actions_of_a_chunk_are_taken_one_after_the_other() -> None:
    agent = small(ControlAgent(levels=(Level(data=NStep(goals=Relabelled(), action="chunk", steps=3)),)))
    learner = ControlLearner(agent, SPEC, 0)
    calls: list[int] = []

    def numbered(state: torch.Tensor, noise: RunNoise) -> torch.Tensor:
        calls.append(len(state))
        return torch.arange(6.0).expand(len(state), 6) / 10 + len(calls) - 1

    learner.levels[0].actor.policy.greedy = numbered  # pyright: ignore[reportAttributeAccessIssue]
    act = learner.actor(0, explore=False)
    begins = [[True, True], [False, False], [True, False], [False, False], [False, False]]
    taken = np.array([act(np.zeros((2, 4)), np.zeros((2, 2)), np.array(first)) for first in begins])
    # actions of the second chunk and of later ones are clamped to 1
    np.testing.assert_allclose(taken[:, 1], [[0, 0.1], [0.2, 0.3], [0.4, 0.5], [1, 1], [1, 1]], rtol=1e-6)
    # the third step of the first copy begins an episode, and with it a chunk
    np.testing.assert_allclose(taken[:, 0], [[0, 0.1], [0.2, 0.3], [1, 1], [1, 1], [1, 1]], rtol=1e-6)
    assert calls == [2, 2, 2]


def test_the_action_of_a_level_is_the_goal_of_the_next() -> None:
    above = Level(data=NStep(goals=Relabelled(), action="subgoal", steps=5))
    below = Level(data=NStep(goals=SubgoalAhead(steps=5)))
    learner = ControlLearner(small(ControlAgent(levels=(above, below))), SPEC, 0)
    states: list[torch.Tensor] = []

    def answer(value: float) -> Callable[[torch.Tensor, RunNoise], torch.Tensor]:
        def greedy(state: torch.Tensor, noise: RunNoise) -> torch.Tensor:
            states.append(state)
            return torch.full((len(state), 2), value)

        return greedy

    for level, value in zip(learner.levels, (7.0, 0.5), strict=True):
        level.actor.policy.greedy = answer(value)  # pyright: ignore[reportAttributeAccessIssue]
    action = learner.actor(0, explore=False)(np.ones((1, 4)), np.full((1, 2), 3.0), np.array([True]))
    assert [s.tolist() for s in states] == [[[1, 1, 1, 1, 3, 3]], [[1, 1, 1, 1, 7, 7]]]
    assert action.tolist() == [[0.5, 0.5]]


def test_a_policy_of_way_points_looks_farther_than_its_values() -> None:
    """The observation of row i is i."""
    level = Level(
        data=NStep(goals=Relabelled(current=0.2, future=0.8), action="subgoal"),
        critic=Sarsa(),
        policy_goals=Relabelled(),
        policy_steps=4,
    )
    below = Level(data=NStep(goals=SubgoalAhead(steps=4)))
    learner = ControlLearner(small(ControlAgent(levels=(level, below))), SPEC, 0)
    store = TransitionStore.of([ControlEpisode(np.arange(80.0).reshape(20, 4), np.zeros((19, 2)), np.zeros(19), False)])
    ((critic, policy), _) = (of.values() for of in learner.draw([(store, 50)], updates=1))
    for rows, most in ((critic, 1), (policy, 4)):
        ahead = (rows.action_BA - rows.state_BS[..., :2])[..., 0] / 4  # pyright: ignore[reportAttributeAccessIssue]
        assert ahead.max() == most and ahead.min() >= 0


def test_cloning_trains_policies_by_imitation_alone_and_what_comes_after_goes_on_from_it() -> None:
    level = Level(critic=TDCritic(trunk=SMALL), policy=GaussianPolicy(trunk=SMALL), extraction=SAC())
    agent = ControlAgent(levels=(level,), batch=16)
    store = TransitionStore.of([ControlEpisode(np.ones((30, 4)), np.full((29, 2), 0.5), np.zeros(29), False)])
    learner, sources = ControlLearner(agent, SPEC, 0), [(store, 16)]
    before = {name: tensor.clone() for name, tensor in learner.state()[0].items()}
    first, last = (learner.train(20, sources, cloning=True) for _ in range(2))
    after = learner.state()[0]
    assert last.keys() == {"imitation"} and last["imitation"] < first["imitation"]
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all(name.startswith("0.actor.policy") for name in changed)
    # moments that the temperature and the critic do not have yet begin now, in a resumed run too
    other = ControlLearner(agent, SPEC, 0)
    other.load_state(*learner.state())
    assert other.train(2, sources) == learner.train(2, sources)
    assert all(torch.equal(t, other.state()[0][name]) for name, t in learner.state()[0].items())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Level(extraction=BestOfN()), "needs a critic"),
        (lambda: Level(extraction=SAC(), critic=Sarsa()), "must be gaussian_policy, not flow_policy"),
        (lambda: Level(critic=TDCritic(conservative=Conservative())), "a conservative critic needs densities"),
        (lambda: Level(policy_goals=SubgoalAhead(steps=2)), "beside a critic"),
        (lambda: Level(data=NStep(goals=Relabelled()), critic=Sarsa()), "data.goals.current above 0"),
        (lambda: Level(critic=Sarsa(), policy_steps=2), "policy_steps are for a policy of subgoals"),
        (lambda: Level(policy_goals=SubgoalAhead(steps=2), critic=Sarsa()), "data.goals are not"),
        (
            lambda: Level(
                data=NStep(goals=Relabelled()),
                policy=GaussianPolicy(),
                critic=TDCritic(conservative=Conservative(calibrated=True)),
            ),
            "returns of the data",
        ),
        (lambda: ControlAgent(levels=(Level(data=NStep(action="subgoal")),)), "the last level acts"),
        (lambda: ControlAgent(levels=(Level(), Level(data=NStep(goals=Given())))), "decides subgoals"),
        (lambda: ControlAgent(levels=(Level(data=NStep(action="subgoal")), Level())), "needs goals"),
        (lambda: ControlAgent(levels=(Level(),), batch=10, slices=4), "multiple of slices"),
        (
            lambda: of_experiment(papers.load("ppo/control")).replace(batch=1),
            "set batch to 2 or more",
        ),
        (lambda: NStep(discount=1.0), "a discount of 1 needs finite=true"),
        (lambda: Level(data=NStep(steps=5), critic=MartingaleValue()), "learns from single steps"),
        (lambda: Level(critic=MartingaleValue(), memory=GRU()), "leave out memory"),
        (lambda: TrainingPhase(iterations=1), "collects or updates"),
        (lambda: TrainingPhase(iterations=1, updates=1, learning=()), "at least 1 item"),
        (lambda: TrainingPhase(iterations=1, updates=1, reptile=Reptile(), demonstrated=0.1), "leave out demonstrated"),
        (lambda: TrainingPhase(iterations=1, updates=5, utd=1.0), "set episodes, or updates in its place"),
        (lambda: Relabelled(current=0.2), "shares of 1"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, ConfigError), match=message):
        make()


def test_goals_are_for_tasks_that_have_some() -> None:
    relabels = ControlAgent(levels=(Level(data=NStep(goals=Relabelled())),))
    ControlLearner(relabels, REACH.spec, 0)
    with pytest.raises(ConfigError, match="these tasks have no goals"):
        ControlLearner(relabels, Spec(3, 2, ()), 0)


def test_where_nothing_is_learned_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Any] = []
    monkeypatch.setattr(TDCritic, "before_updates", lambda self, nets: prepared.append(nets))
    learner, sources = ControlLearner(WSRL, REACH.spec, 0), [(TransitionStore.of(REACH.dataset(0)), WSRL.batch)]
    learner.train(0, sources)
    assert not prepared
    learner.train(1, sources)
    assert len(prepared) == 1


def test_a_mistyped_part_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'td_critic'"):
        build(Level, {"critic": {"type": "td_critik"}})
    assert build(Level, {"policy": {"type": "gaussian_policy"}}).policy == GaussianPolicy()
