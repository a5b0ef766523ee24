"""The learner: networks and optimisers of an agent, its updates, and how it acts.

What always holds: an update depends on the weights, the stores, its number and the seed, and on nothing else; the state
of the learner is its tensors and the number of updates, so a resumed run computes the numbers of an uninterrupted one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.agent import ControlAgent, Level
from longstride.control.batches import Batch, NStep
from longstride.control.critics import WeightedCritics
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Act, Spec
from longstride.control.memory import Windows
from longstride.core.errors import ConfigError, RunError
from longstride.core.seeds import derive
from longstride.learner.moments import checked_moments

Source = tuple[TransitionStore, int]
"""A store, and how many rows of a batch are drawn from it."""
Rows = Batch | Windows
"""What is drawn: single transitions, or windows of them for a level with a memory."""


class LevelNets(nn.Module):
    """The networks of a level.

    Raises:
        ConfigError: the policy is not for the actions of these tasks.
    """

    def __init__(self, level: Level, spec: Spec, generator: torch.Generator) -> None:
        super().__init__()
        state, action = level.data.sizes(spec)
        if level.policy.discrete != (spec.discrete and level.data.action != "subgoal"):
            kind = "real numbers" if level.policy.discrete else "discrete"
            raise ConfigError(
                f"policy {level.policy.type_name()} does not fit: the actions of this level are {kind}; discrete are "
                "those of categorical_policy and uniform_policy, real numbers those of gaussian_policy and flow_policy"
            )
        self.level, self.spec = level, spec
        self.policy_data = level.data.replace(goals=level.policy_goals) if level.policy_goals is not None else None
        self.memory = level.memory.make(state + action, generator) if level.memory is not None else None
        state += self.memory.size if self.memory is not None else 0
        nets = {name: critic.make(state, action, generator) for name, (critic, _) in level.critics.items()}
        self.critics = [(name, critic, nets[name]) for name, (critic, _) in level.critics.items()]
        self.critic = nets.get("critic")
        if level.further:
            weights = {"critic": 1.0} | {name: part.weight for name, part in level.further.items()}
            self.critic = WeightedCritics(nets, weights)
        self.actor = level.extraction.make(level.policy.make(state, action, generator))

    def batches(
        self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator
    ) -> tuple[dict[str, Rows], Rows]:
        """What each critic, by name, and what the policy learns from, around the same rows."""
        of_critics = {
            name: self._rows(data, store, row_B, rng, critic.needs_returns)
            for name, (critic, data) in self.level.critics.items()
        }
        if self.policy_data is not None:
            return of_critics, self.policy_data(store, self.spec, row_B, rng)
        if "critic" in of_critics:
            return of_critics, of_critics["critic"]
        return of_critics, self._rows(self.level.data, store, row_B, rng)

    def _rows(
        self, data: NStep, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator, returns: bool = False
    ) -> Rows:
        draw = data if self.level.memory is None else partial(self.level.memory.windows, data)
        return draw(store, self.spec, row_B, rng, returns)

    def read(self, rows: Rows, learn: bool) -> Batch:
        """Rows as critics and policies read them; `learn`: the memory takes a gradient."""
        if isinstance(rows, Batch):
            return rows
        assert self.memory is not None
        with torch.set_grad_enabled(learn):
            return rows.remembered(self.memory)


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
        trained: dict[str, list[nn.Module]] = {"policy": [net.actor for net in self.levels], "critic": []}
        for net in self.levels:
            if net.critic is not None:
                trained["critic"].append(net.critic)
            if net.memory is not None:
                trained["policy" if net.critic is None else "critic"].append(net.memory)
        rates = {"policy": agent.policy_lr, "critic": agent.critic_lr}
        self.optimisers = {name: _adam(nets, rates[name]) for name, nets in trained.items() if _weights(nets)}

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
        cut = [{name: rows.cut(self.agent.slices) for name, rows in of_level.items()} for of_level in of_critics]
        for part in range(self.agent.slices if "critic" in self.optimisers else 0):
            losses = {
                self._prefix(k, name): critic.loss(
                    nets, net.read(cut[k][name][part], learn=True), net.actor.policy, self.generator, conservative
                )
                for k, net in enumerate(self.levels)
                for name, critic, nets in net.critics
            }
            metrics |= self._step("critic", losses)
            for net in self.levels:
                for _, critic, nets in net.critics:
                    critic.after_step(nets)
        losses = {
            self._prefix(k): net.level.extraction.loss(
                net.actor, net.critic, net.read(rows, learn=net.critic is None), self.generator
            )
            for k, (net, rows) in enumerate(zip(self.levels, of_policies, strict=True))
            if _weights([net.actor])
        }
        return metrics | (self._step("policy", losses) if losses else {})

    def _draw(self, sources: Sequence[Source], rng: np.random.Generator) -> tuple[list[dict[str, Rows]], list[Rows]]:
        """What the critics and what the policy of each level learns from."""
        data = [d for level in self.agent.levels for d in (level.data, *(d for _, d in level.critics.values()))]
        steps = max(d.steps_ahead for d in data)
        drawn = [(store, store.draw(count, rng, steps)) for store, count in sources if count]
        pairs = [[net.batches(store, row_B, rng) for store, row_B in drawn] for net in self.levels]
        of_critics = [
            {name: _joined([of_level[name] for of_level, _ in level]) for name in level[0][0]} for level in pairs
        ]
        return of_critics, [_joined([rows for _, rows in level]) for level in pairs]

    def _prefix(self, level: int, critic: str = "critic") -> str:
        """What stands before the names of metrics: the level where there are several, and a further critic's name."""
        return (f"level_{level}." if len(self.levels) > 1 else "") + (f"{critic}." if critic != "critic" else "")

    def _step(self, name: str, losses: Mapping[str, tuple[Tensor, dict[str, Tensor]]]) -> dict[str, Tensor]:
        """Minimises the sum of the losses by one step; returns their metrics, with the name of the loss in front."""
        optimiser = self.optimisers[name]
        optimiser.zero_grad()
        torch.stack([loss for loss, _ in losses.values()]).sum().backward()
        optimiser.step()
        return {prefix + key: v.detach() for prefix, (_, metrics) in losses.items() for key, v in metrics.items()}

    def actor(self, seed: int, explore: bool) -> Act:
        """The agent as it is now, for `control.envs.play`.

        Args:
            seed: of its noise.
            explore: whether it acts as in training or as in evaluations.
        """
        return ActingLevels(self.levels, self.spec, torch.Generator().manual_seed(seed), explore)

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


