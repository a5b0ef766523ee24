"""Revisions and delegation: what is played, what counts, and that the tokens of both models are counted."""

from pathlib import Path
from typing import Any, cast

import pytest
from helpers import make_task, make_trajectory, make_turn, played, word_chat
from one_page import make_recipe, save_model

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.engines.base import Engine, Sampling
from longstride.engines.local import LocalEngine
from longstride.envs.base import HELD_ANSWER, Observation, Step
from longstride.models.load import Policy, load_policy
from longstride.papers.grpo import recipe as grpo
from longstride.rewards.scorers import Score
from longstride.rollout import FullHistory, LanguagePlayer, Plan, ScriptedPlayer
from longstride.run import session
from longstride.run.evaluation import Result, evaluate_policy
from longstride.run.loop import train
from longstride.strategies.delegate import HANDED, Delegate, Pair
from longstride.strategies.revise import Revise
from longstride.strategies.searched import Guide

PUZZLES = grpo.RECIPE.replace(evaluation={"tasks": 6})


def said_in(result: Result) -> list[Any]:
    """Each turn's ids, and how likely they were."""
    return [[(turn.ids, turn.behaviour_logprobs) for turn in t.turns] for t in result.trajectories]


class Ends:
    """A world in which any turn is the last."""

    async def reset(self, task: Any, seed: int) -> Observation:
        return Observation("page")

    async def step(self, text: str) -> Step:
        return Step(Observation("over"), terminated=True, answer=text)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


# revisions


@pytest.mark.parametrize(("counts", "answer"), [("last", "Action: two"), ("votes", "Action: One")])
async def test_answers_are_held_back_and_one_of_them_counts(counts: Any, answer: str) -> None:
    env = Revise(answers=4, counts=counts).wrap(Ends())
    assert (await env.reset(make_task(), 0)).text == "page"
    for text in ("Action: One", "Action: two", "Thought: no Action: one"):
        step = await env.step(text)
        assert step.observation.text == "page\ncheck again" and not step.terminated and step.answer is None
        assert step.action == step.info[HELD_ANSWER] == text.rpartition("Action: ")[2]
    step = await env.step("Action: two")
    assert step.terminated and step.answer == answer


async def test_what_is_held_is_the_answer_and_not_how_it_is_given() -> None:
    env = Revise(answers=2).wrap(Ends())
    await env.reset(make_task(), 0)
    assert (await env.step("Action: answer 57")).info[HELD_ANSWER] == "57"


def test_each_answer_may_take_what_an_only_one_may() -> None:
    assert Revise(answers=3).budget(Budget(turns=1, tokens=10)) == Budget(turns=3, tokens=30)
    assert Revise(answers=3).budget(Budget(turns=1)).tokens is None
    with pytest.raises(ConfigError, match="revise_2 asks for an only turn again, and episodes may take 4"):
        Revise().budget(Budget(turns=4))


def test_a_task_of_one_turn_has_as_many_as_there_are_answers() -> None:
    one = Plan(make_task(horizon=1), 0, 0, Revise(answers=3).budget(Budget(turns=1)))
    assert one.turns == 1 and next(Revise(answers=3).run([one], PAIR))[0].turns == 3


def test_names_differ_wherever_results_may() -> None:
    found = [Revise(), Revise(answers=3), Revise(counts="votes"), Revise(attempts=2), Revise(paragraph="sure?")]
    assert len({s.name for s in found}) == len(found)


def test_a_model_answers_one_after_the_other_and_all_tokens_are_its_own() -> None:
    policy = load_policy("base-puzzles")
    once, direct = (evaluate_policy(policy, PUZZLES, strategy=s) for s in (Revise(answers=1), None))
    assert said_in(once) == said_in(direct)
    twice = evaluate_policy(policy, PUZZLES, strategy=Revise())
    assert all(t.length == 2 and t.turns[1].observation == "check again" for t in twice.trajectories)
    assert [t.turns[0].sampled_ids for t in twice.trajectories] == [t.turns[0].sampled_ids for t in once.trajectories]
    assert twice.measures["spent_tokens"] == [t.sampled_tokens for t in twice.trajectories]


# delegation


class Table(Guide):
    """Scores by the number of sampled ids: a hundredth each."""

    def __call__(self, solutions: Any, player: Any) -> list[Score]:
        return [Score(None if t.sampled_tokens == 99 else t.sampled_tokens / 100, tokens=2) for t in solutions]


CHAT = word_chat("Thought: see ; Action:")
PLAYERS = [LanguagePlayer(cast(Any, None), CHAT, FullHistory(), Sampling()) for _ in range(2)]
PAIR = cast(Any, Pair(PLAYERS[0], PLAYERS[1]))


def plan(ordinal: int = 0, turns: int = 1) -> Plan:
    return Plan(make_task(), ordinal, 10 + ordinal, Budget(turns=turns), group=ordinal)


def ended(stages: Any, came: Any) -> list[Any]:
    with pytest.raises(StopIteration) as end:
        stages.send(list(came))
    return end.value.value


