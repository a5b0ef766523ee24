"""A site of one function, and a task on it."""

from collections.abc import Callable

from longstride.core.task import Task


def answering(answer: Callable[[dict], tuple[int, str]]):
    """An application that answers each request with a status and a body of HTML."""

    async def app(scope, receive, send) -> None:
        status, body = answer(scope)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body.encode()})

    return app


def task(start: str = "/shop/1/") -> Task:
    """A task that begins at this path."""
    return Task(id="t", source="web/shop", goal="find the color of item 3", start=start)
