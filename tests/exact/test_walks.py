"""Walks: exact measures against sampled episodes, and that the library's losses have the exact gradient."""

import numpy as np
import pytest

from longstride.core.budget import StopReason
from longstride.curriculum import Fixed
from longstride.exact.learner import gradient
from longstride.exact.walks import SearchWalk, Walked
from longstride.methods import Constant, GroupRelative, Reinforce

PROBLEM = SearchWalk(depths=(1, 3), wastes=0.3, quits=0.2, horizon=6)
LOGITS = PROBLEM.begin(np.random.default_rng(0))
STARTS = np.flatnonzero(PROBLEM.world[0].start)
METHOD = Walked(credit=GroupRelative(), loss=Reinforce(), turns=Fixed(limit=6))


def test_success_and_length_are_those_of_sampled_episodes() -> None:
    played = PROBLEM.play(LOGITS, STARTS.repeat(4000), 6, np.random.default_rng(1))
    measured = PROBLEM.measures({"logits": LOGITS})
    assert np.mean([t.success for t in played]) == pytest.approx(measured["success"], abs=0.02)
    assert np.mean([t.length for t in played]) == pytest.approx(measured["length"], abs=0.1)


def test_an_episode_ends_by_its_answer_or_is_cut_by_its_horizon() -> None:
    for t in PROBLEM.play(LOGITS, STARTS.repeat(50), 3, np.random.default_rng(1)):
        answered = t.turns[-1].sampled_ids == [2]
        assert t.stop == (StopReason.ENV_ENDED if answered else StopReason.TURNS) and t.length <= 3
        useful = sum(turn.sampled_ids == [0] for turn in t.turns)
        depth = {int(STARTS[0]): 1, int(STARTS[1]): 3}[t.group]
        assert t.success == (answered and useful >= depth) and t.reward == t.success


def test_the_mean_update_is_the_exact_gradient_of_success() -> None:
    played = PROBLEM.play(LOGITS, STARTS.repeat(3000), 6, np.random.default_rng(2))
    samples = GroupRelative(baseline="leave_one_out", normalize="none")(played)
    found = -gradient(PROBLEM.tree, LOGITS, samples, Reinforce(aggregation=Constant(per="episode")))
    mdp, seen = PROBLEM.world
    exact = np.zeros_like(LOGITS[:, 0])
    np.add.at(exact, seen, mdp.gradient(LOGITS[seen, 0]))
    np.testing.assert_allclose(found[:, 0], exact, atol=0.02)


def test_no_turn_is_sampled_after_the_iteration_that_reached_the_most() -> None:
    method, state = METHOD.replace(most=30), METHOD.start(PROBLEM, np.random.default_rng(0))
    before = state
    for i in range(6):
        after = method.step(PROBLEM, state, np.random.default_rng(i))
        assert (after is state) == (state["sampled"] >= 30)
        state = after
    assert before["sampled"] == 0, "the state that was given is not changed"
