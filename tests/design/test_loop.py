"""Offline design as a run: on files of the test's own, with an oracle of the test's own, stopped and resumed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import rows_of, weights_hash

from longstride import papers
from longstride.core.errors import ConfigError, OwnCodeError, RunError
from longstride.core.sealed import unseal_lines
from longstride.design import Controllers, DesignOracle, DesignRecipe, FileDesigns, LeastSquares
from longstride.design.data import read
from longstride.design.loop import rank_correlation
from longstride.design.recipe import ModelFit
from longstride.models.mlp import Trunk
from longstride.run.folder import read_rows

SMALL = Trunk(width=16, depth=1, norm=False, activation="relu")


class Peak(DesignOracle):
    """Worth most at (2, 2)."""

    def score(self, designs: np.ndarray) -> np.ndarray:
        return -((designs - 2) ** 2).sum(1)


class Silent(DesignOracle):
    """Says too little."""

    def score(self, designs: np.ndarray) -> np.ndarray:
        return np.zeros(1)


def numbers(folder: Path) -> str:
    """A file of 200 designs around 0."""
    x = np.random.default_rng(0).normal(size=(200, 2))
    np.savez(folder / "mine.npz", x=x, y=Peak().score(x))
    return str(folder / "mine.npz")


def recipe(data: str, **more: Any) -> DesignRecipe:
    tasks = FileDesigns(data=data, kept=0.7, **more)
    model, fit = LeastSquares(trunk=SMALL, lr=3e-2), ModelFit(epochs=20, batch=32)
    return DesignRecipe(name="tiny", tasks=tasks, model=model, fit=fit, iterations=6, every=2, proposals=20)


def measured(folder: Path) -> list[dict[str, float]]:
    rows = read_rows(folder / "metrics.jsonl")
    return [{name: found[0] for name, found in row["measures"].items()} for row in rows if row["kind"] == "eval"]


def test_a_pool_of_two_designs_is_fitted_to_one_at_least(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", x=np.eye(2), y=np.arange(2.0))
    made = recipe(str(tmp_path / "two.npz"), oracle=Peak()).replace(fit={"held_out": 0.8}, proposals=1)
    made.train(tmp_path / "run")
    assert len(measured(tmp_path / "run")) == 4


def test_designs_that_climb_are_better_than_all_that_are_shown_and_an_oracle_says_so(tmp_path: Path) -> None:
    made = recipe(numbers(tmp_path), oracle=Peak())
    made.train(tmp_path / "run")
    first, *_, last = measured(tmp_path / "run")
    pool = read(made.tasks.data, "score")  # pyright: ignore[reportAttributeAccessIssue]
    shown, low, high = np.sort(pool.scores)[:140], pool.scores.min(), pool.scores.max()
    assert first["best_score"] == pytest.approx(shown.max(), abs=1e-4)  # the start is the best of what is shown
    assert first["median"] == pytest.approx((np.median(shown[-20:]) - low) / (high - low), abs=1e-4)
    assert last["best"] > first["best"] + 0.03 and first["held_out"] > 0.8 and "judge" not in first
    with np.load(tmp_path / "run" / "designs.npz") as found:
        assert found["x"].shape == (20, 2) and np.allclose(found["true"], Peak().score(found["x"]))
        assert found["true"].max() == pytest.approx(last["best_score"])
        assert rank_correlation(found["predicted"], found["true"]) == pytest.approx(last["ranked"])


def test_without_an_oracle_a_network_that_saw_the_whole_file_judges_and_says_how_well(tmp_path: Path) -> None:
    recipe(numbers(tmp_path)).train(tmp_path / "run")
    first, *_, last = measured(tmp_path / "run")
    assert first["judge"] == last["judge"] > 0.8 and last["best"] > first["best"]


def test_sequences_are_proposed_as_sequences(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACGT"), 6)) for _ in range(150)]
    lines = [f"{word},{word.count('A')}" for word in words]
    (tmp_path / "dna.csv").write_text("\n".join(["dna,made", *lines]))
    made = recipe(str(tmp_path / "dna.csv"), column="made").replace(model={"rate": 0.5}, iterations=20, every=20)
    made.train(tmp_path / "run")
    head, *found = (tmp_path / "run" / "designs.csv").read_text().splitlines()
    proposed = "".join(line.partition(",")[0] for line in found)
    assert head == "dna,predicted,true" and len(proposed) == 20 * 6 and set(proposed) <= set("ACGT")
    assert proposed.count("A") / len(proposed) > 0.7 > 0.3 > np.mean([word.count("A") / 6 for word in words])


class Stops:
    """Interrupts a run at the row of its fourth step."""

    def __call__(self, row: dict[str, Any]) -> None:
        if row["iteration"] == 4:
            raise KeyboardInterrupt

    def progress(self, phase: str, done: int, total: int) -> None: ...


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    made = recipe(numbers(tmp_path))
    made.train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        made.train(tmp_path / "stopped", Stops())
    made.train(tmp_path / "stopped", resume=True)
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "stopped")
    assert weights_hash(tmp_path / "whole") == weights_hash(tmp_path / "stopped")
    assert unseal_lines((tmp_path / "whole" / "metrics.jsonl").read_bytes())  # fit rows too
    with pytest.raises(RunError, match="another recipe"):
        made.replace(proposals=5).train(tmp_path / "whole", resume=True)


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    data = numbers(tmp_path)
    with pytest.raises(OwnCodeError, match=r"Silent.score: expected 20 finite numbers, got the shape \(1,\)"):
        recipe(data, oracle=Silent()).train(tmp_path / "a")
    with pytest.raises(ConfigError, match="smaller model.rate"):
        recipe(data, oracle=Peak()).replace(model={"rate": 1e38}).train(tmp_path / "b")
    with pytest.raises(RunError, match="there is no file designs.csv"):
        papers.load("design_bench/recorded").train(tmp_path / "c")


def test_a_controller_is_worth_its_mean_return_in_an_environment_of_the_users() -> None:
    pytest.importorskip("gymnasium")
    tasks = Controllers(designs=3, episodes=2, horizon=30)
    upright = np.array([[0, -1], [0, -1], [-5, 5], [-2, 2], [0, 0]], float).reshape(1, -1)  # toward where it falls
    never = np.array([[0, 0]] * 4 + [[1, 0]], float).reshape(1, -1)  # always to the left
    assert tasks.score(np.concatenate((upright, never)), 0)[0] == 30 > tasks.score(never, 0)[0]
    assert tasks.pool(1).designs.shape == (3, 10) and (tasks.pool(1).scores == tasks.pool(1).scores).all()
    hidden = tasks.replace(units=2, tasks={"id": "Pendulum-v1"})
    pool = hidden.pool(0)
    assert pool.designs.shape == (3, 4 * 2 + 3) and (pool.scores < 0).all()
