"""Trajectories: what was seen, sampled and earned, in token ids.

What always holds: `sampled_ids`, `behaviour_logprobs` and `versions` of a turn have one entry for each token that the
trained policy sampled, and nothing else ever enters them; `prompt_ids` is exactly what was read; a trajectory on disk
is one JSON line from which an equal object is read back (prompts are kept as what they share with the turn before, and
the rest).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import RunError
from longstride.core.task import Task

Finish = Literal["stop", "length", "context", "mark"]
"""Why generation ended: an end token, a limit of tokens, the end of the model's context, a mark that was asked for."""
LOGPROB_DIGITS = 6
"""Decimals of log-probabilities, on disk and so in memory too."""
INFEASIBLE = "n/a"
"""The answer that says that a task cannot be done."""


@dataclass(slots=True)
class Turn:
    """One step of an episode: a prompt, what was sampled, what it did."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    behaviour_logprobs: list[float]
    """Natural log-probabilities of `sampled_ids` under the distribution that they were sampled from."""
    versions: list[int]
    """Version of the policy that sampled each token."""
    observation: str
    """The text that was seen before acting."""
    text: str
    """The text of the turn: `given_ids` and `sampled_ids`, decoded."""
    action: str | None = None
    """The parsed action in canonical form; None when the text could not be parsed."""
    error: str | None = None
    """Why the action had no effect; part of the next observation."""
    url: str = ""
    changed: bool = True
    """Whether the next observation differs from this one, apart from an error line at their ends."""
    reward: float = 0.0
    seconds: float = 0.0
    finish: Finish = "stop"
    """Why its generation ended."""
    given: int = 0
    """How many ids at the end of `prompt_ids` the turn began with as if the policy had sampled them: read, and never
    trained."""
    speaker: str = ""
    """Whose turn it was, where an environment has several speakers."""
    estimates: dict[str, float] = field(default_factory=dict, compare=False)
    """What a critic says of the turn, by name (`value`: what is still to be earned before it); made for an update, and
    not kept."""

    @property
    def given_ids(self) -> list[int]:
        """The ids that the turn began with."""
        return self.prompt_ids[len(self.prompt_ids) - self.given :]

    @property
    def ids(self) -> list[int]:
        """All ids of the turn: given and sampled."""
        return self.given_ids + self.sampled_ids

    @property
    def verb(self) -> str:
        """First word of the action; `invalid` where it could not be parsed."""
        return self.action.split(" ", 1)[0] if self.action else "invalid"


@dataclass(slots=True)
class Trajectory:
    """One episode."""

    task: Task
    ordinal: int
    """Position in the stream of started episodes: admission, training and resume go by it."""
    seed: int
    budget: Budget
    turns: list[Turn] = field(default_factory=list)
    stop: StopReason = StopReason.TURNS
    answer: str | None = None
    reward: float = 0.0
    success: bool = False
    """Whether the task was done, as the verdict says: a partial reward may be positive without it."""
    terms: dict[str, float] = field(default_factory=dict)
    """Parts of the reward by name, where it has several."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What the evaluator saw: see `longstride.rewards.Verdict`."""
    group: int = 0
    """Episodes of one group share task and seed of the environment."""
    iteration: int = 0
    seconds: float = 0.0
    role: str = ""
    """What a sampler made it for; empty where there is only one purpose."""
    history: int = 0
    """How many turns at its beginning were taken over from an earlier episode."""

    @property
    def prefix(self) -> list[int]:
        """The ids that its first turn of its own began with."""
        return self.turns[self.history].given_ids if self.length > self.history else []

    @property
    def length(self) -> int:
        """Environment steps taken."""
        return len(self.turns)

    @property
    def sampled_tokens(self) -> int:
        return sum(len(t.sampled_ids) for t in self.turns)

    @property
    def unseen(self) -> list[str]:
        """The pages that its answer rests on and that it never saw."""
        seen = {urlsplit(turn.url).path for turn in self.turns}
        return [page for page in self.task.pages if page not in seen]

    @property
    def supported(self) -> bool:
        """Whether the task was done, and all that this rests on was seen."""
        return self.success and not self.unseen

    @property
    def infeasible(self) -> bool:
        """Whether the answer says that the task cannot be done."""
        return (self.answer or "").strip().lower() == INFEASIBLE

    def record(self) -> "EpisodeRecord":
        """What replay needs to know of it, without its turns."""
        t = self.task
        return EpisodeRecord(
            TaskKey(t.id, t.source, t.difficulty, t.template_id), self.ordinal, self.reward, self.success, self.length,
            self.stop, self.infeasible, self.group, self.iteration, self.role,
        )  # fmt: skip

    def to_json(self) -> str:
        """One line of JSON, without a newline."""
        turns, before = [], []
        for t in self.turns:
            keep = _common_prefix(before, t.prompt_ids)
            turns.append(
                {
                    "keep": keep, "new": t.prompt_ids[keep:], "ids": t.sampled_ids,
                    "logprobs": [round(x, LOGPROB_DIGITS) for x in t.behaviour_logprobs],
                    "versions": _squeeze(t.versions), "obs": t.observation, "text": t.text, "action": t.action,
                    "error": t.error, "url": t.url, "changed": t.changed, "reward": t.reward,
                    "seconds": round(t.seconds, 6), "finish": t.finish, "given": t.given, "speaker": t.speaker,
                }
            )  # fmt: skip
            before = t.prompt_ids + t.sampled_ids
        return json.dumps(
            {
                "task": self.task.model_dump(exclude_defaults=True), "ordinal": self.ordinal, "seed": self.seed,
                "budget": self.budget.model_dump(exclude_defaults=True), "stop": self.stop.value, "answer": self.answer,
                "reward": self.reward, "success": self.success, "terms": self.terms, "evidence": self.evidence,
                "group": self.group, "iteration": self.iteration, "seconds": round(self.seconds, 6), "role": self.role,
                "history": self.history, "turns": turns,
            },
            separators=(",", ":"),
        )  # fmt: skip

    @staticmethod
    def from_json(line: str) -> "Trajectory":
        """Reads one line.

        Raises:
            RunError: the line is not a trajectory.
        """
        try:
            d = json.loads(line)
            turns, before = [], []
            for t in d.pop("turns"):
                prompt = before[: t["keep"]] + t["new"]
                turns.append(
                    Turn(
                        prompt, t["ids"], t["logprobs"], _spread(t["versions"], len(t["ids"])), t["obs"], t["text"],
                        t["action"], t["error"], t["url"], t["changed"], t["reward"], t["seconds"], t["finish"],
                        t["given"], t["speaker"],
                    )
                )  # fmt: skip
                before = prompt + t["ids"]
            task, budget, stop = Task(**d.pop("task")), Budget(**d.pop("budget")), StopReason(d.pop("stop"))
            return Trajectory(task=task, budget=budget, stop=stop, turns=turns, **d)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            raise RunError(f"not a trajectory line: {type(e).__name__}: {str(e)[:200]}") from e


