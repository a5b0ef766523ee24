"""Exploration of what the data lack (`DesignedQ`, `Designed`), by least squares on features; a maze whose data have a hole
(`HoledMaze`)."""

import math
from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from longstride.control import (
    Batch,
    CompassMaze,
    ControlCritic,
    ControlEpisode,
    CriticNets,
    Extraction,
    NStep,
    PolicyNets,
    UniformPolicy,
)
from longstride.control.envs import play
from longstride.control.envs.compass import FORCES, CompassEnv
from longstride.control.envs.maze import TASKS, maze
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Ends, Positive, Share, Weight
from longstride.core.seeds import derive


class DesignedNets(CriticNets):
    """Weights of F features of a state for each of A actions: features of a state and an action are those of the state in
    the place of the action, so covariances have a block for each action.

    Args:
        config: F, and how far states are apart that have little in common.
        state: S.
        action: A.
        generator: draws the frequencies.
    """

    centre: Tensor
    spread: Tensor
    frequency: Tensor
    task: Tensor
    toward: Tensor
    later: Tensor
    lacking: Tensor
    fitted: Tensor
    explored: Tensor

    def __init__(self, config: "DesignedQ", state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tolerance, half = config.tolerance, -(-config.features // 2)
        self.register_buffer("frequency", torch.randn(state, half, generator=generator) / config.width)
        self.register_buffer("centre", torch.zeros(state))
        self.register_buffer("spread", torch.ones(state))
        for name in ("task", "toward", "later"):
            self.register_buffer(name, torch.zeros(2 * half, action))
        self.register_buffer("lacking", torch.tensor(0.0))
        self.register_buffer("fitted", torch.tensor(0))
        self.register_buffer("explored", torch.tensor(0.0))

    def features(self, state_BS: Tensor) -> Tensor:
        """[B, F] of length 1: cosines and sines of random frequencies (Rahimi and Recht, 2007)."""
        angle = (state_BS - self.centre) / self.spread @ self.frequency
        return torch.cat((angle.cos(), angle.sin()), -1) / math.sqrt(angle.shape[-1])

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        each_BA = self.features(state_BS) @ self.task
        return (each_BA * action).sum(-1) if action.dim() == 2 else torch.einsum("ba,bka->bk", each_BA, action)

    def exploring(self, state_BS: Tensor) -> Tensor:
        """[B, A] what each action does for the design: at once, which is known of any action, and later."""
        f_BF = self.features(state_BS)
        return (f_BF @ self.toward).square() + f_BF @ self.later


class DesignedQ(ControlCritic):
    """Values by least squares on features, and what online episodes have to see of what all data so far, the offline ones
    among them, lack. With the covariance L = sum f f' + I over steps, in each iteration:

    1. `task`: fitted Q-iteration, w <- L^-1 sum f (r + gamma max_a w f(s', a)).
    2. K policies that may still be the best: greedy for weights that are fitted to targets with noise, and so drawn around w
       with the covariance of what is not known (arXiv 1402.0635).
    3. Of each the features that an episode of it meets, phi = (1 - gamma) (I - P')^-1 f(first), P = L^-1 sum f gamma f(s', pi)'.
    4. `lacking`: the largest |phi| in the norm of L^-1. While it is above `tolerance`, episodes of training follow the
       design's gradient at that phi: they are greedy for the sum of (f L^-1 phi)^2, by fitted Q-iteration too."""

    discrete = True
    solved = True

    features: Count = 100
    """F."""
    width: Positive = 0.5
    """How far states are apart that have little in common, in deviations of the data."""
    candidates: Count = 8
    """K."""
    unknown: Positive = 1.0
    """Deviation of the values of what the data lack, in the units of returns."""
    noise: Weight = 0.05
    """Deviation of a target from its mean, in the same units."""
    tolerance: Weight = 0.05
    """eps: what may be lacking."""
    backups: Count = 60
    """Of each fitted Q-iteration."""
    target_range: Ends = (0.0, 1.0)
    """Targets are clamped to it: the least and the largest return that are possible."""

    def make(self, state: int, action: int, generator: torch.Generator) -> DesignedNets:
        return DesignedNets(self, state, action, generator)

    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        raise NotImplementedError

    @torch.no_grad()
    def fit(self, nets: CriticNets, steps: Batch, first_ES: Tensor, rng: np.random.Generator) -> dict[str, float]:
        assert isinstance(nets, DesignedNets)
        if not nets.fitted:  # units are those of the first data that it sees
            nets.centre.copy_(steps.state_BS.mean(0))
            nets.spread.copy_(steps.state_BS.std(0).clamp(min=1e-6))
        nets.fitted += 1
        solver = FeatureLeastSquares(nets, steps)
        noise = torch.from_numpy(rng.normal(size=(len(steps.reward_B), self.candidates)).astype(np.float32))
        prior = torch.from_numpy(rng.normal(size=(*nets.task.shape, self.candidates)).astype(np.float32))
        nets.task.copy_(self._values(solver, torch.zeros(len(noise), 1), torch.zeros(*nets.task.shape, 1))[..., 0])
        drawn_FAK = self._values(solver, self.noise * noise, self.unknown * prior)
        met_KFA = torch.stack([solver.met(w_FA, first_ES) for w_FA in drawn_FAK.unbind(-1)])
        toward_KFA = torch.stack([solver.solve(phi_FA) for phi_FA in met_KFA])
        lacking_K = (met_KFA * toward_KFA).sum((1, 2)).clamp(min=0).sqrt()
        worst = int(lacking_K.argmax())
        nets.lacking.copy_(lacking_K[worst])
        nets.explored += float(nets.lacking > self.tolerance)
        nets.toward.copy_(toward_KFA[worst])
        nets.later.zero_()
        for _ in range(self.backups):
            ahead_N = nets.exploring(steps.next_state_BS).amax(-1)
            nets.later.copy_(solver.least_squares((steps.discount_B * ahead_N)[:, None])[..., 0])
        return {"lacking": nets.lacking.item(), "explored": nets.explored.item()}

    def _values(self, solver: "FeatureLeastSquares", noise_NK: Tensor, prior_FAK: Tensor) -> Tensor:
        """[F, A, K] weights by fitted Q-iteration with noise on targets and around 0."""
        w_FAK = torch.zeros_like(prior_FAK)
        for _ in range(self.backups):
            best_NK = torch.einsum("nf,fak->nak", solver.next_NF, w_FAK).amax(1)
            target_NK = solver.steps.reward_B[:, None] + solver.steps.discount_B[:, None] * best_NK
            w_FAK = solver.least_squares(target_NK.clamp(*self.target_range) + noise_NK, prior_FAK)
        return w_FAK

    def measures(
        self, nets: CriticNets, data: NStep, episode: ControlEpisode, known_T: np.ndarray | None
    ) -> dict[str, float]:
        """`lacking`, and `explored`: in how many iterations more than `tolerance` was."""
        assert isinstance(nets, DesignedNets)
        return {"lacking": nets.lacking.item(), "explored": nets.explored.item()}


class FeatureLeastSquares:
    """Least squares over steps, with a ridge of 1."""

    def __init__(self, nets: DesignedNets, steps: Batch) -> None:
        self.nets, self.steps = nets, steps
        self.here_NF, self.next_NF = nets.features(steps.state_BS), nets.features(steps.next_state_BS)
        self.of_A = [taken.nonzero()[:, 0] for taken in steps.action_BA.T > 0.5]
        blocks = [self.here_NF[rows] for rows in self.of_A]
        self.inverse_A = [torch.linalg.inv(f.T @ f + torch.eye(f.shape[1])) for f in blocks]

    def solve(self, right_FA: Tensor) -> Tensor:
        """[F, A] L^-1 times something."""
        return torch.stack([of @ right for of, right in zip(self.inverse_A, right_FA.T, strict=True)], 1)

    def least_squares(self, target_NK: Tensor, prior_FAK: Tensor | None = None) -> Tensor:
        """[F, A, K] weights of [N, K] targets."""
        found = []
        for a, (rows, of) in enumerate(zip(self.of_A, self.inverse_A, strict=True)):
            right_FK = self.here_NF[rows].T @ target_NK[rows]
            found.append(of @ (right_FK if prior_FAK is None else right_FK + prior_FAK[:, a]))
        return torch.stack(found, 1)

    def met(self, w_FA: Tensor, first_ES: Tensor) -> Tensor:
        """[F, A] the discounted features that an episode of the policy that is greedy for w meets, which sum to a mean."""
        f, a = w_FA.shape
        choices_NA = torch.eye(a)[(self.next_NF @ w_FA).argmax(-1)] * self.steps.discount_B[:, None]
        onward = torch.zeros(a, f, a, f)
        for there in range(a):
            weighed_NF = choices_NA[:, there, None] * self.next_NF
            for here, (rows, of) in enumerate(zip(self.of_A, self.inverse_A, strict=True)):
                onward[here, :, there] = of @ (self.here_NF[rows].T @ weighed_NF[rows])
        first_EF = self.nets.features(first_ES)
        begun_AF = torch.eye(a)[(first_EF @ w_FA).argmax(-1)].T @ first_EF / len(first_EF)
        keep = 1 - self.steps.discount_B.max()
        met = torch.linalg.solve(torch.eye(a * f) - onward.reshape(a * f, a * f).T, begun_AF.flatten())
        return keep * met.unflatten(0, (a, f)).T


class Designed(Extraction):
    """The best action by the values of a `DesignedQ`. In training it follows the design while something is lacking, and any
    direction before the first fit."""

    trains = (UniformPolicy,)
    reads = (DesignedQ,)
    needs_discrete = True

    any_action: Share = 0.1
    """Share of the actions that are any, where it explores; 1: exploration without a design."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert isinstance(critic, DesignedNets)
        explores = explore and bool(critic.lacking > critic.tolerance or not critic.fitted)
        value_BA = critic.exploring(state_BS) if explores else critic.features(state_BS) @ critic.task
        best_BA = torch.eye(value_BA.shape[-1])[value_BA.argmax(-1)]
        if not explores:
            return best_BA
        share = self.any_action if critic.fitted else 1.0
        other_BA = actor.policy.sample(state_BS, noise).squeeze(-2)
        return torch.where(noise.uniform(len(best_BA), 1) < share, other_BA, best_BA)


class HoledMaze(CompassMaze):
    """One test task of a maze: its start, and its goal, where an episode ends with a reward of 1. Walks of the data begin
    there too, take any action, and stop where they would enter a part of the maze, which so is lacking."""

    task: Annotated[int, Field(ge=1, le=5)] = 1
    """Which of the test tasks."""
    lacking: Share = 0.4
    """The part of the maze, by the share of its width from the right, that the data lack; the outer wall is of that width."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        for name in ("walks", "noise", "wandering", "demonstrations", "uneven", "practice"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"walks of this maze take any action from the start of its one task: leave out {name}")
        return self

    @property
    def border(self) -> float:
        """The x from which on data are lacking."""
        return (1 - self.lacking) * maze(self.maze).wall.shape[1]

    def training(self, count: int, horizon: int) -> CompassEnv:
        begin, goal = (int(maze(self.maze).number[cell]) for cell in TASKS[self.maze][self.task - 1])
        return self.world(maze(self.maze), lambda rng, n: (np.full(n, begin), np.full(n, goal)), count, horizon)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        env, rng = self.training(self.episodes, self.length), np.random.default_rng(derive(seed, "actions"))
        one = np.eye(len(FORCES), dtype=np.float32)
        walks = play(env, lambda seen, goal, first: one[rng.integers(len(FORCES), size=len(seen))], seed)
        kept = [cut for walk in walks if (cut := self.before_the_hole(walk)).length]
        if not kept:
            raise ConfigError(
                f"task {self.task} begins in the part that data lack, so there are none: set tasks.lacking to less, or "
                "tasks.task to another"
            )
        return kept

    def before_the_hole(self, walk: ControlEpisode) -> ControlEpisode:
        """A walk as far as it has data."""
        inside_T = walk.observation[:, 0] >= self.border
        n = max(int(inside_T.argmax()) - 1, 0) if inside_T.any() else walk.length
        whole = n == walk.length
        return ControlEpisode(
            walk.observation[: n + 1], walk.action[:n], walk.reward[:n], walk.terminated and whole, walk.goal
        )

    def tests(self, count: int, horizon: int) -> tuple[CompassEnv, Sequence[str]]:
        return self.training(count, horizon), [f"{self.maze}-{self.task}"] * count
