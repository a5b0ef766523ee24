"""BATS: what is in view, and an exact problem in which the best use of it is known."""

import numpy as np
import pytest

from longstride.models.load import load_policy
from longstride.papers.bats.exact import ANSWER, LOOK, BudgetedLooks
from longstride.papers.bats.recipe import RECIPE
from longstride.rollout.context import BudgetInView


def test_whoever_sees_the_last_turn_and_answers_in_it_has_the_best_reward() -> None:
    problem = BudgetedLooks(gaps=(2, 3), pages=3, finds=0.6, horizon=5)
    logits = np.zeros((int(problem.world[1].max()) + 1, 1, 2))
    logits[:, 0, LOOK] = 50.0
    logits[: problem.pages + 1, 0, LOOK], logits[: problem.pages + 1, 0, ANSWER] = 0.0, 50.0  # one turn is left
    # of one look .6 finds a page; of four: 4 .6 .4^3 find one, 6 .6^2 .4^2 two, all others three
    one, two = 4 * 0.6 * 0.4**3, 6 * 0.36 * 0.16
    of_four = (one + 2 * two + 3 * (1 - 0.4**4 - one - two)) / 3
    expected = (0.6 / 3 + of_four) / 2
    assert problem.best == pytest.approx(expected)
    assert problem.measures({"logits": logits})["success"] == pytest.approx(expected)


def test_out_of_view_the_same_pages_look_the_same_whatever_is_left() -> None:
    blind = BudgetedLooks(in_view=False)
    rows = blind.begin(np.random.default_rng(0))
    assert len(rows) == blind.pages + 1 and len(BudgetedLooks().begin(np.random.default_rng(0))) == 14 * 9
    never = np.tile([50.0, 0.0], (len(rows), 1, 1))  # who always looks is cut, with nothing earned
    assert blind.measures({"logits": never})["success"] == pytest.approx(0.0, abs=1e-9)


def test_the_limit_of_an_episode_is_what_was_drawn() -> None:
    problem = BudgetedLooks(gaps=(2, 4), horizon=14)
    never = np.tile([50.0, 0.0], (int(problem.world[1].max()) + 1, 1, 1))
    starts = np.flatnonzero(problem.world[0].start)
    played = problem.play(never, starts, 14, np.random.default_rng(0))
    assert [t.length for t in played] == [2, 6]


def test_the_line_has_words_that_the_start_knows() -> None:
    assert isinstance(RECIPE.context, BudgetInView) and RECIPE.model == "base"
    tokenizer = load_policy("base", RECIPE.chat, "cpu").tokenizer
    for limit in (6, 12, 24):
        for left in range(1, limit + 1):
            line = RECIPE.context.words.format(left=left, limit=limit, what="turns")
            assert tokenizer.unk_token_id not in tokenizer.encode(line, add_special_tokens=False)
