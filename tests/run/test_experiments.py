"""Experiments of other kinds than language agents: the same commands, run folder, report, resume and claims."""

import errno
import io
import json
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_recipe import RECIPE
from helpers import begin_run, rows_of
from rich.console import Console

from longstride import papers
from longstride.claims.claim import Claim
from longstride.claims.runner import run_claim
from longstride.cli.main import main
from longstride.cluster.config import ClusterConfig
from longstride.control import ControlRecipe, TrainingPhase
from longstride.control.evaluation import summary_of
from longstride.core.config import dump_toml, resolve
from longstride.core.errors import ConfigError, RunError
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.report.claims import write_pages
from longstride.report.html import write_report
from longstride.report.live import Live
from longstride.run import folder as run_folder
from longstride.run.experiment import load_experiment
from longstride.run.listener import Silent
from longstride.run.policies import load_run
from longstride.stats import Ordering

NAMES = ("cal_ql", "cql", "sharsa", "wsrl")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the tiny recipe in it."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(dump_toml(RECIPE))
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    RECIPE.train(folder)
    return folder


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "Traceback" not in err
    return err


# what a file says


def test_a_file_says_of_which_type_it_is_and_one_that_does_not_is_a_recipe(tmp_path: Path) -> None:
    for experiment, name in ((papers.load("tti"), "recipe"), (RECIPE, "control_recipe")):
        path = tmp_path / f"{name}.toml"
        path.write_text(dump_toml(experiment))
        assert tomllib.loads(path.read_text())["type"] == name
        assert load_experiment(path) == experiment
    old = (tmp_path / "recipe.toml").read_text().replace('type = "recipe"\n', "", 1)
    (tmp_path / "old.toml").write_text(old)
    assert "type" not in tomllib.loads(old) and load_experiment(tmp_path / "old.toml") == papers.load("tti")


def test_an_unknown_type_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('type = "recip"')
    with pytest.raises(ConfigError, match=r"x\.toml: experiment: unknown type 'recip'; did you mean 'recipe'"):
        load_experiment(tmp_path / "x.toml")


