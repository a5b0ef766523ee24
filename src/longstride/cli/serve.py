"""`longstride serve sites`: the embedded sites for a real browser, on loopback unless set otherwise."""

import argparse
import socket
from typing import Any

from longstride.core.errors import ConfigError


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("serve", help="serve the embedded sites", description=__doc__, allow_abbrev=False)
    parser.add_argument("what", choices=("sites",), help="what is served")
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="0 takes a free one (default: %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C.

    Raises:
        ConfigError: the address cannot be bound.
    """
    import uvicorn

    from longstride.envs.sites import KINDS, application

    try:
        listener = socket.create_server((args.host, args.port))
    except (OSError, OverflowError) as e:
        raise ConfigError(
            f"cannot listen on {args.host}:{args.port} ({e}); choose another --port, or 0 for a free one"
        ) from e
    with listener:
        host, port = listener.getsockname()[:2]
        for kind in KINDS:
            print(f"http://{host}:{port}/{kind}/1/")
        print("The number is the site's seed. Ctrl-C stops.", flush=True)
        uvicorn.Server(uvicorn.Config(application(), log_level="warning")).run(sockets=[listener])
    return 0
