"""ATIF, the agent trajectory interchange format of Harbor (RFC 0001), version 1.7; 1.8 adds what is not needed here.

What always holds: a document that is written passes the format's own models (the package `atif`); ids, counts and
log-probabilities of tokens stand in `metrics`, a turn that was taken over is `is_copied_context`, and an action in
words is a call besides, marked, which is not read. Files of others are read as far as their steps go: agents of agents
are not.
"""

import json
from collections.abc import Callable
from typing import Any

from longstride import __version__
from longstride.core.content import Media
from longstride.core.errors import RunError, short
from longstride.core.trajectory import Trajectory, Turn, Usage
from longstride.rollout.formats.conversation import foreign, messages_of, restored, unseen
from longstride.rollout.formats.fields import EXTRA, Data, data_of, tools_of, trajectory_of

VERSION = "ATIF-v1.7"
KINDS = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp",
}  # fmt: skip
"""Media types of images that it has, and how their files end."""
SOURCES = ("system", "user", "agent")
"""Who a step is of."""
_WORDS = {EXTRA: "words"}
"""What marks a call that only repeats the words of a turn."""


def document(t: Trajectory, session: str, model: str, keep: Callable[[Media, str], str]) -> Data:
    """The document of an episode.

    Args:
        t: the episode.
        session: of the run that it is from.
        model: that acted.
        keep: writes an image, whose file ends so; returns its path beside the document.

    Raises:
        RunError: there are media that the format has not.
    """

    def part(media: Media) -> Data:
        if media.kind not in KINDS:
            raise RunError(f"episode {t.ordinal} has {media.kind}, which ATIF has not; take messages")
        return {"type": "image", "source": {"media_type": media.kind, "path": keep(media, KINDS[media.kind])}}

    data = data_of(t)
    tools = {"tool_definitions": data.pop("tools")} if t.tools else {}
    first, *rest = messages_of(t, data, part)
    if beyond := list(unseen(t)):
        data["media"] = [part(media) for media in beyond]
    turns, steps = data.pop("turns"), [{"step_id": 1, "source": "user", "message": first["content"]}]
    for message in rest:
        if message["role"] == "assistant":
            k = len(steps) - 1
            steps.append({"step_id": k + 2, **_step(message, t.turns[k], turns[k], k)})
            if k < t.history:
                steps[-1]["is_copied_context"] = True
        else:
            calls = steps[-1].get("tool_calls")
            of_call = {"source_call_id": calls[0]["tool_call_id"]} if calls else {}
            steps[-1]["observation"] = {"results": [{**of_call, "content": message["content"]}]}
    return {
        "schema_version": VERSION,
        "session_id": session,
        "trajectory_id": f"{session}/{t.ordinal}",
        "agent": {"name": EXTRA, "version": __version__, "model_name": model, **tools},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(turn.prompt_tokens for turn in t.turns),
            "total_completion_tokens": t.sampled_tokens,
            "total_steps": len(steps),
        },
        "extra": {EXTRA: data},
    }


def _step(message: Data, turn: Turn, own: Data, k: int) -> Data:
    step: Data = {"source": "agent", "message": message["content"]}
    if "reasoning_content" in message:
        step["reasoning_content"] = message["reasoning_content"]
    for call in message.get("tool_calls", ()):
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        step["tool_calls"] = [{"tool_call_id": call["id"], "function_name": name, "arguments": arguments}]
    if turn.action and "tool_calls" not in step:
        verb, _, words = turn.action.partition(" ")
        call = {"tool_call_id": f"call_{k}", "function_name": verb, "arguments": {"words": words}}
        step["tool_calls"] = [{**call, "extra": _WORDS}]
    ids, logprobs, versions, prompt = (
        own.pop(name) for name in ("sampled_ids", "behaviour_logprobs", "versions", "prompt_ids")
    )
    metrics: Data = {}
    if prompt or ids:
        metrics = {"prompt_token_ids": prompt, "completion_token_ids": ids, "logprobs": logprobs}
        metrics["extra"] = {"versions": versions}
    if prompt or ids or turn.usage:
        metrics |= {"prompt_tokens": turn.prompt_tokens, "completion_tokens": turn.sampled_tokens}
    if usage := own.pop("usage", None):
        metrics |= {"cached_tokens": usage.cached, "cost_usd": usage.cost}
        metrics["extra"] = metrics.get("extra", {}) | {"requests": usage.requests, "beside": usage.beside}
    return step | ({"metrics": metrics} if metrics else {}) | ({"extra": {EXTRA: own}} if own else {})


