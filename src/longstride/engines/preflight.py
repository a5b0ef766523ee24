"""The preflight of an engine: whether its log-probabilities may be trained on."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from longstride.core.errors import ConfigError, EngineFailure
from longstride.engines.base import Completion, Engine, Request, Sampling
from longstride.models.load import Policy

PROBES, PROBE_TOKENS = 8, 32
"""Prompts of a preflight, and tokens that each is continued by."""
MEAN_GAP = 0.1
"""Nats. Servers in bfloat16 are some 0.02 off a float32 model; other weights are off by more than this."""
AGREEMENT = 0.9
"""Share of greedy tokens that must be the learner's too; what rounding changes are near ties."""
MARGIN = 1.1
"""How much better, in squared error, another distribution must explain the server's numbers before it is believed."""


class PreflightReport(NamedTuple):
    """What a preflight measured."""

    tokens: int
    """Sampled tokens that were compared."""
    mean_gap: float
    """Mean absolute difference between the engine's log-probabilities and the learner's, in nats."""
    max_gap: float
    """The largest one."""
    agreement: float
    """Share of the engine's greedy tokens that are greedy for the learner too."""


@torch.inference_mode()
def preflight(engine: Engine, policy: Policy, sampling: Sampling | None = None) -> PreflightReport:
    """Compares an engine with the learner's model on a few prompts.

    Each token's log-probability must be that under the distribution it was drawn from. It is held against those that
    servers give instead: of the distribution before the nucleus is cut (SGLang), or the temperature too (vLLM).

    Args:
        engine: what is examined; it is asked for some five hundred tokens.
        policy: the learner's model, whose weights the engine should have.
        sampling: how tokens will be drawn; the model's own distribution if left out.

    Raises:
        ConfigError: the log-probabilities are of other weights or of another distribution (the setting to change is
            named), or there are none.
    """
    sampling = sampling or Sampling()
    # each once: the same where a setting is left at 1
    readings = list(dict.fromkeys([sampling, Sampling(temperature=sampling.temperature), Sampling()]))
    gaps, same = [], []
    try:
        for request, completion in _probe(engine, policy, sampling):
            logits_T_V, ids = _logits(policy, request, completion), torch.tensor(completion.ids)
            ours = torch.stack([logprobs_under(logits_T_V, ids, reading) for reading in readings])
            gaps.append(torch.tensor(completion.logprobs, dtype=torch.float64) - ours)
        for request, completion in _probe(engine, policy, Sampling(temperature=0.0)):
            same += (_logits(policy, request, completion).argmax(-1) == torch.tensor(completion.ids)).tolist()
    except EngineFailure as e:
        raise ConfigError(f"preflight: {e}") from e
    gap_R_N = torch.cat(gaps, 1)
    nearest = int(gap_R_N.square().mean(1).argmin())
    gap_N = gap_R_N[0].abs()
    report = PreflightReport(len(gap_N), gap_N.mean().item(), gap_N.max().item(), sum(same) / len(same))
    if report.agreement < AGREEMENT or gap_R_N[nearest].abs().mean() > MEAN_GAP:
        raise ConfigError(
            f"preflight: the engine's log-probabilities are {report.mean_gap:.3f} nats off the learner's on average "
            f"({report.max_gap:.3f} at most, {report.tokens} tokens) and {report.agreement:.0%} of its greedy tokens "
            f"agree; expected are at most {MEAN_GAP} and at least {AGREEMENT:.0%}: serve {policy.name!r} itself"
        )
    if gap_R_N[0].square().sum() > MARGIN * gap_R_N[nearest].square().sum():
        given = readings[nearest]
        wrong = [f"sampling.{n} = 1" for n in ("temperature", "top_p") if getattr(given, n) != getattr(sampling, n)]
        raise ConfigError(
            f"preflight: tokens are drawn with temperature {sampling.temperature:g} and top_p {sampling.top_p:g}, but "
            f"the log-probabilities are those of temperature {given.temperature:g} and top_p {given.top_p:g}; set "
            f"{' and '.join(wrong)}, or start vLLM with --logprobs-mode processed_logprobs"
        )
    return report


def logprobs_under(logits_T_V: Tensor, ids_T: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities (float64, shape (T,)) of tokens under a way of sampling. A sampled token always counts as part
    of the nucleus: rounding may leave one at its rim out here and not there."""
    if sampling.temperature <= 0:
        return torch.zeros(len(ids_T), dtype=torch.float64)
    logprobs = (logits_T_V.double() / sampling.temperature).log_softmax(-1)
    given = logprobs.gather(1, ids_T[:, None])
    if sampling.top_p < 1:
        ranked = logprobs.exp().sort(descending=True).values
        least = ranked.masked_fill(ranked.cumsum(-1) - ranked >= sampling.top_p, torch.inf).amin(-1, keepdim=True)
        kept = logprobs.exp() >= torch.minimum(least, given.exp())
        given = given - logprobs.masked_fill(~kept, -torch.inf).logsumexp(-1, keepdim=True)
    return given.flatten()


def _probe(engine: Engine, policy: Policy, sampling: Sampling) -> list[tuple[Request, Completion]]:
    prompts = [policy.chat.head(f"Count to {k}.") + policy.chat.observation("1", first=True) for k in range(PROBES)]
    requests = [Request(prompt, PROBE_TOKENS, seed=k, sampling=sampling) for k, prompt in enumerate(prompts)]
    return list(zip(requests, engine.generate(requests), strict=True))


def _logits(policy: Policy, request: Request, completion: Completion) -> Tensor:
    """The learner's logits at each sampled place, on the CPU: (T, vocabulary)."""
    model: Any = policy.model
    ids = torch.tensor([request.prompt + completion.ids], device=next(model.parameters()).device)
    return model(input_ids=ids, use_cache=False).logits[0, len(request.prompt) - 1 : -1].float().cpu()
