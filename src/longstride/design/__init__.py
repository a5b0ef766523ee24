"""Offline design: better designs than any in a file of designs and their scores, and no score is asked for on the way.

| file | holds |
|---|---|
| `data.py` | files of designs and scores, and designs as vectors |
| `tasks.py` | where designs come from, and what they are really worth |
| `models.py` | models of scores, and the climb: least squares, COMs |
| `recipe.py` | `DesignRecipe` |
| `loop.py` | fit, climb, write what was found |
"""

from longstride.design.data import DesignPool
from longstride.design.models import ConservativeModel, LeastSquares, ScoreModel, climb, overestimation
from longstride.design.recipe import DesignRecipe
from longstride.design.tasks import Controllers, DesignOracle, DesignTasks, FileDesigns

__all__ = [
    "ConservativeModel",
    "Controllers",
    "DesignRecipe",
    "DesignTasks",
    "FileDesigns",
    "LeastSquares",
    "DesignOracle",
    "DesignPool",
    "ScoreModel",
    "climb",
    "overestimation",
]
