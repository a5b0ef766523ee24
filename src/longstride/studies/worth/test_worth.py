"""The worth of a turn: an episode goes on exactly where it was cut, the gain is unbiased by enumeration, limits find their
optimum, and a run that was stopped goes on with the same limits."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from helpers import (
    Collected,
    make_planner,
    make_task,
    make_trajectory,
    make_turn,
    played,
    rows_of,
    run_stages,
    trajectories_of,
    weights_hash,
)
from one_page import Watcher, make_recipe, save_model

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import MEASURED, Trajectory
from longstride.curriculum import BudgetSchedule
from longstride.envs.puzzles import ModularChain
from longstride.methods import OnPolicy
from longstride.rollout import Plan, Trial
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.loop import train
from longstride.studies.worth.method import FEW, Onward, WatchedEpisodes, Worth, curves, gains
from longstride.studies.worth.worlds import RECIPE, WORTH, DrawnErrands

CUT = StopReason.TURNS


def cut(ordinal: int = 0, turns: int = 2, **fields: Any) -> Trajectory:
    """An episode that its turns cut."""
    found = [make_turn([ordinal, k], [k]) for k in range(turns)]
    return make_trajectory(found, **{"ordinal": ordinal, "stop": CUT, "budget": Budget(turns=turns), **fields})


def further(before: Trajectory, turns: int, success: bool) -> Trajectory:
    """What an episode comes to that goes on and ends after so many turns, or is cut."""
    again = [make_turn((), [*t.prompt_ids, *t.ids], given=len(t.ids)) for t in before.turns]
    stop = StopReason.ENV_ENDED if success else CUT
    turns_of = [*again, *(make_turn([9, k]) for k in range(turns))]
    return replace(before, turns=turns_of, history=len(again), role=MEASURED, success=success, stop=stop)


class TestOnward:
    def plan(self, episodes: Sequence[Trajectory], **fields: Any) -> tuple[list[list[Plan]], list[Trajectory]]:
        """The rounds of a sampler whose first round comes to these episodes, and whose second goes on for a turn."""
        given = iter(episodes)

        def play(plan: Plan) -> Trajectory:
            if plan.role != MEASURED:
                t = next(given)
                return replace(t, ordinal=plan.ordinal, seed=plan.seed, task=t.task, group=plan.group)
            return further(next(t for t in episodes if t.turns[0].ids == list(plan.history[0].ids)), 1, True)

        return run_stages(Onward(share=1.0, turns=4, **fields).plan(make_planner(ModularChain())), play)

    def test_what_its_turns_cut_goes_on_from_there_in_an_environment_of_the_same_seed(self):
        ended = [played(p) for p in make_planner(ModularChain()).group(make_task(), 7)]
        (first, second), episodes = self.plan([cut(7, turns=3), *ended])
        (onward,) = second
        assert (onward.ordinal, onward.group, onward.role, onward.seed) == (8, 8, MEASURED, first[0].seed)
        assert [past.ids for past in onward.history] == [(7, 0), (7, 1), (7, 2)] and onward.budget == Budget(turns=7)
        assert len(episodes) == 9 and episodes[-1].role == MEASURED

    def test_what_has_nothing_to_gain_does_not_go_on(self):
        own_limit = cut(task=make_task(horizon=2))
        others = [make_trajectory(stop=s) for s in (StopReason.ANSWERED, StopReason.TOKENS, StopReason.INFRA_FAILURE)]
        (_, second), _ = self.plan([own_limit, cut(reward=1.0), *others, *others])
        assert second == []

    def test_a_share_goes_on_and_the_draw_does_not_look_at_the_episode(self):
        planner = make_planner(ModularChain(), episodes=400, size=1)
        rounds, _ = run_stages(
            Onward(share=0.25).plan(planner),
            lambda p: further(cut(), 1, False) if p.role else cut(p.ordinal),
        )
        assert 75 <= len(rounds[1]) <= 125  # two and a half standard deviations
        odd = sum(p.history[0].ids[0] % 2 for p in rounds[1])
        assert 0.3 < odd / len(rounds[1]) < 0.7

    def test_an_environment_that_does_not_repeat_itself_is_named(self, caplog: pytest.LogCaptureFixture):
        def play(plan: Plan) -> Trajectory:
            t = further(cut(), 1, True) if plan.role else cut()
            for turn in t.turns:
                turn.observation = f"page {plan.ordinal}"
            return t

        with caplog.at_level(logging.WARNING):
            run_stages(Onward(share=1.0).plan(make_planner(ModularChain(), episodes=2, size=1)), play)
        assert "2 of 2 episodes that went on saw something else" in caplog.text

    def test_an_episode_of_a_trial_is_refused(self):
        planner = make_planner(ModularChain(), trial=Trial(episodes=2))
        with pytest.raises(ConfigError, match=r"set trial\.episodes=1"):
            run_stages(Onward(share=1.0).plan(planner), lambda p: cut(ordinal=p.ordinal))

    def test_what_only_measures_is_never_trained_on(self):
        assert [OnPolicy().admits(t.record()) for t in (cut(), further(cut(), 1, True))] == [True, False]


class TestGains:
    def test_they_are_unbiased_under_the_draw_by_enumeration(self):
        """Three cut episodes that would succeed after 1, 3 and never; each goes on with probability a third."""
        episodes, ends = [cut(k) for k in range(3)], (1, 3, None)
        expected, none = {1: 0.0, 2: 0.0, 4: 0.0}, 0.0
        for drawn in product((True, False), repeat=3):
            probability = prod(1 / 3 if went_on else 2 / 3 for went_on in drawn)
            went_on = [further(e, n or 4, n is not None) for e, n, d in zip(episodes, ends, drawn, strict=True) if d]
            if not went_on:
                none += probability
                continue
            found = gains([*episodes, *went_on], turns=(1, 2, 4))["easy"]
            assert {g.episodes for g in found.values()} == {len(went_on)}
            for k, gain in found.items():
                expected[k] += probability * gain.mean
        assert {k: e / (1 - none) for k, e in expected.items()} == pytest.approx({1: 1 / 3, 2: 1 / 3, 4: 2 / 3})

    def test_a_band_has_its_mean_and_its_standard_error(self):
        hard = [cut(k, task=make_task(difficulty="hard")) for k in range(4)]
        found = gains([*hard, cut(9), *(further(t, 1, k < 1) for k, t in enumerate(hard))])
        assert found.keys() == {"hard"} and found["hard"][8][:2] == (4, 0.25)
        assert found["hard"][1].error == pytest.approx(0.5 / 2)  # the sample's deviation is a half

    def test_an_episode_that_saw_something_else_says_nothing(self):
        other = further(cut(), 1, True)
        other.turns[1].observation = "another page"
        assert gains([cut(), other]) == {}


def watched(*rows: tuple[int, int, bool, bool], times: int = FEW) -> WatchedEpisodes:
    after, length, success, ended = map(np.array, zip(*rows * times, strict=True))
    return WatchedEpisodes(after, length, success, ended)


def test_curves_are_those_computed_by_hand():
    """Of six, one ends in turn 1 without a success and one in turn 2 with one; four are cut after 2, of which two go on:
    one succeeds in turn 3, the other is cut after 4."""
    cuts = [(0, 2, False, False)] * 4
    f, c = curves(watched((0, 1, False, True), (0, 2, True, True), *cuts, (2, 3, True, True), (2, 4, False, False)))
    assert f == pytest.approx([0, 1 / 6, 1 / 6 + 4 / 6 * 1 / 2, 1 / 6 + 4 / 6 * 1 / 2])
    assert c == pytest.approx([1, 1 + 5 / 6, 1 + 5 / 6 + 4 / 6, 1 + 5 / 6 + 4 / 6 + 2 / 6])


def test_a_turn_in_which_few_were_watched_says_nothing():
    f, _ = curves(watched((0, 2, False, False), (2, 4, True, True), times=FEW - 1))
    assert len(f) == 0
    few = watched((0, 2, False, False), times=20), watched((2, 4, True, True), times=FEW - 1)
    f, _ = curves(WatchedEpisodes(*map(np.concatenate, zip(*few, strict=True))))
    assert len(f) == 2


@pytest.mark.parametrize("seeks", ["signal", "success"])
def test_a_limit_rises_to_where_a_step_brings_most(seeks: Any):
    """Of ten, two succeed in turn 4; of the others three in eight do in turn 6: .25 / 5.6 is more than .16 / 4."""
    ended = [(0, 4, True, True)] * 2 + [(0, 4, False, False)] * 8
    went_on = [(4, 6, True, True)] * 3 + [(4, 12, False, False)] * 5
    assert Worth(start=4, limit=20, seeks=seeks).after(4, watched(*ended, *went_on)) == 6


def test_a_limit_falls_where_its_last_turns_bring_nothing_and_moves_by_at_most_a_step():
    seen = watched(*[(0, 3, True, True)] * 5, *[(0, 12, False, False)] * 5)
    schedule = Worth(start=12, limit=20, step=4)
    assert [schedule.after(12, seen), schedule.after(8, seen), schedule.after(5, seen)] == [8, 4, 3]


def test_a_band_without_a_success_gets_all_the_turns_that_were_watched():
    seen = watched(*[(0, 4, False, False)] * 8, (4, 12, False, False))
    assert Worth(start=4, limit=20).after(4, seen) == 12 and Worth(start=4, limit=10).after(4, seen) == 10
    assert Worth(start=4, limit=20).after(4, watched((0, 4, False, False), times=1)) == 4


def test_what_is_certain_teaches_nothing():
    """All succeed in turn 3 or, half of them, in turn 2."""
    seen = watched((0, 2, True, True), (0, 3, True, True))
    assert Worth(start=4, limit=9).after(4, seen) == 2 and Worth(start=4, limit=9, seeks="success").after(4, seen) == 3


def test_it_reads_the_episodes_of_its_difficulty_and_moves_once_an_iteration():
    easy = [make_trajectory(2, float(k % 2), iteration=1) for k in range(4 * FEW)]
    hard = [cut(turns=4, iteration=1, task=make_task(difficulty="hard")) for _ in range(2 * FEW)]
    onward = [further(t, 8, False) for t in hard[:FEW]]
    late = [make_trajectory(1, 1.0, iteration=2)] * FEW  # of the iteration that is planned
    past, schedule = Collected([*easy, *hard, *onward, *late]), Worth(start=4, limit=20)
    assert [schedule.at(1, d, past) for d in ("easy", "hard")] == [4, 4]
    assert [schedule.at(2, d, past) for d in ("easy", "hard", "hard", "medium")] == [2, 12, 12, 4]
    assert schedule.at(1, "hard", past) == 4 and past.memory(schedule)["hard"] == [4, 12]
    with pytest.raises(ConfigError, match="worth goes by the episodes of earlier iterations"):
        schedule.at(1)


def test_a_schedule_whose_episodes_never_go_on_says_so(caplog: pytest.LogCaptureFixture):
    past = Collected([cut(iteration=1) for _ in range(100)])
    with caplog.at_level(logging.WARNING):
        Worth(start=2, limit=9).at(2, "easy", past)
    assert "set the sampler" in caplog.text


@pytest.mark.parametrize("seed", range(3))
def test_where_habits_stand_still_the_limits_have_nearly_the_largest_worth_of_a_step(seed: int):
    problem, method = DrawnErrands(quits=(0.05, 0.15)), WORTH.replace(rate=0.0, steps=10**6, episodes=256)
    state = method.start(problem, np.random.default_rng(seed))
    assert problem.measures(state)["reached"] < 0.9
    for i in range(12):
        state = method.step(problem, state, np.random.default_rng([seed, i]))
    assert problem.measures(state)["reached"] > 0.9


def test_curves_of_episodes_that_a_limit_cut_are_those_that_are_computed():
    """Of 40,000 episodes under a limit of 10, half of which go on for 8 turns: four standard errors are .02."""
    problem = DrawnErrands(pages=(10, 10))
    method = WORTH.replace(
        rate=0.0, episodes=40_000, onward={"share": 0.5}, schedule=Worth(start=10, limit=28, step=1, window=1)
    )
    state = method.step(problem, method.start(problem, np.random.default_rng(0)), np.random.default_rng(1))
    rows = state["seen"][state["seen"][..., 0] == 1].T
    f, c = curves(WatchedEpisodes(rows[1], rows[2], rows[3] > 0, rows[4] > 0))
    expected = problem.by_band(state)[1]
    assert len(f) == 18
    assert f == pytest.approx(expected[:18, 1], abs=0.02) and c == pytest.approx(expected[:18, 3], rel=0.01)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory):
    """A run of a policy from scratch, and the same one stopped after its third iteration."""
    folder = tmp_path_factory.mktemp("worth")
    recipe = make_recipe(
        save_model(folder / "model"),
        iterations=4,
        episodes_per_iteration=24,
        budget=BudgetSchedule(turns=Worth(start=3, limit=4, step=1), turn_tokens=3),
        sampler=Onward(share=0.6, turns=2),
    )
    train(recipe, folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, folder / "resumed", Watcher(stop_after=3))
    train(recipe, folder / "resumed", resume=True)
    return folder


def test_a_stopped_run_goes_on_with_the_limits_of_one_that_was_not(runs):
    rows, again = (rows_of(runs / name, "train") for name in ("whole", "resumed"))
    limits = [row["horizon"]["easy"] for row in rows]
    assert rows == again and weights_hash(runs / "whole") == weights_hash(runs / "resumed")
    assert limits[0] == 3 and len(set(limits)) > 1
    checkpoint = latest_checkpoint(runs / "resumed")
    assert checkpoint is not None and checkpoint.numbers["memory"]["budget.turns"]["easy"] == limits


def test_in_a_run_what_went_on_saw_and_did_the_same_and_no_token_counts_twice(runs):
    episodes = trajectories_of(runs / "whole")
    onward = [t for t in episodes if t.role == MEASURED]
    assert len(onward) > 10 and [t.ordinal for t in episodes] == list(range(len(episodes)))
    for t in onward:
        before = next(e for e in episodes if (e.seed, e.role) == (t.seed, "") and e.iteration == t.iteration)
        assert [u.ids for u in t.turns[: t.history]] == [u.ids for u in before.turns]
        assert [u.observation for u in t.turns[: t.history]] == [u.observation for u in before.turns]
        assert not any(u.sampled_ids for u in t.turns[: t.history]) and t.turns[t.history].sampled_ids
        assert t.history < t.length <= t.history + 2 and before.stop is CUT
    assert gains(episodes)["easy"][2].episodes == len(onward)
    rows = rows_of(runs / "whole", "train")
    assert [row["summary"]["env_steps"] for row in rows] == [
        sum(t.length for t in episodes if t.iteration == i) for i in range(1, 5)
    ]


def test_the_recipe_of_the_claim_is_drawn_by_its_seed():
    worlds = [RECIPE.method.start(RECIPE.problem, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert worlds[0]["0.begins"] == worlds[1]["0.begins"] != worlds[2]["0.begins"]
