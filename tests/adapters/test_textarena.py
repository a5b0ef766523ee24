"""TextArena's games as task sources: one player, a rule or a model on the other side, games that break."""

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from adapter_runs import few_words, play, run, small

from longstride.adapters.seeded import EnvironmentReward
from longstride.adapters.textarena import OPPONENT, Opponent, RandomMove, Textarena
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure
from longstride.core.foreign import MAX_TEXT
from longstride.core.plain import plain
from longstride.core.task import Task
from longstride.envs.base import TaskSource
from longstride.rollout import FullHistory
from longstride.rollout.store import TrajectoryStore
from longstride.run.recipe import Companion

textarena = pytest.importorskip("textarena", reason="needs pip install 'longstride[textarena]'")

MOVES = "Action: " + " ".join(f"[{k}]" for k in range(9))


class Fixed(Opponent):
    """Says the same for ever."""

    says: str = "[0]"

    def move(self, seen: Sequence[str], rng: random.Random) -> str:
        if self.says == "raise":
            raise RuntimeError("no idea")
        return self.says


class Hostile(textarena.Env):
    """A game that does what it must not, in its first step or, as `at reset` says, before."""

    def __init__(self, how: str) -> None:
        self.how = how

    def reset(self, num_players: int, seed: int | None = None) -> None:
        self.state = textarena.SinglePlayerState(num_players=num_players, seed=seed)
        self.state.reset(
            game_state={}, player_prompt_function=lambda player_id, game_state: RULES.get(self.how, "Play.")
        )
        if self.how.endswith("at reset"):
            self.break_the_state()

    def step(self, action: str) -> Any:
        self.state.add_observation(message="seen", observation_type=textarena.ObservationType.GAME_MESSAGE)
        if not self.how.endswith("at reset"):
            self.break_the_state()
        return self.state.step()

    def break_the_state(self) -> None:
        state: Any = self.state
        kind = textarena.ObservationType.GAME_MESSAGE
        match self.how.removesuffix(" at reset"):
            case "exit":
                sys.exit(7)
            case "escape":
                raise ValueError("bad \x1b]0;owned\x07 move \ud800")
            case "player":
                state.current_player_id = -1
            case "player list":
                state.current_player_id = [0]
            case "done":
                state.done = np.array([True, False])
            case "done text":
                state.done = "False"
            case "nan" | "digits" | "text" | "list" as reward:
                state.set_outcome({"nan": float("nan"), "digits": 10**400, "text": "1", "list": [1]}[reward])
            case "rewards":
                state.set_outcome(1)
                state.rewards = [1]
            case "messages":
                self.get_observation = lambda: (0, [("x",)])
            case "nothing":
                self.get_observation = lambda: None
            case "message number":
                self.get_observation = lambda: (0, [(-1, 5, kind)])
            case "other player":
                self.get_observation = lambda: (-1, [])
            case "stateless":
                del self.state
            case "large":
                self.get_observation = lambda: (0, [(-1, "word " * 1_000_000 + "\x1b[31m", kind)])
            case "reason":
                state.error_allowance = 0
                state.set_invalid_move("\x1b[31m\ud800" + "why " * 1000)


RULES: dict[str, Any] = {"rules at reset": 5, "large rules": "\x1b[1mrule " * 100_000}
textarena.register("Hostile-v0", entry_point=Hostile)


def source(id: str, **fields: Any) -> Textarena:
    found = build(TaskSource, {"type": "textarena", "id": id, **fields})
    assert isinstance(found, Textarena)
    return found


def task_of(games: Textarena, seat: int = 0) -> Task:
    return next(t for t in games.sample(random.Random(0), 20) if t.meta["seed"] % 2 == seat)