@dataclass(frozen=True, slots=True)
class TaskKey:
    """What replay needs to know of a task, under the names that `Task` has for it."""

    id: str
    source: str
    difficulty: str
    template_id: str


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """A trajectory by reference: what replay needs to know of it, under the names that `Trajectory` has for it."""

    task: TaskKey
    ordinal: int
    reward: float
    success: bool
    length: int
    stop: StopReason
    infeasible: bool
    group: int
    iteration: int
    role: str


E = TypeVar("E", Trajectory, EpisodeRecord)


def by_group(episodes: Iterable[E]) -> list[list[E]]:
    """The groups of trajectories or of records, in the order of their first members, without failed episodes; none is
    empty."""
    groups: dict[int, list[E]] = {}
    for episode in episodes:
        if not episode.stop.failed:
            groups.setdefault(episode.group, []).append(episode)
    return list(groups.values())


def without_error(observation: str, error: str | None) -> str:
    """An observation without the line at its end that explains why the action before it had no effect."""
    return observation.removesuffix(f"\nerror: {error}") if error else observation


def _common_prefix(a: list[int], b: list[int]) -> int:
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


def _squeeze(versions: list[int]) -> int | list[int]:
    return versions[0] if versions and len(set(versions)) == 1 else versions


def _spread(versions: int | list[int], n: int) -> list[int]:
    return [versions] * n if isinstance(versions, int) else versions
