"""A server on loopback that speaks the completions form on top of the local engine and fails as it is told."""

import random
import socket
import threading
from typing import Any

import torch
import uvicorn
from judge_server import Crowd, response
from starlette.applications import Starlette
from starlette.requests import Request as Message
from starlette.responses import JSONResponse
from starlette.routing import Route

from longstride.engines import preflight
from longstride.engines.base import Request, Sampling
from longstride.engines.local import LocalEngine
from longstride.models.load import Policy, load_policy, make_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer

LOADING = threading.Lock()
"""Servers of one process load one after the other: transformers shares state among threads while it loads."""
SMALL = TinyConfig(width=32, layers=2, heads=4, kv_heads=2, ffn=32, context=128)


def tiny(seed: int) -> Policy:
    """A policy of so many words that a server can be asked for them."""
    tokenizer = build_tokenizer(["amber lantern red want color back click Count to 1 2 3 4 5 6 7 0 ."])
    return make_policy("tiny", build_model(SMALL, len(tokenizer), seed), tokenizer)


def call_of(message: Message) -> str:
    """Path and query of a request."""
    return f"{message.url.path}{'?' if message.url.query else ''}{message.url.query}"


class Server:
    """Answers as vLLM does; does what `script` says first, request by request, and then `always` if there is one."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.engine = policy, LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
        self._server = uvicorn.Server(uvicorn.Config(Starlette(routes=self.routes()), log_level="critical"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.root = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=lambda: self._server.run(sockets=[self._listener]), daemon=True)
        self.reset()
        self._thread.start()

    def routes(self) -> list[Route]:
        steps = [Route(f"/{name}", self.step, methods=["POST"]) for name in ("pause", "resume", "reset_prefix_cache")]
        reload = Route("/collective_rpc", self.reload, methods=["POST"])
        tokenize = Route("/tokenize", self.odd_ids, methods=["POST"])
        return [Route("/v1/completions", self.answer, methods=["POST"]), reload, tokenize, *steps]

    def reset(self) -> None:
        self.calls: list[str] = []
        """Of the interface outside of `/v1`, in their order."""
        self.paused = False
        self.engine.update(self.policy.model, 0)
        self.script, self.always, self.reading, self.change, self.crowd = [], None, lambda asked: asked, {}, Crowd()
        self.noise, self.random, self.context = 0.0, random.Random(0), self.policy.max_context
        self.clients: set[Any] = set()
        self.bodies, self.headers, self.loaded, self.under_way = [], [], [], 0

    async def answer(self, message: Message) -> Any:
        body = await message.json()
        self.bodies.append(body)
        self.headers.append(message.headers)
        self.clients.add(message.client)
        self.under_way += 1
        await self.crowd.join()
        self.under_way -= 1
        odd = self.script.pop(0) if self.script else self.always
        if len(body.get("prompt", [])) >= self.context:
            odd = response(f"maximum context length is {self.context}", 400)
        if self.paused:
            odd = response("generation is paused", 503)
        return odd(message) if odd else JSONResponse(self.completion(body))

    async def step(self, message: Message) -> Any:
        self.calls.append(call_of(message))
        if self.always:
            return self.always(message)
        if message.url.path != "/reset_prefix_cache":
            self.paused = message.url.path == "/pause"
        return JSONResponse({"success": True})

    async def odd_ids(self, message: Message) -> Any:
        return self.always(message) if self.always else JSONResponse({}, 404)

    async def reload(self, message: Message) -> Any:
        self.calls.append(call_of(message))
        body = await message.json()
        self.loaded.append(body)
        with LOADING:
            self.engine.update(load_policy(body["kwargs"]["weights_path"]).model, 0)
        return JSONResponse({"results": [None]})

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = Sampling(temperature=body["temperature"], top_p=body["top_p"])
        stop = tuple((i,) for i in body.get("stop_token_ids", []))
        request = Request(body["prompt"], body["max_tokens"], body["seed"], sampling=asked, stop=stop)
        (done,) = self.engine.generate([request])
        logprobs, given = done.logprobs, self.reading(asked)
        if given != asked:
            logits = preflight._logits(self.policy, request, done)
            logprobs = preflight.logprobs_under(logits, torch.tensor(done.ids), given).tolist()
        if self.noise:
            logprobs = [min(p + self.random.gauss(0, self.noise), 0.0) for p in logprobs]
        choice = {
            "index": 0,
            "token_ids": done.ids,
            "prompt_token_ids": request.prompt,
            "logprobs": {"token_logprobs": logprobs, "tokens": ["not read"] * len(done.ids)},
            "finish_reason": "stop" if done.finish == "stop" else "length",
        }
        return {"object": "text_completion", "choices": [choice | self.change]}

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._listener.close()


def batch(policy: Policy, n: int = 12, max_new: int = 20, **sampling: float) -> list[Request]:
    prompts = [policy.chat.head("amber lantern") + policy.chat.observation("red " * k, first=True) for k in range(n)]
    return [Request(p, max_new, 100 + k, k, Sampling(**sampling)) for k, p in enumerate(prompts)]
