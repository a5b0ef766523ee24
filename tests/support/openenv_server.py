"""An OpenEnv server in the terms of its protocol: guess a number, with a clue each time; `how` names a misbehaviour."""

import asyncio
import json
import random
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

ACTION = {
    "additionalProperties": False,
    "properties": {"metadata": {"type": "object"}, "guess": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["guess"],
    "type": "object",
}


CALL = {
    "properties": {"type": {"const": "call_tool"}, "tool_name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["tool_name"],
    "type": "object",
}
TOOL = {
    "name": "guess",
    "description": "Guesses.",
    "input_schema": {**ACTION, "properties": {"guess": {"type": "integer"}}},
}
"""Actions of an environment of tools, and its tool."""
REWARDS = {"nan": float("nan"), "digits": 10**400, "large": 1.7e308, "text": "0.5", "list": [1]}
DONES = {"done text": "false", "done list": [], "done two": 2, "done none": None, "done number": 1}


def server(how: str = "", most: int = 2, elsewhere: str = "") -> Starlette:
    """An application with at most `most` sessions at once; `elsewhere` is where it redirects to."""
    live: set[WebSocket] = set()

    def observation(text: str, reward: float | None = None, done: bool = False, **more: Any) -> dict[str, Any]:
        return {"type": "observation", "data": {"observation": {"clue": text, **more}, "reward": reward, "done": done}}

    def error(code: str, message: str, **more: Any) -> dict[str, Any]:
        return {"type": "error", "data": {"message": message, "code": code, **more}}

    async def schema(request: Request) -> Response:
        if how == "no schema":
            return PlainTextResponse("not found", 404)
        if how == "large schema":
            return JSONResponse({"action": "x" * (5 << 20)})
        if how == "redirect":
            return RedirectResponse(f"{elsewhere}/schema")
        action = {**ACTION, "required": None} if how == "null" else CALL if how.startswith("tools") else ACTION
        return JSONResponse({"action": action, "observation": {}, "state": {}})

    async def answer(message: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        if message["type"] == "reset":
            assert message["data"].get("level", "low") == "low"
            state["wanted"] = random.Random(message["data"]["seed"]).randrange(10)
            return observation("a number", metadata={"note": 1})
        if how == "late":
            await asyncio.sleep(30)
        if how == "raise":
            return error("EXECUTION_ERROR", "division by zero")
        if how == "refuse":
            return error("VALIDATION_ERROR", "Invalid message", errors=[{"loc": ["guess"]}])
        if how == "large message":
            return observation("x" * (5 << 20))
        if how == "other":
            return {"type": "state", "data": {}}
        if how in REWARDS:
            return observation("x", REWARDS[how])
        if how in DONES:
            return observation("x", 0.5, DONES[how])
        if how == "escape":
            return observation("\x1b]0;owned\x07clue", 0.5, True, **{"half \ud800": ["\x9b31m"]})
        if how == "deep":
            return observation("x", deep=json.loads("[" * 900 + "]" * 900))
        if how == "many":
            return observation("x", many=[0] * 200_000)
        data = message["data"]
        if how.startswith("tools"):
            if data["type"] == "list_tools":
                return observation("", tools={"tools": [TOOL], "tools nameless": [{"name": "a b"}]}.get(how))
            assert set(data) == {"type", "tool_name", "arguments"} and data["type"] == "call_tool"
            if data["arguments"]["guess"] > 9:
                return observation(
                    "", result=None, error={"error_type": "execution_error", "message": "too\x1b[31m large"}
                )
            data = data["arguments"]
            right = data["guess"] == state["wanted"]
            parts = [{"type": "text", "text": "right" if right else "wrong"}]
            return observation("", float(right), right, result={"content": parts, "is_error": data["guess"] < 0})
        guess, wanted = data["guess"], state["wanted"]
        clue = "right" if guess == wanted else "higher" if guess < wanted else "lower"
        return observation(clue, 1 - abs(guess - wanted) / 10, guess == wanted, tries=1, success=guess == wanted)

    async def session(socket: WebSocket) -> None:
        if how == "redirect socket":
            headers = {"location": f"ws{elsewhere.removeprefix('http')}/ws"}
            await socket.send_denial_response(PlainTextResponse("elsewhere", 307, headers))
            return
        await socket.accept()
        if len(live) >= most:
            await socket.send_text(json.dumps(error("CAPACITY_REACHED", "no room")))
            await socket.close()
            return
        live.add(socket)
        state: dict[str, Any] = {}
        try:
            while (message := json.loads(await socket.receive_text()))["type"] != "close":
                if how == "gone" and message["type"] == "step":
                    break
                await socket.send_text(json.dumps(await answer(message, state)))
            while how == "flood":
                await socket.send_text("x" * 100_000)
            await asyncio.sleep(0.3)  # a real server ends a session some time after its connection
            await socket.close()
        except WebSocketDisconnect:
            pass
        finally:
            live.discard(socket)

    return Starlette(routes=[Route("/schema", schema), WebSocketRoute("/ws", session)])
