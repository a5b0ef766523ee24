"""Expected optimiser steps against the exact gradients of enumerable problems, on and off policy, and with the entropy
bonus."""

import itertools
import random

import numpy as np
import pytest
from estimators import (
    LOSSES,
    OPEN,
    all_of,
    ascent_of,
    by_formula,
    episode_of,
    log_policy,
    logprobs_of,
    table_learner,
)

from longstride.exact.worlds.tabular import EnumerableMDP, Path, bandit, random_mdp
from longstride.methods import PPO, Constant, Credit, GroupRelative, ImportanceCorrection, Loss, Mean, Reinforce, Sample
from longstride.methods.advantages import GAE
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL
from longstride.methods.ratios import CISPO, GSPO, RatioLoss

PER_EPISODE = Constant(per="episode")


def problem_of(seed: int = 18) -> tuple[EnumerableMDP, np.ndarray, list[Path]]:
    rng = np.random.default_rng(seed)
    problem, logits = random_mdp(rng, 3, 3, 2, stochastic=False), rng.normal(size=(3, 3))
    return problem, logits, list(problem.trajectories(logits))


@pytest.mark.parametrize("loss", [Reinforce(), PPO(), GSPO(), CISPO()], ids=lambda loss: loss.type_name())
@pytest.mark.parametrize("credit", [GroupRelative(baseline="leave_one_out", normalize="none"), GAE(values="group")])
def test_on_policy_the_expected_step_is_the_exact_gradient_per_episode(loss: Loss, credit: Credit):
    problem, logits, paths = problem_of()
    total = np.zeros_like(logits)
    for pair, chance in all_of(paths, paths):
        episodes = [episode_of(path, logits, ordinal=n) for n, path in enumerate(pair)]
        total += chance * ascent_of(logits, credit(episodes), loss.replace(aggregation=PER_EPISODE))
    np.testing.assert_allclose(total, problem.gradient(logits), atol=1e-5)


def test_a_mean_over_tokens_follows_the_return_per_token():
    """One episode a step: the random denominator divides its return by its length."""
    problem, logits, paths = problem_of()
    credit, total = GroupRelative(baseline="none", normalize="none"), np.zeros_like(logits)
    for path in paths:
        samples = credit([episode_of(path, logits)])
        total += path.probability * ascent_of(logits, samples, PPO(aggregation=Mean(over="token")))
    per_token = by_formula(problem, logits, lambda path, t: sum(path.rewards) / len(path.actions))
    np.testing.assert_allclose(total, per_token, atol=1e-5)
    assert not np.allclose(total, problem.gradient(logits), atol=1e-2)


# The entropy bonus


def entropy_gradient(logits: np.ndarray) -> np.ndarray:
    """[S, A] gradient of each state's entropy in its own logits: -pi (log pi + H)."""
    p, logp = np.exp(log_policy(logits)), log_policy(logits)
    return -p * (logp - (p * logp).sum(1, keepdims=True))


@pytest.mark.parametrize("loss", [Reinforce(), PPO(), GSPO(), CISPO()], ids=lambda loss: loss.type_name())
def test_on_a_bandit_the_bonus_adds_the_exact_gradient_of_the_entropy(loss: Loss):
    weight, logits = 0.3, np.random.default_rng(0).normal(size=(1, 4))
    problem, total = bandit(ARMS.tolist()), np.zeros((4, 4))
    table = np.concatenate([logits, np.zeros((3, 4))])
    credit = GroupRelative(baseline="none", normalize="none")
    for path in problem.trajectories(logits):
        samples = credit([episode_of(path, logits)])
        total += path.probability * ascent_of(table, samples, loss.replace(entropy=weight, aggregation=PER_EPISODE))

    def objective(x: np.ndarray) -> float:
        return problem.expected_return(x) - weight * float((np.exp(log_policy(x)) * log_policy(x)).sum())

    differences = [(objective(logits + d) - objective(logits - d)) / 2e-5 for d in 1e-5 * np.eye(4)[:, None]]
    np.testing.assert_allclose(total[0], differences, atol=1e-5)
    np.testing.assert_allclose(total[0], (problem.gradient(logits) + weight * entropy_gradient(logits))[0], atol=1e-5)
    assert not total[1:].any()


