"""From a sweep to a budget: `sweep`, `fit`, `allocate`, and `compare` over seeds."""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from helpers import begin_run, make_task, make_trajectory
from report_rows import evaluation
from safetensors.numpy import save_file

from longstride.cli.main import main
from longstride.core.errors import ConfigError, RunError
from longstride.core.sealed import place_of, seal, write_object
from longstride.curriculum import Fixed
from longstride.papers import load
from longstride.report import fits
from longstride.report.compare import as_text, compare, write_comparison
from longstride.report.curves import curve_of
from longstride.report.fits import allocate, choices_as_text, fits_as_text, fitted, load_fits
from longstride.report.sweeps import summary
from longstride.rollout.formats import Origin, write_episodes
from longstride.run import many
from longstride.run.evaluation import success_interval
from longstride.run.listener import Silent
from longstride.run.sweep import combinations, parse_axis
from longstride.scaling import RisingPower
from longstride.stats import wilson_interval

SMALL = ["iterations=8", "every=1", "method.budget=512", "problem.problems=6", "problem.answers=4"]
GRID = ["--grid", "method.rollouts=4,16"]


class Tells:
    """A run that keeps which cores it has, and how many threads."""

    def beside(self) -> None: ...

    def train(self, folder: Path, listener: Any, resume: bool) -> None:
        folder.mkdir()
        (folder / "metrics.jsonl").touch()
        (folder / "cores").write_text(json.dumps([sorted(os.sched_getaffinity(0)), torch.get_num_threads()]))


