"""Searches: what they ask for, what they keep, and that an exact scorer leads them to the answer."""

from collections.abc import Callable, Sequence
from math import log

import numpy as np
import pytest

from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.generators import driven
from longstride.exact.steps import ROOT, StepSolver
from longstride.exact.worlds.steps import RIGHT, Model, Solution, StepWorld
from longstride.rewards.simulated import StepScorer
from longstride.strategies.ledger import Ledger
from longstride.strategies.search import (
    Beam,
    BestFirst,
    Independent,
    Partial,
    Particles,
    Search,
    TreeSearch,
    chosen,
    effective_size,
    log_odds,
    systematic,
)

RNG = np.random.default_rng
SEARCHES = [
    Independent(n=8),
    Beam(n=8, width=2),
    Beam(n=8, width=2, diverse=True),
    Beam(n=8, width=4, ahead=1),
    Particles(n=8),
    Particles(n=8, below=0.5),
    Particles(n=8, sweeps=2),
    BestFirst(expansions=12, width=2),
    TreeSearch(expansions=24, width=2, exploration=0.3),
]


def scripted(
    scores: dict[str, float], length: int = 2
) -> tuple[Callable[[Sequence[Partial]], list[Partial]], list[list[str]]]:
    """States are words; the n-th continuation of one within a request appends the n-th letter. Also what was asked."""
    asked: list[list[str]] = []

    def extend(partials: Sequence[Partial]) -> list[Partial]:
        asked.append([p.state for p in partials])
        made, often = [], dict[str, int]()
        for p in partials:
            often[p.state] = often.get(p.state, 0) + 1
            word = p.state + "abcdefgh"[often[p.state] - 1]
            made.append(
                Partial(word, scores.get(word, 0.1), len(word) == length, word if len(word) == length else None)
            )
        return made

    return extend, asked


def solver(scorer: StepScorer = StepScorer(), success: float = 0.3, seed: int = 0) -> StepSolver:  # noqa: B008
    return StepSolver(StepWorld(), success, Model(), scorer, RNG(seed))


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: s.name)
def test_a_search_returns_finished_candidates_once_each_and_has_a_name_of_its_own(search: Search) -> None:
    found = driven(search.run(ROOT, RNG(0)), solver(StepScorer(noise=2.0)))
    assert found and all(p.done and p.answer for p in found) and len({id(p) for p in found}) == len(found)
    assert found[0].score == max(p.score for p in found)
    assert len({s.name for s in SEARCHES}) == len(SEARCHES) and build(Search, search.as_data()) == search


@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: s.name)
def test_an_exact_scorer_leads_to_the_answer_far_more_often_than_one_sample(search: Search) -> None:
    won = sum(driven(search.run(ROOT, RNG(k)), solver(seed=k))[0].answer == RIGHT for k in range(60))
    assert won / 60 > 0.7  # one sample: 0.3


@pytest.mark.parametrize("search", [Independent(n=8), Beam(n=8, width=2), Particles(n=8)], ids=lambda s: s.name)
def test_best_of_beam_and_particles_spend_the_tokens_of_n_solutions_and_lookahead_more(search: Search) -> None:
    of = solver(StepScorer(tokens=3))
    driven(search.run(ROOT, RNG(0)), of)
    assert of.ledger == Ledger(sampled=8 * 6 * 10, scored=8 * 6 * 3, calls=48) and of.ledger.tokens == 48 * 13
    far = solver()
    driven(Beam(n=8, width=2, ahead=1).run(ROOT, RNG(0)), far)
    assert far.ledger.calls == 48 + 8 * 5  # nothing is ahead of the last step


def test_the_answer_that_counts_is_by_score_by_votes_or_by_both() -> None:
    a, b, c, none = Partial(0, 0.6, True, "x"), Partial(1, 0.3, True, "x"), Partial(2, 0.8, True, "y"), Partial(3, 1.0)
    assert chosen([a, b, c], "score") is c and chosen([b, a, c], "votes") is a and chosen([a, b, c], "weighted") is a
    assert chosen([b, b, c], "weighted") is c and chosen([b, b, c], "votes") is b
    assert chosen([none, b], "votes") is b and chosen([b, none], "score") is none


def test_a_beam_keeps_the_best_of_all_or_the_best_of_each_tree() -> None:
    scores = {"a": 0.9, "b": 0.8, "c": 0.2, "d": 0.3}
    extend, asked = scripted(scores)
    driven(Beam(n=4, width=2).run(Partial(""), RNG(0)), extend)
    assert asked == [[""] * 4, ["a", "a", "b", "b"]]
    extend, asked = scripted(scores)
    driven(Beam(n=4, width=2, diverse=True).run(Partial(""), RNG(0)), extend)
    assert asked[1] == ["a", "a", "d", "d"]


