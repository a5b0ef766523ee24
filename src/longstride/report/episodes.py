"""Evaluation episodes for the viewer: what is shown of them, and which of them.

What always holds: at most `MOST_TASKS` tasks and `MOST_CHARACTERS` of JSON; a page is kept once however often it was
seen; the choice takes turns over outcomes and difficulties and draws nothing at random: one run gives one report.
"""

import itertools
import json
import re
from pathlib import Path
from typing import Any

from longstride.core.content import described
from longstride.core.errors import RunError
from longstride.core.sealed import unseal_lines
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.sites.actions import NEEDS_ELEMENT
from longstride.envs.text import MARK, thought_of
from longstride.report.rows import content, embed, left_out
from longstride.rollout.media import MEDIA, MediaFolder

MOST_TASKS = 24
MOST_CHARACTERS = 1_800_000
PAGE_CHARACTERS, PAGE_LINES = 4000, 160
SIDES = ("before", "after")
_ELEMENT = re.compile(r"(\w+) \[(\d{1,6})\]")
View = dict[str, Any]


def read_episodes(run: Path) -> tuple[View, list[str]]:
    """The chosen tasks of `episodes/before.jsonl` and `episodes/after.jsonl`: `{"pages", "tasks", "of"}`, and notes."""
    notes, media = [], MediaFolder(run / MEDIA)
    found: dict[tuple[str, int], View] = {}
    for side in SIDES:
        bad = []
        for k, line in enumerate(unseal_lines(content(run / "episodes" / f"{side}.jsonl")), 1):
            try:
                t = Trajectory.from_json((line or b"").decode("ascii"), media.find)
                view, task = _view(t)
            except (RunError, TypeError, ValueError, RecursionError, AttributeError):
                bad.append(k)
                continue
            found.setdefault((t.task.id, t.group), task).setdefault(side, view)  # one task may be drawn twice
        if bad:
            notes.append(left_out(f"episodes/{side}.jsonl", bad))
    if not found:
        notes.append("There are no evaluation episodes to look at yet.")
    for task in found.values():
        task["outcome"] = _outcome(task)
    return _pack(_choose(list(found.values())), len(found)), notes


def _choose(tasks: list[View]) -> list[View]:
    """Takes turns over (outcome, difficulty), then restores the order of the file."""
    buckets: dict[tuple[str, str], list[View]] = {}
    for task in tasks:
        buckets.setdefault((task["outcome"], task["difficulty"]), []).append(task)
    rounds = itertools.chain.from_iterable(itertools.zip_longest(*buckets.values()))
    kept = {id(task) for task in itertools.islice((t for t in rounds if t), MOST_TASKS)}
    return [task for task in tasks if id(task) in kept]


def _pack(tasks: list[View], of: int) -> View:
    """Moves page texts into one list and stops before the whole grows too large."""
    pages: dict[str, int] = {}
    packed, room = [], MOST_CHARACTERS
    for task in tasks:
        new: dict[str, int] = {}
        for turn in itertools.chain.from_iterable(task[s]["turns"] for s in SIDES if s in task):
            page = turn["page"]
            turn["page"] = pages.get(page, new.get(page, len(pages) + len(new)))
            if page not in pages:
                new.setdefault(page, turn["page"])
        room -= len(embed([task, list(new)]))
        if room < 0:
            break
        pages |= new
        packed.append(task)
    return {"pages": list(pages), "tasks": packed, "of": of}


def _outcome(task: View) -> str:
    """What became of a task, by the episodes that did not fail for reasons of infrastructure."""
    played = [task[side]["success"] for side in SIDES if side in task and not task[side]["failed"]]
    if len(played) == len(SIDES) and played[0] != played[1]:
        return "gained" if played[1] else "lost"
    return "solved" if any(played) else "unsolved"


def _view(t: Trajectory) -> tuple[View, View]:
    """What is shown of an episode, and of its task."""
    expected, given, more = _evidence(t)
    episode = {
        "success": t.success,
        "failed": t.stop.failed,
        "stop": t.stop.value.replace("_", " "),
        "reward": float(t.reward),
        "horizon": t.budget.turns,
        "expected": expected,
        "given": given,
        "evidence": more,
        "turns": [_turn(turn) for turn in t.turns],
    }
    task = {
        "id": t.task.id[:200],
        "goal": t.task.goal[:2000],
        "source": t.task.source[:100],
        "difficulty": t.task.difficulty,
        "optimal": t.task.optimal,
    }
    return episode, task


def _turn(turn: Turn) -> View:
    action = turn.text.rpartition(MARK)[2]
    found = _ELEMENT.match(turn.action or "")
    seen = described(turn.observation)
    page = "\n".join(seen.splitlines()[:PAGE_LINES])[:PAGE_CHARACTERS]
    return {
        "page": page,
        "cut": len(page) < len(seen.rstrip("\n")),
        "thought": thought_of(turn.text)[:2000],
        "said": " ".join(action.split())[:500],
        "parsed": turn.action is not None,
        "error": (turn.error or "")[:500],
        "element": int(found[2]) if found and found[1] in NEEDS_ELEMENT else None,
        "url": turn.url[:300],
    }


def _evidence(t: Trajectory) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Expected and given as words (of all parts where the evaluator has parts), and what else the evaluator saw."""
    evidence = dict(t.evidence)
    parts = evidence.get("parts")
    if isinstance(parts, list) and parts and all(isinstance(p, dict) for p in parts):
        del evidence["parts"]
        evidence |= {key: [part.get(key) for part in parts] for key in ("expected", "got")}
        evidence |= {f"part {i}": p["note"] for i, p in enumerate(parts, 1) if "note" in p}
    expected, given = evidence.pop("expected", None), evidence.pop("got", None)
    given = t.answer if given is None else given
    more = [(str(k)[:80], _words(v)) for k, v in itertools.islice(evidence.items(), 12)]
    return None if expected is None else _words(expected), None if given is None else _words(given), more


def _words(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:1000]