def episode(found: Data, name: str, ordinal: int, media: Callable[[Data], Media]) -> Trajectory:
    """The episode of a document, ours or anybody's.

    Args:
        found: the document.
        name: of the task of a document of others.
        ordinal: its number.
        media: reads a part that is no text.

    Raises:
        RunError: it is none; the message is the end of a sentence.
    """
    steps, data, agent = found.get("steps"), _extra(found), found.get("agent")
    tools = tools_of(agent.get("tool_definitions") if isinstance(agent, dict) else None)
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise RunError("steps: expected a list of objects")
    if strange := next((step.get("source") for step in steps if step.get("source") not in SOURCES), None):
        raise RunError(f"source: expected {', '.join(SOURCES)}, got {short(strange)}")
    acted = [step for step in steps if step.get("source") == "agent"]
    turns = [_turn(step, k) for k, step in enumerate(acted, 1)]
    messages = [message for step in steps for message in _messages(step)]
    if data is None:
        data = foreign(messages, name, ordinal, media)
        data["turns"] = [{**told, **turn} for told, turn in zip(data["turns"], turns, strict=True)]
        copied = [bool(step.get("is_copied_context")) for step in acted]
        return trajectory_of({**data, "history": (*copied, False).index(False), "tools": tools}, [])
    parts = data.pop("media", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RunError("media: expected a list of parts")
    data |= {"turns": turns, "tools": tools}
    return trajectory_of(restored(messages, data, media), [media(part) for part in parts])


def _extra(found: Data) -> Data | None:
    extra = found.get("extra")
    own = extra.get(EXTRA) if isinstance(extra, dict) else None
    if own is not None and not isinstance(own, dict):
        raise RunError(f"extra.{EXTRA}: expected an object, got {short(own)}")
    return None if own is None else dict(own)


def _messages(step: Data) -> list[Data]:
    """A step as messages."""
    if step.get("source") != "agent":
        return [{"role": step.get("source"), "content": step.get("message")}, *_seen(step)]
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise RunError("tool_calls: expected a list of objects")
    called = [
        {"function": {"name": call.get("function_name"), "arguments": call.get("arguments")}}
        for call in calls
        if call.get("extra") != _WORDS
    ]
    said = {"role": "assistant", "content": step.get("message"), "reasoning_content": step.get("reasoning_content")}
    return [{**said, "tool_calls": called}, *_seen(step)]


def _seen(step: Data) -> list[Data]:
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else []
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise RunError("observation: expected an object with a list of results")
    return [{"role": "tool", "content": result.get("content")} for result in results]


def _turn(step: Data, k: int) -> Data:
    metrics: Any = step.get("metrics") or {}
    extra = metrics.get("extra") or {} if isinstance(metrics, dict) else None
    if not isinstance(extra, dict):
        raise RunError(f"metrics of agent step {k}: expected an object, got {short(metrics)}")
    ids, logprobs = metrics.get("completion_token_ids"), metrics.get("logprobs")
    if logprobs is None:  # ids without them can be imitated, and not replayed
        ids = []
    if not isinstance(ids or [], list):
        raise RunError(f"completion_token_ids of agent step {k}: expected a list, got {short(ids)}")
    turn = {
        "prompt_ids": metrics.get("prompt_token_ids") or [],
        "sampled_ids": ids or [],
        "behaviour_logprobs": logprobs or [],
        "versions": extra.get("versions") or [0] * len(ids or []),
        **(_extra(step) or {}),
    }
    if "requests" in extra:
        read, cached, sampled = (
            metrics.get(name, 0) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")
        )
        cost = metrics.get("cost_usd", 0.0)
        turn["usage"] = Usage(extra["requests"], read, cached, sampled, extra.get("beside", 0), cost)
    return turn
