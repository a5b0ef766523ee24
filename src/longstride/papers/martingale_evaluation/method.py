"""Values of a policy from its walks, by martingales (`MartingaleValue`); walks of a diffusion whose value is known
(`DiffusionWalks`), and walks that somebody recorded (`RecordedWalks`)."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from longstride.control import (
    Batch,
    ControlEpisode,
    ControlTasks,
    CriticNets,
    LambdaReturns,
    NStep,
    PolicyNets,
    TransitionStore,
    recorded,
)
from longstride.control.envs import Spec, VectorEnv, play
from longstride.control.envs.base import VectorStep
from longstride.control.noise import RunNoise
from longstride.control.on_policy import ReturnNets
from longstride.core.errors import ConfigError, RunError
from longstride.core.numbers import Count, Positive, Weight
from longstride.exact.worlds.chains import Diffusion


class MartingaleValue(LambdaReturns):
    """V of the policy whose walks the data are. What is earned so far and V together are to be a martingale: orthogonal to
    test functions, which are gradients of V with a trace that fades by lambda a step,

        sum over t of  (sum over s <= t of lambda^(t - s) dV(s) / dtheta) (r + gamma V(t + 1) - V(t)) = 0.

    `lam` = 0 is CTD(0), `lam` = 1 the martingale loss (gradient Monte Carlo), anything between them CTD(lambda). The sum is
    that of the steps of V toward lambda-returns (Sutton and Barto, 2018, section 12.1); all but the first step of a return is
    by V as it was at the beginning of the iteration."""

    on_policy = False
    side_by_side = True

    lam: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How a test function fades in a step."""
    residual: bool = False
    """Whether the mean square of r + gamma V(t + 1) - V(t) is made small instead, with the gradient in both values: what
    the paper warns of. `lam` is then 0."""

    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(nets, ReturnNets)
        both_B = nets.v(torch.cat((batch.state_BS, batch.next_state_BS), -2))[0, ..., 0]
        v_B, next_B = both_B.chunk(2, -1)
        if self.residual:
            target_B = batch.reward_B + batch.discount_B * next_B
        else:
            before_B = nets.before(batch.next_state_BS)[0, ..., 0]
            target_B = batch.return_B + batch.discount_B * (1 - self.lam) * (next_B - before_B)
            target_B = target_B.detach()
        loss = (v_B - target_B).square().mean(-1)
        return loss, {"v": v_B.mean(-1), "v_target": target_B.mean(-1), "v_loss": loss}

    @torch.no_grad()
    def measures(
        self, nets: CriticNets, data: NStep, episode: ControlEpisode, known_T: np.ndarray | None
    ) -> dict[str, float]:
        """`value_error`: the root of the mean square of V minus the return, over the first half of a walk; after a
        truncation V of the last state goes on. `true_error`: the same of V minus the value, where that is known, over the
        entire walk; in units of the rewards of the data."""
        assert isinstance(nets, ReturnNets)
        store = TransitionStore.of([episode])
        state_RS = data.states(store, np.arange(store.rows), np.repeat(store.goal, store.rows, 0))
        v_R = nets.v(torch.from_numpy(state_RS.astype(np.float32)))[0, :, 0].numpy()
        return_R = store.lambda_returns(v_R, data.discount, 1.0, data.reward_scale, data.reward_shift)
        half = slice(0, -(-episode.length // 2))
        found = {"value_error": _root_mean_square(v_R[half] - return_R[half])}
        if known_T is not None and not data.reward_shift:
            found["true_error"] = _root_mean_square(v_R[:-1] / data.reward_scale - known_T)
        return found


def _root_mean_square(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error.astype(float) ** 2)))


