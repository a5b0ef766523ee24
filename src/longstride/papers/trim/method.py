"""Routers of steps between a weak and a strong model, and how they act with language models (`RoutedSteps`) and are
learned, on training tasks (`learned`) or on the other half of those of an evaluation (`LearnedSteps`).

What always holds: a router sees scores, tokens and what was taken so far, and nothing of the text; the same routers act
in the exact problem, where each number is an array over tasks.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.core.seeds import derive, stream
from longstride.exact.worlds.routing import GRID, planned, seen
from longstride.rewards.probe import LinearHead
from longstride.rollout.episode import Plan
from longstride.rollout.players import LanguagePlayer, Player, with_ids
from longstride.run.recipe import Recipe
from longstride.strategies.base import EvalEpisode, EvalPlan, Load
from longstride.strategies.chosen import folded
from longstride.strategies.delegate import HandsOver, Pair, StepTaken, UnderWay
from longstride.strategies.search import log_odds

if TYPE_CHECKING:  # torch
    from longstride.models.load import Policy

ROUND = 2**24
"""Between the ordinals of two episodes of a task: more than an evaluation has."""
TAKEN = "taken"
"""In the evidence of an episode: its steps, each a `StepTaken`."""
FEATURES = "least score before", "product of scores before", "score", "tokens", "step"
"""What a learned router sees, as in the code of TRIM-Agg."""
MOST_TOKENS, MOST_STEPS = 100, 30
"""What tokens and steps are divided by; the steps as in the code."""


class StepRouter(Component):
    """Family: whether the strong model takes a step again."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What metrics rows call it."""

    @abstractmethod
    def chance(self, past: Sequence[StepTaken], score: Any, tokens: Any) -> Any:
        """The probability with which a step is taken again: 0 or 1, but where a router is learning.

        Args:
            past: the steps before it.
            score: of the weak model's try.
            tokens: of that try.
        """


class Threshold(StepRouter):
    """Again where the score is below a threshold (TRIM-Thr)."""

    below: Share = 0.35
    """The threshold that the code finds first errors with."""

    @property
    def name(self) -> str:
        return f"below_{self.below:g}"

    def chance(self, past: Sequence[StepTaken], score: Any, tokens: Any) -> Any:
        return np.asarray(score < self.below, float)


class Belief(StepRouter):
    """Again where success gains more than the price by it, given all scores so far (TRIM-POMDP): the optimum for who
    knows how often each model is right and how well the scorer sees. What is probably lost is left to the weak model."""

    weak: Share
    """Chance of a right step of the weak model."""
    strong: Share
    """Of the strong one."""
    noise: Positive
    """Of the scorer, as that of `rewards.simulated.StepScorer`."""
    length: Count
    """Steps of a solution; those beyond are planned as the last one."""
    price: Weight
    """Of a strong step, in successes."""
    scale: float = 1.0
    """The odds that a solution is right so far, of a score s before anything is known of it, are exp(scale log(s / (1 - s))
    + shift); see `fitted`."""
    shift: float = 0.0

    @property
    def name(self) -> str:
        return f"belief_at_{self.price:g}"

    def chance(self, past: Sequence[StepTaken], score: Any, tokens: Any) -> Any:
        belief: Any = 1.0
        for taken in past:
            right, before = seen(belief, self.weak, self._read(taken.tried))
            belief = np.where(taken.again, seen(before, self.strong, self._read(taken.score))[0], right)
        keep, again = planned(self.weak, self.strong, self.noise, self.length, self.price)[
            min(len(past), self.length - 1)
        ]
        right, before = seen(belief, self.weak, self._read(score))
        return np.asarray(np.interp(before, GRID, again) - self.price > np.interp(right, GRID, keep), float)

    def _read(self, score: Any) -> Any:
        if (self.scale, self.shift) == (1.0, 0.0):
            return score
        odds = np.vectorize(log_odds)(score)
        return 1 / (1 + np.exp(-(self.scale * odds + self.shift)))


