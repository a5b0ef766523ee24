"""Evaluation: a player on held-out tasks under the test budget.

What always holds: task k of an evaluation has the same environment seed and the same sampling seed whatever the
policy, the iteration or the arm of a claim, so that two evaluations of one recipe seed are paired task by task;
failed episodes enter no mean, and no measure that a failed one was needed for.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from longstride.core.errors import ConfigError, TaskError
from longstride.core.generators import driven
from longstride.core.seeds import derive
from longstride.core.task import DIFFICULTIES, Task
from longstride.core.trajectory import Trajectory, by_trial
from longstride.engines.base import Engine
from longstride.envs.acting import acting
from longstride.learner import parallel
from longstride.models.api import ChatAPI
from longstride.models.load import Policy
from longstride.rollout.chat_player import ChatPlayer
from longstride.rollout.companions import CompanionPlayer
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import LanguagePlayer, Player, ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.rollout.summary import MEASURES, Measure, costs, summarise
from longstride.run.policies import companion_players, load
from longstride.run.recipe import Recipe
from longstride.stats import mean_interval, pass_at_k, wilson_interval
from longstride.strategies import Direct, EvalEpisode, Strategy
from longstride.strategies.base import Load
from longstride.strategies.baselines import BASELINES

Progress = Callable[[int, int], None]


class Result(NamedTuple):
    """One evaluation."""

    summary: dict[str, Any]
    """See `rollout.summary.summarise`; its `costs` are of all that was played, whatever counts."""
    interval: tuple[float, float]
    """95 % Wilson interval of the success rate over the episodes that did not fail."""
    episodes: list[EvalEpisode]
    """Of all tasks, in their order; then of all of them again, for each further attempt."""
    tasks: int
    """How many tasks there are."""
    further: tuple[Measure, ...] = ()
    """What the recipe measures besides `rollout.summary.MEASURES`."""
    trial: int = 1
    """How many attempts of a task that follow one another are a trial."""

    @property
    def trajectories(self) -> list[Trajectory]:
        """The trajectories that count, in the order of `episodes`."""
        return [e.trajectory for e in self.episodes]

    @property
    def outcomes(self) -> list[float | None]:
        """Reward of each task, in order, the mean of its attempts; None where all of them failed."""
        return self._means(lambda e: e.trajectory.reward)

    @property
    def measures(self) -> dict[str, list[float | None]]:
        """What claims compare, by name and task: means over the attempts of `rollout.summary.MEASURES`, of what the
        recipe measures besides, and of what the strategy measured; `spent_tokens`, all that were sampled for the task,
        whatever counts; `total_tokens`, these and what a scorer or guide read; `success_easy` and so on, None where a
        task is of another difficulty; and where there are several attempts, the chance that one of k solves it
        (`pass@k`, for k of 2, 4, 8 and so on). In trials instead, for each place k in them: `success@k` and `reward@k`
        of the k-th episodes, likewise what the recipe measures besides, and `within@k`, whether one of the first k was
        a success."""
        measured = MEASURES | {m.name: m for m in self.further}
        found = {name: self._means(lambda e, of=measure: of(e.trajectory)) for name, measure in measured.items()}
        found["spent_tokens"] = self._means(lambda e: e.spent_tokens)
        found["total_tokens"] = self._means(lambda e: e.total_tokens)
        for name in dict.fromkeys(name for e in self.episodes for name in e.measures):
            found[name] = self._means(lambda e, name=name: e.measures[name])
        difficulties = [e.trajectory.task.difficulty for e in self.episodes[: self.tasks]]
        for d in DIFFICULTIES:
            found[f"success_{d}"] = [
                s if difficulty == d else None for s, difficulty in zip(found["success"], difficulties, strict=True)
            ]
        for k in range(self.trial if self.trial > 1 else 0):
            for name in ("success", "reward", *(m.name for m in self.further)):
                found[f"{name}@{k + 1}"] = self._means(
                    lambda e, k=k, of=measured[name]: of(e.trajectory) if e.trajectory.place == k else None
                )
            found[f"within@{k + 1}"] = self._within(k + 1)
        k = 2
        while self.trial == 1 and k * self.tasks <= len(self.episodes):
            found[f"pass@{k}"] = [
                pass_at_k(len(attempts), sum(e.trajectory.success for e in attempts), k) if len(attempts) >= k else None
                for attempts in self._by_task
            ]
            k *= 2
        return found

    @property
    def _by_task(self) -> list[list[EvalEpisode]]:
        """The attempts of each task that did not fail."""
        return [[e for e in self.episodes[k :: self.tasks] if not e.trajectory.stop.failed] for k in range(self.tasks)]

    def _within(self, k: int) -> list[float | None]:
        """Of each task, the share of its trials with a success among their first k episodes."""
        solved = (
            [any(t.success for t in trial if t.place < k) for trial in by_trial([e.trajectory for e in attempts])]
            for attempts in self._by_task
        )
        return [round(fmean(values), 6) if values else None for values in solved]

    def _means(self, measure: Callable[[EvalEpisode], float | None]) -> list[float | None]:
        measured = ([v for e in attempts if (v := measure(e)) is not None] for attempts in self._by_task)
        return [round(fmean(values), 6) if values else None for values in measured]


def evaluate_player(
    player: Player,
    recipe: Recipe,
    tasks: Sequence[Task],
    strategy: Strategy | None = None,
    progress: Progress | None = None,
    loading: Load = load,
) -> Result:
    """Plays each task `evaluation.attempts` times under the recipe's test budget, or so many trials of it; `strategy`
    wraps the environments, and says what is played besides. The first attempt of a task does not depend on how many
    there are.

    What counts is `Recipe.test_reward`; a strategy that takes another model has it from `loading`.

    Raises:
        TaskError: there are no tasks.
    """
    if not tasks:
        raise TaskError("there are no tasks to evaluate on: give one or more")
    strategy = strategy or Direct()
    player = strategy.players(player, loading)
    budgets = {d: strategy.budget(recipe.test_budget.at(1, d)) for d in DIFFICULTIES}
    trial, length = recipe.trial, recipe.trial.episodes

    def plan(n: int, k: int) -> Plan:
        """Of the n-th episode of task k."""
        task, place = tasks[k], n % length
        own = (place,) if place and trial.start == "new" else ()
        after = tuple(m * len(tasks) + k for m in range(n - place, n))
        seed, budget = derive(recipe.seed, "eval", k, *own), budgets[task.difficulty]
        return Plan(task, n * len(tasks) + k, seed, budget, group=k, trial=trial, after=after)

    plans = [plan(n, k) for n in range(recipe.evaluation.attempts * length) for k in range(len(tasks))]
    pool = _pool(player, recipe, strategy)
    played: list[Trajectory] = []

    def play(stage: Sequence[Plan]) -> list[Trajectory]:
        before = len(played)  # a search asks for its steps one after the other, so what is to be done grows

        def watch(done: int, total: int) -> None:
            if progress:
                progress(before + done, before + total)

        found = _shared(stage, lambda mine: pool.run(mine, watch))
        played.extend(found)
        return found

    episodes = driven(strategy.run(plans, player), play)
    trajectories = [e.trajectory for e in episodes]
    summary = summarise(trajectories) | costs(played)
    counted = [t for t in trajectories if not t.stop.failed]
    return Result(summary, success_interval(counted), episodes, len(tasks), recipe.evaluation.measures, length)


def success_interval(counted: Sequence[Trajectory]) -> tuple[float, float]:
    """The interval of 95 % of a success rate: Wilson's where each task was played once, or one task alone; else that of
    the mean over tasks, since episodes of one task are alike."""
    by_task: dict[tuple[str, int], list[bool]] = {}
    for t in counted:
        by_task.setdefault((t.task.id, t.group), []).append(t.success)
    if len(by_task) < 2 or len(by_task) == len(counted):
        return wilson_interval(sum(t.success for t in counted), len(counted)) if counted else (0.0, 1.0)
    rates = [fmean(of) for of in by_task.values()]
    if len(set(rates)) == 1:  # a bootstrap has no width there
        return wilson_interval(round(rates[0] * len(rates)), len(rates))
    low, high = mean_interval(rates, seed=0)
    return max(0.0, low), min(1.0, high)


def _pool(player: Player, recipe: Recipe, strategy: Strategy) -> Pool:
    actions = "text" if isinstance(player, ScriptedPlayer) else recipe.actions
    make_env = lambda: acting(strategy.wrap(recipe.tasks.env()), actions)  # noqa: E731
    return Pool(player, make_env, recipe.test_reward, recipe.tasks.at_once, recipe.pool)


def go_on(
    player: Player, recipe: Recipe, cut: Sequence[Trajectory], turns: int, progress: Progress | None = None
) -> list[Trajectory]:
    """Episodes that a limit of turns cut, with as many turns as `turns` says: what was said is said again in a fresh
    environment, and then the policy goes on. They are the episodes that would have come of the larger limit."""
    plans = [
        Plan(
            t.task,
            t.ordinal,
            t.seed,
            t.budget.model_copy(update={"turns": turns}),
            group=t.group,
            history=PastTurn.of(t.turns),
            env_seed=t.env_seed,
        )
        for t in cut
    ]
    return _pool(player, recipe, Direct()).run(plans, progress)


def _shared(stage: Sequence[Plan], play: Callable[[list[Plan]], list[Trajectory]]) -> list[Trajectory]:
    """Plays this process's share of a stage, of whole trials; returns what all of them played."""
    trials: dict[int, list[Plan]] = {}
    for plan in stage:
        trials.setdefault(plan.first, []).append(plan)
    mine = parallel.scatter(list(trials.values()))
    played = iter(play([plan for trial in mine for plan in trial]))
    found = parallel.unscatter([[next(played) for _ in trial] for trial in mine])
    by_ordinal = {t.ordinal: t for trial in found for t in trial}
    return [by_ordinal[plan.ordinal] for plan in stage]


