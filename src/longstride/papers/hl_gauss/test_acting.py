"""HL-Gauss that acts: recipes learn in a world of the test's own, and their values are those of its rewards."""

import numpy as np
import pytest
import torch
from aiming import PLACES, Aiming, off_after

from longstride import papers
from longstride.models.heads import HLGauss

HEAD = HLGauss(low=-5.0, high=1.0, bins=31)


def test_an_actor_critic_aims_and_knows_what_an_action_earns() -> None:
    off, learner = off_after(papers.load("hl_gauss"), Aiming(noise=0.3), head=HEAD)
    assert off < 0.2
    state, action = torch.tensor([[-0.5], [0.5]]), torch.tensor([[0.5], [0.5]])
    assert learner.levels[0].critic is not None
    earned = learner.levels[0].critic.score(state, action)
    assert earned.tolist() == pytest.approx([-1.0, 0.0], abs=0.3)


def test_a_double_dqn_chooses_the_nearest_of_three() -> None:
    off, _ = off_after(papers.load("hl_gauss/discrete"), Aiming(discrete=True, noise=0.3), head=HEAD)
    nearest = np.abs(np.linspace(-1, 1, 1001)[:, None] - PLACES).min(1).mean()
    assert off < nearest + 0.1


def test_cql_learns_from_data() -> None:
    recipe = papers.load("hl_gauss/recorded")
    off, _ = off_after(recipe, Aiming(), extraction={"temperature": 0.01}, head=HEAD, conservative={"weight": 0.1})
    assert off < 0.2
