"""Plans: tokens and layouts computed by hand, shapes of public models, a machine by a run of it, the command."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import trajectories_of
from one_page import make_recipe, save_model

from longstride.cli.main import main
from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.models.public import PUBLIC, described
from longstride.papers.naming import find_experiment
from longstride.rollout.context import FullHistory, LatestObservation, RecentObservations
from longstride.run.cards import CARDS, Sourced
from longstride.run.demand import PLACEHOLDER, Demand, demand_of, measured
from longstride.run.loop import train
from longstride.run.plan import NOT_COUNTED, TURN, UTILISATION, CardLayout, CardPlanner, Shape, forecast
from longstride.run.recipe import Recipe

ASSUMED = {"tokens": 10.0, "page": 100.0, "head": 50.0, "latency": 0.0, "ends": 0.0}
Make = Callable[..., CardPlanner]
APART = ("engine.type=http",)


def recipe(name: str = "tti/published", **changes: Any) -> Recipe:
    found = find_experiment(name)
    assert isinstance(found, Recipe)
    return found.replace(**changes)


def demand(context: object, turns: int = 3, **changes: Any) -> Demand:
    return demand_of(recipe(context=context, budget={"turns": turns}, **changes), assumed=ASSUMED)


@pytest.fixture
def planner() -> Iterator[Make]:
    """Makes planners for H100s of a public model, and changes of a recipe whose context grows."""
    with ExitStack() as stack:

        def make(model: str = "Qwen/Qwen3-0.6B", **changes: Any) -> CardPlanner:
            folder = stack.enter_context(described(model))
            return CardPlanner(demand(FullHistory(), model=folder, **changes), Shape.of(folder), CARDS["H100"])

        yield make


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_model_has_as_many_parameters_as_is_said_of_it(name: str) -> None:
    with described(name) as folder:
        assert Shape.of(folder).parameters == pytest.approx(PUBLIC[name][1] * 1e9, rel=0.005)


def test_a_prompt_that_grows_is_read_once_and_learned_as_one_row() -> None:
    w = demand(FullHistory())
    turns = w.turns(w.recipe.budget, 1)
    assert [t.prompt for t in turns] == [150, 260, 370]
    assert [t.new for t in turns] == [150, 100, 100]
    assert [t.learned for t in turns] == [160, 110, 110] and turns[-1].row == 380


def test_where_older_pages_are_left_out_the_last_turn_is_read_again_and_rows_branch_while_they_are_short() -> None:
    w = demand(RecentObservations())
    turns = w.turns(w.recipe.budget, 1)
    assert [t.prompt for t in turns] == [150, 164, 178]
    assert [t.new for t in turns] == [150, 114, 114]
    # of 174 tokens 50 are shared, of 188 tokens 64: a quarter and more
    assert [t.learned for t in turns] == [160, 124, 124]
    short = demand(RecentObservations(), learner={"micro_tokens": 300})
    assert [t.learned for t in short.turns(short.recipe.budget, 1)] == [160, 124, 188]


def test_a_context_of_the_latest_page_alone_shares_its_head() -> None:
    w = demand(LatestObservation())
    assert [(t.prompt, t.new) for t in w.turns(w.recipe.budget, 1)] == [(150, 150), (150, 100), (150, 100)]


def test_episodes_that_end_by_themselves_reach_later_turns_less_often() -> None:
    w = replace(demand(FullHistory()), ends=Sourced(0.5, "assumed", ""))
    assert [t.reached for t in w.turns(w.recipe.budget, 1)] == [1, 0.5, 0.25]


def test_a_budget_of_tokens_or_tool_calls_leaves_room_for_fewer_turns_than_it_names() -> None:
    limited = {"turns": 8, "tokens": 35, "tool_calls": 6}
    for left_out, turns in (("", 4), ("tokens", 6), ("tool_calls", 4)):
        w = demand(FullHistory())
        w = replace(w, recipe=w.recipe.replace(budget={k: v for k, v in limited.items() if k != left_out}))
        assert len(w.turns(w.recipe.budget, 1)) == turns
        assert w.most_turns(w.recipe.budget, 1) == (turns,) * 3


def test_pages_of_a_run_are_as_large_as_they_are_before_older_ones_are_left_out_and_behind(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model")
    changes = {"iterations": 1, "episodes_per_iteration": 40, "budget": {"turns": 4, "turn_tokens": 3}}
    found: dict[int, dict[str, Sourced]] = {}
    for keep in (2, 4):
        small = make_recipe(model, context=RecentObservations(keep=keep), **changes)
        train(small, tmp_path / str(keep))
        found[keep] = measured(tmp_path / str(keep))
    episodes = trajectories_of(tmp_path / "4")
    page = next(
        len(b.prompt_ids) - len(a.prompt_ids) - len(a.sampled_ids) for t in episodes for a, b in pairwise(t.turns)
    )
    assert found[4]["page"].value == page
    assert found[4]["head"].value == len(episodes[0].turns[0].prompt_ids) - page
    assert found[2]["page"].value == pytest.approx(page, abs=PLACEHOLDER / 2)


def test_an_episode_whose_budget_of_tokens_ran_out_did_not_end_by_itself(tmp_path: Path) -> None:
    small = make_recipe(
        save_model(tmp_path / "model"), iterations=1, budget={"turns": 9, "turn_tokens": 3, "tokens": 5}
    )
    train(small, tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    by_themselves = sum(t.stop is StopReason.ANSWERED for t in episodes)
    assert (
        0 < by_themselves < sum(t.stop in (StopReason.ANSWERED, StopReason.TOKENS) for t in episodes) == len(episodes)
    )
    assert measured(tmp_path / "run")["ends"].value == by_themselves / sum(t.length for t in episodes)


def test_a_pool_of_each_learner_shares_its_episodes_out_among_all_engines(planner: Make) -> None:
    p = planner(tasks={"browser": "chromium"})
    assert p.recipe.tasks.at_once == 8 and p.recipe.episodes_per_iteration > 7 * 8
    for engines, learners in ((7, 1), (1, 7), (4, 4)):
        found = p.plan(CardLayout(engines, 1, learners, False, APART))
        assert found.in_flight * engines == pytest.approx(8 * learners)
    assert p.plan(CardLayout(4, 1, 4, True, ("engine.type=local",))).in_flight == 8


def test_a_decoding_pass_takes_the_longest_of_launching_reading_and_computing(
    planner: Make,
) -> None:
    p = planner()
    limits = p.limits(p.served, 64, 1000)
    kept = 64 * 1000 * 28 * 2 * 8 * 128 * 2
    assert limits["memory bandwidth"] == pytest.approx((2 * p.shape.parameters + kept) / (0.6 * 3.35e12))
    assert limits["launching of kernels"] == pytest.approx(0.002)
    work = 64 * (2 * p.shape.computed + 4 * 28 * 16 * 128 * 1000)
    assert limits["operations"] == pytest.approx(work / (0.4 * 989e12))
    # four cards share bytes and operations, and each launches all kernels
    shared = p.limits(p.served, 64, 1000, tensor=4)
    assert {name: limits[name] / shared[name] for name in limits} == pytest.approx(
        {"launching of kernels": 1, "memory bandwidth": 4, "operations": 4}
    )


def test_utilisation_is_that_of_the_nearest_simulation_and_a_turn_takes_what_was_measured(planner: Make) -> None:
    kept = json.loads((Path(__file__).parents[2] / "benchmarks/scheduler.json").read_text(encoding="utf-8"))
    rows = {row["name"]: row["value"] for row in kept["rows"]}
    known = {
        f"{ahead} ahead, {n} under way a place: utilisation": share
        for ahead, by in UTILISATION.items()
        for n, share in by.items()
    }
    assert known == pytest.approx({name: rows[name] for name in known}, rel=0.005)
    assert len(known) == sum(name.endswith("way a place: utilisation") for name in rows)
    assert 1e6 * TURN.value == pytest.approx(rows["256 in flight: cost of a turn"], abs=0.5)
    found = {n: planner(pool={"staleness": 2}).utilisation(n) for n in (0.5, 2, 100)}
    assert [found[n].value for n in found] == list(UTILISATION[1].values())
    assert "1 ahead, 4 under way a place" in found[2].source


def test_an_engine_that_sleeps_does_not_sample_ahead(planner: Make) -> None:
    names = [[str(layout) for layout in planner(pool={"staleness": s}).layouts(1)] for s in (0, 1)]
    assert names == [
        ["one card for both, local engine", "one card for both, vLLM engine"],
        ["one card for both, local engine"],
    ]


def test_a_layout_names_its_engines_and_how_many_there_are() -> None:
    served = ("engine.type=http", "engine.weights.type=nccl")
    assert str(CardLayout(1, 4, 1, False, served)) == "1 vLLM engine of 4 cards, 1 learner"
    assert str(CardLayout(2, 1, 6, False, served)) == "2 vLLM engines, 6 learners"
    local = CardLayout(8, 1, 8, True, ("engine.type=local", "learner.sharded=true"))
    assert str(local) == "8 cards, each samples and learns, local engine"


def test_layers_that_see_a_window_keep_no_more_than_it() -> None:
    with described("google/gemma-3-12b-it") as folder:
        shape = Shape.of(folder)
    assert shape.kept(4096) == 2 * 8 * 256 * 2 * (8 * 4096 + 40 * 1024)


def test_learners_share_weights_and_moments_and_each_makes_the_weights_whole(
    planner: Make,
) -> None:
    p = planner()
    one, four = (p.plan(CardLayout(1, 1, n, False, APART)).learner for n in (1, 4))
    names = [name for name in one if name.startswith(("weights (", "gradients", "optimiser"))]
    assert len(names) == 3 and all(four[name] == pytest.approx(one[name] / 4) for name in names)
    assert "weights made whole for engines" not in one
    assert four["weights made whole for engines"] == 4 * p.shape.parameters


def test_an_update_beside_rollouts_costs_no_time_of_theirs(planner: Make) -> None:
    layout = CardLayout(4, 1, 4, False, APART)
    turn, ahead = (planner(pool={"staleness": s}).plan(layout) for s in (0, 1))
    *rollout, learning, weights = (phase.seconds for phase in ahead.phases)
    assert ahead.iteration == pytest.approx(max(sum(rollout), learning) + weights)
    assert turn.iteration == pytest.approx(sum(phase.seconds for phase in turn.phases))


def test_a_step_of_fewer_rows_than_learners_is_as_slow_as_a_row(planner: Make) -> None:
    # 32 turns a step of episodes of 32 turns: one row
    p = planner(turns=32)
    few, many = (p.plan(CardLayout(1, 1, n, False, APART)).phases[-2] for n in (2, 6))
    assert few.seconds == pytest.approx(many.seconds) and many.bound == "steps of 1.0 rows, fewer than learners"


def test_the_best_layout_comes_first_and_what_does_not_fit_last(planner: Make) -> None:
    plans = planner().best(4)
    assert [p.layout.cards for p in plans] == [4] * len(plans)
    fitting = [p.hours for p in plans if p.fits]
    assert fitting == sorted(fitting) and fitting and plans[0].fits


@pytest.mark.slow
def test_a_recipe_that_does_not_fit_is_told_what_would() -> None:
    found = forecast(recipe(model="Qwen/Qwen3-4B"), 1, CARDS["H100"])
    assert not found.best.fits and found.better and found.better[0] == "learner.lora={}"
    assert all(fact.kind in ("measured", "derived", "assumed") and fact.source for fact in found.facts.values())


def test_a_run_foretells_what_its_own_iterations_took(tmp_path: Path) -> None:
    small = make_recipe(save_model(tmp_path / "model"), iterations=2)
    train(small, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    took = [r["rollout_seconds"] + r["train_seconds"] for r in rows if r["kind"] == "train"]
    best = forecast(small, run=tmp_path / "run").best
    assert best.iteration == pytest.approx(math.fsum(took) / 2, rel=0.3)
    twice = small.replace(episodes_per_iteration=2 * small.episodes_per_iteration)
    again = forecast(twice, run=tmp_path / "run").best
    assert again.phases[0].seconds == pytest.approx(2 * best.phases[0].seconds)
    with pytest.raises(ConfigError, match="--assume latency: .* is in the seconds of .*; give --card too"):
        forecast(small, run=tmp_path / "run", assumed={"latency": 1.0})


def test_the_command_answers_with_a_page_or_an_object_and_in_one_line_where_it_cannot(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["plan", "grpo", "model=Qwen/Qwen3-0.6B", "--card", "h100"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "layout: one card for both, vLLM engine" in text and "card-hours" in text and "assumed" in text
    assert text.endswith(f"Not counted: {NOT_COUNTED}.\n")
    assert main([*asked, "--json", "--assume", "page=10"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["best"]["fits"] and data["facts"]["page"] == {
        "value": 10.0,
        "kind": "assumed",
        "source": "given with the command",
    }
    for more, said in (
        (["model=Qwen/Qwen3-0.6B"], "which card? Give --card H100"),
        (["model=Qwen/Qwen3-0.6B", "--card", "H101"], "did you mean 'H100'"),
        (["model=Qwen/Qwen3-7B", "--card", "H100"], "did you mean 'Qwen/Qwen3-"),
        (["model=Qwen/Qwen3-0.6B", "--card", "H100", "--assume", "pages=3"], "did you mean 'page'"),
        (["model=Qwen/Qwen3-0.6B", "--card", "H100", "--assume", "page"], "expected NAME=NUMBER"),
        (
            ["model=Qwen/Qwen3-0.6B", "--card", "H100", "--assume", "ends=1.5"],
            "ends=1.5: expected a chance, from 0 to 1",
        ),
        (["model=Qwen/Qwen3-0.6B", "--card", "H100", "--assume", "tokens=0"], "tokens=0: expected a number above 0"),
        (["model=Qwen/Qwen3-0.6B", "--card", "H100", "--assume", "head=-1"], "head=-1: expected a number of 0 or more"),
    ):
        assert main(["plan", "grpo", *more]) == 2
        assert said in capsys.readouterr().err
    assert main(["plan", "cql", "--card", "H100"]) == 2
    assert "plans are for language agents" in capsys.readouterr().err
