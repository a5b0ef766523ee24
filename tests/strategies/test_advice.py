"""Advice: fitted on one half, tested on the other, and honest about what it came to."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from helpers import make_task

from longstride.cli.main import main
from longstride.core.errors import ConfigError
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.strategies import Direct, Strategy
from longstride.strategies.advice import Advice, Evaluate, advise, halves


def tasks(easy: int = 200, hard: int = 200) -> list[Task]:
    return [make_task(f"{d}{k}", difficulty=d) for d, n in (("easy", easy), ("hard", hard)) for k in range(n)]


def world(easy: dict[str, float], hard: dict[str, float]) -> tuple[Evaluate, list[tuple[str, set[str]]]]:
    """Tasks are done with the log-odds of one answer (easy 0, hard -3), and with the given more for each doubling by
    kinds whose strategies have this word in their names; an answer has 10 tokens. Also what was played."""
    seen: list[tuple[str, set[str]]] = []

    def evaluate(strategy: Strategy, of: Sequence[Task]) -> list[tuple[bool, int] | None]:
        seen.append((strategy.name, {t.id for t in of}))
        n = 1 if isinstance(strategy, Direct) else int(next(w for w in strategy.name.split("_") if w.isdigit()))
        n = n // 10 if strategy.name.startswith("think_on") else n  # it is named by its tokens

        def done(task: Task) -> bool:
            gain = next(
                (g for word, g in (easy if task.difficulty == "easy" else hard).items() if word in strategy.name), 0
            )
            odds = (0 if task.difficulty == "easy" else -3) + gain * np.log2(n)
            return stream(0, strategy.name, task.id).random() < 1 / (1 + np.exp(-odds))

        return [(done(t), 10 * n) for t in of]

    return evaluate, seen


def test_each_difficulty_gets_what_serves_it_and_the_other_half_confirms_it() -> None:
    evaluate, seen = world(easy={"majority": 1.0, "beam": -1.0}, hard={"majority": -1.0, "beam": 1.5})
    of = tasks()
    found = advise(of, 85, ";", 99, 0, evaluate)
    easy, hard = found.by_difficulty
    assert easy.strategy == "best_of_8_by_majority" and hard.strategy.startswith("beam_8") and easy.tokens == 80
    for advised in (easy, hard):
        assert advised.observed is not None and advised.tasks == 100
        assert advised.predicted == pytest.approx(advised.observed, abs=0.15)
    assert found.beats and found.success > found.fixed[found.best_fixed] + 0.1 and len(found.fixed) == 6
    first, second = ({t.id for t in half} for half in halves(of, 0))
    assert not first & second
    ends = lambda name: "_8" in name or name == "think_on_to_80"  # noqa: E731
    assert all(ids == (second if ends(name) else first) for name, ids in seen if name != "direct")
    mean, low, high = found.difference
    assert (
        mean == pytest.approx(found.success - found.fixed[found.best_fixed])
        and 0 < low < mean < high
        and found.p < 0.05
    )


@pytest.mark.parametrize(("turn", "longest"), [(96, 80), (95, 40), (35, 10)])
def test_longer_thoughts_are_tried_as_far_as_a_turn_has_room_for_an_answer_besides(turn: int, longest: int) -> None:
    evaluate, seen = world(easy={"think": 1.0}, hard={"think": 1.0})
    found = advise(tasks(), 85, ";", turn, 0, evaluate)
    lengths = {int(name.split("_")[-1]) for name, _ in seen if name.startswith("think_on_to_")}
    assert max(lengths, default=10) == longest
    assert {a.tokens for a in found.by_difficulty if a.strategy.startswith("think_on")} == ({longest} - {10})
    assert not any(name.startswith("think_on") for name in advise(tasks(), 85, "", turn, 0, evaluate).fixed)


def test_longer_thoughts_are_called_by_what_they_may_take_also_where_they_end_earlier() -> None:
    evaluate, seen = world(easy={"think": 1.0}, hard={"think": 1.0})
    short = lambda s, of: [came and (came[0], min(came[1], 11)) for came in evaluate(s, of)]  # noqa: E731
    advise(tasks(), 85, ";", 64, 0, short)
    assert {name for name, _ in seen if name.startswith("think_on")} <= {"think_on_to_20", "think_on_to_40"}


def test_answers_are_revised_where_episodes_have_one_turn() -> None:
    evaluate, _ = world(easy={"revise": 2.0}, hard={"revise": 2.0})
    found = advise(tasks(), 45, ";", 99, 0, evaluate, single=True)
    assert {a.strategy for a in found.by_difficulty} == {"revise_4"}
    assert not any(name.startswith("revise") for name in advise(tasks(), 45, ";", 99, 0, evaluate).fixed)


def test_where_nothing_is_better_than_a_fixed_strategy_it_says_so() -> None:
    evaluate, _ = world(easy={"majority": 1.0}, hard={"majority": 1.0})
    found = advise(tasks(), 45, ";", 99, 0, evaluate)
    assert (
        not found.beats
        and found.p == 1
        and found.best_fixed == "best_of_4_by_majority"
        and found.success == found.fixed[found.best_fixed]
    )


def test_two_tasks_that_both_change_are_no_proof() -> None:
    alike = lambda p: Advice((), 1.0, {"direct": 0.0}, (1.0, 1.0, 1.0), p)  # noqa: E731
    assert not alike(0.5).beats and alike(0.03).beats


def test_tasks_that_are_alike_count_each() -> None:
    def evaluate(strategy: Strategy, of: Sequence[Task]) -> list[tuple[bool, int] | None]:
        return [(k % 4 < 3, 10) for k, _ in enumerate(of)]

    found = advise([make_task("same")] * 32, 15, ";", 99, 0, evaluate)
    assert found.success == found.fixed["direct"] == 0.75 and found.by_difficulty[0].tasks == 16


def test_a_budget_for_one_answer_is_one_answer_and_a_smaller_one_is_refused_with_the_least_that_works() -> None:
    evaluate, seen = world({}, {})
    found = advise(tasks(8, 8), 15, ";", 99, 0, evaluate)
    assert {a.strategy for a in found.by_difficulty} == {"direct"} == {name for name, _ in seen} and list(
        found.fixed
    ) == ["direct"]
    with pytest.raises(ConfigError, match="too small for one answer; the least that works is 10"):
        advise(tasks(8, 8), 9, ";", 99, 0, evaluate)


def test_too_few_tasks_and_failures_everywhere_are_refused() -> None:
    with pytest.raises(ConfigError, match="hard has 3"):
        advise(tasks(8, 3), 15, ";", 99, 0, world({}, {})[0])
    with pytest.raises(ConfigError, match="every episode failed"):
        advise(tasks(8, 8), 15, ";", 99, 0, lambda _, of: [None] * len(of))
    one = lambda s, of: [(True, 10) if isinstance(s, Direct) else None for _ in of]  # noqa: E731
    with pytest.raises(ConfigError, match="every episode of best_of_2_by_majority failed"):
        advise(tasks(8, 8), 25, ";", 99, 0, one)
    easy = lambda _, of: [(True, 10) if t.difficulty == "easy" else None for t in of]  # noqa: E731
    with pytest.raises(ConfigError, match="every episode of a task that is hard failed"):
        advise(tasks(8, 8), 15, ";", 99, 0, easy)


def test_the_command_advises_on_a_model_and_refuses_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["advise", "base-puzzles", "--tasks", "12", "--budget", "60", "engine.processes=1"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [a["difficulty"] for a in found["by_difficulty"]] == ["easy", "medium", "hard"]
    assert (
        all(a["tokens"] <= 60 and a["tasks"] == 2 for a in found["by_difficulty"])
        and found["best_fixed"] in found["fixed"]
    )
    assert main(["advise", "base-puzzles", "--tasks", "12", "--budget", "3", "engine.processes=1"]) == 2
    assert "the least that works" in capsys.readouterr().err
