"""LMRL-Gym: the maze, Wordle, values by expectiles and returns, and a model and tasks of one's own."""

import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from elsewhere import train_elsewhere
from helpers import make_task, make_trajectory, make_turn, rows_of
from pydantic import ValidationError

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.task import DIFFICULTIES
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import PuzzleSource, TextMaze, Wordle
from longstride.envs.puzzles.base import Puzzle
from longstride.envs.puzzles.maze import MazeWalk
from longstride.envs.puzzles.wordle import WORDS, Spelled, best_guess, colours
from longstride.learner.critics import Moves, StoredEstimates
from longstride.models.load import load_policy
from longstride.models.tiny import words_of
from longstride.papers.lmrl_gym.method import ExpectileQ
from longstride.papers.lmrl_gym.recipe import CLAIM
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.run.recipe import Recipe

LAYOUT = (
    "#########",
    "#...#...#",
    "#.#.#.#.#",
    "#.#...#G#",
    "#########",
)  # fmt: skip
EAST_OF_IT, LEFT = (1, 7), (3, 1)


def play(source: PuzzleSource, puzzle: Puzzle, *texts: str, turns: int = 0) -> Trajectory:
    evaluator = {"type": "state", "expected": {"verdict": "solved"}}
    task = make_task(goal=puzzle.goal, evaluator=evaluator, meta=puzzle.model_dump())
    plan = Plan(task, 0, 0, Budget(turns=turns or len(texts)))
    player = ScriptedPlayer(lambda e: texts[min(e.turns, len(texts) - 1)])
    return Pool(player, source.env, TaskReward()).run([plan])[0]


@pytest.mark.parametrize("seen", [False, True])
def test_a_maze_says_what_stands_around_and_where_one_is_if_it_is_fully_observed(seen: bool) -> None:
    walk = MazeWalk(layout=LAYOUT, begin=EAST_OF_IT, fully_observed=seen)
    t = play(
        TextMaze(layout=LAYOUT),
        walk,
        "Action: east",
        "no",
        "Action: west",
        "Action: east",
        "Action: south",
        "Action: south",
    )
    cells = ["1 7 ", "1 7 ", "1 7 ", "1 6 ", "1 7 ", "2 7 "] if seen else [""] * 6
    around = ["north east", "north east", "north east\nerror: unknown action 'no'; use one of north, east, south, west"]
    expected = [*around, "north south", "north east", "east west"]
    assert [u.observation for u in t.turns] == [f"{at}wall {w}" for at, w in zip(cells, expected, strict=True)]
    assert (t.task.goal, t.stop, t.success) == ("reach 3 7" if seen else "find the goal", StopReason.ENV_ENDED, True)
    assert not t.turns[0].changed and t.turns[2].changed


def test_a_walk_that_does_not_arrive_is_none() -> None:
    t = play(TextMaze(layout=LAYOUT), MazeWalk(layout=LAYOUT, begin=LEFT), "Action: north", turns=3)
    assert (t.stop, t.success, t.length) == (StopReason.TURNS, False, 3)


def test_the_solver_takes_a_shortest_way() -> None:
    walk = MazeWalk(layout=LAYOUT, begin=LEFT)
    assert walk.steps() == "north north east east south south east east north north east east south south".split()
    assert play(TextMaze(), walk, *walk.demonstration()).success


@pytest.mark.parametrize("source", [TextMaze(), TextMaze(size=3, maze_seed=7), TextMaze(layout=LAYOUT)])
def test_every_fourth_beginning_is_held_out_in_every_difficulty(source: TextMaze) -> None:
    tasks = {"train": source.sample(random.Random(0), 150), "test": source.held_out(90)}
    begins = {split: {MazeWalk.of(t).begin for t in of} for split, of in tasks.items()}
    assert not begins["train"] & begins["test"] and len(begins["train"]) in (
        3 * len(begins["test"]) + k for k in range(4)
    )
    assert {len(Counter(t.difficulty for t in of)) for of in tasks.values()} == {3}
    optimal = {d: max(t.optimal or 0 for t in tasks["train"] if t.difficulty == d) for d in ("easy", "medium", "hard")}
    assert optimal["easy"] < optimal["medium"] < optimal["hard"]