@pytest.fixture(scope="module", autouse=True)
def few_resamples() -> Iterator[None]:
    """The bootstrap of a fit, which takes most of its time, is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fits, "fit", partial(fits.fit, resamples=30))
        yield


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "iso"
    assert main(["sweep", "isocompute/exact", str(out), *SMALL, *GRID, "--seeds", "2"]) == 0
    return out


@pytest.fixture(scope="module")
def kept(swept: Path) -> Path:
    """Fits of the sweep with its last points held out."""
    path = swept.parent / "fit.json"
    argv = ["--by", "method.rollouts", "--x", "rollouts", "--until", "3000", "--out", str(path)]
    assert main(["fit", str(swept), *argv]) == 0
    return path


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    return capsys.readouterr().err


class TestSweep:
    def test_every_combination_is_run_and_the_table_says_what_it_came_to(self, swept: Path, capsys: Any) -> None:
        assert sorted(p.name for p in swept.iterdir()) == [
            "rollouts=16,seed=0", "rollouts=16,seed=1", "rollouts=4,seed=0", "rollouts=4,seed=1",
        ]  # fmt: skip
        before = {p: p.read_bytes() for p in swept.glob("*/metrics.jsonl")}
        found = said(capsys, "sweep", "isocompute/exact", str(swept), *SMALL, *GRID, "--seeds", "2")
        assert [row["settings"] for row in found["rows"]] == [{"method.rollouts": "4"}, {"method.rollouts": "16"}]
        for row in found["rows"]:
            n = row["settings"]["method.rollouts"]
            last = [curve_of(swept / f"rollouts={n},seed={s}", "iteration", "success").y[-1] for s in (0, 1)]
            assert row["values"] == last and row["mean"] == pytest.approx(sum(last) / 2)
            assert row["interval"][0] < row["mean"] < row["interval"][1]
        assert before == {p: p.read_bytes() for p in swept.glob("*/metrics.jsonl")}, "nothing is run again"

    def test_what_cannot_be_swept_is_refused_before_anything_runs(self, tmp_path: Path, capsys: Any) -> None:
        out = str(tmp_path / "none")
        for grid, message in (
            ("method.rolouts=4,8", "did you mean 'rollouts'"),
            ("method.rollouts=4,no", "method.rollouts"),
            ("method.rollouts=4", "no axis of a grid"),
            ("seed=1,2", "--seeds"),
        ):
            assert message in refused(capsys, "sweep", "isocompute/exact", out, "--grid", grid)
        assert "at least 1" in refused(capsys, "sweep", "isocompute/exact", out, *GRID, "--seeds", "0")
        assert not (tmp_path / "none").exists()
        assert "unknown measure 'sucess'" in refused(
            capsys, "sweep", "isocompute/exact", out, *SMALL, *GRID, "--measure", "sucess"
        )

    def test_after_an_error_no_run_is_begun(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        begun: list[str] = []
        heard: list[str] = []

        class Run:
            def beside(self) -> None: ...

            def train(self, folder: Path, listener: Any, resume: bool) -> None:
                begun.append(folder.name)
                if folder.name == "3":
                    raise RunError("the disk is full")
                folder.mkdir()
                (folder / "metrics.jsonl").touch()

        class Pool(Executor):
            """Runs at once what it is given."""

            def __init__(self, *_: Any) -> None: ...

            def submit(self, work: Any, *given: Any) -> Future[Any]:
                future: Future[Any] = Future()
                try:
                    future.set_result(work(*given))
                except RunError as e:
                    future.set_exception(e)
                return future

        monkeypatch.setattr(many, "ProcessPoolExecutor", Pool)
        runs: Any = {tmp_path / str(k): Run() for k in range(8)}
        watch: Any = lambda run: heard.append(run.name)  # noqa: E731
        with pytest.raises(RunError, match="the disk is full"):
            many.train_all(runs, watch, jobs=2)
        assert (begun, sorted(heard)) == (["0", "1", "2", "3"], ["0", "1"])

    @pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system ties no process to cores")
    def test_jobs_share_the_cores(self, tmp_path: Path) -> None:
        """So that none of them takes all where a recipe leaves it to the machine how many threads learn."""
        runs: Any = {tmp_path / str(k): Tells() for k in range(2)}
        many.train_all(runs, lambda folder: Silent(), jobs=2)
        told = [json.loads((place / "cores").read_text()) for place in runs]
        own = os.sched_getaffinity(0)
        assert all(cores and threads == len(cores) <= (len(own) + 1) // 2 for cores, threads in told)
        assert {core for cores, _ in told for core in cores} <= own

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("[0.1, 0.2]", "[0.3]"), ("[[1,2],[3,4]]", "[[5,6],[7,8]]"), ("{a=1,b={c=2,d=3}}", "{a=4,b={}}"),
            ("'a,b'", '"c,d"'), (r'"a\",b"', "'[,'"), ('["],",1]', "[']', 2]"), ("don't", "won't"), ("a]", "b"),
        ],
    )  # fmt: skip
    def test_a_comma_in_brackets_or_quotes_parts_nothing(self, first: str, second: str) -> None:
        assert parse_axis(f"a.key={first}, {second}") == ("a.key", [first, second])

    def test_an_axis_has_two_different_values(self) -> None:
        with pytest.raises(ConfigError, match="two different values"):
            parse_axis("a=1,1")

    def test_two_combinations_that_would_have_one_folder_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="two combinations would have one folder, name=org_a,seed=0, in whose"):
            combinations(load("isocompute/exact"), {"name": ["org/a", "org_a"]}, [0], tmp_path)

    def test_a_value_that_is_too_long_for_a_name_is_named_by_its_place(self, tmp_path: Path) -> None:
        axes = {"name": ["short", "a" * 300, "b" * 300], "method.rollouts": ["4"]}
        found = combinations(load("isocompute/exact"), axes, [7], tmp_path)
        assert [place.name for place in found] == [
            "name=short,rollouts=4,seed=7", "name=1,rollouts=0,seed=7", "name=2,rollouts=0,seed=7",
        ]  # fmt: skip
        assert [run.name for run in found.values()] == axes["name"]


class TestFit:
    def test_a_law_is_fitted_to_the_runs_of_each_setting(self, kept: Path) -> None:
        found = load_fits(kept)
        assert [g["setting"] for g in found["groups"]] == [4, 16] and kept.with_suffix(".svg").exists()
        for group in found["groups"]:
            x, y = np.array(group["points"]).T
            assert len(group["runs"]) == 2 and x.max() <= 3000 and (x > 0).all()
            assert group["fit"]["values"] == fitted(group).values and group["spent"] == 512
            at, real, mean, lo, hi = np.array(group["held_out"]).T
            assert at.tolist() == [3072, 3584, 4096] and (lo < mean).all() and (mean < hi).all()
            ends = [curve_of(Path(run), "rollouts", "success").y[-1] for run in group["runs"]]
            assert real[-1] == pytest.approx(np.mean(ends))
        text = fits_as_text(found)
        assert "held out" in text and f"{found['groups'][0]['fit']['values']['asymptote']:.4g} [" in text

    def test_all_runs_are_one_group_unless_they_are_told_apart(self, swept: Path, capsys: Any) -> None:
        (group,) = said(capsys, "fit", str(swept), "--law", "power")["groups"]
        assert group["setting"] == "all" and len(group["runs"]) == 4 and len(group["points"]) == 32

    def test_what_cannot_be_fitted_is_refused(self, swept: Path, tmp_path: Path, capsys: Any) -> None:
        run = str(swept)
        assert "got 2 (1, 2); measure at 3 more" in refused(capsys, "fit", run, "--until", "2")
        by = refused(capsys, "fit", run, "--until", "2", "--by", "method.rollouts")
        assert "error: method.rollouts=4: " in by
        assert "unknown measure 'sucess'; did you mean 'success'" in refused(capsys, "fit", run, "--y", "sucess")
        assert "unknown setting 'method.rollout'" in refused(capsys, "fit", run, "--by", "method.rollout")
        assert "no run folder and has none in it" in refused(capsys, "fit", str(tmp_path))


class TestSizes:
    def test_a_law_in_size_takes_the_parameters_that_each_run_trains(
        self, swept: Path, tmp_path: Path, capsys: Any
    ) -> None:
        runs = tmp_path / "runs"
        copytree(swept, runs)
        argv = ["fit", str(runs), "--law", "sized_power", "--y", "error", "--until", "6", "--by", "problem.problems"]
        assert "keeps no model, so its size is not known" in refused(capsys, *argv)
        for run in runs.iterdir():
            size = 100 if "rollouts=4," in run.name else 1600
            save_file({"a": np.zeros((size // 4, 3)), "b": np.zeros(size // 4)}, newest(run) / "model.safetensors")
        (group,) = said(capsys, *argv, "--out", str(tmp_path / "fit.json"))["groups"]
        points = np.array(group["points"])
        assert set(points[:, 0]) == {100, 1600} and set(points[:, 1]) == {1, 2, 3, 4, 5, 6} and len(points) == 24
        first = curve_of(Path(group["runs"][0]), "iteration", "success")
        assert points[0].tolist() == pytest.approx([group["points"][0][0], 1, 1 - first.y[1]])
        assert group["run_of"] == [k for k in range(4) for _ in range(6)]
        assert [row[:2] for row in group["held_out"]] == [[100, 7], [100, 8], [1600, 7], [1600, 8]]
        small = ["--sizes-until", "1000", "--rival", "rising_power", "--out", str(tmp_path / "small.json")]
        (held,) = said(capsys, *argv[:6], *small)["groups"]
        assert {x[0] for x in held["points"]} == {100} and [x[:2] for x in held["held_out"]] == [
            [1600, k] for k in range(1, 9)
        ]
        assert held["rivals"]["rising_power"] > 0 and (tmp_path / "small.svg").exists()
        found = load_fits(tmp_path / "fit.json")
        assert fitted(found["groups"][0]).values == group["fit"]["values"]
        assert (tmp_path / "fit.svg").exists() and "1,600" in fits_as_text(found)
        (tmp_path / "fit.json").write_text(json.dumps(found | {"groups": [group, group | {"setting": "other"}]}))
        assert "says nothing of a budget" in refused(capsys, "allocate", str(tmp_path / "fit.json"), "--budget", "9")


def test_a_fit_may_stand_in_a_folder_that_is_not_there_yet_and_in_the_place_of_none(kept: Path, tmp_path: Path) -> None:
    found = load_fits(kept)
    fits.keep(found, tmp_path / "new" / "fit.json")
    assert load_fits(tmp_path / "new" / "fit.json") == found
    with pytest.raises(ConfigError, match="is a folder; expected the name of a file"):
        fits.keep(found, tmp_path)


def test_settings_that_are_tables_have_rows_of_their_own(tmp_path: Path) -> None:
    for limit, success in ((4, 0.1), (30, 0.9)):
        begin_run(tmp_path / str(limit), load("tti").replace(budget={"turns": Fixed(limit=limit)}))
        row = json.dumps(evaluation(1, "agent", success))
        (tmp_path / str(limit) / "metrics.jsonl").write_text(seal(row, place_of(0)) + "\n")
    rows = summary([tmp_path / "4", tmp_path / "30"], ["budget.turns"], "success")["rows"]
    assert [row["mean"] for row in rows] == [0.1, 0.9] and "limit=4" in rows[0]["settings"]["budget.turns"]


def test_attempts_at_one_task_are_no_tasks_of_their_own() -> None:
    two = [make_trajectory(1, float(k), task=make_task(f"t{k}"), group=k) for k in (0, 1) for _ in range(50)]
    assert success_interval(two) == (0.0, 1.0)
    assert success_interval(two[:50]) == wilson_interval(0, 50)
    alike = [make_trajectory(1, 1.0, task=make_task(f"t{k}"), group=k) for k in range(5) for _ in range(20)]
    assert success_interval(alike) == wilson_interval(5, 5)
    low, high = success_interval([make_trajectory(1, 1.0, task=make_task(f"t{k}"), group=k) for k in range(100)])
    assert low == pytest.approx(0.963, abs=1e-3) and high == 1.0


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("[0-9]*"))


class TestAllocate:
    def test_the_setting_that_is_predicted_to_come_to_most_is_best(self, kept: Path) -> None:
        found = allocate(load_fits(kept), 10240)
        predicted = [c["predicted"] for c in found["choices"]]
        assert predicted == sorted(predicted, reverse=True) and found["best"] == found["choices"][0]["setting"]
        assert [c["iterations"] for c in found["choices"]] == [20, 20]
        (best,) = (g for g in load_fits(kept)["groups"] if g["setting"] == found["best"])
        assert predicted[0] == pytest.approx(fitted(best).predict([10240]).mean[0])
        assert f"best: {found['best']}" in choices_as_text(found)
        with pytest.raises(ConfigError, match="--budget is a positive number"):
            allocate(load_fits(kept), float("inf"))

    def test_a_budget_buys_iterations_and_not_evaluations(self, tmp_path: Path) -> None:
        for n in (1, 2):
            begin_run(tmp_path / f"run{n}", f'name = "r{n}"\n')
            rows = (evaluation(i, "agent" if i else "warm_start", n * (i + 1) / 100) for i in range(0, 41, 5))
            lines = (seal(json.dumps(row), place_of(k)) for k, row in enumerate(rows))
            (tmp_path / f"run{n}" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        found = fits.fit_runs([tmp_path], RisingPower(), "env_steps", "success", by="name")
        assert [c["iterations"] for c in allocate(found, 80 * 4100)["choices"]] == [80, 80]

    def test_attempts_are_shared_out_by_what_each_adds(self, tmp_path: Path, capsys: Any) -> None:
        attempts = np.arange(1, 9)
        groups = [
            {"setting": name, "fit": {"law": {"type": "geometric"}}, "spent": 1.0,
             "points": np.stack([attempts, 1 - (1 - p) ** attempts], 1).tolist()}
            for name, p in (("easy", 0.6), ("hard", 0.15))
        ]  # fmt: skip
        data = {"x": "attempts", "y": "success", "by": "kind", "groups": groups}
        (tmp_path / "fit.json").write_text(json.dumps(data))
        found = said(capsys, "allocate", str(tmp_path / "fit.json"), "--budget", "20")
        easy, hard = (c["attempts"] for c in found["choices"])
        assert easy + hard == 20 and easy == max(range(21), key=lambda n: 2 - 0.4**n - 0.85 ** (20 - n))

    def test_nothing_to_choose_is_refused(self, kept: Path, tmp_path: Path, capsys: Any) -> None:
        found = load_fits(kept)
        path = tmp_path / "fit.json"
        path.write_text(json.dumps(found | {"groups": found["groups"][:1]}))
        assert "nothing to choose between" in refused(capsys, "allocate", str(path), "--budget", "10")
        assert "a positive number, got 0" in refused(capsys, "allocate", str(kept), "--budget", "0")
        for less_is_more, why in (({"y": "error"}, "fit --y success"), ({"reach": ["success", 0.5]}, "levels cost")):
            path.write_text(json.dumps(found | less_is_more))
            assert why in refused(capsys, "allocate", str(path), "--budget", "10")
        path.write_text("{}")
        assert "is no fit" in refused(capsys, "allocate", str(path), "--budget", "10")


class TestMethods:
    def test_runs_that_differ_in_their_seed_are_runs_of_one_method(self, swept: Path, capsys: Any) -> None:
        found = said(capsys, "compare", str(swept))
        first, second = found["methods"]
        assert [m["name"] for m in found["methods"]] == ["method.rollouts=16", "method.rollouts=4"]
        last = {n: [curve_of(swept / f"rollouts={n},seed={s}", "iteration", "success").y[-1] for s in (0, 1)]
                for n in (4, 16)}  # fmt: skip
        assert first["runs"] == 2 and first["iqm"] == pytest.approx(np.mean(last[16]))
        above = np.mean([(a > b) + 0.5 * (a == b) for a in last[4] for b in last[16]])
        assert second["improvement"]["mean"] == pytest.approx(above) and "improvement" not in first
        assert second["profile"][-1] == 0 and max(second["profile"]) <= 1
        assert found["recipe"]["seed"] == [0, 1, 0, 1] and found["recipe"]["method.rollouts"] == [16, 16, 4, 4]

    def test_a_run_scores_the_share_of_tasks_that_it_solves_and_one_run_has_no_interval(self, tmp_path: Path) -> None:
        runs = []
        for name, solved in {"quick": (3, 3, 2), "slow": (1, 2, 3)}.items():  # of four tasks, by seed
            for seed, n in enumerate(solved):
                runs.append(tmp_path / f"{name}{seed}")
                begin_run(runs[-1], f'name = "{name}"\nseed = {seed}\n')
                row = evaluation(5, "agent", n / 4) | {"measures": {"success": [1.0] * n + [0.0] * (4 - n)}}
                (runs[-1] / "metrics.jsonl").write_text(seal(json.dumps(row), place_of(0)) + "\n")
        quick, slow = compare(runs)["methods"]
        assert (quick["iqm"], slow["iqm"]) == pytest.approx((2 / 3, 1 / 2))  # of all zeros and ones it were 0.83
        assert slow["improvement"]["mean"] == pytest.approx((0 + 0.5 + 2) / 9)
        assert re.search(r"slow +1 +0\.250 +- ", as_text(compare(runs[:4])))

    def test_methods_are_paired_by_seed_and_named_by_their_recipes_where_these_tell_them_apart(
        self, tmp_path: Path
    ) -> None:
        runs = []
        for name, seeds, lr in (("plain", (0, 1, 2), 1), ("lively", (1, 2, 3), 2), ("lively", (3, 4), 3)):
            for seed in seeds:
                runs.append(tmp_path / f"{name}{seed}-{lr}")
                begin_run(runs[-1], f'name = "{name}"\nseed = {seed}\n[learner]\nlr = {lr}\n')
                right = [1.0, float(name == "lively"), float(seed == 2)]
                row = evaluation(5, "agent", sum(right) / 3) | {"measures": {"success": right}}
                (runs[-1] / "metrics.jsonl").write_text(seal(json.dumps(row), place_of(0)) + "\n")
        found = compare(runs)
        assert [m["name"] for m in found["methods"]] == ["plain", "lively learner.lr=2", "lively learner.lr=3"]
        paired, alone = (m["difference"] for m in found["methods"][1:])
        assert paired["mean"] == pytest.approx(1 / 3) and paired["seeds"] == 2 and paired["lo"] < 1 / 3 < paired["hi"]
        assert "fewer than two seeds in common" in alone["note"]
        text = as_text(found)
        assert re.search(r"lively learner.lr=2 +3 .* \+0\.333 +\S+ to ", text)
        assert "methods have 2 seeds in common: fewer than 5 decide nothing" in text
        page = write_comparison(runs[:6], compare(runs[:6]), tmp_path / "page.html").read_text()
        assert "Against plain, lively: +33 points of success on the same 2 seeds" in page
        assert "<title>plain and lively" in page
        assert "whose intervals stand in the tables" in page, "six bands cover each other"
        page = write_comparison(runs[:3], compare(runs[:3]), tmp_path / "three.html").read_text()
        assert "with their 95% interval" in page

    def test_runs_of_one_number_each_are_told_before_and_after_and_differ_without_an_interval(
        self, swept: Path
    ) -> None:
        folders = [swept / f"rollouts={n},seed=0" for n in (4, 16)]
        found = compare(folders)
        ends = [(y[0], y[-1]) for y in (curve_of(folder, "iteration", "success").y for folder in folders)]
        assert [(run["before"], run["after"]) for run in found["runs"]] == ends
        assert found["differences"][0]["success"]["mean"] == pytest.approx(ends[1][1] - ends[0][1])
        text = as_text(found)
        assert "no measure in common" not in text and "goal distance" not in text

    def test_single_runs_make_no_method_and_unlike_tasks_are_said(self, swept: Path) -> None:
        assert compare([swept / "rollouts=4,seed=0", swept / "rollouts=16,seed=0"])["methods"] == []

    def test_files_of_episodes_and_runs_of_other_tasks_are_not_compared_as_methods(self, tmp_path: Path) -> None:
        files = [tmp_path / "ours", tmp_path / "theirs"]
        for path in files:
            write_episodes([make_trajectory(task=make_task(path.name))], path, "messages", Origin("x"))
        assert compare(files)["methods"] == []
        runs = [tmp_path / f"{tasks}{seed}" for tasks in ("dial", "graph") for seed in (0, 1)]
        row = evaluation(5, "agent", 0.5) | {"measures": {"success": [1.0, 0.0]}}
        for run in runs:
            begin_run(run, f'name = "r"\nseed = {run.name[-1]}\n[tasks]\ntype = "{run.name[:-1]}"\n')
            (run / "metrics.jsonl").write_text(seal(json.dumps(row), place_of(0)) + "\n")
        (note,) = compare(runs)["methods"]
        assert "not every run has success for the same tasks" in note["note"]

    def test_other_code_is_named(self, swept: Path, tmp_path: Path) -> None:
        runs = []
        for name, version in (("a", "0.1.0"), ("b", "0.2.0")):
            runs.append(tmp_path / name)
            runs[-1].mkdir()
            for file in ("run.toml", "metrics.jsonl"):
                (runs[-1] / file).write_bytes((swept / "rollouts=4,seed=0" / file).read_bytes())
            write_object(runs[-1] / "format.json", {"format": 3, "longstride": version, "commit": "c0ffee"})
        assert compare(runs)["code"] == {"longstride": ["0.1.0", "0.2.0"]}
        assert compare([swept / f"rollouts=4,seed={s}" for s in (0, 1)])["code"] == {}
