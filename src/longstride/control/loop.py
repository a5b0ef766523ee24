"""The loop of control: collect -> update, an evaluation, a checkpoint; offline, warm-up and online are phases of it.

What always holds: iteration i depends on the recipe, the weights and what was collected so far, and on nothing else, so
a resumed run computes the numbers of an uninterrupted one; all episodes of an iteration are collected before its
updates; the run folder holds the last complete iteration whenever the process ends. A checkpoint is
`trainer.safetensors` (weights, optimisers, collected transitions) and `trainer.json`; the offline data is made again
from the seed.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch

from longstride.control.data import TransitionStore
from longstride.control.envs import ControlEpisode, Spec, play
from longstride.control.evaluation import (
    data_row,
    evaluate,
    evaluation_row,
    measures_of,
    outcomes_of,
    restored,
    summary_of,
)
from longstride.control.learner import ControlLearner
from longstride.control.recipe import ControlRecipe
from longstride.core.errors import ConfigError, RunError
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
    run = ControlRun(recipe, folder, listener or Silent(), resume)
    with run.undone_before_the_start(), run.explains_trouble():
        _loop(recipe, run)


def _loop(recipe: ControlRecipe, run: "ControlRun") -> None:
    tasks, spec, batch = recipe.tasks, recipe.tasks.spec, recipe.agent.batch
    learner = ControlLearner(recipe.agent, spec, recipe.seed)
    offline = _stored(tasks.dataset(derive(recipe.seed, "dataset")), spec)
    collected = _stored([], spec)
    if run.checkpoint is None:
        if len(offline):
            run.row("data", **data_row(offline))
        run.evaluate(learner)
        run.save(learner, collected)
    else:
        collected = run.restore(learner)

    for i in range(run.iteration + 1, recipe.iterations + 1):
        began, phase, horizon = time.perf_counter(), recipe.phase(i), recipe.horizon.at(i)

        episodes: list[ControlEpisode] = []
        if phase.episodes:
            actor = learner.actor(derive(recipe.seed, "explore", i), explore=True)
            with closing(tasks.training(phase.episodes, horizon)) as env:
                episodes = play(env, actor, derive(recipe.seed, "episodes", i))
        collected.extend(episodes)
        run.count(i, episodes)

        steps = sum(e.length for e in episodes)
        updates = phase.updates + round(phase.utd * steps)
        # all of it while nothing is collected, nothing where there is no offline data
        retained = (round(phase.retained * batch) if len(collected) else batch) if len(offline) else 0
        if updates and not len(offline) and not len(collected):
            raise RunError("there is nothing to learn from: the tasks have no offline data, so collect episodes first")
        sources = [(offline, retained), (collected, batch - retained)]
        metrics = learner.train(updates, sources, phase.conservative, run.progress("train"))

        run.row(
            "train",
            horizon=horizon,
            summary=summary_of(episodes),
            collected=len(episodes),
            env_steps=steps,
            updates=updates,
            **metrics,
            train_seconds=time.perf_counter() - began,
        )
        if i % recipe.evaluation.every == 0 or i == recipe.iterations:
            run.evaluate(learner)
        run.save(learner, collected)


def _stored(episodes: Sequence[ControlEpisode], spec: Spec) -> TransitionStore:
    """A store with these episodes; without any it has the sizes of the tasks."""
    return TransitionStore.of(episodes) if episodes else TransitionStore(spec.observation, spec.action, len(spec.goal))


class ControlRun(RunFiles):
    """The folder of a control run; arguments and errors are those of `RunFiles`."""

    def __init__(self, recipe: ControlRecipe, folder: Path, listener: Listener, resume: bool) -> None:
        super().__init__(recipe, folder, listener, resume)
        self.recipe = recipe
        self.episodes, self.env_steps = self.kept_count("episodes"), self.kept_count("env_steps")

    def check(self, checkpoint: Checkpoint) -> None:
        super().check(checkpoint)
        for name in ("episodes", "env_steps", "updates"):
            number_of(checkpoint, name)

    def count(self, iteration: int, episodes: Sequence[ControlEpisode]) -> None:
        """Counts what an iteration has collected."""
        self.iteration = iteration
        self.episodes += len(episodes)
        self.env_steps += sum(e.length for e in episodes)

    def evaluate(self, learner: ControlLearner) -> None:
        """Evaluates the agent and writes the row."""
        tested = evaluate(self.recipe, learner, self.progress("eval"))
        outcomes = outcomes_of(tested)
        self.row(
            "eval",
            **evaluation_row(self.recipe, "agent" if self.iteration else "warm_start", tested),
            outcomes=outcomes,
            measures={"success": outcomes, "online_success": self._online_success(outcomes)}
            | measures_of(self.recipe, tested),
        )

    def _online_success(self, outcomes: list[float]) -> list[float]:
        """For each test episode, its mean outcome over this evaluation and all earlier ones after the first collected
        step; this one alone before that. It falls where online training unlearns: it is one minus the regret of Cal-QL
        (arXiv 2303.05479)."""
        rows = read_rows(self.metrics) if self.env_steps else ()
        earlier = [row["outcomes"] for row in rows if row["kind"] == "eval" and row["total_env_steps"]]
        return np.mean([*earlier, outcomes], axis=0).tolist()

    def save(self, learner: ControlLearner, collected: TransitionStore) -> None:
        """Makes a checkpoint."""
        tensors, numbers = learner.state()
        data = {f"collected.{name}": torch.from_numpy(array.copy()) for name, array in collected.arrays().items()}
        self.keep(Path.mkdir, tensors | data, numbers | {"episodes": self.episodes, "env_steps": self.env_steps})

    def restore(self, learner: ControlLearner) -> TransitionStore:
        """Restores the learner from the last checkpoint; returns what was collected before it.

        Raises:
            RunError: the checkpoint is damaged, or of another agent.
        """
        assert self.checkpoint is not None
        return restored(learner, self.checkpoint)
