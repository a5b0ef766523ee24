"""The learner: the weights and optimisers of a run, how they are trained, alone or beside those of other runs, and how
they act.

What always holds: what `train` does depends on the weights, the stores, the number of updates so far and to come, and
the seed, and on nothing else; the state of the learner is its tensors and the number of updates, so a resumed run
computes the numbers of an uninterrupted one. Runs side by side are copied into one set of networks and back.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longstride.control.agent import ControlAgent
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Act, Spec
from longstride.control.meta import Reptile
from longstride.control.networks import ActingLevels, Drawn, LevelNets, Networks, each, run_axis, stacked
from longstride.control.noise import RunNoise
from longstride.core.errors import RunError
from longstride.core.seeds import derive
from longstride.learner.moments import checked_moments

Source = tuple[TransitionStore, int]
"""A store, and how many rows of a batch are drawn from it."""
AHEAD = 16
"""Updates whose batches are drawn at once: drawing one of them costs as much as drawing several."""


class ControlLearner(Networks):
    """The networks and optimisers of a run.

    Args:
        agent: what is trained.
        spec: sizes of observations, actions and goals.
        seed: of the initial weights, the batches and all noise.
    """

    def __init__(self, agent: ControlAgent, spec: Spec, seed: int) -> None:
        self.spec, self.seed = spec, seed
        self.updates = 0
        """Updates so far."""
        generator = torch.Generator().manual_seed(derive(seed, "weights"))
        super().__init__(agent, [LevelNets(level, spec, generator) for level in agent.levels])

    def draw(self, sources: Sequence[Source], updates: int) -> list[Drawn]:
        """What each level learns from in several updates; all tensors have the update as their first axis.

        Args:
            sources: where the rows of a batch are drawn from.
            updates: how many.
        """
        rng = np.random.default_rng(derive(self.seed, "batch", self.updates))
        data = [d for level in self.agent.levels for d in (level.data, *(d for _, d in level.critics.values()))]
        steps = max(d.steps_ahead for d in data)
        weights = self.agent.weights
        rows = [
            (store, store.draw(updates * count, rng, steps, None if weights is None else weights(store)))
            for store, count in sources
            if count
        ]
        levels = [[net.batches(store, row_B, rng) for store, row_B in rows] for net in self.levels]

        def joined(*parts: Tensor) -> Tensor:
            return torch.cat([part.unflatten(0, (updates, -1)) for part in parts], 1)

        return [{name: each(joined, *(of[name] for of in level)) for name in level[0]} for level in levels]

    def train(
        self,
        updates: int,
        sources: Sequence[Source],
        conservative: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
        cloning: bool = False,
    ) -> dict[str, float]:
        """Several updates (see `train_together`); returns the means of their metrics."""
        return train_together([self], updates, [sources], conservative, progress, cloning)[0]

    def actor(self, seed: int, explore: bool) -> Act:
        """The agent as it is now, for `control.envs.play`.

        Args:
            seed: of its noise.
            explore: whether it acts as in training or as in evaluations.
        """
        return act_together([self], [seed], explore)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors (weights, target networks, temperatures, moments of the optimisers) and numbers, by name."""
        # what critics share stands under the names of both, as copies: a file of tensors holds none twice
        nets = {f"{k}.{n}": t.clone() for k, net in enumerate(self.levels) for n, t in net.state_dict().items()}
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


class _SideBySide(Networks):
    """Copies of the networks and optimisers of several learners that have made as many updates, of one agent but for
    its learning rates. Optimisers have the highest rate, and a run moves by its share of their step, decay included."""

    def __init__(self, learners: Sequence[ControlLearner]) -> None:
        first, self.learners = learners[0], learners
        super().__init__(first.agent, [stacked(levels) for levels in zip(*(of.levels for of in learners), strict=True)])
        for name, optimiser in self.optimisers.items():
            for p, *of_runs in self._pairs(name):
                states = [one.optimisers[name].state[q] for one, q in zip(learners, of_runs, strict=True)]
                optimiser.state[p] = {
                    key: value.clone() if key == "step" else torch.stack([s[key] for s in states], run_axis(of_runs[0]))
                    for key, value in states[0].items()
                }
        self._shares: dict[str, Tensor] = {}
        """Of optimisers whose rates differ, [R] the share of each run's."""
        for name, optimiser in self.optimisers.items():
            rate_R = torch.tensor([one.optimisers[name].param_groups[0]["lr"] for one in learners], dtype=torch.float64)
            optimiser.param_groups[0]["lr"] = rate_R.max().item()
            if (rate_R != rate_R[0]).any():
                self._shares[name] = (rate_R / rate_R.max()).float()

    def _step(self, name: str, losses: Mapping[str, tuple[Tensor, dict[str, Tensor]]]) -> dict[str, Tensor]:
        if name not in self._shares:
            return super()._step(name, losses)
        before = [p.detach().clone() for p in self.trained[name]]
        metrics = super()._step(name, losses)
        with torch.no_grad():
            for old, (p, *_, q) in zip(before, self._pairs(name), strict=True):
                share = self._shares[name].view(-1, *[1] * (q.dim() - run_axis(q)))
                p.copy_(torch.lerp(old, p, share))
        return metrics

    def _pairs(self, name: str) -> Any:
        """Each parameter of an optimiser with those of the learners."""
        return zip(self.trained[name], *(one.trained[name] for one in self.learners), strict=True)

    @torch.no_grad()
    def hand_back(self) -> None:
        """Gives the learners what their copies have become."""
        for k, learner in enumerate(self.learners):
            for ours, theirs in zip(self.levels, learner.levels, strict=True):
                for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
                    q.copy_(p.select(run_axis(q), k))
        for name, optimiser in self.optimisers.items():
            for p, *of_runs in self._pairs(name):
                for k, (learner, q) in enumerate(zip(self.learners, of_runs, strict=True)):
                    learner.optimisers[name].state[q] = {
                        key: value.clone() if key == "step" else torch.empty_like(q).copy_(value.select(run_axis(q), k))
                        for key, value in optimiser.state[p].items()
                    }


