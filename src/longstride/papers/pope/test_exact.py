"""POPE's beginnings on enumerable answers: what is shown is read and not trained."""

from typing import cast

import numpy as np
import pytest

from longstride.exact.answers import Answers
from longstride.exact.learner import gradient, places_of
from longstride.exact.planned import Planned
from longstride.papers.pope.exact import CLAIM, LENGTH, RECIPE, TOKENS
from longstride.papers.pope.method import GUIDED

PROBLEM, METHOD = cast(Answers, RECIPE.problem), cast(Planned, RECIPE.method)
TREE = PROBLEM.tree


def played(seed: int) -> tuple[np.ndarray, list]:
    logits = PROBLEM.begin(np.random.default_rng(0))
    return logits, METHOD.collect(PROBLEM, logits, {"iteration": np.zeros(())}, np.random.default_rng(seed))


def test_beginnings_are_those_of_the_right_answer_and_grow_by_a_token() -> None:
    _, episodes = played(0)
    assert PROBLEM.measures({"logits": PROBLEM.begin(np.random.default_rng(0))})["success"] == pytest.approx(
        TOKENS**-LENGTH
    )
    for t in episodes:
        q = int(t.task.id.rpartition("-")[2])
        right = TREE.tokens[int(TREE.rewards[q].argmax())].tolist()
        assert t.prefix == right[: len(t.prefix)] and (len(t.prefix) > 0) == (t.role == GUIDED)
        assert len(t.turns[0].ids) == LENGTH
    shown = [len(t.prefix) for t in episodes if t.role == GUIDED and t.task.id == "task-0"]
    assert sorted(set(shown)) == list(range(1, max(shown) + 1)) and max(shown) <= 3


def test_tokens_that_were_shown_have_no_gradient() -> None:
    logits, episodes = played(2)
    samples = [s for s in METHOD.credit(episodes) if len(s.prompt_ids) > 3]
    assert samples, "no group that was shown two tokens had a success"
    moved = np.abs(gradient(TREE, logits, samples, METHOD.loss)).sum(-1) > 0
    context, places, tokens = places_of(TREE, samples)
    assert len(tokens) == sum(len(s.sampled_ids) for s in samples)
    assert set(zip(*np.nonzero(moved), strict=True)) <= set(zip(context, places, strict=True))
    assert not moved[:, : 1 + TOKENS].any(), "the first two tokens of an answer were shown"


def test_with_beginnings_tasks_open_that_are_never_solved_without() -> None:
    after = {}
    for name in ("pope", "hard_only"):
        method, state = CLAIM.arms[name].method, METHOD.start(PROBLEM, np.random.default_rng(3))  # type: ignore[attr-defined]
        for i in range(25):
            state = method.step(PROBLEM, state, np.random.default_rng(i))
        after[name] = PROBLEM.measures(state)["success"]
    assert after["pope"] > 0.05 > after["hard_only"]