def test_over_several_turns_the_bonus_is_the_entropy_of_each_state_as_often_as_it_is_visited():
    """What an action does to the entropy of later states is left out."""
    problem, logits, paths = problem_of()
    weight, credit, total = 0.3, GroupRelative(baseline="none", normalize="none"), np.zeros_like(logits)
    visits_S = np.zeros(3)
    for path in paths:
        samples = credit([episode_of(path, logits)])
        total += path.probability * ascent_of(logits, samples, Reinforce(aggregation=PER_EPISODE, entropy=weight))
        np.add.at(visits_S, list(path.states), path.probability)
    bonus = weight * visits_S[:, None] * entropy_gradient(logits)
    np.testing.assert_allclose(total, problem.gradient(logits) + bonus, atol=1e-5)
    assert np.abs(bonus).max() > 0.05


def test_the_bonus_reaches_tokens_without_an_advantage():
    logits = np.random.default_rng(1).normal(size=(3, 3))
    silent = Sample([0], [1, 2], {ADVANTAGES: [0.0, 0.0]})
    found = ascent_of(logits, [silent], Reinforce(entropy=0.5))
    expected = 0.5 * entropy_gradient(logits) * np.array([[1.0], [1.0], [0.0]])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not ascent_of(logits, [silent], Reinforce()).any()


# Off policy

ARMS = np.array([1.0, 0.0, 0.5, -0.2])


