"""What a replica does with what its engine says, without Ray."""

from concurrent.futures import Future
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from longstride.cluster.engine import Replica
from longstride.core.errors import EngineFailure
from longstride.engines.base import Refused


def test_a_request_that_is_refused_ends_no_replica_and_an_engine_that_fails_does() -> None:
    replica: Any = object.__new__(Replica)
    said = [[(0, Refused("it is too long"))], [(1, EngineFailure("the engine is dead"))]]
    refused, open_still = Future[Any](), Future[Any]()
    replica._engine, replica._todo = SimpleNamespace(poll=lambda: said.pop(0)), SimpleQueue()
    replica._going = {0: refused, 1: open_still}
    with pytest.raises(EngineFailure, match="the engine is dead"):
        replica._serve()
    assert str(refused.result(0)) == "it is too long" and not open_still.done()