def test_a_maze_depends_on_its_seed_and_has_a_way_between_all_cells() -> None:
    one, same, other = (TextMaze(maze_seed=k).sample(random.Random(0), 1)[0].meta["layout"] for k in (1, 1, 2))
    assert one == same != other
    assert sum(row.count(".") + row.count("G") for row in one) == 2 * 4 * 4 - 1


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (("#.G", "#."), "rows of one length"),
        (("..........", "..........",), "one G"),
        (("G........#.", "##########."), "12 cells or more must lead to the goal of a maze, for tasks of each kind; got 8"),
    ],
)  # fmt: skip
def test_what_is_no_maze_is_refused(layout: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        TextMaze(layout=layout)
    with pytest.raises(ValidationError, match="begins in a cell from which"):
        MazeWalk(layout=LAYOUT, begin=(0, 0))


@pytest.mark.parametrize(
    ("secret", "guess", "said"),
    [
        ("abbey", "babes", "amber amber green green grey"),
        ("crane", "eerie", "grey grey amber grey green"),
        ("ton", "toe", "green green grey"),
        ("tot", "ttt", "green grey green"),
    ],
)
def test_letters_have_the_colours_of_wordle(secret: str, guess: str, said: str) -> None:
    assert " ".join(colours(secret, guess)) == said


def test_a_word_is_found_by_guesses_of_the_list() -> None:
    game = Spelled(secret="cat", words=WORDS, guesses=2)
    t = play(Wordle(), game, "Action: find c o t", "Action: find t t t", "Action: find cat")
    assert [u.observation for u in t.turns] == [
        "",
        "c green o grey t green",
        "c green o grey t green\nerror: unknown t t t",
    ]
    assert (t.stop, t.success) == (StopReason.ENV_ENDED, True)
    lost = play(Wordle(), game, "Action: find c o t", "Action: find ton", turns=9)
    assert (lost.length, lost.evidence["got"]) == (2, {"verdict": "the word was not found"})


def test_the_solver_halves_what_is_left() -> None:
    words = ("cc", "ad", "ab", "bd")
    assert best_guess(words) == "ad", "it leaves one word in its worst case, cc three"
    games = [Spelled(secret=word, words=words, guesses=6) for word in words]
    assert all(play(Wordle(), game, *game.demonstration()).success for game in games)


def test_words_are_read_from_a_file_and_held_out(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("\n".join(WORDS[:60]))
    source = Wordle(words=tmp_path / "words")
    trained, tested = (
        {Spelled.of(t).secret for t in of} for of in (source.sample(random.Random(0), 400), source.held_out(150))
    )
    assert trained and tested and not trained & tested and len(trained | tested) == 60
    for bad, why in (
        ("crane\nox\n", "expected words of 5 letters from a to z, got 'ox'"),
        ("cat\nact\n", "expected three words or more"),
    ):
        (tmp_path / "bad").write_text(bad)
        with pytest.raises(ConfigError, match=f"tasks.words: .*bad: {why}"):
            Wordle(words=tmp_path / "bad").sample(random.Random(0), 1)


def test_of_a_short_list_each_difficulty_has_words(tmp_path: Path) -> None:
    for n in (3, 4, 5):
        (tmp_path / f"{n}").write_text("\n".join(WORDS[:n]))
        source, rng = Wordle(words=tmp_path / f"{n}"), random.Random(0)
        words = [{source.make(rng, of).secret for _ in range(40)} for of in DIFFICULTIES]
        assert all(words) and sum(map(len, words)) == len(set().union(*words)) == n


def test_the_shipped_model_knows_every_word_of_both_games() -> None:
    known = set(load_policy("base-trials").tokenizer.get_vocab())
    for source, seen in (
        (TextMaze(), "wall north east"),
        (TextMaze(fully_observed=True), "1 9"),
        (Wordle(), "green amber grey"),
    ):
        for task in source.sample(random.Random(0), 6):
            assert set(words_of(" ".join([task.goal, seen, "error: unknown", *source.demonstrate(task)]))) <= known


def said(q: float = 0.0, v: float = 0.0, target: float = 0.0) -> tuple[StoredEstimates, torch.Tensor]:
    v_1_N = torch.tensor([[v]], requires_grad=True)
    return StoredEstimates(torch.full((2, 1), q), v_1_N, torch.tensor([[target], [9.0]]), v_1_N.detach()), v_1_N


@pytest.mark.parametrize("expectile", [0.5, 0.9])
def test_v_is_at_rest_at_the_expectile_of_what_its_actions_are_worth(expectile: float) -> None:
    """Of two actions that are taken as often, worth 0 and 1."""
    slopes, moves = [], Moves.of([make_trajectory([make_turn([1])])], 1.0)
    for worth in (0.0, 1.0):
        estimates, v_1_N = said(v=expectile, target=worth)
        ExpectileQ(expectile=expectile).losses(estimates, moves)["value_loss"].backward()
        slopes.append(v_1_N.grad)
    assert float(slopes[0] + slopes[1]) == pytest.approx(0.0, abs=1e-7) and float(slopes[0]) > 0.04


def test_a_model_and_tasks_of_ones_own_learn_from_a_stored_run(tmp_path: Path) -> None:
    own = ("iterations=1", "cloning=", "critic.steps=3", f"critic.encoder={tmp_path / 'model'}", "evaluation.tasks=1")
    live = train_elsewhere("lmrl_gym", tmp_path, *own)
    (row,) = rows_of(live, "train")
    (tmp_path / "other").mkdir()
    stored = train_elsewhere("lmrl_gym/filtered", tmp_path / "other", *own[:2], own[-1], f"stored_run={live}")
    (filtered,) = rows_of(stored, "train")
    assert row["action_value_loss"] > 0 and row["trained_turns"] > filtered["trained_turns"] > 0


def test_cloning_the_walks_that_arrived_takes_smaller_batches_of_fewer_turns() -> None:
    found = {name: arm.learner.batch_samples for name, arm in CLAIM.arms.items() if isinstance(arm, Recipe)}
    assert found == {name: 64 if name.endswith("filtered") else 256 for name in CLAIM.arms}
