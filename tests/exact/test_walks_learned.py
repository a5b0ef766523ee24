"""Recipes on walks: the parts that are their own, and their arms."""

from dataclasses import replace

import numpy as np
import pytest
from estimators import all_of, by_formula, episode_of, weighted_scores

from longstride.curriculum import Fixed
from longstride.exact.walks import SearchWalk, Walk, Walked
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import GroupRelative
from longstride.methods.advantages import GAE
from longstride.papers.asyncwebrl import exact as asyncwebrl_stale
from longstride.papers.asyncwebrl import length as asyncwebrl_length
from longstride.papers.reasoning_cache import exact as reasoning_cache_rounds
from longstride.papers.scaling_inter import exact as scaling_inter_walk
from longstride.papers.siri import exact as siri_walk
from longstride.papers.vl_dac import exact as vl_dac_values
from longstride.papers.webagent_r1 import exact as webagent_r1_start
from longstride.papers.webgym import exact as webgym_walk


def after(recipe, iterations: int, seed: int = 0) -> tuple[dict, dict]:  # noqa: ANN001
    """The state and measures of a recipe after some iterations."""
    state = recipe.method.start(recipe.problem, np.random.default_rng(seed))
    for i in range(iterations):
        state = recipe.method.step(recipe.problem, state, np.random.default_rng([seed, i]))
    return state, recipe.problem.measures(state)


def test_a_critic_of_turns_is_asked_before_it_learns_and_goes_towards_the_targets() -> None:
    recipe = vl_dac_values.RECIPE
    method, problem = recipe.method, recipe.problem
    assert isinstance(problem, Walk) and isinstance(method, vl_dac_values.Valued) and isinstance(method.credit, GAE)
    state = method.start(problem, np.random.default_rng(0))
    played = method.collect(problem, state["logits"], state, np.random.default_rng(0))
    assert {turn.estimates["value"] for t in played for turn in t.turns} == {0.0}
    targets = [
        target
        for t, of_episode in zip(played, method.credit.targets(played), strict=True)
        for turn, target in zip(t.turns, of_episode, strict=True)
        if turn.prompt_ids == [0]
    ]
    assert state["values"][0] == pytest.approx(0.5 * np.mean(targets))


def test_values_grow_towards_the_end_of_a_task() -> None:
    values = after(vl_dac_values.RECIPE, 12)[0]["values"]
    assert values[-1] > values[13] > values[9]


def test_a_limit_that_never_binds_changes_nothing_and_one_that_does_shortens() -> None:
    arms = siri_walk.CLAIM.arms
    near = {"depths": (1, 2), "wastes": 0.2, "horizon": 200}
    free = arms["siri"].replace(problem=near, method={"turns": {"high": 200, "low": 160}})
    assert after(free, 4)[1] == after(free.replace(method={"turns": Fixed(limit=200)}), 4)[1]
    assert after(arms["siri"], 14)[1]["length"] < after(arms["long"], 14)[1]["length"]


def test_stages_are_sampled_within_their_horizons() -> None:
    method = scaling_inter_walk.RECIPE.method
    assert isinstance(method, Walked) and [method.turns.at(i) for i in (1, 8, 16, 60)] == [10, 20, 40, 40]
    state = method.start(scaling_inter_walk.RECIPE.problem, np.random.default_rng(0))
    played = method.collect(scaling_inter_walk.RECIPE.problem, state["logits"], state, np.random.default_rng(0))
    assert max(t.length for t in played) == 10 and state["sampled"] == sum(t.length for t in played)


def test_cloning_makes_a_start_that_succeeds_and_none_has_no_gradient() -> None:
    arms = webagent_r1_start.CLAIM.arms
    state, measured = after(arms["cloned"], 0)
    assert measured["success"] > 0.2 and state["samples"] == 3 * 4, "demonstrations cost samples"
    state, measured = after(arms["not_cloned"], 3)
    assert measured["success"] < 1e-3
    np.testing.assert_allclose(state["logits"], after(arms["not_cloned"], 0)[0]["logits"], atol=0.05)


def test_each_difficulty_has_its_horizon_and_a_short_one_lets_fewer_detours_be_imitated() -> None:
    problem, detours = webgym_walk.RECIPE.problem, {}
    for name, turns in (("short", {}), ("long", {"turns": Fixed(limit=40)})):
        method = webgym_walk.RECIPE.method.replace(group=200, **turns)
        assert isinstance(problem, SearchWalk) and isinstance(method, webgym_walk.Imitated)
        state = method.start(problem, np.random.default_rng(0))
        played = method.collect(problem, state["logits"], state, np.random.default_rng(0))
        starts = sorted({t.group for t in played})
        longest = [max(t.length for t in played if t.group == start) for start in starts]
        assert longest == ([6, 12, 24] if name == "short" else [40, 40, 40])
        assert state["sampled"] == sum(t.length for t in played)
        cloned = [s.sampled_ids[0] for s in method.credit(played)]
        assert len(cloned) == sum(t.length for t in played if t.success)
        detours[name] = cloned.count(1) / len(cloned)
    assert detours["short"] < 0.45 < detours["long"]


