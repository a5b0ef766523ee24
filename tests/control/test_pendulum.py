"""Pendulum: a step is Gymnasium's, and what is done to rewards changes no measure."""

import numpy as np
import pytest

from longstride.control import Pendulum
from longstride.control.envs import play


def swinging(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
    """Full torque the way the pole moves, and beyond what there is."""
    return 1.5 * np.sign(observation_BO[:, 2:])


def test_steps_are_those_of_gymnasium() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    ours, theirs = Pendulum().training(1, 60), gymnasium.make("Pendulum-v1").unwrapped
    seen = ours.reset(3)
    theirs.reset(seed=0)
    theirs.state = np.array([ours.angle[0], ours.velocity[0]])
    for _ in range(60):
        torque_B1 = swinging(seen, seen, seen)
        step = ours.step(torque_B1)
        expected, reward, *_ = theirs.step(2 * torque_B1[0])
        np.testing.assert_allclose(step.observation[0], expected, atol=1e-5)
        assert step.reward[0] == pytest.approx(reward)
        seen = step.observation
    assert step.truncated.all() and not step.terminated.any()
    still = ours.step(torque_B1)
    np.testing.assert_array_equal(still.observation, seen)
    assert still.reward[0] == 0


def test_a_lighter_and_shorter_pole_in_less_gravity_is_turned_faster_and_falls_more_slowly() -> None:
    for tasks, expected in (
        (Pendulum(mass=0.5), 3 * 2.0 / 0.5), (Pendulum(length=0.5), 3 * 2.0 / 0.25), (Pendulum(gravity=2.0), 3 * 2.0)
    ):  # fmt: skip
        env = tasks.training(1, 5)
        env.reset(0)
        env.angle, env.velocity = np.zeros(1), np.zeros(1)
        env.step(np.ones((1, 1)))
        assert env.velocity[0] == pytest.approx(0.05 * expected)
        env.angle, env.velocity = np.full(1, np.pi / 2), np.zeros(1)
        env.step(np.zeros((1, 1)))
        assert env.velocity[0] == pytest.approx(0.05 * 1.5 * tasks.gravity / tasks.length)


def test_scale_and_noise_are_of_the_rewards_alone() -> None:
    plain, changed = Pendulum(), Pendulum(reward_scale=10.0, reward_noise=2.0)
    ours, theirs = (play(tasks.training(3, 40), swinging, seed=5) for tasks in (plain, changed))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.observation, other.observation)
        noise = other.reward / 10 - one.reward
        assert 1.0 < noise.std() < 3.0 and one.success == other.success is not None
        measures = plain.measures(one)
        assert measures == changed.measures(other)
        assert measures["return"] == pytest.approx(one.reward.sum(dtype=float), rel=1e-5)
    assert 0 < np.mean([plain.measures(e)["upright"] for e in play(plain.training(20, 40), swinging, seed=5)]) < 1


def test_finer_steps_lead_to_the_same_place_and_chance_spreads_with_the_root_of_time() -> None:
    def after(seconds: float, shaking: float | None, count: int, seconds_in_all: float) -> np.ndarray:
        env = Pendulum(seconds=seconds, shaking=shaking, gravity=1e-9).training(count, 10_000)
        env.reset(0)
        env.angle, env.velocity = np.zeros(count), np.zeros(count)
        for _ in range(round(seconds_in_all / seconds)):
            env.step(np.full((count, 1), 0.1))
        return env.velocity

    assert after(0.05, None, 1, 1.0) == pytest.approx(after(0.01, None, 1, 1.0)) == 3 * 0.2
    for seconds in (0.05, 0.01):
        assert after(seconds, 0.5, 2000, 0.5).std() == pytest.approx(0.5 * 0.5**0.5, rel=0.05)
