"""The horizon card: a forecast that is written before it is measured, exact continuation, tokens all counted."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import make_trajectory

from longstride import papers
from longstride.cli.main import main
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Usage
from longstride.models.load import Policy, load_policy
from longstride.report.card import as_text, write_card
from longstride.run.card import _sampled, measure_card
from longstride.run.evaluation import evaluate_policy, go_on, language_player
from longstride.run.recipe import Recipe

TASKS, EARLY, LATE = 12, 4, 8


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("base-wander")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    found = papers.load("tti")
    assert isinstance(found, Recipe)
    return found.replace(engine={"type": "local"}, evaluation={"tasks": TASKS}, test_budget={"turns": LATE})


def test_episodes_that_go_on_are_those_of_the_larger_budget(policy: Policy, recipe: Recipe) -> None:
    short, long = (
        evaluate_policy(policy, recipe.replace(test_budget={"turns": n})).trajectories for n in (EARLY, LATE)
    )
    cut = [k for k, t in enumerate(short) if t.stop.truncated]
    assert 0 < len(cut) < TASKS
    gone_on = go_on(language_player(policy, recipe, testing=True), recipe, [short[k] for k in cut], LATE)
    for k, t in zip(cut, gone_on, strict=True):
        assert [turn.ids for turn in t.turns] == [turn.ids for turn in long[k].turns]
        assert (t.stop, t.success, t.answer) == (long[k].stop, long[k].success, long[k].answer)


def test_the_forecast_is_handed_out_before_anything_beyond_it_is_played(
    policy: Policy, recipe: Recipe, tmp_path: Path
) -> None:
    began: list[str] = []
    seen: list[tuple[dict[str, Any], list[str]]] = []

    def watch(name: str) -> Any:
        began.append(name)
        return lambda done, total: None

    card = measure_card(
        language_player(policy, recipe, testing=True), recipe, recipe.tasks.held_out(TASKS), samples=2, watch=watch,
        written=lambda card: seen.append((json.loads(json.dumps(card)), list(began))),
    )  # fmt: skip
    ((early, played),) = seen
    assert played == [f"{EARLY} turns"] and began[1] == f"{LATE} turns"
    assert "measured" not in early and early["forecast"] == card["forecast"]
    assert card["forecast"]["at"] == LATE and len(card["curve"]) == LATE
    assert card["curve"][EARLY - 1]["success"] == card["forecast"]["success"]
    assert card["curve"][-1]["success"] == card["measured"]["success"]

    settings = {s["name"]: s for s in card["spending"]["settings"]}
    assert settings["8 turns"]["success"] == card["measured"]["success"]
    assert settings["8 turns"]["tokens"] < settings["2 samples of 8 turns"]["tokens"]
    assert {s["kind"] for s in settings.values()} == {"turns", "samples", "checks", "thoughts"}

    card |= {"policy": "</script><img src=x>", "command": "longstride card"}
    page = write_card(card, tmp_path / "card.html").read_text()
    assert "<img" not in page and "Predicted at 8 turns, from 4" in page and "What tokens are best spent on" in page
    early |= {"policy": "base", "command": ""}
    assert "not measured yet" in as_text(early)
    assert "best spent on" not in write_card(early, tmp_path / "early.html").read_text()


def test_the_hash_is_of_the_prediction_and_of_what_it_was_made_of(policy: Policy, recipe: Recipe) -> None:
    player, tasks = language_player(policy, recipe, testing=True), recipe.tasks.held_out(4)
    one, two = (measure_card(player, recipe, tasks[:n], samples=1)["forecast"] for n in (3, 4))
    assert len(bytes.fromhex(one["sha256"])) == hashlib.sha256().digest_size
    assert one["sha256"] != two["sha256"]


def test_a_budget_of_one_turn_is_refused(policy: Policy, recipe: Recipe) -> None:
    with pytest.raises(ConfigError, match="--budget"):
        measure_card(language_player(policy, recipe, testing=True), recipe, recipe.tasks.held_out(2), budget=1)


def test_the_command_keeps_card_and_page_and_counts_tokens_where_an_episode_is_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["card", "base-puzzles", "--tasks", "8", "--budget", "16", "--samples", "1"]) == 0
    said = capsys.readouterr().out
    card = json.loads((tmp_path / "card-base-puzzles" / "card.json").read_text())
    assert card["unit"] == "tokens" and card["forecast"]["at"] == 32
    assert "within 32 tokens" in said and (tmp_path / "card-base-puzzles" / "card.html").is_file()


def test_tokens_of_samples_are_those_that_a_server_counts_where_it_gives_no_ids() -> None:
    trajectory = make_trajectory(3)
    for turn in trajectory.turns:
        turn.sampled_ids, turn.usage = [], Usage(requests=1, sampled=5)
    assert _sampled([[trajectory, trajectory]], turns=2, n=2).tokens == [20.0]
