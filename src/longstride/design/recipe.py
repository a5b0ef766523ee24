"""Recipes of offline design as data. An iteration is a step of the climb; the model is fitted before the first one."""

from typing import Any

from longstride.core.component import Component
from longstride.core.numbers import Count, Share, Weight
from longstride.design.models import ScoreModel
from longstride.design.tasks import DesignTasks
from longstride.run.experiment import Experiment


class ModelFit(Component):
    """How a model is fitted."""

    epochs: Count = 50
    """Times that the designs are gone through (released: the same)."""
    batch: Count = 128
    """Designs of an update (released: the same)."""
    held_out: Share = 0.1
    """Share of the shown designs that are not trained on: how well the model ranks them is measured."""
    noise: Weight = 0.0
    """Deviation of the noise on designs of a batch, which are of deviation 1 (released: 0.2 in early runs, then 0)."""


class DesignRecipe(Experiment):
    """A model is fitted to designs and scores, and climbed from the best of them; nothing is asked on the way, so what
    designs are worth is measured alone.

    Measures: `best` and `median` of the proposals, 0 and 1 being the worst and the best score of the whole pool, as
    Design-Bench normalises them; `best_score`, in units of the file; `overestimated`, how much more is predicted than
    true, on the same scale; `ranked`, the rank correlation of what is predicted and true of the proposals; `held_out`,
    that of designs that the model was not fitted to; `judge`, that of a judge that was learned, on designs that it has
    not seen; `proposals`, how many."""

    tasks: DesignTasks
    """Where designs and scores come from."""
    model: ScoreModel
    """What is fitted and climbed."""
    fit: ModelFit = ModelFit()
    """How it is fitted."""
    iterations: Count = 50
    """Steps of the climb (released: the same)."""
    proposals: Count = 128
    """Designs that climb: the best that are shown (released: the same)."""
    every: Count = 10
    """Steps between measurements; the start and the end are always measured."""

    def identity(self) -> dict[str, Any]:
        data = self.as_data()
        del data["iterations"]
        return data
