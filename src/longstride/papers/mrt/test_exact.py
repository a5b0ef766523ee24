"""MRT's forced answers: exact regret of a chain of blocks, and the groups that begin in it."""

from typing import cast

import numpy as np
import pytest

from longstride.papers.mrt.exact import CLAIM, RECIPE, Blocks, Cut
from longstride.papers.mrt.method import FORCED, GO_ON

PROBLEM, METHOD = cast(Blocks, RECIPE.problem), cast(Cut, RECIPE.method)
LOGITS = PROBLEM.begin(np.random.default_rng(0))


def test_success_is_that_of_sampled_episodes_and_that_of_the_decision_problem() -> None:
    starts = np.flatnonzero(PROBLEM.world[0].start)
    played = PROBLEM.play(LOGITS, starts.repeat(1500), PROBLEM.horizon, np.random.default_rng(1))
    success = PROBLEM.measures({"logits": LOGITS})["success"]
    assert np.mean([t.success for t in played]) == pytest.approx(success, abs=0.02)
    assert PROBLEM.expect(LOGITS, PROBLEM.horizon)[0] == pytest.approx(success)


def test_a_policy_that_answers_right_everywhere_and_goes_on_has_no_regret() -> None:
    logits = np.zeros_like(LOGITS)
    logits[: PROBLEM.blocks, 0, 0] = -50
    for k in range(PROBLEM.blocks):
        logits[PROBLEM.blocks + k :: PROBLEM.blocks, 0, k % 4] = 50
    assert PROBLEM.measures({"logits": logits})["anytime"] == pytest.approx(1)


def test_half_of_a_group_must_answer_and_the_rest_goes_on_from_the_same_place() -> None:
    state = METHOD.start(PROBLEM, np.random.default_rng(0))
    played = METHOD.collect(PROBLEM, state["logits"], state, np.random.default_rng(0))
    assert len(played) == 8 * 8
    for group in range(8):
        members = [t for t in played if t.group == group]
        assert [t.role for t in members] == [FORCED] * 4 + [GO_ON] * 4
        forced, on = members[0], members[-1]
        assert {t.length for t in members[:4]} == {1}
        k = on.turns[0].prompt_ids[0]
        assert 0 <= k < PROBLEM.blocks and (forced.turns[0].prompt_ids[0] - k) % PROBLEM.blocks == 0
    assert len({t.turns[0].prompt_ids[0] for t in played if t.role == GO_ON}) > 2


def test_forced_answers_lose_less_by_the_same_number_of_turns() -> None:
    after = {}
    for name in ("mrt", "grpo"):
        method = CLAIM.arms[name].method.replace(most=4000)  # type: ignore[attr-defined]
        state = method.start(PROBLEM, np.random.default_rng(0))
        for i in range(60):
            state = method.step(PROBLEM, state, np.random.default_rng(i))
        after[name] = PROBLEM.measures(state)["anytime"]
    assert after["mrt"] > after["grpo"]
