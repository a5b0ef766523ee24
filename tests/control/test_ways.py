"""Values along shortest ways: the ways, and what is measured on them, with critics whose values are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from control_recipe import RECIPE
from helpers import rows_of
from torch import Tensor

from longstride.control import CompassMaze, ControlEpisode, Given, ImplicitV, Level, NStep, PointMaze, Several
from longstride.control.critics import CriticNets
from longstride.control.envs import play
from longstride.control.envs.maze import maze
from longstride.control.envs.pointmaze import REACH
from longstride.control.extraction import AWR
from longstride.control.networks import LevelNets
from longstride.control.policies import NormalPolicy
from longstride.models.mlp import Trunk

MEDIUM = PointMaze(maze="medium")
TRUNK = Trunk(width=4, depth=1)


def first_of(tasks: PointMaze, number: int = 0) -> ControlEpisode:
    """The first test episode, or a later one, of an agent that does nothing."""
    env, names = tasks.tests(1, 3)
    return play(env, lambda seen, goal, first: np.zeros((len(names), tasks.spec.action)), 0)[number]


@pytest.mark.parametrize("tasks", [MEDIUM, CompassMaze(maze="large")])
def test_a_way_leads_over_neighbouring_cells_to_the_goal_and_its_actions_along_it(tasks: PointMaze) -> None:
    layout = maze(tasks.maze)
    for number in range(5):
        episode = first_of(tasks, number)
        assert episode.goal is not None
        way = tasks.way(episode)
        assert way is not None and not way.observation[:, 2:].any()
        cells = layout.cell_of(way.observation[:, :2])
        start, goal = layout.cell_of(np.stack((episode.observation[0, :2], episode.goal)))
        assert cells[0] == start and layout.distance[goal, cells].tolist() == list(range(len(cells), 0, -1))
        assert (np.linalg.norm(way.observation[:, :2] - episode.goal, axis=1) > REACH).all()
        # a step of the maze from each place goes the way of its action
        for action, sign in ((way.along, 1), (way.back, -1)):
            assert action.shape == (len(cells), tasks.spec.action)
            env = tasks.training(len(cells), 9)
            env.reset(0)
            env.xy, env.velocity = way.observation[:, :2].astype(float), np.zeros((len(cells), 2))
            before = env.xy.copy()
            env.step(action)
            ahead = layout.centre[layout.toward[goal, cells]] - before
            assert (sign * ((env.xy - before) * ahead).sum(1) > 0.01).all()


def test_of_several_mazes_each_has_its_own_ways() -> None:
    several = Several(parts={"small": PointMaze(maze="umaze"), "large": PointMaze(maze="large")})
    env, names = several.tests(1, 3)
    episodes = play(env, lambda seen, goal, first: np.zeros((len(names), 2)), 0)
    for number, part in enumerate(several.parts.values()):
        episode = episodes[5 * number]
        way, own = several.way(episode), part.way(replace(episode, observation=episode.observation[:, :4]))
        assert way is not None and own is not None
        assert np.array_equal(way.observation[:, :4], own.observation) and np.array_equal(way.along, own.along)
        assert way.observation[:, 4:].argmax(1).tolist() == [number] * len(own.along)


class Known(CriticNets):
    """Values of states as they are given; scores of actions are x times their first coordinate."""

    def __init__(self, worth: list[float] | None) -> None:
        super().__init__()
        self.of = worth

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        return state_BS[:, 0] * action[:, 0]

    def worth(self, state_BS: Tensor) -> Tensor | None:
        return None if self.of is None else torch.tensor(self.of)


def level_of(nets: CriticNets, scores: bool = True) -> LevelNets:
    implicit = {"critic": ImplicitV(trunk=TRUNK), "policy": NormalPolicy(trunk=TRUNK)}
    level = Level(data=NStep(goals=Given()), extraction=AWR(temperature=1.0), **implicit)
    made = LevelNets(RECIPE.agent.levels[0] if scores else level, MEDIUM.spec, torch.Generator())
    made.critic = nets
    return made


def test_order_is_the_share_of_steps_by_which_values_rise_and_sign_that_of_right_comparisons() -> None:
    way = MEDIUM.way(first_of(MEDIUM))
    assert way is not None and len(way.along) == 10
    values = [0.0, 1, 2, 3, 2, 3, 4, 4, 5, 6]  # one step falls and one stays
    found = level_of(Known(values)).ordered(way)
    assert found["order"] == pytest.approx(7 / 9)
    right = (way.along[:, 0] > way.back[:, 0]).mean()  # x is above 0, and the score x times the first coordinate
    assert 0 < right < 1 and found["sign"] == pytest.approx(right)
    assert set(level_of(Known(values), scores=False).ordered(way)) == {"order"}
    assert level_of(Known(None), scores=False).ordered(way) == {}


def test_a_state_without_a_value_has_the_score_of_what_is_done_there(monkeypatch: pytest.MonkeyPatch) -> None:
    way = MEDIUM.way(first_of(MEDIUM))
    assert way is not None
    level = level_of(Known(None))
    monkeypatch.setattr(level.actor.policy, "greedy", lambda state_BS, noise: torch.ones(len(state_BS), 2))
    rising = np.diff(way.observation[:, 0]) > 0  # what is done is scored x
    assert level.ordered(way)["order"] == rising.mean() > 0


def test_evaluations_in_mazes_measure_both_once_for_each_task(tmp_path: Path) -> None:
    RECIPE.train(tmp_path)
    for row in rows_of(tmp_path, "eval"):
        assert {len(row["measures"][name]) for name in ("success", "order", "sign")} == {10}
        order = row["measures"]["order"]
        assert order[::2] == order[1::2] and 0 <= min(order) <= max(order) <= 1  # two episodes of each task
