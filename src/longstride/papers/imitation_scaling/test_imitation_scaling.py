"""Data scaling in imitation: what is seen, which moves are right, and layouts against walks."""

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.papers.imitation_scaling.exact import AROUND, RECIPE, VIEWS, ClonedMoves, Layouts, distances, view

OPEN = np.pad(np.array([[1, 1, 1], [0, 0, 1], [1, 1, 1]], bool), 1)


def test_distances_go_around_walls_and_leave_out_what_is_shut_off() -> None:
    far = distances(OPEN, (3, 1))
    assert far[1, 1] == 6 and far[2, 3] == 3 and (2, 1) not in far
    assert (1, 1) not in distances(np.pad(np.array([[1, 0, 1]], bool), 1), (1, 3))


def test_a_view_tells_neighbours_and_the_side_of_the_goal() -> None:
    corner = view(OPEN, (1, 1), (3, 1))
    assert corner == sum(1 << k for k, at in enumerate(AROUND) if at == (0, 1)) * 9 + 3 * 2 + 1
    assert len({view(OPEN, c, (3, 1)) for c in distances(OPEN, (3, 1))}) == 7
    assert max(view(np.ones((3, 3), bool), (1, 1), (2, 2)), corner) == VIEWS - 1


def test_right_moves_come_nearer() -> None:
    views, right = Layouts().draw(np.random.default_rng(0))
    assert views.shape == right.shape[:1] and right.any(1).all() and not right.all(1).any()


def test_many_layouts_clone_better_than_many_walks_in_few() -> None:
    def end(method: ClonedMoves) -> dict[str, float]:
        state = method.start(Layouts(), np.random.default_rng(0))
        assert state["curve"][0] == pytest.approx(0.32, abs=0.05)  # at random: one or two moves of four are right
        for i in range(7):
            state = method.step(Layouts(), state, np.random.default_rng(i))
        assert state["walks"][7] == 128 and state["votes"].sum() <= 6 * 128
        return RECIPE.problem.measures(state)

    assert end(ClonedMoves())["success"] > end(ClonedMoves(layouts=8))["success"] + 0.1


def test_a_vote_reaches_views_that_differ_in_few_neighbours() -> None:
    def got(reach: float, voted: int) -> float:
        method, votes = ClonedMoves(reach=reach), np.zeros((VIEWS, 4))
        for side in range(9):
            votes[voted * 9 + side, 0] = 1
        reached = method.reached(votes).reshape(256, 9, 4)[..., 0]
        assert (reached == reached[:, :1]).all() and reached[voted, 0] == 1
        return float(reached[0, 0])

    assert got(0.0, 1) == 0 and got(0.5, 1) == 0.5 and got(0.5, 7) == 0.125 and got(1.0, 255) == 1


def test_walks_are_not_doubled_for_ever() -> None:
    state = RECIPE.method.start(Layouts(), np.random.default_rng(0)) | {"points": np.array(31.0)}
    with pytest.raises(ConfigError, match="at most 31 times"):
        RECIPE.method.step(Layouts(), state, np.random.default_rng(0))
