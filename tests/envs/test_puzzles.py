"""Puzzles: solvers solve in exactly the optimal length, verifiers agree with brute force, nothing that is said breaks
an episode, and exact gradients are what differences and samples say."""

import builtins
import itertools
import random
import re
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.content import text_in
from longstride.core.errors import ConfigError, EnvFailure, TaskError
from longstride.core.task import DIFFICULTIES, Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Mix, TaskSource
from longstride.envs.puzzles import (
    Countdown,
    LayeredPath,
    Mastermind,
    ModularChain,
    PuzzleEnv,
    PuzzleSource,
    Sudoku,
    TextMaze,
    TwentyQuestions,
    Vaults,
    Wordle,
)
from longstride.envs.puzzles.base import Action, Puzzle, parse
from longstride.envs.puzzles.countdown import Numbers, reachable, value_of
from longstride.envs.puzzles.mastermind import Code, codes, feedback
from longstride.envs.puzzles.modular import Chain
from longstride.envs.puzzles.paths import Graph
from longstride.envs.puzzles.sudoku import Grid, grids
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer

SOURCES: list[PuzzleSource] = [
    Countdown(), Countdown(largest=10, most=30), ModularChain(), Sudoku(), Sudoku(multi_turn=True), LayeredPath(),
    LayeredPath(shortest=True), LayeredPath(multi_turn=True), Mastermind(), TwentyQuestions(), Vaults(depths=(0, 1, 2)),
    TextMaze(size=3), Wordle(guesses=9),
]  # fmt: skip
each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda s: f"{s.type_name()}-{s.as_data()}"[:60])


def play(source: PuzzleSource, tasks: list[Task], say, turns: int = 20) -> list[Trajectory]:
    plans = [Plan(task, i, i, Budget(turns=turns)) for i, task in enumerate(tasks)]
    return Pool(ScriptedPlayer(say), source.env, TaskReward()).run(plans)


def task_of(puzzle: Puzzle) -> Task:
    expected = {"type": "state", "expected": {"verdict": "solved"}}
    return Task(id="t", source="s", goal=puzzle.goal, start="start", evaluator=expected, meta=puzzle.model_dump())


def replay(puzzle: Puzzle, *texts: str) -> Trajectory:
    plan = Plan(task_of(puzzle), 0, 0, Budget(turns=len(texts)))
    player = ScriptedPlayer(lambda e: texts[e.turns])
    return Pool(player, lambda: PuzzleEnv(type(puzzle)), TaskReward()).run([plan])[0]


# all puzzles


@each_source
def test_the_solver_solves_200_tasks_in_exactly_the_optimal_number_of_steps(source: PuzzleSource) -> None:
    tasks = source.sample(random.Random(0), 150) + source.held_out(50)
    for t in play(source, tasks, lambda e: source.demonstrate(e.plan.task)[e.turns]):
        assert (t.reward, t.length, t.evidence["got"]) == (1.0, t.task.optimal, {"verdict": "solved"}), t.task.goal
        assert not any(turn.error for turn in t.turns)


@each_source
def test_training_and_evaluation_share_no_instance_and_an_instance_tells_its_split(source: PuzzleSource) -> None:
    train, test = source.sample(random.Random(1), 600), source.held_out(90)
    assert {t.split for t in train} == {"train"} and {t.split for t in test} == {"test"}
    assert not {t.template_id for t in train} & {t.template_id for t in test}
    assert all(source.kind.of(t).split == t.split for t in train + test)
    assert Counter(t.difficulty for t in test) == dict.fromkeys(DIFFICULTIES, 30)
    assert source.model_copy(update={"mix": Mix(easy=9)}).held_out(30) == test[:30]


@each_source
def test_harder_tasks_have_longer_solutions(source: PuzzleSource) -> None:
    facts = {d: [t.facts for t in source.sample(random.Random(2), 150) if t.difficulty == d] for d in DIFFICULTIES}
    easy, medium, hard = (sum(facts[d]) / len(facts[d]) for d in DIFFICULTIES)
    assert easy < medium < hard


@each_source
def test_every_number_that_is_read_or_said_is_below_100(source: PuzzleSource) -> None:
    tasks = source.sample(random.Random(3), 60)
    texts = [task.goal for task in tasks] + [said for task in tasks for said in source.demonstrate(task)]
    assert all(int(n) < 100 for text in texts for n in re.findall(r"\d+", text))