class DiffusionWalks(ControlTasks):
    """Walks of dX = -reversion X dt + noise dW (an Ornstein-Uhlenbeck process) with a reward of X^2 a unit of time, from
    time 0 to 1, where they end; an observation is the time and X, and no action changes anything. Walks are exact at any
    mesh. A discount gamma a step is exp(-rate dt) of a rate in time."""

    reversion: Positive = 1.0
    """Drift back to 0."""
    noise: Weight = 1.0
    """Deviation of the noise in a unit of time."""
    spread: Positive = 1.0
    """Deviation of X at the start."""
    mesh: Count = 100
    """Steps of a walk: dt is 1 / mesh."""
    walks: Count = 100
    """As data."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=2, action=1, goal=())

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return play(self.training(self.walks, self.mesh), lambda seen, goal, first: np.zeros((len(seen), 1)), seed)

    def training(self, count: int, horizon: int) -> VectorEnv:
        return DiffusionEnv(self, count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return DiffusionEnv(self, count, horizon), ["diffusion"] * count

    def values(self, episode: ControlEpisode, discount: float) -> np.ndarray:
        """[T] x^2 p(2 reversion + rate) + noise^2 / (2 reversion) (p(rate) - p(2 reversion + rate)), where
        p(a) = (1 - exp(-a left)) / a for the time that is left."""
        t_T, x_T = episode.observation[:-1].T.astype(float)
        rate, pull = -math.log(discount) * self.mesh, 2 * self.reversion
        ends_T, stays_T = (-np.expm1(-a * (1 - t_T)) / a for a in (pull + rate, rate))
        return x_T**2 * ends_T + self.noise**2 / pull * (stays_T - ends_T)


class DiffusionEnv(VectorEnv):
    """B walks of a diffusion.

    Args:
        tasks: the process and its mesh.
        count: B.
        horizon: steps until a walk is truncated, where it has not ended before.
    """

    def __init__(self, tasks: DiffusionWalks, count: int, horizon: int) -> None:
        self.tasks, self.horizon, self.goal = tasks, horizon, np.zeros((count, 0))
        process = Diffusion(tasks.reversion, tasks.noise, 1.0, tasks.spread)
        self.factor, self.variance = process.transition(1 / tasks.mesh)

    def reset(self, seed: int) -> np.ndarray:
        self.rng, self.taken = np.random.default_rng(seed), 0
        self.x = self.tasks.spread * self.rng.normal(size=len(self.goal))
        return self._seen()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        reward_B = np.zeros(len(self.x))
        if self.taken < min(self.horizon, self.tasks.mesh):
            reward_B = self.x**2 / self.tasks.mesh
            self.x = self.factor * self.x + math.sqrt(self.variance) * self.rng.normal(size=len(self.x))
            self.taken += 1
        ended_B = np.full(len(self.x), self.taken >= self.tasks.mesh)
        return VectorStep(self._seen(), reward_B, ended_B, ~ended_B & (self.taken >= self.horizon))

    def _seen(self) -> np.ndarray:
        return np.stack((np.full(len(self.x), self.taken / self.tasks.mesh), self.x), 1)

    def close(self) -> None:
        """Nothing is held."""


class RecordedWalks(ControlTasks):
    """Walks that somebody recorded, of whose policy the value is asked. No environment is needed: some walks are held out,
    and as tests they are played again as they were, whatever is done."""

    data: str | tuple[str, ...] = ""
    """A file `*.hdf5` or `*.npz`, or `minari:NAME` (see `control.recorded`), or several of them."""
    held_out: Annotated[int, Field(ge=2)] = 10
    """Of so many walks one is held out, the last one."""

    @cached_property
    def recorded(self) -> list[ControlEpisode]:
        """All walks. Raises: `RunError` where they cannot be read, are too few, or are of different sizes."""
        names = [self.data] if isinstance(self.data, str) else self.data
        if not any(names):
            raise ConfigError("tasks.data is empty: expected walks, such as tasks.data=mine.hdf5")
        walks = [walk for name in names for walk in recorded.read(name)]
        sizes = {(walk.observation.shape[1], walk.action.shape[1]) for walk in walks}
        if len(sizes) > 1 or len(walks) < self.held_out:
            raise RunError(
                f"tasks.data: expected at least {self.held_out} walks of one size (one of so many is held out), got "
                f"{len(walks)} with observations and actions of the sizes {sorted(sizes)}; set tasks.held_out, or other data"
            )
        return walks

    @property
    def spec(self) -> Spec:
        first = self.recorded[0]
        return Spec(first.observation.shape[1], first.action.shape[1], ())

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return [walk for k, walk in enumerate(self.recorded, 1) if k % self.held_out]

    def training(self, count: int, horizon: int) -> VectorEnv:
        raise ConfigError("recorded walks are not collected: leave episodes out of phases")

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        """`count` of the walks that are held out, the first ones again where there are fewer."""
        held = self.recorded[self.held_out - 1 :: self.held_out]
        return PlayedAgain([held[k % len(held)] for k in range(count)], horizon), ["walk"] * count


class PlayedAgain(VectorEnv):
    """Walks as they were.

    Args:
        walks: what is played.
        horizon: steps until one is truncated, where it has not ended before.
    """

    def __init__(self, walks: Sequence[ControlEpisode], horizon: int) -> None:
        self.walks, self.goal = walks, np.zeros((len(walks), 0))
        self.length = np.array([min(walk.length, horizon) for walk in walks])
        self.whole = np.array([walk.terminated and walk.length <= horizon for walk in walks])

    def reset(self, seed: int) -> np.ndarray:
        self.taken = 0
        return self._seen()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        reward = [
            walk.reward[self.taken] if self.taken < n else 0.0 for walk, n in zip(self.walks, self.length, strict=True)
        ]
        self.taken += 1
        over_B = self.taken >= self.length
        return VectorStep(self._seen(), np.array(reward), over_B & self.whole, over_B & ~self.whole)

    def _seen(self) -> np.ndarray:
        rows_B = np.minimum(self.taken, self.length)
        return np.stack([walk.observation[row] for walk, row in zip(self.walks, rows_B, strict=True)])

    def close(self) -> None:
        """Nothing is held."""
