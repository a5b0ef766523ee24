"""Embedded sites: real server-rendered web applications, each made from a seed."""

import functools
from typing import Any

from longstride.envs.sites.world import HELD_OUT, KINDS, World, make_world

__all__ = ["HELD_OUT", "KINDS", "World", "application", "make_world"]


@functools.cache
def application() -> Any:
    """The process's own instance of the application (an ASGI callable)."""
    from longstride.envs.sites.app import build_application  # noqa: PLC0415 (Starlette and Jinja2 only where pages are made)

    return build_application()
