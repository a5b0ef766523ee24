"""ECHO: what was seen is a sample, and the gradient of both parts is the one computed by hand."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from helpers import make_trajectory, make_turn, rows_of, trajectories_of
from one_page import make_recipe, save_model

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.learner.batching import chains
from longstride.methods import KL, PPO, Mean, OnPolicy, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.cloning import FilteredBC
from longstride.papers.echo.method import OBSERVED, EchoPPO, WithObservations
from longstride.rollout.context import FullHistory


def episode(**fields) -> Trajectory:
    """Two turns; 7, 8, 9 were seen between them."""
    return make_trajectory([make_turn([1, 2], [0]), make_turn([3], [0, 1, 2, 7, 8, 9])], **fields)


def test_what_was_seen_after_a_turn_is_a_sample_of_every_episode_that_did_not_fail() -> None:
    episodes = [episode(ordinal=4, group=2), episode(ordinal=5, stop=StopReason.INFRA_FAILURE)]
    first, sample, last = WithObservations(weight=0.6)(episodes)
    assert [s.sampled_ids for s in (first, last)] == [[1, 2], [3]]
    assert not any(OBSERVED in s.streams for s in (first, last))
    assert (sample.prompt_ids, sample.sampled_ids) == ([0, 1, 2], [7, 8, 9])
    assert sample.streams == {ADVANTAGES: [pytest.approx(0.2)] * 3, OBSERVED: [1.0] * 3}
    assert (sample.episode, sample.group, sample.turn) == (4, 2, 0)


def test_what_a_turn_was_made_to_begin_with_was_not_seen() -> None:
    t = episode()
    t.turns[1].given = 1
    assert WithObservations()([t])[1].sampled_ids == [7, 8]


def test_an_episode_is_one_row_whose_samples_stand_together() -> None:
    episodes = [episode(ordinal=9), episode(ordinal=4)]
    assert chains(WithObservations()(episodes)) == [[0, 1, 2], [3, 4, 5]]


def test_a_context_that_rewrites_what_was_seen_is_refused() -> None:
    t = episode()
    t.turns[1].prompt_ids = [0, 1, 5, 7]
    with pytest.raises(ConfigError, match=r"context\.type=full_history"):
        WithObservations()([t])


@dataclass
class Tokens:
    streams: dict[str, torch.Tensor]
    sequence_P: torch.Tensor
    entropy_P: torch.Tensor | None = None


def test_the_gradient_is_that_of_ppo_on_what_was_sampled_and_of_the_likelihood_on_what_was_seen() -> None:
    """Two sampled tokens, of which the clip cuts one, and two of an observation, which have no log-probability of
    sampling."""
    logp = torch.tensor([-1.0, -0.5, -2.0, -3.0], requires_grad=True)
    nan = float("nan")
    streams = {
        ADVANTAGES: torch.tensor([2.0, 1.0, 0.25, 0.25]),
        BEHAVIOUR: torch.tensor([-1.1, -1.5, nan, nan]),
        OBSERVED: torch.tensor([nan, nan, 1.0, 1.0]),
    }
    terms = EchoPPO()(logp, Tokens(streams, torch.tensor([0, 0, 1, 1])))
    terms.loss_P.sum().backward()
    assert logp.grad is not None
    assert logp.grad.tolist() == pytest.approx([-2 * torch.tensor(0.1).exp().item(), 0.0, -0.25, -0.25])
    assert terms.loss_P[2:].tolist() == pytest.approx([0.5, 0.75])
    assert terms.clipped_P is not None and terms.clipped_P.tolist() == [False, True, False, False]


def test_without_observations_it_is_ppo() -> None:
    logp = torch.tensor([-1.0, -0.5])
    streams = {ADVANTAGES: torch.tensor([2.0, -1.0]), BEHAVIOUR: torch.tensor([-1.1, -1.5])}
    tokens = Tokens(streams, torch.tensor([0, 0]))
    assert EchoPPO()(logp, tokens).loss_P.tolist() == PPO()(logp, tokens).loss_P.tolist()


def test_observations_are_held_to_no_reference() -> None:
    policy, seen = Sample([0], [1], {ADVANTAGES: [1.0]}), Sample([0, 1], [2], {ADVANTAGES: [1.0], OBSERVED: [1.0]})
    found = EchoPPO(kl=KL(coefficient=0.1), entropy=0.2, aggregation=Mean()).coefficients([policy, seen])
    assert {tuple(values) for values in found.values()} == {(0.1, 0.0), (0.2, 0.0)}


def test_a_run_learns_from_the_pages_of_its_failures(tmp_path: Path) -> None:
    changes = {"context": FullHistory(), "iterations": 2, "replay": OnPolicy(), "loss": EchoPPO()}
    recipe = make_recipe(save_model(tmp_path / "model"), credit=WithObservations(credit=FilteredBC()), **changes)
    recipe.train(tmp_path / "run")
    rows, played = rows_of(tmp_path / "run", "train"), trajectories_of(tmp_path / "run")
    cloned = sum(len(turn.sampled_ids) for t in played if t.success for turn in t.turns)
    pages = sum(
        len(later.prompt_ids) - len(turn.prompt_ids) - len(turn.sampled_ids)
        for t in played
        for turn, later in pairwise(t.turns)
    )
    assert pages > 0 and sum(row["trained_tokens"] for row in rows) == cloned + pages
