"""SERL: what a batch is made of, and what it differs in from its arms."""

import numpy as np
import torch

from longstride.control import TDCritic, TransitionStore
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.control.targets import subsample
from longstride.papers.serl.recipe import CLAIM, RECIPE


def test_half_of_a_batch_is_demonstrations_and_half_is_collected() -> None:
    tasks = RECIPE.tasks.replace(episodes=3)
    old, new = (TransitionStore.of(tasks.dataset(seed)) for seed in (0, 1))
    learner, half = ControlLearner(RECIPE.agent, tasks.spec, seed=0), RECIPE.agent.batch // 2
    assert RECIPE.phase(1).retained == 0.5
    (drawn,) = learner.draw([(old, half), (new, half)], updates=1)
    observed = learner.levels[0].read(drawn["critic"], learn=True).state_BS[0, :, :4].numpy()
    from_old = [any(np.array_equal(row, o) for o in old.observation) for row in observed]
    from_new = [any(np.array_equal(row, o) for o in new.observation) for row in observed]
    assert from_old[:half] == [True] * half and from_new[half:] == [True] * half


def test_two_of_ten_normalised_critics_make_a_target() -> None:
    critic = RECIPE.agent.levels[0].critic
    assert isinstance(critic, TDCritic) and critic.trunk.norm and critic.conservative is None
    values = torch.arange(10.0)[:, None]
    found = {tuple(sorted(subsample(values, critic.subset, RunNoise.seeded(k))[:, 0].tolist())) for k in range(40)}
    assert all(len(pair) == 2 for pair in found) and len(found) > 20


def test_arms_differ_in_data_and_learner_alone() -> None:
    phases = {name: arm.phases[0] for name, arm in CLAIM.arms.items()}  # pyright: ignore[reportAttributeAccessIssue]
    assert phases["rlpd"] == phases["expert_rlpd"] and phases["rlpd"].retained == 0.5 and phases["rlpd"].episodes
    assert phases["cloning"] == phases["expert_cloning"] and not phases["cloning"].episodes
    assert (
        phases["rlpd"].iterations * phases["rlpd"].updates == phases["cloning"].iterations * phases["cloning"].updates
    )
    walks = {name: arm.tasks.episodes for name, arm in CLAIM.arms.items()}  # pyright: ignore[reportAttributeAccessIssue]
    assert walks == {"rlpd": 5, "cloning": 5, "expert_rlpd": 400, "expert_cloning": 400}
    assert all(arm.tasks.maze == "umaze" for arm in CLAIM.arms.values())  # pyright: ignore[reportAttributeAccessIssue]
    assert min(CLAIM.seeds) >= 100