def test_what_scores_too_low_is_played_by_the_other_model() -> None:
    """Three tasks: 60 tokens are sure enough, 40 are handed over, a try that cannot be judged fails."""
    stages = Delegate(model="m", guide=Table(), price=10).run([plan(k) for k in range(3)], PAIR)
    tries = next(stages)
    assert tries == [plan(k) for k in range(3)]
    came = [played(p, range(n)) for p, n in zip(tries, (60, 40, 99), strict=True)]
    (handed,) = stages.send(came)
    assert handed.role == HANDED and handed.group == 1 and handed.ordinal > 2 and not handed.history
    sure, done, failed = ended(stages, [played(handed, range(7), 1.0)])
    assert sure.trajectory.sampled_tokens == 60 and sure.spent_tokens == 62 and sure.measures["cost"] == 62
    assert done.trajectory.success and (done.trajectory.ordinal, done.trajectory.role) == (1, "")
    assert done.spent_tokens == 40 + 2 + 7
    assert done.measures == {"steps": 1, "handed_over": 1, "handed_over_tokens": 7, "cost": 42 + 70, "scored_tokens": 2}
    assert failed.trajectory.stop.failed and failed.measures["handed_over"] == 0


def test_a_turn_is_dropped_and_the_policy_goes_on_after_the_other_model() -> None:
    stages = Delegate(model="m", guide=Table(), each="turn").run([plan(turns=2)], PAIR)
    (first,) = next(stages)
    assert first.budget.turns == 1 and first.ordinal == 0
    turn = make_turn(range(10), text="dropped")
    (handed,) = stages.send([make_trajectory([turn], stop=StopReason.TURNS, task=first.task, seed=10)])
    assert handed.role == HANDED and not handed.history and handed.ordinal not in (0, 1)
    turn = make_turn(range(20), text="kept")
    (second,) = stages.send([make_trajectory([turn], stop=StopReason.TURNS, task=first.task, seed=10)])
    assert [past.text for past in second.history] == ["kept"] and second.budget.turns == 2 and second.role == ""
    past = make_turn([], [0, *range(20)], given=20)
    last = make_trajectory([past, make_turn(range(60))], 1.0, stop=StopReason.ANSWERED, task=first.task, seed=10)
    (found,) = ended(stages, [last])
    assert found.trajectory.success and found.trajectory.budget.turns == 2
    assert found.spent_tokens == 10 + 2 + 20 + 60 + 2 and found.measures["handed_over_tokens"] == 20


def test_a_step_is_handed_over_at_its_mark() -> None:
    stages = Delegate(model="m", guide=Table(), each="step").run([plan()], PAIR)
    (first,) = next(stages)
    assert first.marks == (tuple(CHAT.encode(";")),)
    (second,) = stages.send([played(first, range(70), stop=StopReason.MARK)])
    assert second.prefix == tuple(range(70)) and second.role == ""
    (handed,) = stages.send([played(second, range(3), stop=StopReason.MARK)])
    assert handed.prefix == second.prefix and handed.role == HANDED
    (found,) = ended(stages, [played(handed, range(5))])
    assert found.measures["steps"] == 2 and found.spent_tokens == 70 + 3 + 5 + 4


def test_two_models_play_and_nothing_is_handed_over_where_nothing_is_in_doubt() -> None:
    policy = load_policy("base-puzzles")
    direct = evaluate_policy(policy, PUZZLES)
    never = evaluate_policy(policy, PUZZLES, strategy=Delegate(model="base-thoughts", below=0.0))
    assert said_in(never) == said_in(direct)
    always = evaluate_policy(policy, PUZZLES, strategy=Delegate(model="base-thoughts", below=1.0))
    other = [t.sampled_tokens for t in always.trajectories]
    assert always.measures["handed_over"] == [1.0] * 6 and always.measures["handed_over_tokens"] == other
    assert [e.further_tokens for e in always.episodes] == [t.sampled_tokens for t in direct.trajectories]
    steps = evaluate_policy(policy, PUZZLES, strategy=Delegate(model="base-puzzles", each="step", below=0.9))
    assert all(not t.stop.failed for t in steps.trajectories) and sum(map(bool, steps.measures["handed_over"]))


def test_the_other_model_is_loaded_once_for_all_strategies_of_an_evaluation_and_its_engines_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, loaded, closed, close = save_model(tmp_path / "model"), list[str](), list[Engine](), LocalEngine.close

    def load_it(name: str) -> Policy:
        loaded.append(name)
        return load_policy(name)

    def close_it(engine: LocalEngine) -> None:
        closed.append(engine)
        close(engine)

    monkeypatch.setattr(session, "load", load_it)
    monkeypatch.setattr(LocalEngine, "close", close_it)
    strategies = tuple(Delegate(model=str(model), below=below) for below in (0.3, 0.7))
    recipe = make_recipe(model, iterations=1, evaluation={"tasks": 2, "strategies": strategies, "baselines": False})
    train(recipe, tmp_path / "run")
    assert loaded == [str(model)] * 2, "before and after training, which has its room in between"
    assert len({*map(id, closed)}) == 2 * 2 + 1, "the engine of the run too"


def test_models_of_different_tokenizers_share_whole_episodes_alone() -> None:
    policy = load_policy("base")
    with pytest.raises(ConfigError, match="'base-puzzles' has another vocabulary than the policy"):
        evaluate_policy(policy, PUZZLES, strategy=Delegate(model="base-puzzles", each="turn"))
    with pytest.raises(ConfigError, match="ScriptedPlayer gives text alone"):
        Delegate(model="base").players(ScriptedPlayer(lambda _: ""), load_policy)
