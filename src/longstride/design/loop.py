"""The loop of offline design: fit, climb, measure, write what was found.

What always holds: a step of the climb depends on the model and the step before alone, so a resumed run gives the
numbers of one that was not stopped; what is held out, and what designs are really worth, reaches no model that is
climbed.
The folder has, beside what every run has, `designs.npz` or `designs.csv`: the proposals with `predicted` and `true`.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from longstride.core.errors import ConfigError, RunError
from longstride.core.implementation import implements
from longstride.core.seeds import derive
from longstride.design.data import DesignPool, Encoding, encoding_of, write
from longstride.design.models import LeastSquares, ScoreModel
from longstride.design.recipe import DesignRecipe, ModelFit
from longstride.run.folder import RunFiles
from longstride.run.listener import Listener, Silent
from longstride.run.placement import Placement

DESIGNS = "designs"
"""Name of the file of proposals, without its ending."""
SHOWN = 10
"""Rows of a fit, at most."""
JUDGED = 0.1
"""Share of a pool that a judge is not fitted to."""


@implements(DesignRecipe)
def train(
    recipe: DesignRecipe,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> None:
    """See `Experiment.train`. Rows of kind `fit` have `epoch`, `epochs`, `loss` and what the model says of itself.

    Raises:
        ConfigError: it is to be placed elsewhere than in this process; the model cannot be climbed.
        RunError: the designs cannot be read.
    """
    if placement is not None:
        raise ConfigError(f"{recipe.name} is a recipe of design and runs in one process; leave out --cluster")
    run = RunFiles(recipe, folder, listener or Silent(), resume)
    with run.undone_before_the_start(), run.explains_trouble():
        search = DesignSearch(recipe)
        if run.checkpoint is None:
            search.fit(run)
            _measure(run, search)
        else:
            search.load(run.checkpoint.tensors(), str(run.checkpoint.folder))
        for i in range(run.iteration + 1, recipe.iterations + 1):
            search.step()
            run.iteration = i
            run.progress("train")(i, recipe.iterations)
            if i % recipe.every == 0 or i == recipe.iterations:
                _measure(run, search)


def _measure(run: RunFiles, search: "DesignSearch") -> None:
    """Writes a row, the proposals and a checkpoint."""
    designs, predicted, true = search.proposed()
    measures = search.measures(predicted, true)
    run.row(
        "eval",
        policy="agent" if run.iteration else "warm_start",
        strategy="direct",
        measures={name: [value] for name, value in measures.items()},
    )
    pool = search.pool
    write(
        run.folder / DESIGNS,
        DesignPool(designs, true, pool.columns, pool.sequence),
        {"predicted": predicted, "true": true},
    )
    run.keep(Path.mkdir, search.state(), {})


class DesignSearch:
    """A model, and the designs that climb on it.

    Args:
        recipe: says what both are.

    Raises:
        RunError: the designs cannot be read, or too few are shown.
    """

    def __init__(self, recipe: DesignRecipe) -> None:
        self._recipe, self._model = recipe, recipe.model
        self.pool = pool = recipe.tasks.pool(derive(recipe.seed, "pool"))
        order = np.argsort(pool.scores, kind="stable")
        shown = order[: max(2, round(recipe.tasks.kept * len(order)))]
        self._span = float(pool.scores.min()), float(pool.scores.max())
        self._encoding: Encoding = encoding_of(pool.designs[shown], pool.designs, recipe.tasks.inside)
        y = pool.scores[shown]
        if y.std() == 0:
            raise RunError(f"the {len(y)} designs that are shown have one score: show more of them (tasks.kept)")
        self._mean, self._deviation = float(y.mean()), float(y.std())
        self._x = torch.from_numpy(self._encoding.encode(pool.designs[shown]))
        self._y = torch.from_numpy((y - self._mean) / self._deviation).float()
        self._nets = self._model.nets(self._encoding.size, self._generator("nets"))
        self._point = self._x[-recipe.proposals :]
        self._held_out = 0.0
        self._judge = self._learned_judge()

    def _generator(self, *path: str) -> torch.Generator:
        return torch.Generator().manual_seed(derive(self._recipe.seed, *path))

    def _learned_judge(self) -> tuple[nn.ModuleDict, float] | None:
        """A network that is fitted to the whole pool, and its rank correlation where it has not seen; None where tasks
        know what designs are worth."""
        pool, recipe = self.pool, self._recipe
        if recipe.tasks.known:
            return None
        model = LeastSquares(trunk=recipe.model.trunk, lr=recipe.model.lr)
        nets = model.nets(self._encoding.size, self._generator("judge"))
        x = torch.from_numpy(self._encoding.encode(pool.designs))
        y = torch.from_numpy((pool.scores - self._mean) / self._deviation).float()
        how = recipe.fit.replace(held_out=JUDGED, noise=0.0)
        return nets, fitted(model, nets, x, y, how, self._generator("judge", "fit"))

    def fit(self, run: RunFiles) -> None:
        """Fits the model, and takes the best of what is shown into the space that is climbed in."""
        epochs = self._recipe.fit.epochs

        def told(epoch: int, metrics: dict[str, float]) -> None:
            run.progress("train")(epoch, epochs)
            if epoch % max(1, -(-epochs // SHOWN)) == 0 or epoch == epochs:
                run.row("fit", epoch=epoch, epochs=epochs, **metrics)

        how = self._recipe.fit
        self._held_out = fitted(self._model, self._nets, self._x, self._y, how, self._generator("fit"), told)
        with torch.no_grad():
            self._point = self._model.encode(self._nets, self._point)

    def step(self) -> None:
        """A step of the climb.

        Raises:
            ConfigError: it leads out of all numbers.
        """
        self._point = self._model.climbed(self._nets, self._point, 1)
        if not self._point.isfinite().all():
            raise ConfigError("the climb leads to numbers that are not finite: choose a smaller model.rate or model.lr")

    def proposed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[K, D] designs in the form of the pool, their [K] predicted and [K] true scores."""
        with torch.no_grad():
            predicted = self._model.predict(self._nets, self._point).double().numpy()
            designs = self._encoding.decode(self._model.decode(self._nets, self._point).numpy())
            if self._judge is None:
                true = self._recipe.tasks.score(designs, derive(self._recipe.seed, "true"))
            else:
                x = torch.from_numpy(self._encoding.encode(designs))
                true = self._judge[0]["value"](x)[0, :, 0].double().numpy() * self._deviation + self._mean
        return designs, predicted * self._deviation + self._mean, true

    def measures(self, predicted: np.ndarray, true: np.ndarray) -> dict[str, float]:
        """See `DesignRecipe`."""
        low, high = self._span
        judge = {} if self._judge is None else {"judge": self._judge[1]}
        return {
            "best": float(true.max() - low) / (high - low),
            "median": float(np.median(true) - low) / (high - low),
            "best_score": float(true.max()),
            "overestimated": float((predicted - true).mean()) / (high - low),
            "ranked": rank_correlation(predicted, true),
            "held_out": self._held_out,
            **judge,
            "proposals": float(len(true)),
        }

    def state(self) -> dict[str, Tensor]:
        """What a resumed run goes on from."""
        nets = {f"nets.{name}": tensor.clone() for name, tensor in self._nets.state_dict().items()}
        return nets | {"point": self._point.clone(), "held_out": torch.tensor([self._held_out], dtype=torch.float64)}

    def load(self, kept: dict[str, Tensor], where: str) -> None:
        """Takes `state` of another one.

        Raises:
            RunError: it is of another model.
        """
        try:
            self._nets.load_state_dict({k.removeprefix("nets."): v for k, v in kept.items() if k.startswith("nets.")})
            self._point, self._held_out = kept["point"], float(kept["held_out"])
        except (KeyError, RuntimeError) as e:
            raise RunError(f"{where} is of another model: {type(e).__name__}: {e}") from e


