"""Summary states: what explores, where groups begin, and that a trained round is one turn of it."""

import random

from longstride.rollout.states import SummaryStates

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Iterated
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.planning import Planner, Sampler

SOURCE = Iterated()
BUDGET = Budget(turns=3)


def planner(iteration: int = 1, episodes: int = 32) -> Planner:
    return Planner(SOURCE, lambda task: BUDGET, None, 0, iteration, 0, episodes, 4)  # pyright: ignore (no chat is asked)


def play(plans: list[Plan]) -> list[Trajectory]:
    """Says the next step of a chain, and an attempt with arbitrary numbers at a Countdown."""

    def say(episode) -> str:
        numbers = episode.goal.split()[3:]
        rng = random.Random(episode.turn_seed)
        if not episode.goal.startswith("start"):
            a, b = sorted(map(int, rng.sample(numbers, 2)), reverse=True)
            return f"Thought: {a} + {b} = 1 ; no Action: answer {a} + {b}"
        value = (episode.observations[-1] or "now 0").split()[1]
        return f"Thought: {value} + 1 = {(int(value) + 1) % 7} Action: answer 1"

    return Pool(ScriptedPlayer(say), SOURCE.env, TaskReward()).run(plans)


def rolled_out(states: int, **how: int) -> tuple[list[Plan], list[Plan], list[Trajectory]]:
    stages = SummaryStates(states=states).stages(planner(**how))
    first = list(next(stages))
    second = list(stages.send(play(first)))
    try:
        stages.send(play(second))
    except StopIteration as e:
        return first, second, e.value
    raise AssertionError("there were more stages")


def test_one_episode_of_a_task_explores_and_groups_of_one_turn_begin_in_states_that_it_saw() -> None:
    first, second, episodes = rolled_out(2)
    assert len(first) == len({p.group for p in first}) == 4 and {p.role for p in first} == {"explore"}
    explored, trained = episodes[: len(first)], episodes[len(first) :]
    assert [t.ordinal for t in episodes] == list(range(len(episodes))) and len(trained) == len(second)
    seen = {t.task.id: [turn.observation for turn in t.turns] for t in explored}
    assert all(t.length == 3 and t.turns[0].observation == "" for t in explored)
    for t in trained:
        assert (t.length, t.stop, t.role) == (1, StopReason.TURNS, "step")
        assert t.turns[0].observation in seen[t.task.id]
    groups = {g: [t for t in trained if t.group == g] for g in {t.group for t in trained}}
    for group in groups.values():
        assert len(group) == 4 and len({(t.task.id, t.turns[0].observation) for t in group}) == 1
    states = [(group[0].task.id, group[0].turns[0].observation) for group in groups.values()]
    assert len(states) == len(set(states)) == 8
    assert {state for _, state in states} - {""}, "no state but the first was drawn"


def test_a_state_is_drawn_once_and_all_of_them_where_there_are_too_few() -> None:
    first, second, _ = rolled_out(9, episodes=36)
    assert len(first) == 1  # nine groups of four, of one task
    assert 2 * 4 <= len(second) <= 3 * 4 and len({p.task.start for p in second}) == len(second) // 4
    assert "start" in {p.task.start for p in second}


def test_states_are_a_function_of_the_iteration() -> None:
    starts = [[p.task.start for p in rolled_out(2, iteration=i)[1]] for i in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]


def test_an_episode_that_failed_has_no_states() -> None:
    stages = SummaryStates().stages(planner())
    explored = play(list(next(stages)))
    for t in explored[1:]:
        t.stop = StopReason.INFRA_FAILURE
    assert {p.task.id for p in stages.send(explored)} == {explored[0].task.id}


def test_it_is_built_again_from_its_data() -> None:
    assert build(Sampler, SummaryStates(states=3).as_data()) == SummaryStates(states=3)