def test_reading_a_recipe_of_language_agents_imports_no_torch(tmp_path: Path) -> None:
    (tmp_path / "tti.toml").write_text(dump_toml(papers.load("tti")))
    code = (
        "import sys\nfrom longstride.cli.main import main\n"
        f"main(['train', {str(tmp_path / 'tti.toml')!r}, '--dry-run'])\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("name", NAMES)
def test_recipes_of_control_are_printed_and_read_back(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = papers.load(name)
    assert isinstance(recipe, ControlRecipe) and resolve(ControlRecipe, recipe, []) == recipe
    assert main(["train", name, "--dry-run"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["name"] == name
    assert recipe.agent.levels[-1].data.goals is not None


def test_recipes_differ_where_their_papers_do() -> None:
    cql, cal_ql, wsrl = (papers.load(name) for name in ("cql", "cal_ql", "wsrl"))
    assert isinstance(cql, ControlRecipe) and isinstance(cal_ql, ControlRecipe) and isinstance(wsrl, ControlRecipe)
    calibrated = [r.agent.as_data()["levels"][0]["critic"]["conservative"]["calibrated"] for r in (cql, cal_ql, wsrl)]
    assert calibrated == [False, True, True]
    assert [sum(phase.episodes for phase in r.phases) > 0 for r in (cql, cal_ql, wsrl)] == [False, True, True]
    assert cal_ql.phases[-1].retained == 0.5 and cal_ql.phases[-1].conservative
    assert wsrl.phases[-1].retained == 0.0 and not wsrl.phases[-1].conservative
    assert wsrl.phases[-2].episodes and not wsrl.phases[-2].utd


# commands


def test_train_resume_view_and_eval_take_a_recipe_of_control(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tiny.toml", "phases=[{iterations=1, updates=2}]", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "run folder: run" in out and "report: " in out and "check_again" not in out
    assert main(["train", "--resume", "run", "phases=[{iterations=2, updates=2}]"]) == 0
    kinds = [(r["kind"], r["iteration"]) for r in rows_of(desk / "run")]
    assert kinds == [("data", 0), ("eval", 0), ("train", 1), ("eval", 1), ("train", 2), ("eval", 2)]
    assert main(["view", "run"]) == 0
    capsys.readouterr()
    assert main(["eval", "run"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["5", "policy", "agent", "warm_start"]
    assert main(["playback", "run", "0"]) == 0


def test_a_key_of_another_type_is_refused(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown key 'episodes'" in refused(capsys, "train", "tiny.toml", "episodes=3", "--dry-run")
    assert "unknown type 'recipe'" in refused(capsys, "train", "tiny.toml", "type=recipe", "--dry-run")


def test_a_recipe_of_control_is_not_spread_over_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave out --cluster"):
        RECIPE.train(tmp_path / "run", placement=ClusterConfig())
    assert not (tmp_path / "run").exists()


# the run folder


def test_a_run_of_control_has_the_files_of_every_run_and_no_trajectories(finished: Path) -> None:
    assert {p.name for p in finished.iterdir()} == {"format.json", "run.toml", "metrics.jsonl", "checkpoints"}
    kept = sorted(p.name for p in (finished / "checkpoints").iterdir())
    assert kept == ["000000", "000003", "000004"]
    assert {p.name for p in (finished / "checkpoints" / "000004").iterdir()} == {"trainer.json", "trainer.safetensors"}


def test_a_run_that_could_not_begin_takes_away_what_it_has_made_and_nothing_else(tmp_path: Path) -> None:
    theirs = [tmp_path / name for name in ("media/holiday.mp4", "episodes/one.mkv", "notes")]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    run = run_folder.RunFiles(RECIPE, tmp_path, Silent(), resume=False)
    with pytest.raises(RunError, match="no engine"), run.undone_before_the_start():
        run.row("cloning")
        raise RunError("no engine")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(theirs)


@pytest.mark.parametrize("name", ["metrics.jsonl", "trajectories.jsonl", "checkpoints/other.pt"])
def test_what_a_run_would_overwrite_is_left_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(RunError, match=f"holds {Path(name).parts[0]} and no run.toml, and a run would overwrite it"):
        run_folder.RunFiles(RECIPE, tmp_path, Silent(), resume=False)
    assert path.read_text() == "mine" and [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_another_recipe_or_type_is_refused_by_name_and_a_longer_last_phase_is_not(
    finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    with pytest.raises(RunError, match="another recipe: 'seed' is 0 there and 1 here"):
        resolve(ControlRecipe, RECIPE, ["seed=1"]).train(folder, resume=True)
    with pytest.raises(RunError, match="another recipe: 'type' is 'control_recipe' there and 'recipe' here"):
        papers.load("tti").train(folder, resume=True)
    *first, last = RECIPE.phases
    longer = RECIPE.model_copy(update={"phases": (*first, last.model_copy(update={"iterations": 3}))})
    longer.train(folder, resume=True)
    assert rows_of(folder)[-1]["iteration"] == 5
    longer.train(tmp_path / "at once")
    assert rows_of(tmp_path / "at once")[-1] == rows_of(folder)[-1]
    with pytest.raises(RunError, match="'phases'"):
        shorter = (RECIPE.phases[0], TrainingPhase(iterations=1, episodes=1))
        RECIPE.model_copy(update={"phases": shorter}).train(folder, resume=True)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metrics.jsonl", ""),
    ],
)
def test_a_damaged_run_is_refused_with_one_message(finished: Path, tmp_path: Path, file: str, text: str) -> None:
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / file).write_text(text)
    with pytest.raises(RunError):
        RECIPE.train(tmp_path / "run", resume=True)


def test_a_full_disk_says_what_is_kept_and_the_run_can_go_on(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = run_folder.save_checkpoint

    def full(run: Path, iteration: int, *rest: Any) -> Any:
        if iteration == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(run, iteration, *rest)

    with monkeypatch.context() as patch, pytest.raises(RunError, match="disk is full.*iteration 1.*resume"):
        patch.setattr(run_folder, "save_checkpoint", full)
        RECIPE.train(tmp_path / "run")
    RECIPE.train(tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(finished)


# report


def test_the_report_of_a_control_run_shows_what_there_is_and_nothing_of_language(finished: Path) -> None:
    page = write_report(finished).read_text()
    data = json.loads(page.split('<script type="application/json"', 1)[1].split(">", 1)[1].split("</script>", 1)[0])
    titles = [figure["title"] for figure in data["figures"]]
    assert titles == [
        "Success",
        "Returns of the offline data",
        "Where the offline data are",
        "Ways before training",
        "Ways after",
        "Horizon and length",
        "Success by task",
        "Time-outs",
        "Loss",
        "Values",
        "Values along shortest ways",
    ]
    tasks = next(figure for figure in data["figures"] if figure["title"] == "Success by task")
    assert [s["name"] for s in tasks["series"]] == [f"umaze-{k}" for k in range(1, 6)]
    assert all(f'<th scope="col">{word}</th>' not in page for word in ("invalid", "easy", "medium", "hard"))
    assert '<th scope="col">success</th>' in page and "is going on or was stopped" not in page


def test_an_offline_run_has_no_figure_of_training_lengths_and_an_unfinished_one_says_so(tmp_path: Path) -> None:
    offline = RECIPE.model_copy(update={"phases": (TrainingPhase(iterations=1, updates=1),)})
    offline.train(tmp_path)
    begin_run(tmp_path, offline.model_copy(update={"phases": (TrainingPhase(iterations=3, updates=1),)}))
    page = write_report(tmp_path).read_text()
    assert "Horizon and length" not in page and "stands at iteration 1 of 3" in page


def test_a_summary_of_no_episodes_says_nothing_of_them() -> None:
    assert set(summary_of([]).values()) == {0}


def test_the_live_view_shows_tasks_and_updates_and_nothing_of_language(finished: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=110, height=30, color_system=None)
    with Live("tiny", RECIPE.iterations, console) as live:
        for row in rows_of(finished):
            live(row)
        live.progress("train", 3, 10)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("iteration 4/4", "umaze-1 0.", "updates", "3/10"))
    assert all(part not in text for part in ("tokens", "invalid", "easy"))


# claims


def test_a_claim_over_arms_of_control_is_judged_and_goes_on(tmp_path: Path) -> None:
    arm = RECIPE.replace(phases=(TrainingPhase(iterations=1, updates=1),), evaluation={"episodes": 4})
    claim = Claim(
        name="tiny",
        paper="none",
        statement="Updates with a longer horizon of the test solve more.",
        recipe=arm,
        arms={"short": arm.replace(test_horizon={"limit": 1}), "long": arm.replace(test_horizon={"limit": 10})},
        expected=Ordering(relations=("long > short",)),
        seeds=(0, 1),
    )
    heard: list[dict[str, Any]] = []
    named: list[str] = []

    class Listener:
        def __call__(self, row: dict[str, Any]) -> None:
            heard.append(row)

        def progress(self, phase: str, done: int, total: int) -> None: ...

    def watch(run: str) -> Listener:
        named.append(run)
        return Listener()

    result = run_claim(claim, tmp_path, watch=watch)
    assert named == ["short, seed 0", "short, seed 1", "long, seed 0", "long, seed 1"]  # seeds learn side by side
    assert len(heard) == 4 * 4 and result["matched"] == []
    assert result["arms"]["short"]["measures"]["success"]["by_seed"] == [0.0, 0.0]
    assert result["recipe"]["type"] == "control_recipe"
    write_pages(tmp_path, result)
    assert (tmp_path / "tiny.svg").exists() and "tiny.md" in (tmp_path / "overview.md").read_text()
    again = run_claim(claim, tmp_path, watch=watch)
    assert len(heard) == 4 * 4 and again == result
    assert pickle.loads(pickle.dumps(RECIPE.train)).__self__ == RECIPE  # how a run gets into a process of its own
    with pytest.raises(ConfigError, match="check_again is for language agents"):
        run_claim(claim.replace(check_again="long"), tmp_path / "other")


# problems whose answer is known


class Bandit(ExactProblem):
    """Arms with known rewards."""

    rewards: tuple[float, ...]

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {"regret": max(self.rewards) - float(softmax(solution["logits"]) @ np.array(self.rewards))}


class PolicyGradient(ExactMethod[Bandit]):
    """The exact gradient of the expected reward of a softmax policy, with noise of its own."""

    rate: float = 1.0
    noise: float = 0.0

    def start(self, problem: Bandit, rng: np.random.Generator) -> State:
        return {"logits": rng.normal(size=len(problem.rewards))}

    def step(self, problem: Bandit, state: State, rng: np.random.Generator) -> State:
        p, r = softmax(state["logits"]), np.array(problem.rewards)
        return {"logits": state["logits"] + self.rate * p * (r - p @ r) + self.noise * rng.normal(size=len(r))}


class Nothing(ExactProblem):
    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {}


def softmax(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max())
    return p / p.sum()


EXACT = ExactRecipe(
    name="bandit", problem=Bandit(rewards=(0.1, 0.9)), method=PolicyGradient(noise=0.01), iterations=40, every=10
)


@pytest.mark.parametrize(("every", "figures"), [(10, 1), (40, 0)])
def test_the_report_of_an_exact_experiment_has_all_values_and_a_curve_where_there_is_more_than_start_and_end(
    tmp_path: Path, every: int, figures: int
) -> None:
    EXACT.replace(every=every).train(tmp_path / "run")
    page = write_report(tmp_path / "run").read_text()
    assert page.count('"title":"Regret"') == figures and "None yet" not in page
    table = page.partition("All evaluations")[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(?:<td>([^<]*)</td>)(?:<td>([^<]*)</td>)</tr>", table)
    assert [row[0] for row in rows] == [str(i) for i in range(0, 41, every)] and 'scope="col">regret<' in table
    regret = [r["measures"]["regret"][0] for r in rows_of(tmp_path / "run")]
    assert [row[1] for row in rows] == [f"{value:.4g}" for value in regret]


def test_an_exact_experiment_measures_its_start_every_so_often_and_its_end(tmp_path: Path) -> None:
    EXACT.train(tmp_path / "run")
    found = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [(r["iteration"], r["policy"]) for r in found] == [
        (0, "warm_start"), (10, "agent"), (20, "agent"), (30, "agent"), (40, "agent")
    ]  # fmt: skip
    regret = [r["measures"]["regret"][0] for r in found]
    assert regret[-1] < 0.05 < regret[0]
    page = write_report(tmp_path / "run").read_text()
    assert "regret" in page and "Regret" in page and "nothing measured yet" not in page


def test_an_exact_experiment_goes_on_with_the_numbers_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    EXACT.train(tmp_path / "one")
    EXACT.replace(iterations=20).train(tmp_path / "two")
    EXACT.train(tmp_path / "two", resume=True)
    one, two = ((tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "two"))
    assert [json.loads(a)["measures"] for a in one] == [json.loads(b)["measures"] for b in two]


def test_an_exact_experiment_is_named_by_module_and_class_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "bandit.toml"
    path.write_text(dump_toml(EXACT))
    assert tomllib.loads(path.read_text())["method"]["type"] == f"{__name__}:PolicyGradient"
    assert load_experiment(path) == EXACT


def test_a_method_refuses_a_problem_that_is_not_its_own() -> None:
    with pytest.raises(ConfigError, match="policy_gradient solves problems of type bandit, got nothing"):
        EXACT.replace(problem=Nothing())


def test_a_run_of_an_exact_experiment_can_be_viewed_and_has_nothing_to_evaluate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    EXACT.train(tmp_path / "run")
    assert main(["view", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert "its metrics rows have all that it measures" in refused(capsys, "eval", str(tmp_path / "run"))
    with pytest.raises(RunError, match="no language model"):
        load_run(tmp_path / "run")


def test_a_claim_over_exact_arms_is_judged_by_its_measure(tmp_path: Path) -> None:
    claim = Claim(
        name="bandit",
        paper="none",
        statement="A larger rate ends with less regret.",
        recipe=EXACT,
        arms={"slow": EXACT.replace(method={"rate": 0.05}), "fast": EXACT},
        measure="regret",
        expected=Ordering(relations=("slow > fast by 0.05",)),
        seeds=tuple(range(8)),
    )
    result = run_claim(claim, tmp_path)
    assert result["effects"][0]["verdict"] == "reproduced"
    assert result["verdict"] == "undecided" and "it has no control" in result["because"]
    write_pages(tmp_path, result)
    assert "| slow > fast by 0.05 |" in (tmp_path / "bandit.md").read_text()
