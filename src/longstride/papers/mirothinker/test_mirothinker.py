"""MiroThinker: what well-formed turns earn, and what is in view."""

import pytest
from helpers import make_task, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.papers.mirothinker.method import Formatted
from longstride.papers.mirothinker.recipe import RECIPE
from longstride.rollout.context import RecentObservations


@pytest.mark.parametrize(("said", "reward"), [("4", 1.075), ("5", 0.075)])
def test_the_share_of_turns_that_parse_is_added_to_the_outcome(said: str, reward: float) -> None:
    task = make_task(evaluator={"type": "answer", "reference": "4"})
    turns = [make_turn(action="click 1"), make_turn(action=None), make_turn(action="home"), make_turn(action="answer")]
    episode = make_trajectory(turns, task=task, answer=said, stop=StopReason.ANSWERED)
    verdict = Formatted()(episode, {}, seed=0)
    assert verdict.reward == pytest.approx(reward) and verdict.success is (said == "4")
    assert verdict.terms == {"outcome": float(said == "4"), "format": pytest.approx(0.075)}


def test_an_outcome_that_the_environment_gave_is_its_own_and_is_not_given_twice() -> None:
    verdict = Formatted()(make_trajectory([make_turn(action="stop", reward=0.5)]), {}, seed=0)
    assert verdict.terms == {"outcome": 0.5, "format": 0.1} and (verdict.reward, verdict.success) == (0.1, True)


def test_the_newest_five_pages_are_in_view() -> None:
    assert isinstance(RECIPE.context, RecentObservations)
    seen = RECIPE.context.seen([f"page {k}" for k in range(8)])
    assert list(seen) == ["omitted"] * 3 + [f"page {k}" for k in range(3, 8)]
    assert [s.name for s in RECIPE.evaluation.strategies] == ["direct_24_turns", "direct_12_turns", "direct_6_turns"]
