"""TextWorld: a game is its seed, a quest takes as many commands as its goal is far, and what moves nothing says so."""

import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from longstride.adapters import textworld as adapter
from longstride.adapters.seeded import EnvironmentReward
from longstride.adapters.textworld import Textworld
from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure, MissingExtra
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.starts.textworld_walks import TextworldWalks

SMALL = Textworld(games=2, quest_length=(2, 3), rooms=2, objects=3)


def test_settings_that_make_no_game_are_refused() -> None:
    for bad in ({"quest_length": [5, 2]}, {"quest_length": [1, 31]}, {"rooms": 0}, {"games": 0}):
        with pytest.raises(ConfigError):
            build(TaskSource, {"type": "textworld"} | bad)


def test_training_and_held_out_games_share_no_seed_and_their_distances_are_those_of_their_quests() -> None:
    train, test = SMALL.sample(random.Random(0), 40), SMALL.held_out(4)
    assert {t.meta["seed"] for t in train} == {0, 1} and not {t.id for t in train} & {t.id for t in test}
    assert [t.optimal for t in test] == [SMALL.length(t.meta["seed"]) for t in test]
    assert {t.optimal for t in [*train, *test]} == {2, 3}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Games are made once for all tests: a few seconds each."""
    pytest.importorskip("textworld", reason="needs pip install 'longstride[textworld]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.usefixtures("cache")
class TestGames:
    def play(self, *texts: str, task: int = 0) -> Trajectory:
        plan = Plan(SMALL.held_out(2)[task], 0, 0, Budget(turns=len(texts)))
        return Pool(ScriptedPlayer(lambda e: texts[e.turns]), SMALL.env, EnvironmentReward()).run([plan])[0]

    @pytest.mark.parametrize("task", [0, 1])
    def test_the_walkthrough_does_the_quest_in_as_many_commands_as_it_is_far(self, task: int) -> None:
        game = SMALL.held_out(2)[task]
        found = self.play(*SMALL.demonstrate(game), task=task)
        assert found.success and found.reward == 1 and found.length == game.optimal
        assert not self.play(*SMALL.demonstrate(game)[:-1], task=task).success

    def test_a_game_whose_walkthrough_is_shorter_than_its_quest_is_made_anew(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, tried = SMALL.replace(objects=4), []

        def second(path: Path, length: int) -> bool:
            tried.append(path.read_bytes())
            return len(tried) > 1

        monkeypatch.setattr(adapter, "_takes", second)
        assert source.game(0).read_bytes() == tried[1] != tried[0] and len(tried) == 2

    def test_a_command_that_moves_nothing_is_explained_by_the_game(self) -> None:
        found = self.play("Action: dance", "Action: look", "", *SMALL.demonstrate(SMALL.held_out(1)[0]))
        assert [turn.changed for turn in found.turns[:4]] == [False, False, False, True]
        assert found.turns[0].error == "That's not a verb I recognise." and found.turns[2].action is None
        assert found.success

    def test_a_page_has_the_room_what_is_carried_and_the_commands(self) -> None:
        (turn,) = self.play("Action: look").turns
        first, second, *commands = str(turn.observation).split("\n")
        assert "[" not in first and second.startswith("You are carrying") and "look" in commands
        (step,) = SMALL.demonstrate(SMALL.held_out(1)[0])[:1]
        assert step.removeprefix("Action: ") in commands

    def test_walks_look_at_things_on_training_games_only(self) -> None:
        walks = TextworldWalks(tasks=SMALL, episodes=4, begins=0.6)
        some = list(islice(walks.demonstrations(0), 6))
        assert some[4:] == some[:2] and next(walks.demonstrations(0, first=3)) == some[3]
        assert {shown.task.split for shown in some} == {"train"}
        assert any(len(shown.texts) > (shown.task.optimal or 0) for shown in some)

    def test_a_game_that_cannot_be_made_costs_its_episode(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(options: object) -> None:
            raise ValueError("no such grammar")

        monkeypatch.setattr("textworld.make", broken)
        with pytest.raises(EnvFailure, match="making a game of 9 commands with 1 rooms .* no such grammar"):
            Textworld(quest_length=(9, 9), rooms=1).game(0)


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(MissingExtra, match=r"longstride\[textworld\]"):
        SMALL.game(0)
