"""ExIt: which histories are gone on from, that they are read and not trained, and a model and tasks of one's own."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import Collected, make_planner, make_trajectory, make_turn, rows_of, trajectories_of

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Iterated, ModularChain, Puzzles
from longstride.envs.puzzles.modular import Chain
from longstride.papers.exit.method import BEGUN, GOING_ON, PartialHistories
from longstride.papers.exit.recipe import CLAIM
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer

CHAINS = Iterated(puzzles=Puzzles(sources=(ModularChain(lengths=(4, 4, 4)),)))
TASKS = CHAINS.sample(random.Random(0), 3)


def stored(group: int, *rewards: float, iteration: int = 1, turns: int = 1) -> list[Trajectory]:
    return [
        make_trajectory(
            [make_turn([k], text=f"said {k}") for k in range(turns)], reward, task=TASKS[group], group=10 * group,
            ordinal=10 * group + n, iteration=iteration,
        )
        for n, reward in enumerate(rewards)
    ]  # fmt: skip


def plans_of(past: Sequence[Trajectory], turns: int = 8, iteration: int = 2, **numbers: object) -> list[Plan]:
    planner = make_planner(
        CHAINS, iteration, 100, episodes=2000, size=2, budget=Budget(turns=turns), experience=Collected(past)
    )
    return list(next(PartialHistories().replace(**numbers).plan(planner)))


def test_a_group_is_gone_on_from_in_proportion_to_the_variance_of_its_rewards() -> None:
    past = [*stored(0, 1, 1, 0, 0), *stored(1, 1, 0, 0, 0), *stored(2, 0, 0, 0, 0)]
    more = [plan for plan in plans_of(past) if plan.role == GOING_ON]
    drawn = Counter(plan.task.id for plan in more)
    assert len(more) == 1000 and drawn[TASKS[2].id] == 0
    assert drawn[TASKS[0].id] / 1000 == pytest.approx(4 / 7, abs=0.06)  # 1/4 against 3/16
    alike = Counter(plan.task.id for plan in plans_of(past, prioritised=False) if plan.role == GOING_ON)
    assert alike[TASKS[2].id] / 1000 == pytest.approx(1 / 3, abs=0.06)


def test_groups_that_are_old_or_that_taught_nothing_are_not_gone_on_from() -> None:
    assert {plan.role for plan in plans_of(stored(0, 1, 0), iteration=6)} == {BEGUN}
    assert {plan.role for plan in plans_of(stored(0, 1, 0), iteration=5)} == {BEGUN, GOING_ON}
    assert {plan.role for plan in plans_of(stored(0, 0, 0))} == {BEGUN}
    assert {plan.role for plan in plans_of(stored(0, 1, 0), share=0.0)} == {BEGUN}


def test_a_history_grows_by_a_turn_and_one_as_long_as_the_budget_begins_anew() -> None:
    more = [plan for plan in plans_of(stored(0, 1, 0, turns=3)) if plan.role == GOING_ON]
    assert {(len(plan.history), plan.task.horizon) for plan in more} == {(3, 4)}
    assert {len({(p.group, p.history) for p in more if p.group == group}) for group in {p.group for p in more}} == {1}
    anew = [plan for plan in plans_of(stored(0, 1, 0, turns=3), turns=3) if plan.task.id == TASKS[0].id]
    assert {(plan.role, plan.task.horizon, plan.history) for plan in anew} == {(BEGUN, 1, ())}


def test_an_environment_of_one_turn_is_refused() -> None:
    with pytest.raises(ConfigError, match="partial_histories goes on after an answer, and episodes may take one turn"):
        plans_of([], turns=1)


def test_a_turn_goes_on_from_the_summary_of_those_before() -> None:
    (task,) = CHAINS.sample(random.Random(1), 1)
    chain = Chain.of(task)
    first, second, *_ = chain.steps()
    player = ScriptedPlayer(lambda episode: f"Thought: {second if episode.turns else first} Action: answer 99")
    (plan,) = make_planner(CHAINS, episodes=1, size=1, budget=Budget(turns=4)).group(
        task.model_copy(update={"horizon": 1})
    )
    (begun,) = Pool(player, CHAINS.env, TaskReward()).run([plan])
    assert begun.length == 1 and not begun.success
    planner = make_planner(CHAINS, 2, 1, episodes=1, size=1, budget=Budget(turns=4), experience=Collected([begun]))
    (plan,) = next(PartialHistories(share=1.0, prioritised=False).plan(planner))
    assert plan.env_seed == begun.seed != plan.seed
    (more,) = Pool(player, CHAINS.env, TaskReward()).run([replace(plan, task=plan.task)])
    assert (more.history, more.length, more.turns[0].sampled_ids) == (1, 2, [])
    assert (
        more.turns[1].observation
        == f"now {chain.values()[1]} ; {' ; '.join(f'{s} {n}' for s, n in chain.operations[1:])}"
    )


def test_a_turn_that_cannot_be_parsed_earns_nothing_after_a_right_history() -> None:
    (task,) = CHAINS.sample(random.Random(1), 1)
    (right,) = ModularChain().demonstrate(task)
    said = iter([right, "garbage", right, "Action: answer 99"])
    pool = Pool(ScriptedPlayer(lambda episode: next(said)), CHAINS.env, TaskReward())
    (plan,) = make_planner(CHAINS, episodes=1, size=1).group(task.model_copy(update={"horizon": 1}))
    begun = pool.run([plan])
    assert begun[0].success
    for earned in (0.0, 1.0, 0.0):
        planner = make_planner(CHAINS, 2, 1, episodes=1, size=1, budget=Budget(turns=4), experience=Collected(begun))
        stages = PartialHistories(share=1.0, prioritised=False).plan(planner)
        with pytest.raises(StopIteration) as end:
            stages.send(pool.run(next(stages)))
        (more,) = end.value.value
        assert (more.length, more.reward, more.success) == (2, earned, earned == 1)


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(
        "exit", tmp_path, "budget.turns=4", "test_budget.turns=4", "context.type=full_history", "evaluation.strategies=[]",
        "iterations=3", "sampler.share=1.0", "replay.type=on_policy",
    )  # fmt: skip
    played = trajectories_of(run)
    assert {(t.iteration, t.role, t.history) for t in played} >= {(1, BEGUN, 0), (2, GOING_ON, 1), (3, GOING_ON, 2)}
    assert all(not turn.sampled_ids for t in played for turn in t.turns[: t.history])
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))


def test_arms_differ_in_what_is_gone_on_from_and_in_the_length_of_tasks() -> None:
    assert list(CLAIM.changes("first")) == ["sampler.share"] and list(CLAIM.changes("any")) == ["sampler.prioritised"]
    assert set(CLAIM.changes("first_short")) == {"tasks.puzzles.sources", "sampler.share"}
