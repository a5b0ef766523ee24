"""What components may read of a run: openings of tasks, log-probabilities, and what they keep between iterations."""

import random
import shutil
from collections.abc import Sequence
from typing import Any

import pytest
from helpers import forge, rows_of, trajectories_of, weights_hash
from one_page import Watcher, make_recipe, save_model

from longstride.core.errors import ConfigError, RunError
from longstride.core.experience import Experience
from longstride.core.task import Task
from longstride.curriculum import BudgetSchedule, OnPlateau, TaskCurriculum
from longstride.envs.base import TaskSource
from longstride.methods import OnPolicy, Sample
from longstride.methods.advantages import GAE
from longstride.methods.base import ADVANTAGES
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import load_run_experiment
from longstride.run.loop import train


class Likeliest(TaskCurriculum):
    """Of twice as many tasks those whose opening is most likely continued by the end token; it keeps how likely."""

    def draw(self, source: TaskSource, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        tasks = source.sample(rng, 2 * n)
        opened = experience.openings(tasks)
        samples = [Sample(t.turns[0].prompt_ids, [4], {ADVANTAGES: [0.0]}) for t in opened]
        found = [logp for (logp,) in experience.logprobs(samples)]
        memory = experience.memory(self)
        memory["seen"] = memory.get("seen", 0) + len(tasks)
        memory["prompt"] = opened[0].turns[0].prompt_ids
        memory["likeliest"] = max(found)
        memory["records"] = len(experience.records)
        return [task for _, task in sorted(zip(found, tasks, strict=True), key=lambda pair: -pair[0])][:n]


class FirstTurns(OnPolicy):
    """Trains on first turns, as long as the policy finds them likely enough."""

    def select(self, samples: Sequence[Sample], experience: Experience) -> Sequence[Sample]:
        likely = experience.logprobs(samples)
        return [s for s, logps in zip(samples, likely, strict=True) if s.turn == 0 and sum(logps) > -1e3]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three iterations, and the same one stopped after two."""
    folder = tmp_path_factory.mktemp("experience")
    changes: dict[str, Any] = {"curriculum": Likeliest(), "replay": FirstTurns(), "iterations": 3, "credit": GAE()}
    recipe = make_recipe(save_model(folder / "model"), **changes)
    train(recipe, folder / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, folder / "resumed", Watcher(stop_after=3))
    train(recipe, folder / "resumed", resume=True)
    return folder


def test_an_opening_is_what_the_policy_reads_first(run):
    checkpoint = latest_checkpoint(run / "uninterrupted")
    assert checkpoint is not None
    found = checkpoint.numbers["memory"]["curriculum"]
    assert {tuple(t.turns[0].prompt_ids) for t in trajectories_of(run / "uninterrupted")} == {tuple(found["prompt"])}
    assert found["likeliest"] < 0


def test_a_curriculum_keeps_what_it_learnt_over_a_resume(run):
    for name in ("uninterrupted", "resumed"):
        checkpoint = latest_checkpoint(run / name)
        assert checkpoint is not None
        found = checkpoint.numbers["memory"]["curriculum"]
        assert (found["seen"], found["records"]) == (3 * 20, 20)  # openings are no episodes
    assert rows_of(run / "uninterrupted", "train") == rows_of(run / "resumed", "train")
    assert weights_hash(run / "uninterrupted") == weights_hash(run / "resumed")


def test_a_replay_may_choose_among_the_samples_that_credit_made(run):
    episodes, rows = trajectories_of(run / "uninterrupted"), rows_of(run / "uninterrupted", "train")
    firsts = [[bool(t.turns[0].sampled_ids) for t in episodes if t.iteration == i] for i in (1, 2, 3)]
    assert [row["trained_turns"] for row in rows] == [sum(of) for of in firsts]
    assert sum(t.length for t in episodes) > sum(map(sum, firsts))


GROWS = OnPlateau(start=1, limit=3, step=1, patience=1, better=1.0)
"""No share of successes is better by 1, so it grows with every second iteration."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run whose turns and tokens grow by schedules of one class, and the same one stopped after its third
    iteration."""
    folder = tmp_path_factory.mktemp("plateau")
    budget = BudgetSchedule(turns=GROWS, tokens=GROWS.replace(limit=9, step=2), turn_tokens=3)
    recipe = make_recipe(save_model(folder / "model"), iterations=6, budget=budget)
    train(recipe, folder / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, folder / "resumed", Watcher(stop_after=4))
    train(recipe, folder / "resumed", resume=True)
    return folder


def test_a_horizon_that_grows_on_a_plateau_goes_on_where_its_checkpoint_was(grown):
    rows = rows_of(grown / "uninterrupted", "train")
    horizons = [row["horizon"]["easy"] for row in rows]
    assert horizons == [1, 1, 2, 2, 3, 3]
    played = [
        {t.budget.turns for t in trajectories_of(grown / "uninterrupted") if t.iteration == i} for i in range(1, 7)
    ]
    assert played == [{h} for h in horizons]
    assert rows == rows_of(grown / "resumed", "train")
    assert weights_hash(grown / "uninterrupted") == weights_hash(grown / "resumed")


def test_two_components_of_one_class_keep_their_own(grown):
    checkpoint = latest_checkpoint(grown / "resumed")
    assert checkpoint is not None
    memory = checkpoint.numbers["memory"]
    assert memory.keys() == {"budget.turns", "budget.tokens"}
    assert (memory["budget.turns"]["limit"], memory["budget.tokens"]["limit"]) == (3, 5)


def test_an_object_that_stands_in_two_places_keeps_apart_what_it_learns_there(tmp_path):
    budget = BudgetSchedule(turns=GROWS, tool_calls=GROWS, turn_tokens=3)
    train(make_recipe(save_model(tmp_path / "model"), iterations=1, budget=budget), tmp_path / "run")
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert checkpoint is not None and checkpoint.numbers["memory"].keys() == {"budget.turns", "budget.tool_calls"}


def test_a_checkpoint_whose_memory_has_no_place_in_the_recipe_is_refused(grown, tmp_path):
    shutil.copytree(grown / "uninterrupted", tmp_path / "run")
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert checkpoint is not None
    forge(checkpoint.folder, memory={"on_plateau": {"limit": 2}})
    recipe = load_run_experiment(tmp_path / "run").replace(iterations=7)
    with pytest.raises(RunError, match="keeps the memory of 'on_plateau', and this recipe has no such place"):
        recipe.train(tmp_path / "run", resume=True)


def test_a_component_that_is_no_part_of_the_recipe_has_no_memory(tmp_path):
    class Stray(Likeliest):
        def draw(self, source, n, rng, experience):
            return Likeliest().draw(source, n, rng, experience)

    recipe = make_recipe(save_model(tmp_path / "model"), curriculum=Stray())
    with pytest.raises(ConfigError, match="likeliest is no part of the recipe"):
        train(recipe, tmp_path / "run")
