"""Training of control agents in a run folder: the same files, rows and resume as the trainer of language agents.

What always holds: iteration i depends on the recipe and on what was collected so far, and on nothing else, so a
resumed run gives the numbers of one that was not stopped; the run folder holds the last whole iteration whenever the
process ends. A checkpoint is `trainer.safetensors` (weights, optimisers, collected transitions) and `trainer.json`;
the offline data is made again from the seed.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from longstride.control import Agent, ControlLearner, ControlLoop, Phase
from longstride.control.envs import ControlTasks, Episode
from longstride.control.loop import Tested, evaluate
from longstride.core.component import Component
from longstride.core.errors import ConfigError, RunError
from longstride.curriculum.schedules import BudgetSchedule
from longstride.learner.config import Count
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import Experiment
from longstride.run.folder import Listener, RunFiles, Silent
from longstride.stats import wilson_interval

if TYPE_CHECKING:
    from longstride.cluster.config import ClusterConfig


class ControlEvaluation(Component):
    """What is measured while a recipe runs; the same starts and goals every time."""

    episodes: Count = 10
    """Episodes of each test task."""
    every: Count = 10
    """Iterations between evaluations; the untrained agent and the last iteration are always evaluated."""


class ControlRecipe(Experiment):
    """A method of control, and its numbers. Iteration 0 is the untrained agent."""

    tasks: ControlTasks
    """Where data, training episodes and tests come from."""
    agent: Agent
    """What is trained."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    """When it collects and when it learns, in this order."""
    horizon: BudgetSchedule
    """Steps that a collected episode may take, by iteration."""
    test_horizon: BudgetSchedule
    """Steps that an evaluation episode may take; asked for iteration 1 always."""
    evaluation: ControlEvaluation = ControlEvaluation()
    """What is measured."""

    @property
    def iterations(self) -> int:
        """Of all phases."""
        return sum(phase.iterations for phase in self.phases)

    def train(
        self,
        folder: Path,
        listener: Listener | None = None,
        resume: bool = False,
        cluster: "ClusterConfig | None" = None,
    ) -> None:
        """See `train_control`."""
        if cluster is not None:
            raise ConfigError(f"{self.name} is a recipe of control and runs in one process; leave out --cluster")
        train_control(self, folder, listener, resume)

    def identity(self) -> dict[str, Any]:
        data = self.as_data()
        del data["phases"][-1]["iterations"]
        return data


def train_control(recipe: ControlRecipe, folder: Path, listener: Listener | None = None, resume: bool = False) -> None:
    """Runs a recipe in a run folder.

    Args:
        recipe: what is run.
        folder: created; must not hold a run unless `resume`.
        listener: takes every metrics row and the progress between rows.
        resume: go on after the last checkpoint of the run in `folder`; start it where there is none. The last phase may
            have become longer meanwhile, nothing else may differ.

    Raises:
        RunError: the folder holds a run already, or one of another recipe; a damaged checkpoint; a full disk.
    """
    run = ControlRun(recipe, folder, listener or Silent(), resume)
    with run.full_disk_told():
        _loop(recipe, run)


def _loop(recipe: ControlRecipe, run: "ControlRun") -> None:
    loop = ControlLoop(recipe.tasks, recipe.agent, recipe.phases, recipe.seed)
    if run.checkpoint is None:
        run.evaluated(loop)
        run.save(loop)
    else:
        loop.load_state(run.checkpoint.tensors(), run.checkpoint.numbers)
    for i in range(run.iteration + 1, recipe.iterations + 1):
        began, horizon = time.perf_counter(), recipe.horizon.at(i)
        metrics = loop.update(i, horizon, run.progress("train"))
        run.collected(i, loop.fresh)
        spent = time.perf_counter() - began
        run.row("train", horizon=horizon, summary=summary_of(loop.fresh), **metrics, train_seconds=spent)
        if i % recipe.evaluation.every == 0 or i == recipe.iterations:
            run.evaluated(loop)
        run.save(loop)


class ControlRun(RunFiles):
    """The folder of a control run; arguments and errors are those of `RunFiles`."""

    def __init__(self, recipe: ControlRecipe, folder: Path, listener: Listener, resume: bool) -> None:
        super().__init__(recipe, folder, listener, resume)
        self.recipe = recipe
        self.episodes, self.env_steps = self.counter("episodes", int), self.counter("env_steps", int)

    def collected(self, iteration: int, episodes: list[Episode]) -> None:
        """Counts what an iteration has played."""
        self.iteration = iteration
        self.episodes += len(episodes)
        self.env_steps += sum(e.length for e in episodes)

    def evaluated(self, loop: ControlLoop) -> None:
        """Tests the agent and writes the row."""
        horizon = self.recipe.test_horizon.at(1)
        tested = loop.evaluate(self.recipe.evaluation.episodes, horizon, self.progress("eval"))
        self.row(
            "eval",
            **evaluation_row("agent" if self.iteration else "warm_start", horizon, tested),
            outcomes=tested.outcomes,
            measures={"success": tested.outcomes, "online_success": self._online_success(tested.outcomes)},
        )

    def _online_success(self, outcomes: list[float]) -> list[float]:
        """By test episode, its mean outcome over the evaluations since the first step that was collected, this one
        among them; this one alone before that. It falls where going online unlearns: one minus the regret of Cal-QL
        (arXiv 2303.05479)."""
        rows = map(json.loads, self.metrics.read_text(encoding="utf-8").splitlines() if self.env_steps else ())
        earlier = [row["outcomes"] for row in rows if row["kind"] == "eval" and row["total_env_steps"]]
        return np.mean([*earlier, outcomes], axis=0).tolist()

    def save(self, loop: ControlLoop) -> None:
        """Makes a checkpoint."""
        tensors, numbers = loop.state()
        self.keep(Path.mkdir, tensors, numbers | {"episodes": self.episodes, "env_steps": self.env_steps})


def evaluate_run(
    recipe: ControlRecipe, folder: Path, watch: Callable[[str], Callable[[int, int], None]]
) -> list[dict[str, Any]]:
    """Tests the agent of a run's last checkpoint, and one that was never trained, on the same episodes.

    Args:
        recipe: the run's, where another seed, horizon or number of episodes may have been chosen.
        folder: of the run.
        watch: gives a progress callback for what is tested.

    Returns:
        What metrics rows say of the two evaluations, the agent's first.

    Raises:
        RunError: nothing was finished in the run yet; its checkpoint is damaged, or of another agent.
    """
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        raise RunError(f"{folder} has no checkpoint yet; let the run finish an iteration")
    start, agent = (ControlLearner(recipe.agent, recipe.tasks.spec, recipe.seed) for _ in range(2))
    agent.load_state(checkpoint.tensors())
    episodes, horizon = recipe.evaluation.episodes, recipe.test_horizon.at(1)
    rows = []
    for policy, learner in (("agent", agent), ("warm_start", start)):
        tested = evaluate(recipe.tasks, learner, recipe.seed, episodes, horizon, watch(policy))
        rows.append(evaluation_row(policy, horizon, tested))
    return rows


def evaluation_row(policy: str, horizon: int, tested: Tested) -> dict[str, Any]:
    """What a metrics row says of an evaluation: `policy`, `strategy`, `horizon`, `summary` (see `summary_of`, with each
    task's under `by_source`) and `interval` (95 % Wilson interval of the success rate)."""
    by_task = {name: summary_of(episodes) for name, episodes in tested.by_task().items()}
    return {
        "policy": policy,
        "strategy": "direct",
        "horizon": horizon,
        "summary": summary_of(tested.episodes) | {"by_source": by_task},
        "interval": list(wilson_interval(sum(e.terminated for e in tested.episodes), len(tested.episodes))),
    }


def summary_of(episodes: list[Episode]) -> dict[str, Any]:
    """What metrics rows say of episodes, with the meanings of `rollout.summary`: a mean of nothing is 0."""
    lengths, solved = [e.length for e in episodes], [e.terminated for e in episodes]
    return {
        "episodes": len(episodes),
        "failed": 0,
        "env_steps": sum(lengths),
        "success": _mean(solved),
        "length": _mean(lengths),
        "length_success": _mean([n for n, s in zip(lengths, solved, strict=True) if s]),
        "timeouts": _mean([not s for s in solved]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
