"""Agents: levels of (data, critic, policy, extraction), and the learner that trains them.

What always holds: an update depends on the weights, the stores, its number and the seed, and on nothing else; the
learner's state is its tensors, so a resumed run gives the numbers of one that was not stopped. The levels of an agent
read the same rows; the action of a level is the goal of the level below it, and the last level acts.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from longstride.control.batches import Batch, Gather, Given, Goals
from longstride.control.critics import Critic, PolicyValue
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Act, Spec
from longstride.control.extraction import Actor, Extraction, Imitation
from longstride.control.policies import Flow, Gaussian, PolicyConfig
from longstride.core.component import Component
from longstride.core.errors import RunError
from longstride.core.seeds import derive
from longstride.models.mlp import Count

Rate = Annotated[float, Field(gt=0)]


class Level(Component):
    """One decision: what it is made from, valued by, and made with."""

    data: Gather = Gather()
    """What a transition is."""
    policy_goals: Goals | None = None
    """Goals that the policy is trained for; those of `data` if left out."""
    critic: Critic | None = None
    """How values are learnt; None: not at all."""
    policy: PolicyConfig = Flow()
    """What acts."""
    extraction: Extraction = Imitation()
    """How values become actions."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        name = self.extraction.type_name()
        if self.extraction.valued and self.critic is None:
            raise ValueError(f"extraction {name} needs a critic, and there is none")
        conservative = isinstance(self.critic, PolicyValue) and self.critic.conservative is not None
        if (self.extraction.dense or conservative) and not isinstance(self.policy, Gaussian):
            what = f"extraction {name}" if self.extraction.dense else "a conservative critic"
            raise ValueError(f"{what} needs densities: policy must be gaussian, not {self.policy.type_name()}")
        if self.critic is None and self.policy_goals is not None:
            raise ValueError("policy_goals are for a policy beside a critic; without one, set data.goals")
        if self.policy_goals is not None and self.data.goals is None:
            raise ValueError("policy_goals are given, but data.goals are none: a state has no goal")
        if self.critic is not None and self.critic.returns and not isinstance(self.data.goals, Given | None):
            raise ValueError("calibration needs the returns of the data: data.goals must be given or none")
        return self


