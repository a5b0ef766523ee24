"""SERL: what a batch is made of, and what it differs in from its arms."""

import numpy as np
import torch

from longstride.control import TDCritic, TransitionStore
from longstride.control.learner import ControlLearner
from longstride.control.targets import subsample
from longstride.recipes.control.serl import CLAIM, RECIPE


def test_half_of_a_batch_is_demonstrations_and_half_is_collected() -> None:
    tasks = RECIPE.tasks.replace(episodes=3)
    old, new = (TransitionStore.of(tasks.dataset(seed)) for seed in (0, 1))
    learner, half = ControlLearner(RECIPE.agent, tasks.spec, seed=0), RECIPE.agent.batch // 2
    assert RECIPE.phase(1).retained == 0.5
    drawn, _ = learner._draw([(old, half), (new, half)], np.random.default_rng(0))  # pyright: ignore[reportPrivateUsage]
    observed = drawn[0].state_BS[:, :4].numpy()
    from_old = [any(np.array_equal(row, o) for o in old.observation) for row in observed]
    from_new = [any(np.array_equal(row, o) for o in new.observation) for row in observed]
    assert from_old[:half] == [True] * half and from_new[half:] == [True] * half


def test_two_of_ten_normalised_critics_make_a_target() -> None:
    critic = RECIPE.agent.levels[0].critic
    assert isinstance(critic, TDCritic) and critic.trunk.norm and critic.conservative is None
    values = torch.arange(10.0)[:, None]
    found = {
        tuple(sorted(subsample(values, critic.subset, torch.Generator().manual_seed(k))[:, 0].tolist()))
        for k in range(40)
    }
    assert all(len(pair) == 2 for pair in found) and len(found) > 20


def test_arms_differ_in_data_and_learner_alone() -> None:
    assert [arm.phases[0].retained for name, arm in CLAIM.arms.items() if name in ("rlpd", "sac")] == [0.5, 0.0]  # pyright: ignore[reportAttributeAccessIssue]
    assert all(arm.tasks.maze == "umaze" for arm in CLAIM.arms.values())  # pyright: ignore[reportAttributeAccessIssue]
    assert len(CLAIM.seeds) == 20 and min(CLAIM.seeds) >= 100
