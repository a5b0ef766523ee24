"""The loop of exact experiments: a step of the method, a measurement and a checkpoint every so often."""

import time
from pathlib import Path

import numpy as np
import torch

from longstride.core.errors import ConfigError, RunError
from longstride.core.implementation import implements
from longstride.core.seeds import derive
from longstride.exact.experiment import ExactRecipe
from longstride.run.folder import RunFiles
from longstride.run.listener import Listener, Silent
from longstride.run.placement import Placement


@implements(ExactRecipe)
def train(
    recipe: ExactRecipe,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> None:
    """See `Experiment.train`. Each measurement is a metrics row of kind `eval` whose `measures` are one number a name
    (in a list, as for tasks).

    Raises:
        ConfigError: it is to be placed elsewhere than in this process.
    """
    if placement is not None:
        raise ConfigError(f"{recipe.name} is computed in one process; leave out --cluster")
    run = RunFiles(recipe, folder, listener or Silent(), resume)
    problem, method = recipe.problem, recipe.method

    def measure() -> None:
        found = {**problem.measures(method.solution(problem, state)), **method.spent(problem, state)}
        run.row(
            "eval",
            policy="agent" if run.iteration else "warm_start",
            strategy="direct",
            measures={name: [float(value)] for name, value in found.items()},
        )
        run.keep(
            Path.mkdir,
            {name: torch.from_numpy(np.array(array, ndmin=1)) for name, array in state.items()},  # two may be one array
            {},
            durable=False,  # a run takes seconds: a power cut may cost it
        )

    with run.undone_before_the_start(), run.explains_trouble():
        state = method.start(problem, np.random.default_rng(derive(recipe.seed, "start")))
        if run.checkpoint is None:
            measure()
        else:
            kept = run.checkpoint.tensors()
            try:
                state = {name: kept[name].numpy().reshape(np.shape(array)) for name, array in state.items()}
            except (KeyError, ValueError) as e:
                raise RunError(f"{run.checkpoint.folder} is of another method: {type(e).__name__}: {e}") from e
        began = time.perf_counter()
        for i in range(run.iteration + 1, recipe.iterations + 1):
            state = method.step(problem, state, np.random.default_rng(derive(recipe.seed, "step", i)))
            run.iteration = i
            if i % recipe.every == 0 or i == recipe.iterations:
                measure()
                if time.perf_counter() - began > 0.2:  # a display is not drawn a thousand times a second
                    run.progress("train")(i, recipe.iterations)
                    began = time.perf_counter()
