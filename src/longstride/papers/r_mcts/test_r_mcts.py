"""R-MCTS: the world has the dead ends that it says, traversals are walked as searched, reflection remembers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_task, make_trajectory, make_turn, rows_of

from longstride.claims.tuning import axes
from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import LayeredPath
from longstride.exact.experiment import State
from longstride.papers.r_mcts.exact import RECIPE, DeadEnds, SearchCloning, walked
from longstride.papers.r_mcts.method import REFLECTION, TRAVERSAL, Reflective, moves, surprises
from longstride.papers.r_mcts.recipe import CLAIM
from longstride.papers.r_mcts.recipe import RECIPE as LANGUAGE
from longstride.rewards.scorers import Score
from longstride.rollout import Plan, ScriptedPlayer
from longstride.rollout.episode import Episode
from longstride.run.evaluation import evaluate_player
from longstride.strategies.search import TreeSearch
from longstride.strategies.searched import Checked, Guide

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


# with a language model


def test_the_way_from_place_to_place_goes_back_to_what_they_share() -> None:
    assert moves([(), (), ("a",), ("a", "b"), ("c", "d")], "back") == ["a", "b", "back", "back", "c", "d"]


class Says(Guide):
    """The value that the last word of a turn is."""

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [Score(float(t.turns[-1].text.split()[-1]), 1, 2) for t in solutions]


def test_a_search_remembers_what_surprised_it_and_its_traversal_until_the_task_was_done() -> None:
    search = Reflective(search=TreeSearch(expansions=3, width=1, exploration=0.0), guide=Says(), rounds=2)
    stages = search.run([Plan(make_task(), 0, 5, Budget(turns=3))], ScriptedPlayer(lambda _: ""))

    def played(p: Plan, text: str, seen: str, **fields: Any) -> Trajectory:
        past = [
            make_turn([], text=u.text, observation=o) for u, o in zip(p.history, ["start", "wide hall"], strict=False)
        ]
        turn = make_turn([1], text=text, observation=seen)
        values = {"task": p.task, "budget": p.budget, "ordinal": p.ordinal, "stop": StopReason.TURNS} | fields
        return make_trajectory([*past, turn], **values)

    (p,) = next(stages)
    (p,) = stages.send([played(p, "open door 0.9", "start")])
    (p,) = stages.send([played(p, "look 0.5", "wide hall")])
    done = played(p, "take key 1", "dark room", stop=StopReason.ANSWERED)
    done.success = True
    done.task = done.task.model_copy(update={"goal": f"{p.task.goal}\nhow to act"})  # as an environment says it
    (again,) = stages.send([done])
    assert "how to act" not in again.task.goal
    assert again.task.goal.splitlines()[-1] == "look 0.5 : dark room" and not again.history
    last = played(again, "take key 1", "start", stop=StopReason.ANSWERED)
    last.success = True
    with pytest.raises(StopIteration) as end:
        stages.send([last])
    (found,) = end.value.value
    assert found.trajectory.evidence[TRAVERSAL] == [[], ["take key 1"]] and not found.trajectory.evidence[REFLECTION]
    # four steps of a token, each scored by one that is sampled and two that are read
    assert found.trajectory.ordinal == 0 and (found.spent_tokens, found.total_tokens) == (8, 16)


class Even(Guide):
    """Says the same of everything."""

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [Score(0.5) for _ in solutions]


def test_in_a_graph_without_a_map_a_traversal_is_a_walk_that_goes_back_from_dead_ends() -> None:
    source = LayeredPath(multi_turn=True, lengths=(3, 3, 3))
    budget = {"turns": 40}
    recipe = LANGUAGE.replace(tasks=source, test_budget=budget, budget=budget, evaluation={"measures": ()})

    def go(episode: Episode) -> str:
        """One way on, by the number of the try, or back where there is none."""
        ways = str(episode.observations[-1]).split("\n")[0].partition("next ")[2].split()
        return f"Action: go {ways[episode.plan.ordinal % len(ways)]}" if ways != ["none"] else "Action: back"

    search = Reflective(search=TreeSearch(expansions=40, width=3), guide=Checked(guide=Even()), rounds=1)
    tasks = source.held_out(6)
    found = evaluate_player(ScriptedPlayer(go), recipe, tasks, search).trajectories
    assert all(t.success for t in found)
    walks = [moves([(), *t.evidence[TRAVERSAL]], search.back) for t in found]
    assert sum("Action: back" in walk for walk in walks) > 3
    again = {task.id: walk for task, walk in zip(tasks, walks, strict=True)}
    player = ScriptedPlayer(lambda episode: again[episode.plan.task.id][episode.turns])
    assert all(t.success for t in evaluate_player(player, recipe, tasks).trajectories)


def test_traversals_of_another_model_on_tasks_of_ones_own_are_cloned_by_settings_alone(tmp_path: Path) -> None:
    search = "search.search.expansions=3 search.search.width=2 search.back=omitted".split()
    run = train_elsewhere(
        "r_mcts",
        tmp_path,
        *(f"imitation.demonstrations.{setting}" for setting in search),
        "imitation.episodes=24",
        "evaluation.strategies=[{type='direct'}]",
        "evaluation.measures=[]",
        "budget.turns=2",
        "test_budget.turns=2",
    )
    assert [row["imitation_loss"] > 0 for row in rows_of(run, "train")] == [True, True]


def test_all_arms_are_tuned() -> None:
    assert all(axes(CLAIM, arm) for arm in CLAIM.arms)


def test_neither_side_of_the_claim_imitates_what_had_no_effect() -> None:
    """Traversals leave it out themselves."""
    for arm in ("best_paths", "depth_1_best_paths", "depth_4_best_paths"):
        shown = CLAIM.arms[arm].as_data()["imitation"]["demonstrations"]
        assert [of["type"] for of in shown["filters"]] == ["effective"]
