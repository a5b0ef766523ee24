"""Pendulum: a pole that hangs on a motor too weak to lift it at once (Gymnasium's Pendulum-v1), many copies at a time.

What always holds: with the constants as they are, observations, rewards and ends are those of Pendulum-v1 (a test
compares them); nothing terminates; measures are of the pole, whatever is done to the rewards.

Its constants may be others: mass, length and gravity make kindred worlds, steps may be finer and the pole shaken, and
the rewards that an agent learns from may be scaled and noisy, which changes no best action.
"""

from collections.abc import Sequence

import numpy as np

from longstride.control.envs.base import ControlEpisode, ControlTasks, Spec, VectorEnv, VectorStep
from longstride.core.numbers import Positive, Weight
from longstride.core.seeds import derive

STEP, FASTEST, TORQUE = 0.05, 8.0, 2.0
"""Seconds of a step of Pendulum-v1, greatest angular velocity and greatest torque."""
UPRIGHT = 0.95
"""Cosine of the angle from which on a pole stands upright."""


class PendulumEnv(VectorEnv):
    """B poles. An observation is the angle's cosine and sine, upright at (1, 0), and the angular velocity; an action is
    the torque. An episode is a success if it ends upright.

    Args:
        tasks: the constants.
        count: B.
        horizon: steps until an episode is truncated.
    """

    def __init__(self, tasks: "Pendulum", count: int, horizon: int) -> None:
        self.tasks, self.count, self.horizon = tasks, count, horizon
        self.goal = np.zeros((count, 0))

    def reset(self, seed: int) -> np.ndarray:
        """Any angle, and a velocity between -1 and 1."""
        rng = np.random.default_rng(seed)
        self.noise, self.shakes = (np.random.default_rng(derive(seed, name)) for name in ("noise", "shakes"))
        self.angle = rng.uniform(-np.pi, np.pi, self.count)
        self.velocity = rng.uniform(-1, 1, self.count)
        self.taken = 0
        return self._observation()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        of, cost_B = self.tasks, np.zeros(self.count)
        if self.taken < self.horizon:
            torque_B = TORQUE * np.clip(action_BA[:, 0].astype(float), -1, 1)
            cost_B = _cost(self.angle, self.velocity, torque_B)
            faster_B = 1.5 * of.gravity / of.length * np.sin(self.angle) + 3 * torque_B / (of.mass * of.length**2)
            seconds = of.seconds or STEP
            shaken_B = (of.shaking or 0.0) * np.sqrt(seconds) * self.shakes.normal(size=self.count)
            self.velocity = np.clip(self.velocity + seconds * faster_B + shaken_B, -FASTEST, FASTEST)
            self.angle = self.angle + seconds * self.velocity
            cost_B = cost_B - of.reward_noise * self.noise.normal(size=self.count)
        self.taken += 1
        never_B, over_B = np.zeros(self.count, dtype=bool), np.full(self.count, self.taken >= self.horizon)
        return VectorStep(
            self._observation(), -of.reward_scale * cost_B, never_B, over_B, success=np.cos(self.angle) > UPRIGHT
        )

    def _observation(self) -> np.ndarray:
        return np.stack((np.cos(self.angle), np.sin(self.angle), self.velocity), 1).astype(np.float32)


class Pendulum(ControlTasks):
    """A pole to be swung up and held: Gymnasium's Pendulum-v1, without Gymnasium."""

    mass: Positive = 1.0
    """Of the pole, in kilograms."""
    length: Positive = 1.0
    """Of the pole, in metres."""
    gravity: Positive = 10.0
    """In metres per second squared."""
    seconds: Positive | None = None
    """Of a step; None: those of Pendulum-v1."""
    shaking: Positive | None = None
    """Standard deviation of what chance adds to the angular velocity in a second; None: it adds nothing."""
    reward_scale: Positive = 1.0
    """Factor of the rewards, the noise included."""
    reward_noise: Weight = 0.0
    """Standard deviation of the normal noise on a reward, before it is scaled."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=3, action=1, goal=())

    def beside(self) -> str:
        """Any two of them."""
        return self.type_name()

    def dataset(self, seed: int) -> list[ControlEpisode]:
        """None."""
        return []

    def training(self, count: int, horizon: int) -> PendulumEnv:
        return PendulumEnv(self, count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[PendulumEnv, Sequence[str]]:
        return PendulumEnv(self, count, horizon), ["pendulum"] * count

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        """`return`: the sum of Pendulum-v1's rewards, unscaled and without noise; `upright`: the share of steps after
        which the pole is upright."""
        cos_T, sin_T, velocity_T = episode.observation.T.astype(float)
        torque_T = TORQUE * np.clip(episode.action[:, 0].astype(float), -1, 1)
        cost_T = _cost(np.arctan2(sin_T, cos_T)[:-1], velocity_T[:-1], torque_T)
        return {"return": -float(cost_T.sum()), "upright": float((cos_T[1:] > UPRIGHT).mean())}


def _cost(angle_B: np.ndarray, velocity_B: np.ndarray, torque_B: np.ndarray) -> np.ndarray:
    """[B] what a step costs, by the angle's distance from upright, in [-pi, pi)."""
    from_upright_B = (angle_B + np.pi) % (2 * np.pi) - np.pi
    return from_upright_B**2 + 0.1 * velocity_B**2 + 0.001 * torque_B**2
