"""An evaluation as a log of inspect_ai, which its viewer and its data frames open; and what of such a log can be
compared.

What always holds: inspect's own library writes and reads the file; a sample is an attempt at a task, `success` and
`reward` are its scores; an episode that failed for reasons of infrastructure is a sample with an error, and has no
score.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from longstride import __version__
from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, RunError, require
from longstride.core.files import make_folder
from longstride.core.sealed import dumps
from longstride.core.trajectory import Trajectory
from longstride.report.protocol import Protocol, fingerprint, names_of
from longstride.rollout.formats.fields import EXTRA, parse
from longstride.rollout.formats.rows import messages_row
from longstride.run.evaluation import Result

LIMITS = {
    StopReason.TURNS: "turn", StopReason.TOKENS: "token", StopReason.SECONDS: "time", StopReason.CONTEXT: "context",
    StopReason.TOOL_CALLS: "custom",
}  # fmt: skip
"""The limits that end an episode, in inspect's words."""


def write_inspect_log(result: Result, path: Path, name: str, model: str, protocol: Protocol) -> None:
    """Writes the log of an evaluation.

    Args:
        result: what came of it.
        path: a file that ends in `.eval`.
        name: of the recipe.
        model: that was evaluated.
        protocol: see `report.protocol`.

    Raises:
        ConfigError: the name of the file, or it exists.
        MissingExtra: inspect_ai is not installed.
    """
    check_target(path)
    log = require("inspect_ai.log", "inspect")
    now, key = datetime.now(UTC).isoformat(), fingerprint(dumps(protocol), model)
    trajectories = result.trajectories
    ids = names_of(t.task.id for t in trajectories[: result.tasks])
    samples = [_sample(log, t, ids[k % result.tasks], k // result.tasks + 1, model) for k, t in enumerate(trajectories)]
    attempts = len(trajectories) // max(1, result.tasks)
    spec = log.EvalSpec(
        created=now,
        eval_id=fingerprint(key, now),
        run_id=fingerprint(key, now, "run"),
        task_id=key,
        task=f"{EXTRA}/{name}",
        dataset=log.EvalDataset(name=str(protocol.get("environment.type", name)), samples=len(ids), sample_ids=ids),
        model=model,
        config=log.EvalConfig(epochs=attempts),
        packages={EXTRA: __version__},
        metadata={EXTRA: {"protocol": protocol}},
    )
    counted = [t for t in trajectories if not t.stop.failed]
    values = {"success": result.summary["success"], "reward": result.summary["reward"]}
    scores = [
        log.EvalScore(name=score, scorer=score, metrics={"mean": log.EvalMetric(name="mean", value=value)})
        for score, value in values.items()
    ]
    done = log.EvalLog(
        status="success",
        eval=spec,
        results=log.EvalResults(total_samples=len(samples), completed_samples=len(counted), scores=scores),
        stats=log.EvalStats(started_at=now, completed_at=now),
        samples=samples,
    )
    make_folder(path.absolute().parent)
    log.write_eval_log(done, str(path))


def check_target(path: Path) -> None:
    """Refuses a file that cannot be written, before there is anything to write.

    Raises:
        ConfigError: its name has another end, or it exists.
        MissingExtra: inspect_ai is not installed.
    """
    if path.suffix != ".eval" or path.exists():
        what = "exists" if path.exists() else "has no name that inspect knows"
        raise ConfigError(f"--inspect: {path} {what}; choose a new file that ends in .eval")
    require("inspect_ai.log", "inspect")


def _sample(log: Any, t: Trajectory, name: str, attempt: int, model: str) -> Any:
    said, scorer = require("inspect_ai.model", "inspect"), require("inspect_ai.scorer", "inspect")
    row = messages_row(t)
    read, sampled = sum(turn.prompt_tokens for turn in t.turns), t.sampled_tokens
    usage = said.ModelUsage(input_tokens=read, output_tokens=sampled, total_tokens=read + sampled)
    sample = log.EvalSample(
        id=name,
        epoch=attempt,
        input=t.task.goal,
        target=str(t.evidence.get("expected", t.task.evaluator.get("reference", ""))),
        messages=[_message(said, message) for message in row["messages"]],
        output=said.ModelOutput.from_content(model, t.turns[-1].text if t.turns else ""),
        metadata={"stop": t.stop.value, "turns": t.length, "task": t.task.model_dump(mode="json"), EXTRA: dumps(row)},
        model_usage={model: usage},
        total_time=t.seconds,
    )
    if t.stop.failed:
        why = str(t.evidence.get("failure", t.stop.value))
        sample.error = log.EvalError(message=why, traceback="", traceback_ansi="")
        return sample
    why = dumps(t.evidence)
    sample.scores = {
        "success": scorer.Score(value=float(t.success), answer=t.answer, explanation=why),
        "reward": scorer.Score(value=t.reward, answer=t.answer),
    }
    if t.stop in LIMITS:
        limit = getattr(t.budget, t.stop.value, None) or 0
        sample.limit = log.EvalSampleLimit(type=LIMITS[t.stop], limit=limit, reason=t.stop.value)
    return sample


def _message(said: Any, message: Mapping[str, Any]) -> Any:
    content = message["content"]
    if isinstance(content, list):
        content = [_part(said, part) for part in content]
    if message["role"] == "user":
        return said.ChatMessageUser(content=content)
    if message["role"] == "tool":
        return said.ChatMessageTool(content=content, tool_call_id=message["tool_call_id"])
    if "reasoning_content" in message:
        content = [said.ContentReasoning(reasoning=message["reasoning_content"]), said.ContentText(text=content)]
    call = require("inspect_ai.tool", "inspect").ToolCall
    calls = [
        call(id=c["id"], function=c["function"]["name"], arguments=parse(c["function"]["arguments"]))
        for c in message.get("tool_calls", ())
    ]
    return said.ChatMessageAssistant(content=content, tool_calls=calls or None)


def _part(said: Any, part: Mapping[str, Any]) -> Any:
    if part["type"] == "text":
        return said.ContentText(text=part["text"])
    if part["type"] == "image_url":
        return said.ContentImage(image=part["image_url"]["url"])
    return said.ContentData(data=dict(part["file"]))


def read_inspect_log(path: Path) -> tuple[Protocol, dict[str, list[float]]]:
    """The protocol of a log, ours or anybody's, and by the id of each task its scores of success.

    Raises:
        RunError: it cannot be read, or its evaluation did not end.
        MissingExtra: inspect_ai is not installed.
    """
    log = require("inspect_ai.log", "inspect")
    try:
        found = log.read_eval_log(str(path))
    except (OSError, ValueError, KeyError, ValidationError, EOFError, NotImplementedError) as e:
        raise RunError(f"{path} is no log that inspect_ai reads: {' '.join(str(e).split())[:200]}") from e
    if found.status != "success" or not found.samples:
        raise RunError(f"{path}: its evaluation has the status {found.status}; expected one that ended, with samples")
    scores: dict[str, list[float]] = {}
    for sample in found.samples:
        values = scores.setdefault(str(sample.id), [])
        if sample.scores and not sample.error:
            first = sample.scores.get("success") or next(iter(sample.scores.values()))
            values.append(_number(first.value, path))
    own = (found.eval.metadata or {}).get(EXTRA)
    protocol = own.get("protocol") if isinstance(own, dict) else None
    return (protocol if isinstance(protocol, dict) else _protocol(found)), scores


def _number(value: Any, path: Path) -> float:
    known = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str) and value in known:
        return known[value]
    raise RunError(f"{path}: expected scores that are numbers, or C and I, got {value!r:.60}")


def _protocol(found: Any) -> Protocol:
    """What a log of others says of its protocol."""
    spec, samples = found.eval, _once(found.samples)
    config = spec.config.model_dump(exclude_none=True)
    said = {
        **found.plan.config.model_dump(exclude_none=True),
        **spec.model_generate_config.model_dump(exclude_none=True),
    }
    steps = [step.model_dump(mode="json", include={"solver", "params"}) for step in found.plan.steps]
    limits = ("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit")
    return {
        "tasks": f"{len(samples)}, {fingerprint(*sorted(dumps([str(s.id), _text(s.input)]) for s in samples))}",
        "order": fingerprint(*(str(s.id) for s in samples)),
        "evaluators": fingerprint(*sorted(dumps([str(s.id), s.target]) for s in samples)),
        "environment.task": [spec.task, spec.task_version, spec.task_args],
        "attempts": spec.config.epochs or 1,
        "strategy.steps": steps,
        "judge.scorers": [s.model_dump(mode="json", include={"name", "options"}) for s in spec.scorers or ()],
        **{f"limits.{name}": config.get(name) for name in limits},
        **{f"sampling.{name}": value for name, value in said.items()},
    }


def _once(samples: Sequence[Any]) -> list[Any]:
    """The first attempt at each task."""
    return list({str(s.id): s for s in reversed(samples)}.values())[::-1]


def _text(asked: Any) -> Any:
    return asked if isinstance(asked, str) else [[m.role, m.text] for m in asked]
