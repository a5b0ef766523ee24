"""Learners that know nothing of a language: Thompson sampling, UCB, LinUCB, Q-learning. They play the tasks that a
policy plays, so that it can be compared with them (`PlayedBy`), and their learning can be imitated
(`run.histories.LearningHistories`).

What always holds: a learner goes through a whole trial, and remembers its earlier episodes; it sees what a policy sees
(the text of observations and what each turn earned) and chooses from what the environment says can be done
(`envs.base.HasChoices`); what is random in it derives from the trial and the turn.
"""

import math
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.content import Content, text_in
from longstride.core.errors import ConfigError
from longstride.core.numbers import Positive, Share, Weight
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Describing, HasChoices, Knowing
from longstride.rollout.episode import Episode
from longstride.rollout.players import Player, ScriptedPlayer
from longstride.strategies.base import Load, Strategy, settings_in


class Learning(ABC):
    """A learner at work in a trial.

    Args:
        env: the environment of its first episode; those of later ones offer the same choices.
    """

    def __init__(self, env: object) -> None:
        if not isinstance(env, HasChoices):
            raise ConfigError(
                f"a learner needs an environment that says what can be done in it; {type(env).__name__} has no "
                "`choices`: write one that returns the actions as words, and set actions=text"
            )
        self.choices = tuple(env.choices())

    @abstractmethod
    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        """One of the choices, for an observation."""

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:  # noqa: B027 (not all remember)
        """Takes in what a choice earned, and what was seen after it; None where the episode ended."""

    def first_of(self, values: Sequence[float], rng: random.Random) -> str:
        """The choice of the largest value, any of those that are equal."""
        best = max(values)
        return rng.choice([choice for choice, value in zip(self.choices, values, strict=True) if value == best])


class TrialLearner(Component):
    """Family: an algorithm that learns while it acts."""

    @abstractmethod
    def begin(self, env: object) -> Learning:
        """A learner that knows nothing yet.

        Raises:
            ConfigError: the environment does not offer what it needs.
        """

    @property
    def name(self) -> str:
        """What metrics rows call it: different wherever fields are."""
        return self.type_name() + settings_in(self)


class AnyChoice(TrialLearner):
    """Any choice, each as likely: learns nothing."""

    def begin(self, env: object) -> Learning:
        return _AnyChoice(env)


class _AnyChoice(Learning):
    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        return rng.choice(self.choices)


class Optimal(TrialLearner):
    """Knows the hidden rule: the first of what the environment says is best (`envs.base.Knowing`)."""

    def begin(self, env: object) -> Learning:
        if not isinstance(env, Knowing):
            raise ConfigError(
                f"who knows what is best needs an environment that says it; {type(env).__name__} has no `best`: write "
                "one that returns the best of its choices, or imitate a learner"
            )
        return _Optimal(env)


class _Optimal(Learning):
    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        assert isinstance(env, Knowing)
        return env.best()[0]


class Distracted(TrialLearner):
    """Another learner that now and then makes any choice instead, and learns from it."""

    learner: TrialLearner
    """Who it is otherwise."""
    share: Share = 0.5
    """Share of turns in which it makes any choice."""

    def begin(self, env: object) -> Learning:
        return _Distracted(env, self)

    @property
    def name(self) -> str:
        return f"{self.learner.name}_{self.share:g}"


class _Distracted(Learning):
    def __init__(self, env: object, learner: Distracted) -> None:
        super().__init__(env)
        self._share, self._within = learner.share, learner.learner.begin(env)

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        mine = self._within.choose(seen, env, rng)
        return rng.choice(self.choices) if rng.random() < self._share else mine

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        self._within.saw(seen, choice, reward, after)


class OneOf(TrialLearner):
    """One of several learners, drawn anew for each trial."""

    learners: tuple[TrialLearner, ...] = Field(min_length=1)
    weights: tuple[Weight, ...] = ()
    """How often each is drawn; all as often, if empty."""

    @model_validator(mode="after")
    def _fits(self) -> "OneOf":
        if self.weights and (len(self.weights) != len(self.learners) or not sum(self.weights)):
            raise ValueError(f"expected weights of {len(self.learners)} learners, not all 0; got {self.weights}")
        return self

    @property
    def name(self) -> str:
        return "_".join(["one_of", *(of.name for of in self.learners), *(f"{weight:g}" for weight in self.weights)])

    def begin(self, env: object) -> Learning:
        return _OneOf(env, [learner.begin(env) for learner in self.learners], self.weights)


