"""The command line, with the trainer replaced by a fake where only the command is tested."""

import errno
import json
import random
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import begin_run

from longstride import papers
from longstride.cli import evaluate
from longstride.cli.main import main
from longstride.core import modules
from longstride.core.budget import Budget
from longstride.core.config import load_toml
from longstride.core.content import text_in
from longstride.core.errors import ConfigError, OwnCodeError, RunError
from longstride.core.implementation import IMPLEMENTATIONS
from longstride.run.recipe import Recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class FakeTrainer:
    """In place of `run.loop.train`: keeps its calls, writes a run.toml, raises what it is asked to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Path, bool]] = []
        self.error: BaseException | None = None

    def train(self, recipe: Any, folder: Path, listener: Any, resume: bool, placement: Any = None) -> None:
        self.calls.append((recipe, folder, resume))
        begin_run(folder, recipe)
        if self.error:
            raise self.error


@pytest.fixture
def trainer(desk: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTrainer:
    fake = FakeTrainer()
    report = SimpleNamespace(write_report=lambda run: run / "report.html")
    monkeypatch.setitem(IMPLEMENTATIONS, Recipe.reference(), fake.train)
    monkeypatch.setitem(sys.modules, "longstride.report.html", report)  # pyright: ignore[reportArgumentType]
    return fake


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The message of a command that is refused."""
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "Traceback" not in err
    return err


# start


@pytest.mark.parametrize("argv", [["--help"], ["list"], ["train", "--help"], ["doctor", "--help"]])
def test_help_and_list_import_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import sys\nfrom longstride.cli.main import main\n"
        f"try:\n    main({argv})\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'pydantic', 'starlette', 'rich', 'scipy'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    ).stdout
    assert out.splitlines()[-1] == "[]"


