"""Several servers of one model as one engine.

What always holds: a request is answered once, from weights of the version that it says, whichever server answers; what
a server leaves unanswered (it is gone, silent, or has other weights) is asked again elsewhere with the same ids and the
same seed, so that a server that fails costs time alone; all servers have new weights before one samples from them, and
one that has not got them samples nothing. A server that was away, was started again or is new in `engine.servers` takes
part when it has the newest weights: at the next update, at once where its label says that it still has them, and, where
servers keep the weights that they have, when it passed the preflight again.

A request goes to the server where the least is to be done for it: tokens in flight there (prompts that have to be read,
and what may be sampled), and those of its own prompt that are not in the cache there. So the turns of an episode stay
where its context is cached, and episodes that begin alike go together, as long as others do not wait for work.

Everything here happens in the thread of whoever polls.
"""

import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from longstride.core.errors import ConfigError, EngineFailure, LongstrideWarning
from longstride.core.implementation import implements
from longstride.engines.base import Engine, Outcome, Refused, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import LOOK_SECONDS, POLL_SECONDS, HTTPEngine, Taken, by_the_first
from longstride.engines.weights import check_sleep
from longstride.models.load import Policy

PULSE = 5.0
"""Seconds between two looks at whether a server is there."""
MISSES = 2
"""Looks in a row at which a server that takes part was not there, before it is given up."""
TRIES = 5
"""Servers that may fail under a request before it is a failure itself: it may be what makes them fail."""
PUSHES = 64
"""Servers that take weights at the same time."""
OPENINGS = 4096
"""First prompts of which it is remembered where they were read."""


@dataclass(eq=False)
class _Server:
    """One of them."""

    address: str
    engine: HTTPEngine = field(init=False)
    ready: bool = False
    """Whether it has the newest weights, and answers."""
    trouble: str = "it has not been asked yet"
    """Why it is not ready."""
    load: int = 0
    """Tokens in flight."""
    open: dict[int, "_Asked"] = field(default_factory=dict)
    """By its own ticket what it has not answered."""
    due: float = 0.0
    """When it is looked at again."""
    look: "Future[str] | None" = None
    missed: int = 0


@dataclass(eq=False, slots=True)
class _Asked:
    """A request that is not answered."""

    ticket: int
    request: Request
    server: _Server | None = None
    inner: int = -1
    cost: int = 0
    tries: int = 0
    until: float = 0.0
    """When it fails, where no server is ready."""


class _Home(NamedTuple):
    """Where the context of a session is cached."""

    server: _Server
    tokens: int


