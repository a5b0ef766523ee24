"""Digi-Q: candidates and the best of them, features that know what changes, stored runs, and a model and tasks of one's own."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from elsewhere import train_elsewhere
from helpers import Collected, make_trajectory, make_turn, rows_of, tiny_policy, trajectories_of

from longstride.core.trajectory import Trajectory
from longstride.learner.networks import TurnEncoder
from longstride.models.load import save_policy
from longstride.papers.digi_q.method import BestCandidate, Candidates, FrozenQ


class Proposing(Collected):
    """Who proposes one after the other what was not done yet."""

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        return [
            replace(t, turns=[replace(u, sampled_ids=[10 + n]) for u in t.turns]) for n, t in enumerate(trajectories)
        ]


def test_each_turn_has_what_was_done_and_so_many_proposals() -> None:
    drawn = [make_trajectory([make_turn([1]), make_turn([2])], ordinal=n) for n in range(2)]
    found = Candidates(proposals=3).renew(drawn, random.Random(0), Proposing())
    assert found[:2] == drawn and [t.ordinal for t in found] == [0, 1, 0, 0, 0, 1, 1, 1]
    assert [t.turns[1].sampled_ids for t in found] == [[2], [2], [10], [11], [12], [13], [14], [15]]


def candidates(*qs: float, value: float = 0.5, ordinal: int = 0) -> list[Trajectory]:
    """Of a turn, behind one in which nothing was sampled."""
    return [
        make_trajectory([make_turn([]), make_turn([n], estimates={"action_value": q, "value": value})], ordinal=ordinal)
        for n, q in enumerate(qs)
    ]


def test_the_best_of_a_turn_is_imitated_where_it_is_better_than_the_state() -> None:
    played = [*candidates(0.4, 0.7, 0.6), *candidates(0.52, 0.1, ordinal=1), *candidates(0.9, 0.9, ordinal=2)]
    found = [(s.episode, s.turn, s.sampled_ids, s.advantages) for s in BestCandidate(threshold=0.05)(played)]
    assert found == [(0, 1, [1], [1.0]), (1, 1, [0], [0.0]), (2, 1, [0], [1.0])], "of equals it is what was done"


def test_features_learn_what_an_action_changes(tmp_path: Path) -> None:
    """In half of the states action 1 changes what is seen, in the others action 2."""
    save_policy(tiny_policy("a b c"), tmp_path / "encoder")
    encoder = TurnEncoder(str(tmp_path / "encoder"))
    stored = [make_trajectory([make_turn([a], [s], changed=(a == 1) == (s < 3))]) for s in range(6) for a in (1, 2)] * 4
    config = FrozenQ(change_steps=1, change_lr=3e-3, change_episodes=24)
    first, later = (config.replace(change_steps=n).prepare(encoder, stored, random.Random(0)) for n in (1, 40))
    assert first == {"change_loss": pytest.approx(log(2))} and later["change_loss"] < 0.3
    assert config.replace(change_steps=0).prepare(encoder, stored, random.Random(0)) == {}


def test_a_model_and_tasks_of_ones_own_learn_from_a_stored_run_as_from_their_own_games(tmp_path: Path) -> None:
    small = ("critic.steps=5", "critic.change_steps=2", "replay.proposals=2", "iterations=1", "evaluation.tasks=1")
    own = [*small, f"critic.encoder={tmp_path / 'model'}"]
    live = train_elsewhere("digi_q", tmp_path, *own)
    (row,) = rows_of(live, "train")
    assert row["action_value_loss"] > 0 and row["value_loss"] > 0 and row["change_loss"] > 0
    assert row["trained_turns"] == 2 * sum(t.length for t in trajectories_of(live)), "one candidate of each, twice"
    again = train_elsewhere("digi_q", tmp_path / "again", *own, f"stored_run={live}")
    (stored,) = rows_of(again, "train")
    assert {k: stored[k] for k in ("action_value_loss", "loss")} == {k: row[k] for k in ("action_value_loss", "loss")}
