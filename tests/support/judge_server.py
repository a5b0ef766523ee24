"""A server on loopback that speaks the chat-completions protocol and fails as it is told, and what counts requests."""

import asyncio
import json
import socket
import threading

import uvicorn
from helpers import SLOW
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from longstride.core import http


def said(text, **more):
    return {"choices": [{"message": {"role": "assistant", "content": text}}], **more}


def response(content=None, status=200, media="application/json", **headers):
    """Sends this; a text as it stands, anything else as JSON."""
    body = content if isinstance(content, str | bytes) else json.dumps(content)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: Response(body, status, headers, media)


def reply(text):
    return response(said(text))


class _CutOff(Response):
    async def __call__(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"999")]})
        await send({"type": "http.response.body", "body": b'{"choices"', "more_body": True})


class _Hang(Response):
    async def __call__(self, scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass


def cut_off(request):
    """Closes the connection in the middle of a response."""
    return _CutOff()


def hang(request):
    """Says nothing until the client goes away."""
    return _Hang()


def endless(chunk, pause=0.0):
    """Sends chunks until the client goes away."""

    async def chunks():
        while True:
            yield chunk
            await asyncio.sleep(pause)

    return lambda request: StreamingResponse(chunks(), media_type="application/json")


class Counted:
    """Sends requests as `http.post` does once it is `free`, and knows how many were under way at once, at `most`."""

    def __init__(self):
        self.now, self.most, self.free, self._post = 0, 0, threading.Event(), http.post

    async def __call__(self, *request):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            assert await asyncio.to_thread(self.free.wait, SLOW)
            return await self._post(*request)
        finally:
            self.now -= 1


class Crowd:
    """Requests that are answered when so many are under way."""

    def __init__(self, wanted=0):
        self.wanted, self.now, self.free = wanted, 0, threading.Event()

    async def join(self):
        self.now += 1
        if self.now >= self.wanted:
            self.free.set()
        assert self.free.is_set() or await asyncio.to_thread(self.free.wait, SLOW)


class Server:
    """Speaks the protocol; does what `script` says, request by request, and then `always`."""

    def __init__(self):
        self.reset()
        app = Starlette(routes=[Route("/v1/chat/completions", self._answer, methods=["POST"])])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=lambda: self._server.run(sockets=[self._listener]), daemon=True)
        self._thread.start()

    def reset(self):
        self.script, self.always, self.crowd = [], reply("fine"), Crowd()
        self.bodies, self.headers = [], []

    async def _answer(self, request: Request):
        self.bodies.append(await request.json())
        self.headers.append(request.headers)
        await self.crowd.join()
        return (self.script.pop(0) if self.script else self.always)(request)

    def stop(self):
        self._server.should_exit = True
        self._thread.join(5)
        self._listener.close()
