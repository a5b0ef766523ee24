"""Objectives with parts of their own: a critic, a reference, stages; what runs with them resume to."""

import json

import pytest

from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.recipes import grpo
from longstride.run.loop import train
from longstride.run.recipe import Recipe

SMALL = (
    "iterations=3", "episodes=8", "group=4", "evaluation.tasks=3", "evaluation.every=3",
    "tasks={type='modular_chain'}", "learner.batch_samples=16",
)  # fmt: skip
CRITIC = ("credit={type='gae', values='critic', whiten=true}", "critic={warmup=1, width=16, depth=1}")
HELD = "loss={type='ppo', kl={coefficient=0.1}}"
LATER = "stages=[{after=2, credit={type='group_relative', scale='none'}, loss={type='ppo', kl={coefficient=0.2}}}]"


def trained(run):
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    names = ("loss", "grad_norm", "kl", "value_loss", "value_explained", "steps")
    return [{k: r.get(k) for k in names} for r in rows if r["kind"] == "train"]


@pytest.mark.parametrize(
    "changes", [(*CRITIC, HELD), (LATER,)], ids=["critic and reference", "reference of a later stage"]
)
def test_a_run_that_was_stopped_gives_the_numbers_of_one_that_was_not(tmp_path, changes):
    recipe = resolve(Recipe, grpo.RECIPE, [*SMALL, *changes])
    train(recipe, tmp_path / "whole")
    train(resolve(Recipe, recipe, ["iterations=2"]), tmp_path / "cut")
    train(recipe, tmp_path / "cut", resume=True)
    assert trained(tmp_path / "whole") == trained(tmp_path / "cut")
    last = trained(tmp_path / "whole")[-1]
    assert last["steps"] and last["kl"] > 0  # the policy has left its start, which is still what it is held to


def test_the_critic_alone_learns_while_the_policy_waits(tmp_path):
    train(resolve(Recipe, grpo.RECIPE, [*SMALL, *CRITIC]), tmp_path / "run")
    first, *later = trained(tmp_path / "run")
    assert first["steps"] == 0 < first["value_loss"] and all(row["steps"] for row in later)


@pytest.mark.parametrize("changes", [CRITIC[:1], CRITIC[1:]])
def test_a_critic_and_credit_that_reads_it_belong_together(changes):
    with pytest.raises(ConfigError, match="belong together"):
        resolve(Recipe, grpo.RECIPE, changes)