def evaluate_policy(
    policy: Policy | ChatAPI,
    recipe: Recipe,
    tasks: Sequence[Task] | None = None,
    strategy: Strategy | None = None,
    progress: Progress | None = None,
    loading: Load = load,
) -> Result:
    """Evaluates a policy under a recipe's settings.

    Args:
        policy: what is evaluated: a model, or one behind a chat API.
        recipe: gives environment, context, sampling, test budget, reward and seed.
        tasks: the recipe's held-out tasks if left out.
        strategy: `Direct()` if left out.
        progress: called with (episodes done, all).
        loading: gives the other model that a strategy takes.
    """
    tasks = recipe.held_out() if tasks is None else tasks
    return evaluate_player(language_player(policy, recipe, testing=True), recipe, tasks, strategy, progress, loading)


def evaluate_baselines(
    recipe: Recipe, tasks: Sequence[Task] | None = None, progress: Progress | None = None
) -> dict[str, Result]:
    """The trivial policies (`strategies.baselines`) on the same tasks and seeds, by name."""
    tasks = recipe.held_out() if tasks is None else tasks
    return {
        name: evaluate_player(ScriptedPlayer(choose), recipe, tasks, progress=progress)
        for name, choose in BASELINES.items()
    }


def language_player(
    policy: Policy | ChatAPI,
    recipe: Recipe,
    engine: Engine | None = None,
    companions: Mapping[str, Player] | None = None,
    testing: bool = False,
) -> Player:
    """The policy as a player, beside the companions of its recipe. Engine and companions are its own unless they are
    given; `testing` says which sampling is meant."""
    budgets = (recipe.budget, recipe.test_budget)
    sampling = (recipe.evaluation.sampling if testing else None) or recipe.sampling
    if isinstance(policy, ChatAPI):
        if recipe.test_budget.thought_tokens is not None:
            raise ConfigError(
                f"test_budget.thought_tokens limits thoughts, and {policy} is asked for whole turns; leave it out"
            )
        player = ChatPlayer(policy, recipe.chat, recipe.context, sampling)
        others = companion_players(policy, recipe)
        return CompanionPlayer(player, others) if others else player
    if policy.chat.thought_end is None and any(budget.thought_tokens is not None for budget in budgets):
        raise ConfigError(
            f"budget.thought_tokens limits what a reasoning model thinks, and {policy.name} has no tokens <think> and "
            "</think>; leave it out"
        )
    engine = engine or recipe.engine.make(policy, 0, [sampling])
    player = LanguagePlayer(engine, policy.chat, recipe.context, sampling)
    companions = companion_players(policy, recipe) if companions is None else companions
    if not companions:
        return player
    return CompanionPlayer(player, companions)
