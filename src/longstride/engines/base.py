"""Token generation: ids in, ids out.

What always holds: an engine knows token ids only, never text; every completion carries the log-probability of each
sampled token under the very distribution it was sampled from, the version of the weights that sampled it, and why it
ended; a sample depends on its request (prompt, seed, sampling) alone, never on what else is in the batch (up to
rounding of the arithmetic).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from longstride.core.component import Component


class Sampling(Component):
    """How tokens are drawn."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """Nucleus; log-probabilities are renormalised on the kept support."""


@dataclass(slots=True)
class Request:
    """One prompt to be continued."""

    prompt: list[int]
    max_new: int
    """At most so many sampled tokens, the end token included."""
    seed: int
    """The sample's own random stream."""
    session: int | None = None
    """Requests of one session (the turns of one episode) share cached keys and values as far as their prompts agree."""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(slots=True)
class Completion:
    """What was sampled."""

    ids: list[int]
    """The end token is the last one where `finish` is `stop`."""
    logprobs: list[float]
    versions: list[int]
    finish: Literal["stop", "length", "context"]
    """`context`: the prompt left no room in the model's context; `ids` is empty or cut."""


class Engine(Protocol):
    """A source of tokens."""

    version: int
    """Number of the weights in use."""
    tokens_in: int
    """Prompt tokens really encoded so far (cached ones do not count)."""
    tokens_out: int
    """Tokens sampled so far."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Continues every prompt; completions come in the order of the requests.

        Raises:
            EngineFailure: infrastructure trouble.
        """
        ...

    def release(self, session: int) -> None:
        """Forgets what is cached for a session. Unknown sessions are ignored."""
        ...

    def update(self, weights: Any, version: int) -> None:
        """Takes new weights (a `torch.nn.Module` for the local engine) under a version number; caches are dropped."""
        ...
