"""An optimiser step written out, one forward pass a sample: what the learner must agree with."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from longstride.learner.learner import Learner
from longstride.methods import Loss, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.losses import PolicyDrift

VOCABULARY = 40
"""Of the samples that are made here."""


@dataclass
class Batch:
    """Stands for a micro-batch."""

    streams: Mapping[str, Tensor]
    sequence_P: Tensor
    entropy_P: Tensor | None = None


def distributions(model: nn.Module, sample: Sample) -> Tensor:
    """(T, V) log-probabilities before each sampled token."""
    ids = torch.tensor([sample.prompt_ids + sample.sampled_ids])
    return model(ids).logits[0, len(sample.prompt_ids) - 1 : -1].log_softmax(-1)


def logprobs(model: nn.Module, sample: Sample) -> Tensor:
    """(T,) log-probabilities of the sampled tokens."""
    return distributions(model, sample).gather(1, torch.tensor(sample.sampled_ids)[:, None])[:, 0]


def loss_of(
    samples: Sequence[Sample], logps: Sequence[Tensor], loss: Loss, entropies: Sequence[Tensor] | None = None
) -> tuple[Tensor, dict[str, float]]:
    """The loss of an optimiser step, given the log-probabilities of each sample's tokens (and their entropies), and the
    metrics that go with it."""
    shares, denominator = loss.aggregation(samples)
    coefficients = loss.coefficients(samples)
    logp, entropy, numbers, streams = [], [], [], {name: [] for name in (*samples[0].streams, *coefficients)}
    for n, (s, logp_T) in enumerate(zip(samples, logps, strict=True)):
        weights = {name: [of[n]] * len(s.sampled_ids) for name, of in coefficients.items()}
        weights[ADVANTAGES] = s.advantages
        trained = torch.tensor([any(of_token) for of_token in zip(*weights.values(), strict=True)])
        logp.append(logp_T[trained])
        if entropies is not None:
            entropy.append(entropies[n][trained])
        numbers += [n] * int(trained.sum())
        shared = {name: [shares[n] * weight for weight in of] for name, of in weights.items()}
        for name, values in (s.streams | shared).items():
            streams[name].append(torch.tensor(values, dtype=logp_T.dtype)[trained])
    joined = {name: torch.cat(parts) for name, parts in streams.items()}
    terms = loss(torch.cat(logp), Batch(joined, torch.tensor(numbers), torch.cat(entropy) if entropy else None))
    drift = PolicyDrift()
    drift.add(terms)
    return terms.loss_P.sum() / denominator, {"tokens": drift.tokens, **drift.metrics()}


def step_loss(model: nn.Module, samples: Sequence[Sample], loss: Loss) -> tuple[Tensor, dict[str, float]]:
    """`loss_of` of a model, with gradient."""
    entropies = [-(logp_T_V.exp() * logp_T_V).sum(-1) for logp_T_V in (distributions(model, s) for s in samples)]
    return loss_of(samples, [logprobs(model, s) for s in samples], loss, entropies)


def slopes(loss: Loss, samples: Sequence[Sample], now: Sequence[Sequence[float]]) -> tuple[float, list[list[float]]]:
    """The loss of an optimiser step, and its gradient in the log-probabilities that the samples' tokens have `now`."""
    logps = [torch.tensor(of, dtype=torch.float64, requires_grad=True) for of in now]
    found = loss_of(samples, logps, loss)[0]
    return found.item(), [g.tolist() for g in torch.autograd.grad(found, logps)]


Step = tuple[float, dict[str, float], dict[str, Tensor]]
"""Loss, metrics and gradients."""


def step_of(model: nn.Module, samples: Sequence[Sample], loss: Loss) -> Step:
    """A step as it is written out above."""
    model.zero_grad()
    value, metrics = step_loss(model, samples, loss)
    value.backward()
    return value.item(), metrics, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def step_of_learner(learner: Learner, samples: Sequence[Sample]) -> Step:
    """The same by the learner."""
    value, metrics = learner.accumulate(samples)
    return value, metrics, {name: p.grad for name, p in learner.parameters.items() if p.grad is not None}


def assert_same(found: Step, expected: Step, tolerance: float = 1e-6) -> None:
    """Whether two steps agree."""
    assert abs(found[0] - expected[0]) < tolerance
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        assert abs(found[1][name] - value) <= max(tolerance, 1e-5 * abs(value)), name
    assert found[2].keys() == expected[2].keys()
    for name, gradient in expected[2].items():
        torch.testing.assert_close(found[2][name], gradient, rtol=1e-4, atol=tolerance)


def random_ids(rng: random.Random, least: int, most: int, vocabulary: int) -> list[int]:
    return [rng.randrange(vocabulary) for _ in range(rng.randint(least, most))]


def random_samples(n: int, seed: int = 1, vocabulary: int = VOCABULARY) -> list[Sample]:
    """Samples that share nothing, whose tokens weigh one together."""
    rng = random.Random(seed)
    found = []
    for k in range(n):
        prompt, ids = random_ids(rng, 1, 30, vocabulary), random_ids(rng, 1, 6, vocabulary)
        streams = {ADVANTAGES: [1 / len(ids)] * len(ids), BEHAVIOUR: [-rng.uniform(3.2, 4.2) for _ in ids]}
        found.append(Sample(prompt, ids, streams, k, k))
    return found


def growing_group(
    seed: int = 0, episodes: int = 4, turns: int = 3, prompt: int = 40, vocabulary: int = VOCABULARY
) -> list[Sample]:
    """Siblings that share a prompt, each an episode whose context grows; the first two sample the same first turn. Each
    token has an advantage of its own, some of them none."""
    rng = random.Random(seed)
    head, same, found = random_ids(rng, prompt, prompt, vocabulary), random_ids(rng, 4, 4, vocabulary), []
    for k in range(episodes):
        context = list(head)
        for t in range(turns):
            ids = same if t == 0 and k < 2 else random_ids(rng, 1, 6, vocabulary)
            advantages = [rng.choice([-1.0, 0.0, 0.5, 1.0]) for _ in ids]
            streams = {ADVANTAGES: advantages, BEHAVIOUR: [-rng.uniform(3.2, 4.2) for _ in ids]}
            found.append(Sample(list(context), ids, streams, k, 0, t))
            context += ids + random_ids(rng, 5, 5, vocabulary)
    return found


class Bare(nn.Module):
    """A model without `get_decoder`: all that the learner may ask of it is logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor) -> Any:
        return self.inner(input_ids)
