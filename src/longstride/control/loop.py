"""The loop of control: collect -> update, an evaluation, a checkpoint; offline, warm-up and online are phases of it.

What always holds: iteration i depends on the recipe, the weights and what was collected so far, and on nothing else, so
a resumed run computes the numbers of an uninterrupted one; all episodes of an iteration are collected before its
updates; the run folder holds the last complete iteration whenever the process ends. A checkpoint is
`trainer.safetensors` (weights, optimisers, collected transitions) and `trainer.json`; the offline data is made again
from the seed.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from longstride.control.data import TransitionStore
from longstride.control.envs import ControlEpisode, Spec, play_beside
from longstride.control.evaluation import (
    Tested,
    data_row,
    evaluate_beside,
    evaluation_row,
    measures_of,
    outcomes_of,
    paths_of,
    restored,
    summary_of,
)
from longstride.control.learner import ControlLearner, act_together, train_together
from longstride.control.recipe import ControlRecipe, TrainingPhase
from longstride.core.errors import ConfigError, LongstrideWarning, RunError
from longstride.core.implementation import implements
from longstride.core.seeds import derive
from longstride.run.checkpoint import Checkpoint
from longstride.run.folder import RunFiles, number_of, read_rows
from longstride.run.listener import Listener, Silent
from longstride.run.placement import Placement


@implements(ControlRecipe)
def train(
    recipe: ControlRecipe,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> None:
    """See `Experiment.train`; the last phase may become longer.

    Raises:
        ConfigError: it is to be placed elsewhere than in this process.
    """
    if placement is not None:
        raise ConfigError(f"{recipe.name} is a recipe of control and runs in one process; leave out --cluster")
    _train([ControlRun(recipe, folder, listener or Silent(), resume)])


@implements(ControlRecipe, "beside")
def train_beside(runs: Mapping[Path, tuple[ControlRecipe, Listener]]) -> None:
    """See `run.experiment.train_beside`: recipes and listeners by folder."""
    _train([ControlRun(recipe, folder, listener, True, len(runs)) for folder, (recipe, listener) in runs.items()])


def _train(runs: Sequence["ControlRun"]) -> None:
    """Trains runs of one answer to `ControlRecipe.beside`."""
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(run.undone_before_the_start())
            stack.enter_context(run.explains_trouble())
        recipe = runs[0].recipe
        for run in runs:
            run.load()
        if begun := [run for run in runs if run.checkpoint is None]:
            for run in begun:
                if len(run.offline):
                    run.row("data", **data_row(run.offline, run.recipe.tasks.spec))
                    run.warn_of_boxed_subgoals()
            _evaluate(begun)
            for run in begun:
                run.save()
        for i in range(1, recipe.iterations + 1):
            if now := [run for run in runs if run.iteration == i - 1]:
                _iterate(now, i)


def _iterate(runs: Sequence["ControlRun"], i: int) -> None:
    """Iteration i of runs that have all come as far."""
    began, recipe = time.perf_counter(), runs[0].recipe
    phase, horizon = recipe.phase(i), recipe.horizon.limit_at(i)

    collected = _collect(runs, phase.episodes, horizon, i) if phase.episodes else [[] for _ in runs]
    updates: dict[ControlRun, int] = {}
    for run, episodes in zip(runs, collected, strict=True):
        run.gather(i, episodes)
        updates[run] = phase.updates + round(phase.utd * sum(e.length for e in episodes))

    metrics: dict[ControlRun, dict[str, float]] = {}
    alike: dict[tuple[int, ...], list[ControlRun]] = {}
    for run in runs:  # what has learned more, or learns more now, learns apart
        alike.setdefault((run.learner.updates, updates[run], *run.rows_of(phase, updates[run])), []).append(run)
    for (_, count, *rows), group in alike.items():
        sources = [list(zip((run.offline, run.gathered, run.demonstrated), rows, strict=True)) for run in group]
        learners, progress = [run.learner for run in group], group[0].progress("train")
        how = (phase.conservative, progress, phase.cloning, phase.reptile, phase.learning)
        metrics |= zip(group, train_together(learners, count, sources, *how), strict=True)

    seconds = (time.perf_counter() - began) / len(runs)
    for run, episodes in zip(runs, collected, strict=True):
        run.row(
            "train",
            horizon=horizon,
            summary=summary_of(episodes),
            collected=len(episodes),
            env_steps=sum(e.length for e in episodes),
            updates=updates[run],
            **metrics[run],
            train_seconds=seconds,
        )
    if i % recipe.evaluation.every == 0 or i == recipe.iterations:
        _evaluate(runs)
    for run in runs:
        run.save()


def _collect(runs: Sequence["ControlRun"], count: int, horizon: int, i: int) -> list[list[ControlEpisode]]:
    """Training episodes of an iteration."""
    seeds = [run.recipe.seed for run in runs]
    actor = act_together([run.learner for run in runs], [derive(s, "explore", i) for s in seeds], explore=True)
    with ExitStack() as stack:
        envs = [stack.enter_context(closing(run.recipe.tasks.training(count, horizon))) for run in runs]
        return play_beside(envs, actor, [derive(s, "episodes", i) for s in seeds])


def _evaluate(runs: Sequence["ControlRun"]) -> None:
    """Evaluates the agents and writes the rows."""
    recipes, learners = [run.recipe for run in runs], [run.learner for run in runs]
    for run, tested in zip(runs, evaluate_beside(recipes, learners, runs[0].progress("eval")), strict=True):
        run.evaluated(tested)


def _stored(episodes: Sequence[ControlEpisode], spec: Spec) -> TransitionStore:
    """A store with these episodes; without any it has the sizes of the tasks."""
    return TransitionStore.of(episodes) if episodes else TransitionStore(spec.observation, spec.action, len(spec.goal))


class ControlRun(RunFiles):
    """The folder of a control run, and what it trains; further arguments and errors are those of `RunFiles`.

    Args:
        runs: how many are trained side by side; each counts its share of their seconds.
    """

    def __init__(self, recipe: ControlRecipe, folder: Path, listener: Listener, resume: bool, runs: int = 1) -> None:
        super().__init__(recipe, folder, listener, resume)
        self.recipe, self._runs = recipe, runs
        self.episodes, self.env_steps = self.kept_count("episodes"), self.kept_count("env_steps")

    def load(self) -> None:
        """Makes the learner, and what it has collected, as the last checkpoint has them.

        Raises:
            RunError: the checkpoint is damaged, or of another agent.
        """
        spec = self.recipe.tasks.spec
        self.learner = ControlLearner(self.recipe.agent, spec, self.recipe.seed)
        if self.checkpoint is None:
            self.gathered = _stored([], spec)
        else:
            ended = self.iteration == self.recipe.iterations
            self.gathered = restored(self.learner, self.checkpoint, ended)

    @cached_property
    def offline(self) -> TransitionStore:
        """The offline data, which is made when it is first read."""
        tasks = self.recipe.tasks
        return _stored(tasks.dataset(derive(self.recipe.seed, "dataset")), tasks.spec)

    def warn_of_boxed_subgoals(self) -> None:
        """Warns where a policy is to propose places of the data that it cannot name."""
        reach = np.abs(self.offline.observation[:, list(self.recipe.tasks.spec.goal)]).max(initial=0)
        for level in self.recipe.agent.levels if reach > 1 else ():
            if level.data.action == "subgoal" and (level.policy.boxed or level.extraction.boxes):
                boxed = level.policy.type_name() if level.policy.boxed else level.extraction.type_name()
                warnings.warn(
                    f"subgoals are places of the data, whose coordinates reach {reach:.3g}, and those that {boxed} "
                    "proposes lie between -1 and 1: scale the observations, or take flow_policy",
                    LongstrideWarning,
                    stacklevel=2,
                )

    @cached_property
    def demonstrated(self) -> TransitionStore:
        """The demonstrations, which are made when they are first read."""
        tasks = self.recipe.tasks
        return _stored(tasks.demonstrated(derive(self.recipe.seed, "demonstrations")), tasks.spec)

    @property
    def seconds(self) -> float:
        return self.seconds_before + (time.perf_counter() - self.clock) / self._runs

    def check(self, checkpoint: Checkpoint) -> None:
        super().check(checkpoint)
        for name in ("episodes", "env_steps", "updates"):
            number_of(checkpoint, name)

    def gather(self, iteration: int, episodes: Sequence[ControlEpisode]) -> None:
        """Takes what an iteration has collected; what learns on-policy forgets what came before."""
        if self.recipe.agent.on_policy:
            self.gathered = _stored([], self.recipe.tasks.spec)
        self.gathered.extend(episodes)
        self.iteration = iteration
        self.episodes += len(episodes)
        self.env_steps += sum(e.length for e in episodes)

    def rows_of(self, phase: TrainingPhase, updates: int) -> tuple[int, int, int]:
        """How many rows of a batch come from the offline data, from what was collected, and from demonstrations.

        Raises:
            RunError: there are updates, and nothing to learn from.
        """
        agent, collected = self.recipe.agent, len(self.gathered)
        batch, offline = agent.batch, 0 if agent.on_policy else len(self.offline)
        shown = round(phase.demonstrated * batch)
        if updates and shown and not len(self.demonstrated):
            raise RunError("a phase learns from demonstrations, and the tasks have none: set tasks.demonstrations")
        if shown == batch:
            return 0, 0, batch
        if updates and not offline and not collected:
            raise RunError("there is nothing to learn from: the tasks have no offline data, so collect episodes first")
        batch -= shown
        # all of it while nothing is collected, nothing where there is no offline data
        retained = (round(phase.retained * batch) if collected else batch) if offline else 0
        return retained, batch - retained, shown

    def evaluated(self, tested: Tested) -> None:
        """Writes the row of an evaluation."""
        outcomes = outcomes_of(tested)
        self.row(
            "eval",
            **evaluation_row(self.recipe, "agent" if self.iteration else "warm_start", tested),
            outcomes=outcomes,
            measures={"success": outcomes, "online_success": self._online_success(outcomes)}
            | measures_of(self.recipe, self.learner, tested),
            **paths_of(self.recipe, tested),
        )

    def _online_success(self, outcomes: list[float]) -> list[float]:
        """For each test episode, its mean outcome over this evaluation and all earlier ones after the first collected
        step; this one alone before that. It falls where online training unlearns: it is one minus the regret of Cal-QL
        (arXiv 2303.05479)."""
        rows = read_rows(self.metrics) if self.env_steps else ()
        earlier = [row["outcomes"] for row in rows if row["kind"] == "eval" and row["total_env_steps"]]
        return np.mean([*earlier, outcomes], axis=0).tolist()

    def save(self) -> None:
        """Makes a checkpoint."""
        tensors, numbers = self.learner.state()
        data = {f"collected.{name}": torch.from_numpy(array.copy()) for name, array in self.gathered.arrays().items()}
        self.keep(Path.mkdir, tensors | data, numbers | {"episodes": self.episodes, "env_steps": self.env_steps})