def test_the_rules_are_the_goal_and_the_move_follows_action() -> None:
    games = source("GuessTheNumber-v0")
    said = ["I say [3] or so. Action: [10]", "Action: what?", "Action: [11]"]
    first, steps, state = play(games.env(), task_of(games), said)
    assert "guess the number between 1 and 20" in first.goal and first.goal.endswith("Action: and your move.")
    assert steps[0].action == "[10]" and "The target number is" in steps[0].observation.text
    assert steps[1].action is None and steps[1].error and "invalid move" in steps[1].observation.text
    assert state == {"success": False} and not any(s.terminated for s in steps)


def test_a_game_that_is_won_is_a_success_and_a_part_of_it_is_not() -> None:
    games = source("GuessTheNumber-v0")
    task = task_of(games)
    low, high = 1, 20
    said: list[str] = []
    for _ in range(6):  # bisection finds one of twenty
        said.append(f"[{(low + high) // 2}]")
        _, steps, state = play(games.env(), task, said)
        if steps[-1].terminated:
            break
        middle = (low + high) // 2
        low, high = (middle + 1, high) if "higher" in steps[-1].observation.text else (low, middle - 1)
    assert steps[-1].reward == 1 and state == {"success": True}
    _, steps, state = play(games.env(), task, ["no", "no"])
    assert steps[-1].terminated and steps[-1].action is None and state == {"success": False}


def test_the_same_task_is_the_same_game_and_global_generators_stay_as_they_were() -> None:
    games = source("TicTacToe-v0", players=2, opponent={"type": "random_move"})
    random.seed(5)
    np.random.seed(5)
    games_played = [play(games.env(), task_of(games), ["[4]", "[0]", "[1]"]) for _ in range(2)]
    assert games_played[0] == games_played[1]
    assert (random.random(), np.random.rand()) == (random.Random(5).random(), np.random.RandomState(5).rand())


def test_a_rule_plays_the_other_side_from_either_seat() -> None:
    games = source("TicTacToe-v0", players=2, opponent={"type": "random_move"})
    first, steps, _ = play(games.env(), task_of(games, seat=0), ["[4]"])
    assert "You are Player 0" in first.goal and "Player 1 placed" in steps[0].observation.text
    first, steps, _ = play(games.env(), task_of(games, seat=1), ["Action: what?"])
    assert "You are Player 1" in first.goal and "Player 0 placed" in first.text and steps[0].error
    assert not first.speaker and not steps[0].observation.speaker


def test_an_opponent_that_breaks_the_rules_loses_and_one_that_raises_fails_the_episode() -> None:
    games = source("TicTacToe-v0", players=2).replace(opponent=Fixed())
    _, steps, state = play(games.env(), task_of(games), ["[4]", "[3]"])
    assert steps[-1].terminated and steps[-1].reward == 1 and state == {"success": True}
    broken = source("TicTacToe-v0", players=2).replace(opponent=Fixed(says="raise"))
    with pytest.raises(EnvFailure, match=r"Fixed\.move raised RuntimeError: no idea \(test_textarena\.py"):
        play(broken.env(), task_of(broken), ["[4]"])


def test_random_moves_are_those_of_the_newest_message_that_names_any() -> None:
    rng = random.Random(0)
    assert {RandomMove().move(["[1]", "[2] [3]", "no"], rng) for _ in range(20)} == {"[2]", "[3]"}


