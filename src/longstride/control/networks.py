"""The networks of an agent: what a level learns from, an update, and how an agent acts; of one run, or of R runs side
by side.

What always holds: networks side by side are those of one run whose tensors have an axis of runs (`stacked`); runs share
no number, so each computes beside others what it computes alone, up to rounding.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.agent import ControlAgent, Level
from longstride.control.batches import Batch, Given, NStep
from longstride.control.critics import CriticNets, WeightedCritics
from longstride.control.data import TransitionStore
from longstride.control.envs.base import ControlEpisode, ControlTasks, ShortestWay, Spec
from longstride.control.memory import Windows
from longstride.control.noise import RunNoise
from longstride.control.policies import ControlPolicy
from longstride.control.weights import drawn_anew, unit_rewards
from longstride.core.errors import ConfigError, LongstrideWarning, RunError
from longstride.core.seeds import derive

Rows = Batch | Windows | tuple[Any, ...]
"""What is drawn: single transitions, windows of them for a level with a memory, or what an extraction draws."""
Drawn = dict[str, Rows]
"""What a level learns from: each critic, by name; under `policy` the policy, where that is not the critic's; under
`rows` what its weights of rows go by."""
R = TypeVar("R", bound=tuple)


def each(function: Callable[..., Tensor], *rows: R) -> R:
    """Rows of the same kind, each tensor of which is made of theirs."""
    made = (
        each(function, *parts) if isinstance(parts[0], tuple) else function(*parts) for parts in zip(*rows, strict=True)
    )
    return type(rows[0])(*made)


class LevelNets(nn.Module):
    """The networks of a level.

    Raises:
        ConfigError: the policy is not for the actions of these tasks.
    """

    def __init__(self, level: Level, spec: Spec, generator: torch.Generator) -> None:
        super().__init__()
        state, action = level.data.sizes(spec)
        if not isinstance(level.data.goals, Given | None) and not spec.goal:
            raise ConfigError(
                f"data.goals are {level.data.goals.type_name()}, and these tasks have no goals: take an environment "
                "with goals, say where it tells them (tasks.info_goal), or leave data.goals out"
            )
        chooses = spec.discrete and level.data.action != "subgoal"
        if chooses and level.codes is not None:
            raise ConfigError(
                f"codes are for real-valued actions, and these are discrete: leave out {level.codes.type_name()}"
            )
        if level.policy.discrete != (chooses or level.codes is not None):
            kind = "real numbers" if level.policy.discrete else "discrete"
            known = [of for of in ControlPolicy.members().values() if issubclass(of, ControlPolicy)]
            fit = sorted(of.reference() for of in known if of.discrete != level.policy.discrete)
            raise ConfigError(
                f"policy {level.policy.type_name()} does not fit: the actions of this level are {kind}; policy must be "
                f"one of {', '.join(fit)}"
            )
        self.level, self.spec = level, spec
        self.policy_data = level.policy_data
        self.memory = level.memory.make(state + action, generator) if level.memory is not None else None
        state += self.memory.size if self.memory is not None else 0
        self.rows = level.rows.make(state, action, generator) if level.rows is not None else None
        self.codes = level.codes.make(state, action, generator) if level.codes is not None else None
        action = level.codes.count if level.codes is not None else action
        nets: dict[str, CriticNets] = {}
        for name, (critic, _) in level.critics.items():
            nets[name] = critic.make_beside(nets.get("critic"), spec, state, action, generator)
        self.critics = [(name, critic, nets[name]) for name, (critic, _) in level.critics.items()]
        self.critic = nets.get("critic")
        if level.further:
            weights = {"critic": 1.0} | {name: part.weight for name, part in level.further.items()}
            self.critic = WeightedCritics(nets, weights)
        self.actor = level.extraction.make(level.policy.make(state, action, generator))

    def batches(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> Drawn:
        """What critics and policy learn from around the same rows."""
        drawn = {
            name: self._rows(data, store, row_B, rng, critic.returns(nets, data, store))
            for (name, critic, nets), (_, data) in zip(self.critics, self.level.critics.values(), strict=True)
        }
        if self.level.extraction.draws_rows:
            data = self.policy_data or self.level.data
            drawn["policy"] = self.level.extraction.rows(data, store, self.spec, row_B, rng)
        elif self.policy_data is not None:
            drawn["policy"] = self.policy_data(store, self.spec, row_B, rng)
        elif not drawn:
            drawn["policy"] = self._rows(self.level.data, store, row_B, rng)
        if self.rows is not None:
            drawn["rows"] = self._rows(self.level.data, store, row_B, rng, unit_rewards(store))
        return drawn

    def _rows(
        self,
        data: NStep,
        store: TransitionStore,
        row_B: np.ndarray,
        rng: np.random.Generator,
        return_R: np.ndarray | None = None,
    ) -> Rows:
        draw = data if self.level.memory is None else partial(self.level.memory.windows, data)
        return draw(store, self.spec, row_B, rng, return_R)

    def before_updates(self) -> None:
        """Keeps what has to stay as it is during the updates of an iteration."""
        for _, critic, nets in self.critics:
            critic.before_updates(nets)
        self.level.extraction.before_updates(self.actor)

    def fit(self, stores: Sequence[TransitionStore], rng: np.random.Generator) -> dict[str, float]:
        """Computes the critics that are solved from all steps of some stores, and gives their metrics."""
        metrics: dict[str, float] = {}
        for (_, critic, nets), (_, data) in zip(self.critics, self.level.critics.values(), strict=True):
            if critic.solved:
                steps = [
                    data(store, self.spec, np.setdiff1d(np.arange(store.rows), store.last), rng) for store in stores
                ]
                first = [data.states(store, store.first, store.goal) for store in stores]
                every = each(lambda *parts: torch.cat(parts), *steps)
                metrics |= critic.fit(nets, every, torch.from_numpy(np.concatenate(first).astype(np.float32)), rng)
        return metrics

    def read(self, rows: Rows, learn: bool) -> Any:
        """Rows as critics and policies read them; `learn`: the memory takes a gradient."""
        if isinstance(rows, Batch):
            if self.codes is None:
                return rows
            with torch.no_grad():
                return rows._replace(action_BA=self.codes.encode(rows.state_BS, rows.action_BA))
        if not isinstance(rows, Windows):
            return rows
        assert self.memory is not None
        with torch.set_grad_enabled(learn):
            return rows.remembered(self.memory)

    def measures(self, tasks: ControlTasks, episode: ControlEpisode) -> dict[str, float]:
        """What the critics measure of a test episode, by name."""
        found: dict[str, float] = {}
        for (_, critic, nets), (_, data) in zip(self.critics, self.level.critics.values(), strict=True):
            found |= critic.measures(nets, data, episode, tasks.values(episode, data.discount))
        return found

    @torch.no_grad()
    def ordered(self, way: ShortestWay) -> dict[str, float]:
        """How values go along a shortest way: `order`, the share of its steps by which they rise; `sign`, the share of
        its states in which the action along it is scored higher than the opposite one. Of a state without a value of
        its own, the score of what is done there; nothing where a state alone has no value."""
        level, critic = self.level, self.critic
        if critic is None or self.memory is not None or level.extraction.adapts or len(way.along) < 2:
            return {}
        seen = way.observation if level.data.goals is None else np.concatenate((way.observation, way.goal), 1)
        state_KS = torch.from_numpy(seen)
        weighed = [of for name, (of, _) in level.critics.items() if name == "critic" or level.further[name].weight]
        scores = all(of.scores for of in weighed)
        worth_K, found = critic.worth(state_KS), {}
        if worth_K is None and scores:
            noise = RunNoise.seeded(0)
            worth_K = critic.score(state_KS, level.extraction.act(self.actor, critic, state_KS, noise, explore=False))
        if worth_K is not None:
            found["order"] = (worth_K.diff() > 0).double().mean().item()
        if scores and level.data.action == "action" and self.codes is None:
            along_K, back_K = (critic.score(state_KS, torch.from_numpy(of)) for of in (way.along, way.back))
            found["sign"] = (along_K > back_K).double().mean().item()
        return found

    def act(self, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        """[B, A] the actions that are taken."""
        action = self.level.extraction.act(self.actor, self.critic, state_BS, noise, explore)
        return action if self.codes is None else self.codes.decode(state_BS, action)


def stacked(levels: Sequence[LevelNets]) -> LevelNets:
    """The same level of R runs as one, with copies of their parameters along the axis of runs (see `run_axis`)."""
    made = LevelNets(levels[0].level, levels[0].spec, torch.Generator())
    for p, *of_runs in zip(made.parameters(), *(level.parameters() for level in levels), strict=True):
        p.data = torch.stack([q.data for q in of_runs], run_axis(of_runs[0]))
    return made


def run_axis(parameter: Tensor) -> int:
    """Where the axis of runs is put into a parameter: behind the members of an ensemble (see `models.mlp`)."""
    return min(1, parameter.dim())


class Networks:
    """The networks and optimisers of an agent, of one run or of several.

    Args:
        agent: what is trained.
        levels: its networks.
    """

    def __init__(self, agent: ControlAgent, levels: Sequence[LevelNets]) -> None:
        self.agent, self.levels = agent, levels
        trained: dict[str, list[nn.Module]] = {"policy": [net.actor for net in levels], "critic": [], "rows": []}
        for net in levels:
            if net.rows is not None:
                trained["rows"].append(net.rows)
            if net.critic is not None:
                trained["critic"].append(net.critic)
            if net.codes is not None:
                trained["policy"].append(net.codes)
            if net.memory is not None:
                trained["policy" if net.critic is None else "critic"].append(net.memory)
        self._acts = [bool(_weights([net.actor])) for net in levels]
        rates = {"policy": agent.policy_lr, "critic": agent.critic_lr, "rows": agent.critic_lr}
        self.trained = {name: weights for name, nets in trained.items() if (weights := _weights(nets))}
        """What each optimiser moves, by its name."""
        decay = {"policy": 0.0, "critic": agent.critic_decay or 0.0, "rows": 0.0}
        self.optimisers = {
            name: torch.optim.AdamW(of, lr=rates[name], weight_decay=decay[name], fused=True)
            for name, of in self.trained.items()
        }

    @property
    def weights(self) -> list[nn.Parameter]:
        """All that is trained."""
        return [p for of in self.trained.values() for p in of]

    def update(
        self,
        drawn: Sequence[Drawn],
        noise: RunNoise,
        conservative: bool,
        cloning: bool = False,
        learning: Sequence[str] | None = None,
    ) -> dict[str, Tensor]:
        """One update: a step of the weights of rows, `slices` steps of the critics, then one step of the policies.

        Args:
            drawn: what each level learns from.
            noise: all random numbers.
            conservative: whether conservative critics are conservative; if not, they are plain ones.
            cloning: whether policies only imitate the data, and critics learn nothing.
            learning: names of the critics that learn, policies where `critic` does; None: all.

        Returns:
            Metrics by name, without gradient: scalars, or one a run.
        """
        metrics: dict[str, Tensor] = {}
        if "rows" in self.optimisers:
            evenly, drawn = drawn, [self._weighed(net, of, noise) for net, of in zip(self.levels, drawn, strict=True)]
            losses = {
                self._prefix(k): net.level.rows.loss(net.rows, net.read(of["rows"], learn=False))
                for k, (net, of) in enumerate(zip(self.levels, evenly, strict=True))
                if net.level.rows is not None and net.rows is not None
            }
            metrics |= self._step("rows", losses)
        for part in range(self.agent.slices if "critic" in self.optimisers and not cloning else 0):
            losses = {
                self._prefix(k, name): critic.loss(
                    nets,
                    net.read(self._slice(of[name], part, noise), learn=True),
                    net.actor.valued,
                    noise,
                    conservative,
                )
                for k, (net, of) in enumerate(zip(self.levels, drawn, strict=True))
                for name, critic, nets in net.critics
                if not critic.solved and (learning is None or name in learning)
            }
            metrics |= self._step("critic", losses) if losses else {}
            for net in self.levels:
                for _, critic, nets in net.critics:  # one that rests may share networks with one that learns
                    critic.after_step(nets)
        if learning is not None and "critic" not in learning:
            return metrics
        losses = {}
        for k, (net, of) in enumerate(zip(self.levels, drawn, strict=True)):
            rows = of.get("policy") or of["critic"]
            if cloning and net.codes is not None:
                assert isinstance(rows, Batch)  # `agent.Level` leaves out what draws otherwise
                losses[self._prefix(k, "codes")] = net.codes.loss(rows)
            if self._acts[k]:
                extraction = net.level.extraction
                rows = net.read(rows, learn=net.critic is None)
                losses[self._prefix(k)] = (
                    extraction.cloning(net.actor, rows, noise)
                    if cloning
                    else extraction.loss(net.actor, net.critic, rows, noise)
                )
        if losses:
            metrics |= self._step("policy", losses)
            for net in self.levels:
                net.level.extraction.after_step(net.actor)
        return metrics

    def _weighed(self, net: LevelNets, drawn: Drawn, noise: RunNoise) -> Drawn:
        """The rows of a level, drawn anew with their weights; as they are where it has none."""
        if net.level.rows is None or net.rows is None:
            return drawn
        with torch.no_grad():
            row_B = drawn_anew(net.level.rows.shares(net.rows, net.read(drawn["rows"], learn=False)), noise)

        def taken(part: Tensor) -> Tensor:
            return part.take_along_dim(row_B.reshape(*row_B.shape, *[1] * (part.dim() - row_B.dim())), row_B.dim() - 1)

        return {name: each(taken, rows) for name, rows in drawn.items()}

    def _slice(self, rows: Rows, part: int, noise: RunNoise) -> Rows:
        """One of the equal parts of a batch: every `slices`-th row, so that each has rows of all sources."""
        axis = len(noise.runs)
        return each(lambda t: t.unflatten(axis, (-1, self.agent.slices)).select(axis + 1, part), rows)

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


class ActingLevels:
    """Levels that act in B episodes: each decides the goal of the next one, the last one its next N actions.

    What is carried from step to step, and forgotten where an episode begins: the actions of a chunk that are still to
    be taken, the last level's memory, and what its extraction knows of the episode (`Extraction.adapts`). Where all
    episodes begin again, noise does too, by seeds of that turn: how many steps the turn before took depends on the runs
    beside.
    """

    def __init__(self, levels: Sequence[LevelNets], spec: Spec, seeds: Sequence[int], explore: bool) -> None:
        self.levels, self.explore, self._seeds, self._turn = levels, explore, seeds, 0
        self.noise = RunNoise.seeded(*seeds)
        self._reward_B: np.ndarray | None = None
        data = levels[-1].level.data
        self._size = (data.steps if data.action == "chunk" else 1, spec.action)

    def earned(self, reward_B: np.ndarray) -> None:
        """See `control.envs.base.Told`."""
        self._reward_B = reward_B

    @torch.inference_mode()
    def __call__(self, observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        count = len(first_B)
        if first_B.all():
            if self._turn:
                self.noise = RunNoise.seeded(*(derive(seed, "turn", self._turn) for seed in self._seeds))
            self._turn += 1
            self._chunk_BNA, self._taken_B = np.zeros((count, *self._size), np.float32), np.zeros(count, int)
            memory = self.levels[-1].memory
            self._memory_BM = torch.zeros(count, memory.size if memory is not None else 0)
        decide_B = first_B | (self._taken_B == self._size[0])
        if decide_B.any():
            self._chunk_BNA[decide_B] = self._decide(observation_BO, goal_BG, first_B)[decide_B]
            self._taken_B[decide_B] = 0
        action_BA = self._chunk_BNA[np.arange(count), self._taken_B]
        self._taken_B += 1
        return action_BA

    def _decide(self, observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        """[B, N, A] the next actions."""
        observation, goal = (self._by_run(seen) for seen in (observation_BO, goal_BG))
        for net in self.levels:
            state = observation if net.level.data.goals is None else torch.cat((observation, goal), -1)
            if net.memory is not None:  # it goes with single actions, so all episodes decide in every step
                before_BA = torch.from_numpy(np.where(first_B[:, None], 0, self._chunk_BNA[:, 0]))
                memory_BM = self._memory_BM.where(torch.from_numpy(~first_B)[:, None], 0)
                self._memory_BM = net.memory(torch.cat((state, before_BA), -1)[:, None], memory_BM)[:, 0]
                state = torch.cat((state, self._memory_BM), -1)
            if net.level.extraction.adapts:
                state = torch.cat((state, self._known(net, state, first_B)), -1)
            goal = net.act(state, self.noise, self.explore)
        if goal.isnan().any():
            warnings.warn(
                "actions are no numbers, and 0 is taken for them: learning has diverged; lower agent.critic_lr or "
                "agent.policy_lr",
                LongstrideWarning,
                stacklevel=2,
            )
            goal = goal.nan_to_num()
        return goal.clamp(-1, 1).reshape(len(first_B), *self._size).numpy()

    def _known(self, net: LevelNets, state_BS: Tensor, first_B: np.ndarray) -> Tensor:
        """[B, M] what the extraction of the last level knows now of each episode."""
        extraction, data = net.level.extraction, net.level.data
        known_BM = extraction.begun(len(first_B))
        if not first_B.all():
            if self._reward_B is None:
                raise RunError(
                    f"{extraction.type_name()} learns from what its actions earn: call earned(rewards) after each step"
                )
            reward_B = torch.as_tensor(self._reward_B, dtype=torch.float32)
            reward_B = data.reward_scale * reward_B + data.reward_shift
            discount_B, none_B = (torch.full_like(reward_B, number) for number in (data.discount, math.nan))
            action_BA = torch.from_numpy(self._chunk_BNA[:, 0])
            step = Batch(self._state_BS, action_BA, reward_B, discount_B, state_BS, none_B)
            later_BM = extraction.after(net.critic, self._known_BM, step)
            known_BM = torch.where(torch.from_numpy(first_B)[:, None], known_BM, later_BM)
        self._known_BM, self._state_BS, self._reward_B = known_BM, state_BS, None
        return known_BM

    def _by_run(self, seen: np.ndarray) -> torch.Tensor:
        """What is seen in all episodes; of several runs [R, B, ...]."""
        runs = self.noise.runs
        return torch.as_tensor(seen, dtype=torch.float32).view(*runs, len(seen) // math.prod(runs), seen.shape[1])


def _weights(modules: Sequence[nn.Module]) -> list[nn.Parameter]:
    """What is trained of modules."""
    return [p for m in modules for p in m.parameters() if p.requires_grad]
