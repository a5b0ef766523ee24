"""Critics of stored turns: moves, values of who was stored, encoders that are frozen or learn, and exact resume."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from estimators import episode_of
from helpers import Collected, make_trajectory, make_turn, tiny_policy

from longstride.core.budget import StopReason
from longstride.core.trajectory import Trajectory
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.learner.critics import CriticBatch, Moves, StoredEstimates, StoredValues
from longstride.learner.stored_critic import StoredCritic
from longstride.methods import AdvantageWeighted
from longstride.models.load import save_policy
from longstride.models.tiny import TinyConfig

if TYPE_CHECKING:
    from torch import Tensor

STATES, DISCOUNT = 3, 0.9


class Played(StoredValues):
    """Values of the policy that was stored."""

    def losses(self, said: StoredEstimates, moves: Moves) -> "dict[str, Tensor]":
        rewards_N, discounts_N = (said.q_2_N.new_tensor(of) for of in (moves.rewards, moves.discounts))
        goal_2_N = rewards_N + discounts_N * said.target_v_M_N[:, moves.following]
        return {"q": (said.q_2_N - goal_2_N).square().mean(), "v": (said.v_M_N - said.target_q_2_N).square().mean()}


def chain() -> tuple[EnumerableMDP, np.ndarray]:
    """Action 0 goes on, which earns 1 from the last state; action 1 gives up for 0.3. It is stored from chance."""
    moves, rewards = np.zeros((STATES + 1, 2, STATES + 1)), np.zeros((STATES + 1, 2))
    for s in range(STATES):
        moves[s, 0, s + 1] = moves[s, 1, STATES] = 1
    moves[STATES, :, STATES], rewards[STATES - 1, 0], rewards[:STATES, 1] = 1, 1.0, 0.3
    problem = EnumerableMDP(moves, rewards, np.eye(STATES + 1)[0], np.arange(STATES + 1) == STATES, STATES, DISCOUNT)
    return problem, np.zeros((STATES + 1, 2))


def stored(episodes: int = 60) -> list[Trajectory]:
    problem, logits = chain()
    return [episode_of(p, ordinal=k) for k, p in enumerate(problem.sample(logits, np.random.default_rng(0), episodes))]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("encoder") / "encoder"
    save_policy(tiny_policy("a b c", shape=TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=32)), folder)
    return str(folder)


def critic_of(encoder: str, seed: int = 0, **numbers: float) -> StoredCritic:
    return StoredCritic(
        Played(encoder=encoder, discount=DISCOUNT, width=32, batch_episodes=60).replace(**numbers), seed
    )


def learn(critic: StoredCritic, episodes: Sequence[Trajectory], judged: Sequence[Trajectory] = ()) -> dict[str, float]:
    return critic.before_update(CriticBatch(judged, AdvantageWeighted(), Collected(episodes), random.Random(1)))


def test_moves_end_where_the_episode_ended_and_go_on_where_a_budget_cut_it() -> None:
    ended = make_trajectory([make_turn([0], reward=0.5), make_turn([1])], reward=1.5)
    cut = make_trajectory([make_turn([2]), make_turn([3], reward=0.25)], 0.25, stop=StopReason.TURNS)
    moves = Moves.of([ended, make_trajectory([]), cut], 0.9)
    assert [turn.sampled_ids for turn in moves.turns] == [[0], [1], [2], [3]]
    assert moves.rewards == [0.5, 1.0, 0.0, 0.25] and moves.discounts == [0.9, 0.0, 0.9, 0.9]
    assert moves.following == [1, 1, 3, 3] and moves.returns() == pytest.approx([1.4, 1.0, 0.225, 0.25])


def test_values_are_those_of_who_was_stored(encoder: str) -> None:
    problem, logits = chain()
    judged = make_trajectory([make_turn([a], [s]) for s in range(STATES) for a in (0, 1)])
    learn(critic_of(encoder, lr=1e-2, steps=120, width=16), stored(100), [judged])
    q_H_S_A = problem.action_values(logits)
    exact = [q_H_S_A[s, s, a] for s in range(STATES) for a in (0, 1)]  # state s is only ever come to at step s
    assert [turn.estimates["action_value"] for turn in judged.turns] == pytest.approx(exact, abs=0.1)
    means = [sum(exact[2 * s : 2 * s + 2]) / 2 for s in range(STATES)]
    assert [turn.estimates["value"] for turn in judged.turns[::2]] == pytest.approx(means, abs=0.1)


def test_a_frozen_encoder_stays_and_another_one_learns(encoder: str) -> None:
    for frozen in (True, False):
        critic = critic_of(encoder, steps=2, frozen=frozen)
        before = [p.clone() for p in critic.encoder.parameters()]
        learn(critic, stored(4))
        same = all(torch.equal(a, b) for a, b in zip(before, critic.encoder.parameters(), strict=True))
        assert same == frozen


def test_targets_follow_by_tau(encoder: str) -> None:
    critic = critic_of(encoder, steps=1, tau=0.25)
    before = [p.clone() for p in critic.target.parameters()]
    learn(critic, stored(4))
    for old, target, online in zip(before, critic.target.parameters(), critic.online.parameters(), strict=True):
        torch.testing.assert_close(target, 0.75 * old + 0.25 * online.detach(), atol=1e-6, rtol=1e-5)


def test_where_nothing_is_stored_nothing_is_learnt(encoder: str) -> None:
    assert learn(critic_of(encoder), []) == {}


def test_a_critic_restored_from_its_state_goes_on_as_it_would_have(encoder: str) -> None:
    one, other = critic_of(encoder, steps=3), critic_of(encoder, seed=5, steps=3)
    learn(one, stored(8))
    other.load_state({name: value.clone() for name, value in one.state().items()})
    judged = [make_trajectory([make_turn([1], [0])]) for _ in "ab"]
    for critic, t in zip((one, other), judged, strict=True):
        learn(critic, stored(8), [t])
    assert judged[0].turns[0].estimates == judged[1].turns[0].estimates


def test_an_action_weighs_by_how_much_better_it_is_and_no_more_than_the_most() -> None:
    turns = [make_turn([1], estimates={"action_value": q, "value": 0.5}) for q in (0.5, 0.7, 0.3, 90.0)]
    (weights,) = AdvantageWeighted(temperature=0.2, most=5.0).advantages([make_trajectory(turns)])
    assert weights == pytest.approx([1.0, np.e, 1 / np.e, 5.0])
