"""An ASGI application on the loopback interface, for browsers that are not ours.

What always holds: nothing but 127.0.0.1 is bound; the server has a thread of its own and ends with its context.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from longstride.core.errors import EnvFailure
from longstride.envs.sites.browser import Application

STARTING = 10.0
"""Seconds that the server has for starting."""


@contextmanager
def loopback(app: Application) -> Iterator[str]:
    """Serves `app` on a free port; gives its origin, such as `http://127.0.0.1:40001`.

    Raises:
        EnvFailure: it did not start in time.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],), name="loopback", daemon=True)
        thread.start()
        end = time.monotonic() + STARTING
        while not server.started:  # run() says so by nothing else
            if time.monotonic() > end or not thread.is_alive():
                raise EnvFailure(f"a server on the loopback interface did not start within {STARTING:g} s")
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(STARTING)