def test_the_module_runs_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longstride", "train", "tti", "--out"], capture_output=True, text=True, cwd=ROOT / "src"
    )
    assert done.returncode == 2
    assert "longstride train: error: argument --out: expected one argument" in done.stderr


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv", [["trian"], ["list", "extra"], ["train", "tti", "--sede", "1"], ["train", "tti", "--dry", "x=1"]]
)
def test_a_command_line_that_cannot_be_read_ends_with_usage(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: longstride" in capsys.readouterr().err


# recipes and list


def test_list_shows_every_recipe_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["recipes"]
    assert {r["name"] for r in shown} == papers.catalogue().keys()
    for entry in shown:
        assert entry["summary"] and entry["summary"] in text


def test_list_shows_the_verdict_that_is_kept_of_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claims").mkdir()
    Path("claims/dars.json").write_text('{"verdict": "not reproduced"}')
    assert main(["list", "--json"]) == 0
    states = {r["name"]: r["state"] for r in json.loads(capsys.readouterr().out)["recipes"]}
    assert (states["dars"], states["archer"], states["ppo"]) == ("not reproduced*", "claim", "")
    assert states["tti/steps"] == "shown"  # beside its recipe
    assert states["grpo"] == "claim"  # what is kept of it is of an earlier form
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  dars +acts +not reproduced\* +DARS", out, re.M) and "* below the standard" in out
    assert main(["list", "--acts"]) == 0
    assert not re.search(r"^  \S+ +(exact|published) ", capsys.readouterr().out, re.M)
    Path("claims/dars.json").write_text("{")
    assert main(["list"]) == 2
    assert "dars.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("load", [papers.load, papers.load_claim])
def test_an_unknown_recipe_or_claim_is_refused_with_the_nearest_name(load: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'tti'"):
        load("ttii")


# train


def test_dry_run_prints_toml_from_which_the_same_recipe_is_read(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tti", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert tomllib.loads(printed)["name"] == "tti"
    Path("mine.toml").write_text(printed)
    assert main(["train", "mine.toml", "--dry-run"]) == 0
    assert capsys.readouterr().out == printed
    assert load_toml(type(papers.load("tti")), Path("mine.toml")) == papers.load("tti")
    assert not Path("runs").exists()


def test_overrides_may_stand_before_and_behind_options(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "train",
        "tti",
        "iterations=2",
        "--seed",
        "3",
        "budget.turns.type=fixed",
        "--dry-run",
        "budget.turns.limit=7",
        "learner.lr=3e-4",
    ]
    assert main(argv) == 0
    data = tomllib.loads(capsys.readouterr().out)
    assert (data["iterations"], data["seed"], data["learner"]["lr"]) == (2, 3, 3e-4)
    assert data["budget"]["turns"] == {"type": "fixed", "limit": 7}


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["ttii"], "unknown recipe 'ttii'; did you mean 'tti'"),
        (["none.toml"], "cannot read none.toml"),
        ([], "which recipe?"),
        (["iterations=3"], "stands where a recipe belongs"),
        (["tti", "iterations", "3"], "'iterations' is not an override; expected key=value"),
        (["tti", "--dry-run", "more"], "'more' is not an override"),
        (["tti", "lerner.lr=3"], "did you mean 'learner'"),
        (["tti", "budget.turns.type=fixd"], "did you mean 'fixed'"),
        (["tti", "iterations=0"], "iterations: Input should be greater than or equal to 1 (got 0)"),
        (["tti", "--resume", "runs/x"], "leave out 'tti'"),
        (["--resume", "runs/x"], "runs/x is no run folder"),
        (["--resume", "runs/x", "--out", "y"], "leave out --out"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_message(
    trainer: FakeTrainer, capsys: pytest.CaptureFixture[str], argv: list[str], part: str
) -> None:
    assert part in refused(capsys, "train", *argv)
    assert not trainer.calls


def test_runs_are_numbered(trainer: FakeTrainer, desk: Path) -> None:
    (desk / "runs" / "tti-7").mkdir(parents=True)
    (desk / "runs" / "tti-x").mkdir()
    assert main(["train", "tti"]) == 0
    assert main(["train", "tti"]) == 0
    assert [folder for _, folder, _ in trainer.calls] == [Path("runs/tti-8"), Path("runs/tti-9")]
    assert not any(resume for _, _, resume in trainer.calls)


def test_a_folder_with_something_in_it_is_refused_and_an_empty_one_taken(
    trainer: FakeTrainer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    assert main(["train", "tti", "--out", "empty"]) == 0
    capsys.readouterr()
    message = refused(capsys, "train", "tti", "--out", "empty")  # it holds a run now
    assert "empty is not empty" in message and "train --resume empty" in message and "--out" in message
    Path("file").touch()
    assert "file is a file; choose another place with --out" in refused(capsys, "train", "tti", "--out", "file")
    assert len(trainer.calls) == 1


@pytest.mark.parametrize(("recipe", "strategy"), [("tti", "check_again"), ("grpo", "best_of attempts=4")])
def test_the_strategy_that_is_proposed_after_a_run_fits_its_tasks(
    trainer: FakeTrainer, capsys: pytest.CaptureFixture[str], recipe: str, strategy: str
) -> None:
    assert main(["train", recipe]) == 0
    (more,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("more: ")]
    assert more.endswith(f"eval runs/{recipe}-1 --strategy direct --strategy {strategy}")


def test_resume_reads_the_recipe_of_the_run(trainer: FakeTrainer) -> None:
    assert main(["train", "tti", "--out", "a", "--seed", "5"]) == 0
    assert main(["train", "--resume", "a"]) == 0
    assert main(["train", "iterations=99", "--resume", "a"]) == 0
    (first, _, _), (second, folder, resume), (third, _, _) = trainer.calls
    assert (second, folder, resume) == (first, Path("a"), True)
    assert second.seed == 5
    assert third == first.replace(iterations=99)


def test_ctrl_c_prints_the_command_that_resumes(trainer: FakeTrainer, capsys: pytest.CaptureFixture[str]) -> None:
    trainer.error = KeyboardInterrupt()
    assert main(["train", "tti", "--out", "my runs"]) == 130
    command = shlex.split(capsys.readouterr().err.splitlines()[-1])
    trainer.error = None
    assert main(command[command.index("train") :]) == 0
    assert trainer.calls[1][1:] == (Path("my runs"), True)
    assert "my runs" in shlex.split(capsys.readouterr().out.splitlines()[-1]), (
        "the command of what comes next is one too"
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_full_disk_says_what_is_kept_and_how_to_go_on(
    trainer: FakeTrainer, capsys: pytest.CaptureFixture[str], wrapped: bool
) -> None:
    trainer.error = OSError(errno.ENOSPC, "No space left on device", "a/metrics.jsonl")
    if wrapped:
        cause, trainer.error = trainer.error, RunError("the disk is full: a/metrics.jsonl")
        trainer.error.__cause__ = cause
    message = refused(capsys, "train", "tti", "--out", "a")
    for part in ["disk is full", "a/metrics.jsonl", "keeps all finished iterations", "train --resume a"]:
        assert part in message


def test_trouble_of_another_kind_is_one_message_without_advice_about_the_disk(
    trainer: FakeTrainer, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer.error = RunError("the checkpoint is damaged")
    assert refused(capsys, "train", "tti", "--out", "a") == "error: the checkpoint is damaged\n"


def test_an_error_of_ones_own_code_says_how_to_go_on(trainer: FakeTrainer, capsys: pytest.CaptureFixture[str]) -> None:
    trainer.error = OwnCodeError("Mine: the reward is nan (float); expected a finite number")
    message = refused(capsys, "train", "tti", "--out", "a")
    assert message.startswith("error: Mine: the reward is nan")
    assert "keeps all finished iterations" in message and "train --resume a" in message


def test_a_file_that_was_named_without_its_ending_is_found(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "mine.py").touch()
    message = refused(capsys, "train", "mine")
    assert "did you mean 'mine.py'" in message
    assert len(message) < 1500


def test_a_bug_keeps_its_traceback(trainer: FakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "_folders", set())  # other tests make own code importable, this file perhaps too
    trainer.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        main(["train", "tti", "--out", "a"])


# other commands


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "direct"),
        (["direct", "turns=5"], "direct_5_turns"),
        (["best_of"], "best_of_4_by_majority"),
        (["best_of", "attempts=2", "by.type=verifier"], "best_of_2_by_verifier"),
        (["best_of", "by.type=scored", "by.scorer.type=generative"], "best_of_4_by_generative_1"),
        (["check_again", "checks=3"], "check_again_3"),
        (["think_on"], "think_on_1"),
        (["think_on", "times=2"], "think_on_2"),
        (["think_on", "most=32"], "think_on_to_32"),
        (["think_on", "times=0", "most=32"], "think_on_0_to_32"),
        (["revise", "answers=3"], "revise_3"),
        (["searched", "search.n=8", "mark="], "beam_8_2_width_by_score_guided_by_confidence"),
        (["delegate", "model=runs/a", "each=turn"], "delegate_turn_below_0.5_by_confidence_to_runs/a"),
    ],
)
def test_a_strategy_is_made_of_its_name_and_its_settings(words: list[str], name: str) -> None:
    (strategy,) = evaluate.strategies([words] if words else [])
    assert strategy.name == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check-again"], "unknown type 'check-again'; did you mean 'check_again'?"),
        (["check_again", "check=3"], "--strategy check_again: check: unknown key 'check'; did you mean 'checks'?"),
        (["best_of", "attempts=1"], "--strategy best_of: attempts: Input should be greater than or equal to 2 (got 1)"),
        (["best_of", "by=verifier"], "did you mean by.type=verifier?"),
        (["best_of", "RUN"], "--strategy best_of: 'RUN' is not an override; expected key=value"),
        (["best_of", "engine.processes=1"], "engine.processes=1 is a setting of the recipe; it stands before"),
        (["delegate"], "--strategy delegate: model: it is missing, and has no default"),
    ],
)
def test_a_strategy_that_cannot_be_made_is_refused_with_what_was_meant(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "base", "--tasks", "1", "--strategy", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_strategy_may_stand_in_a_file_of_data_or_be_of_ones_own(desk: Path) -> None:
    (desk / "judge.toml").write_text(
        'type = "best_of"\n[by]\ntype = "scored"\nscorer = {type = "pairwise", votes = 3}\n'
        'judge = {type = "http_judge", judge = {url = "http://127.0.0.1:1/v1", model = "m"}}\n'
    )
    (desk / "patient.py").write_text(
        "from longstride.strategies import Direct\n\nclass Patient(Direct):\n    patience: int = 1\n"
    )
    found = evaluate.strategies([["judge.toml", "attempts=2"], ["patient:Patient", "patience=9"]])
    assert found[0].name == "best_of_2_by_pairwise_round_robin_3_http_judge"
    assert found[1].as_data() == {"type": "patient:Patient", "patience": 9}
    (desk / "judge.toml").write_text(
        'type = "best_of"\nby = {type = "scored", scorer = {type = "pairwise", vote = 3}}\n'
    )
    with pytest.raises(ConfigError, match="judge.toml: by.scorer.vote: unknown key 'vote'; did you mean 'votes'"):
        evaluate.strategies([["judge.toml"]])


def test_the_help_of_a_strategy_has_its_settings_and_those_of_parts_that_were_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(["eval", *words, "--help"])
        assert end.value.code == 0
        return " ".join(capsys.readouterr().out.split())

    assert "several are compared. direct, anytime, best_of, check_again" in shown()
    assert "attempts=4 Episodes of a task. by.type=majority Which of them counts. One of likelihood, majority" in shown(
        "--strategy", "best_of"
    )
    scored = shown("--strategy", "direct", "--strategy", "best_of", "by.type=scored", "by.scorer.type=generative")
    assert "turns= Turns of an episode" in scored and "by.scorer.votes=1 Rationales" in scored
    with pytest.raises(SystemExit):
        main(["eval", "--strategy", "best-of", "--help"])
    assert "did you mean 'best_of'?" in capsys.readouterr().err


def test_several_strategies_stand_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--strategy", "direct", "--strategy", "best_of", "attempts=2", "--strategy", "think_on", "most=8"]
    assert (
        main(["eval", "base-puzzles", "engine.processes=1", "evaluation.baselines=false", "--tasks", "2", *asked]) == 0
    )
    *rows, second, third = capsys.readouterr().out.splitlines()[2:]
    names = ["direct", "best_of_2_by_majority", "think_on_to_8"]
    assert [line.split()[:2] for line in rows] == [["agent", name] for name in names]
    for line, name in ((second, names[1]), (third, names[2])):
        assert re.fullmatch(rf"{name} - direct: success \S+, 95 % \S+ to \S+, on the same 2 tasks", line)


def test_an_evaluation_in_which_every_episode_failed_is_an_error_with_what_was_said() -> None:
    from types import SimpleNamespace as Like

    from longstride.cli.evaluate import _check_played

    def result(episodes: int, **evidence: str) -> Any:
        return Like(summary={"episodes": episodes}, trajectories=[Like(evidence=evidence)])

    with pytest.raises(RunError, match="the first: no route to the judge"):
        _check_played([("agent", "direct", result(0, failure="no route to the judge"))])
    with pytest.raises(RunError, match="that model is no judge"):
        _check_played([("agent", "best_of_2", result(0)), ("warm_start", "direct", result(3))])
    _check_played([("agent", "best_of_2", result(0)), ("agent", "direct", result(3))])


def test_a_difference_of_strategies_is_paired_by_task_and_leaves_out_what_failed() -> None:
    from longstride.cli.evaluate import _differences

    rows: list[dict[str, Any]] = [
        {"policy": policy, "strategy": strategy, "measures": {"success": values}}
        for policy, strategy, values in (
            ("agent", "direct", [0.0, 1.0, 0.0, None]),
            ("agent", "vote", [1.0, 1.0, 0.0, 1.0]),
            ("warm_start", "direct", [0.0, 0.0, 0.0, 0.0]),
        )
    ]
    (d,) = _differences(rows)
    assert (d["strategy"], d["against"], d["tasks"]) == ("vote", "direct", 3)
    assert d["mean"] == pytest.approx(1 / 3) and d["lo"] < d["mean"] < d["hi"]


@pytest.mark.parametrize(("asked", "trivial"), [("false", 0), ("true", 3)])
def test_eval_has_the_trivial_policies_where_the_recipe_asks_for_them(
    asked: str, trivial: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "base-puzzles", "--tasks", "2", f"evaluation.baselines={asked}", "--json"]) == 0
    policies = [row["policy"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert policies[0] == "agent" and len(policies) == 1 + trivial


def test_eval_prints_a_line_for_each_row_and_names_failures(capsys: pytest.CaptureFixture[str]) -> None:
    from longstride.cli.evaluate import _print_table

    summary: dict[str, Any] = {
        "episodes": 7,
        "success": 0.5,
        "length": 3.25,
        "timeouts": 0.1,
        "invalid": 0.0,
        "failed": 2,
    }
    summary["by_difficulty"] = {"easy": {"success": 0.75}, "hard": {"success": 0.25}}
    horizon = {"easy": 8, "medium": 8, "hard": 24}
    row = {
        "policy": "answer_at_once",
        "strategy": "check_again_2",
        "horizon": horizon,
        "summary": summary,
        "interval": [0.4, 0.6],
        "measures": {},
    }
    _print_table([row], 9)
    first, _, line, last = capsys.readouterr().out.splitlines()
    assert first == "9 held-out tasks, horizon 8 / 8 / 24, 95 % intervals"
    assert line.split() == "answer_at_once check_again_2 0.50 [0.40, 0.60] 0.75 - 0.25 3.2 0.10 0.00".split()
    assert last.startswith("2 episodes failed")
    _print_table([{**row, "measures": {"spent_tokens": [60.0, None, 80.0]}}], 9)
    _, head, line, _ = capsys.readouterr().out.splitlines()
    assert (head.split()[-1], line.split()[-1]) == ("tokens", "70")


def test_a_claim_needs_a_known_name_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "claim", "ttii")
    assert "did you mean 'tti'" in said and said.rstrip().endswith("`longstride list` has all") and len(said) < 120
    assert "or --all" in refused(capsys, "claim")
    assert "or --all" in refused(capsys, "claim", "tti", "--all")


def test_a_port_that_is_taken_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in refused(capsys, "serve", "sites", "--port", str(port))
    assert "cannot listen" in refused(capsys, "serve", "sites", "--port", "70000")


def test_view_of_a_missing_run_is_one_message(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none" in refused(capsys, "view", "none")


# playback


def test_an_episode_of_a_run_is_played_back_and_one_that_was_changed_differs(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from longstride.envs.sites.demonstrator import Demonstrator
    from longstride.rollout import Plan, Pool, ScriptedPlayer, TrajectoryStore

    recipe = papers.load("tti")
    assert isinstance(recipe, Recipe)
    task = recipe.tasks.held_out(1)[0]
    solver = Demonstrator(task, random.Random(0))
    player = ScriptedPlayer(lambda episode: solver.say(text_in(episode.observations[-1])))
    done = Pool(player, recipe.tasks.env, recipe.reward).run([Plan(task, 0, 5, Budget(turns=30))])
    begin_run(Path("run"), recipe)
    store = TrajectoryStore(Path("run/trajectories.jsonl"))
    store.append(done)
    assert main(["playback", "run", "0"]) == 0
    assert "nothing differs" in capsys.readouterr().out
    done[0].turns[1].observation = "another page"
    store.append(done)
    assert main(["playback", "run", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["differences"]
    assert [(d["turn"], d["what"], d["was"]) for d in found] == [(2, "observation", "another page")]
    assert "episodes 0 to 1, not 2" in refused(capsys, "playback", "run", "2")
    assert "no run folder" in refused(capsys, "playback", "elsewhere", "0")