@each_source
def test_a_source_is_rebuilt_from_its_data_and_a_task_from_its_json(source: PuzzleSource) -> None:
    assert build(TaskSource, source.as_data()) == source
    task = source.held_out(1)[0]
    again = Task.model_validate_json(task.model_dump_json())
    assert again == task and source.kind.of(again) == source.kind.of(task)


SAID = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="0123456789 +-*/();=", max_size=80).map("Action: answer {}".format),
    st.builds("Action: {} {}".format, st.sampled_from(["answer", "put", "clear", "go", "back", "guess"]), st.text()),
    st.lists(st.integers(-3, 10**5), max_size=5).map(lambda n: f"Action: put {' '.join(map(str, n))}"),
    st.sampled_from([f"Action: answer {x}" for x in ("(" * 10**5, "9" * 10**4, "1/0", "٤", "1 " * 10**4, "\x00", "²")]),
)


@each_source
@given(said=st.lists(SAID, min_size=1, max_size=6), seed=st.integers(0, 50))
@settings(max_examples=40)
def test_nothing_that_is_said_breaks_an_episode(source: PuzzleSource, said: list[str], seed: int) -> None:
    (t,) = play(source, source.sample(random.Random(seed), 1), lambda e: said[e.turns], turns=len(said))
    assert not t.stop.failed
    for turn, after in itertools.pairwise(t.turns):
        assert turn.action is not None or turn.error
        assert (turn.error is None) == ("error:" not in after.observation)


@pytest.mark.parametrize("text", ["I do not know", "Action: guess 1", "Action: answer", ""])
def test_whatever_is_said_first_ends_a_single_turn_puzzle(text: str) -> None:
    t = replay(Numbers(numbers=(1, 2), target=3), text, "Action: answer 1 + 2")
    assert (t.stop, t.length, t.reward) == (StopReason.PARSE_FAILURE, 1, 0.0)
    assert t.evidence["got"] == {"verdict": "no answer"} and t.turns[0].error


@pytest.mark.parametrize(
    ("kind", "meta", "said"),
    [
        (Numbers, {"numbers": [3, "x"], "target": 4}, r"meta.numbers.1.*got 'x'"),
        (Numbers, {"numbers": [3], "target": 3, "code": "1"}, "meta.code"),
        (Grid, {"cells": [0] * 16}, "exactly one solution"),
        (Grid, {"cells": [1] * 16}, "exactly one solution"),
        (Graph, {"edges": [[1, 2]], "origin": 2, "target": 1}, "a path from 2 to another node, 1"),
        (Code, {"secret": [1, 5], "colours": 4}, "digits up to 4"),
        (Code, {"secret": [1] * 5, "colours": 9}, "at most 1296"),
        (Chain, {"first": 1, "operations": [["**", 9]], "modulus": 7}, "meta.operations.0.0"),
    ],
)
async def test_meta_that_is_no_instance_is_refused_with_the_field(kind: type[Puzzle], meta: dict, said: str) -> None:
    task = Task(id="t9", source="s", goal="g", start="start", meta=meta)
    with pytest.raises(TaskError, match=f"(?s)'t9'.*{said}"):
        kind.of(task)
    with pytest.raises(EnvFailure, match="t9"):
        await PuzzleEnv(kind).reset(task, 0)


def test_settings_that_leave_too_few_puzzles_are_refused() -> None:
    with pytest.raises(TaskError, match="too few different puzzles"):
        Mastermind(pegs=(2, 2, 2), colours=(2, 2, 2)).held_out(1)
    with pytest.raises(TaskError, match="draws of 4 numbers up to 3 none makes a target up to 3 .* tasks.most higher"):
        Countdown(largest=3, most=3, mix=Mix(easy=0, medium=0)).sample(random.Random(0), 1)
    with pytest.raises(ConfigError, match="guesses: .*less than or equal to 99"):
        build(TaskSource, {"type": "wordle", "guesses": 100})
    with pytest.raises(ConfigError, match="1296 codes"):
        build(TaskSource, {"type": "mastermind", "pegs": [2, 3, 5]})
    with pytest.raises(ConfigError, match="harder tasks"):
        build(TaskSource, {"type": "countdown", "numbers": [4, 3, 2]})


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("Thought: a Action: go 1 Action: Put 2 3 4", "put 2 3 4"),
        ("answer  3 +\n4", "answer 3 + 4"),
        ("Action: put 2 3", None),
        ("Action: put 2 3 x", None),
        ("Action: put 2 3 -4", None),
        ("Action:", None),
        ("Action: dance", None),
    ],
)
def test_the_last_action_counts_with_as_many_numbers_as_it_takes(text: str, parsed: str | None) -> None:
    action = parse(text, {"put": 3, "answer": None})
    assert (str(action) if isinstance(action, Action) else None) == parsed


