"""The setup of recipes on enumerable answers: tasks whose success is computed, and groups of sampled answers that the
library's own credit and losses learn from.

The policy is a table (`envs.exact.arms`), so a run takes seconds and a claim can have fifty seeds. Measures are exact;
only training samples. A right answer earns 1, a wrong one 0. A seed draws the policy at the start and the samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero, Positive, Weight
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.arms import AnswerTree
from longstride.methods import Credit, Loss, Sample
from longstride.methods.base import PROXIMAL, REFERENCE
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State

if TYPE_CHECKING:
    from torch import Tensor

DECOY = 0.5
"""What an answer earns that is good and not right."""
Chance = Annotated[float, Field(gt=0, lt=1)]
SEEDS = tuple(range(100, 140))
"""Of claims; settings were chosen with seeds 0 to 9."""


class Answers(ExactProblem):
    """Tasks of known difficulty. Measures: `success` (mean over tasks), `pass@k`, `entropy` of answers in nats."""

    tasks: Annotated[tuple[tuple[Chance, ...], ...], Field(min_length=1)]
    """By context, the chance that the policy at the start gives a right answer to each of its tasks. The policy cannot
    tell tasks of one context apart; their right answers differ."""
    vocabulary: Annotated[int, Field(ge=2)] = 16
    """Tokens to choose from."""
    length: Count = 1
    """Tokens of an answer."""
    right: Count = 1
    """Right answers of a task."""
    spread: Weight = 1.0
    """Deviation of the logits at the start, within right and within wrong answers."""
    decoy: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The chance that the policy at the start gives an answer that earns `DECOY` in all tasks of its context, and is not
    right; 0 is no such answer."""
    attempts: tuple[Count, ...] = (16,)
    """The k of `pass@k`."""

    @property
    def tree(self) -> AnswerTree:
        return _tree(tuple(map(len, self.tasks)), self.vocabulary, self.length, self.right, self.decoy > 0)

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """Logits of a random policy with the given chances."""
        tree, answers = self.tree, []
        free = tree.log_policy(self.spread * rng.normal(size=tree.shape))
        for c, chances in enumerate(self.tasks):
            shares = [*chances, *[self.decoy] * (self.decoy > 0)]
            if (rest := 1 - sum(shares)) <= 0:
                raise ConfigError(f"the chances of the answers of one context must add up to less than 1, got {shares}")
            p_K, rewards = np.exp(free[c, tree.places, tree.tokens].sum(-1)), tree.rewards[tree.context == c]
            sets = [*(rewards == 1), *(rewards[:1] == DECOY)[: self.decoy > 0], (rewards == 0).all(0)]
            answers.append(sum(share * p_K * of / (p_K @ of) for share, of in zip([*shares, rest], sets, strict=True)))
        return tree.logits_of(np.stack(answers))

    def play(self, logits: np.ndarray, group: int, rng: np.random.Generator) -> list[Trajectory]:
        """A group of answers to every task."""
        return self.episodes(logits, self.tree.sample(logits, group, rng))

    def episodes(self, logits: np.ndarray, answers_QN: np.ndarray) -> list[Trajectory]:
        """The single-turn episodes in which a policy gave these answers; what was read is the number of the task."""
        tree, played = self.tree, []
        log_policy = tree.log_policy(logits)
        for q, (answers_N, c) in enumerate(zip(answers_QN, tree.context, strict=True)):
            task = Task(id=f"task-{q}", source="exact", goal="", start="")
            logp_NT = log_policy[c, tree.places[answers_N], tree.tokens[answers_N]].tolist()
            for k, ids, logp in zip(answers_N, tree.tokens[answers_N].tolist(), logp_NT, strict=True):
                reward = float(tree.rewards[q, k])
                turn = Turn([q], ids, logp, [0] * len(ids), "", "", action="answer", reward=reward)
                episode = Trajectory(
                    task, len(played), 0, Budget(), [turn], StopReason.ANSWERED, reward=reward, group=q
                )
                episode.success = reward == 1
                played.append(episode)
        return played

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        p_CK = self.tree.answers(solution["logits"])
        p_Q = (p_CK[self.tree.context] * (self.tree.rewards == 1)).sum(1).clip(0, 1)
        entropy = -(p_CK * np.log(p_CK.clip(1e-300))).sum(1).mean()
        return {
            "success": float(p_Q.mean()),
            **{f"pass@{k}": float((1 - (1 - p_Q) ** k).mean()) for k in self.attempts},
            "entropy": float(entropy),
        }


