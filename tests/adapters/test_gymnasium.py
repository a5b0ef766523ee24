"""Gymnasium's environments as task sources: what is shown, what can be said, what is refused."""

import math
import random
import sys
import zlib
from typing import Any

import numpy as np
import pytest
from adapter_runs import few_words, play, run, small

from longstride.adapters.gymnasium import Gymnasium, in_words, marked, png, seen
from longstride.adapters.seeded import SEEDS, EnvironmentReward
from longstride.core.component import build
from longstride.core.content import Media
from longstride.core.errors import ConfigError, EnvFailure
from longstride.envs.base import TaskSource

gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")


class Rude:
    """Raises at whatever is asked of it."""

    def __bool__(self) -> Any:
        raise RuntimeError("no")

    __float__ = __repr__ = __str__ = __bool__


TWO = np.array([True, False])
BREAKS: dict[str, dict[str, Any]] = {
    "nan": {"reward": math.nan}, "digits": {"reward": 10**400}, "large": {"reward": 1.7e308},
    "two rewards": {"reward": np.array([1.0, 2.0])}, "no reward": {"reward": None}, "text": {"reward": "1.0"},
    "rude": {"reward": Rude()}, "terminated two": {"terminated": TWO}, "terminated none": {"terminated": None},
    "terminated text": {"terminated": "False"}, "terminated rude": {"terminated": Rude()},
    "truncated two": {"truncated": TWO}, "success two": {"info": {"success": TWO}},
    "success text": {"info": {"is_success": "no"}}, "success rude": {"info": {"success": Rude()}},
    "observation": {"observation": object()}, "rude observation": {"observation": Rude()},
    "many parts": {"observation": [0] * 2000}, "image": {"observation": np.zeros((3000, 3000, 3), np.uint8)},
}  # fmt: skip
"""What a step returns that it must not."""


class Guess(gymnasium.Env):
    """Say a word; it is done when it is `red`. Each word earns a tenth for each of its letters."""

    observation_space = gymnasium.spaces.Text(20)
    action_space = gymnasium.spaces.Text(8)

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks
        if breaks == "constructor":
            raise ValueError("no dictionary")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return "nothing" if self.breaks == "reset" else ("a word", {})

    def step(self, action: str) -> Any:
        if self.breaks == "step":
            return "a word", 1.0
        if self.breaks == "raise":
            raise KeyError("lost")
        if self.breaks == "exit":
            sys.exit(3)
        if self.breaks == "odd":
            return "\x1b]0;owned\x07half \ud800", np.float32(1), np.array([True]), np.bool_(False), {"success": 1}
        if self.breaks == "deep":
            nested: Any = 0
            for _ in range(5000):
                nested = [nested]
            return nested, 0.0, False, False, {}
        done = action == "red"
        found = {"observation": f"not {action}", "reward": len(action) / 10, "terminated": done, "truncated": False}
        return tuple((found | {"info": {"success": done}} | BREAKS.get(self.breaks, {})).values())


gymnasium.register(id="Guess-v0", entry_point=Guess, max_episode_steps=3)


def source(**fields: Any) -> Gymnasium:
    found = build(TaskSource, {"type": "gymnasium", **fields})
    assert isinstance(found, Gymnasium)
    return found


def test_training_and_evaluation_share_no_seed() -> None:
    lake = source(id="FrozenLake-v1")
    seen, held = lake.sample(random.Random(0), 20), lake.held_out(20)
    assert max(t.meta["seed"] for t in seen) < SEEDS <= min(t.meta["seed"] for t in held)
    assert lake.held_out(5) == held[:5] and {t.source for t in seen} == {"gymnasium/FrozenLake-v1"}


def test_known_actions_have_names_and_others_numbers() -> None:
    assert "one of left, down, right, up." in str(source(id="FrozenLake-v1").acting.manual)
    named = source(id="FrozenLake-v1", actions=("west", "south", "east", "north"), goal="Cross the lake.")
    assert str(named.acting.manual).startswith("End each turn with Action: and one of west, south")


