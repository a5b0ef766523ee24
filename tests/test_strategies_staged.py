"""Strategies that play in stages: what is asked for at every place of a thought, what it measures, and what of it an
evaluation keeps."""

import json
from typing import Any, cast

import pytest
from test_branching import Words

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.engines.base import Sampling
from longstride.envs.puzzles import Puzzles
from longstride.models.load import load_policy
from longstride.recipes import mrt
from longstride.rollout import LanguagePlayer, Plan, ScriptedPlayer
from longstride.rollout.context import KeepAll
from longstride.run.evaluation import Result, evaluate_policy
from longstride.run.loop import train
from longstride.run.recipe import Recipe
from longstride.strategies import Anytime, Direct, Played, Strategy

TASK = Task(id="t", source="s", goal="g", start="")
THOUGHT = "Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3"
PLACES = ["", "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3"]


@pytest.fixture
def player():
    return LanguagePlayer(cast(Any, None), cast(Any, Words()), KeepAll(), Sampling())


def plan(ordinal=0, **budget):
    return Plan(TASK, ordinal, 10 + ordinal, Budget(turns=1, **budget), group=ordinal)


def episode(plan, said=(), reward=0.0, stop=StopReason.ANSWERED):
    turn = Turn([], list(said), [0.0] * len(said), [0] * len(said), "", "")
    return Trajectory(plan.task, plan.ordinal, plan.seed, plan.budget, [turn], stop, reward=reward, group=plan.group,
                      prefix=list(plan.prefix), role=plan.role)  # fmt: skip


def asked(strategy, player, plans, said=THOUGHT, stop=StopReason.ANSWERED):
    """The course after its first stage, the episodes of that, and the plans of the second."""
    course = strategy.stages(plans, player)
    assert next(course) == plans
    episodes = [episode(p, player.chat.encode(said), stop=stop) for p in plans]
    return course, episodes, course.send(episodes)


def ended(course, answers):
    with pytest.raises(StopIteration) as end:
        course.send(answers)
    return end.value.value


def test_at_every_place_of_a_thought_an_answer_is_asked_for(player):
    _, _, answers = asked(Anytime(answers=2), player, [plan(tokens=9, turn_tokens=20)])
    begun = [player.chat.decode(p.prefix) for p in answers]
    assert begun == [f"{place} Action: answer".strip() for place in PLACES for _ in range(2)]
    assert {(p.task.id, p.seed, p.group, p.role) for p in answers} == {("t", 10, 0, "forced")}
    # room for 16 tokens of an answer, wherever it begins
    assert [p.budget for p in answers] == [Budget(turns=1, turn_tokens=len(p.prefix) + 16) for p in answers]


def test_a_thought_that_begins_with_a_mark_or_says_nothing_has_one_place(player):
    for said in ("Action: answer 3", ""):
        _, _, answers = asked(Anytime(), player, [plan()], said)
        assert [player.chat.decode(p.prefix) for p in answers] == ["Action: answer"]


def test_the_seed_of_an_answer_depends_on_its_episode_and_its_number_alone(player):
    alone = asked(Anytime(), player, [plan(1)], "Action: answer 3")[2]
    many = asked(Anytime(answers=2), player, [plan(n) for n in range(3)])[2]
    assert (alone[0].ordinal, alone[0].seed) == (many[6].ordinal, many[6].seed)
    ordinals = [p.ordinal for p in many]
    assert len({0, 1, 2, *ordinals}) == 3 + 3 * 6


def test_anytime_is_the_mean_height_of_the_success_of_answers(player):
    """Places at 2, 8 and 14 tokens, right in 0, 1/2 and 1 of two answers; the budget is 20."""
    strategy = Anytime(answers=2, within=(8, 14))
    course, episodes, answers = asked(strategy, player, [plan(tokens=20, turn_tokens=30)])
    assert [len(p.prefix) for p in answers[::2]] == [2, 8, 14]
    rewards = (0, 0, 0, 1, 1, 1)
    (played,) = ended(course, [episode(p, reward=r) for p, r in zip(answers, rewards, strict=True)])
    assert played.trajectory is episodes[0]
    rise, second = 6 * 0.25, 6 * 0.75
    assert played.measures == pytest.approx(
        {"anytime": (rise + second + 6) / 20, "anytime@8": rise / 8, "anytime@14": (rise + second) / 14}
    )


