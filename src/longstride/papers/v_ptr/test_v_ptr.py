"""V-PTR: what each phase moves and leaves alone, what is shared, and walks of which few have actions and rewards."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import rows_of

from longstride.control import ControlEpisode, ControlTasks, FurtherCritic, QNets, TDCritic, TransitionStore
from longstride.control.envs import Spec, VectorEnv
from longstride.control.envs.base import VectorStep
from longstride.control.implicit import VNets
from longstride.control.learner import ControlLearner, train_together
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers.v_ptr.method import FewLabels, TrunkEnsemble, TrunkQ, TrunkV
from longstride.papers.v_ptr.recipe import RECIPE, VALUE, agent

SMALL = Trunk(width=16, depth=1, norm=False)
AGENT = agent(TrunkQ(trunk=SMALL), TrunkV(trunk=SMALL), reward_scale=1.0, batch=16).replace(critic_lr=0.02)


class LineEnv(VectorEnv):
    """Places from 0 to 1; an action moves by a quarter of itself. The start is 0 and the goal 1."""

    def __init__(self, count: int, horizon: int) -> None:
        self.goal, self.horizon = np.ones((count, 1)), horizon

    def reset(self, seed: int) -> np.ndarray:
        self.x, self.taken = np.zeros((len(self.goal), 1)), 0
        return self.x

    def step(self, action_BA: np.ndarray) -> VectorStep:
        self.x, self.taken = np.clip(self.x + action_BA / 4, 0, 1), self.taken + 1
        there_B = self.x[:, 0] > 0.8
        return VectorStep(self.x, there_B.astype(float), there_B, ~there_B & (self.taken >= self.horizon))

    def close(self) -> None:
        pass


class Line(ControlTasks):
    """As data walks all the way to the right, each a bit faster than the one before."""

    walks: int = 20

    @property
    def spec(self) -> Spec:
        return Spec(1, 1, (0,))

    def dataset(self, seed: int) -> list[ControlEpisode]:
        x = np.arange(5.0)[:, None] / 4
        goal, reward = np.ones(1), np.array([0.0, 0.0, 0.0, 1.0])
        return [ControlEpisode(x, np.full((4, 1), 0.9 + k / 1000), reward, True, goal) for k in range(self.walks)]

    def training(self, count: int, horizon: int) -> VectorEnv:
        return LineEnv(count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return LineEnv(count, horizon), ["line"] * count


def parts(learner: ControlLearner) -> dict[str, torch.Tensor]:
    """All weights of what learns, by what they are of."""
    nets = {name: of for name, _, of in learner.levels[0].critics}
    q, v = nets["critic"], nets[VALUE]
    assert isinstance(q, QNets) and isinstance(q.q, TrunkEnsemble) and isinstance(v, VNets)
    of = {"trunk": q.q.trunk, "q": q.q.net, "v": v.v.net, "policy": learner.levels[0].actor}
    of |= {"q_target": q.target, "v_target": v.target}
    return {name: torch.cat([p.detach().flatten() for p in net.parameters()]) for name, net in of.items()}


def moved(learning: tuple[str, ...] | None, store: TransitionStore) -> set[str]:
    learner = ControlLearner(AGENT, Line().spec, 0)
    before = parts(learner)
    train_together([learner], 2, [[(store, 16)]], learning=learning)
    return {name for name, weights in parts(learner).items() if not torch.equal(weights, before[name])}


def test_a_phase_moves_what_learns_in_it_and_the_trunk() -> None:
    store = TransitionStore.of(Line().dataset(0))
    assert moved((VALUE,), store) == {"trunk", "v", "v_target", "q_target"}, "a target has a trunk of its own"
    assert moved(("critic",), store) == {"trunk", "q", "q_target", "policy", "v_target"}
    assert moved(None, store) == {"trunk", "q", "q_target", "policy", "v", "v_target"}


def test_values_of_states_know_nothing_of_actions_and_rewards_and_grow_toward_a_goal() -> None:
    tasks = FewLabels(tasks=Line())
    after = []
    for walks in (tasks.dataset(0), Line().dataset(0)):
        learner = ControlLearner(AGENT, tasks.spec, 0)
        train_together([learner], 150, [[(TransitionStore.of(walks), 16)]], learning=(VALUE,))
        after.append(learner)
    assert torch.equal(parts(after[0])["v"], parts(after[1])["v"])
    nets = {name: of for name, _, of in after[0].levels[0].critics}[VALUE]
    assert isinstance(nets, VNets)
    places = torch.tensor([[0.0, 1.0], [0.25, 1.0], [0.5, 1.0], [0.75, 1.0]])
    assert (nets.v(places)[..., 0].mean(0).diff() > 0).all()


def test_runs_side_by_side_share_a_trunk_each() -> None:
    store = TransitionStore.of(Line().dataset(0))
    beside, alone = ([ControlLearner(AGENT, Line().spec, seed) for seed in (0, 1)] for _ in range(2))
    for learning in ((VALUE,), ("critic",)):
        train_together(beside, 3, [[(store, 16)]] * 2, learning=learning)
        for learner in alone:
            train_together([learner], 3, [[(store, 16)]], learning=learning)
    for one, other in zip(beside, alone, strict=True):
        for name, weights in parts(one).items():
            torch.testing.assert_close(weights, parts(other)[name], atol=1e-5, rtol=1e-4)


def test_values_of_several_actions_are_those_of_each() -> None:
    nets = TrunkQ(trunk=SMALL).make(2, 1, torch.Generator().manual_seed(0))
    state, action = torch.randn(3, 2), torch.randn(3, 4, 1)
    one_by_one = torch.stack([nets.q.value(state, action[:, k]) for k in range(4)], -1)
    torch.testing.assert_close(nets.q.value(state, action), one_by_one)


def test_walks_have_no_actions_and_few_others_have() -> None:
    tasks = FewLabels(tasks=Line(walks=40), labelled=0.1)
    assert not any(walk.action.any() or walk.reward.any() or walk.terminated for walk in tasks.dataset(0))
    shown = tasks.demonstrated(0)
    assert len(shown) == 4 and all(walk.terminated and walk.reward.sum() == 1 for walk in shown)
    assert len({float(walk.action[0, 0]) for walk in shown}) == 4
    assert len(tasks.replace(labelled=0.0).demonstrated(0)) == 1


def test_the_recipe_learns_a_line_of_ones_own_of_one_labelled_walk(tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        tasks=FewLabels(tasks=Line()), agent=AGENT.replace(policy_lr=0.01),
        phases=[phase.replace(iterations=1, updates=60) for phase in RECIPE.phases],
        horizon={"limit": 8}, test_horizon={"limit": 8}, evaluation={"episodes": 2, "every": 1},
    )  # fmt: skip
    recipe.train(tmp_path)
    kinds = [{key.partition(".")[0] for key in row} for row in rows_of(tmp_path, "train")]
    assert "value" in kinds[0] and "q_loss" not in kinds[0] and "q_loss" in kinds[1]
    assert rows_of(tmp_path, "eval")[-1]["outcomes"] == [1.0, 1.0]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"phases\.learning: unknown critic 'valeu'; did you mean 'value'"):
        RECIPE.replace(phases=({"iterations": 1, "updates": 1, "learning": ("valeu",)},))
    level = AGENT.levels[0].replace(critic=TDCritic(trunk=SMALL))
    with pytest.raises(ConfigError, match="must be trunk_q"):
        ControlLearner(AGENT.replace(levels=(level,)), Line().spec, 0)
    with pytest.raises(ConfigError, match="needs scores of any action, which trunk_v has not"):
        further = FurtherCritic(critic=TrunkV(trunk=SMALL), data=level.further[VALUE].data, weight=1.0)
        AGENT.levels[0].replace(further={VALUE: further})
