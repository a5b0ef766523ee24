"""R-MCTS: the world has the dead ends that it says, traversals are walked as searched, reflection remembers."""

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.exact.experiment import State
from longstride.papers.r_mcts.exact import RECIPE, DeadEnds, SearchCloning, surprises, walked

WORLD = DeadEnds(length=3, branches=2, depth=2)


def success(world: DeadEnds, policy: np.ndarray) -> float:
    return world.measures({"policy": policy, "expansions": np.zeros(())})["success"]


def test_states_are_numbered_and_lead_to_one_another_as_places_do() -> None:
    assert [WORLD.state(p) for p in ((), (0,), (0, 0, 0), (1,), (1, 0), (0, 1), (0, 0, 1, 1))] == [0, 1, 3, 4, 5, 6, 9]
    assert WORLD.states == 10 and [WORLD.dead(p) for p in ((1,), (1, 1), (0, 0))] == [False, True, False]
    assert [WORLD.after(1, a) for a in range(3)] == [2, 6, 0]  # on, into the dead end, back
    assert [WORLD.after(6, a) for a in range(3)] == [7, 7, 1] and [WORLD.after(7, a) for a in range(3)] == [7, 7, 6]
    flat = DeadEnds(length=3, branches=2, depth=0)
    assert flat.states == 4 and [flat.after(1, a) for a in range(3)] == [2, 1, 0] and flat.dead((0, 1))


def test_success_is_computed() -> None:
    right = np.eye(3)[np.zeros(10, int)]
    assert success(WORLD.replace(slip=0.0), right) == 1 and success(WORLD.replace(slip=0.0, horizon=2), right) == 0
    # half of all slips are wrong, and who never goes back stays in the dead end
    assert success(WORLD.replace(slip=0.4), right) == pytest.approx(0.8**3)
    back = right.copy()
    back[4:] = np.eye(3)[2]
    assert success(WORLD.replace(slip=0.4, horizon=60), back) > 0.99


def test_a_traversal_is_walked_by_way_of_what_its_places_share() -> None:
    assert walked(WORLD, (0, 1), (0, 0, 0)) == [(6, 2), (1, 0), (2, 0)]
    assert walked(WORLD, (), ()) == [] and walked(WORLD, (1, 0), ()) == [(5, 2), (4, 2)]


def test_what_came_of_a_place_is_the_mean_of_what_was_seen_below_it() -> None:
    scores = {(0,): 0.4, (1,): 0.9, (1, 0): 0.0, (1, 1): 0.2}
    assert surprises([(), (1,)], scores) == {(1,): pytest.approx(0.1)}


def run(iterations: int, **changes: object) -> tuple[SearchCloning, State, list[float]]:
    method, rng = SearchCloning().replace(**changes), np.random.default_rng(3)
    state, expansions = method.start(DeadEnds(), rng), []
    for _ in range(iterations):
        state = method.step(DeadEnds(), state, rng)
        expansions.append(float(state["expansions"]))
    return method, state, expansions


def test_searches_that_reflect_come_to_the_end_with_fewer_expansions() -> None:
    _, state, reflected = run(25)
    _, _, plain = run(25, reflect=False)
    assert len(set(plain)) == 1 and reflected[0] == plain[0] and reflected[-1] < plain[-1]
    assert np.isfinite(state["memory"]).any()


def test_traversals_show_the_way_back_and_best_paths_do_not() -> None:
    world = DeadEnds()
    first = world.length + 1  # the entry of the first dead end
    shown = run(25)[1]["counts"][first]
    assert shown[-1] > 0 and run(25, data="best_paths")[1]["counts"][first].sum() == 0
    method, state, _ = run(40)
    best, of, _ = run(40, data="best_paths")
    found = [world.measures(m.solution(world, s))["success"] for m, s in ((method, state), (best, of))]
    assert found[0] > found[1]


def test_a_search_of_another_width_is_refused() -> None:
    with pytest.raises(ConfigError, match="as many branches"):
        RECIPE.replace(problem={"branches": 2})
