"""Learning histories as demonstrations: whole trials of learners, which a policy is trained to go on with.

A policy that has seen enough of them learns inside its context, without a change of weights: algorithm distillation
(Laskin et al., arXiv 2210.14215) imitates what the learner did; DPT (Lee et al., arXiv 2306.14892) imitates what would
have been best; between them lies any other algorithm that is asked what it would have done (Lin et al., arXiv
2310.08566). What always holds: a trial is played in the recipe's own environment under its own budget and rendered by
its own context policy, so it reads as the policy's own will; where prompts only grow (`ContextPolicy.parts`) it is one
sample, whose observations weigh nothing.
"""

import asyncio
import random
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from longstride.core.budget import StopReason
from longstride.core.component import Component
from longstride.core.errors import ConfigError, RunError
from longstride.core.numbers import Count
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.methods.base import ADVANTAGES, Sample, demonstration
from longstride.rollout.context import Past
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.imitation import Demonstrations
from longstride.strategies.learners import Thompson, TrialLearner, taking_turns

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.run.recipe import Recipe


@dataclass(slots=True)
class History:
    """A trial of a learner."""

    episodes: list[Trajectory]
    """Of its episodes those that are shown, in their order."""
    labels: list[list[str]] = field(default_factory=list)
    """Of each of them what should have been said, turn by turn; what was said if empty."""

    @property
    def returns(self) -> list[float]:
        """What each episode earned."""
        return [t.reward for t in self.episodes]


class HistoryFilter(Component):
    """Family: which histories are imitated."""

    @abstractmethod
    def __call__(self, histories: Sequence[History], rng: random.Random) -> list[History]:
        """As many as there were, some of them several times, or fewer."""


