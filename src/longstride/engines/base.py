"""Token generation: ids in, ids out.

What always holds: an engine knows token ids only, never text; every completion carries the log-probability of each
sampled token under the very distribution it was sampled from, the version of the weights that sampled it, and why it
ended; a sample depends on its request (prompt, seed, sampling) alone, never on what else is under way (up to rounding
of the arithmetic). An engine is used by one thread at a time, though not always by the same one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from longstride.core.component import Component
from longstride.core.content import Media, by_placeholder, placed
from longstride.core.errors import EngineFailure, ModelError
from longstride.core.numbers import Temperature

MAX_BATCH = 512
"""Requests that an engine of ours computes together, at most."""


class Sampling(Component):
    """How tokens are drawn."""

    temperature: Temperature = 1.0
    """0 is greedy."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
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
    stop: tuple[tuple[int, ...], ...] = ()
    """Sequences of sampled ids that end the completion, beside the end tokens that the engine knows. A text may be
    written in several ways as ids: which of them end a turn is for the chat format to say."""

    ordinal: int = 0
    """Of the episode: several processes share requests out by it."""
    media: tuple[Media, ...] = ()
    """What the placeholders in `prompt` stand for (`core.content`)."""

    def stopped(self, sampled: Sequence[int]) -> bool:
        """Whether the sampled ids end with one of the stop sequences."""
        last = tuple(sampled[-1:])  # most sequences end otherwise, and there may be hundreds
        return any(s[-1:] == last and tuple(sampled[-len(s) :]) == s for s in self.stop)


@dataclass(slots=True)
class Completion:
    """What was sampled."""

    ids: list[int]
    """The end token or stop sequence stands last where `finish` is `stop`."""
    logprobs: list[float]
    versions: list[int]
    """Of the weights that each token was sampled from."""
    finish: Literal["stop", "length", "context"]
    """`context`: the prompt left no room in the model's context; `ids` is empty or cut."""


class Refused(EngineFailure):
    """A request that an engine of the same model and settings would refuse too: nothing is wrong with this one."""


Outcome = Completion | EngineFailure
"""What becomes of a request: infrastructure trouble is returned, not raised, so that the others go on."""


class Engine(ABC):
    """A source of tokens. Requests are submitted, and complete in any order while the engine is polled."""

    adapters = False
    """Whether `update` wants a model with its adapters, and not one into which they are merged."""
    sees = False
    """Whether it takes prompts with images and data (`Request.media`)."""

    def __init__(self, version: int) -> None:
        self.version = version
        """Number of the weights in use."""
        self.parts = 1
        """Parts that work apart: a request is served by part `ordinal` modulo this."""
        self.tokens_in = 0
        """Prompt tokens really encoded so far (cached ones do not count)."""
        self.tokens_out = 0
        """Tokens sampled so far."""
        self._done: dict[int, Outcome] = {}
        """By ticket what is complete and was not returned yet."""

    @abstractmethod
    def submit(self, request: Request) -> int:
        """Takes a request in and returns its ticket, which no other request of this engine has.

        Raises:
            ModelError, ValueError: as `check`.
        """

    def check(self, request: Request) -> None:
        """Refuses a request that cannot be served; every member asks it first.

        Raises:
            ModelError: the prompt has images or data, and the engine takes text alone.
            ValueError: the prompt is empty, or has a placeholder whose content is not beside it.
        """
        if not request.prompt:
            raise ValueError("a prompt needs at least one token")
        if min(request.prompt) < 0:
            if not self.sees:
                raise ModelError(
                    f"a prompt has {(*request.media, 'an image or data')[0]}, and {type(self).__name__} takes text "
                    "alone; let the environment show text, or set chat.media=leave_out, which leaves images and data "
                    "out and counts them"
                )
            placed(request.prompt, by_placeholder(request.media))

    @abstractmethod
    def poll(self) -> list[tuple[int, Outcome]]:
        """Goes on with all that was submitted, for a moment, and returns by ticket, in their order, what is complete
        now; each is returned once."""

    @abstractmethod
    def cancel(self, ticket: int) -> None:
        """Forgets a request. Unknown tickets are ignored."""

    @abstractmethod
    def release(self, session: int) -> None:
        """Forgets what is cached for a session; a request of it that is under way goes on. Unknown sessions are
        ignored."""

    @abstractmethod
    def update(self, weights: Any, version: int) -> None:
        """Takes new weights (a `torch.nn.Module`) under a version number; caches are dropped. Requests that are under
        way go on."""

    def forget(self) -> None:  # noqa: B027 (a server decides by itself)
        """Drops caches: what is sampled next has the same bits as after `update`. Requests under way go on."""

    def rest(self) -> None:  # noqa: B027 (most keep what they hold)
        """Nothing is sampled before the next `update`: memory may be given back until then."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Gives back what it holds outside of this object; it can be used no more."""

    def metrics(self) -> dict[str, float]:
        """What a row of metrics says of it, since it was asked last."""
        return {}

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Continues every prompt; completions come in the order of the requests.

        Raises:
            ValueError: a prompt is empty.
            EngineFailure: of the first request that failed; the others are cancelled.
        """
        tickets: list[int] = []
        completions: dict[int, Completion] = {}
        others: dict[int, Outcome] = {}
        try:
            tickets += map(self.submit, requests)
            mine = set(tickets)
            while len(completions) < len(tickets):
                for ticket, outcome in self.poll():
                    if ticket not in mine:
                        others[ticket] = outcome
                    elif isinstance(outcome, EngineFailure):
                        raise outcome
                    else:
                        completions[ticket] = outcome
        finally:
            for ticket in tickets:
                self.cancel(ticket)
            self._done |= others
        return [completions[ticket] for ticket in tickets]

    def _take_done(self) -> list[tuple[int, Outcome]]:
        """Empties `_done`, in the order of the tickets."""
        done, self._done = sorted(self._done.items()), {}
        return done
