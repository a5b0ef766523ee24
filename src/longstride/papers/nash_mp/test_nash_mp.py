"""Nash-MP: its steps are the proximal steps of the paper, and its rate is the one that is proved there."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, rows_of, weights_hash
from one_page import Watcher
from scipy.special import log_softmax

from longstride.core.errors import ConfigError
from longstride.exact.experiment import ExactMethod, State
from longstride.exact.games import Duel, pair_gradient
from longstride.exact.worlds.games import PreferenceGame, divergence
from longstride.methods import INPO, Sample
from longstride.methods.base import ANCHOR, REFERENCE
from longstride.methods.preferences import mixed, pair
from longstride.papers.nash_mp.exact import MirrorDescentPlay, NashMD, NashMP, proximal
from longstride.papers.nash_mp.method import PairedNashMD
from longstride.papers.nash_mp.recipe import RECIPE
from longstride.rewards import InTurn
from longstride.run.tournament import tournament


def played(method: ExactMethod, problem: Duel, iterations: int, seed: int = 0) -> list[State]:
    states = [method.start(problem, np.random.default_rng(seed))]
    for _ in range(iterations):
        states.append(method.step(problem, states[-1], np.random.default_rng(0)))
    return states


def test_a_proximal_step_has_no_gradient_left_in_the_papers_objective() -> None:
    rng = np.random.default_rng(0)
    problem = Duel(answers=5, strength=0.3)
    state = problem.begin(rng)
    game, (policy, opponent), eta = problem.game(state), log_softmax(rng.normal(size=(2, 5)), axis=-1), 0.7

    def objective(logits: np.ndarray) -> float:
        p = log_softmax(logits)
        loses = float(np.exp(p) @ (1 - game.wins(opponent)))  # P(opponent > p)
        return loses / game.strength + divergence(p, game.reference) + divergence(p, policy) / eta

    found = proximal(game, policy, opponent, eta)
    h = 1e-5
    gradient = [(objective(found + h * e) - objective(found - h * e)) / (2 * h) for e in np.eye(5)]
    assert np.abs(gradient).max() < 1e-6
    assert all(objective(found) < objective(found + 0.1 * rng.normal(size=5)) for _ in range(100))


@pytest.mark.parametrize("strength", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_the_divergence_shrinks_at_the_rate_of_the_paper_or_faster(strength: float, seed: int) -> None:
    states = played(NashMP(), Duel(strength=strength), 60, seed)
    distances = [divergence(s["equilibrium"], s["policy"]) for s in states]
    for before, after in zip(distances, distances[1:], strict=False):
        assert after <= before / (1 + 2 * strength) + 1e-15
    assert states[-1]["queries"] == 120


def test_mirror_prox_reaches_the_equilibrium_where_mirror_descent_turns_around_it() -> None:
    problem = Duel(strength=0.02)
    prox, descent = played(NashMP(), problem, 400)[-1], played(MirrorDescentPlay(rate=2.0), problem, 800)[-1]
    assert prox["queries"] == descent["queries"]
    assert divergence(prox["equilibrium"], prox["policy"]) < 1e-13
    assert divergence(descent["equilibrium"], descent["policy"]) > 0.1


def test_nash_md_ends_beside_the_equilibrium_by_less_for_a_smaller_rate() -> None:
    problem = Duel(strength=0.5)
    ends = [played(NashMD(rate=rate), problem, 2000)[-1] for rate in (0.4, 0.1)]
    far, near = (divergence(s["equilibrium"], s["policy"]) for s in ends)
    assert 1e-9 < near < far / 4
    game, policy = problem.game(ends[0]), ends[0]["policy"]
    share = 0.4 * problem.strength  # the fixed point of its equation answers the mixture
    mixture = log_softmax((1 - share) * policy + share * game.reference)
    assert policy == pytest.approx(game.response(mixture), abs=1e-9)


def test_the_first_step_of_mirror_descent_is_the_closed_form() -> None:
    problem = Duel(strength=0.5)
    before, after = played(MirrorDescentPlay(rate=0.4), problem, 1)
    game = PreferenceGame(before["preferences"], before["reference"], 0.5)
    expected = before["policy"] + 0.4 * game.wins(before["policy"])  # policy and reference are one at the start
    assert after["policy"] == pytest.approx(log_softmax(expected))


def test_the_loss_of_a_phase_is_least_at_the_papers_steps() -> None:
    """Over all pairs of the sampler, by their chances: the trial step against the policy itself, then the step from the
    same place against the policy of the trial."""
    rng = np.random.default_rng(0)
    problem = Duel(answers=5, strength=0.3)
    state = problem.begin(rng)
    game, start, eta = problem.game(state), log_softmax(rng.normal(size=5)), 0.6
    share = eta / (1 + eta)
    loss = INPO(tau=problem.strength / share, share=share, every=2)
    anchor, sampler, found = mixed(share, game.reference, start), start, start
    for _ in range(2):  # the iterations of a phase
        chances = np.exp(sampler[:, None] + sampler[None]) * game.preferences
        expected = proximal(game, start, sampler, eta)
        assert np.abs(pair_gradient(loss, expected - anchor, chances)).max() < 1e-12
        found = expected
        sampler = found
    assert found == pytest.approx(proximal(game, start, proximal(game, start, start, eta), eta))


def test_pairs_that_weigh_as_the_mixture_draws_them_lead_to_the_step_of_nash_md() -> None:
    """All pairs of the sampler, by their chances and their labels."""
    rng, rate = np.random.default_rng(0), 0.4
    problem = Duel(answers=5, strength=0.3)
    state = problem.begin(rng)
    game, start = problem.game(state), log_softmax(rng.normal(size=5))
    share = rate * problem.strength
    both = [(i, j) for i in range(5) for j in range(5) if i != j]
    chances = np.exp(start[:, None] + start[None]) * game.preferences

    def slope(loss: INPO, policy: np.ndarray) -> np.ndarray:
        """The gradient in the logits of a policy."""

        def said(k: int) -> Sample:
            return Sample([0], [k], {"advantages": [0.0], REFERENCE: [game.reference[k]], ANCHOR: [start[k]]})

        samples = [s for n, (i, j) in enumerate(both) for s in pair(said(i), said(j), n)]
        found = np.zeros(5)
        for s in loss.reweigh(samples, [[policy[s.sampled_ids[0]]] for s in samples]):
            found[s.sampled_ids[0]] += chances[both[s.pair]] * s.streams["advantages"][0]
        return found

    after = NashMD(rate=rate).step(problem, state | {"policy": start}, rng)["policy"]
    weighed, plain = PairedNashMD(tau=1 / rate, share=share), INPO(tau=1 / rate, share=share)
    assert np.abs(slope(weighed, after)).max() < 1e-12 < 1e-3 < np.abs(slope(plain, after)).max()


def test_nash_md_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    kind = ["loss.type=longstride.papers.nash_mp.method:PairedNashMD", "loss.tau=1", "loss.share=0.2"]
    settings = ["evaluation.strategies=[]", "iterations=3", "evaluation.every=3"]
    run = train_elsewhere("nash_mp", tmp_path / "md", *kind, *settings)
    plain = train_elsewhere("nash_mp", tmp_path / "plain", "loss.share=0.2", "loss.every=1", *settings)
    losses = [[row["loss"] for row in rows_of(of, "train")] for of in (run, plain)]
    # in the first iteration the start is the sampler, and so is the mixture
    assert all(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    assert losses[0][0] == losses[1][0] and losses[0][1] != losses[1][1]


def test_an_earlier_self_is_held_on_to_for_a_phase_also_where_the_run_was_stopped_within_it(tmp_path: Path) -> None:
    settings = ["iterations=4", "evaluation.every=4", "evaluation.strategies=[]", "seed=5"]
    whole = train_elsewhere("nash_mp", tmp_path / "whole", *settings)
    with pytest.raises(KeyboardInterrupt):
        train_elsewhere("nash_mp", tmp_path / "cut", *settings, listener=Watcher(stop_after=4))
    resumed = train_elsewhere("nash_mp", tmp_path / "cut", *settings, resume=True)
    assert rows_of(whole, "train") == rows_of(resumed, "train") and weights_hash(whole) == weights_hash(resumed)
    other = train_elsewhere("nash_mp", tmp_path / "other", *settings, "loss.every=1", "iterations=2")
    losses = [[row["loss"] for row in rows_of(run, "train")] for run in (whole, other)]
    assert losses[0][0] == losses[1][0] and losses[0][1] != losses[1][1]


def test_in_a_tournament_the_best_response_is_looked_for_among_the_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    says = {"a": "3", "b": "4", "c": "5", "d": "3"}

    class Tested:
        def __init__(self, name: str) -> None:
            self.trajectories = [make_trajectory(answer=says[name]) for _ in range(4)]

    monkeypatch.setattr("longstride.run.policies.load", lambda name: name)
    monkeypatch.setattr("longstride.run.evaluation.evaluate_policy", lambda policy, recipe, tasks: Tested(policy))
    found = tournament(RECIPE, ["a", "b", "d"], InTurn(), tasks=2, attempts=2)
    np.testing.assert_allclose(found.wins, [[0.5, 0.1, 0.5], [0.9, 0.5, 0.9], [0.5, 0.1, 0.5]])
    np.testing.assert_allclose(found.exploitability, [0.4, 0.0, 0.4])
    np.testing.assert_allclose(tournament(RECIPE, ["a", "b", "c"], InTurn()).exploitability, [0.4] * 3)
    with pytest.raises(ConfigError, match="two policies or more, got 1"):
        tournament(RECIPE, ["a"], InTurn())
