"""SCALER: levels that follow accuracy and environments that retire, by hand; and a model and tasks of one's own."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import Collected, make_trajectory, trajectories_of

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.levels import Environments, Ladder
from longstride.envs.puzzles import ModularChain
from longstride.papers.scaler.method import Controlled
from longstride.papers.scaler.recipe import CLAIM, RECIPE

CHAINS = tuple(ModularChain(lengths=(n, n, n)) for n in (1, 2, 3, 4))
THREE = Environments(environments=tuple(Ladder(name=name, levels=CHAINS) for name in "abc"))


def visited(curriculum: Controlled, *shares: dict[str, float]) -> tuple[Counter[str], dict]:
    """Environments that are drawn from, and what is kept, after iterations in which so large a share of 10 episodes of
    each environment that was drawn succeeded (0 where none is said)."""
    past = Collected()
    for iteration, share in enumerate((*shares, {}), 1):
        drawn = curriculum.draw(THREE, 20, random.Random(iteration), past)
        names = Counter(task.source.partition("/")[0] for task in drawn)
        if iteration > len(shares):
            return names, past.kept["controlled"]
        tasks = {task.source.partition("/")[0]: task for task in drawn}
        past.trajectories += [
            make_trajectory(1, float(k < 10 * share.get(name, 0)), task=task, iteration=iteration)
            for name, task in tasks.items()
            for k in range(10)
        ]
    raise AssertionError


def test_the_level_moves_by_gain_times_what_accuracy_is_off_by_and_stays_in_its_range() -> None:
    shares = ({"a": 1.0, "b": 0.2}, {"a": 0.8, "b": 0.5}, {"a": 1.0}, {"a": 1.0}, {"a": 1.0})
    _, kept = visited(Controlled(gain=2.0, active=2, retiring=False), *shares)
    assert [level for level, _ in kept["visits"]["a"]] == pytest.approx([0, 1, 1.6, 2.6, 3])
    assert [level for level, _ in kept["visits"]["b"]] == [0] * 5 and kept["level"] == {"a": 3, "b": 0, "c": 0}


def test_a_level_moves_by_a_step_at_most() -> None:
    _, kept = visited(Controlled(gain=9.0, active=1, retiring=False), {"a": 1.0}, {"a": 1.0}, {"a": 0.0})
    assert [level for level, _ in kept["visits"]["a"]] == [0, 1, 2] and kept["level"]["a"] == 1


def test_a_level_between_two_draws_from_both() -> None:
    past = Collected(
        [make_trajectory(1, float(k < 7), task=THREE.at("a", 0, random.Random(0)), iteration=1) for k in range(10)]
    )
    curriculum = Controlled(active=1)
    past.memory(curriculum).update(
        {"level": {"a": 1.0, "b": 0, "c": 0}, "visits": {}, "iteration": 0, "active": ["a"], "waiting": []}
    )
    drawn = Counter(task.source for task in curriculum.draw(THREE, 1000, random.Random(0), past))
    assert set(drawn) == {"a/1/puzzles/modular_chain", "a/2/puzzles/modular_chain"}
    assert drawn["a/2/puzzles/modular_chain"] / 1000 == pytest.approx(0.4, abs=0.05)  # 1 + 2 (0.7 - 0.5)
    assert past.kept["controlled"]["visits"] == {"a": [[1.0, 0.7]]}  # drawn twice in an iteration it moves once
    curriculum.draw(THREE, 1, random.Random(0), past)
    assert len(past.kept["controlled"]["visits"]["a"]) == 1


def test_what_never_succeeds_or_is_at_its_highest_level_retires_and_the_next_that_waits_takes_its_place() -> None:
    curriculum = Controlled(active=2, patience=3, window=9)
    before, _ = visited(curriculum, *[{"a": 0.5}] * 2)
    assert before == {"a": 10, "b": 10}
    after, kept = visited(curriculum, *[{"a": 0.5}] * 3)
    assert after == {"a": 10, "c": 10} and kept["waiting"] == []
    assert visited(curriculum.replace(retiring=False), *[{"a": 0.5}] * 5)[0] == {"a": 10, "b": 10}
    climbing = [{"a": 0.5, "b": 1.0}]
    assert visited(curriculum, *climbing * 5)[0] == {"a": 10, "b": 10}  # levels 0, 1, 2, 3, 3: all were done
    assert visited(curriculum, *climbing * 6)[0] == {"a": 10, "c": 10}
    alone, _ = visited(curriculum, *[{"a": 0.5}] * 6)
    assert alone == {"a": 20}  # none waits any more


def test_what_does_not_rise_retires_and_once_all_have_all_begin_anew_where_they_are() -> None:
    curriculum = Controlled(active=3, patience=9, window=3)
    rising = [{"a": 0.3, "b": 0.5, "c": 0.6}, {"a": 0.4, "b": 0.5, "c": 0.6}, {"a": 0.5, "b": 0.5, "c": 0.6}]
    names, _ = visited(curriculum, *rising)
    assert set(names) == {"c"}  # its level rises, of a only the accuracy, and of b neither
    names, kept = visited(curriculum, *rising, *[{"c": 0.5}] * 3)
    assert set(names) == {"a", "b", "c"} and kept["visits"] == {} and kept["level"]["c"] == pytest.approx(0.6)


def test_failed_episodes_are_no_visit() -> None:
    task = THREE.at("a", 0, random.Random(0))
    failed = make_trajectory(1, 0.0, task=task, iteration=1, stop=StopReason.INFRA_FAILURE)
    past = Collected([failed])
    Controlled().draw(THREE, 1, random.Random(0), past)
    assert past.kept["controlled"]["visits"] == {} and past.kept["controlled"]["iteration"] == 1


def test_tasks_of_other_sources_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="controlled moves the levels of environments, and tasks ModularChain have none; take"
    ):
        Controlled().check(CHAINS[0])


def test_environments_say_where_a_task_is_from_and_play_it_there() -> None:
    held_out = THREE.held_out(24)
    assert Counter(task.source[:3] for task in held_out) == {f"{name}/{k}": 2 for name in "abc" for k in range(4)}
    assert [task.difficulty for task in held_out if task.source[0] == "a"][:4] == ["easy", "easy", "medium", "hard"]
    assert {task.split for task in held_out} == {"test"} and len({task.id for task in held_out}) == 24
    longest = THREE.at("b", 3, random.Random(0))
    assert longest.split == "train" and longest.facts == 4

    async def play() -> dict:
        env = THREE.env()
        await env.close()  # where nothing was opened nothing is closed
        await env.reset(longest, 0)
        (said,) = CHAINS[3].demonstrate(longest)
        assert (await env.step(said)).terminated
        return await env.final_state()

    assert asyncio.run(play()) == {"verdict": "solved"}


def levels(played: list[Trajectory], iteration: int) -> set[str]:
    return {t.task.source for t in played if t.iteration == iteration}


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    own = '[{name="own",levels=[{type="one_page:OnePageTasks"},{type="one_page:OnePageTasks",broken=true}]}]'
    run = train_elsewhere(
        "scaler", tmp_path, "tasks.type=environments", f"tasks.environments={own}",
        "curriculum.target=0", "curriculum.gain=100", "iterations=2",
    )  # fmt: skip
    played = trajectories_of(run)
    assert levels(played, 1) == {"own/0/one_page"}
    assert levels(played, 2) <= {"own/1/one_page", "own/1/broken"} and any(t.success for t in played)


def test_arms_differ_in_the_curriculum_and_in_what_there_is_to_learn() -> None:
    assert list(CLAIM.changes("uniform")) == ["curriculum"]
    assert set(CLAIM.changes("uniform_low")) == {"tasks.environments", "curriculum"}
    assert CLAIM.arms["beyond"].as_data()["tasks"] == RECIPE.as_data()["tasks"]


def test_held_out_tasks_are_of_environments_that_are_tested_and_levels_demonstrate() -> None:
    only = THREE.replace(tested=("b",))
    held_out = only.held_out(4)
    assert [task.source[:3] for task in held_out] == ["b/0", "b/1", "b/2", "b/3"]
    assert only.demonstrate(held_out[2]) == CHAINS[2].demonstrate(held_out[2])
    with pytest.raises(ConfigError, match="unknown environment .d."):
        THREE.replace(tested=("d",))


def test_two_environments_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two of them are called 'a'"):
        THREE.replace(environments=(THREE.environments[0],) * 2)
