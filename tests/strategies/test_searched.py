"""Search with a language model: what is played again and counted, and that a guide which knows leads to answers."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Any

import pytest
from completions_server import Server
from helpers import make_task, make_trajectory, make_turn, played, word_chat

from longstride.bench.search import CountedEngine
from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Engine, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import HTTPEngine
from longstride.engines.local import LocalEngine
from longstride.envs.puzzles.modular import Chain, ModularChain
from longstride.envs.text import STEP_END
from longstride.models.load import Policy, load_policy
from longstride.papers.grpo import recipe as grpo
from longstride.rewards.scorers import Pairwise, Score
from longstride.rollout import FullHistory, LanguagePlayer, Plan, ScriptedPlayer
from longstride.rollout.players import Player
from longstride.run.evaluation import Result, evaluate_player, language_player
from longstride.strategies import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.best_of import BestOf
from longstride.strategies.search import Beam, BestFirst, Independent, Particles, Search, TreeSearch
from longstride.strategies.searched import Asked, Checked, Confidence, Guide, Oracle, PathLikelihood, Searched

CHAT = word_chat("Thought: 3 + 4 ≡ 0 ; Action: answer 1 2 click back")
PLAYER = LanguagePlayer(None, CHAT, FullHistory(), Sampling())  # pyright: ignore[reportArgumentType]
CHAINS = grpo.RECIPE.replace(tasks=ModularChain())
MARK, FAILED = StopReason.MARK, StopReason.INFRA_FAILURE


class Told(Guide):
    """Scores by the last word that was said; says nothing of `back`."""

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [
            Score(None if (last := t.turns[-1].text.split()[-1]) == "back" else float(last == "2"), 5, 7)
            for t in solutions
        ]


def plan(turns: int = 1) -> Plan:
    return Plan(make_task(), 3, 10, Budget(turns=turns), group=3)


def said(p: Plan, text: str, stop: StopReason, answer: str | None = None) -> Trajectory:
    """A stage in which the policy added `text` to what it began with, after the turns of the history."""
    past = [make_turn([], [0, *turn.ids], given=len(turn.ids), text=turn.text) for turn in p.history]
    ids, begun = CHAT.encode(text), CHAT.decode(p.prefix)
    now = make_turn(ids, [0, *p.prefix], given=len(p.prefix), text=f"{begun} {text}".strip())
    fields = {"task": p.task, "ordinal": p.ordinal, "seed": p.seed, "budget": p.budget, "history": len(p.history)}
    return make_trajectory([*past, now], stop=stop, answer=answer, **fields)


def ended(stages: EvalPlan, came: Sequence[Trajectory]) -> EvalEpisode:
    with pytest.raises(StopIteration) as end:
        stages.send(list(came))
    (found,) = end.value.value
    return found


def test_a_step_of_a_thought_goes_on_from_what_was_said_and_all_tokens_are_counted() -> None:
    stages = Searched(search=Beam(n=2, width=2), guide=Told()).run([plan()], PLAYER)
    first = next(stages)
    assert len({p.ordinal for p in first}) == 2 and {p.marks for p in first} == {(tuple(CHAT.encode(";")),)}
    again = stages.send([said(first[0], "3 ;", MARK), said(first[1], "3 + 2", MARK)])
    assert [CHAT.decode(p.prefix) for p in again] == ["3 + 2"] * 2 and len({p.ordinal for p in [*first, *again]}) == 4
    over = StopReason.ANSWERED
    found = ended(stages, [said(again[0], "answer 1", over, "1"), said(again[1], "answer 2", over, "2")])
    assert found.trajectory.answer == "2" and found.trajectory.ordinal == 3
    # 2 + 3 + 2 + 2 tokens of steps, and 5 of the guide for each of 4; the guide has read 7 each
    assert found.spent_tokens == 9 + 20 and found.measures == {"steps": 4, "scored_tokens": 48}


def test_a_step_may_be_a_turn_of_an_episode_up_to_the_horizon() -> None:
    stages = Searched(search=Independent(n=1), guide=Told(), mark="").run([plan(turns=2)], PLAYER)
    (first,) = next(stages)
    assert first.budget.turns == 1 and first.marks == ()
    (second,) = stages.send([said(first, "click 1", StopReason.TURNS)])
    assert second.budget.turns == 2 and [turn.text for turn in second.history] == ["click 1"] and not second.prefix
    found = ended(stages, [said(second, "click 2", StopReason.TURNS)])
    assert found.trajectory.budget.turns == 2 and found.trajectory.length == 2
    short = replace(plan(turns=9), task=make_task(horizon=1))
    stages = Searched(search=Independent(n=1), guide=Told(), mark="").run([short], PLAYER)
    assert ended(stages, [said(next(stages)[0], "click 1", StopReason.TURNS)]).trajectory.budget.turns == 1


def test_what_failed_or_could_not_be_scored_counts_only_where_nothing_else_was_finished() -> None:
    for texts, chosen in ((("answer back", "answer 1"), "1"), (("answer back", "answer back"), "back")):
        stages = Searched(search=Independent(n=2), guide=Told()).run([plan()], PLAYER)
        came = [said(p, t, StopReason.ANSWERED, t.split()[1]) for p, t in zip(next(stages), texts, strict=True)]
        found = ended(stages, came)
        assert found.trajectory.answer == chosen and found.trajectory.stop.failed == (chosen == "back")
    stages = Searched(search=Independent(n=2), guide=Told()).run([plan()], PLAYER)
    broken, whole = next(stages)
    found = ended(stages, [played(broken, stop=FAILED), said(whole, "answer 1", StopReason.ANSWERED, "1")])
    assert found.trajectory.answer == "1"


def test_an_oracle_knows_the_steps_of_chains_and_refuses_other_tasks() -> None:
    task = ModularChain(lengths=(2, 2, 2)).held_out(1)[0]
    right = f"Thought: {Chain.of(task).steps()[0]} ;"
    solution = make_trajectory([make_turn([1], text=right)], stop=MARK, task=task)
    wrong = make_trajectory([make_turn([1], text="Thought: 1 + 1 ≡ 5 ;")], stop=MARK, task=task)
    assert [s.value for s in Oracle()([solution, wrong], PLAYER)] == [1.0, 0.0]
    noisy = [Oracle(noise=2.0)([replace(solution, ordinal=k)], PLAYER)[0].value for k in range(200)]
    assert sum(v > 0.5 for v in noisy if v is not None) / 200 == pytest.approx(0.69, abs=0.1)  # P(z > -1 / 2)
    done = make_trajectory([make_turn([1])], stop=StopReason.ANSWERED)
    done.success = True
    assert Oracle()([done], PLAYER)[0].value == 1.0
    with pytest.raises(ConfigError, match="steps have labels"):
        Oracle()([make_trajectory([make_turn([1])], stop=MARK)], PLAYER)


def test_confidence_is_the_mean_probability_of_a_token() -> None:
    solution = make_trajectory([make_turn([1, 2], behaviour_logprobs=[-1.0, -3.0])])
    assert Confidence()([solution], PLAYER)[0].value == pytest.approx(0.1353, abs=1e-4)


def test_the_steps_of_an_answer_that_was_not_searched_for_are_its_turns() -> None:
    turns = [make_turn([1, 2], behaviour_logprobs=[-1.0, -3.0]), make_turn([1], behaviour_logprobs=[-2.0])]
    assert PathLikelihood(alpha=1.0)([make_trajectory(turns)], PLAYER)[0].value == pytest.approx(exp(-6 / 2))


def test_a_verifier_judges_what_has_ended_and_another_guide_is_asked_of_the_rest_alone() -> None:
    asked = list[int]()

    class Counts(Confidence):
        def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
            asked.extend(t.ordinal for t in solutions)
            return [Score(0.25) for _ in solutions]

    stops = [StopReason.ANSWERED, StopReason.MARK, StopReason.TOKENS, StopReason.TURNS]
    solutions = [make_trajectory(1, ordinal=n, stop=stop) for n, stop in enumerate(stops)]
    solutions[0].success = True
    assert [s.value for s in Checked(guide=Counts())(solutions, PLAYER)] == [1.0, 0.25, 0.0, 0.25] and asked == [1, 3]


def test_a_guide_scores_each_solution_for_itself_so_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="pairwise compares answers"):
        Asked(scorer=Pairwise())


@pytest.mark.parametrize("guide", [Confidence(), PathLikelihood()], ids=lambda guide: guide.name)
def test_a_solution_that_had_no_room_for_a_token_is_not_the_likeliest(guide: Guide) -> None:
    stages = Searched(search=Independent(n=2), guide=guide).run([plan()], PLAYER)
    silent, spoken = next(stages)
    nothing = make_trajectory([], task=silent.task, ordinal=silent.ordinal, stop=StopReason.CONTEXT)
    found = ended(stages, [nothing, said(spoken, "answer 1", StopReason.ANSWERED, "1")])
    assert found.trajectory.answer == "1"


@pytest.mark.parametrize(
    "search",
    [BestFirst(expansions=4, width=2), TreeSearch(expansions=1, width=2), Beam(n=2, width=2)],
    ids=lambda s: s.name,
)
def test_a_beginning_that_failed_neither_ends_a_search_nor_counts_beside_what_goes_on(search: Search) -> None:
    stages = Searched(search=search, guide=Told()).run([plan()], PLAYER)
    broken, whole = next(stages)
    asked = stages.send([played(broken, stop=FAILED), said(whole, "3 ;", MARK)])
    assert {CHAT.decode(p.prefix) for p in asked} == {"3 ;"}
    found = ended(stages, [said(p, "answer 1", StopReason.ANSWERED, "1") for p in asked])
    assert found.trajectory.answer == "1" and not found.trajectory.stop.failed
    stages = Searched(search=search, guide=Told()).run([plan()], PLAYER)
    assert ended(stages, [played(p, stop=FAILED) for p in next(stages)]).trajectory.stop.failed


def test_names_differ_and_come_from_data_and_who_is_no_language_model_cannot_search() -> None:
    data = {"type": "searched", "search": {"type": "beam", "n": 4, "width": 2}, "guide": {"type": "oracle", "noise": 1}}
    strategy = build(Strategy, data)
    assert strategy.name == "beam_4_2_width_by_score_guided_by_oracle_1"
    names = {strategy.replace(**change).name for change in ({}, {"mark": ""}, {"guide": Confidence()}, {"mark": "."})}
    assert len(names) == 4
    with pytest.raises(ConfigError, match="ScriptedPlayer gives text alone"):
        next(strategy.run([plan()], ScriptedPlayer(lambda _: "back")))


def evaluated(policy: Policy, engine: Engine, strategy: Strategy, tasks: Sequence[Task]) -> Result:
    player = language_player(policy, CHAINS, engine, testing=True)
    return evaluate_player(player, CHAINS, tasks, strategy)


def local(policy: Policy) -> LocalEngine:
    return LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)


def test_with_a_model_a_tree_that_is_led_by_the_truth_solves_more_and_all_that_is_sampled_is_counted() -> None:
    policy, tasks = load_policy("base-puzzles"), ModularChain().held_out(6)
    solved = []
    for strategy in (
        Searched(search=Independent(n=1)),
        Searched(search=TreeSearch(expansions=16, width=2), guide=Oracle()),
    ):
        engine = local(policy)
        result = evaluated(policy, engine, strategy, tasks)
        solved.append(result.summary["success"])
        assert engine.tokens_out == sum(v or 0 for v in result.measures["spent_tokens"])
    assert solved[1] > solved[0] + 0.2


@pytest.mark.parametrize("mark", [STEP_END, ""])
@pytest.mark.parametrize(
    "search",
    [
        Beam(n=8, width=4, ahead=1),
        Particles(n=8),
        BestFirst(expansions=12, width=3, finish=9),
        TreeSearch(expansions=12, width=3),
    ],
    ids=lambda search: search.type_name(),
)
def test_a_search_reads_no_token_twice(search: Search, mark: str) -> None:
    policy, task = load_policy("base-puzzles"), ModularChain(lengths=(9, 9, 9)).held_out(1)[0]
    engine = CountedEngine(policy.model, policy.chat.end_ids, policy.max_context)
    result = evaluated(policy, engine, Searched(search=search, guide=Oracle(noise=1.0), mark=mark), [task])
    assert engine.read_twice == 0 and engine.tokens_in > 0
    steps = result.measures["steps"][0]
    assert steps is not None and (steps > 8 or not mark)


def test_what_a_search_kept_is_given_back_when_it_is_over() -> None:
    policy = load_policy("base-puzzles")
    engine = local(policy)
    evaluated(policy, engine, Searched(search=Beam(n=4, width=2)), ModularChain().held_out(2))
    assert not engine._cache._sessions


@pytest.mark.parametrize(
    "strategy", [Searched(search=Beam(n=4, width=2)), BestOf(attempts=4)], ids=lambda strategy: strategy.type_name()
)
def test_a_server_leads_to_the_same_choices_and_is_sent_ids_that_begin_like_those_before(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    policy, tasks = load_policy("base-puzzles"), ModularChain().held_out(2)
    server, sent = Server(policy), list[tuple[list[int], int]]()
    answer, whole = server.completion, list[list[int]]()

    def completion(body: dict[str, Any]) -> dict[str, Any]:
        done = answer(body)
        sent.append((body["prompt"], body["seed"]))
        whole.append(body["prompt"] + done["choices"][0]["token_ids"])
        return done

    server.completion = completion
    engine = HTTPEngine(HTTP(url=f"{server.root}/v1", model="m"), policy)
    try:
        there = evaluated(policy, engine, strategy, tasks)
    finally:
        engine.close()
        server.stop()
    here = evaluated(policy, local(policy), strategy, tasks)
    for a, b in zip(here.trajectories, there.trajectories, strict=True):
        assert a.answer == b.answer and [turn.ids for turn in a.turns] == [turn.ids for turn in b.turns]
    # samples of one prompt are requests of their own, each with its seed: a server caches what they begin with
    assert all("n" not in body for body in server.bodies) and len({seed for _, seed in sent}) == len(sent)
    for k, task in enumerate(here.trajectories):
        first = task.turns[0].prompt_ids[: len(task.turns[0].prompt_ids) - task.turns[0].given]
        of_task = [(n, prompt) for n, (prompt, _) in enumerate(sent) if prompt[: len(first)] == first]
        assert len(of_task) >= 4 and sum(prompt == first for _, prompt in of_task) == 4, k
        assert all(prompt == first or prompt in whole[:n] for n, prompt in of_task)