# countdown


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3 + 4 * 2", 11), ("( 3 + 4 ) * 2", 14), ("(3+4)*2", 14), ("2 - 3 - 4", -5), ("3 / 4 / 2", Fraction(3, 8)),
        ("3 - ( 4 - 2 )", 1), ("((2))", 2), ("3 + 3", "'3' is no number that is left"), ("5", "'5' is no number"),
        ("03", "'03' is no number"), ("3 / ( 4 - 4 )", "'4' is no number"), ("3 4", "'4' is no operator"),
        ("", "it ends where"), ("3 +", "it ends"), ("( 3", "a bracket is not closed"), ("3 )", "a bracket is closed"),
        ("- 3", "'-' is no number"), ("3 + 4 = 7", "'=' is no operator"), ("3 ** 4", "'*' is no number"),
        ("__import__", "'_' is no number"),
    ],
)  # fmt: skip
def test_expressions_by_hand(expression: str, value: object) -> None:
    got = value_of(expression, (3, 4, 2))
    assert got.startswith(str(value)) if isinstance(got, str) else got == value


def test_an_answer_that_misses_the_target_says_its_value() -> None:
    t = replay(Numbers(numbers=(3, 4, 2), target=14), "Thought: hm Action: answer 3 * 4 + 2 / 3")
    assert t.evidence["got"] == {"verdict": "'3' is no number that is left"}
    t = replay(Numbers(numbers=(3, 4, 2), target=14), "Action: answer 2 / 4 * 3")
    assert t.evidence["got"] == {"verdict": "2 / 4 * 3 is 3/2 , not 14"} and t.answer == "2 / 4 * 3"


def expressions(numbers: tuple[int, int, int]):
    """Every expression in all three numbers, with and without brackets."""
    for (a, b, c), (p, q) in itertools.product(itertools.permutations(numbers), itertools.product("+-*/", repeat=2)):
        yield from (f"{a} {p} {b} {q} {c}", f"( {a} {p} {b} ) {q} {c}", f"{a} {p} ( {b} {q} {c} )")


@pytest.mark.parametrize("numbers", [(3, 4, 2), (6, 2, 2), (1, 5, 10)])
def test_the_verifier_agrees_with_every_expression_of_three_numbers(numbers: tuple[int, int, int]) -> None:
    values = set()
    for text in expressions(numbers):
        try:  # Python's own precedence over fractions is the judge
            wanted = builtins.eval(re.sub(r"\d+", r"F(\g<0>)", text), {"F": Fraction})
        except ZeroDivisionError:
            assert value_of(text, numbers) == "it divides by 0"
            continue
        assert value_of(text, numbers) == wanted, text
        values.add(wanted)
        if wanted.denominator == 1 and 1 <= wanted <= 99:
            assert Numbers(numbers=numbers, target=int(wanted)).check(text) == "solved"
    assert set(reachable(numbers, 99)[-1]) <= values


def test_a_target_needs_all_numbers_and_its_solution_is_a_chain_of_true_steps() -> None:
    for task in Countdown().sample(random.Random(4), 60):
        puzzle = Numbers.of(task)
        steps, expression = puzzle.solution()
        assert len(steps) == len(puzzle.numbers) - 1 == task.facts
        assert sorted(map(int, re.findall(r"\d+", expression))) == sorted(puzzle.numbers)
        left = Counter(puzzle.numbers)
        for a, sign, b, c in (re.fullmatch(r"(\d+) (.) (\d+) = (\d+)", s).groups() for s in steps):  # pyright: ignore
            left.subtract([int(a), int(b)])
            left[int(c)] += 1
            assert value_of(f"{a} {sign} {b}", (int(a), int(b))) == int(c)
        assert +left == Counter([puzzle.target]) and not -left


# modular chains

CHAIN = Chain(first=3, operations=(("+", 4), ("*", 2), ("-", 5)), modulus=7)


def test_a_hint_is_the_first_step_where_it_is_not_the_only_one() -> None:
    easy, hard = (Countdown(numbers=(n, n, n)).sample(random.Random(0), 1)[0] for n in (2, 3))
    first, second = Numbers.of(hard).steps()
    assert (Countdown().hint(easy), Countdown().hint(hard)) == ("", first) and second