def test_an_action_that_is_not_understood_costs_a_turn_and_moves_nothing() -> None:
    lake = source(id="FrozenLake-v1", kwargs={"render_mode": "ansi", "is_slippery": False})
    first, (bad, good), state = play(lake.env(), lake.held_out(1)[0], ["Action: jump", "Thought: on Action: Down."])
    assert first.text.startswith("[S]FFF") and state == {}
    assert bad.action is None and bad.observation.text == f"{first.text}\nerror: {bad.error}" and not bad.terminated
    assert good.action == "down" and good.observation.text == "  (Down)\nSFFF\n[F]HFH\nFFFH\nHFFG"


def test_the_same_task_is_the_same_world() -> None:
    slippery, task = source(id="FrozenLake-v1"), source(id="FrozenLake-v1").held_out(1)[0]
    walks = [[step.observation.text for step in play(slippery.env(), task, ["right"] * 4)[1]] for _ in range(2)]
    assert walks[0] == walks[1]


def test_termination_truncation_reward_and_success_are_the_environments_own() -> None:
    guess = source(id="Guess-v0")
    task = guess.held_out(1)[0]
    _, (step,), state = play(guess.env(), task, ["Action: red"])
    assert (step.reward, step.terminated, step.truncated, state) == (0.3, True, False, {"success": True})
    _, steps, state = play(guess.env(), task, ["blue", "blue", "blue"])
    assert [s.truncated for s in steps] == [False, False, True] and state == {"success": False}
    assert play(guess.env(), task, ["much too long a word"])[1][0].action is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "Nowhere-v0"}, "making Nowhere-v0 .* NameNotFound"),
        ({"id": "Guess-v0", "kwargs": {"breaks": "constructor"}}, r"making Guess-v0 with .*no dictionary \(test_gymn"),
        (
            {"id": "Guess-v0", "kwargs": {"breaks": "reset"}},
            r"Guess\.reset returned 'nothing'; expected \(observation, info",
        ),
        ({"id": "Guess-v0", "kwargs": {"colour": 1}}, "unexpected keyword argument 'colour'"),
        ({"id": "MountainCarContinuous-v0"}, "expected a Discrete or a Text space"),
        ({"id": "FrozenLake-v1", "actions": ("up", "down")}, r"tasks\.actions: .* has 4 actions"),
    ],
)
def test_what_cannot_be_played_is_refused_before_the_first_episode(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(**fields).held_out(1)


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ("step", r"Guess\.step, which returns \(observation, reward, terminated, truncated, info\), raised ValueError"),
        ("raise", r"Guess\.step, .* raised KeyError: 'lost' \(test_gymnasium\.py, line \d+\)"),
        ("exit", r"Guess\.step, .* raised SystemExit: 3 \(test_gymnasium\.py, line \d+\)"),
        ("nan", r"the reward of .*Guess\.step: expected a finite number, got nan"),
        ("digits", r"the reward of .*: expected a finite number, got 10000"),
        ("large", r"the reward of .*: expected a finite number of at most 1e\+15 in size, got 1\.7e\+308"),
        ("two rewards", r"the reward of .*: expected a finite number, got array"),
        ("no reward", r"the reward of .*: expected a finite number, got None"),
        ("text", r"the reward of .*: expected a finite number, got '1\.0'"),
        ("rude", r"the reward of .*: expected a finite number, got \(Rude, which cannot be shown\)"),
        ("terminated two", r"`terminated` of .*Guess\.step: expected True or False, got array"),
        ("terminated none", r"`terminated` of .*Guess\.step: expected True or False, got None"),
        ("terminated text", r"`terminated` of .*Guess\.step: expected True or False, got 'False'"),
        ("terminated rude", r"`terminated` of .*Guess\.step: expected True or False, got \(Rude"),
        ("truncated two", r"`truncated` of .*Guess\.step: expected True or False, got array"),
        ("success two", r"`success` in the info of .*Guess\.step: expected True or False, got array"),
        ("success text", r"`success` in the info of .*Guess\.step: expected True or False, got 'no'"),
        ("success rude", r"`success` in the info of .*Guess\.step: expected True or False, got \(Rude"),
        ("observation", r"Guess shows <object .*expected texts, numbers"),
        ("rude observation", r"Guess shows \(Rude, which cannot be shown\); expected texts, numbers"),
        ("many parts", r"Guess shows 2000 parts, and at most 1024 can be read"),
        ("image", r"Guess shows an image of the shape \(3000, 3000, 3\); expected at most \d+ bytes"),
        ("deep", r"Guess\.step, .* raised RecursionError"),
    ],
)
def test_an_environment_that_breaks_fails_the_episode_with_its_class(breaks: str, message: str) -> None:
    broken = source(id="Guess-v0", kwargs={"breaks": breaks})
    with pytest.raises(EnvFailure, match=message):
        play(broken.env(), broken.held_out(1)[0], ["red"])