class ActingLevels:
    """Levels that act in B episodes: each decides the goal of the next one, the last one its next N actions.

    What is carried from step to step, and forgotten where an episode begins: the actions of a chunk that are still to
    be taken, and the last level's memory.
    """

    def __init__(self, levels: Sequence[LevelNets], spec: Spec, generator: torch.Generator, explore: bool) -> None:
        self.levels, self.generator, self.explore = levels, generator, explore
        data = levels[-1].level.data
        self._size = (data.steps if data.action == "chunk" else 1, spec.action)

    @torch.inference_mode()
    def __call__(self, observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        count = len(first_B)
        if first_B.all():
            self._chunk_BNA, self._taken_B = np.zeros((count, *self._size), np.float32), np.zeros(count, int)
            memory = self.levels[-1].memory
            self._memory_BM = torch.zeros(count, memory.size if memory is not None else 0)
        decide_B = first_B | (self._taken_B == self._size[0])
        if decide_B.any():
            self._chunk_BNA[decide_B] = self._decide(observation_BO[decide_B], goal_BG[decide_B], first_B[decide_B])
            self._taken_B[decide_B] = 0
        action_BA = self._chunk_BNA[np.arange(count), self._taken_B]
        self._taken_B += 1
        return action_BA

    def _decide(self, observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        """[B, N, A] the next actions."""
        observation = torch.as_tensor(observation_BO, dtype=torch.float32)
        goal = torch.as_tensor(goal_BG, dtype=torch.float32)
        for net in self.levels:
            state = observation if net.level.data.goals is None else torch.cat((observation, goal), -1)
            if net.memory is not None:  # it goes with single actions, so all episodes decide in every step
                before_BA = torch.from_numpy(np.where(first_B[:, None], 0, self._chunk_BNA[:, 0]))
                memory_BM = self._memory_BM.where(torch.from_numpy(~first_B)[:, None], 0)
                self._memory_BM = net.memory(torch.cat((state, before_BA), -1)[:, None], memory_BM)[:, 0]
                state = torch.cat((state, self._memory_BM), -1)
            goal = net.level.extraction.act(net.actor, net.critic, state, self.generator, self.explore)
        return goal.clamp(-1, 1).unflatten(1, (-1, self._size[1])).numpy()


def _joined(rows: Sequence[Rows]) -> Rows:
    """Rows of one kind as one."""
    windows = [r for r in rows if isinstance(r, Windows)]
    return Windows.join(windows) if windows else Batch.join([r for r in rows if isinstance(r, Batch)])


def _weights(modules: Sequence[nn.Module]) -> list[nn.Parameter]:
    """What is trained of modules."""
    return [p for m in modules for p in m.parameters() if p.requires_grad]


def _adam(modules: Sequence[nn.Module], lr: float) -> torch.optim.Adam:
    """One optimiser over everything that is trained, so that a step takes few calls."""
    return torch.optim.Adam(_weights(modules), lr=lr, fused=True)
