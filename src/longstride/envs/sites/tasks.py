"""Tasks on the embedded sites: templates, their split, and the source that recipes draw from.

What always holds: training and evaluation share no site seed and no name, and no template unless that is asked for,
while every word of an evaluation task occurs in training; a source draws from the random stream that it is given and
from nothing else.
"""

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from longstride.core.component import find, unknown
from longstride.core.errors import TaskError
from longstride.core.numbers import Count
from longstride.core.seeds import stream
from longstride.core.task import DIFFICULTIES, Difficulty, Task, difficulty_of, read_tasks
from longstride.envs.base import Mix, TaskSource
from longstride.envs.sites import HELD_OUT, KINDS, application, make_world
from longstride.envs.sites.env import WebEnv, Window
from longstride.envs.sites.errands import ERRANDS

BROWSERS: dict[str, Callable[[int], WebEnv]] = {"text": lambda window: WebEnv(application(), window)}
"""By name: makes the environment of an episode from the number of lines that are seen at once. Others are found as
`core.component.find` says."""
COMPARED = (2, 3, 4, 5, 6, 7, 8, 10)
ACTED = (1, 2, 3, 4, 6)


@dataclass(frozen=True)
class Template:
    """An errand with its parameters on one kind of site."""

    kind: str
    errand: str
    params: tuple[tuple[str, Any], ...]
    difficulties: tuple[Difficulty, ...]
    held_out: bool

    @property
    def id(self) -> str:
        return "/".join([self.kind, self.errand, *(str(v) for _, v in self.params)])

    def make(self, site: int, seed: int, difficulty: Difficulty) -> Task | None:
        """The task of this template on a site's seed; None where that site has none of this difficulty."""
        world = make_world(self.kind, site)
        rng = stream(seed, "task", self.id, site)
        draft = ERRANDS[self.errand](world, dict(self.params), rng, difficulty)
        if draft is None or difficulty_of(draft.facts) != difficulty:
            return None
        start = f"/{self.kind}/{site}/"
        return Task(
            id=f"{self.id}/{site}/{seed}",
            source=f"web/{self.kind}",
            split="test" if site >= HELD_OUT else "train",
            goal=draft.goal,
            start=start,
            difficulty=difficulty,
            facts=draft.facts,
            template_id=self.id,
            evaluator=draft.evaluator,
            optimal=draft.optimal,
            meta=draft.plan,
            pages=tuple(start + page for page in draft.pages),
        )


@functools.cache
def templates(kind: str) -> tuple[Template, ...]:
    """All templates of a kind of site; in every errand about one in four is held out, others on other kinds.

    Raises:
        TaskError: there is no such kind.
    """
    if kind not in KINDS:
        raise TaskError(unknown("site", kind, KINDS))
    spec, out = KINDS[kind], []
    sheet = kind == "sheet"
    plans: dict[str, list[dict[str, Any]]] = {"find": [{"attribute": a} for a in [*spec.words, *spec.numbers]]}
    plans["search"] = [{"attribute": a, "categories": c} for a in spec.words for c in ((1,) if sheet else (1, 2))]
    ways = [(a, w) for w in ("lowest", "highest") for a in spec.numbers]
    sizes = (2, 3) if sheet else COMPARED
    plans["compare"] = [{"attribute": a, "way": w, "items": m} for m in sizes for a, w in ways]
    if not sheet:
        if spec.verb == "put":
            plans["search"] += [{"attribute": a, "categories": 1, "action": "put"} for a in spec.words]
        plans["survey"] = [{"attribute": a, "way": w} for a, w in ways]
        plans["hop"] = [{"attribute": a} for a in ("city", "country", *spec.reference.attributes)]
        verbs = ["put", "order"] if spec.verb == "put" else [spec.verb] if spec.verb else []
        plans["act"] = [{"verb": v, "items": n} for n in ACTED for v in verbs]
    shift = list(KINDS).index(kind)
    for errand, params in plans.items():
        for k, p in enumerate(params):
            # a kind's own word (hop's last attribute) is in training always: held-out tasks have no new words
            held_out = k == shift % 2 if errand == "hop" else (k + shift) % 4 == 3
            out.append(Template(kind, errand, tuple(p.items()), _difficulties(errand, p, sheet), held_out))
    return tuple(out)


def _difficulties(errand: str, p: dict[str, Any], sheet: bool) -> tuple[Difficulty, ...]:
    """Which difficulties a template can be made in."""
    if sheet or errand == "find":
        return ("easy",)
    if errand == "search":
        return DIFFICULTIES
    facts = {
        "survey": [4, 5],
        "hop": [3 if p.get("attribute") == "country" else 2],
        "compare": [p.get("items", 0)],
        "act": [2 * p.get("items", 0) + (p.get("verb") in ("reply", "order"))],
    }[errand]
    return tuple(dict.fromkeys(difficulty_of(f) for f in facts))


