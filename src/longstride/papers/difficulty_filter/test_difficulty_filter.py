"""The difficulty filter: which groups are kept, and the update of a group against its closed form."""

import random

import numpy as np
import pytest
from helpers import Collected, make_planner, make_trajectory, played, run_stages

from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.exact.experiment import ExactRecipe
from longstride.methods.advantages import group_advantages
from longstride.papers.difficulty_filter.exact import CLAIM, SkillGRPO, Skills, chance, group_gradient
from longstride.papers.difficulty_filter.method import InBand
from longstride.papers.difficulty_filter.recipe import RECIPE
from longstride.rollout import DynamicSampling
from longstride.rollout.episode import Plan


def group_of(right: int, size: int = 8, group: int = 0) -> list[Trajectory]:
    return [make_trajectory(reward=float(k < right), group=group, ordinal=group * size + k) for k in range(size)]


@pytest.mark.parametrize(("right", "kept"), [(0, False), (1, False), (2, True), (6, True), (7, False), (8, False)])
def test_a_group_is_kept_where_its_share_of_right_answers_is_in_the_band(right: int, kept: bool) -> None:
    experience = Collected(group_of(4, group=0) + group_of(right, group=1))
    drawn = RECIPE.replay.draw(experience.records, 16, random.Random(0), experience)
    assert {r.group for r in drawn} == ({0, 1} if kept else {0})


def test_groups_are_played_until_enough_are_in_the_band_or_the_rounds_are_over() -> None:
    planner = make_planner(ModularChain(), episodes=4 * 8, size=8, replay=InBand())
    shares = [0, 4, 8, 2, 1, 3, 4]  # of four groups, two are in the band; of two more, one; then the last

    def play(plan: Plan) -> Trajectory:
        won = plan.ordinal % 8 < shares[plan.ordinal // 8]
        return played(plan, reward=float(won))

    stages, trajectories = run_stages(DynamicSampling(rounds=5).plan(planner), play)
    assert [len(stage) // 8 for stage in stages] == [4, 2, 1]
    assert len(trajectories) == 7 * 8
    planner = make_planner(ModularChain(), episodes=8, size=8, replay=InBand())
    stages, _ = run_stages(DynamicSampling(rounds=3).plan(planner), lambda plan: played(plan, reward=1.0))
    assert len(stages) == 3


@pytest.mark.parametrize("right", [1, 4, 7])
def test_the_update_of_a_group_is_the_gradient_that_its_advantages_weigh(right: int) -> None:
    """p cancels: the sum over answers of advantage times (answer - p) x, for any p."""
    reward = np.array([1.0] * right + [0.0] * (8 - right))
    advantage = group_advantages(reward.tolist(), [0] * 8)
    x = np.array([[0.5, -2.0]])
    for p in (0.1, 0.8):
        by_hand = (advantage[:, None] * (reward - p)[:, None] * x).mean(0)
        assert np.allclose(group_gradient(np.array([right / 8]), x)[0], by_hand, atol=1e-6)


def test_a_step_trains_a_full_batch_of_the_band_and_counts_what_it_sampled() -> None:
    problem, method = Skills(), SkillGRPO(groups=4, answers=8, rate=0.5, rounds=1000)
    state = method.start(problem, np.random.default_rng(0))
    rng, after = np.random.default_rng(1), method.step(problem, state, np.random.default_rng(1))
    lacking, total, sampled = 4, np.zeros(8), 0
    while lacking:
        x, b = problem.tasks(lacking, rng)
        share = rng.binomial(8, chance(state["w"], x, b)) / 8
        kept = (share >= 0.25) & (share <= 0.75)
        total += (np.sqrt(share * (1 - share))[:, None] * x)[kept].sum(0)
        sampled += 8 * lacking
        lacking -= kept.sum()
    assert np.allclose(after["w"], 0.5 * total / 4, atol=1e-6) and after["answers"] == sampled


def test_by_updates_the_band_is_ahead_and_by_answers_it_is_not() -> None:
    ends = {}
    for name in ("balanced", "all"):
        arm = CLAIM.arms[name]
        assert isinstance(arm, ExactRecipe)
        state = arm.method.start(arm.problem, np.random.default_rng(0))
        for i in range(100 if name == "balanced" else 700):
            state = arm.method.step(arm.problem, state, np.random.default_rng(i))
            if i == 99:
                ends[name] = arm.problem.measures(state)
        ends[f"{name}_last"] = arm.problem.measures(state)
    assert ends["balanced"]["success"] > ends["all"]["success"] + 0.1
    assert ends["all_last"]["success"] > ends["balanced"]["success"]
    assert ends["balanced"]["answers"] > 5 * ends["all"]["answers"]
