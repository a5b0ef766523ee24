# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""The data of offline design are those that Design-Bench selects from the same pool. Run with Design-Bench 2.0.20.
Scores are not compared: they are normalised in the paper, not in its package.

Its package imports DeepChem, and reads names that NumPy 2 no longer has, so the module of its data sets is imported on
its own, and those names are given.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from longstride.exact.worlds.designs import Landscape

spec = importlib.util.find_spec("design_bench")
if spec is None:
    pytest.skip("compares with Design-Bench: make parity", allow_module_level=True)
FOLDER = Path(*spec.submodule_search_locations or ())


@pytest.fixture
def continuous(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Design-Bench's `ContinuousDataset`."""
    for name, value in (("NINF", -np.inf), ("PINF", np.inf)):
        monkeypatch.setattr(np, name, value, raising=False)
    for name in ("design_bench", "design_bench.datasets"):
        package = ModuleType(name)
        package.__path__ = [str(FOLDER.joinpath(*name.split(".")[1:]))]
        monkeypatch.setitem(sys.modules, name, package)
    return importlib.import_module("design_bench.datasets.continuous_dataset").ContinuousDataset


@pytest.mark.parametrize("kept", [0.1, 0.4, 0.6, 1.0])
def test_the_worst_of_a_pool_are_kept(continuous: Any, kept: float) -> None:
    class Pool(continuous):
        name, x_name, y_name = "pool", "x", "y"
        register_x_shards = register_y_shards = staticmethod(list)

    landscape = Landscape("ackley", dims=16, inner=4, optimum=1.0, penalty=1.0)
    for seed in range(5):
        pool, ours = (landscape.draw(500, k, 0.05, np.random.default_rng(seed)) for k in (1.0, kept))
        theirs = Pool(pool.x, pool.y[:, None])
        theirs.subsample(max_percentile=100 * kept)
        np.testing.assert_allclose(theirs.x, ours.x, rtol=1e-6)
        np.testing.assert_allclose(theirs.y[:, 0], ours.y, rtol=1e-6)
