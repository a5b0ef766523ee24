"""Progress: weights by hand, the expected gradient over all episodes of enumerable problems, and regret by hand."""

import itertools

import numpy as np
import pytest
from longstride.methods.progress import ProgressCredit, regret

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.tabular import EnumerableMDP
from longstride.methods import Credit, GroupRelative

TASK = Task(id="t", source="s", goal="g", start="s")


def episode(role, reward, group=0, ids=(1,), state=0, stop=StopReason.ANSWERED):
    turn = Turn([state], list(ids), [-1.0] * len(ids), [0] * len(ids), "", "text")
    return Trajectory(TASK, 0, 0, Budget(), [turn], stop, reward=reward, group=group, role=role)


def weights(credit, episodes):
    return [s.weights for s in credit(episodes)]


STATE = [episode("forced", r) for r in (1, 0, 0, 0)] + [episode("go_on", r, ids=(1, 2)) for r in (1, 1, 0, 0)]


def test_weights_by_hand():
    """At once 1/4 succeed, going on 1/2: a success that went on gets 1/2 and 0.5 (1 - 1/4)."""
    assert weights(ProgressCredit(bonus=0.5), STATE) == [
        [0.75], [-0.25], [-0.25], [-0.25], *[[0.5 + 0.375] * 2] * 2, *[[-0.5 - 0.125] * 2] * 2,
    ]  # fmt: skip


def test_what_goes_on_without_gain_is_punished_where_answering_at_once_succeeds():
    state = [episode("forced", 1), episode("forced", 1), episode("go_on", 0), episode("go_on", 0)]
    assert weights(ProgressCredit(), state) == [[0], [0], [-1], [-1]]
    assert weights(ProgressCredit(bonus=0), state) == [[0]] * 4


def test_states_are_apart_and_a_scale_divides_the_outcome_alone():
    other = [episode("forced", 0, 1), episode("forced", 0, 1), episode("go_on", 1, 1), episode("go_on", 0, 1)]
    found = weights(ProgressCredit(scale="std"), [*STATE, *other])
    assert found[:8] == weights(ProgressCredit(scale="std"), STATE)
    assert found[8:] == [[0], [0], [1 + 1], [-1]]


def test_without_forced_episodes_there_is_no_bonus():
    state = [episode("go_on", 1), episode("go_on", 0)]
    assert weights(ProgressCredit(), [*state, episode("forced", 1, stop=StopReason.INFRA_FAILURE)]) == [[0.5], [-0.5]]


def test_traces_and_failures_are_not_trained():
    extra = [episode("trace", 1, 5), episode("trace", 0, 5), episode("go_on", 0, stop=StopReason.INFRA_FAILURE)]
    assert ProgressCredit()([*extra, *STATE]) == ProgressCredit()(STATE)
    assert ProgressCredit()(extra) == [] == ProgressCredit()([])


@pytest.mark.parametrize("settings", [{"scale": "none"}, {"scale": "std", "centre": "leave_one_out"}])
def test_episodes_from_the_start_are_held_against_each_other_as_ever(settings):
    plain = [episode("", r, g) for r, g in ((1, 0), (0, 0), (0, 0), (1, 1), (0, 1))]
    assert ProgressCredit(**settings)(plain) == GroupRelative(**settings)(plain)


def test_it_is_built_again_from_its_data():
    credit = ProgressCredit(bonus=0.5, centre="leave_one_out", scale=2.0)
    assert build(Credit, credit.as_data()) == credit


def problems() -> tuple[EnumerableMDP, EnumerableMDP, np.ndarray]:
    """From state 0 an episode goes on to state 1 or 2 and then answers; one that is forced answers in state 3."""
    moves = np.zeros((5, 2, 5))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1:, :, 4] = 1
    rng = np.random.default_rng(3)
    rewards = np.where(np.arange(5)[:, None] > 0, rng.random((5, 2)), 0.0)
    start = np.eye(5)
    ends = np.arange(5) == 4
    going = EnumerableMDP(moves, rewards, start[0], ends, horizon=2)
    return going, EnumerableMDP(moves, rewards, start[3], ends, horizon=1), rng.normal(size=(5, 2))


@pytest.mark.parametrize(
    ("settings", "sizes", "outcome"),
    [
        ({"centre": "leave_one_out"}, (2, 2), (1, 1)),
        ({"centre": "leave_one_out", "bonus": 0.5}, (3, 1), (1, 0)),  # one alone has nothing to be held against
        ({"centre": "mean"}, (2, 2), (1 / 2, 1 / 2)),
        ({"centre": "mean", "bonus": 2.0}, (3, 2), (2 / 3, 1 / 2)),
        ({"centre": "none", "bonus": 0.0}, (1, 1), (1, 1)),
    ],
)
def test_the_expected_gradient_is_that_of_going_on_and_of_answering_at_once(settings, sizes, outcome):
    """Per episode of a role: (k + bonus) times the exact gradient of going on, k that of answering at once."""
    going, forced, logits = problems()
    credit = ProgressCredit(**settings)
    policy, found = going.policy(logits), {"go_on": np.zeros_like(logits), "forced": np.zeros_like(logits)}
    roles = ["go_on"] * sizes[0] + ["forced"] * sizes[1]
    every = {"go_on": list(going.trajectories(logits)), "forced": list(forced.trajectories(logits))}
    for paths in itertools.product(*(every[role] for role in roles)):
        episodes = []
        for n, (role, path) in enumerate(zip(roles, paths, strict=True)):
            turns = [Turn([s], [a], [-1.0], [0], "", "") for s, a in zip(path.states, path.actions, strict=True)]
            episodes.append(Trajectory(TASK, n, 0, Budget(), turns, StopReason.ANSWERED, reward=sum(path.rewards),
                                       role=role))  # fmt: skip
        chance = np.prod([p.probability for p in paths])
        for s in credit(episodes):
            state, action = s.prompt_ids[0], s.sampled_ids[0]
            score = -policy[state] + (np.arange(2) == action)
            found[roles[s.episode]][state] += chance * s.weights[0] * score
    bonus = credit.bonus
    np.testing.assert_allclose(found["go_on"] / sizes[0], (outcome[0] + bonus) * going.gradient(logits), atol=1e-12)
    np.testing.assert_allclose(found["forced"] / sizes[1], outcome[1] * forced.gradient(logits), atol=1e-12)


@pytest.mark.parametrize(
    ("tokens", "solved", "budget", "area"),
    [
        ([10], [1.0], 10, 0.5),  # straight up from nothing
        ([10], [1.0], 20, 0.75),  # and stays there
        ([10, 20], [0.5, 1.0], 15, (10 * 0.25 + 5 * 0.625) / 15),  # cut between two points
        ([10, 20], [1.0, 0.0], 40, (5 + 5) / 40),  # an answer that is lost again
        ([], [], 8, 0.0),
    ],
)
def test_regret_by_hand(tokens, solved, budget, area):
    assert regret(tokens, solved, budget) == pytest.approx(1 - area)


@pytest.mark.parametrize(("tokens", "solved", "budget"), [([5, 5], [0, 1], 9), ([5], [0, 1], 9), ([5], [1], 0)])
def test_regret_refuses_what_is_no_curve(tokens, solved, budget):
    with pytest.raises(ValueError, match="regret needs ascending tokens"):
        regret(tokens, solved, budget)
