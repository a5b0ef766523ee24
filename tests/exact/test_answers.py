"""Enumerable answers: exact success and gradients, and updates on them whose expectation is known."""

import numpy as np
import pytest
import torch
from enumerated import ascent, groups

from longstride.core.errors import ConfigError
from longstride.exact.answers import DECOY, Answers, Grouped
from longstride.exact.learner import gradient, recipe
from longstride.exact.worlds.answers import AnswerTree
from longstride.methods import Constant, GroupRelative, Mean, Reinforce

EPISODES = Constant(per="episode")
RLOO = GroupRelative(baseline="leave_one_out", normalize="none")
SMALL = Answers(tasks=((0.3,), (0.6,)), vocabulary=2, length=2)


def random_tree(seed: int = 0) -> tuple[AnswerTree, np.ndarray]:
    rng = np.random.default_rng(seed)
    tree = AnswerTree(rng.random((3, 27)), np.array([0, 1, 0]), vocabulary=3, length=3)
    return tree, rng.normal(size=tree.shape)


def test_answers_of_a_context_have_probabilities_that_add_up_to_one_and_make_the_same_policy_again() -> None:
    tree, logits = random_tree()
    answers = tree.answers(logits)
    np.testing.assert_allclose(answers.sum(1), 1)
    np.testing.assert_allclose(tree.log_policy(tree.logits_of(answers)), tree.log_policy(logits), atol=1e-12)
    k = 1 * 9 + 0 * 3 + 2
    assert tree.tokens[k].tolist() == [1, 0, 2] and tree.places[k].tolist() == [0, 2, 7]


def test_the_gradient_of_success_is_that_of_autograd() -> None:
    tree, logits = random_tree()
    weights = np.array([0.2, 1.5, -0.7])
    table = torch.tensor(logits, requires_grad=True)
    log_answers = table.log_softmax(-1)[:, torch.from_numpy(tree.places), torch.from_numpy(tree.tokens)].sum(-1)
    success = (log_answers.exp()[torch.from_numpy(tree.context)] * torch.from_numpy(tree.rewards)).sum(1)
    np.testing.assert_allclose(tree.success(logits), success.detach().numpy(), atol=1e-12)
    (expected,) = torch.autograd.grad(success @ torch.from_numpy(weights), table)
    np.testing.assert_allclose(tree.gradient(logits, weights), expected.numpy(), atol=1e-12)


def test_samples_come_as_often_as_the_policy_says() -> None:
    tree, logits = random_tree()
    drawn = tree.sample(logits, 20_000, np.random.default_rng(0))
    shares = np.stack([np.bincount(row, minlength=27) / 20_000 for row in drawn])
    assert np.abs(shares - tree.answers(logits)[tree.context]).max() < 0.015


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary": 1}, "expected 2 to"),
        ({"length": 30}, "expected 2 to"),
        ({"context": np.array([0, 2, 0])}, "without a gap"),
        ({"rewards": np.zeros((3, 5))}, "rewards must be"),
    ],
)
def test_a_tree_that_does_not_fit_is_refused(changes: dict, message: str) -> None:
    whole = {"rewards": np.zeros((3, 27)), "context": np.array([0, 1, 0]), "vocabulary": 3, "length": 3}
    with pytest.raises(ConfigError, match=message):
        AnswerTree(**whole | changes)


@pytest.mark.parametrize("length", [1, 3])
def test_a_policy_starts_with_the_chances_that_the_problem_names(length: int) -> None:
    problem = Answers(tasks=((0.3, 0.1), (0.05,)), vocabulary=8, length=length, right=2, decoy=0.4)
    logits = problem.begin(np.random.default_rng(3))
    right = problem.tree.rewards == 1
    assert right.sum(1).tolist() == [2, 2, 2] and (problem.tree.rewards == DECOY).sum(1).tolist() == [1, 1, 1]
    found = (problem.tree.answers(logits)[problem.tree.context] * right).sum(1)
    np.testing.assert_allclose(found, [0.3, 0.1, 0.05])
    np.testing.assert_allclose(problem.tree.success(logits), np.array([0.3, 0.1, 0.05]) + 0.4 * DECOY)
    measured = problem.measures({"logits": logits})
    assert measured["success"] == pytest.approx(0.15)
    assert measured["pass@16"] == pytest.approx(np.mean(1 - (1 - np.array([0.3, 0.1, 0.05])) ** 16))


def test_chances_that_leave_nothing_for_wrong_answers_are_refused() -> None:
    fine = recipe("x", SMALL, Grouped(credit=RLOO, loss=Reinforce()), 1)
    with pytest.raises(ConfigError, match="add up to less than 1"):
        fine.replace(problem={"tasks": ((0.6, 0.4),)})
    with pytest.raises(ConfigError, match="leave no wrong one of 4"):
        fine.replace(problem={"right": 4})


def test_the_expected_step_with_the_mean_of_the_others_is_the_exact_gradient() -> None:
    logits = SMALL.begin(np.random.default_rng(0))
    assert sum(chance for chance, _ in groups(SMALL, logits, 2)) == pytest.approx(1)
    found = ascent(SMALL, logits, RLOO, Reinforce(aggregation=EPISODES), 2)
    np.testing.assert_allclose(found, SMALL.tree.gradient(logits, np.full(2, 0.5)), atol=1e-12)


def test_shares_of_the_aggregation_weigh_advantages_and_coefficients() -> None:
    logits, loss = SMALL.begin(np.random.default_rng(0)), Reinforce(aggregation=EPISODES, entropy=0.1)
    samples = RLOO(SMALL.play(logits, 4, np.random.default_rng(1)))
    by_token = gradient(SMALL.tree, logits, samples, loss.replace(aggregation=Mean(over="token")))
    by_episode = gradient(SMALL.tree, logits, samples, loss.replace(aggregation=Mean(over="episode")))
    np.testing.assert_allclose(by_token, by_episode, atol=1e-12)  # all answers are equally long
    np.testing.assert_allclose(gradient(SMALL.tree, logits, samples, loss), 2 * by_episode, atol=1e-12)


def test_a_stale_sampler_is_as_many_iterations_old_as_it_says() -> None:
    method = Grouped(credit=RLOO, loss=Reinforce(aggregation=EPISODES), staleness=2)
    state, seen = method.start(SMALL, np.random.default_rng(0)), []
    for i in range(5):
        seen.append(state["logits"])
        np.testing.assert_array_equal(state["sampler"][0], seen[max(0, i - 2)])
        state = method.step(SMALL, state, np.random.default_rng(i))
    assert not np.array_equal(seen[0], state["logits"])
