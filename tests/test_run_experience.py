"""What components may read of a run: openings of tasks, log-probabilities, and what they keep between iterations."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from helpers import rows_of, trajectories_of, weights_hash
from one_page import Watcher, make_recipe, save_model

from longstride.core.experience import Experience
from longstride.core.task import Task
from longstride.curriculum import TaskCurriculum
from longstride.envs.base import TaskSource
from longstride.methods import OnPolicy, Sample
from longstride.methods.base import ADVANTAGES
from longstride.methods.returns import GAE
from longstride.run.checkpoint import latest_checkpoint
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
    found = checkpoint.numbers["memory"]["likeliest"]
    assert {tuple(t.turns[0].prompt_ids) for t in trajectories_of(run / "uninterrupted")} == {tuple(found["prompt"])}
    assert found["likeliest"] < 0


def test_a_curriculum_keeps_what_it_learnt_over_a_resume(run):
    for name in ("uninterrupted", "resumed"):
        checkpoint = latest_checkpoint(run / name)
        assert checkpoint is not None
        found = checkpoint.numbers["memory"]["likeliest"]
        assert (found["seen"], found["records"]) == (3 * 20, 20)  # openings are no episodes
    assert rows_of(run / "uninterrupted", "train") == rows_of(run / "resumed", "train")
    assert weights_hash(run / "uninterrupted") == weights_hash(run / "resumed")


def test_a_replay_may_choose_among_the_samples_that_credit_made(run):
    episodes, rows = trajectories_of(run / "uninterrupted"), rows_of(run / "uninterrupted", "train")
    firsts = [[bool(t.turns[0].sampled_ids) for t in episodes if t.iteration == i] for i in (1, 2, 3)]
    assert [row["trained_turns"] for row in rows] == [sum(of) for of in firsts]
    assert sum(t.length for t in episodes) > sum(map(sum, firsts))
