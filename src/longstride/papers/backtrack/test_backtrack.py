"""To backtrack or not: what traces of both styles hold, and attempts within as many tokens."""

import json
import random
from itertools import islice
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of, run_stages

from longstride.claims.claim import Claim
from longstride.core.budget import Budget, StopReason
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Countdown, LayeredPath, Sudoku
from longstride.envs.puzzles.base import SOLVED
from longstride.envs.puzzles.countdown import Numbers
from longstride.envs.puzzles.sudoku import Grid
from longstride.envs.text import said, thought_of
from longstride.papers.backtrack.method import CountdownTree, SearchTraces, SudokuTree, WithinTokens
from longstride.papers.backtrack.recipe import CLAIM
from longstride.papers.backtrack.sudoku import CLAIM as SUDOKU
from longstride.rollout import Plan, ScriptedPlayer

TASKS = (Countdown(numbers=(2, 3, 3), largest=10, most=30), Sudoku(blanks=(4, 8, 10)))


@pytest.mark.parametrize("tasks", TASKS, ids=["countdown", "sudoku"])
def test_both_styles_are_of_the_same_tasks_and_end_with_the_same_right_answers(tasks: Countdown | Sudoku) -> None:
    searched, direct = (SearchTraces(tasks=tasks, style=style) for style in ("search", "direct"))
    pairs = [*islice(zip(searched.demonstrations(3), direct.demonstrations(3), strict=False), 30)]
    longer = 0
    for a, b in pairs:
        assert a.task == b.task and said(a.texts[0]) == said(b.texts[0])
        assert tasks.kind.of(a.task).check(said(a.texts[0]).removeprefix("answer ")) == SOLVED  # pyright: ignore[reportAttributeAccessIssue]
        tried, way = (thought_of(t.texts[0]).split(" ; ") for t in (a, b))
        steps = iter(tried)
        assert all(step in steps for step in way), "the way lies in the search, in its order"
        longer += len(tried) > len(way)
    assert longer > 5


def test_a_search_of_countdown_tries_each_step_in_a_fixed_order_and_says_where_it_goes_back_to() -> None:
    tree = CountdownTree(Numbers(numbers=(2, 3, 4), target=20, most=30))
    assert [step for step, _ in tree.moves(tree.root)] == [
        "3 + 2 = 5 , 4 ; 5 4 want 20", "3 * 2 = 6 , 4 ; 6 4 want 20", "3 - 2 = 1 , 4 ; 4 1 want 20",
        "4 + 2 = 6 , 3 ; 6 3 want 20", "4 * 2 = 8 , 3 ; 8 3 want 20", "4 - 2 = 2 , 3 ; 3 2 want 20",
        "4 + 3 = 7 , 2 ; 7 2 want 20", "4 * 3 = 12 , 2 ; 12 2 want 20", "4 - 3 = 1 , 2 ; 2 1 want 20",
    ]  # fmt: skip
    alike = CountdownTree(Numbers(numbers=(2, 2, 4), target=20, most=30))
    steps = [step.partition(" ,")[0] for step, _ in alike.moves(alike.root)]
    assert steps == ["2 + 2 = 4", "2 / 2 = 1", "4 + 2 = 6", "4 * 2 = 8", "4 - 2 = 2"], "the same numbers are had once"
    (_, five), *_ = tree.moves(tree.root)
    assert [step for step, _ in tree.moves(five)] == [
        "5 + 4 = 9 want 20 no",
        "5 * 4 = 20 want 20 yes",
        "5 - 4 = 1 want 20 no",
    ]
    assert (tree.back(tree.root), tree.back(five)) == ("again", "again 4 5")
    solved = tree.moves(five)[1][1]
    assert tree.solved(solved) and tree.answer(solved) == "( 3 + 2 ) * 4" and not tree.moves(solved)


def test_a_search_of_sudoku_says_where_no_digit_is_left() -> None:
    cells = (1, 0, 3, 0, 3, 4, 0, 2, 2, 1, 4, 3, 4, 3, 2, 1)
    tree = SudokuTree(Grid(cells=cells))
    assert [step for step, _ in tree.moves(tree.root)] == ["1 2 2"]
    stuck = SudokuTree(Grid(cells=cells))
    stuck.root = (0, 0, 3, 0, 3, 4, 0, 2, 2, 1, 4, 3, 4, 3, 2, 1)
    assert [step for step, _ in stuck.moves((1, 2, 3, 0, 3, 4, 0, 2, 2, 1, 4, 3, 4, 3, 2, 1))] == ["1 4 4"]
    assert stuck.moves((0, 2, 3, 4, 3, 1, 0, 2, 2, 1, 4, 3, 4, 3, 2, 1)) == []