def test_without_a_limit_on_all_tokens_the_budget_is_that_of_a_turn(player):
    course, _, answers = asked(Anytime(), player, [plan(turn_tokens=10)], "")
    (played,) = ended(course, [episode(p, reward=1.0) for p in answers])
    assert played.measures == {"anytime": pytest.approx((1 + 8) / 10)}  # up to 1 at the second token


def test_a_failed_answer_leaves_its_episode_unmeasured_and_the_next_one_as_it_is(player):
    course, _, answers = asked(Anytime(), player, [plan(0), plan(1)], "")
    first, second = ended(course, [episode(answers[0], stop=StopReason.INFRA_FAILURE), episode(answers[1])])
    assert first.measures == {"anytime": None} and second.measures == {"anytime": 0.0}


def test_nothing_is_asked_of_a_failed_episode(player):
    course, episodes, answers = asked(Anytime(), player, [plan()], stop=StopReason.INFRA_FAILURE)
    assert answers == [] and ended(course, []) == [Played(episodes[0], {"anytime": None})]


def test_it_is_refused_without_a_language_model_and_for_episodes_of_several_turns(player):
    with pytest.raises(ConfigError, match="ScriptedPlayer is no language model"):
        next(Anytime().stages([plan()], ScriptedPlayer(lambda e: "")))
    with pytest.raises(ConfigError, match="episodes may take 24; take tasks of a single turn"):
        next(Anytime().stages([Plan(TASK, 0, 0, Budget(turns=24))], player))


def test_it_is_built_from_data_and_named_by_its_answers():
    strategy = build(Strategy, {"type": "anytime", "answers": 4, "within": [40]})
    assert strategy == Anytime(answers=4, within=(40,)) and strategy.name == "anytime_4"
    assert build(Strategy, strategy.as_data()) == strategy


def test_a_measure_of_a_strategy_is_the_mean_of_the_samples_that_have_it():
    """Three tasks, two samples: both measured, one measured, one failed and one not measured."""
    values = [(1.0, 0.5, None), (0.0, None, 0.25)]
    failed = StopReason.INFRA_FAILURE
    played = [
        Played(episode(plan(k), reward=1.0, stop=failed if (n, k) == (1, 2) else StopReason.ANSWERED), {"anytime": v})
        for n, row in enumerate(values)
        for k, v in enumerate(row)
    ]
    measures = Result({}, (0, 1), played, 3).measures
    assert measures["anytime"] == [0.5, 0.5, None]
    assert measures["success"] == [1.0, 1.0, 1.0]


SMALL = ("evaluation.tasks=6", "evaluation.baselines=false")


def test_an_evaluation_under_anytime_is_that_of_direct_with_a_measure_more():
    policy, tasks = load_policy("base-puzzles"), Puzzles().held_out(6)
    one, two = (resolve(Recipe, mrt.RECIPE, (*SMALL, f"evaluation.samples={n}")) for n in (1, 2))
    direct, anytime = (evaluate_policy(policy, two, tasks, s) for s in (Direct(), Anytime(within=(20,))))
    assert anytime.summary == direct.summary and anytime.outcomes == direct.outcomes
    assert [[u.sampled_ids for u in t.turns] for t in anytime.trajectories] == [
        [u.sampled_ids for u in t.turns] for t in direct.trajectories
    ]
    more = {name: of for name, of in anytime.measures.items() if name not in direct.measures}
    assert set(more) == {"anytime", "anytime@20"}
    assert all(len(of) == 6 and all(v is not None and 0 <= v <= 1 for v in of) for of in more.values())
    first = evaluate_policy(policy, one, tasks, Anytime(within=(20,)))
    assert [p.measures for p in first.played] == [p.measures for p in anytime.played[:6]]


def test_a_run_of_the_mrt_page_has_the_measures_that_its_claim_compares(tmp_path):
    small = (*SMALL, "iterations=2", "episodes=16", "evaluation.every=2")
    train(resolve(Recipe, mrt.RECIPE, (*mrt.CLAIM.scale, *small)), tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    evals = [row for row in rows if row["kind"] == "eval"]
    assert [row["strategy"] for row in evals] == ["anytime_1", "direct_40_tokens"] * 2
    assert set(mrt.CLAIM.measures) <= set(evals[-2]["measures"])
    assert all(len(of) == 6 for of in evals[-2]["measures"].values())
