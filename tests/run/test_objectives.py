"""Objectives with parts of their own (a critic with a reference, a bonus): runs with them resume to the numbers of a
run that was not stopped. `test_resume.py` has anchors of every kind."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from by_hand import growing_group
from helpers import rows_of, weights_hash
from one_page import Watcher, make_recipe, save_model

from longstride.core.errors import ConfigError
from longstride.learner.critics import TurnValue
from longstride.methods import DPO, INPO, KL, PPO, GroupRelative, OnPolicy, SiblingPairs, Teacher
from longstride.methods.advantages import GAE
from longstride.methods.base import ANCHOR, REFERENCE
from longstride.methods.losses import Loss
from longstride.models.load import load_policy
from longstride.rewards import Duels
from longstride.run.loop import train
from longstride.run.placement import ThisProcess
from longstride.run.recipe import ObjectivePhase
from longstride.run.session import Session

GROUPED: dict[str, Any] = {"iterations": 3, "group_size": 5, "replay": OnPolicy(), "credit": GroupRelative()}
CRITIC: dict[str, Any] = {"credit": GAE(values="critic", whiten=True), "critic": TurnValue(warmup=1, width=16, depth=1)}


def held(coefficient: float = 0.1, **anchor: Any) -> Loss:
    return PPO(kl=KL(coefficient=coefficient, **anchor))


OBJECTIVES: dict[str, dict[str, Any]] = {
    "critic and reference": {**CRITIC, "loss": held()},
    "entropy bonus": {"loss": PPO(entropy=0.01)},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model") / "model")


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_run_that_was_stopped_gives_the_numbers_of_one_that_was_not(tmp_path, model, name):
    recipe = make_recipe(model, **(GROUPED | {"iterations": 2} | OBJECTIVES[name]))
    train(recipe, tmp_path / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "resumed", Watcher(stop_after=2))
    train(recipe, tmp_path / "resumed", resume=True)
    rows = rows_of(tmp_path / "uninterrupted", "train")
    assert rows == rows_of(tmp_path / "resumed", "train")
    assert weights_hash(tmp_path / "uninterrupted") == weights_hash(tmp_path / "resumed")
    assert rows[-1]["steps"] and rows[-1].get("kl", 1) > 0 and rows[-1].get("entropy", 1) > 0


def test_the_critic_alone_learns_while_the_policy_waits(tmp_path, model):
    train(make_recipe(model, **(GROUPED | CRITIC)), tmp_path / "run")
    first, *later = rows_of(tmp_path / "run", "train")
    assert first["steps"] == 0 < first["value_loss"] and all(row["steps"] for row in later)


def test_a_phase_changes_what_it_names_and_leaves_the_rest(model):
    phases = (ObjectivePhase(after=2, loss=held(0.2)), ObjectivePhase(after=5, credit=GroupRelative(normalize="none")))
    recipe = make_recipe(model, **(GROUPED | {"objectives": phases}))
    assert (recipe.at(2).credit, recipe.at(2).loss) == (recipe.credit, recipe.loss)
    assert (recipe.at(3).credit, recipe.at(3).loss) == (recipe.credit, held(0.2))
    assert (recipe.at(6).credit, recipe.at(6).loss) == (GroupRelative(normalize="none"), held(0.2))
    with pytest.raises(ConfigError, match="objectives go by iteration"):
        recipe.replace(objectives=phases[::-1])


def test_a_later_loss_has_the_policies_that_it_holds_on_to(model):
    pairs: dict[str, Any] = {"reward": Duels(), "credit": SiblingPairs(), "replay": OnPolicy(), "group_size": 5}
    recipe = make_recipe(model, **pairs, loss=DPO(), objectives=(ObjectivePhase(after=1, loss=INPO()),))
    with ThisProcess().place(recipe) as placed:
        learner = placed.learner(load_policy(str(model)), None)
    found = learner.with_streams(growing_group(vocabulary=9), recipe.at(2).loss.needs)
    assert all(sample.streams[ANCHOR] == sample.streams[REFERENCE] for sample in found)


def test_a_teacher_that_is_held_on_to_takes_the_memory_that_was_planned(model):
    loss = held(anchor=Teacher(model=str(model)))
    recipe = make_recipe(model, **GROUPED, device="cpu", weights="bfloat16", loss=loss)
    session: Any = SimpleNamespace(recipe=recipe, policy=load_policy(str(model), dtype=recipe.weights))
    assert {p.dtype for p in Session._reference(session, str(model)).parameters()} == {torch.bfloat16}


def test_adapters_of_another_run_begin_otherwise(model):
    pytest.importorskip("peft")

    def first(seed: int) -> torch.Tensor:
        recipe = make_recipe(model, seed=seed, learner={"lora": {"rank": 2}})
        with ThisProcess().place(recipe) as placed:
            return next(iter(placed.learner(load_policy(str(model)), None).parameters.values())).detach()

    assert not torch.equal(first(0), first(1))