def test_dead_ends_may_be_left_unsaid_and_steps_tried_in_an_order_that_is_drawn() -> None:
    def texts(**changes: object) -> list[str]:
        return [t.texts[0] for t in islice(SearchTraces(**changes).demonstrations(0), 12)]  # pyright: ignore[reportArgumentType]

    assert any(" no " in text for text in texts()) and texts() == texts()
    assert not any(" no " in text for text in texts(skips=1.0))
    assert sum(len(t) for t in texts(skips=1.0)) < sum(len(t) for t in texts())
    assert texts(order="drawn") != texts()
    assert all(len(text.split()) <= 60 for text in texts(most=60))


def test_a_puzzle_without_a_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no search for layered_path; expected countdown or sudoku"):
        SearchTraces(tasks=LayeredPath())
    with pytest.raises(ValueError, match="there is no search for sudoku"):
        SearchTraces(tasks=Sudoku(multi_turn=True))


def test_attempts_follow_one_another_until_the_tokens_of_a_task_are_sampled() -> None:
    lengths = {0: [3, 4, 9], 1: [10], 2: [4, 0]}

    def play(plan: Plan) -> Trajectory:
        most = plan.budget.tokens
        assert most is not None
        wanted = lengths[plan.group].pop(0)
        t = make_trajectory(
            [make_turn([1] * min(wanted, most), [0])], float(wanted == 4), ordinal=plan.ordinal, group=plan.group
        )
        if not wanted:
            t.turns = []
        t.stop = StopReason.TOKENS if wanted > most else StopReason.ANSWERED
        return t

    task = TASKS[0].sample(random.Random(0), 1)[0]
    plans = [Plan(task, k, k, Budget(tokens=99), group=k) for k in range(3)]
    stages, found = run_stages(WithinTokens(tokens=10).run(plans, ScriptedPlayer(lambda e: "")), play)
    assert [[(p.group, p.budget.tokens) for p in stage] for stage in stages] == [
        [(0, 10), (1, 10), (2, 10)],
        [(0, 7), (2, 6)],
        [(0, 3)],
    ]
    assert [p.ordinal for p in stages[0]] == [0, 1, 2], "the first attempt is that of `Direct`"
    assert len({p.ordinal for stage in stages for p in stage}) == 6
    assert [e.spent_tokens for e in found] == [10, 10, 4], "one that sampled nothing is the last"
    assert [e.trajectory.success for e in found] == [True, False, True]


def test_arms_differ_in_what_was_shown() -> None:
    shown = "cloning.demonstrations.demonstrators"
    assert {*CLAIM.changes("direct")} == {f"{shown}.style", "evaluation.strategies"}
    assert CLAIM.changes("brief") == {f"{shown}.skips": 0.5}
    assert {*CLAIM.changes("one_step_search")} == {"tasks.numbers", f"{shown}.tasks.numbers"}


@pytest.mark.parametrize("claim", [CLAIM, SUDOKU], ids=["countdown", "sudoku"])
def test_sides_are_read_where_they_have_spent_alike_and_tuned_by_the_way_that_they_are_compared_along(
    claim: Claim,
) -> None:
    assert claim.equal_cost and claim.cost == "spent_tokens"
    for arm, run in claim.arms.items():
        first = "within_256_tokens_by_verifier" if arm.endswith("direct") else "direct_256_tokens"
        assert run.strategies[0] == first and {*run.strategies} == {name for way in claim.ways.values() for name in way}
        evaluation = run.as_data()["evaluation"]
        assert (evaluation["tasks"], evaluation["start"]) == (300, False), "all on the same tasks, once"
    sides = [side for relation in claim.relations for side in relation[:2]]
    assert {side.partition("@")[2] for side in sides} == {*claim.ways}, "nothing is read along what training spent"


def test_an_own_model_with_own_tasks_and_traces_by_settings_alone(tmp_path: Path) -> None:
    rows = [{"prompt": "red lamp", "completion": text} for text in ("home red no", "home lamp no", "red no no")]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = train_elsewhere(
        "backtrack",
        tmp_path,
        f'cloning.demonstrations={{type="file_successes",path="{tmp_path / "traces.jsonl"}",unjudged=true}}',
        "cloning.episodes=3",
        "cloning.learner={lr=1e-2,warmup_steps=0,epochs=5}",
        'evaluation.strategies=[{type="direct"},{type="longstride.papers.backtrack.method:WithinTokens",tokens=7}]',
    )
    losses = [row["loss"] for row in rows_of(run, "cloning")]
    assert losses[-1] < losses[0]
    ends = {row["strategy"]: row["measures"] for row in rows_of(run, "eval") if row["iteration"] == 2}
    assert max(ends["within_7_tokens_by_verifier"]["spent_tokens"]) == 7 > max(ends["direct"]["spent_tokens"])
