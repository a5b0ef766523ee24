"""The ceiling: what a solver shows as samples of cloning, and success by errand."""

import random

import pytest
from helpers import make_trajectory

from longstride.methods.base import ADVANTAGES
from longstride.models.load import load_policy
from longstride.run.recipe import Recipe
from longstride.studies.ceiling.recipe import ERRANDS, RECIPE, ErrandSuccess


def test_cloning_takes_the_turns_of_the_solver_as_the_policy_would_have_read_them() -> None:
    assert isinstance(RECIPE, Recipe) and RECIPE.cloning and isinstance(RECIPE.model, str)
    demonstrations, chat = RECIPE.cloning.demonstrations, load_policy(RECIPE.model).chat
    samples = demonstrations.samples(RECIPE, chat, 2, random.Random(0))
    again = demonstrations.samples(RECIPE, chat, 2, random.Random(0))
    other = demonstrations.samples(RECIPE, chat, 2, random.Random(1))
    assert samples == again and samples != other
    for sample in samples:
        page_and_response = sum(sample.streams[ADVANTAGES])
        assert page_and_response == pytest.approx(1.5)
        assert "Action:" in chat.decode(sample.sampled_ids)


def test_success_of_an_errand_says_nothing_of_the_others() -> None:
    trajectory = make_trajectory(2)
    trajectory.task.meta["errand"] = "hop"
    found = {m.name: m(trajectory) for m in (ErrandSuccess(errand=e) for e in ERRANDS)}
    assert found.pop("success_hop") == float(trajectory.success)
    assert set(found.values()) == {None}
    assert ErrandSuccess(errand="hop")(make_trajectory(2)) is None  # a task of other sources
