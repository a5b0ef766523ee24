"""INPO: its loss has the gradient that is computed, and the step of mirror descent as its minimum."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, rows_of, trajectories_of
from scipy.special import log_softmax

from longstride.core.errors import ConfigError
from longstride.exact.games import Duel, pair_gradient
from longstride.exact.worlds.games import PreferenceGame, cyclic, transitive
from longstride.methods import INPO as TwoAnchors
from longstride.methods import Sample
from longstride.methods.base import ANCHOR, REFERENCE
from longstride.methods.preferences import DPO, IPO, pair
from longstride.papers.inpo import recipe
from longstride.papers.inpo.exact import RECIPE, SelfPlay, bend
from longstride.papers.inpo.method import Against
from longstride.rewards import InTurn

ETA, TAU = 0.8, 0.2
INPO = SelfPlay(loss=IPO(tau=ETA), share=TAU / ETA, pairs=0, updates=4000, rate=1.6)


def played(v: int, seed: int = 0) -> tuple[PreferenceGame, np.ndarray]:
    """A cyclic game, and a policy that is not its reference."""
    rng = np.random.default_rng(seed)
    reference, policy = log_softmax(rng.normal(size=(2, v)), axis=-1)
    return PreferenceGame(cyclic(rng, v, 0.1), reference, TAU), policy


def test_the_gradient_is_that_of_the_papers_loss() -> None:
    game, sampler = played(5)
    rng = np.random.default_rng(1)
    policy, shares = log_softmax(rng.normal(size=5)), rng.dirichlet(np.ones(25)).reshape(5, 5)
    assert INPO.share is not None
    anchor = INPO.share * game.reference + (1 - INPO.share) * sampler

    def loss(logits: np.ndarray) -> float:
        pi = log_softmax(logits)
        h = pi[:, None] - pi
        h = h - TAU / ETA * (game.reference[:, None] - game.reference)
        h = h - (ETA - TAU) / ETA * (sampler[:, None] - sampler)
        return float((shares * (h - 1 / (2 * ETA)) ** 2).sum())

    step = 1e-5
    by_differences = [(loss(policy + step * e) - loss(policy - step * e)) / (2 * step) for e in np.eye(5)]
    assert pair_gradient(INPO.loss, policy - anchor, shares) == pytest.approx(np.array(by_differences), abs=1e-7)


def test_an_iteration_over_all_pairs_is_the_step_of_mirror_descent() -> None:
    game, policy = played(5)
    state = {"preferences": game.preferences, "reference": game.reference, "policy": policy, "queries": np.array(0.0)}
    problem = Duel(strength=TAU)
    found = INPO.step(problem, state, np.random.default_rng(0))["policy"]
    share = TAU / ETA
    expected = log_softmax(share * game.reference + (1 - share) * policy + game.wins(policy) / ETA)
    assert found == pytest.approx(expected, abs=1e-6)


def test_labels_have_the_chances_of_the_game_and_pairs_those_of_the_policy() -> None:
    game, policy = played(4)
    exact = INPO.labelled(game.preferences, policy, np.random.default_rng(0))
    p = np.exp(policy)
    assert exact + exact.T == pytest.approx(2 * np.outer(p, p))
    assert exact / (exact + exact.T) == pytest.approx(game.preferences)
    many = SelfPlay(pairs=100_000).labelled(game.preferences, policy, np.random.default_rng(0))
    assert many.sum() == pytest.approx(1) and many == pytest.approx(exact, abs=0.005)


def test_iterated_over_all_pairs_it_ends_at_the_equilibrium() -> None:
    problem = Duel(answers=5, strength=0.5)
    method = SelfPlay(loss=IPO(tau=1.0), share=0.5, pairs=0, updates=300, rate=1.6)
    state = method.start(problem, np.random.default_rng(0))
    for i in range(40):
        state = method.step(problem, state, np.random.default_rng(i))
    assert state["policy"] == pytest.approx(state["equilibrium"], abs=1e-5)


def test_dpo_over_all_pairs_finds_the_reward_of_transitive_preferences_and_fixes_it() -> None:
    rng = np.random.default_rng(3)
    preferences, reference = transitive(rng, 4, 1.0), log_softmax(rng.normal(size=4))
    reward = np.log(preferences[:, 0] / preferences[0])
    method = SelfPlay(loss=DPO(beta=1.0), share=1.0, pairs=0, updates=4000, rate=1.0)
    state = {"preferences": preferences, "reference": reference, "policy": reference, "queries": np.array(0.0)}
    found = method.step(Duel(), state, rng)["policy"]
    assert found == pytest.approx(log_softmax(reference + reward), abs=1e-6)


def test_a_step_is_measured_by_the_bend_of_the_loss_and_too_long_a_one_comes_to_a_number() -> None:
    assert bend(IPO(tau=0.3)) == pytest.approx(2) and bend(DPO(beta=0.4)) == pytest.approx(0.4**2 / 4, rel=1e-3)
    method, problem = SelfPlay(rate=100.0), Duel(answers=5)
    state = method.start(problem, np.random.default_rng(0))
    for i in range(3):
        state = method.step(problem, state, np.random.default_rng(i))
    assert all(np.isfinite(value) for value in problem.measures(state).values())


def test_the_recipe_states_what_is_asked() -> None:
    method = RECIPE.method
    assert isinstance(method, SelfPlay) and isinstance(method.loss, IPO) and isinstance(RECIPE.problem, Duel)
    assert method.held(RECIPE.problem) == pytest.approx(RECIPE.problem.strength / method.loss.tau)
    assert method.replace(share=0.7).held(RECIPE.problem) == 0.7


def test_the_loss_of_a_language_model_has_the_margin_of_the_paper() -> None:
    """h of a pair of two tokens each, and its slope 2 (h - 1 / (2 eta)), scaled to the mean over pairs."""
    logp = {"w": [-1.0, -0.5], "l": [-2.0, -1.0]}
    ref, anchor = {"w": -2.5, "l": -2.0}, {"w": -1.7, "l": -3.3}
    two = {
        k: Sample([0], [1, 2], {"advantages": [0.0] * 2, REFERENCE: [ref[k], 0.0], ANCHOR: [anchor[k], 0.0]})
        for k in "wl"
    }
    loss = TwoAnchors(tau=0.8, share=0.25)
    h = (-1.5 + 3.0) - 0.25 * (-2.5 + 2.0) - 0.75 * (-1.7 + 3.3)
    preferred, other = loss.reweigh(pair(two["w"], two["l"], 0), [logp["w"], logp["l"]])
    slope = 2 * (h - 1 / 1.6)
    assert preferred.advantages == pytest.approx([-2 * slope] * 2) and other.advantages == pytest.approx(
        [2 * slope] * 2
    )


def test_the_recipe_that_acts_has_the_hold_of_the_exact_one() -> None:
    method, problem = RECIPE.method, RECIPE.problem
    assert isinstance(method, SelfPlay) and isinstance(method.loss, IPO) and isinstance(problem, Duel)
    loss = recipe.RECIPE.loss
    assert isinstance(loss, TwoAnchors) and (loss.tau, loss.every) == (method.loss.tau, 1)
    assert loss.share == pytest.approx(method.held(problem))


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    own = ["reward.preference.sure=0.8", "evaluation.tasks=2", "credit.which=all"]
    run = train_elsewhere("inpo", tmp_path, *own)
    assert all(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    measured = rows_of(run, "eval")[-1]["measures"]["exploitability"]
    assert len(measured) == 2 and all(0 <= value <= 0.5 for value in measured)


def test_what_an_earlier_self_answers_is_no_more_than_compared_with(tmp_path: Path) -> None:
    own = [f"companions.earlier.model={tmp_path / 'model'}", "companions.earlier.follows.every=1", "sampler.episodes=2"]
    run = train_elsewhere("inpo/earlier_selves", tmp_path, *own, "reward.labels=false", "evaluation.strategies=[]")
    assert all(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    played = trajectories_of(run)
    for t in played:
        rival = t.ordinal % 4 > 1
        assert (t.role == "earlier") == rival == (not t.turns[0].sampled_ids)
        against = [u for u in played if u.group == t.group and u.iteration == t.iteration and (u.role == "") == rival]
        chances = [c for c in InTurn()([(t, u) for u in against]) if c is not None]
        assert len(against) == 2 and t.reward == pytest.approx(sum(chances) / 2)
    words = [[t.turns[0].text for t in played if t.iteration == i and t.role] for i in (1, 2)]
    assert words[0] != words[1]


def test_a_best_response_is_trained_against_what_the_policy_answered_to_the_same_tasks(tmp_path: Path) -> None:
    opponent = train_elsewhere("inpo", tmp_path / "a", "learner.epochs=0", "evaluation.strategies=[]")
    settings = [f"reward.run={opponent}", "evaluation.strategies=[]"]
    run = train_elsewhere("inpo/best_response", tmp_path / "b", *settings)
    rivals = {t.ordinal: t for t in trajectories_of(opponent)}
    beaten = trajectories_of(run)
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    for t in beaten[:4]:  # the first group plays against the answers to its task, whenever they were given
        same = [rival for rival in rivals.values() if rival.task.id == t.task.id]
        chances = [c for c in InTurn()([(t, rival) for rival in same]) if c is not None]
        assert len(same) >= 4 and t.reward == pytest.approx(sum(chances) / len(chances), abs=1e-6)
    with pytest.raises(ConfigError, match="has no episode of task .*; play the other policy with the same tasks"):
        Against(run=opponent).compare([make_trajectory()])