@cache
def _tree(sizes: tuple[int, ...], vocabulary: int, length: int, right: int, decoy: bool) -> AnswerTree:
    """Right answers lie in an order that is shuffled once and for all, so they share beginnings only by chance."""
    answers = vocabulary**length
    if max(sizes) * right + decoy >= answers:
        raise ConfigError(f"{max(sizes)} tasks of {right} right answers leave no wrong one of {answers}")
    rewards, order = np.zeros((sum(sizes), answers)), np.random.default_rng(0).permutation(answers)
    places = [k for size in sizes for k in range(size)]
    for q, k in enumerate(places):
        rewards[q, order[k * right : (k + 1) * right]] = 1
    if decoy:
        rewards[:, order[-1]] = DECOY
    return AnswerTree(rewards, np.repeat(np.arange(len(sizes)), sizes), vocabulary, length)


@dataclass(slots=True)
class Batch:
    """The tokens of all samples of a step, as losses take them (`methods.losses.Tokens`)."""

    streams: "dict[str, Tensor]"
    sequence_P: "Tensor"
    entropy_P: "Tensor"


def places_of(tree: AnswerTree, samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Context, place and token of every token of the samples, one after the other."""
    ids_NT = np.array([s.sampled_ids for s in samples])
    answers_N = ids_NT @ tree.vocabulary ** np.arange(tree.length)[::-1]
    contexts_N = tree.context[[s.prompt_ids[0] for s in samples]]
    return np.repeat(contexts_N, tree.length), tree.places[answers_N].ravel(), ids_NT.ravel()


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
    batch = Batch(streams, torch.arange(len(samples)).repeat_interleave(torch.tensor(sizes)), entropy_P)
    value = loss(log_policy[at], batch).loss_P.sum() / denominator
    return torch.autograd.grad(value, table)[0].numpy()


class Grouped(ExactMethod):
    """Groups of answers to every task, credit, and gradient steps on the loss of all of them.

    What a learner does otherwise is left out: no momentum, no clipping of gradients, no batches smaller than the whole.
    """

    credit: Credit
    """How much each token weighs."""
    loss: Loss
    """What is stepped on."""
    group: Count = 8
    """Answers to each task an iteration."""
    rate: Positive = 1.0
    """Length of a step, in logits for a unit of gradient."""
    passes: Count = 1
    """Steps on the answers of one iteration."""
    staleness: CountOrZero = 0
    """How many iterations old the policy is that samples, once there have been so many."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Answers):
            raise ConfigError(f"expected a problem of type answers, got {type(problem).type_name()}")
        logits = problem.begin(rng)
        state = {"logits": logits, "iteration": np.zeros(())}
        if self.staleness:
            state["sampler"] = np.stack([logits] * (self.staleness + 1))
        if REFERENCE in self.loss.needs:
            state["reference"] = logits.copy()  # a checkpoint takes no two names of one array
        return state

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
        sampler = state["sampler"][0] if self.staleness else state["logits"]
        samples = self.credit(problem.play(sampler, self.group, rng))
        after = dict(state, iteration=state["iteration"] + 1)
        if samples:
            after["logits"] = self.update(problem.tree, state, samples)
        if self.staleness:
            after["sampler"] = np.concatenate([state["sampler"][1:], after["logits"][None]])
        if self.loss.kl is not None:
            share = self.loss.kl.anchor.step(int(after["iteration"]))
            after["reference"] = state["reference"] + share * (after["logits"] - state["reference"])
        return after

    def update(self, tree: AnswerTree, state: State, samples: Sequence[Sample]) -> np.ndarray:
        """The logits after `passes` steps on the samples."""
        logits, at = state["logits"], places_of(tree, samples)
        for name, table in ((PROXIMAL, logits), (REFERENCE, state.get("reference"))):
            if name in self.loss.needs and table is not None:
                for s, logp in zip(samples, tree.log_policy(table)[at].reshape(len(samples), -1).tolist(), strict=True):
                    s.streams[name] = logp
        for _ in range(self.passes):
            now = samples
            if self.loss.depends_on_policy:
                now = self.loss.reweigh(samples, tree.log_policy(logits)[at].reshape(len(samples), -1).tolist())
            logits = logits - self.rate * gradient(tree, logits, now, self.loss)
        return logits


def recipe(name: str, problem: ExactProblem, method: ExactMethod, iterations: int) -> ExactRecipe:
    """A recipe that is measured at its start and five times after that."""
    return ExactRecipe(name=name, problem=problem, method=method, iterations=iterations, every=max(1, iterations // 5))
