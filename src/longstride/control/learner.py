"""The learner: networks and optimisers of an agent, its updates, and how it acts.

What always holds: an update depends on the weights, the stores, its number and the seed, and on nothing else; the state
of the learner is its tensors and the number of updates, so a resumed run computes the numbers of an uninterrupted one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.agent import ControlAgent, Level
from longstride.control.batches import Batch
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Act, Spec
from longstride.core.errors import RunError
from longstride.core.seeds import derive
from longstride.learner.moments import checked_moments

Source = tuple[TransitionStore, int]
"""A store, and how many rows of a batch are drawn from it."""


class LevelNets(nn.Module):
    """The networks of a level."""

    def __init__(self, level: Level, spec: Spec, generator: torch.Generator) -> None:
        super().__init__()
        state, action = level.data.sizes(spec)
        self.level, self.spec = level, spec
        self.policy_data = level.data.replace(goals=level.policy_goals) if level.policy_goals is not None else None
        self.critic = level.critic.make(state, action, generator) if level.critic is not None else None
        self.actor = level.extraction.make(level.policy.make(state, action, generator))

    def batches(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> tuple[Batch, Batch]:
        """What the critic and what the policy learns from, around the same rows."""
        returns = self.level.critic is not None and self.level.critic.needs_returns
        of_critic = self.level.data(store, self.spec, row_B, rng, returns)
        return of_critic, self.policy_data(store, self.spec, row_B, rng) if self.policy_data else of_critic


class ControlLearner:
    """The networks and optimisers of an agent.

    Args:
        agent: what is trained.
        spec: sizes of observations, actions and goals.
        seed: of the initial weights, the batches and all noise.
    """

    def __init__(self, agent: ControlAgent, spec: Spec, seed: int) -> None:
        self.agent, self.spec, self.seed = agent, spec, seed
        self.updates = 0
        """Updates so far."""
        self.generator = torch.Generator().manual_seed(derive(seed, "weights"))
        self.levels = [LevelNets(level, spec, self.generator) for level in agent.levels]
        critics = [net.critic for net in self.levels if net.critic is not None]
        self.optimisers = {"policy": _adam([net.actor for net in self.levels], agent.policy_lr)}
        if critics:
            self.optimisers["critic"] = _adam(critics, agent.critic_lr)

    def train(
        self,
        updates: int,
        sources: Sequence[Source],
        conservative: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, float]:
        """Several updates (see `update`); returns the means of their metrics. `progress` gets (done, `updates`)."""
        totals: dict[str, Tensor] = {}
        for done in range(1, updates + 1):
            metrics = self.update(sources, conservative)
            totals = {key: totals[key] + value if totals else value for key, value in metrics.items()}
            progress(done, updates)
        return {key: float(total) / updates for key, total in totals.items()}

    def update(self, sources: Sequence[Source], conservative: bool = True) -> dict[str, Tensor]:
        """One update: `slices` steps of the critics, then one step of the policies.

        Args:
            sources: where the rows of the batch are drawn from.
            conservative: whether conservative critics are conservative; if not, they are plain ones.

        Returns:
            Metrics by name, scalars without gradient.
        """
        rng = np.random.default_rng(derive(self.seed, "batch", self.updates))
        self.generator.manual_seed(derive(self.seed, "noise", self.updates))
        self.updates += 1
        of_critics, of_policies = self._draw(sources, rng)
        metrics: dict[str, Tensor] = {}
        with_critic = [(k, net.critic) for k, net in enumerate(self.levels) if net.critic is not None]
        parts = [of_critics[k].cut(self.agent.slices) for k, _ in with_critic]
        for part in zip(*parts, strict=True):
            losses = {
                k: critic.config.loss(critic, batch, self.levels[k].actor.policy, self.generator, conservative)
                for (k, critic), batch in zip(with_critic, part, strict=True)
            }
            metrics |= self._step("critic", losses)
            for _, critic in with_critic:
                critic.config.after_step(critic)
        losses = {
            k: net.level.extraction.loss(net.actor, net.critic, batch, self.generator)
            for k, (net, batch) in enumerate(zip(self.levels, of_policies, strict=True))
        }
        return metrics | self._step("policy", losses)

    def _draw(self, sources: Sequence[Source], rng: np.random.Generator) -> tuple[list[Batch], list[Batch]]:
        """What the critic and what the policy of each level learns from."""
        steps = max(level.data.steps_ahead for level in self.agent.levels)
        drawn = [(store, store.draw(count, rng, steps)) for store, count in sources if count]
        pairs = [[net.batches(store, row_B, rng) for store, row_B in drawn] for net in self.levels]
        of_critics, of_policies = ([Batch.join([pair[side] for pair in level]) for level in pairs] for side in (0, 1))
        return of_critics, of_policies

    def _step(self, name: str, losses: Mapping[int, tuple[Tensor, dict[str, Tensor]]]) -> dict[str, Tensor]:
        """Minimises the sum of the losses, which have the numbers of their levels, by one step; returns their metrics,
        with the level in the name where the agent has several."""
        optimiser = self.optimisers[name]
        optimiser.zero_grad()
        torch.stack([loss for loss, _ in losses.values()]).sum().backward()
        optimiser.step()
        prefix = {k: f"level_{k}." if len(self.levels) > 1 else "" for k in losses}
        return {prefix[k] + key: v.detach() for k, (_, metrics) in losses.items() for key, v in metrics.items()}

    def actor(self, seed: int, explore: bool) -> Act:
        """The agent as it is now, for `control.envs.play`; each round of episodes needs a new one.

        Args:
            seed: of its noise.
            explore: whether it acts as in training or as in evaluations.
        """
        generator = torch.Generator().manual_seed(seed)
        waiting: list[np.ndarray] = []  # the actions of a chunk that are still to be taken

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

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors (weights, target networks, temperatures, moments of the optimisers) and numbers, by name."""
        nets = {f"{k}.{n}": t for k, net in enumerate(self.levels) for n, t in net.state_dict().items()}
        moments = {
            f"{name}.{index}.{key}": tensor
            for name, optimiser in self.optimisers.items()
            for index, of_parameter in optimiser.state_dict()["state"].items()
            for key, tensor in of_parameter.items()
        }
        return nets | moments, {"updates": self.updates}

    def load_state(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Restores what `state` gave, which may stand among other tensors and numbers.

        Raises:
            RunError: they belong to another agent, or are damaged.
        """
        try:
            self.updates = int(numbers["updates"])
            for k, net in enumerate(self.levels):
                net.load_state_dict({n: tensors[f"{k}.{n}"] for n in net.state_dict()})
            for name, optimiser in self.optimisers.items():
                moments: dict[int, dict[str, Tensor]] = {}
                for key in (key for key in tensors if key.startswith(f"{name}.")):
                    _, index, moment = key.split(".")
                    moments.setdefault(int(index), {})[moment] = tensors[key].clone()
                trained = [p for group in optimiser.param_groups for p in group["params"]]
                for index, found in moments.items():
                    checked_moments(found, trained[index], f"{name} {index}")
                optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as e:
            raise RunError(
                f"the checkpoint is damaged or of another agent ({type(e).__name__}: {e}); resume the run with its own "
                "run.toml"
            ) from e


def _adam(modules: Sequence[nn.Module], lr: float) -> torch.optim.Adam:
    """One optimiser over everything that is trained, so that a step takes few calls."""
    return torch.optim.Adam([p for m in modules for p in m.parameters() if p.requires_grad], lr=lr, fused=True)
