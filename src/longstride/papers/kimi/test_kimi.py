"""Kimi k1.5: the gradient of its squared objective, and where its fixed point is."""

from collections.abc import Sequence

import numpy as np
import torch
from enumerated import ascent

from longstride.core.trajectory import Trajectory
from longstride.exact.answers import Answers
from longstride.exact.learner import gradient
from longstride.methods import Constant, GroupRelative, Mean, Reinforce, Sample
from longstride.papers.kimi.method import MirrorDescent

CREDIT = GroupRelative(normalize="none")
TREE = Answers(tasks=((0.3,), (0.2,)), vocabulary=2, length=3, decoy=0.2)


def test_the_gradient_is_that_of_the_squared_difference() -> None:
    rng, tau, tree = np.random.default_rng(0), 0.3, TREE.tree
    old = TREE.begin(rng)
    now = old + 0.3 * rng.normal(size=old.shape)
    answers_QN = tree.sample(old, 5, rng)
    samples = CREDIT(TREE.episodes(old, answers_QN))
    table, total = torch.tensor(now, requires_grad=True), torch.zeros((), dtype=torch.float64)
    old_log, log = torch.tensor(tree.log_policy(old)), table.log_softmax(-1)
    for q, row in enumerate(answers_QN):
        mean = tree.rewards[q, row].mean()
        for k in row:
            place = (tree.context[q], torch.from_numpy(tree.places[k]), torch.from_numpy(tree.tokens[k]))
            ratio = (log[place] - old_log[place]).sum()
            total = total + (tree.rewards[q, k] - mean - tau * ratio) ** 2 / (2 * tau)
    (expected,) = torch.autograd.grad(total / answers_QN.size, table)
    loss = MirrorDescent(aggregation=Constant(per="episode"), tau=tau)
    np.testing.assert_allclose(gradient(tree, now, samples, loss), expected.numpy(), atol=1e-9)
    by_mean = gradient(tree, now, samples, loss.replace(aggregation=Mean(over="episode")))
    np.testing.assert_allclose(3 * by_mean, expected.numpy(), atol=1e-9)  # the square is shared as advantages are


def test_at_the_policy_that_sampled_it_is_the_plain_gradient() -> None:
    logits = TREE.begin(np.random.default_rng(1))
    samples = CREDIT(TREE.play(logits, 4, np.random.default_rng(2)))
    plain, mirror = (
        gradient(TREE.tree, logits, samples, loss(aggregation=Constant(per="episode")))
        for loss in (Reinforce, MirrorDescent)
    )
    np.testing.assert_array_equal(plain, mirror)


def test_with_the_true_normaliser_the_fixed_point_is_the_known_one_and_with_the_mean_it_moves_less() -> None:
    tau, problem = 0.25, Answers(tasks=((0.2,),), vocabulary=4, decoy=0.3)
    tree, old = problem.tree, problem.begin(np.random.default_rng(0))
    p, r = tree.answers(old)[0], tree.rewards[0]
    known = p * np.exp(r / tau) / (p @ np.exp(r / tau))
    baselines = {"normaliser": tau * np.log(p @ np.exp(r / tau)), "mean": float(p @ r)}
    loss, ends = MirrorDescent(aggregation=Constant(per="episode"), tau=tau), {}
    for name, baseline in baselines.items():

        def credit(episodes: Sequence[Trajectory], baseline: float = baseline) -> list[Sample]:
            samples = GroupRelative(baseline="none", normalize="none")(episodes)
            for s in samples:
                s.streams["advantages"] = [a - baseline for a in s.advantages]
            return samples

        z = np.log(p)
        for _ in range(20_000):  # the stationary point: p_k (r_k - b - tau log q_k / p_k) = q_k times their sum
            q = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            pull = p * (r - baseline - tau * np.log(q / p))
            z = z + pull - q * pull.sum()
        ends[name] = q
        there = tree.logits_of(q[None])
        np.testing.assert_allclose(ascent(problem, there, credit, loss, size=1, sampler=old), 0, atol=1e-6)
    np.testing.assert_allclose(ends["normaliser"], known, atol=1e-6)
    right = int(r.argmax())
    assert p[right] < ends["mean"][right] < known[right] - 0.05