def train_together(
    learners: Sequence[ControlLearner],
    updates: int,
    sources: Sequence[Sequence[Source]],
    conservative: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
    cloning: bool = False,
    reptile: Reptile | None = None,
    learning: Sequence[str] | None = None,
) -> list[dict[str, float]]:
    """Several updates (see `Networks.update`) of each learner, of all at once.

    Args:
        learners: of one agent but for its learning rates, with as many updates each.
        updates: how many.
        sources: for each learner, where the rows of a batch are drawn from; as many rows each.
        conservative: whether conservative critics are conservative; if not, they are plain ones.
        progress: gets (done, `updates`).
        cloning: whether policies only imitate the data, and critics learn nothing.
        reptile: blocks of updates on one source each; None: batches of all sources.
        learning: names of the critics that learn (see `TrainingPhase.learning`); None: all.

    Returns:
        For each learner, the means of its metrics.
    """
    fitted: list[dict[str, float]] = [{} for _ in learners]
    for learner, of, found in zip(learners, sources, fitted, strict=True):
        rng = np.random.default_rng(derive(learner.seed, "fit", learner.updates))
        for net in learner.levels if updates else ():
            net.before_updates()
            found |= net.fit([store for store, count in of if count], rng)
    nets = learners[0] if len(learners) == 1 else _SideBySide(learners)
    totals: dict[str, Tensor] = {}
    block = AHEAD if reptile is None else reptile.inner
    for first in range(0, updates, block):
        count = min(block, updates - first)
        read, before = sources, []
        if reptile is not None:
            rngs = [np.random.default_rng(derive(learner.seed, "source", learner.updates)) for learner in learners]
            read = [reptile.chosen(of, rng) for of, rng in zip(sources, rngs, strict=True)]
            before = [p.detach().clone() for p in nets.weights]
        drawn = [learner.draw(of, count) for learner, of in zip(learners, read, strict=True)]
        noise = RunNoise.seeded(*(derive(learner.seed, "noise", learner.updates) for learner in learners))
        if noise.runs:
            levels = zip(*drawn, strict=True)
            drawn = [[{name: each(_beside, *(of[name] for of in level)) for name in level[0]} for level in levels]]
        for k in range(count):
            batch = [{name: each(itemgetter(k), rows) for name, rows in level.items()} for level in drawn[0]]
            metrics = nets.update(batch, noise, conservative, cloning, learning)
            totals = {key: totals[key] + value if totals else value for key, value in metrics.items()}
            progress(first + k + 1, updates)
        if reptile is not None:
            reptile.keep(nets.weights, before)
        for learner in learners:
            learner.updates += count
    if isinstance(nets, _SideBySide):
        nets.hand_back()
    means = {key: (total / updates).expand(len(learners)).tolist() for key, total in totals.items()}
    return [{key: values[k] for key, values in means.items()} | found for k, found in enumerate(fitted)]


def act_together(learners: Sequence[ControlLearner], seeds: Sequence[int], explore: bool) -> Act:
    """The agents of learners as they are now, for `control.envs.play_beside`: each acts in as many copies.

    Args:
        learners: of one agent.
        seeds: of their noise.
        explore: whether they act as in training or as in evaluations.
    """
    one = learners[0]
    together = len(learners) > 1
    levels = [stacked(of) for of in zip(*(x.levels for x in learners), strict=True)] if together else one.levels
    return ActingLevels(levels, one.spec, seeds, explore)


def _beside(*of_runs: Tensor) -> Tensor:
    """[updates, R, ...] of R times [updates, ...]."""
    return torch.stack(of_runs, 1)