def fitted(
    model: ScoreModel,
    nets: nn.ModuleDict,
    x: Tensor,
    y: Tensor,
    how: ModelFit,
    generator: torch.Generator,
    told: Callable[[int, dict[str, float]], None] = lambda epoch, metrics: None,
) -> float:
    """Fits networks to [N, S] designs and [N] scores; `told` gets each epoch with `loss` and the model's own metrics,
    means over its updates. Returns the rank correlation of what is held out, 0 where nothing is.

    Raises:
        ConfigError: the loss is no number any more.
    """
    order = torch.randperm(len(x), generator=generator)
    kept = order[min(round(how.held_out * len(x)), len(x) - 1) :]
    out = order[: len(x) - len(kept)]
    adam = torch.optim.Adam(model.groups(nets))
    for epoch in range(1, how.epochs + 1):
        metrics: dict[str, float] = {}
        batches = kept[torch.randperm(len(kept), generator=generator)].split(how.batch)
        for rows in batches:
            noise = how.noise * torch.randn(x[rows].shape, generator=generator) if how.noise else 0.0
            loss, more = model.loss(nets, x[rows] + noise, y[rows], generator)
            adam.zero_grad()
            loss.backward()
            adam.step()
            for name, value in {"loss": loss.detach(), **more}.items():
                metrics[name] = metrics.get(name, 0.0) + float(value) / len(batches)
        if not np.isfinite(metrics["loss"]):
            raise ConfigError("the loss of the fit is not finite: choose a smaller model.lr")
        told(epoch, metrics)
    with torch.no_grad():
        predicted = model.predict(nets, model.encode(nets, x[out])) if len(out) else x[:0, 0]
    return rank_correlation(predicted.numpy(), y[out].numpy())


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's rank correlation of [N] and [N]; 0 where one of them does not vary, or N < 2."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