def test_flags_may_be_arrays_of_one_and_what_is_shown_is_plain_text() -> None:
    odd = source(id="Guess-v0", kwargs={"breaks": "odd"})
    _, (step,), state = play(odd.env(), odd.held_out(1)[0], ["red"])
    assert (step.observation.text, step.reward, step.terminated, step.truncated) == ("half ?", 1.0, True, False)
    assert state == {"success": True}


def test_values_become_short_words() -> None:
    import numpy as np

    seen = {"at": np.array([0.5, -1.25]), "hand": (3, np.int64(4)), "note": "door", "map": np.eye(2, dtype=np.uint8)}
    assert in_words(seen, "x") == "at: 0.50 -1.25\nhand: 3 ; 4\nnote: door\nmap: 1 0\n0 1"
    with pytest.raises(EnvFailure, match=r"27648 numbers of the shape \(96, 96, 3\)"):
        in_words(np.zeros((96, 96, 3)), "x")


def test_colours_of_a_printed_grid_become_brackets() -> None:
    assert marked("\nS\x1b[41mF\x1b[0m\n") == "S[F]"
    assert marked("\x1b[34;1mR\x1b[0m \x1b[43m \x1b[0m") == "[blue R] [yellow  ]"


def test_success_is_what_the_environment_says_and_else_a_threshold() -> None:
    from longstride.core.budget import Budget, StopReason
    from longstride.core.trajectory import Trajectory, Turn

    task = source(id="Guess-v0").held_out(1)[0]
    turns = [Turn([0], [1], [-1.0], [0], observation="a", text="b", reward=0.4) for _ in range(2)]
    episode = Trajectory(task, 0, 0, Budget(), turns, StopReason.TURNS)
    reward = EnvironmentReward(success_above=0.5)
    assert reward(episode, {"success": False}, 0).success is False
    assert reward(episode, {}, 0).success and not reward.replace(success_above=0.8)(episode, {}, 0).success
    assert reward(episode, {}, 0).reward == 0  # it was given turn by turn already


def test_one_iteration_trains(tmp_path) -> None:
    model = few_words(tmp_path / "model", "Action: red blue a word not")
    row = run(small(source(id="Guess-v0"), model, EnvironmentReward(success_above=9)), tmp_path)
    summary = row["summary"]
    assert summary["failed"] == 0 and row["trained_tokens"] > 0 and summary["reward"] > summary["success"]


@pytest.mark.slow
def test_the_example_runs(tmp_path) -> None:
    from examples.gymnasium_lake import RECIPE

    model = few_words(tmp_path / "model", "Action: left down right up S F H G [ ]")
    row = run(RECIPE.replace(model=model, iterations=1, episodes_per_iteration=16, evaluation={"tasks": 4}), tmp_path)
    summary = row["summary"]
    assert summary["episodes"] == 16 and summary["failed"] == 0 and summary["invalid"] < 1


def test_an_image_is_shown_as_png_beside_the_words() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    content = seen({"hp": 3, "screen": image, "say": "go"}, "Game")
    assert content == ("hp: 3\nscreen: ", Media(png(image)), "\nsay: go")
    data = png(image)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[8:33] == (
        b"\0\0\0\x0dIHDR\0\0\0\x04\0\0\0\x02\x08\x02\0\0\0" + zlib.crc32(data[12:29]).to_bytes(4, "big")
    )
    rows = zlib.decompress(data[41:-16])
    assert rows == b"\0" + bytes(range(12)) + b"\0" + bytes(range(12, 24)) and data[-8:-4] == b"IEND"


def test_a_large_array_that_is_no_image_is_still_refused() -> None:
    with pytest.raises(EnvFailure, match="shows 3072 numbers of the shape"):
        seen(np.zeros((32, 32, 3)), "Game")