@pytest.mark.parametrize(
    ("id", "fields", "message"),
    [
        ("Nowhere-v0", {}, "setting up Nowhere-v0 for 1 players .* not found in registry"),
        ("TicTacToe-v0", {}, "The number of players has to be 2, received 1"),
        ("TicTacToe-v0", {"players": 2, "kwargs": {"size": 9}}, "unexpected keyword argument 'size'"),
    ],
)
def test_a_game_that_cannot_be_set_up_is_refused_before_the_first_episode(
    id: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        source(id, **fields).held_out(1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", r"Hostile-v0\.step\('go'\) raised SystemExit: 7 \(test_textarena\.py, line \d+\)"),
        ("escape", r"Hostile-v0\.step\('go'\) raised ValueError: bad move \? \(test_textarena\.py, line \d+\)"),
        ("player", r"player -1; expected 0 or 1|raised KeyError: -1"),
        ("player list", r"raised TypeError: unhashable type"),
        ("done", r"Hostile-v0\.step\('go'\) raised ValueError: The truth value of an array"),
        ("done text", r"`done` of Hostile-v0: expected True or False, got 'False'"),
        ("nan", r"the reward of Hostile-v0 for player 0: expected a finite number, got nan"),
        ("digits", r"the reward of Hostile-v0 for player 0: expected a finite number, got 10000"),
        ("text", r"the reward of Hostile-v0 for player 0: expected a finite number, got '1'"),
        ("list", r"the reward of Hostile-v0 for player 0: expected a finite number, got \[1\]"),
        ("rewards", r"the state of Hostile-v0 raised AttributeError: 'list' object has no attribute 'get'"),
        ("messages", r"the state of Hostile-v0 raised ValueError: not enough values to unpack"),
        ("nothing", r"raised TypeError: cannot unpack non-iterable NoneType"),
        ("message number", r"raised AttributeError|seen"),
        ("other player", r"Hostile-v0 says something to player -1; expected 0 or 1"),
        ("stateless", r"raised AttributeError"),
        ("player at reset", r"Hostile-v0\.get_observation raised KeyError: -1"),
        ("done at reset", r"`done` of Hostile-v0: expected True or False, got array"),
        ("nothing at reset", r"raised TypeError: cannot unpack non-iterable NoneType"),
    ],
)
def test_a_hostile_game_fails_its_episode_and_nothing_else(how: str, message: str) -> None:
    games = source("Hostile-v0", kwargs={"how": how})
    with pytest.raises(EnvFailure, match=message):
        _, (step,), _ = play(games.env(), games.sample(random.Random(0), 1)[0], ["Action: go"])
        raise EnvFailure(f"seen {step.observation.text}")  # where it is a step like any other


@pytest.mark.parametrize("how", ["stateless at reset", "exit at reset", "rules at reset"])
def test_a_hostile_game_that_cannot_be_set_up_is_refused_with_the_recipe(how: str) -> None:
    with pytest.raises(ConfigError, match="setting up Hostile-v0 for 1 players"):
        source("Hostile-v0", kwargs={"how": how}).held_out(1)


def test_what_a_game_says_is_bounded_plain_text() -> None:
    for how in ("large", "large rules", "reason"):
        games = source("Hostile-v0", kwargs={"how": how})
        first, (step,), _ = play(games.env(), games.sample(random.Random(0), 1)[0], ["Action: go"])
        assert max(len(first.goal), len(step.observation.text)) < MAX_TEXT + 500 and len(step.error or "") < 400
        assert first.goal == plain(first.goal) and step.observation.text == plain(step.observation.text)
        assert (step.error or "") == plain(step.error or "")


def test_the_example_trains(tmp_path) -> None:
    from examples.textarena_tictactoe import RECIPE, Greedy

    model = few_words(tmp_path / "model", MOVES)
    budget = {"turns": 5, "turn_tokens": 1}
    changes = {"model": model, "iterations": 1, "episodes_per_iteration": 16, "budget": budget, "test_budget": budget}
    row = run(RECIPE.replace(**changes, tasks={"opponent": Greedy()}, evaluation={"tasks": 4}), tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0


def test_another_model_plays_the_other_side_and_is_not_trained(tmp_path) -> None:
    model = few_words(tmp_path / "model", MOVES)
    budget = {"turns": 6, "turn_tokens": 1}
    recipe = small(
        source("TicTacToe-v0", players=2), model, EnvironmentReward(), budget=budget, test_budget=budget,
        companions={OPPONENT: Companion(model=model, context=FullHistory())},
    )  # fmt: skip
    row = run(recipe, tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0
    store = TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")
    turns = [turn for t in store.read(range(16)) for turn in t.turns]
    theirs = [turn for turn in turns if turn.speaker == OPPONENT]
    assert theirs and all(not turn.sampled_ids for turn in theirs)
    assert all(turn.sampled_ids for turn in turns if turn.speaker != OPPONENT)