class Strict(SearchWalk):
    """A `SearchWalk` in which what leads no further ends the episode, so that no success takes a detour."""

    @property
    def world(self) -> tuple[EnumerableMDP, np.ndarray]:
        mdp, seen = super().world
        every, ways = np.arange(len(seen)), mdp.transitions.copy()
        ways[ways[every, :, every] == 1] = np.eye(len(seen))[-1]
        return replace(mdp, transitions=ways), seen


def test_where_nothing_is_forgiven_no_success_takes_a_detour_and_horizons_make_no_difference() -> None:
    problem = Strict(depths=(2,), wastes=0.3, quits=0.3)
    played = problem.play(problem.begin(np.random.default_rng(0)), [0] * 200, 40, np.random.default_rng(0))
    assert {t.length for t in played if t.success} == {3} and max(t.length for t in played) == 3
    arms = {
        name: webgym_walk.CLAIM.arms[name].replace(problem=Strict(depths=(2, 6, 14), wastes=0.1, quits=0.3, horizon=40))
        for name in ("short", "long")
    }
    assert after(arms["short"], 5)[1] == after(arms["long"], 5)[1]


def test_with_fresh_samples_both_ratios_give_the_same_run() -> None:
    arms = asyncwebrl_stale.CLAIM.arms
    fresh = {name: arms[name].replace(method={"staleness": 0}) for name in ("decoupled", "coupled")}
    assert after(fresh["decoupled"], 3)[1] == after(fresh["coupled"], 3)[1]
    assert after(arms["decoupled"], 8)[1]["success"] > after(arms["coupled"], 8)[1]["success"]


def of_pairs(credit: GroupRelative, per_turn: bool = False) -> np.ndarray:
    """The exact mean of the estimate of a group of two, an episode or a turn."""
    mdp, logits = ASTRAY.world[0], START[ASTRAY.world[1], 0]
    total = np.zeros_like(logits)
    for pair, chance in all_of(*[list(mdp.trajectories(logits))] * 2):
        samples = credit([episode_of(path, ordinal=n) for n, path in enumerate(pair)])
        total += chance * weighted_scores(mdp.policy(logits), samples) / (len(samples) if per_turn else 2)
    return total


ASTRAY = asyncwebrl_length.Forks(forks=2, tasks=1, strays=0.3, horizon=6)
START = ASTRAY.begin(np.random.default_rng(0))


def test_a_constant_divisor_has_the_gradient_of_success_and_the_own_length_that_of_its_formula() -> None:
    mdp, seen = ASTRAY.world
    logits, plain = START[seen, 0], GroupRelative(baseline="leave_one_out", normalize="none")
    found = of_pairs(plain.replace(length_divisor=4.0))
    np.testing.assert_allclose(found, mdp.gradient(logits) / 4, atol=1e-12)
    success = mdp.expected_return(logits)
    formula = by_formula(mdp, logits, lambda path, _: (sum(path.rewards) - success) / len(path.actions))
    np.testing.assert_allclose(of_pairs(plain.replace(length_divisor="turns")), formula, atol=1e-12)


def test_where_nothing_can_be_won_a_constant_teaches_nothing_and_the_own_length_to_go_on() -> None:
    constant, by_turns = (of_pairs(GroupRelative(length_divisor=d))[2] for d in (2.0, "turns"))
    np.testing.assert_allclose(constant, 0, atol=1e-12)
    assert by_turns[0] > 0.01
    assert of_pairs(GroupRelative(), per_turn=True)[2][0] > 0.005, "nor is a mean over all turns of a group a constant"
    arms = asyncwebrl_length.CLAIM.arms
    forks, equal = asyncwebrl_length.FORKS, {}
    for name in ("by_turns", "constant"):
        arm = arms[name].replace(problem={"horizon": forks, "ends": False}, method={"turns": Fixed(limit=forks)})
        equal[name] = after(arm, 12)[1]
    assert after(arms["by_turns"], 12)[1]["length"] > after(arms["constant"], 12)[1]["length"] + 1
    assert equal["by_turns"] == equal["constant"]


def test_rounds_begin_where_an_episode_was_and_train_every_place_of_a_context() -> None:
    recipe = reasoning_cache_rounds.RECIPE
    method, problem = recipe.method, recipe.problem
    assert isinstance(problem, reasoning_cache_rounds.Work) and isinstance(method, reasoning_cache_rounds.Summarised)
    state = method.start(problem, np.random.default_rng(0))
    played = method.collect(problem, state["logits"], state, np.random.default_rng(0))
    assert max(t.length for t in played) <= reasoning_cache_rounds.ROUND
    starts = {t.group for t in played}
    assert all(s % reasoning_cache_rounds.ROUND == 0 for s in starts), "a summary begins a context"
    assert starts - set(np.flatnonzero(problem.world[0].start)), "no state but the tasks was begun in"  # type: ignore[attr-defined]


def test_beyond_the_trained_context_the_long_arm_is_as_it_was() -> None:
    arms, trained = reasoning_cache_rounds.CLAIM.arms, reasoning_cache_rounds.ROUNDS * reasoning_cache_rounds.ROUND
    moved = np.abs(after(arms["long"], 4)[0]["logits"] - after(arms["long"], 0)[0]["logits"]).max((1, 2))
    assert (moved[trained:] == 0).all() and (moved[:trained] > 0).any()
    assert after(arms["rounds"], 25)[1]["success"] > after(arms["long"], 25)[1]["success"]
