"""WebGym: what is imitated, and how long training episodes may be."""

import random
from collections import Counter

import pytest
from helpers import Collected, make_trajectory

from longstride.core.trajectory import Trajectory
from longstride.methods.cloning import FilteredBC
from longstride.papers.webgym.method import RecentSuccesses
from longstride.papers.webgym.recipe import RECIPE


def episodes(*iterations: int) -> list[Trajectory]:
    return [make_trajectory(reward=1.0, ordinal=k, iteration=i) for k, i in enumerate(iterations)]


def test_only_successes_of_the_last_four_iterations_are_drawn() -> None:
    past = Collected(episodes(1, 2, 3, 4, 5, 6))
    drawn = RecentSuccesses().draw(past.records, 1, random.Random(0), past)
    assert [r.iteration for r in drawn] == [3, 4, 5, 6]
    failed = make_trajectory(reward=0.0).record()
    guessed = make_trajectory(reward=1.0, answer="n/a").record()
    assert not RecentSuccesses().admits(failed) and not RecentSuccesses().admits(guessed)
    assert RecentSuccesses().draw([], 0, random.Random(0), Collected()) == []


def test_an_episode_is_drawn_with_the_square_of_its_position() -> None:
    past, counts = Collected(episodes(1, 1, 1)), Counter()
    for seed in range(6000):
        (chosen,) = RecentSuccesses(keep=1).draw(past.records, 3, random.Random(seed), past)
        counts[chosen.ordinal] += 1
    assert [counts[k] / 6000 for k in range(3)] == pytest.approx([1 / 14, 4 / 14, 9 / 14], abs=0.02)


def test_hard_tasks_get_more_turns_and_the_test_more_than_any() -> None:
    turns = [RECIPE.budget.at(1, d).turns for d in ("easy", "medium", "hard")]
    assert turns == [6, 10, 16] and RECIPE.test_budget.at(1, "easy").turns == 24
    assert isinstance(RECIPE.credit, FilteredBC) and RECIPE.credit.drop_unchanged
