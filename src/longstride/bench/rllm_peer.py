"""rLLM's gateway, asked by clients that do nothing else: run by the Python of its own environment, imports nothing of
Longstride.

Reads JSON objects with `episodes` and `turns` from standard input, and answers each with one: `seconds`, `traces` (what
the gateway kept), `version`. Clients, gateway and the model behind it are in this process, as ours are; the model
answers at once, as a server of vLLM that is asked for ids. Traces are kept in memory, its fastest store.
"""

import asyncio
import json
import socket
import sys
import threading
import time
from importlib.metadata import version

import httpx  # pyright: ignore[reportMissingImports]
import uvicorn
from rllm_model_gateway import GatewayConfig, create_app  # pyright: ignore[reportMissingImports]

SAID = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "created": 0,
    "model": "policy",
    "prompt_token_ids": [1, 2, 3],
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "yes"},
            "finish_reason": "stop",
            "token_ids": [4],
            "logprobs": {"content": [{"token": "yes", "logprob": -0.1, "bytes": None, "top_logprobs": []}]},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


async def model(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(SAID).encode()})


def serve(app):
    """The address at which an application listens from now on."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_keep_alive=60))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


async def play(address, session, turns):
    messages = [{"role": "user", "content": "go"}]
    async with httpx.AsyncClient(base_url=f"{address}/sessions/{session}", timeout=600) as client:
        for _ in range(turns):
            came = await client.post("/v1/chat/completions", json={"model": "policy", "messages": messages})
            came.raise_for_status()
            said = came.json()["choices"][0]["message"]["content"]
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "go on"}]


def main():
    gateway = create_app(
        GatewayConfig(
            workers=[{"url": serve(model)}], store_worker="memory", sync_traces=True, health_check_interval=3600
        )
    )
    address = serve(gateway)
    for round_, line in enumerate(sys.stdin):
        asked = json.loads(line)
        sessions = [f"{round_}-{k}" for k in range(asked["episodes"])]
        plays = [threading.Thread(target=asyncio.run, args=[play(address, s, asked["turns"])]) for s in sessions]
        began = time.perf_counter()
        for each in plays:
            each.start()
        for each in plays:
            each.join()
        seconds = time.perf_counter() - began
        kept = [httpx.get(f"{address}/sessions/{s}/traces", timeout=600).json() for s in sessions]
        found = {"seconds": seconds, "traces": sum(map(len, kept)), "version": version("rllm-model-gateway")}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