class Servers(Engine):
    """A client of several servers (see the module's docstring).

    Args:
        config: names them.
        policy: the learner's.
        version: of its weights.
        samplings: all that requests will ask for.
        make: makes the client of the server at an address, which calls what it is given when something has come back.
        clock: seconds.
        patience: seconds that a poll waits.

    Raises:
        ConfigError: a server is no match for the policy or for the settings, or none answers.
    """

    def __init__(
        self,
        config: HTTP,
        policy: Policy,
        version: int,
        samplings: Sequence[Sampling],
        make: Callable[[str, Callable[[], None]], HTTPEngine] | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = POLL_SECONDS,
    ) -> None:
        super().__init__(version)
        self.adapters = config.weights is not None and config.weights.adapters
        self._config, self._samplings, self._clock, self._patience = config, samplings, clock, patience
        self._make = make or (
            lambda url, told: HTTPEngine(config.replace(url=url, servers=None), policy, version, told)
        )
        self._came: SimpleQueue[_Server] = SimpleQueue()
        """Servers that may have answered something."""
        self._tickets = count()
        self._asked: dict[int, _Asked] = {}
        self._waiting: dict[int, _Asked] = {}
        """Requests that no server was ready for."""
        self._homes: dict[int, _Home] = {}
        self._openings: OrderedDict[int, _Server] = OrderedDict()
        self._ready: list[_Server] = []
        self._look_at = 0.0
        self._asked_again = 0
        self._begun = False
        self._servers = {address: self._new(address) for address in config.addresses()}
        if config.weights is not None:
            self.update(policy.model, version)
        else:
            self._join_without_weights()
        self._begun = True

    def submit(self, request: Request) -> int:
        self.check(request)
        ticket = next(self._tickets)
        self._asked[ticket] = asked = _Asked(ticket, request)
        self._ask(asked)
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """Waits until something has come back, for a moment at most. A request fails where a server refused it, where
        several failed under it, or where none was ready for `timeout` seconds."""
        self._look_after()
        came: set[_Server] = set()
        with suppress(Empty):
            if self._asked and not self._done:
                came.add(self._came.get(timeout=self._patience))
            while True:
                came.add(self._came.get_nowait())
        for server in came:
            self._collect(server)
        return self._take_done()

    def cancel(self, ticket: int) -> None:
        self._done.pop(ticket, None)
        self._waiting.pop(ticket, None)
        asked = self._asked.pop(ticket, None)
        if asked is not None and asked.server is not None:
            asked.server.engine.cancel(asked.inner)
            self._left(asked)

    def release(self, session: int) -> None:
        home = self._homes.pop(session, None)
        if home is not None:
            home.server.engine.release(session)

    def update(self, weights: Any, version: int) -> None:
        """Gives all servers the weights of a module, as `HTTPEngine.update` does for one; reads the list of servers
        again, and takes in those that were away or are new. One that does not take them is left away. Where none is
        there it waits for one, `timeout` seconds at most.

        Raises:
            ConfigError: it is not said how, or (at the start of a run) a server is no match for the policy.
            EngineFailure: none took them.
            ModelError: they cannot be saved.
        """
        self._drain()
        for server in self._servers.values():
            server.look = None  # what it finds is of the weights before, or of a connection that is closed now
        addresses, took = by_the_first(lambda: self._give(weights, version))
        self._list(addresses)
        for server in self._servers.values():
            if server.address in took:
                server.engine.take(took[server.address], version)
                self._join(server)
            elif server.ready:
                trouble = server.trouble or f"the server at {server.address} did not take the new weights"
                self._lose(server, trouble)
        self.version = version
        self._ask_waiting()

    def rest(self) -> None:
        if self._config.weights is not None and self._config.weights.sleep:
            self._drain()
            for address, trouble in by_the_first(self._put_to_rest).items():
                if self._servers[address].ready:
                    self._lose(self._servers[address], trouble)

    def close(self) -> None:
        for server in self._servers.values():
            server.engine.close()

    def metrics(self) -> dict[str, float]:
        again, self._asked_again = self._asked_again, 0
        return {"servers": len(self._ready), "asked_again": again}

    @property
    def is_open(self) -> bool:
        """Whether a server has a request that it has not answered."""
        return any(server.open for server in self._servers.values())

    def keep(self, outcomes: Sequence[tuple[int, Outcome]]) -> None:
        """Takes back what `poll` returned: the next poll returns it again."""
        self._done |= dict(outcomes)

    def _drain(self) -> None:
        """Waits for all that servers have not answered."""
        kept: list[tuple[int, Outcome]] = []
        while self.is_open:
            kept += self.poll()  # which waits for nothing where something is kept already
        self.keep(kept)

    # requests

    def _ask(self, asked: _Asked) -> None:
        if not self._ready:
            asked.server, asked.until = None, self._clock() + self._config.timeout
            self._waiting[asked.ticket] = asked
            return
        request, session = asked.request, asked.request.session
        server, cached = self._choose(request)
        if session is not None:
            self._homes[session] = _Home(server, len(request.prompt))
        asked.server, asked.cost = server, len(request.prompt) - cached + request.max_new
        server.load += asked.cost
        asked.inner = server.engine.submit(request)
        server.open[asked.inner] = asked
        self.tokens_in += len(request.prompt)

    def _choose(self, request: Request) -> tuple[_Server, int]:
        """The server for a request, and how many tokens of its prompt are cached there."""
        least, size = min(self._ready, key=lambda server: server.load), len(request.prompt)
        home = self._homes.get(request.session) if request.session is not None else None
        if home is None:
            opening = hash(tuple(request.prompt))
            known = self._openings.get(opening)
            home = _Home(known, size) if known is not None else None
            if home is None or not self._stays(home, least):
                home = None
                self._openings[opening] = least
                if len(self._openings) > OPENINGS:
                    self._openings.popitem(last=False)
        if home is not None and self._stays(home, least):
            return home.server, min(home.tokens, size)
        return least, 0

    def _stays(self, home: _Home, least: _Server) -> bool:
        """Whether less is to be done where the context is cached."""
        return home.server.ready and home.server.load - home.tokens <= least.load

    def _left(self, asked: _Asked) -> None:
        """Its server has it no more."""
        assert asked.server is not None
        if asked.server.open.pop(asked.inner, None) is not None:
            asked.server.load -= asked.cost

    def _collect(self, server: _Server) -> None:
        failed: dict[int, EngineFailure] = {}
        for inner, outcome in server.engine.collect():
            asked = server.open.get(inner)
            if asked is None:
                continue
            if isinstance(outcome, EngineFailure) and not isinstance(outcome, Refused):
                failed[inner] = outcome
                continue
            self._left(asked)
            del self._asked[asked.ticket]
            self._done[asked.ticket] = outcome
            if not isinstance(outcome, EngineFailure):
                self.tokens_out += len(outcome.ids)
        if failed:
            self._lose(server, str(next(iter(failed.values()))), failed)

    def _ask_waiting(self) -> None:
        if self._ready:
            waiting, self._waiting = self._waiting, {}
            for asked in waiting.values():
                self._ask(asked)

    # servers

    def _new(self, address: str) -> _Server:
        server = _Server(address)
        self._connect(server)
        return server

    def _connect(self, server: _Server) -> None:
        server.engine = self._make(server.address, partial(self._came.put, server))

    def _list(self, addresses: Sequence[str]) -> None:
        """Has these servers and no other."""
        for address in self._servers.keys() - set(addresses):
            gone = self._servers[address]
            if gone.ready:
                self._lose(gone, f"the server at {address} is no longer in engine.servers")
            del self._servers[address]
            _close(gone.engine)
        for address in addresses:
            if address not in self._servers:
                self._servers[address] = self._new(address)

    def _join(self, server: _Server) -> None:
        if not server.ready:
            server.ready, server.trouble, server.missed = True, "", 0
            server.due = self._clock() + PULSE
            self._ready.append(server)
            if self._begun:
                self._say(f"the server at {server.address} takes part")

    def _lose(self, server: _Server, trouble: str, failed: Collection[int] | None = None) -> None:
        """Gives a server up for now: what it has not answered is asked again elsewhere. `failed` are the requests that
        it failed on; where they are known, no other one counts a try."""
        if not server.ready:
            return
        server.ready, server.trouble = False, trouble
        self._ready.remove(server)
        again, server.open, server.load = list(server.open.values()), {}, 0
        for asked in again:
            server.engine.cancel(asked.inner)
        self._asked_again += len(again)
        self._say(f"{trouble}; it is left out for now, and {len(again)} open turns are asked again elsewhere")
        for asked in again:
            asked.tries += failed is None or asked.inner in failed
            if asked.tries >= TRIES:
                del self._asked[asked.ticket]
                self._done[asked.ticket] = EngineFailure(f"{TRIES} servers failed under it, the last one so: {trouble}")
            else:
                self._ask(asked)

    def _say(self, what: str) -> None:
        have = f"{len(self._ready)} of {len(self._servers)} servers sample"
        warnings.warn(f"engine: {what}; {have}", LongstrideWarning, stacklevel=2)

    def _look_after(self) -> None:
        """Looks now and then at every server, takes those in that are back, and ends waiting that is too long."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + PULSE / 10
        for server in list(self._servers.values()):
            if server.look is None and now >= server.due:
                server.look, server.due = server.engine.look(), now + PULSE
            elif server.look is not None and server.look.done():
                look, server.look = server.look, None
                self._looked(server, look)
        self._ask_waiting()
        for asked in [asked for asked in self._waiting.values() if now >= asked.until]:
            del self._waiting[asked.ticket], self._asked[asked.ticket]
            self._done[asked.ticket] = EngineFailure(self._nobody())

    def _looked(self, server: _Server, look: "Future[str]") -> None:
        try:
            label, trouble = look.result(), ""
        except EngineFailure as e:
            label, trouble = server.engine.label, str(e)
        newest = label == server.engine.label and server.engine.version == self.version
        server.missed = server.missed + 1 if trouble else 0
        if server.ready and label != server.engine.label:
            self._lose(server, f"the server at {server.address} has weights {label!r}, not {server.engine.label!r}")
        elif server.ready and server.missed >= MISSES:
            self._lose(server, trouble)
        elif not server.ready and not trouble and label and newest:
            self._join(server)
        elif not server.ready and not trouble and self._config.weights is None:
            self._examine(server)

    def _nobody(self) -> str:
        first = next(iter(self._servers.values()))
        return f"none of {len(self._servers)} servers answers; the first: {first.address}: {first.trouble}"

    # weights: in the first process

    def _there(self) -> list[_Server]:
        """Those that are ready, and those of the others that answer now."""
        looks = {address: server.engine.look() for address, server in self._servers.items() if not server.ready}
        wait(looks.values(), LOOK_SECONDS + 1)
        answer = set[str]()
        for address, look in looks.items():
            try:
                look.result(timeout=0)
                answer.add(address)
            except (EngineFailure, TimeoutError) as e:
                self._servers[address].trouble = str(e) or "no answer"
        return [server for address, server in self._servers.items() if server.ready or address in answer]

    def _give(self, weights: Any, version: int) -> tuple[list[str], dict[str, Taken]]:
        """All servers that there are, and how those have the weights that took them."""
        try:
            self._list(self._config.addresses())
        except ConfigError as e:
            if not self._begun:
                raise
            self._say(f"{e}; the servers stay those that they were")
        there, until = self._there(), self._clock() + self._config.timeout
        while not there:  # as requests do
            if not self._begun or self._clock() >= until:
                raise EngineFailure(self._nobody())
            time.sleep(PULSE / 10)
            there = self._there()
        for server in there:
            if self._begun and not server.ready:
                # it may be another process: nothing of the old connection is left
                _close(server.engine)
                self._connect(server)
        there[0].engine.prepare(weights, version)
        settings = self._config.weights
        width = 1 if settings is None or settings.one_by_one else min(len(there), PUSHES)
        with ThreadPoolExecutor(width, "longstride-weights") as pool:
            came = list(pool.map(lambda server: self._gave(server, weights, version), there))
        took = {server.address: taken for server, taken in zip(there, came, strict=True) if taken is not None}
        if not took:
            raise EngineFailure(self._nobody())
        return list(self._servers), took

    def _gave(self, server: _Server, weights: Any, version: int) -> Taken | None:
        """How a server has the weights; None where it did not take them, or is no match."""
        engine = server.engine
        try:
            if not server.ready:
                engine.check_tokenizer()
            taken = engine.give(weights, version, prepared=True)
            if not server.ready:
                engine.take(taken, version)
                engine.examine(self._samplings, weights)
        except EngineFailure as e:
            server.trouble = str(e)
        except ConfigError as e:
            if not self._begun:
                raise
            server.trouble = str(e)
        else:
            return taken
        if server.ready:
            return None
        self._say(f"the server at {server.address} cannot take part: {server.trouble}")
        return None

    def _put_to_rest(self) -> dict[str, str]:
        """What kept servers from giving their memory back."""
        found = {}
        for server in self._ready:
            try:
                server.engine.give_memory_back()
            except EngineFailure as e:
                found[server.address] = str(e)
        return found

    def _join_without_weights(self) -> None:
        for server in self._there():
            server.engine.check_tokenizer()
            server.engine.examine(self._samplings)
            self._join(server)
        if not self._ready:
            raise ConfigError(f"engine: {self._nobody()}")

    def _examine(self, server: _Server) -> None:
        """Takes a server in that keeps its own weights, where it passes the preflight."""
        try:
            server.engine.check_tokenizer()
            server.engine.examine(self._samplings)
        except (EngineFailure, ConfigError) as e:
            server.trouble, server.due = str(e), self._clock() + 10 * PULSE
        else:
            self._join(server)


@implements(HTTP)
def connect(config: HTTP, policy: Policy, version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
    """An engine of one server or several, each of which has passed its preflight for each of `samplings`, after it took
    the policy's weights where it is said how. A server's weights are always its own, whatever `shared` says.

    Raises:
        ConfigError: a server is no match for the policy or for the settings.
        EngineFailure: the one server, or all of several, do not take the weights.
    """
    if config.weights is not None:
        check_sleep(config.weights.sleep, shared)
    if config.is_several:
        return Servers(config, policy, version, samplings)
    engine = HTTPEngine(config, policy, version)
    engine.check_tokenizer()
    if config.weights is not None:
        engine.update(policy.model, version)
    engine.examine(samplings)
    return engine


def _close(engine: HTTPEngine) -> None:
    """Ends a connection whose other side may be gone, and waits for nothing."""
    Thread(target=engine.close, name="longstride-closing", daemon=True).start()
