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
        log_policy = self.tree.log_policy(logits)
        drawn = [(q, int(k)) for q, answers_N in enumerate(answers_QN) for k in answers_N]
        return [self.episode(log_policy, self.task(q), k, n, q) for n, (q, k) in enumerate(drawn)]

    def task(self, q: int) -> Task:
        """The task of this number."""
        return Task(id=f"task-{q}", source="exact", goal="", start="")

    def episode(
        self, log_policy: np.ndarray, task: Task, answer: int, ordinal: int, group: int, given: int = 0
    ) -> Trajectory:
        """The episode in which the policy gave an answer, whose first `given` tokens were there before it: what was read
        is the number of the task and these."""
        tree, q = self.tree, int(task.id.rpartition("-")[2])
        tokens_T = tree.tokens[answer]
        logp_T = log_policy[tree.context[q], tree.places[answer], tokens_T]
        ids, logp, reward = tokens_T.tolist(), logp_T.tolist()[given:], float(tree.rewards[q, answer])
        turn = Turn([q, *ids[:given]], ids[given:], logp, [0] * len(logp), "", "", "answer", reward=reward, given=given)
        episode = Trajectory(task, ordinal, 0, Budget(), [turn], StopReason.ANSWERED, reward=reward, group=group)
        episode.success = reward == 1
        return episode

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
        samples = self.credit(self.collect(problem, sampler, state, rng))
        after = dict(state, iteration=state["iteration"] + 1)
        if samples:
            after["logits"] = self.update(problem.tree, state, samples)
        if self.staleness:
            after["sampler"] = np.concatenate([state["sampler"][1:], after["logits"][None]])
        if self.loss.kl is not None:
            share = self.loss.kl.anchor.step(int(after["iteration"]))
            after["reference"] = state["reference"] + share * (after["logits"] - state["reference"])
        return after

    def collect(self, problem: Any, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        """The episodes of an iteration, played by the policy with these logits; `state` is that before the iteration."""
        return problem.play(logits, self.group, rng)

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


def recipe(name: str, problem: ExactProblem, method: ExactMethod, iterations: int) -> ExactRecipe:
    """A recipe that is measured at its start and five times after that."""
    return ExactRecipe(name=name, problem=problem, method=method, iterations=iterations, every=max(1, iterations // 5))
