"""An application on loopback, in a thread of this process."""

import socket
import threading
from types import TracebackType
from typing import Any, Self

import uvicorn


class Served:
    """Serves an application while it is open; its address is what `with` gives."""

    def __init__(self, app: Any) -> None:
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=lambda: self._server.run(sockets=[self._listener]), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._listener.close()
