"""TCOD: the student comes nearer to its teacher, which may be a larger model or a run, and nothing else moves it; and back to
front it goes on from where a demonstration is."""

from pathlib import Path

import pytest
import torch
from helpers import make_planner, make_trajectory, rows_of, tiny_policy, weights_hash, word_chat
from one_page import WORDS, make_recipe, save_model

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError, ModelError
from longstride.curriculum.schedules import Linear
from longstride.envs.base import TaskSource
from longstride.envs.dial import Dial
from longstride.envs.sites.lexicon import names
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.methods import KL, Mean, OnPolicy, Reinforce, Start, Teacher
from longstride.models.load import save_policy
from longstride.models.tiny import TinyConfig
from longstride.papers.tcod.method import BackToFront, NoAdvantage
from longstride.papers.tcod.recipe import RECIPE
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.run.recipe import Recipe


@pytest.fixture
def student(tmp_path: Path) -> Path:
    return save_model(tmp_path / "student")


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    larger = tiny_policy(WORDS, seed=8, shape=TinyConfig(width=32, layers=3))
    with torch.no_grad():
        larger.model.get_output_embeddings().weight.mul_(2)  # pyright: ignore  # it knows what it wants
    save_policy(larger, tmp_path / "teacher")
    return tmp_path / "teacher"


def distilled(model: Path, **changes) -> Recipe:
    loss = Reinforce(
        aggregation=Mean(over="sequence"), kl=KL(coefficient=1.0, estimator="k2", anchor=Teacher(model=str(model.parent / "teacher")))
    )  # fmt: skip
    settings = {"credit": NoAdvantage(), "loss": loss, "replay": OnPolicy(), "learner": {"lr": 1e-2}}
    return make_recipe(model, **settings).replace(**changes)


def test_no_turn_weighs_anything_whatever_was_earned() -> None:
    samples = NoAdvantage()([make_trajectory(2, reward=1.0), make_trajectory(1)])
    assert [s.advantages for s in samples] == [[0.0]] * 3


def test_a_student_comes_nearer_to_a_teacher_of_another_size(student: Path, teacher: Path, tmp_path: Path) -> None:
    recipe = distilled(student, iterations=8)
    recipe.train(tmp_path / "run")
    apart = [row["kl"] for row in rows_of(tmp_path / "run", "train")]
    assert apart[-1] < 0.9 * apart[0]
    own = recipe.replace(loss={"kl": {"anchor": Start()}}, iterations=2)
    own.train(tmp_path / "own")  # held to itself there is nothing to learn
    assert rows_of(tmp_path / "own", "train")[0]["kl"] == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_a_resumed_student_has_the_same_weights_and_a_run_can_teach(
    student: Path, teacher: Path, tmp_path: Path
) -> None:
    distilled(student, iterations=2).train(tmp_path / "whole")
    distilled(student, iterations=1).train(tmp_path / "halves")
    distilled(student, iterations=2).train(tmp_path / "halves", resume=True)
    assert weights_hash(tmp_path / "whole") == weights_hash(tmp_path / "halves")
    recipe = distilled(student, iterations=1)
    recipe = recipe.replace(loss={"kl": {"anchor": Teacher(model=str(tmp_path / "whole"))}})
    recipe.train(tmp_path / "taught")
    assert rows_of(tmp_path / "taught", "train")[0]["kl"] > 0


def test_adapters_are_taught_too(student: Path, teacher: Path, tmp_path: Path) -> None:
    distilled(student, iterations=2, learner={"lora": {"rank": 4}}).train(tmp_path / "run")
    first, second = (row["kl"] for row in rows_of(tmp_path / "run", "train"))
    assert first > 0 and second != first


def test_a_teacher_of_other_tokens_is_refused(student: Path, tmp_path: Path) -> None:
    save_policy(tiny_policy(WORDS, "green"), tmp_path / "teacher")
    with pytest.raises(ModelError, match=r"loss\.kl\.anchor: .*teacher' has another vocabulary than the policy"):
        distilled(student).train(tmp_path / "run")


def test_losses_of_one_run_that_hold_on_to_two_models_are_refused(student: Path) -> None:
    second = {"after": 1, "loss": Reinforce(kl=KL(anchor=Start()))}
    with pytest.raises(ConfigError, match="hold on to one model at first"):
        distilled(student, objectives=[second])


TRAILS = Dial(distances=(6, 6))
LEFT = BackToFront(left=Linear(start=1, limit=9, interval=2, cap=9))
"""1, 1, 3, 3, 5, 5, 7, 7 and 9 turns are left to the student."""
WORDS_OF_TRAILS = word_chat("Action: click [ 2 3 4 5 ]", *sorted(names(held_out=False)))


def plans_of(source: TaskSource, iteration: int) -> list[Plan]:
    planner = make_planner(source, iteration, episodes=4, size=2, budget=Budget(turns=9), chat=WORDS_OF_TRAILS)
    return list(next(LEFT.plan(planner)))


@pytest.mark.parametrize(("iteration", "taken"), [(1, 5), (2, 5), (3, 3), (5, 1), (7, 0), (9, 0)])
def test_the_student_goes_on_from_ever_earlier_turns_of_a_demonstration(iteration: int, taken: int) -> None:
    plans = plans_of(TRAILS, iteration)
    shown = {plan.ordinal: TRAILS.demonstrate(plan.task) for plan in plans}
    student = ScriptedPlayer(lambda episode: shown[episode.plan.ordinal][episode.turns])
    played = Pool(student, TRAILS.env, TaskReward()).run(plans)
    assert [t.group for t in played] == [0, 0, 2, 2] and all(t.success for t in played)
    assert [(t.history, t.length) for t in played] == [(taken, 6)] * 4


def test_a_student_who_errs_has_what_is_left_of_the_budget() -> None:
    played = Pool(ScriptedPlayer(lambda _: "Action: wait"), TRAILS.env, TaskReward()).run(plans_of(TRAILS, 1))
    assert {(t.length, len(t.turns[t.history :]), t.success) for t in played} == {(9, 4, False)}


def test_tasks_that_know_no_solution_are_refused() -> None:
    with pytest.raises(ConfigError, match="EmbeddedWeb know none .*; take dial"):
        plans_of(EmbeddedWeb(), 1)


def test_of_an_episode_elsewhere_measures_of_trails_say_nothing() -> None:
    assert [measure(make_trajectory(2)) for measure in RECIPE.evaluation.measures] == [None, None]
