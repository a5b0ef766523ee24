"""Trajectories: what was seen, sampled and earned, in token ids.

What always holds: `sampled_ids`, `behaviour_logprobs` and `versions` of a turn have one entry for each token that the
trained policy sampled, and nothing else ever enters them; `prompt_ids` is exactly what was read; what a model behind a
chat API said is text alone, with its server's count of tokens (`Usage`), and no id of it is ever a sampled one; a
trajectory on disk is one JSON line from which an equal object is read back (prompts are kept as what they share with
the turn before, and the rest). Images and data stand in a line by name (`core.content`): whoever reads it says where
their bytes are.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from longstride.core.budget import Budget, StopReason
from longstride.core.content import Content, Media, by_placeholder, chunks_of, joined, media_of, placed
from longstride.core.errors import RunError
from longstride.core.sealed import dumps
from longstride.core.task import Task

Finish = Literal["stop", "length", "context", "mark"]
"""Why generation ended: an end token, a limit of tokens, the end of the model's context, a mark that was asked for."""
LOGPROB_DIGITS = 6
"""Decimals of log-probabilities, on disk and so in memory too."""
INFEASIBLE = "n/a"
"""The answer that says that a task cannot be done."""
MEASURED = "measured"
"""The role of an episode that measures something: it is stored and counted, and never trained on."""
PIECE = "piece"
"""The role of an episode whose answer was cut and goes on in a later iteration."""

DUELS = "duels"
"""In `Trajectory.evidence`: by the ordinal of a sibling, as text, the share of duels with it that were won."""


class Usage(NamedTuple):
    """What a model behind a server cost, which counts its tokens itself."""

    requests: int = 0
    """That were answered."""
    read: int = 0
    """Tokens of their prompts, as the server counts them."""
    cached: int = 0
    """Those of them that it had in its cache."""
    sampled: int = 0
    """Tokens of its answers, thoughts that it does not show included."""
    beside: int = 0
    """Those of companions of the policy."""
    cost: float = 0.0
    """By the prices that were set."""

    def plus(self, other: Self) -> Self:
        """Both together."""
        return self._make(a + b for a, b in zip(self, other, strict=True))