def test_a_chain_by_hand() -> None:
    assert CHAIN.goal == "start 3 ; + 4 ; * 2 ; - 5 ; mod 7"
    assert CHAIN.demonstration() == ["Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; 0 - 5 ≡ 2 Action: answer 2"]
    assert [CHAIN.check(a) for a in ("2", "02", "9")] == ["solved", "the value is 2 , not 02", "the value is 2 , not 9"]


@pytest.mark.parametrize(
    ("thought", "labels"),
    [
        ("3 + 4 = 0 ; 0 * 2 = 0 ; 0 - 5 = 2", [True, True, True]),
        ("3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ;", [True, True]),
        ("3 + 4 = 1 ; 1 * 2 = 2 ; 2 - 5 = 4", [False, True, True]),
        ("3 + 4 = 0 ; 0 * 2 = 1 ; 0 - 5 = 2", [True, False, False]),
        ("3 + 4 = 7 ; 7 * 2 = 0", [False, True]),
        ("4 + 3 = 0", [False]),
        ("3 + 4 = 0 ; 0 * 2 = 0 ; 0 - 5 = 2 ; 2 + 1 = 3", [True, True, True, False]),
        ("so ; 3 + 4 = 0", [False, False]),
        ("", []),
    ],
)
def test_each_written_step_is_labelled(thought: str, labels: list[bool]) -> None:
    assert CHAIN.step_labels(f"Thought: {thought} Action: answer 2") == labels


# sudoku

HARD = Grid(cells=(0, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 0))
TURNS = Grid(cells=(0, 0, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 0), multi_turn=True)


def test_there_are_288_grids_and_each_keeps_the_rules() -> None:
    assert len(set(grids())) == 288
    for g in grids():
        rows = [g[i : i + 4] for i in (0, 4, 8, 12)]
        boxes = [[g[i + j] for j in (0, 1, 4, 5)] for i in (0, 2, 8, 10)]
        assert all(set(unit) == {1, 2, 3, 4} for unit in (*rows, *zip(*rows, strict=True), *boxes))


def test_a_solution_is_unique_by_enumeration_of_all_fillings() -> None:
    blanks_of = dict(zip(DIFFICULTIES, (4, 6, 7), strict=True))
    for task in Sudoku(blanks=(4, 6, 7)).sample(random.Random(5), 9):
        cells = Grid.of(task).cells
        blanks = [i for i, d in enumerate(cells) if not d]
        keeping, legal = set(grids()), []
        for filling in itertools.product((1, 2, 3, 4), repeat=len(blanks)):
            filled = list(cells)
            for i, d in zip(blanks, filling, strict=True):
                filled[i] = d
            if tuple(filled) in keeping:
                legal.append(tuple(filled))
        assert legal == [Grid.of(task).solution] and len(blanks) == task.facts == blanks_of[task.difficulty]


def test_a_grid_with_its_digits_renamed_is_on_the_same_side_of_the_split() -> None:
    assert Grid(cells=tuple((0, 3, 4, 2, 1)[d] for d in HARD.cells)).key == HARD.key != TURNS.key


def test_a_whole_grid_is_compared_cell_by_cell() -> None:
    assert HARD.check("1 2 3 4 ; 3 4 1 2 ; 2 1 4 3 ; 4 3 2 1") == "solved"
    assert HARD.check("1 2 3 4 3 4 1 2 2 1 4 3 4 3 2 2") == "row 4 column 4 is 2"
    assert HARD.check("1 2 3 4") == "16 digits make a grid, not 4"


def test_a_digit_against_the_rules_is_refused_and_explained_and_costs_a_step() -> None:
    texts = ("put 1 1 3", "put 1 3 3", "put 5 1 1", "clear 1 1", "put 1 1 2", "clear 1 1", "put 1 2 2", "put 4 4 1")
    t = replay(TURNS, *(f"Action: {x}" for x in texts), "Action: put 1 1 1")
    assert [turn.error for turn in t.turns] == [
        "3 is at row 1 column 3", "row 1 column 3 is given", "rows , columns and digits go from 1 to 4",
        "row 1 column 1 is 0 already", "2 is at row 3 column 1", "row 1 column 1 is 0 already", None, None, None,
    ]  # fmt: skip
    assert text_in(t.turns[1].observation).endswith("error: 3 is at row 1 column 3")
    assert (t.stop, t.reward, t.length) == (StopReason.ENV_ENDED, 1.0, 9)


