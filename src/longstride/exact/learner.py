"""The learner of exact problems: samples of a policy that is a table of logits, the library's own credit and losses, and
the gradient of the loss of all of them.

What a learner does otherwise is left out: no momentum, no clipping of gradients, no batches smaller than the whole.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from longstride.core.numbers import Count, CountOrZero, Positive
from longstride.core.trajectory import Trajectory, by_group
from longstride.exact import experiment
from longstride.exact.experiment import ExactMethod, ExactProblem, State
from longstride.exact.worlds.answers import AnswerTree
from longstride.methods import Credit, Loss, OnPolicy, Sample
from longstride.methods.base import PROXIMAL, REFERENCE

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class TableBatch:
    """The tokens of all samples of a step, as losses take them (`methods.losses.Tokens`)."""

    streams: "dict[str, Tensor]"
    sequence_P: "Tensor"
    entropy_P: "Tensor"


def places_of(tree: AnswerTree, samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Context, place and token of every sampled token of the samples, one after the other. A prompt is the number of the
    task and the tokens that the answer began with."""
    ids_NT = np.array([s.prompt_ids[1:] + s.sampled_ids for s in samples])
    answers_N = ids_NT @ tree.vocabulary ** np.arange(tree.length)[::-1]
    contexts_N = tree.context[[s.prompt_ids[0] for s in samples]]
    sampled_NT = np.arange(tree.length) >= np.array([[len(s.prompt_ids) - 1] for s in samples])
    contexts_NT = np.broadcast_to(contexts_N[:, None], ids_NT.shape)
    return contexts_NT[sampled_NT], tree.places[answers_N][sampled_NT], ids_NT[sampled_NT]


def gradient(tree: AnswerTree, logits: np.ndarray, samples: Sequence[Sample], loss: Loss) -> np.ndarray:
    """[C, M, V] gradient of the loss of one step in the logits. Samples have the streams that the loss needs."""
    import torch

    at = tuple(torch.from_numpy(x) for x in places_of(tree, samples))
    table = torch.tensor(logits, requires_grad=True)
    log_policy = table.log_softmax(-1)
    shares, denominator = loss.aggregation(samples)
    sizes = [len(s.sampled_ids) for s in samples]
    weighed = {
        name: [w * x for w, x in zip(shares, xs, strict=True)] for name, xs in loss.coefficients(samples).items()
    }
    streams = {name: torch.tensor(np.repeat(xs, sizes)) for name, xs in weighed.items()}
    for name in samples[0].streams:
        streams[name] = torch.tensor([x for s in samples for x in s.streams[name]], dtype=torch.float64)
    streams["advantages"] = streams["advantages"] * torch.tensor(np.repeat(shares, sizes))
    entropy_P = -(log_policy.exp() * log_policy).sum(-1)[at[0], at[1]]
    batch = TableBatch(streams, torch.arange(len(samples)).repeat_interleave(torch.tensor(sizes)), entropy_P)
    value = loss(log_policy[at], batch).loss_P.sum() / denominator
    return torch.autograd.grad(value, table)[0].numpy()


class Tabulated(ExactProblem):
    """A problem whose policy is a table of logits."""

    @property
    @abstractmethod
    def tree(self) -> AnswerTree:
        """What the rows, places and tokens of the table stand for."""

    @abstractmethod
    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """[C, M, V] logits of the policy at the start."""


P = TypeVar("P", bound=Tabulated)


class TableLearner(ExactMethod[P], Generic[P]):
    """Collects episodes, asks credit, and takes gradient steps on the loss of all of them."""

    replay: OnPolicy = OnPolicy()
    """Which groups are trained on; nothing older is kept."""
    credit: Credit
    """How much each token weighs."""
    loss: Loss
    """What is stepped on."""
    group: Count = 8
    """Episodes of each task an iteration."""
    rate: Positive = 1.0
    """Length of a step, in logits for a unit of gradient."""
    passes: Count = 1
    """Steps on the answers of one iteration."""
    staleness: CountOrZero = 0
    """How many iterations old the policy is that samples, once there have been so many."""

    def start(self, problem: P, rng: np.random.Generator) -> State:
        logits = problem.begin(rng)
        state = {"logits": logits, "iteration": np.zeros(()), "samples": np.zeros(())}
        if self.staleness:
            state["sampler"] = np.stack([logits] * (self.staleness + 1))
        if REFERENCE in self.loss.needs:
            state["reference"] = logits.copy()  # a checkpoint takes no two names of one array
        return state

    def step(self, problem: P, state: State, rng: np.random.Generator) -> State:
        sampler = state["sampler"][0] if self.staleness else state["logits"]
        played = self.collect(problem, sampler, state, rng)
        taught = {group[0].group for group in by_group(t.record() for t in played) if self.replay.teaches(group)}
        samples = self.credit([t for t in played if t.group in taught])
        after = dict(state, iteration=state["iteration"] + 1, samples=state["samples"] + len(played))
        if samples:
            after["logits"] = self.update(problem.tree, state, samples)
        if self.staleness:
            after["sampler"] = np.concatenate([state["sampler"][1:], after["logits"][None]])
        if self.loss.kl is not None:
            share = self.loss.kl.anchor.step(int(after["iteration"]))
            after["reference"] = state["reference"] + share * (after["logits"] - state["reference"])
        return after

    def spent(self, problem: P, state: State) -> Mapping[str, float]:
        """Episodes that were played."""
        return {"samples": float(state["samples"])}

    @abstractmethod
    def collect(self, problem: P, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        """The episodes of an iteration, played by the policy with these logits; `state` is that before the iteration."""

    def update(self, tree: AnswerTree, state: State, samples: Sequence[Sample]) -> np.ndarray:
        """The logits after `passes` steps on the samples."""
        logits, at = state["logits"], places_of(tree, samples)
        ends = np.cumsum([len(s.sampled_ids) for s in samples])[:-1]

        def logprobs(table: np.ndarray) -> list[list[float]]:
            return [part.tolist() for part in np.split(tree.log_policy(table)[at], ends)]

        for name, table in ((PROXIMAL, logits), (REFERENCE, state.get("reference"))):
            if name in self.loss.needs and table is not None:
                for s, logp in zip(samples, logprobs(table), strict=True):
                    s.streams[name] = logp
        for _ in range(self.passes):
            now = self.loss.reweigh(samples, logprobs(logits)) if self.loss.depends_on_policy else samples
            logits = logits - self.rate * gradient(tree, logits, now, self.loss)
        return logits


recipe = partial(experiment.recipe, evaluations=5)
"""What a learner does is seen along the way."""
