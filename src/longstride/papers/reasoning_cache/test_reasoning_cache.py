"""Reasoning Cache in a run: rounds read task and summary alone, and are trained from states that were met."""

from helpers import trajectories_of

from longstride.models.load import load_policy
from longstride.papers.reasoning_cache.recipe import RECIPE, ROUNDS
from longstride.strategies import Direct


def test_rounds_are_read_alone_and_trained_from_states_that_were_met(tmp_path):
    evaluation = {"tasks": 2, "strategies": (Direct(),)}
    changes = {"iterations": 1, "episodes_per_iteration": 8, "group_size": 4, "evaluation": evaluation}
    RECIPE.replace(**changes).train(tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    explored = [t for t in episodes if t.role == "explore"]
    stepped = [t for t in episodes if t.role == "step"]
    assert {t.length for t in explored} == {ROUNDS} and {t.length for t in stepped} == {1}
    met = {(t.task.id, turn.observation) for t in explored for turn in t.turns}
    assert {(t.task.id, t.turns[0].observation) for t in stepped} <= met
    chat = load_policy("base-puzzles").chat
    for t in episodes:
        for turn in t.turns:
            assert turn.prompt_ids == chat.head(t.task.goal) + chat.observation(turn.observation, first=True)