def test_a_digit_that_is_wrong_but_breaks_no_rule_can_be_cleared() -> None:
    task = next(t for t in Sudoku(multi_turn=True, blanks=(9, 10, 10)).sample(random.Random(6), 50))
    grid = Grid.of(task)
    game = grid.start()
    i, d = next(
        (i, d) for i in range(16) for d in (1, 2, 3, 4)
        if not grid.cells[i] and d != grid.solution[i] and not game.act(Action("put", (i // 4 + 1, i % 4 + 1, d)))
    )  # fmt: skip
    assert game.look().replace(";", "").split()[i] == str(d)
    assert game.act(Action("clear", (i // 4 + 1, i % 4 + 1))) is None
    assert game.look() == grid.model_copy(update={"multi_turn": False}).goal.removeprefix("fill the grid ")


# paths

GRAPH = Graph(edges=((1, 2), (1, 3), (2, 4), (2, 3), (3, 5), (5, 6), (2, 6)), origin=1, target=6)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("1 2 6", "solved"), ("1 2 3 5 6", "4 edges are more than 2"), ("1 6", "there is no edge 1 6"),
        ("2 6", "the path does not lead from 1 to 6"), ("1 - 6", "'-' is no node"), ("1 2 4", "the path does not"),
    ],
)  # fmt: skip
def test_paths_by_hand(answer: str, verdict: str) -> None:
    assert GRAPH.model_copy(update={"shortest": True}).check(answer).startswith(verdict)
    if verdict.startswith("4 edges"):
        assert GRAPH.check(answer) == "solved"


def test_a_walk_goes_back_from_a_dead_end_and_is_judged_without_it() -> None:
    graph = GRAPH.model_copy(update={"multi_turn": True, "shortest": True})
    t = replay(graph, *(f"Action: {x}" for x in ("back", "go 2", "go 5", "go 4", "back", "go 6")))
    assert [text_in(turn.observation).split("\n")[0] for turn in t.turns] == [
        "at 1 next 2 3", "at 1 next 2 3", "at 2 next 3 4 6", "at 2 next 3 4 6", "at 4 next none", "at 2 next 3 4 6",
    ]  # fmt: skip
    assert [turn.error for turn in t.turns[:3]] == ["1 is where the walk began", None, "there is no edge 2 5"]
    assert (t.stop, t.reward) == (StopReason.ENV_ENDED, 1.0)


def test_the_shortest_length_is_that_of_the_layers_and_of_a_search_by_levels() -> None:
    dead_ends = 0
    for task in LayeredPath().sample(random.Random(7), 200):
        graph = Graph.of(task)
        level, n = {graph.origin}, 0
        while graph.target not in level:
            level, n = {b for a, b in graph.edges if a in level}, n + 1
        assert n == task.facts == dict(zip(DIFFICULTIES, LayeredPath().lengths, strict=True))[task.difficulty]
        nodes = {x for edge in graph.edges for x in edge}
        dead_ends += bool(nodes - {a for a, _ in graph.edges} - {graph.target})
    assert dead_ends > 120


# mastermind


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(*[st.lists(st.integers(1, 6), min_size=n, max_size=n)] * 2)))
def test_feedback_is_that_of_pegs_marked_off_one_by_one(pair: tuple[list[int], list[int]]) -> None:
    secret, guess = map(list, pair)
    black = white = 0
    for i in range(len(secret)):
        if guess[i] == secret[i]:
            black, secret[i], guess[i] = black + 1, 0, -1
    for d in guess:
        if d in secret:
            white, secret[secret.index(d)] = white + 1, 0
    assert feedback(tuple(pair[0]), tuple(pair[1])) == (black, white)


def test_the_solver_of_the_classic_game_has_knuths_worst_case_and_total() -> None:
    lengths = [len(Code(secret=c, colours=6).steps()) for c in codes(4, 6)]
    assert (max(lengths), sum(lengths)) == (5, 5801)


def test_a_guess_is_answered_and_a_bad_one_explained() -> None:
    t = replay(Code(secret=(1, 2, 2), colours=4), *(f"Action: guess {x}" for x in ("2 1 2", "1 2 5", "1 2", "1 2 2")))
    assert [turn.observation for turn in t.turns] == [
        "", "black 1 white 2", "black 1 white 2\nerror: digits go from 1 to 4",
        "black 1 white 2\nerror: guess takes 3 numbers",
    ]  # fmt: skip
    assert (t.reward, t.stop, t.answer) == (1.0, StopReason.ENV_ENDED, None)