class LearningHistories(Demonstrations):
    """Trials of a learner on training tasks, its failures too: what is imitated is how it learns.

    `episodes` of a phase of imitation are those that are shown, so a history is `trial.episodes` of them.
    """

    learner: TrialLearner = Thompson()
    """Who plays."""
    labels: TrialLearner | None = None
    """Who says what should have been done in each turn, having seen the same; what was done, if left out. `optimal` is
    one that knows the rule."""
    every: Count = 1
    """One episode in so many is shown: a learner that takes more episodes than a context holds looks as if it learned
    faster (AD, arXiv 2210.14215, on downsampling)."""
    filter: HistoryFilter | None = None
    """Which histories are imitated; all of them if left out."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        if recipe.actions != "text":
            raise ConfigError("learners speak in the environment's own words: set actions=text")
        found = self.played(recipe, chat, -(-episodes // recipe.trial.episodes), rng)
        chosen = self.filter(found, rng) if self.filter else found
        return [sample for number, h in enumerate(chosen) for sample in history_samples(h, recipe, chat, number)]

    def played(self, recipe: "Recipe", chat: "ChatFormat", trials: int, rng: random.Random) -> list[History]:
        """So many histories; one in which something failed is left out."""
        tasks, seed = recipe.tasks.sample(rng, trials), rng.getrandbits(62)
        at_once = asyncio.Semaphore(recipe.tasks.at_once)
        ids_of = cache(lambda text: (*chat.encode(text), *chat.close))

        async def one(number: int, task: Task) -> History | None:
            async with at_once:
                return await self._trial(recipe, ids_of, task, derive(seed, number))

        async def everything() -> list[History | None]:
            return await asyncio.gather(*(one(n, task) for n, task in enumerate(tasks)))

        with ThreadPoolExecutor(1, "histories") as thread:  # a loop may run in this one
            found = thread.submit(asyncio.run, everything()).result()
        whole = [h for h in found if h is not None]
        if not whole:
            raise ConfigError(f"of {trials} histories the environment let none come to its end")
        return whole

    async def _trial(
        self, recipe: "Recipe", ids_of: Callable[[str], Sequence[int]], task: Task, seed: int
    ) -> History | None:
        budget, trial = recipe.test_budget.at(1, task.difficulty), recipe.trial
        trial = trial.replace(episodes=self.every * trial.episodes)
        says, judges = taking_turns(self.learner), taking_turns(self.labels) if self.labels else None
        history, earlier = History([]), list[Trajectory]()
        for place in range(trial.episodes):
            own = derive(seed, place if trial.start == "new" else 0)
            plan = Plan(task, place, own, budget, trial=trial, after=tuple(range(place)), earlier=tuple(earlier))
            episode, labels = Episode(plan, recipe.env()), list[str]()
            await episode.start(recipe.test_reward)
            while not episode.ended:
                text = says(episode)
                labels.append(judges(episode) if judges else text)
                ids = [*ids_of(text)]
                await episode.take(Generation([], ids, [0.0] * len(ids), [0] * len(ids), text), recipe.test_reward)
            await episode.close()
            played = episode.trajectory
            if played.stop is StopReason.UNPLAYED:
                break
            if played.stop.failed:
                return None
            earlier.append(played)
            if place % self.every == 0:
                history.episodes.append(played)
                history.labels.append(labels)
        return history


class StoredHistories(Demonstrations):
    """Histories from the stored episodes of another run, failures too; its model must have had the same tokenizer."""

    run: Path
    """Its folder."""
    of: Literal["trials", "training"] = "trials"
    """The trials that it played; or its own training, in which the episodes of a task, iteration after iteration, are
    the learning history of the run's algorithm (AD, arXiv 2210.14215): `trial.episodes` of them, evenly apart, the
    first one first."""
    filter: HistoryFilter | None = None
    """Which histories are imitated; all of them if left out."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        check_run_folder(self.run)
        store, most = TrajectoryStore(self.run / TRAJECTORIES), recipe.trial.episodes
        grouped: dict[Hashable, list[Trajectory]] = {}
        for t in store.read(range(len(store.records))):
            if t.turns and not t.stop.failed:
                grouped.setdefault(t.trial if self.of == "trials" else t.record().task, []).append(t)
        whole = [of for of in grouped.values() if len(of) >= most]
        if not whole:
            raise RunError(
                f"{store.path} holds no {most} episodes of one of its {self.of}; set trial.episodes to fewer"
            )
        chosen = rng.sample(whole, min(len(whole), -(-episodes // most)))
        found = [History([of[k * len(of) // most] for k in range(most)]) for of in chosen]
        kept = self.filter(found, rng) if self.filter else found
        return [sample for number, h in enumerate(kept) for sample in history_samples(h, recipe, chat, number)]


def history_samples(history: History, recipe: "Recipe", chat: "ChatFormat", number: int = 0) -> list[Sample]:
    """A history as samples: one, where prompts only grow and a label is as long as what was said; one a turn if not.

    Every token that is imitated weighs alike, and together as much as the sample has tokens, so that the mean over
    tokens is that over those that are imitated.
    """
    episodes = [replace(t, ordinal=k, after=tuple(range(k))) for k, t in enumerate(history.episodes)]
    turns = [(t, n) for t in episodes for n in range(t.length)]
    said = [turn.ids for t in episodes for turn in t.turns]
    ids_of = cache(lambda text: [*chat.encode(text), *chat.close])
    wanted = [ids_of(text) for labels in history.labels for text in labels] or said

    def past(t: Trajectory, turn: int) -> Past:
        before = t.turns[:turn]
        seen = [u.observation for u in t.turns[: turn + 1]]
        return Past(t.task.goal, seen, [u.ids for u in before], [u.reward for u in before], episodes[: t.ordinal])

    alike = all(len(ids) == len(want) and chat.spoken(ids) == ids for ids, want in zip(said, wanted, strict=True))
    parts = recipe.context.parts(chat, past(*turns[-1])) if alike else None
    if parts is None:
        prompts = [recipe.context.render(chat, past(*turn)) for turn in turns]
        return [demonstration(p, want, 1.0, number) for p, want in zip(prompts, wanted, strict=True)]
    ids, targets, weights = list[int](), list[int](), list[float]()
    for read, now, want in zip([[], *parts[2::2]], said, wanted, strict=True):
        ids += read + now
        targets += read + want
        weights += [0.0] * len(read) + [1.0] * len(now)
    scale = len(ids) / sum(weights)
    return [Sample(parts[0], ids, {ADVANTAGES: [w * scale for w in weights]}, number, number, targets=targets)]
