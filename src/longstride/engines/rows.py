"""Rows: requests under way in an engine of this process, which get one token a pass.

What always holds: a sampled token uses one uniform number made of the request's seed and the token's index, so no
request depends on its neighbours; none gets more tokens than it asked for, or than the context leaves it. How a pass is
computed is not known here (see `local`, `plain`).
"""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from torch import Tensor

from longstride.core.errors import LongstrideWarning
from longstride.engines.base import Completion, Engine, Refused, Request
from longstride.engines.sampling import draw

PASS_TOKENS = {"cpu": 1024, "cuda": 16384}
"""Prompt tokens of one pass: on a CPU what stays in its cache between two layers, on a GPU what fills it."""
LESS = "set engine.cache_gigabytes lower, or play fewer episodes at once"
"""What takes less memory than sampling does."""


@dataclass(slots=True, eq=False)
class RequestRow:
    """A request on its way."""

    ticket: int
    request: Request
    limit: int
    """Tokens it may sample: what it asked for, or what the context leaves."""
    ids: list[int]
    """Prompt and sampled tokens."""
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    @property
    def need(self) -> int:
        """Positions that it takes at most."""
        return len(self.request.prompt) + self.limit

    @property
    def sampled(self) -> list[int]:
        return self.ids[len(self.request.prompt) :]


class RowEngine(Engine):
    """Base of engines that compute in this process. With temperature 0 every log-probability is 0.

    Args:
        end_ids: ids that end a turn.
        max_context: tokens of prompt and answer together.
        version: number of the weights.
    """

    def __init__(self, end_ids: frozenset[int], max_context: int, version: int) -> None:
        super().__init__(version)
        self._end_ids, self._max_context = end_ids, max_context
        self._tickets = count()
        self._waiting: dict[int, RequestRow] = {}
        """By ticket, the first to be served first."""
        self._going: dict[int, Any] = {}
        """By ticket what is under way, as the engine keeps it."""
        self._has_refused = False

    @abstractmethod
    def _leave(self, ticket: int) -> None:
        """Takes a row that is under way out of `_going`, and gives back what it holds."""

    def submit(self, request: Request) -> int:
        self.check(request)
        ticket, limit = next(self._tickets), min(request.max_new, max(self._max_context - len(request.prompt), 0))
        row = RequestRow(ticket, request, limit, list(request.prompt))
        if limit:
            self._waiting[ticket] = row
        else:
            self._done[ticket] = self._completion(row)
        return ticket

    def cancel(self, ticket: int) -> None:
        self._done.pop(ticket, None)
        self._waiting.pop(ticket, None)
        if ticket in self._going:
            self._leave(ticket)

    def _refuse(self, row: RequestRow, error: Refused) -> None:
        """Fails a request for which there is never room. The first one is said aloud: it is long episodes that fail so,
        and a run would go on without them."""
        self._done[row.ticket] = error
        if not self._has_refused:
            warnings.warn(f"an episode failed, as others of its length will: {error}", LongstrideWarning, stacklevel=2)
        self._has_refused = True

    def _draw(self, rows: Sequence[RequestRow], logits_R_V: Tensor) -> None:
        """A token for each row; those that are complete leave.

        Raises:
            EngineFailure: logits are not finite, and no row has got a token.
        """
        tokens, logprobs = draw(logits_R_V, [row.request for row in rows], [len(row.logprobs) for row in rows])
        self.tokens_out += len(rows)
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.versions.append(self.version)
            if len(row.logprobs) == row.limit or self._stopped(row):
                self._leave(row.ticket)
                self._done[row.ticket] = self._completion(row)

    def _stopped(self, row: RequestRow) -> bool:
        return bool(row.logprobs) and (row.ids[-1] in self._end_ids or row.request.stopped(row.sampled))

    def _completion(self, row: RequestRow) -> Completion:
        cut = "length" if row.limit == row.request.max_new else "context"
        return Completion(row.sampled, row.logprobs, row.versions, "stop" if self._stopped(row) else cut)