class Agent(Component):
    """What is trained, and the optimiser's numbers."""

    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    """From the top down."""
    batch: Count = 256
    """Rows of an update."""
    slices: Count = 1
    """Equal parts of a batch, each a step of the critics, before the policies take one step on all of it (WSRL, arXiv
    2412.07762: 4). A divisor of `batch`."""
    critic_lr: Rate = 3e-4
    """Adam's rate for critics."""
    policy_lr: Rate = 3e-4
    """Adam's rate for policies and temperatures."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch % self.slices:
            raise ValueError(f"batch ({self.batch}) must be a multiple of slices ({self.slices})")
        for above in self.levels[:-1]:
            if above.data.action != "subgoal":
                raise ValueError(f"a level above another decides subgoals, not {above.data.action!r}")
        for below in self.levels[1:]:
            if below.data.goals is None:
                raise ValueError("a level below another needs goals: what the level above decides")
        if self.levels[-1].data.action == "subgoal":
            raise ValueError("the last level acts: its data.action must be action or chunk")
        return self


class LevelNets(nn.Module):
    """The networks of a level."""

    def __init__(self, level: Level, spec: Spec, generator: torch.Generator) -> None:
        super().__init__()
        state, action = level.data.sizes(spec)
        self.level = level
        self.critic = level.critic.make(state, action, generator) if level.critic is not None else None
        self.actor: Actor = level.extraction.make(level.policy.make(state, action, generator))

    def batches(
        self, store: TransitionStore, spec: Spec, row_B: np.ndarray, rng: np.random.Generator
    ) -> tuple[Batch, Batch]:
        """What critic and policy read around the same rows."""
        level = self.level
        valued = level.data(store, spec, row_B, rng, returns=level.critic is not None and level.critic.returns)
        if level.policy_goals is None:
            return valued, valued
        policy = level.data.model_copy(update={"goals": level.policy_goals})
        return valued, policy(store, spec, row_B, rng)


Source = tuple[TransitionStore, int]
"""A store, and how many rows of a batch are drawn from it."""


class ControlLearner:
    """An agent's networks and optimisers.

    Args:
        agent: what is trained.
        spec: sizes of observations, actions and goals.
        seed: of the initial weights, the batches and all noise.
    """

    def __init__(self, agent: Agent, spec: Spec, seed: int) -> None:
        self.agent, self.spec, self.seed = agent, spec, seed
        self.generator = torch.Generator().manual_seed(derive(seed, "weights"))
        self.levels = [LevelNets(level, spec, self.generator) for level in agent.levels]
        self.critics = [net.critic for net in self.levels if net.critic is not None]
        self.optimisers = {
            "policy": _adam([net.actor for net in self.levels], agent.policy_lr),
            **({"critic": _adam(self.critics, agent.critic_lr)} if self.critics else {}),
        }

    def update(self, number: int, sources: Sequence[Source], conservative: bool = True) -> dict[str, Tensor]:
        """One update: `slices` steps of the critics, then one of the policies.

        Args:
            number: of the update: names its randomness.
            sources: where the rows of the batch are drawn from.
            conservative: whether conservative critics are it; without, they are plain ones.

        Returns:
            Metrics by name, scalars without gradient.
        """
        rng = np.random.default_rng(derive(self.seed, "batch", number))
        self.generator.manual_seed(derive(self.seed, "noise", number))
        valued, policy = self._draw(sources, rng)
        metrics: dict[str, Tensor] = {}
        if self.critics:
            for parts in zip(*(batch.cut(self.agent.slices) for batch in valued), strict=True):
                self._step("critic", metrics, [
                    net.critic.config.loss(net.critic, part, net.actor.policy, self.generator, conservative)
                    if net.critic is not None else None
                    for net, part in zip(self.levels, parts, strict=True)
                ])  # fmt: skip
                for critic in self.critics:
                    critic.config.after_step(critic)
        self._step("policy", metrics, [
            net.level.extraction.loss(net.actor, net.critic, batch, self.generator)
            for net, batch in zip(self.levels, policy, strict=True)
        ])  # fmt: skip
        return metrics

    def _draw(self, sources: Sequence[Source], rng: np.random.Generator) -> tuple[list[Batch], list[Batch]]:
        """What the critic and what the policy of each level reads."""
        room = max(level.data.room for level in self.agent.levels)
        drawn = [(store, store.draw(count, rng, room)) for store, count in sources if count]
        pairs = [[net.batches(store, self.spec, rows, rng) for store, rows in drawn] for net in self.levels]
        valued, policy = ([Batch.join([pair[side] for pair in level]) for level in pairs] for side in (0, 1))
        return valued, policy

    def _step(
        self, name: str, metrics: dict[str, Tensor], losses: Sequence[tuple[Tensor, dict[str, Tensor]] | None]
    ) -> None:
        """Minimises the sum of the levels' losses by one step; adds their metrics, named by level where there are
        several."""
        known = [(k, loss) for k, loss in enumerate(losses) if loss is not None]
        optimiser = self.optimisers[name]
        optimiser.zero_grad()
        torch.stack([loss for _, (loss, _) in known]).sum().backward()
        optimiser.step()
        for k, (_, found) in known:
            prefix = f"level_{k}." if len(losses) > 1 else ""
            metrics |= {prefix + key: value.detach() for key, value in found.items()}

    def actor(self, seed: int, explore: bool) -> Act:
        """The agent as it is now, for `control.envs.play`: one for each round of episodes.

        Args:
            seed: of its own noise.
            explore: whether it acts as in training or as in tests.
        """
        generator = torch.Generator().manual_seed(seed)
        waiting: list[np.ndarray] = []

        @torch.inference_mode()
        def act(observation_BO: np.ndarray, goal_BG: np.ndarray) -> np.ndarray:
            if not waiting:
                observation = torch.as_tensor(observation_BO, dtype=torch.float32)
                goal = torch.as_tensor(goal_BG, dtype=torch.float32)
                for net in self.levels:
                    state = observation if net.level.data.goals is None else torch.cat((observation, goal), -1)
                    goal = net.level.extraction.act(net.actor, net.critic, state, generator, explore)
                actions_BNA = goal.clamp(-1, 1).unflatten(1, (-1, self.spec.action))
                waiting.extend(actions_BNA.transpose(0, 1).numpy())
            return waiting.pop(0)

        return act

    def state(self) -> dict[str, Tensor]:
        """Weights, target networks, temperatures and the optimisers' moments, by name."""
        nets = {f"{k}.{n}": t for k, net in enumerate(self.levels) for n, t in net.state_dict().items()}
        moments = {
            f"{name}.{index}.{key}": tensor
            for name, optimiser in self.optimisers.items()
            for index, of in optimiser.state_dict()["state"].items()
            for key, tensor in of.items()
        }
        return nets | moments

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Goes on from what `state` gave.

        Raises:
            RunError: the tensors are of another agent.
        """
        try:
            for k, net in enumerate(self.levels):
                net.load_state_dict({n: tensors[f"{k}.{n}"] for n in net.state_dict()})
            for name, optimiser in self.optimisers.items():
                moments: dict[int, dict[str, Tensor]] = {}
                for key in (key for key in tensors if key.startswith(f"{name}.")):
                    _, index, moment = key.split(".")
                    moments.setdefault(int(index), {})[moment] = tensors[key].clone()
                optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        except (KeyError, RuntimeError, ValueError) as e:
            raise RunError(f"the checkpoint is of another agent: {e}") from e


def _adam(modules: Sequence[nn.Module], lr: float) -> torch.optim.Adam:
    """One optimiser over all that may be trained: few calls a step."""
    return torch.optim.Adam([p for m in modules for p in m.parameters() if p.requires_grad], lr=lr, fused=True)