def fitted(scores: Sequence[float], right: Sequence[bool], **changes: Any) -> Belief:
    """A belief whose reading of scores is fitted to labelled steps, as the observation model is to ProcessBench.

    Args:
        scores: of solutions as far as they went, by the guide that is to be used.
        right: whether all steps of each were right.
        changes: the other fields of `Belief`.

    Raises:
        ConfigError: the labels are all the same, or the scores do not rise with them.
    """
    odds_N, right_N = np.array([log_odds(s) for s in scores]), np.array(right, bool)
    try:
        head = LinearHead.fit(odds_N[:, None], right_N, decay=1e-4)
    except ValueError as e:
        raise ConfigError(f"a belief is fitted to scores of right and of wrong solutions: {e}") from e
    scale = float(head.weight_D[0])
    if scale <= 0:
        raise ConfigError("the scores are no higher where solutions are right; a router needs a scorer that sees")
    prior = float(log_odds(right_N.mean()))
    apart = scale * float(odds_N[right_N].mean() - odds_N[~right_N].mean())  # 4 / noise^2, if noise is normal
    return Belief(scale=scale, shift=head.bias - prior, noise=2 / sqrt(apart), **changes)


class Logistic(StepRouter):
    """A policy over what was seen (`FEATURES`), learned by `learned` (TRIM-Agg)."""

    weights: Annotated[tuple[float, ...], Field(min_length=6, max_length=6)] = (0.0,) * 6
    """Of each feature, and the constant."""
    explores: bool = False
    """Whether it draws what it does, as it must to learn; else it does what is likelier."""

    @property
    def name(self) -> str:
        return "_".join(["logistic", *(f"{w:.3g}" for w in self.weights), *["explores"] * self.explores])

    def chance(self, past: Sequence[StepTaken], score: Any, tokens: Any) -> Any:
        p = self.drawn(features(past, score, tokens))
        return p if self.explores else np.asarray(p > 0.5, float)

    def drawn(self, seen_NF: np.ndarray) -> np.ndarray:
        """[N] the probability of each step to be taken again by a router that explores, given `features`."""
        return 1 / (1 + np.exp(-(seen_NF @ np.array(self.weights[:-1]) + self.weights[-1])))


def features(past: Sequence[StepTaken], score: Any, tokens: Any) -> np.ndarray:
    """[5] or [N, 5]: see `FEATURES`. Before the first step scores are 1."""
    kept = np.array([taken.score for taken in past] or [np.ones_like(score, float)], float)
    rest = [score, np.asarray(tokens) / MOST_TOKENS, np.full_like(score, len(past) / MOST_STEPS, float)]
    return np.stack(np.broadcast_arrays(kept.min(0), kept.prod(0), *rest), -1)


class Routes(NamedTuple):
    """What a router that explores did in one episode."""

    seen_TF: np.ndarray
    """Features of each step."""
    again_T: np.ndarray
    """Whether it was taken again."""
    worth: float
    """Success less the price of the strong model's tokens."""

    @classmethod
    def of(cls, episode: EvalEpisode) -> "Routes":
        """Of an episode that `RoutedSteps` played."""
        taken = [StepTaken(*row) for row in episode.trajectory.evidence[TAKEN]]
        seen_TF = np.array([features(taken[:k], t.tried, t.tokens) for k, t in enumerate(taken)])
        return cls(seen_TF, np.array([t.again for t in taken], float), episode.measures["worth"] or 0.0)

    @classmethod
    def of_all(cls, episodes: Sequence[EvalEpisode]) -> "list[Routes]":
        """Of those that did not fail."""
        return [cls.of(e) for e in episodes if e.measures["worth"] is not None]


def improved(router: Logistic, played: Sequence[Routes], rate: float) -> Logistic:
    """The router after a step of policy gradient on episodes that it explored: the mean over episodes of (worth - mean
    worth) times the slope of the log-probability of what was done, in standard deviations of the worth; the router as it
    is where there are none."""
    if not played:
        return router
    worth_N = np.array([r.worth for r in played])
    spread = worth_N.std()
    slope = np.zeros(len(router.weights))
    for r, advantage in zip(played, (worth_N - worth_N.mean()) / (spread or 1.0), strict=True):
        seen_TE = np.column_stack([r.seen_TF, np.ones(len(r.seen_TF))])
        slope += advantage * ((r.again_T - router.drawn(r.seen_TF)) @ seen_TE)
    weights = np.array(router.weights) + rate * slope / len(played)
    return router.replace(weights=tuple(map(float, weights)))


