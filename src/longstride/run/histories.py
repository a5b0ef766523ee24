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
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import TaskKey, Trajectory, Turn
from longstride.methods.base import ADVANTAGES, Sample, demonstration
from longstride.rollout.context import Past
from longstride.rollout.deadline import within
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.formats import read_episodes
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.imitation import Demonstrations, spent_before
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
    pair: int = -1
    """Histories of one task have the same number, which is that of no other task (`Sample.pair`); -1 says nothing."""

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
    windows: Count = 1
    """Histories of each task. With 2 or more they are said to be of one task and meet in an optimiser step, which a
    model needs that learns to tell tasks apart (`papers/t2mir`)."""
    filter: HistoryFilter | None = None
    """Which histories are imitated; all of them if left out."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        if recipe.actions != "text":
            raise ConfigError("learners speak in the environment's own words: set actions=text")
        found = self.played(recipe, chat, -(-episodes // recipe.trial.episodes), rng)
        return samples_of(found, self.filter, recipe, chat, rng)

    def played(self, recipe: "Recipe", chat: "ChatFormat", trials: int, rng: random.Random) -> list[History]:
        """So many histories, or a few more that make `windows` of each task; one in which something failed is tried
        again as the pool's episodes are (`pool.retries`), and then left out."""
        different = recipe.tasks.sample(rng, -(-trials // self.windows))
        tasks, seed = [task for task in different for _ in range(self.windows)], rng.getrandbits(62)
        at_once = asyncio.Semaphore(recipe.tasks.at_once)
        ids_of = cache(lambda text: (*chat.encode(text), *chat.close))

        async def one(number: int, task: Task) -> History | None:
            async with at_once:
                for _ in range(1 + recipe.pool.retries):
                    if history := await self._trial(recipe, ids_of, task, derive(seed, number)):
                        return history
            return None

        async def everything() -> list[History | None]:
            return await asyncio.gather(*(one(n, task) for n, task in enumerate(tasks)))

        with ThreadPoolExecutor(1, "histories") as thread:  # a loop may run in this one
            found = thread.submit(asyncio.run, everything()).result()
        if self.windows > 1:
            found = [h and replace(h, pair=number // self.windows) for number, h in enumerate(found)]
        whole = [h for h in found if h is not None]
        if not whole:
            raise ConfigError(f"of {trials} histories the environment let none come to its end")
        return whole

    async def _trial(
        self, recipe: "Recipe", ids_of: Callable[[str], Sequence[int]], task: Task, seed: int
    ) -> History | None:
        """A history, by a learner that knows nothing yet; None where something failed, or took longer than a turn may
        (`pool.step_deadline`)."""
        deadline, budget, trial = recipe.pool.step_deadline, recipe.test_budget.at(1, task.difficulty), recipe.trial
        trial = trial.replace(episodes=self.every * trial.episodes)
        says, judges = taking_turns(self.learner), taking_turns(self.labels) if self.labels else None
        history, earlier = History([]), list[Trajectory]()
        for place in range(trial.episodes):
            own = derive(seed, place if trial.start == "new" else 0)
            plan = Plan(task, place, own, budget, trial=trial, after=tuple(range(place)), earlier=tuple(earlier))
            episode, labels = Episode(plan, recipe.env()), list[str]()
            try:
                async with asyncio.timeout(deadline) as late:
                    await episode.start(recipe.test_reward)
                    while not episode.ended:
                        text = says(episode)
                        labels.append(judges(episode) if judges else text)
                        ids = [*ids_of(text)]
                        said = Generation([], ids, [0.0] * len(ids), [0] * len(ids), text)
                        late.reschedule(asyncio.get_running_loop().time() + deadline)
                        await episode.take(said, recipe.test_reward)
            except TimeoutError:
                return None
            finally:
                await within(deadline, episode.close())
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
    windows: Count = 1
    """Histories of each task, as in `LearningHistories`: that many of its trials; or, of training, episodes in turn."""
    filter: HistoryFilter | None = None
    """Which histories are imitated; all of them if left out."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        check_run_folder(self.run)
        store = TrajectoryStore(self.run / TRAJECTORIES)
        most, size = recipe.trial.episodes, self.windows
        grouped: dict[TaskKey, dict[Hashable, list[Trajectory]]] = {}
        for t in store.read(range(len(store.records))):
            if t.turns and not t.stop.failed:
                trials = grouped.setdefault(t.record().task, {})
                trials.setdefault(t.trial if self.of == "trials" else None, []).append(t)
        whole = list[list[History]]()
        for trials in grouped.values():
            if self.of == "training":
                whole += [_windows(of, most, size) for of in trials.values()]
            else:
                each = [h for of in trials.values() for h in _windows(of, most, 1)]
                whole += [each[k : k + size] for k in range(0, len(each), size)]
        whole = [found for found in whole if len(found) == size]
        if not whole:
            raise ConfigError(
                f"{store.path} holds no {most} episodes of one of its {self.of}"
                f"{f', {size} times of one task' if size > 1 else ''}; set trial.episodes to fewer"
            )
        return samples_of(_drawn(whole, episodes, most, rng), self.filter, recipe, chat, rng)


class FileHistories(Demonstrations):
    """Histories from files of any tool (`rollout.formats`), failures too: the episodes of a task, in their order, are
    one. Files of others do not name tasks, so all that one of them holds is of one task; nor do they say what a turn
    earned, so an environment that is read there says it in words."""

    path: Path
    """A file, or a folder of files."""
    windows: Count = 1
    """Histories of each task, as in `LearningHistories`: episodes in turn."""
    filter: HistoryFilter | None = None
    """Which histories are imitated; all of them if left out."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        grouped: dict[str, list[Trajectory]] = {}
        for found in read_episodes(self.path):
            t = found.trajectory
            if t.turns and not t.stop.failed:
                of = t.task.id if found.judged else t.task.id.rpartition("/")[0]
                grouped.setdefault(of, []).append(_in_words(t, chat))
        most = recipe.trial.episodes
        whole = [found for of in grouped.values() if (found := _windows(of, most, self.windows))]
        if not whole:
            longest = max(map(len, grouped.values()), default=0)
            raise ConfigError(
                f"{self.path}: of no task there are {most * self.windows} episodes (of one there are {longest}); set "
                "trial.episodes to fewer"
            )
        return samples_of(_drawn(whole, episodes, most, rng), self.filter, recipe, chat, rng)


def _windows(of: list[Trajectory], most: int, windows: int) -> list[History]:
    """So many histories of `most` episodes in turn, evenly apart; none where there are too few."""
    if len(of) < most * windows:
        return []
    return [History([of[(k * windows + w) * len(of) // (most * windows)] for k in range(most)]) for w in range(windows)]


def _drawn(whole: list[list[History]], episodes: int, most: int, rng: random.Random) -> list[History]:
    """Histories of some of the tasks, of so many episodes in all."""
    size = len(whole[0])
    chosen = rng.sample(whole, min(len(whole), -(-episodes // (most * size))))
    return [replace(h, pair=number if size > 1 else -1) for number, of in enumerate(chosen) for h in of]


def _in_words(t: Trajectory, chat: "ChatFormat") -> Trajectory:
    """An episode whose turns are what the policy would have sampled to say their texts."""
    turns = list[Turn]()
    for turn in t.turns:
        ids = [*chat.encode(turn.text), *chat.close]
        known = {"behaviour_logprobs": [0.0] * len(ids), "versions": [0] * len(ids)}
        turns.append(replace(turn, prompt_ids=[], given=0, sampled_ids=ids, **known))
    return replace(t, turns=turns)


def samples_of(
    found: Sequence[History], by: HistoryFilter | None, recipe: "Recipe", chat: "ChatFormat", rng: random.Random
) -> list[Sample]:
    """The samples of histories, of those that a filter leaves if there is one.

    Raises:
        ConfigError: histories of one task are to be compared, and none of them is one sample.
    """
    kept = by(found, rng) if by else found
    samples = [sample for number, h in enumerate(kept) for sample in history_samples(h, recipe, chat, number)]
    if any(h.pair >= 0 for h in kept) and all(s.pair < 0 for s in samples):
        raise ConfigError(
            "histories of one task are compared as a whole (windows), and here each turn is read by itself: prompts "
            "must only grow (context.type=trial_history) and a label be as long as what was done; or set windows=1"
        )
    return samples


def history_samples(history: History, recipe: "Recipe", chat: "ChatFormat", number: int = 0) -> list[Sample]:
    """A history as samples: one, where prompts only grow and a label is as long as what was said; one a turn if not.

    Every token that is imitated weighs alike, and together as much as the sample has tokens, so that the mean over
    tokens is that over those that are imitated.
    Only a history that is one sample is compared with its partner.
    """
    episodes = [replace(t, ordinal=k, after=tuple(range(k))) for k, t in enumerate(history.episodes)]
    turns = [(t, n) for t in episodes for n in range(t.length)]
    said = [turn.ids for t in episodes for turn in t.turns]
    ids_of = cache(lambda text: [*chat.encode(text), *chat.close])
    wanted = [ids_of(text) for labels in history.labels for text in labels] or said

    def past(t: Trajectory, turn: int) -> Past:
        before = t.turns[:turn]
        return Past(
            t.task.goal,
            [u.observation for u in t.turns[: turn + 1]],
            [u.ids for u in before],
            [u.reward for u in before],
            episodes[: t.ordinal],
            budget=t.budget,
            spent=spent_before(t.turns[: turn + 1], [len(u.ids) for u in before]),
            actions=[u.action for u in before],
        )

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
    streams = {ADVANTAGES: [w * scale for w in weights]}
    return [Sample(parts[0], ids, streams, number, number, pair=history.pair, targets=targets)]
