"""T-PPO: advantages of pieces by hand, what the critic of tokens learns from, slots that are filled, and a model and tasks
of one's own."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elsewhere import train_elsewhere
from helpers import (
    Collected,
    make_planner,
    make_trajectory,
    make_turn,
    played,
    rows_of,
    run_stages,
    trajectories_of,
    word_chat,
)

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import PIECE, Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.learner.critics import CriticBatch, TokenValue
from longstride.methods import Sample
from longstride.methods.advantages import GAE
from longstride.papers.t_ppo.method import ExtendedGAE
from longstride.papers.t_ppo.recipe import CLAIM
from longstride.rollout import PartialRollouts, summarise


def answer(values: list[float], reward: float = 0.0, **fields) -> Trajectory:
    turn = make_turn(range(len(values)), token_values=values, estimates={"value": values[0]})
    return make_trajectory([turn], reward, **fields)


def test_behind_a_cut_stands_the_last_value_and_a_piece_has_earned_nothing() -> None:
    # what was cut may read like an answer, which was judged and ended the task
    piece = answer([0.2, 0.5, 0.4], reward=1.0, stop=StopReason.ANSWERED, role=PIECE)
    whole = answer([0.2, 0.5, 0.4], reward=1.0, stop=StopReason.ANSWERED)
    (a,), (b,) = ExtendedGAE(lam=0.5)([piece]), ExtendedGAE(lam=0.5)([whole])
    # deltas .3, -.1 and 0 or .6
    assert a.advantages == pytest.approx([0.3 - 0.05, -0.1, 0.0])
    assert b.advantages == pytest.approx([0.3 - 0.05 + 0.15, -0.1 + 0.3, 0.6])
    assert ExtendedGAE(lam=0.5).targets([piece, whole]) == [pytest.approx([0.2 + 0.25]), pytest.approx([0.2 + 0.4])]
    discounted = ExtendedGAE(lam=0.5, discount=0.9)([piece])[0].advantages
    assert discounted[-1] == pytest.approx(0.9 * 0.4 - 0.4)  # r + gamma V - V


def test_without_a_critic_of_tokens_all_tokens_of_a_turn_have_its_value() -> None:
    turn = make_turn(range(3), estimates={"value": 0.25})
    sample = GAE(over="tokens", values="critic")([make_trajectory([turn], 1.0, stop=StopReason.ANSWERED)])[0]
    assert sample.advantages == pytest.approx([0.75, 0.75, 0.75])
    by_turn = replace(turn, token_values=[0.25, 0.5, 1.0])
    tokens = GAE(over="tokens", values="critic")([make_trajectory([by_turn], 1.0, stop=StopReason.ANSWERED)])[0]
    assert tokens.advantages == pytest.approx([0.75, 0.5, 0.0])
    turns = GAE(over="turns", values="critic")([make_trajectory([by_turn], 1.0, stop=StopReason.ANSWERED)])[0]
    assert turns.advantages == pytest.approx([0.75, 0.75, 0.75])


class OneHot:
    """Hidden states that are the token before each place, one-hot."""

    device = "cpu"

    def features(self, samples: Sequence[Sample]) -> torch.Tensor:
        before = [i for s in samples for i in [s.prompt_ids[-1], *s.sampled_ids[:-1]]]
        return torch.nn.functional.one_hot(torch.tensor(before), 8).float()


def test_the_critic_of_tokens_learns_from_whole_answers_that_have_ended_alone() -> None:
    critic = TokenValue(width=16, depth=1, lr=0.05, epochs=60).make(OneHot(), seed=0)
    # the first piece of this answer, tokens 1 2, was sampled in an earlier iteration
    ended = make_trajectory([make_turn([3, 4], [0, 1, 2], given=2)], 1.0, stop=StopReason.ANSWERED)
    failed = make_trajectory([make_turn([5, 6], [0])], 0.0, stop=StopReason.ANSWERED)
    piece = make_trajectory([make_turn([7, 7, 7], [7])], 0.0, stop=StopReason.TOKENS, role=PIECE)
    cut = make_trajectory([make_turn([6, 6], [6])], 0.0, stop=StopReason.TOKENS)
    batch = CriticBatch([ended, failed, piece, cut], ExtendedGAE(), Collected(), random.Random(0))
    critic.estimate(batch.trajectories)
    unknown = piece.turns[0].token_values
    for _ in range(3):
        found = critic.after_update(batch)
    critic.estimate(batch.trajectories)
    assert found["value_explained"] > 0.4  # the token 0 begins an answer that earned 1, and one that earned 0
    assert ended.turns[0].token_values == pytest.approx([1, 1], abs=0.15)  # after tokens 2 and 3
    first, second = failed.turns[0].token_values
    assert (first, second) == pytest.approx((0.5, 0.0), abs=0.15) and failed.turns[0].estimates["value"] == first
    early = make_trajectory([make_turn([2], [1])])
    critic.estimate([early])
    assert early.turns[0].token_values == pytest.approx([1], abs=0.15)  # token 1 stands in the earlier piece
    assert len(unknown) == 3
    for unfinished in (piece, cut):  # it learns nothing, and says so
        found = critic.after_update(replace(batch, trajectories=[unfinished]))
        assert found == {"value_loss": 0.0, "value_explained": 0.0}


CHAT = word_chat("Thought: 3 + 4 = 7 Action: answer 7")
WORDS = CHAT.encode("Thought: 3 + 4 = 7 Action: answer 7")


def test_slots_of_answers_that_ended_are_filled_and_an_iteration_takes_a_window_of_each() -> None:
    experience, lengths = Collected(), {}

    def play(plan):
        length = lengths.setdefault(plan.group, (2, 5, 9)[plan.group % 3])
        begun = len(plan.prefix)
        said = WORDS[begun : begun + min(length - begun, plan.budget.turn_tokens - begun)]
        t = played(plan, said)
        t.turns[0].finish = "length" if begun + len(said) < length else "stop"
        return t

    slots = []
    for iteration in (1, 2, 3):
        planner = make_planner(
            ModularChain(), iteration, len(experience.trajectories), episodes=6, size=1, chat=CHAT, experience=experience,
            budget=Budget(turns=1, turn_tokens=20),
        )  # fmt: skip
        _, found = run_stages(PartialRollouts(tokens=4).plan(planner), play)
        experience.trajectories += found
        slots.append((len(found), sum(t.role == PIECE for t in found), summarise(found)["slot_steps"]))
    assert [each[0] for each in slots] == [6, 6, 6]  # always as many answers at once
    assert slots[0] == (6, 4, 24)  # of lengths 2, 5, 9, 2, 5, 9 four are cut at 4, and six slots take four steps


def test_a_critic_of_tokens_needs_episodes_of_one_turn() -> None:
    with pytest.raises(ConfigError, match="set budget.turns to 1, not 3, or critic.type to turn_value"):
        CLAIM.recipe.replace(budget={"turns": 3})


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(
        "t_ppo", tmp_path, "group_size=1", "sampler.tokens=2", "critic.warmup=1", "critic.width=8", "iterations=3"
    )
    pieces = [t for t in trajectories_of(run) if t.role == PIECE]
    assert pieces and all(len(t.turns[0].sampled_ids) == 2 for t in pieces)
    assert {t.turns[0].given for t in trajectories_of(run) if t.iteration == 2} >= {2}
    first, *later = rows_of(run, "train")
    assert first["grad_norm"] == 0 and any(row["grad_norm"] > 0 for row in later)
    assert first["summary"]["slot_steps"] == 32


def test_arms_differ_in_the_sampler_and_in_how_lengths_differ() -> None:
    assert set(CLAIM.changes("whole")) == {"sampler", "iterations", "critic.warmup", "evaluation.every"}