class RoutedSteps(HandsOver):
    """Steps that a router gives to a stronger model. Measures, beside those of `delegate`: `worth`, success less
    `per_token` for each token of the strong model."""

    rescores: ClassVar[bool] = True
    router: StepRouter = Threshold()
    """Which steps."""
    each: Literal["episode", "turn", "step"] = "step"
    """What is tried at a time: whole tasks are what the paper compares with."""
    per_token: Weight = 8e-4
    """What a token of the strong model costs, in successes (lambda); the default is the code's."""
    weak: Literal["policy", "model"] = "policy"
    """Who is the weak one. In a run that trains the policy may be the strong one, and `model` the weak."""

    @model_validator(mode="after")
    def _tells_who_is_weak(self) -> "RoutedSteps":
        if self.weak == "model" and not isinstance(self.model, str):
            raise ValueError("weak=model needs a model that can be loaded here, and not one behind a chat API")
        return self

    @property
    def name(self) -> str:
        return self._named(self.router.name) + "_which_is_weak" * (self.weak == "model")

    def players(self, player: Player, load: Load) -> Player:
        pair = super().players(player, load)
        assert isinstance(pair, Pair)
        if self.weak == "policy":
            return pair
        return Pair(with_ids(pair.other, "a weak model tries steps"), pair.policy, pair.engine)

    def doubts(self, task: UnderWay, score: float, tokens: int) -> bool:
        draw = stream(task.plan.seed, "route", task.plan.ordinal, len(task.taken)).random()
        return draw < float(self.router.chance(task.taken, score, tokens))

    def _ended(self, task: UnderWay) -> EvalEpisode:
        ended = super()._ended(task)
        t = ended.trajectory
        worth = None if t.stop.failed else t.success - self.per_token * task.others
        marked = replace(t, evidence=t.evidence | {TAKEN: [list(taken) for taken in task.taken]})
        return ended._replace(trajectory=marked, measures={**ended.measures, "worth": worth})


class LearnedSteps(RoutedSteps):
    """`RoutedSteps` by a router that learned on the other half of the tasks (TRIM-Agg), so that what counts is of tasks
    that it has not seen. A further measure, `learning_tokens`: what that took for each task, by both models."""

    router: Logistic = Logistic()
    """Where learning begins."""
    rounds: Count = 10
    """Of episodes of each half, each with a step of policy gradient behind it."""
    rate: Positive = 1.0
    """Of a step."""

    @property
    def name(self) -> str:
        return f"{super().name}_after_{self.rounds}_rounds_at_{self.rate:g}"

    def shared(self, plans: Sequence[Plan], player: Pair[LanguagePlayer]) -> EvalPlan:
        found: dict[int, EvalEpisode] = {}
        halves = folded([plan.group for plan in plans], [0] * len(plans))
        for half in (0, 1):
            router, spent = self.router, 0
            others = [plan for plan, own in zip(plans, halves, strict=True) if own != half]
            own = [k for k, of in enumerate(halves) if of == half]
            for n in range(1, self.rounds + 1):
                explorer = self.replace(router=router.replace(explores=True))
                again = [replace(plan, ordinal=n * ROUND + plan.ordinal) for plan in others]
                explored = yield from RoutedSteps.shared(explorer, again, player)
                router = improved(router, Routes.of_all(explored), self.rate)
                spent += sum(e.total_tokens for e in explored)
            routed = self.replace(router=router.replace(explores=False))
            came = yield from RoutedSteps.shared(routed, [plans[k] for k in own], player)
            taken = {"learning_tokens": spent / max(1, len(own))}
            found |= {k: e._replace(measures={**e.measures, **taken}) for k, e in zip(own, came, strict=True)}
        return [found[k] for k in range(len(plans))]


def learned(
    policy: "Policy", recipe: Recipe, strategy: RoutedSteps, rounds: int = 20, tasks: int = 64, rate: float = 1.0
) -> Logistic:
    """A router that learned on training tasks.

    Args:
        policy: the weak model.
        recipe: gives tasks, budget, context and seed.
        strategy: how steps are routed, all but its router.
        rounds: of episodes, each with a step of policy gradient behind it.
        tasks: of a round.
        rate: of a step.
    """
    from longstride.run.evaluation import evaluate_policy  # torch

    router = Logistic()
    for k in range(rounds):
        drawn = recipe.tasks.sample(stream(recipe.seed, "router", k), tasks)
        own = recipe.replace(seed=derive(recipe.seed, "router", k))
        found = evaluate_policy(policy, own, drawn, strategy.replace(router=router.replace(explores=True)))
        router = improved(router, Routes.of_all(found.episodes), rate)
    return router.replace(explores=False)