def test_a_beam_that_looks_ahead_keeps_what_will_be_good_and_a_finished_partial_goes_on_as_it_is() -> None:
    extend, asked = scripted({"a": 0.9, "b": 0.2, "ba": 0.9}, length=3)
    driven(Beam(n=2, width=2, ahead=1).run(Partial(""), RNG(0)), extend)
    assert asked[:3] == [["", ""], ["a", "b"], ["b", "b"]]
    searching = Beam(n=4, width=2).run(Partial(""), RNG(0))
    next(searching)
    ended, open_ = Partial("e", 0.9, True, "e"), Partial("o", 0.8)
    assert searching.send([ended, open_, Partial("p", 0.1), Partial("q", 0.1)]) == [open_, open_]
    with pytest.raises(StopIteration) as end:
        searching.send([Partial("r", 0.95, True, "r"), Partial("s", 0.1)])
    assert [p.state for p in end.value.value] == ["r", "e"]


def test_systematic_draws_are_each_within_one_of_their_share_and_unbiased() -> None:
    weights = np.log([0.5, 0.3, 0.15, 0.05])
    counts = np.array([np.bincount(systematic(weights, 8, RNG(k)), minlength=4) for k in range(4000)])
    share = 8 * np.exp(weights)
    assert (counts >= np.floor(share)).all() and (counts <= np.ceil(share)).all()
    assert counts.mean(0) == pytest.approx(share, abs=0.03)


def test_the_effective_size_is_that_of_equal_weights_and_one_where_one_has_all() -> None:
    assert effective_size(np.zeros(5)) == pytest.approx(5) and effective_size(np.array([0.0, -99])) == pytest.approx(1)
    assert effective_size(np.log([0.5, 0.25, 0.25])) == pytest.approx(1 / (0.25 + 2 / 16))
    assert log_odds(0.75) == pytest.approx(log(3)) and log_odds(1.0) == pytest.approx(log((1 - 1e-7) / 1e-7))


def test_particles_are_drawn_in_proportion_to_the_odds_of_their_scores() -> None:
    """Two particles with odds 3 and 1: the first has a mean of 1.5 copies."""
    copies = []
    for seed in range(2000):
        extend, asked = scripted({"a": 0.75, "b": 0.5})
        driven(Particles(n=2).run(Partial(""), RNG(seed)), extend)
        copies.append(asked[1].count("a"))
    assert np.mean(copies) == pytest.approx(1.5, abs=0.03) and set(copies) == {1, 2}


def test_particles_whose_effective_size_is_large_are_not_drawn_and_keep_their_weights() -> None:
    extend, asked = scripted({"a": 0.6, "b": 0.5}, length=3)
    driven(Particles(n=2, below=0.5).run(Partial(""), RNG(0)), extend)
    assert asked[1] == ["a", "b"]


def test_a_sweep_of_particle_gibbs_holds_a_particle_of_the_sweep_before_with_its_past() -> None:
    extend, asked = scripted({"a": 0.999999, "aa": 0.999999}, length=3)
    found = driven(Particles(n=4, sweeps=2).run(Partial(""), RNG(0)), extend)
    assert [len(of) for of in asked] == [2, 2, 2, 1, 1, 1]  # the second sweep extends all but the reference
    assert "aa" in {p.state[:2] for p in found} and asked[4] == ["a"]


def test_best_first_expands_the_best_wherever_it_stands_and_ends_with_enough_candidates() -> None:
    extend, asked = scripted({"a": 0.9, "b": 0.8, "aa": 0.1, "ab": 0.2, "ba": 0.7}, length=3)
    found = driven(BestFirst(expansions=9, width=2).run(Partial(""), RNG(0)), extend)
    assert [of[0] for of in asked] == ["", "a", "b", "ba"] and len(found) == 2


@pytest.mark.parametrize("search", [BestFirst(expansions=1, width=2), TreeSearch(expansions=1, width=2)])
def test_a_search_whose_expansions_are_spent_finishes_its_best_partial(search: Search) -> None:
    extend, asked = scripted({"b": 0.9}, length=4)
    found = driven(search.run(Partial(""), RNG(0)), extend)
    assert asked == [["", ""], ["b"], ["ba"], ["baa"]] and [p.state for p in found] == ["baaa"]


def test_puct_visits_by_value_and_by_how_rarely_it_has_been_there() -> None:
    scores = {"a": 0.6, "b": 0.5, "aa": 0.1, "ab": 0.1}
    extend, asked = scripted(scores, length=9)
    driven(TreeSearch(expansions=3, width=2, exploration=0.0).run(Partial(""), RNG(0)), extend)
    # a has (0.6 + 0.1 + 0.1) / 3 after it was extended, less than b
    assert [of[0] for of in asked[:3]] == ["", "a", "b"]
    extend, asked = scripted(scores | {"aa": 0.6, "ab": 0.6}, length=9)
    driven(TreeSearch(expansions=3, width=2, exploration=0.0).run(Partial(""), RNG(0)), extend)
    assert [of[0] for of in asked[:3]] == ["", "a", "aa"]
    extend, asked = scripted(scores | {"aa": 0.6, "ab": 0.6}, length=9)
    driven(TreeSearch(expansions=3, width=2, exploration=2.0).run(Partial(""), RNG(0)), extend)
    # a: 0.6 + 2 / 2 * sqrt(4) / 4 = 1.1, b: 0.5 + sqrt(4) / 2 = 1.5
    assert [of[0] for of in asked[:3]] == ["", "a", "b"]


