"""Demonstrators: scripted agents that a warm start imitates, and where they act.

They are not incapable: giving up too early and wandering are their only faults. What always holds: demonstration
n is a function of the settings, the seed and n; demonstrations use training templates, sites, seeds and names only.
"""

import asyncio
import random
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from longstride.core.component import Component
from longstride.core.errors import EnvFailure
from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.envs.base import Env, Mix
from longstride.envs.sites import KINDS, lexicon
from longstride.envs.sites.demonstrator import CHECK, Demonstrator
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.methods.base import ADVANTAGES, Sample
from longstride.rollout.context import ContextPolicy, Past
from longstride.rollout.deadline import within
from longstride.strategies.check_again import CheckAgain
from longstride.web.miniwob import Miniwob
from longstride.web.miniwob_agent import SOLVED, MiniwobAgent

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat

AT_ONCE = 4
"""Demonstrations in a real browser that are made together."""
DEADLINE = 120.0
"""Seconds that they have."""


class ScriptedAgent(Protocol):
    """A scripted agent in one episode."""

    patience: float
    """1 for one that never gives up."""
    hesitated: bool
    """Whether it could have given up at the last observation."""

    def say(self, text: str) -> str:
        """The response to an observation."""
        ...


@dataclass
class Demonstration:
    """One demonstrated episode, as text: `observations[t]` was answered by `texts[t]`, which counts `weights[t]`: one
    number, or one for each word as `models.tiny.words_of` cuts it."""

    task: Task
    observations: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    weights: list[float | list[float]] = field(default_factory=list)


class Demonstrators(Component):
    """Family: who is imitated."""

    patient: Share = 0.45
    """Share of episodes whose demonstrator never gives up: what is done late in an episode is learned from them."""
    example: Share = 0.2
    """Weight of a patient demonstrator's turns at which others would give up; small, so that what is to be done later
    is learned, and patience is not."""
    patience: Share = 0.35
    """Probability that an impatient one goes on at a point where it could give up."""
    max_turns: Count = 26
    """Longest demonstration."""

    @abstractmethod
    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        """Demonstrations without end, numbered from `first`."""

    @abstractmethod
    def words(self) -> list[str]:
        """Words that the tokenizer has to know besides those of demonstrations."""

    def draw_patience(self, rng: random.Random) -> float:
        """The patience of one episode's demonstrator."""
        return 1.0 if rng.random() < self.patient else self.patience

    async def demonstrate(
        self, task: Task, env: Env, make: Callable[[Task], ScriptedAgent], seed: int
    ) -> Demonstration:
        """Lets an agent act until the episode ends or its turns are over; `make` gets the task with its goal."""
        try:
            first = await env.reset(task, seed)
            found = Demonstration(task.model_copy(update={"goal": first.goal}) if first.goal else task)
            agent, seen = make(found.task), first.text
            for _ in range(self.max_turns):
                response = agent.say(seen)
                found.observations.append(seen)
                found.texts.append(response)
                found.weights.append(self.example if agent.patience == 1 and agent.hesitated else 1.0)
                step = await env.step(response)
                if step.terminated:
                    break
                seen = step.observation.text
            return found
        finally:
            await env.close()