class _OneOf(Learning):
    def __init__(self, env: object, learners: Sequence[Learning], weights: Sequence[float]) -> None:
        super().__init__(env)
        self._learners, self._weights = learners, weights or None
        self._drawn: Learning | None = None

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        if self._drawn is None:
            (self._drawn,) = rng.choices(self._learners, self._weights)
        return self._drawn.choose(seen, env, rng)

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        for learner in self._learners:
            learner.saw(seen, choice, reward, after)


@dataclass(slots=True)
class _Count:
    """What is known of the choices at an observation."""

    pulls: list[int]
    earned: list[float]


class _Counting(Learning):
    """Counts what each choice earned, apart for each observation."""

    def __init__(self, env: object) -> None:
        super().__init__(env)
        n = len(self.choices)
        self._known: defaultdict[str, _Count] = defaultdict(lambda: _Count([0] * n, [0.0] * n))

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        known, k = self._known[seen], self.choices.index(choice)
        known.pulls[k] += 1
        known.earned[k] += reward


class Thompson(TrialLearner):
    """Thompson sampling for rewards from 0 to 1: the choice that is best in a draw from its posterior, Beta(1, 1) at
    first, at each observation apart (Agrawal and Goyal, arXiv 1111.1797)."""

    def begin(self, env: object) -> Learning:
        return _Thompson(env)


class _Thompson(_Counting):
    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        if not 0 <= reward <= 1:
            raise ConfigError(
                f"thompson knows rewards from 0 to 1, and a turn earned {reward:g}; take gaussian_thompson in its "
                "place (in cloning.demonstrations.learner, in evaluation.strategies)"
            )
        super().saw(seen, choice, reward, after)

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        known = self._known[seen]
        pairs = zip(known.pulls, known.earned, strict=True)
        return self.first_of([rng.betavariate(1 + e, 1 + n - e) for n, e in pairs], rng)


class GaussianThompson(TrialLearner):
    """Thompson sampling for rewards with Gaussian noise of a known deviation: the choice that is best in a draw from
    its posterior, which is Gaussian too, at each observation apart. The prior is that of DPT's authors: the mean and
    the variance of means that are drawn between 0 and 1."""

    deviation: Positive = 0.3
    """Of the noise."""
    mean: float = 0.5
    """Of the prior."""
    variance: Positive = 1 / 12
    """Of the prior."""

    def begin(self, env: object) -> Learning:
        return _GaussianThompson(env, self)

    def posterior(self, pulls: int, earned: float) -> tuple[float, float]:
        """Mean and variance of what a choice pays that earned so much in so many pulls."""
        precision = 1 / self.variance + pulls / self.deviation**2
        return (self.mean / self.variance + earned / self.deviation**2) / precision, 1 / precision


class _GaussianThompson(_Counting):
    def __init__(self, env: object, learner: GaussianThompson) -> None:
        super().__init__(env)
        self._of = learner

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        known = self._known[seen]
        believed = [self._of.posterior(n, e) for n, e in zip(known.pulls, known.earned, strict=True)]
        return self.first_of([rng.gauss(mean, math.sqrt(variance)) for mean, variance in believed], rng)


class UCB(TrialLearner):
    """UCB1 (Auer et al., 2002, Machine Learning 47): mean + bonus sqrt(log t / n), at each observation apart; each
    choice is tried once first."""

    bonus: Positive = 2**0.5

    def begin(self, env: object) -> Learning:
        return _UCB(env, self.bonus)


class _UCB(_Counting):
    def __init__(self, env: object, bonus: float) -> None:
        super().__init__(env)
        self._bonus = bonus

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        known, t = self._known[seen], math.log(max(1, sum(self._known[seen].pulls)))
        pairs = zip(known.pulls, known.earned, strict=True)
        return self.first_of([e / n + self._bonus * math.sqrt(t / n) if n else math.inf for n, e in pairs], rng)


class GreedyMean(TrialLearner):
    """The choice with the best mean so far; each is tried once first (empirical mean in DPT, arXiv 2306.14892)."""

    def begin(self, env: object) -> Learning:
        return _UCB(env, 0.0)


class LinUCB(TrialLearner):
    """LinUCB (arXiv 1003.0146; as in arXiv 2310.08566): ridge regression of rewards on the features of choices
    (`envs.base.Describing`), and the choice with the largest <x, theta> + bonus sqrt(x' A^-1 x)."""

    bonus: Weight = 0.5
    """Of the width of the confidence set."""
    ridge: Positive = 1.0
    """A at first."""

    def begin(self, env: object) -> Learning:
        features = env.features() if isinstance(env, Describing) else ()
        if not len(features):
            raise ConfigError(
                f"LinUCB needs numbers that describe each choice; {type(env).__name__} gives none: write `features`, "
                "or take thompson or ucb"
            )
        return _LinUCB(env, self, np.asarray(features, float))