def off_policy(loss: Loss) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The expected step on a bandit whose arms an older policy drew; that policy, this one, its scores [arm, arm]."""
    rng = np.random.default_rng(2)
    now, old = rng.normal(size=(1, 4)), rng.normal(size=(1, 4))
    middle, total = log_policy(rng.normal(size=(1, 4))), np.zeros(4)
    for arm, reward in enumerate(ARMS):
        streams = {
            ADVANTAGES: [float(reward)],
            BEHAVIOUR: [float(log_policy(old)[0, arm])],
            PROXIMAL: [float(middle[0, arm])],
        }
        table = np.concatenate([now, np.zeros((3, 4))])  # rows of the other ids are never asked
        total += np.exp(log_policy(old)[0, arm]) * ascent_of(table, [Sample([0], [arm], streams)], loss)[0]
    pi = np.exp(log_policy(now)[0])
    return total, np.exp(log_policy(old)[0]), pi, np.eye(4) - pi


@pytest.mark.parametrize(
    "loss",
    [
        PPO(**OPEN),
        GSPO(**OPEN),
        CISPO(max=1e6),
        PPO(**OPEN, correction=ImportanceCorrection(max=1e6)),
        CISPO(max=1e6, correction=ImportanceCorrection(max=1e6, level="sequence")),
    ],
)
def test_off_policy_an_unclipped_ratio_gives_the_exact_gradient_of_one_token(loss):
    found, _, pi, score = off_policy(loss)
    np.testing.assert_allclose(found, bandit(ARMS.tolist()).gradient(np.log(pi)[None])[0], atol=1e-6)
    np.testing.assert_allclose(found, (pi * ARMS) @ score, atol=1e-6)


def test_off_policy_the_bias_is_what_was_capped_and_without_a_ratio_all_of_it():
    found, old, pi, score = off_policy(CISPO(max=1.2))
    assert (pi > 1.2 * old).any() and (pi < 1.2 * old).any()
    np.testing.assert_allclose(found, (np.minimum(pi, 1.2 * old) * ARMS) @ score, atol=1e-6)
    found, old, pi, score = off_policy(Reinforce())
    np.testing.assert_allclose(found, (old * ARMS) @ score, atol=1e-6)


def test_off_policy_gspo_weighs_a_sequence_by_its_geometric_mean():
    """Two independent draws in a row: the weight of a pair is the root of the product of its ratios."""
    rng = np.random.default_rng(2)
    now, old = (log_policy(rng.normal(size=(2, 2))) for _ in range(2))
    reward, found, formula = np.array([[1.0, 0.2], [-0.5, 0.0]]), np.zeros((2, 2)), np.zeros((2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        logps = [float(old[0, a]), float(old[a, b])]
        p, r = np.exp(sum(logps)), float(reward[a, b])
        drawn = Sample([0], [a, b], {ADVANTAGES: [r, r], BEHAVIOUR: logps})
        found += p * ascent_of(now, [drawn], GSPO(**OPEN, aggregation=Constant()))
        s = np.exp((now[0, a] + now[a, b] - sum(logps)) / 2)
        for state, action in ((0, a), (a, b)):
            formula[state] += p * s * r * (np.eye(2)[action] - np.exp(now[state]))
    np.testing.assert_allclose(found, formula, atol=1e-6)


# Updates


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_what_the_policy_did_not_sample_has_no_gradient(loss: Loss):
    """0 1 | 2 3 | 4 5 | 6: after 3 and 4 stands what the policy did not sample."""
    logits = np.random.default_rng(0).normal(size=(7, 7))
    old = [-1.0, -2.0]
    turns = [
        Sample([0, 1], [2, 3], {ADVANTAGES: [1.0, 1.0], BEHAVIOUR: old, PROXIMAL: old}),
        Sample([0, 1, 2, 3, 4, 5], [6], {ADVANTAGES: [-1.0], BEHAVIOUR: [-1.0], PROXIMAL: [-1.0]}, turn=1),
    ]
    if isinstance(loss, PPO | GSPO):
        loss = loss.replace(clip_low=1.0, clip_high=99.0)
    found = np.abs(ascent_of(logits, turns, loss)).sum(1)
    assert [bool(row) for row in found] == [False, True, True, False, False, True, False]


@pytest.mark.parametrize(
    ("credit", "loss"),
    [
        (GroupRelative(), PPO(aggregation=Mean(over="episode"))),
        (GroupRelative(normalize="none"), PPO(aggregation=PER_EPISODE)),
        (GroupRelative(baseline="leave_one_out", normalize="none"), Reinforce()),
        (GAE(values="group", whiten=True), PPO(dual_clip=3.0)),
        (GroupRelative(), PPO(clip_high=0.28, entropy=1e-3)),
        (GroupRelative(normalize="advantage_std"), CISPO(aggregation=Mean(over="prompt"))),
        (GroupRelative(), GSPO(clip_low=0.2, clip_high=0.2, correction=ImportanceCorrection())),
    ],
)
def test_a_bandit_is_learnt(credit: Credit, loss: Loss):
    problem, rng = bandit([0.0, 0.0, 1.0, 0.0, 0.5]), np.random.default_rng(0)
    learner = table_learner(np.zeros((5, 5)), loss, lr=0.1, warmup_steps=0, batch_samples=32, epochs=2)
    policy = lambda: learner.model.logits.detach().double().numpy()[:1]  # noqa: E731
    for iteration in range(25):
        drawn = problem.sample(policy(), rng, 32)
        episodes = [episode_of(path, policy(), ordinal=n, group=n // 8) for n, path in enumerate(drawn)]
        learner.update(credit(episodes), random.Random(iteration))
    assert problem.expected_return(policy()) > 0.9  # 0.3 at the start


@pytest.mark.parametrize(
    "loss", [PPO(correction=ImportanceCorrection(level="sequence", max=100.0)), GSPO(clip_high=9.0)]
)
def test_what_is_of_a_sequence_counts_its_tokens_of_advantage_0(loss: RatioLoss) -> None:
    logits = np.random.default_rng(3).normal(size=(4, 4))
    sample = Sample([0], [1, 2, 3], {ADVANTAGES: [0.0, 0.0, 1.0], BEHAVIOUR: [0.0] * 3})
    now = logprobs_of(logits, sample)
    streams = sample.streams | {BEHAVIOUR: [now[0] - 1.0, now[1] - 1.0, now[2]], PROXIMAL: now}
    sample = Sample([0], [1, 2, 3], streams)
    found, _ = table_learner(logits, loss).accumulate([sample])
    # the product of the sequence's weights, and the geometric mean of its ratios
    assert found == pytest.approx(-np.exp(2.0 if isinstance(loss, PPO) else 2.0 / 3) / 3, rel=1e-5)


def test_a_correction_compares_every_step_of_an_update_with_the_weights_before_the_first():
    logits = np.random.default_rng(3).normal(size=(6, 6))
    samples = [
        Sample([n], [5 - n, n], {ADVANTAGES: [0.0, 1.0 - n], BEHAVIOUR: [-1.5, -2.0]}, n) for n in range(3)
    ]  # alignment despite an advantage of 0
    loss: RatioLoss = PPO(correction=ImportanceCorrection())
    numbers = {"lr": 0.1, "warmup_steps": 0, "batch_samples": 100, "epochs": 2}
    one, other = (table_learner(logits, loss, **numbers) for _ in range(2))
    found = one.update(samples, random.Random(0))
    by_hand = [
        Sample(s.prompt_ids, s.sampled_ids, s.streams | {PROXIMAL: logprobs_of(logits, s)}, s.episode) for s in samples
    ]
    assert other.step(by_hand)["ratio_max"] == pytest.approx(1, abs=1e-5)
    assert other.step(by_hand)["ratio_max"] == pytest.approx(found["ratio_max"], abs=1e-5)
    np.testing.assert_allclose(one.model.logits.detach(), other.model.logits.detach(), atol=1e-6)
    assert all(PROXIMAL not in s.streams for s in samples)