def test_what_failed_says_nothing_of_where_it_was_tried() -> None:
    search = TreeSearch(expansions=9, width=2, exploration=0.0).run(Partial(""), RNG(0))
    next(search)
    a, b = Partial("a", 0.6), Partial("b", 0.4)
    assert search.send([a, b]) == [a, a]
    # a has 0.6 as before, and not (0.6 + 0 + 0.6) / 3
    again = Partial("aa", 0.6)
    assert search.send([Partial("", 0.0, True, failed=True), again]) == [again, again]


def test_a_tree_in_which_nothing_is_left_is_not_searched_on() -> None:
    extend, asked = scripted({}, length=2)
    found = driven(TreeSearch(expansions=99, width=2).run(Partial(""), RNG(0)), extend)
    assert len(asked) == 3 and len(found) == 4


def test_a_width_that_does_not_divide_and_a_sweep_of_one_particle_are_refused() -> None:
    with pytest.raises(ConfigError, match="width must divide n"):
        build(Search, {"type": "beam", "n": 6, "width": 4})
    with pytest.raises(ConfigError, match="two particles"):
        build(Search, {"type": "particles", "n": 4, "sweeps": 3})


# the world


def test_a_task_is_solved_in_one_go_as_often_as_it_says_and_more_often_by_a_stronger_model() -> None:
    def share(model: Model) -> float:
        of = StepSolver(StepWorld(length=4), 0.3, model, StepScorer(), RNG(0))
        return sum(driven(Independent(n=1).run(ROOT, RNG(0)), of)[0].answer == RIGHT for _ in range(3000)) / 3000

    assert share(Model()) == pytest.approx(0.3, abs=0.025)
    p = Model(skill=1.0).chance(0.3, 4)
    assert log_odds(p) == pytest.approx(log_odds(0.3**0.25) + 1) and share(Model(skill=1.0)) == pytest.approx(
        p**4, abs=0.03
    )


def test_the_first_wrong_step_decides_the_answer_and_labels_of_later_steps_are_their_own() -> None:
    world, rng, sees = StepWorld(length=3, wrong=(0.0, 1.0)), RNG(0), StepScorer()
    s = world.step(Solution(), True, sees, rng)
    assert world.answer(s) is None and s.scores == (1.0,)
    s = world.step(world.step(s, False, sees, rng), True, sees, rng)
    assert s.labels == (True, False, True) and s.scores == (1.0, 0.0, 0.0) and world.answer(s) == "wrong 1"


def test_a_scorer_is_exact_without_noise_calibrated_with_some_and_says_nothing_with_endless_noise() -> None:
    rng = RNG(0)
    assert [StepScorer().see(1, age, 0, rng)[0] for age in (None, 0)] == [1.0, 0.0]
    assert StepScorer(noise=1e30).see(1, None, 0, rng)[0] == pytest.approx(0.5)
    labels = rng.random(20_000) < 0.5
    said = np.array([StepScorer(noise=1.5).see(1, None if label else 0, 0, rng)[0] for label in labels])
    for low in (0.1, 0.3, 0.5, 0.7):
        among = (said >= low) & (said < low + 0.2)
        assert labels[among].mean() == pytest.approx(said[among].mean(), abs=0.03)


def test_an_error_looks_better_than_right_until_it_is_as_old_as_the_lag() -> None:
    scorer = StepScorer(noise=2.0, lag=2, lure=0.5)
    said = [log_odds(scorer.see(1, age, 0, RNG(0))[0]) for age in (None, 0, 1, 2)]
    assert np.subtract(said, said[0]) == pytest.approx([0, 0.25, 0.25, -1])  # 2 / 4 for a unit of evidence


def test_the_error_of_a_scorer_drifts_as_it_says() -> None:
    rng, scorer = RNG(0), StepScorer(noise=1.0, drift=0.8)
    errors = [scorer.see(1, None, 0, rng)[1]]
    for _ in range(20_000):
        errors.append(scorer.see(2, None, errors[-1], rng)[1])
    assert np.std(errors) == pytest.approx(1, abs=0.05)
    assert np.corrcoef(errors[1:], errors[:-1])[0, 1] == pytest.approx(0.8, abs=0.02)


def test_scores_of_steps_are_put_together_as_the_scorer_says() -> None:
    scores = (0.5, 0.8, 0.6)
    found = [StepScorer(aggregate=how).score(scores) for how in ("last", "min", "product", "mean")]
    assert found == pytest.approx([0.6, 0.5, 0.24, 1.9 / 3])
