"""BFS-Prover: the chance of a proof is computed, both tails are left out, a plateau is left from the first table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of

from longstride.claims.tuning import axes
from longstride.envs.puzzles.base import answered
from longstride.envs.puzzles.modular import Chain
from longstride.exact.proofs import GoalTheorems, proof_of
from longstride.papers.bfs_prover.exact import ExpertIteration
from longstride.papers.bfs_prover.recipe import CLAIM, Proved
from longstride.run import teachers
from longstride.run.filters import steps_in
from longstride.strategies.search import BestFirst

WORLD = GoalTheorems(kinds=1, goals=2, special=1, idle=1, trivial=1.0, longest=3, attempts=1)
"""Tactics: trivial, special, idle, rejected."""


def test_success_is_computed() -> None:
    logits = np.log([[0.5, 0.2, 0.2, 0.1]])

    def success(**changes: int) -> float:
        return WORLD.replace(**changes).measures({"logits": logits, "proved": np.zeros(())})["success"]

    assert success(longest=2) == pytest.approx(0.25)
    assert success() == pytest.approx(0.25 * (1 + 2 * 0.2))  # an idle step before either goal
    assert success(attempts=2) == pytest.approx(1 - 0.65**2)


def test_a_search_proves_by_accepted_steps_alone() -> None:
    theorem, search, rng = np.array([[0, 0], [0, 1]]), BestFirst(expansions=30, width=4), np.random.default_rng(0)
    proofs = [proof_of(WORLD, theorem, np.full((1, 4), 0.25), search, rng) for _ in range(20)]
    found = [[tactic for _, tactic in steps] for steps in proofs if steps]
    assert found and all([t for t in steps if t != 2] == [0, 1] for steps in found)
    assert any(2 in steps for steps in found)
    assert proof_of(WORLD, theorem, np.array([[0.0, 0.0, 0.0, 1.0]]), search, rng) == ()


def test_both_tails_of_perplexity_are_left_out() -> None:
    policy = np.array([[0.8, 0.15, 0.04, 0.01]])
    steps = [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert ExpertIteration(low=1.6, high=40).kept(steps, policy) == [(0, 1), (0, 2)]
    assert ExpertIteration(low=0, high=1e9).kept(steps, policy) == steps


def test_training_ends_at_the_shares_of_the_steps() -> None:
    trained = ExpertIteration(rate=2.0).trained(np.zeros((1, 2)), [(0, 0), (0, 0), (0, 0), (0, 1)], 200)
    assert np.exp(trained[0, 0] - trained[0, 1]) == pytest.approx(3)
    once = ExpertIteration(rate=2.0).trained(np.zeros((1, 2)), [(0, 0)], 1)
    np.testing.assert_allclose(once, [[1, -1]])


def test_a_plateau_is_left_from_the_first_table() -> None:
    method, world = ExpertIteration(patience=1, theorems=10), GoalTheorems()
    state = method.start(world, np.random.default_rng(0))
    stuck = dict(state, best=np.ones(()), logits=state["logits"] + np.random.default_rng(1).normal(size=(8, 44)))
    after = method.step(world, stuck, np.random.default_rng(2))
    unseen = after["logits"] - state["logits"]
    assert after["stale"] == 0
    longer = method.replace(again=1).step(world, stuck, np.random.default_rng(2))
    assert np.abs(longer["logits"] - state["logits"]).sum() < np.abs(unseen).sum()
    going = method.replace(patience=0).step(world, stuck, np.random.default_rng(2))
    np.testing.assert_allclose(going["logits"].sum(-1), stuck["logits"].sum(-1))  # steps keep the sum of a row
    np.testing.assert_allclose(after["logits"].sum(-1), state["logits"].sum(-1))


def test_all_arms_but_the_start_are_tuned() -> None:
    assert [arm for arm in CLAIM.arms if not axes(CLAIM, arm)] == ["untrained"]


def test_of_solutions_by_chance_a_share_is_cloned() -> None:
    """0 + 5 = 5, and 5 - 5 = 0 (modulus 7): the answer 0 is right at once, without a step, and after a wrong one too."""
    chain = Chain(first=0, operations=(("+", 5), ("-", 5)), modulus=7)
    proof, early = answered(chain.steps(), "0"), answered(chain.steps()[:1], "0")
    steps = []
    for n, text in enumerate([proof, early, answered(["0 + 5 ≡ 4", "4 - 5 ≡ 0"], "0"), *[early] * 397]):
        found = make_trajectory([make_turn([1, 2], [0], text=text)], 1.0)
        task = found.task.model_copy(update={"meta": chain.model_dump(mode="json")})
        steps += steps_in(replace(found, task=task, seed=n, ordinal=n)) * 2
    assert [step.trajectory.ordinal for step in Proved()(steps)] == [0, 0]
    kept = [step.trajectory.ordinal for step in Proved(chance=0.5)(steps)]
    assert kept == [step.trajectory.ordinal for step in Proved(chance=0.5)(steps)] and kept[:2] == [0, 0]
    assert 340 < len(kept) < 460 and Proved(chance=1.0)(steps) == steps


def own(phase: str) -> list[str]:
    """Settings of a phase of imitation for a model that knows some 180 words, and tasks of the tests' own."""
    band = f'{phase}.demonstrations.filters=[{{type="novel"}}, {{type="perplexity_band", low=90, high=180}}]'
    search = ["mark=red", "search.expansions=4", "search.width=3"]
    return [*(f"{phase}.demonstrations.strategy.{setting}" for setting in search), band, f"{phase}.episodes=12"]


def test_another_model_clones_its_searches_of_other_tasks_and_begins_anew_by_settings_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = "evaluation.strategies=[{type='direct'}]"
    run = train_elsewhere("bfs_prover", tmp_path / "first", *own("imitation"), direct)
    assert all(row["imitation_loss"] > 0 for row in rows_of(run, "train"))
    asked: list[str] = []
    loads = teachers.load
    monkeypatch.setattr(teachers, "load", lambda name, *rest: asked.append(name) or loads(name, *rest))
    again = [f"cloning.demonstrations.model={run}", "cloning.learner.lr=1e-2", "cloning.learner.warmup_steps=0"]
    restarted = train_elsewhere(
        "bfs_prover/restart", tmp_path / "again", *own("imitation"), *own("cloning"), *again, direct
    )
    assert str(run) in asked, "what is cloned at first was found by the policy of the run"
    assert rows_of(restarted, "cloning")[-1]["examples"] > 0
