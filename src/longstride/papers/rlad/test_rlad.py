"""RLAD: what each role is asked, what an abstraction earns, m and k at the test, and a model and tasks of one's own."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elsewhere import train_elsewhere
from helpers import make_planner, make_trajectory, make_turn, rows_of, run_stages, trajectories_of

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import MEASURED, Trajectory
from longstride.envs.hidden import Bandits
from longstride.envs.puzzles import Countdown
from longstride.envs.puzzles.countdown import Numbers
from longstride.methods import GroupRelative, MixedGroups
from longstride.models.load import load_policy
from longstride.papers.rlad.method import (
    PROPOSAL,
    SOLUTION,
    Abstracted,
    Abstracting,
    AbstractionForm,
    AbstractionsShown,
    said,
)
from longstride.papers.rlad.recipe import CLAIM, FORM, RECIPE
from longstride.rollout import Plan
from longstride.stats import Relation
from longstride.strategies.best_of import Verifier

TASKS = Countdown(numbers=(3, 3, 3))
SHORT = AbstractionForm(ask=" ask", words=" with {abstraction}", tokens=7)


def play(plan: Plan, says: Sequence[str] = ("good", "leaky", "bad", "")) -> Trajectory:
    """The proposals of a task are these in turn. With a good one every other solution succeeds, with a leaky one all, and
    who reads it alone succeeds once."""
    text = says[plan.ordinal % len(says)] if plan.role == PROPOSAL else ""
    if plan.role == MEASURED:
        done = plan.task.goal == "leaky" and plan.ordinal == plan.group + 1
    else:
        done = plan.task.goal.endswith(" with leaky") or plan.task.goal.endswith(" with good") and plan.ordinal % 2 == 1
    return make_trajectory(
        [make_turn([1, 2], text=text)],
        float(done),
        task=plan.task,
        ordinal=plan.ordinal,
        group=plan.group,
        role=plan.role,
    )


def stages(change: Any = lambda t: t, **numbers: int) -> tuple[list[list[Plan]], list[Trajectory]]:
    """Of one task with four abstractions, and two solutions with each."""
    sampler = Abstracted(form=SHORT).replace(**numbers)
    planner = make_planner(TASKS, episodes=8, size=8, budget=Budget(turns=3, turn_tokens=20))
    return run_stages(sampler.plan(planner), lambda plan: change(play(plan)))


def test_abstractions_are_proposed_in_one_role_and_used_in_another() -> None:
    (proposals, solutions, tests), played = stages(alone=3)
    goal = proposals[0].task.goal.removesuffix(" ask")
    assert [p.task.goal for p in proposals] == [f"{goal} ask"] * 4 and {p.group for p in proposals} == {0}
    assert {(p.role, p.budget.turns, p.budget.turn_tokens) for p in proposals} == {(PROPOSAL, 1, 7)}
    assert [p.task.goal for p in solutions] == [
        f"{goal} with {said}" for said in ("good", "leaky", "bad") for _ in "12"
    ]
    assert [p.group for p in solutions] == [4, 4, 6, 6, 8, 8], "an empty one is not used, solutions of one are a group"
    assert {(p.role, p.budget.turns, p.budget.turn_tokens) for p in solutions} == {(SOLUTION, 3, 20)}
    assert [p.task.goal for p in tests] == ["good"] * 3 + ["leaky"] * 3, "of those with a success, without the task"
    assert {p.role for p in tests} == {MEASURED} and len(played) == 4 + 6 + 6
    assert all(p.task.meta == proposals[0].task.meta for p in (*solutions, *tests)), "they are judged by the task"


def test_an_abstraction_earns_the_share_of_its_solutions_that_succeed_and_nothing_if_it_leaks() -> None:
    _, played = stages()
    assert [t.reward for t in played[:4]] == [0.5, 0.0, 0.0, 0.0] and [t.success for t in played[:4]] == [True] + [
        False
    ] * 3
    assert [t.evidence for t in played[:4]] == [
        {"solved": 1, "of": 2, "leaks": False}, {"solved": 2, "of": 2, "leaks": True},
        {"solved": 0, "of": 2, "leaks": False}, {"solved": 0, "of": 0, "leaks": False},
    ]  # fmt: skip
    _, untested = stages(alone=0)
    assert [t.reward for t in untested[:4]] == [0.5, 1.0, 0.0, 0.0] and len(untested) == 10


def test_each_role_is_compared_with_its_own_and_tests_are_not_trained() -> None:
    _, played = stages()
    trained = [t for t in played if MixedGroups().admits(t.record())]
    assert [t.role for t in trained] == [PROPOSAL] * 4 + [SOLUTION] * 6
    advantages = [of[0] for of in GroupRelative(normalize="none").advantages(trained)]
    assert advantages[:4] == pytest.approx([0.375, -0.125, -0.125, -0.125])
    assert advantages[4:] == pytest.approx([-0.5, 0.5, 0, 0, 0, 0])


def test_what_infrastructure_ended_counts_in_no_share() -> None:
    def broken(t: Trajectory) -> Trajectory:
        return replace(t, stop=StopReason.INFRA_FAILURE, success=False)

    _, played = stages(change=lambda t: broken(t) if t.role == SOLUTION and t.ordinal == 4 else t)
    assert played[0].reward == 1.0 and played[0].evidence["of"] == 1
    plans, played = stages(change=lambda t: broken(t) if t.role == PROPOSAL else t)
    assert len(plans) == 1 and all(t.stop.failed for t in played)


def test_a_group_is_shared_out_evenly() -> None:
    with pytest.raises(ConfigError, match="shares a group of 8 solutions out among 3 abstractions; set group_size to"):
        stages(abstractions=3)


def test_a_model_that_follows_no_instructions_is_shown_both_roles() -> None:
    chat, recipe = load_policy("base-puzzles").chat, RECIPE.replace(tasks=TASKS)
    found = AbstractionsShown(form=FORM).samples(recipe, chat, 30, random.Random(0))
    assert len(found) == 30
    for s in found:
        asked, said = chat.decode(s.prompt_ids), chat.decode(s.sampled_ids)
        goal, _, abstraction = asked.partition(" ; start")
        numbers = goal.partition(" from ")[2].split()
        step = abstraction or said.removeprefix("Thought: ")
        a, _, b, equals, _ = step.split()
        assert equals == "=" and {a, b} <= set(numbers), asked
        assert said.startswith(f"Thought: {abstraction.strip()}") if abstraction else "Action" not in said
    assert sum("Action" in chat.decode(s.sampled_ids) for s in found) == 15
    with pytest.raises(ConfigError, match="bandits has no `hint` or no `demonstrate`"):
        AbstractionsShown().samples(RECIPE.replace(tasks=Bandits()), chat, 2, random.Random(0))


def test_at_the_test_m_abstractions_have_k_solutions_each_and_all_tokens_are_counted() -> None:
    strategy = Abstracting(form=SHORT, abstractions=2, attempts=3, by=Verifier())
    assert strategy.name == "abstracting_2_3_by_verifier"
    tasks = TASKS.held_out(2)
    plans = [Plan(task, k, k, Budget(turns=3, turn_tokens=20), group=k) for k, task in enumerate(tasks)]
    says = {0: ("bad", "good"), 1: ("", "leaky")}
    player: Any = None

    def at_test(plan: Plan) -> Trajectory:
        return play(plan, says[plan.group])

    (proposals, solutions), found = run_stages(strategy.run(plans, player), at_test)
    assert [p.role for p in proposals] == [PROPOSAL] * 4 and len({p.ordinal for p in (*proposals, *solutions)}) == 16
    goals = [p.task.goal.removeprefix(tasks[p.group].goal) for p in solutions]
    assert goals == [" with bad"] * 3 + [" with good"] * 3 + [""] * 3 + [" with leaky"] * 3
    assert [e.trajectory.success for e in found] == [True, True] and [e.trajectory.group for e in found] == [0, 1]
    assert [e.spent_tokens for e in found] == [2 * (2 + 6)] * 2


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    form = ['sampler.form.ask=" click"', 'sampler.form.words=" home {abstraction}"', "sampler.form.tokens=2"]
    few = ["sampler.abstractions=2", "evaluation.strategies=[]", "cloning=", "episodes_per_iteration=32"]
    run = train_elsewhere("rlad", tmp_path, *form, *few)
    played = trajectories_of(run)
    proposals = [t for t in played if t.role == PROPOSAL]
    assert {t.task.goal for t in proposals} == {"red lamp click"} and any(t.reward for t in proposals)
    texts = {said(t) for t in proposals} - {""}
    assert {t.task.goal for t in played if t.role == SOLUTION} == {f"red lamp home {text}" for text in texts}
    assert {t.task.goal for t in played if t.role == MEASURED} <= texts
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))


def test_arms_differ_in_who_proposes_and_in_the_numbers_that_are_given() -> None:
    assert set(CLAIM.changes("grpo")) == {"sampler", "cloning.demonstrations", "iterations", "evaluation.strategies"}
    assert set(CLAIM.changes("rlad_3")) == {"tasks.numbers", "evaluation.strategies"}


def test_arms_are_tuned_under_what_they_are_judged_under() -> None:
    """Tuning ranks by the first strategy (`claims.tuning.tune`)."""
    first = {name: arm.strategies[0] for name, arm in CLAIM.arms.items()}
    assert {first[f"rlad{n}"] for n in ("", "_3", "_4")} == {"abstracting_4_4_by_verifier"}
    assert {first[f"grpo{n}"] for n in ("", "_3", "_4")} == {"best_of_16_by_verifier"}
    decides = [*CLAIM.expected.parsed, *map(Relation.of, CLAIM.dose)]
    assert not any("@" in side for relation in decides for side in relation[:2])
    for name, _, under in (side.partition("@") for relation in CLAIM.relations for side in relation[:2]):
        assert not under or under in CLAIM.arms[name].strategies[1:]


def test_what_is_held_out_is_of_the_kinds_that_are_trained_on() -> None:
    trained, held_out = RECIPE.tasks.sample(random.Random(0), 40), RECIPE.tasks.held_out(12)
    assert {len(Numbers.of(task).numbers) for task in trained} == {3, 4}
    assert {len(Numbers.of(task).numbers) for task in held_out} == {3, 4}
    tasks: Any = RECIPE.tasks
    assert all(tasks.hint(task) for task in held_out)