class _LinUCB(Learning):
    def __init__(self, env: object, learner: LinUCB, features_A_D: np.ndarray) -> None:
        super().__init__(env)
        # what a pull pays without theta stands in a feature of its own
        self._x_A_D = np.hstack([features_A_D, np.ones((len(features_A_D), 1))])
        self._bonus = learner.bonus
        dimensions = self._x_A_D.shape[1]
        self._inverse_D_D, self._b_D = np.eye(dimensions) / learner.ridge, np.zeros(dimensions)

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        width_A = np.sqrt(np.einsum("ad,de,ae->a", self._x_A_D, self._inverse_D_D, self._x_A_D))
        values_A = self._x_A_D @ self._inverse_D_D @ self._b_D + self._bonus * width_A
        return self.first_of([round(v, 12) for v in values_A.tolist()], rng)

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        x_D = self._x_A_D[self.choices.index(choice)]
        gain_D = self._inverse_D_D @ x_D
        self._inverse_D_D = self._inverse_D_D - np.outer(gain_D, gain_D) / (1 + x_D @ gain_D)  # Sherman and Morrison
        self._b_D = self._b_D + reward * x_D


class QLearning(TrialLearner):
    """Tabular Q-learning (Watkins, 1989): Q(s, a) += rate (r + discount max Q(s', .) - Q(s, a)), the observation being
    the state. All that is untried is thought to be worth `optimism`, so it is tried."""

    rate: Share = 1.0
    """1 is right where nothing is left to chance."""
    discount: Share = 0.9
    optimism: float = 1.0
    """Q of what was not tried yet."""
    epsilon: Share = 0.0
    """Share of turns with any choice."""

    def begin(self, env: object) -> Learning:
        return _QLearning(env, self)


class _QLearning(Learning):
    def __init__(self, env: object, learner: QLearning) -> None:
        super().__init__(env)
        self._of, n = learner, len(self.choices)
        self._q: defaultdict[str, list[float]] = defaultdict(lambda: [learner.optimism] * n)

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        if rng.random() < self._of.epsilon:
            return rng.choice(self.choices)
        return self.first_of(self._q[seen], rng)

    def saw(self, seen: str, choice: str, reward: float, after: str | None) -> None:
        q, k = self._q[seen], self.choices.index(choice)
        ahead = 0.0 if after is None else self._of.discount * max(self._q[after])
        q[k] += self._of.rate * (reward + ahead - q[k])


@dataclass(slots=True)
class Student:
    """A learner that is shown the turns of a trial, whoever took them."""

    learning: Learning
    _seen: dict[int, int] = field(default_factory=dict)
    """Of each episode, by ordinal, how many of its turns it was shown."""

    def watch(self, episodes: Sequence[Trajectory], now: Episode) -> None:
        """Takes in what it was not shown yet: of earlier episodes and of the present one."""
        for t in episodes:
            if self._seen.get(t.ordinal) != t.length:
                end = None if t.stop.terminated else t.final
                self._take(t, [*(turn.observation for turn in t.turns), end])
        self._take(now.trajectory, now.observations)

    def _take(self, t: Trajectory, seen: Sequence[Content | None]) -> None:
        for k in range(self._seen.get(t.ordinal, 0), t.length):
            turn, after = t.turns[k], seen[k + 1]
            if turn.action in self.learning.choices:
                later = None if after is None else text_in(after)
                self.learning.saw(text_in(turn.observation), turn.action, turn.reward, later)
        self._seen[t.ordinal] = t.length


def taking_turns(learner: TrialLearner) -> Callable[[Episode], str]:
    """What a learner says in the episodes of trials, which come to it in any order."""
    students: dict[int, Student] = {}

    def say(episode: Episode) -> str:
        plan = episode.plan
        student = students.get(plan.first)
        if student is None:
            student = students[plan.first] = Student(learner.begin(episode.env))
        student.watch(plan.earlier or (), episode)
        return student.learning.choose(episode.page, episode.env, stream(episode.turn_seed, "learner"))

    return say


class PlayedBy(Strategy):
    """A learner plays in place of the policy, and costs no tokens: what a policy is compared with that learns in its
    context."""

    learner: TrialLearner = Thompson()
    """Who."""

    @property
    def name(self) -> str:
        return self.learner.name

    def players(self, player: Player, load: Load) -> Player:
        return ScriptedPlayer(taking_turns(self.learner))