class Sites(Demonstrators):
    """On the embedded sites: what the shipped base is made from. No demonstration is seen twice."""

    slips: Share = 0.15
    """Largest probability of an arbitrary action; each episode draws its own below it."""
    detours: Share = 0.0
    """Largest probability of a detour: another page is opened and left again; each episode draws its own below it."""
    loops: Share = 0.0
    """Largest probability of a loop: an item's page is left and opened again; each episode draws its own below it."""
    recalls: bool = False
    """Whether it says, between two items to act on, which one is done and which is next: a small model loses its place
    in the goal otherwise."""
    sheet: Share = 0.1
    """Share of episodes on the fully observed control site."""
    checked: Share = 0.15
    """Share of episodes whose first answer is held back with the request to check again."""
    mix: Mix = Mix()
    """Shares of the difficulties."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        web, n = EmbeddedWeb(mix=self.mix), first
        sheet = EmbeddedWeb(sites=("sheet",), mix=Mix(easy=1, medium=0, hard=0))
        while True:
            rng = stream(seed, "demo", n)
            source = sheet if rng.random() < self.sheet else web
            task = source.sample(rng, 1)[0]
            patience = self.draw_patience(rng)
            slips = self.slips * rng.random()
            wanders = [most * rng.random() if most else 0.0 for most in (self.detours, self.loops)]
            agent = Demonstrator(task, rng, patience, slips, *wanders, recalls=self.recalls)
            env = CheckAgain(paragraph=CHECK, checks=2 if rng.random() < self.checked else 1).wrap(source.env())
            yield run_now(self.demonstrate(task, env, lambda _, a=agent: a, derive(seed, "demo-env", n)))
            n += 1

    def words(self) -> list[str]:
        known = {w for name in vars(lexicon) if name.isupper() for w in getattr(lexicon, name)}
        for k in KINDS.values():
            known |= {*k.categories, *k.words, *k.numbers, *k.reference.attributes, k.flag}
        return [*sorted(known), "omitted", CHECK, "nothing found", "error : is not an element of this page"]


class MiniwobTasks(Demonstrators):
    """On MiniWoB++, in Chromium. A real browser is slow, so a fixed number of demonstrations is made, and is seen again
    and again."""

    names: tuple[str, ...] = SOLVED
    """Tasks: some of `web.miniwob_agent.SOLVED`."""
    episodes: Count = 2000
    """Different demonstrations."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        source, made = Miniwob(names=self.names), []

        async def one(n: int) -> None:
            rng = stream(seed, "demo", n)
            task, patience = source.sample(rng, 1)[0], self.draw_patience(rng)
            make = lambda t: MiniwobAgent(t.template_id, t.goal, rng, patience)  # noqa: E731
            found[n] = await self.demonstrate(task, source.env(), make, n)

        async def all_of(numbers: range) -> list[str]:
            return await asyncio.gather(*(within(DEADLINE, one(n)) for n in numbers))

        with asyncio.Runner() as runner:
            for start in range(0, self.episodes, AT_ONCE):
                found: dict[int, Demonstration] = {}
                numbers = range(start, min(start + AT_ONCE, self.episodes))
                if late := next(filter(None, runner.run(all_of(numbers))), None):
                    raise EnvFailure(f"a demonstration did not end within {DEADLINE:g} s: {late}")
                for n in numbers:
                    made.append(found[n])
                    if n >= first:
                        yield found[n]
        while True:
            yield from made

    def words(self) -> list[str]:
        return ["error : is not an element of this page"]


def run_now(coroutine: Any) -> Any:
    """Drives a coroutine that never suspends (in-process environments do not) without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value
    coroutine.close()
    raise RuntimeError("an in-process environment suspended")


def turns_of(shown: Demonstration, chat: "ChatFormat", context: ContextPolicy, page_weight: float) -> list[Sample]:
    """The turns of a demonstration as samples.

    What is imitated in a turn begins at its newest observation, whose tokens weigh `page_weight` together, and goes on
    with the response.
    """
    responses = [chat.encode(text) + chat.close for text in shown.texts]
    samples = []
    for t, ids in enumerate(responses):
        prompt = context.render(chat, Past(shown.task.goal, shown.observations[: t + 1], responses[:t]))
        newest = len(chat.observation(shown.observations[t], first=t == 0))
        weights = [page_weight / newest] * newest + _spread(shown.weights[t], len(ids))
        samples.append(Sample(prompt[:-newest], prompt[-newest:] + ids, {ADVANTAGES: weights}))
    return samples


def _spread(weight: float | list[float], count: int) -> list[float]:
    """The weights of a response's tokens; the token that ends a response whose words have weights of their own has
    weight 1."""
    weights = [*weight, 1.0] if isinstance(weight, list) else [weight] * count
    return [w / count for w in weights]