class EmbeddedWeb(TaskSource):
    """Tasks on the embedded sites, drawn afresh for ever."""

    sites: tuple[str, ...] = ("shop", "stays", "forum", "encyclopedia")
    """Kinds of sites; `sheet` is the fully observed control."""
    errands: tuple[str, ...] = tuple(ERRANDS)
    """Kinds of tasks."""
    mix: Mix = Mix()
    """Shares of difficulties in training. Evaluation has the same number of each."""
    per_kind: Annotated[int, Field(ge=1, le=HELD_OUT)] = 500
    """Different training sites of each kind."""
    window: Window = 60
    """Lines of a page that are seen at once."""
    most_acted: Count = max(ACTED)
    """Most items that a task of the errand `act` names."""
    new_templates: bool = True
    """Whether held-out tasks are of templates that training has none of; if not, they are new tasks of the training
    templates, with the others evaluated beside them. Their sites and names are new either way."""
    browser: Literal["text", "chromium"] = "text"
    """What the pages are seen with: the text browser, in process, or a real one, with the same text."""

    @field_validator("sites")
    @classmethod
    def _known_sites(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _all_known("site", value, KINDS)

    @field_validator("errands")
    @classmethod
    def _known_errands(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _all_known("errand", value, ERRANDS)

    @property
    def beside(self) -> dict[str, TaskSource]:
        if self.new_templates:
            return {}
        return {"new_templates": self.replace(new_templates=True, most_acted=max(ACTED))}

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        weights = [self.mix.easy, self.mix.medium, self.mix.hard]
        wanted = rng.choices(DIFFICULTIES, weights if any(weights) else None, k=n)
        return [self._draw(rng, d, held_out=False) for d in wanted]

    def held_out(self, n: int) -> list[Task]:
        name = "held-out" if self.new_templates else "held-out-sites"
        rng = stream(0, name, *self.sites, *self.errands)
        return [self._draw(rng, DIFFICULTIES[i % 3], held_out=True) for i in range(n)]

    def vary(self, task: Task, rng: random.Random) -> Task | None:
        """A task of the same template or of one that differs from it in one parameter, of any difficulty, on a random
        site of its kind (see `envs.base.Varying`); None where that site has none, where no site is of that kind, and
        where the template is none of this version's."""
        kind = task.source.removeprefix("web/")
        if kind not in self.sites:
            return None
        found = templates(kind)
        own = next((t for t in found if t.id == task.template_id), None)
        if own is None:
            return None
        near = [
            t
            for t in found
            if t.errand == own.errand
            and not t.held_out
            and self._acts_within(t)
            and len(set(t.params) ^ set(own.params)) <= 2
        ]
        chosen = rng.choice(near)
        return chosen.make(rng.randrange(self.per_kind), rng.getrandbits(40), rng.choice(chosen.difficulties))

    @property
    def at_once(self) -> int:
        return 512 if self.browser == "text" else 8

    def env(self) -> WebEnv:
        make = find(BROWSERS, "browser", self.browser)
        assert make is not None
        return make(self.window)

    def _draw(self, rng: random.Random, difficulty: Difficulty, held_out: bool) -> Task:
        """A task of the difficulty, or of the nearest easier one where these sites have none."""
        while True:
            kind = rng.choice(self.sites)
            new = held_out and self.new_templates
            choice = self._fitting(kind, difficulty, new)
            if not choice:
                difficulty = self._nearest(difficulty, new)
                continue
            errand = rng.choice(sorted({t.errand for t in choice}))  # errands alike, however many templates they have
            template = rng.choice([t for t in choice if t.errand == errand])
            site = rng.randrange(self.per_kind) + (HELD_OUT if held_out else 0)
            task = template.make(site, rng.getrandbits(40), difficulty)
            if task is not None:
                return task

    def _fitting(self, kind: str, difficulty: Difficulty, new: bool) -> list[Template]:
        return [
            t
            for t in templates(kind)
            if t.held_out == new and t.errand in self.errands and difficulty in t.difficulties and self._acts_within(t)
        ]

    def _acts_within(self, template: Template) -> bool:
        return template.errand != "act" or dict(template.params)["items"] <= self.most_acted

    def _nearest(self, difficulty: Difficulty, new: bool) -> Difficulty:
        if any(self._fitting(k, difficulty, new) for k in self.sites):
            return difficulty
        there: list[Difficulty] = [d for d in DIFFICULTIES if any(self._fitting(k, d, new) for k in self.sites)]
        if not there:
            raise TaskError(f"no tasks of the errands {', '.join(self.errands)} on the sites {', '.join(self.sites)}")
        below: list[Difficulty] = [d for d in there if DIFFICULTIES.index(d) < DIFFICULTIES.index(difficulty)]
        return below[-1] if below else there[0]


class TaskFile(TaskSource):
    """Tasks on the embedded sites from a file of JSON lines; `split` says what is trained on and what is held out."""

    path: Path
    """One task a line."""
    window: Window = 60
    """Lines of a page that are seen at once."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return rng.choices(self._of("train"), k=n)

    def held_out(self, n: int) -> list[Task]:
        return self._of("test")[:n]

    def env(self) -> WebEnv:
        return WebEnv(application(), self.window)

    def _of(self, split: Literal["train", "test"]) -> list[Task]:
        tasks = [t for t in _load(self.path) if t.split == split]
        if not tasks:
            raise TaskError(f'{self.path} has no tasks of the split {split!r}; add lines with "split": "{split}"')
        return tasks


@functools.lru_cache(maxsize=8)
def _load(path: Path) -> tuple[Task, ...]:
    return tuple(read_tasks(path))


def _all_known(what: str, value: tuple[str, ...], known: Any) -> tuple[str, ...]:
    for name in value:
        if name not in known:
            raise ValueError(unknown(what, name, known))
    if not value:
        raise ValueError(f"at least one {what} is needed; known: {', '.join(known)}")
    return tuple(value)