@dataclass(slots=True)
class Turn:
    """One step of an episode: a prompt, what was sampled, what it did."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    behaviour_logprobs: list[float]
    """Natural log-probabilities of `sampled_ids` under the distribution that they were sampled from."""
    versions: list[int]
    """Version of the policy that sampled each token."""
    observation: Content
    """What was seen before acting."""
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
    media: tuple[Media, ...] = ()
    """What the placeholders in `prompt_ids` stand for."""
    usage: Usage | None = None
    """What it cost, where a server sampled it and gave no ids."""
    fork: str = ""
    """Why its prompt opens a branch, where a program that rewrites its history asked for it
    (`envs.requests.ChatRequest.fork`)."""
    thought: int = 0
    """How many of its given ids are a thought that its own budget cut: sampled, and not to be trained."""
    budgeted: int | None = None
    """Tokens that it took of the episode's budget, where these are not its ids: what companions say and what ends a
    thought for the policy take none, and what a server sampled has no ids."""
    estimates: dict[str, float] = field(default_factory=dict, compare=False)
    """What a critic says of the turn, by name (`value`: what is still to be earned before it); made for an update, and
    not kept."""
    token_values: list[float] = field(default_factory=list, compare=False)
    """What a critic of tokens says is still to be earned before each sampled token; not kept, as `estimates`."""

    @property
    def given_ids(self) -> list[int]:
        """The ids that the turn began with."""
        return self.prompt_ids[len(self.prompt_ids) - self.given :]

    @property
    def ids(self) -> list[int]:
        """All ids of the turn: given and sampled."""
        return self.given_ids + self.sampled_ids

    @property
    def left_out(self) -> int:
        """How many images and data of its observation the policy was not given."""
        asked = bool(self.prompt_ids or self.usage)
        return sum(each not in self.media for each in media_of(self.observation)) if asked else 0

    @property
    def sampled_tokens(self) -> int:
        """How many tokens the policy sampled."""
        return self.usage.sampled if self.usage else len(self.sampled_ids) + self.thought

    @property
    def prompt_tokens(self) -> int:
        """How many tokens were read."""
        return self.usage.read if self.usage else len(self.prompt_ids)

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
    after: tuple[int, ...] = ()
    """Ordinals of the episodes before it in its trial, the first one first."""
    final: Content = ""
    """What was seen after the last turn; kept for the later episodes of a trial."""
    tools: tuple[dict[str, Any], ...] = ()
    """The tools that prompts presented, as chat templates take them; where they changed, all of them."""
    judge_usage: Usage | None = None
    """What the model cost that its reward asked, where one answered; whatever came of it."""
    cut_tokens: int = 0
    """Tokens that were sampled of a turn that the end of the context cut: none of its turns has them."""
    retried: Usage | None = None
    """What models behind servers cost that spoke in tries of it which failed and were played again."""
    env_seed: int | None = None
    """Seed of the environment where it is not `seed`: that of the episode which this one went on from."""

    @property
    def trial(self) -> int:
        """Ordinal of the first episode of its trial; its own where it stands alone."""
        return self.after[0] if self.after else self.ordinal

    @property
    def place(self) -> int:
        """How many episodes of its trial were planned before it."""
        return len(self.after)

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
        """All that the policy sampled for it."""
        return sum(t.sampled_tokens for t in self.turns) + self.cut_tokens

    @property
    def earned(self) -> float:
        """What the environment gave turn by turn. It is added to what a verdict gives, so a reward that stands for the
        whole episode takes it off."""
        return sum(t.reward for t in self.turns)

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

    @property
    def media(self) -> list[Media]:
        """All images and data that were seen or read, each once."""
        of_turns = (m for t in self.turns for m in (*media_of(t.observation), *t.media))
        return list(dict.fromkeys([*of_turns, *media_of(self.final)]))

    def record(self) -> "EpisodeRecord":
        """What replay needs to know of it, without its turns."""
        t = self.task
        return EpisodeRecord(
            TaskKey(t.id, t.source, t.difficulty, t.template_id),
            self.ordinal,
            self.reward,
            self.success,
            self.length,
            self.stop,
            self.infeasible,
            self.group,
            self.iteration,
            self.role,
        )

    def to_json(self) -> str:
        """One line of JSON, without a newline."""
        turns, before, media = [], [], self.media
        for t in self.turns:
            keep = _common_prefix(before, t.prompt_ids)
            turns.append(
                {
                    "keep": keep,
                    "new": t.prompt_ids[keep:],
                    "ids": t.sampled_ids,
                    "logprobs": [round(x, LOGPROB_DIGITS) for x in t.behaviour_logprobs],
                    "versions": _squeeze(t.versions),
                    "obs": _named(t.observation, media),
                    "text": t.text,
                    "action": t.action,
                    "error": t.error,
                    "url": t.url,
                    "changed": t.changed,
                    "reward": t.reward,
                    "seconds": round(t.seconds, 6),
                    "finish": t.finish,
                    "given": t.given,
                    "speaker": t.speaker,
                    **({"usage": t.usage} if t.usage else {}),
                    **({"fork": t.fork} if t.fork else {}),
                    **({"thought": t.thought} if t.thought else {}),
                    **({"budgeted": t.budgeted} if t.budgeted is not None else {}),
                }
            )
            before = t.prompt_ids + t.sampled_ids
        return dumps(
            {
                "task": self.task.model_dump(exclude_defaults=True),
                "ordinal": self.ordinal,
                "seed": self.seed,
                "budget": self.budget.model_dump(exclude_defaults=True),
                "stop": self.stop.value,
                "answer": self.answer,
                "reward": self.reward,
                "success": self.success,
                "terms": self.terms,
                "evidence": self.evidence,
                "group": self.group,
                "iteration": self.iteration,
                "seconds": round(self.seconds, 6),
                "role": self.role,
                "history": self.history,
                **({"media": [[m.name, m.kind] for m in media]} if media else {}),
                **({"after": self.after} if self.after else {}),
                **({"final": _named(self.final, media)} if self.final else {}),
                **({"tools": self.tools} if self.tools else {}),
                **({"judge_usage": self.judge_usage} if self.judge_usage else {}),
                **({"cut_tokens": self.cut_tokens} if self.cut_tokens else {}),
                **({"retried": self.retried} if self.retried else {}),
                **({"env_seed": self.env_seed} if self.env_seed is not None else {}),
                "turns": turns,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(line: str, find: Callable[[str, str], Media] | None = None) -> "Trajectory":
        """Reads one line.

        Args:
            line: as `to_json` made it.
            find: the media of a name and a media type; it raises `RunError` where it has none.

        Raises:
            RunError: the line is not a trajectory, or it names media that are not there.
        """
        try:
            d = json.loads(line)
            named = [(str(name), str(kind)) for name, kind in d.pop("media", ())]
            if named and find is None:
                raise RunError(f"it has images or data (the first is {named[0][0][:8]}): read it from its run's folder")
            media = [find(*each) for each in named] if find else []
            turns, before, known = [], [], by_placeholder(media)
            for t in d.pop("turns"):
                prompt = before[: t["keep"]] + t["new"]
                turns.append(
                    Turn(
                        prompt,
                        t["ids"],
                        t["logprobs"],
                        _spread(t["versions"], len(t["ids"])),
                        _found(t["obs"], media),
                        t["text"],
                        t["action"],
                        t["error"],
                        t["url"],
                        t["changed"],
                        t["reward"],
                        t["seconds"],
                        t["finish"],
                        t["given"],
                        t["speaker"],
                        placed(prompt, known) if media else (),
                        Usage(*t["usage"]) if "usage" in t else None,
                        t.get("fork", ""),
                        t.get("thought", 0),
                        t.get("budgeted"),
                    )
                )
                before = prompt + t["ids"]
            task, budget, stop = Task(**d.pop("task")), Budget(**d.pop("budget")), StopReason(d.pop("stop"))
            after, tools = tuple(d.pop("after", ())), tuple(d.pop("tools", ()))
            final = _found(d.pop("final", ""), media)
            usage = {name: Usage(*d.pop(name)) for name in ("judge_usage", "retried") if name in d}
            own: dict[str, Any] = {"after": after, "tools": tools, "final": final, **usage}
            return Trajectory(task=task, budget=budget, stop=stop, turns=turns, **own, **d)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
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


def by_trial(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """The trials, in the order of their first members, each in the order of its episodes, without failed and unplayed
    ones; none is empty."""
    trials: dict[int, list[Trajectory]] = {}
    for t in sorted(trajectories, key=lambda t: t.place):
        if not t.stop.failed:
            trials.setdefault(t.trial, []).append(t)
    order = dict.fromkeys(t.trial for t in trajectories)
    return [trials[number] for number in order if number in trials]


def usages(trajectories: Iterable[Trajectory]) -> dict[str, Usage]:
    """What they cost together that servers counted, tries that failed included: `usage` of their turns and
    `judge_usage` of their judges, each where there is any."""
    turns, judges = list[Usage](), list[Usage]()
    for t in trajectories:
        turns += [usage for usage in (t.retried, *(turn.usage for turn in t.turns)) if usage]
        judges += [t.judge_usage] if t.judge_usage else []
    return {name: reduce(Usage.plus, found) for name, found in (("usage", turns), ("judge_usage", judges)) if found}


def add_costs(trajectory: Trajectory, failed: Iterable[Trajectory]) -> None:
    """Adds what servers were paid for in tries of an episode that failed."""
    found = usages(failed)
    trajectory.retried = found.get("usage")
    if judged := found.get("judge_usage"):
        trajectory.judge_usage = judged.plus(trajectory.judge_usage or Usage())


def without_error(observation: Content, error: str | None) -> Content:
    """An observation without the line at its end that explains why the action before it had no effect."""
    if not error:
        return observation
    line = f"\nerror: {error}"
    return joined(chunk.removesuffix(line) if isinstance(chunk, str) else chunk for chunk in chunks_of(observation))


def _common_prefix(a: list[int], b: list[int]) -> int:
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


def _named(content: Content, media: list[Media]) -> str | list[str | int]:
    """Content as it stands in a line: media by their number."""
    if isinstance(content, str):
        return content
    return [media.index(chunk) if isinstance(chunk, Media) else chunk for chunk in content]


def _found(kept: str | list[str | int], media: list[Media]) -> Content:
    return kept if isinstance(kept, str) else joined(media[c] if isinstance(c, int) else c for c in kept)


def _squeeze(versions: list[int]) -> int | list[int]:
    return versions[0] if versions and len(set(versions)) == 1 else versions


def _spread(versions: int | list[int], n: int) -> list[int]:
    return [versions] * n if isinstance(versions, int) else versions
