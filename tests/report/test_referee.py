"""Whether two results can be compared, and which is better."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import begin_run, make_task, make_trajectory

import longstride as ls
from longstride.cli.main import main
from longstride.core.trajectory import Trajectory
from longstride.report.protocol import PROTOCOL
from longstride.report.referee import referee
from longstride.rewards import TaskReward
from longstride.rollout.formats import Origin, write_episodes
from longstride.strategies.check_again import CheckAgain

FEW: dict[str, Any] = {
    "evaluation": {"tasks": 6, "baselines": False}, "budget": {"turn_tokens": 24}, "test_budget": {"turn_tokens": 24},
}  # fmt: skip
TEMPLATE = "{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation that was kept."""
    folder = tmp_path_factory.mktemp("kept") / "ours"
    ls.evaluate("base-puzzles", "grpo", folder=folder, **FEW)
    return folder


PLANTED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "tasks": ({"tasks": {"sources": ({"type": "modular_chain", "modulus": 5},)}}, {"tasks"}),
    "template": ({"chat": {"template": TEMPLATE}}, {"template"}),
    "system prompt": ({"chat": {"system": "Think."}}, {"chat.system"}),
    "context": ({"context": {"type": "latest_observation"}}, {"context.type"}),
    "actions": ({"actions": "explained"}, {"actions"}),
    "turns": ({"test_budget": {"turns": 3}}, {"limits.turns.easy", "limits.turns.medium", "limits.turns.hard"}),
    "tokens of a turn": ({"test_budget": {"turn_tokens": 25}}, {"limits.turn_tokens.easy", "limits.turn_tokens.medium",
                                                                    "limits.turn_tokens.hard"}),
    "temperature": ({"evaluation": {"sampling": {"temperature": 0.5}}}, {"sampling.temperature"}),
    "judge": ({"evaluation": {"reward": TaskReward(false_negative=0.1)}}, {"judge.false_negative"}),
    "attempts": ({"evaluation": {"attempts": 2}}, {"attempts"}),
    "seed": ({"seed": 7}, {"seed"}),
}  # fmt: skip
"""Settings that are changed on one side alone, and what has to be named, where that is known to the letter."""


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_difference_is_named_and_there_is_no_verdict(planted: str, kept: Path, tmp_path: Path) -> None:
    changes, named = PLANTED[planted]
    recipe, theirs = ls.load_run(kept).recipe, tmp_path / "theirs"
    shutil.copytree(kept, theirs)
    begin_run(theirs, recipe.replace(**changes))
    found = referee(kept, theirs)
    assert not found["comparable"] and "difference" not in found and not found["unsaid"]
    assert named <= found["differs"].keys()
    if planted not in ("tasks", "seed"):  # which also change the tasks that are drawn
        assert {key.partition(".")[0] for key in found["differs"]} == {key.partition(".")[0] for key in named}


def test_another_strategy_is_named(kept: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    ls.evaluate("base-puzzles", "grpo", CheckAgain(checks=2, keep_last_answer=True), folder=theirs, **FEW)
    assert referee(kept, theirs)["differs"] == {"strategy.name": [None, "check_again_2_keep"]}


def rows_of_files(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Changes the rows of exported messages."""
    file = path / "messages.jsonl"
    rows = change([json.loads(line) for line in file.read_text().splitlines()])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def with_other_evaluator(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = json.loads(rows[0]["longstride"])
    own["task"]["evaluator"] = {"type": "answer", "reference": "9"}
    return [{**rows[0], "longstride": json.dumps(own)}, *rows[1:]]


@pytest.mark.parametrize(
    ("change", "named"),
    [(lambda rows: rows[::-1], ["order"]), (with_other_evaluator, ["evaluators"]),
     (lambda rows: rows[1:], ["order", "tasks", "evaluators"])],
)  # fmt: skip
def test_what_differs_in_files_of_episodes_is_named(
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], named: list[str], kept: Path, tmp_path: Path
) -> None:
    for name in ("ours", "theirs"):
        ls.load_run(kept).export_trajectories(tmp_path / name, "messages", "before")
    assert referee(tmp_path / "ours", tmp_path / "theirs")["comparable"]
    rows_of_files(tmp_path / "theirs", change)
    assert sorted(referee(tmp_path / "ours", tmp_path / "theirs")["differs"]) == sorted(named)


def test_exported_episodes_have_the_protocol_of_their_run(kept: Path, tmp_path: Path) -> None:
    ls.load_run(kept).export_trajectories(tmp_path / "out", "atif", "before")
    found = referee(kept, tmp_path / "out")
    assert found["comparable"] and found["difference"]["mean"] == 0.0 and found["difference"]["tasks"] == 6


def test_what_an_environment_says_of_itself_is_no_difference(tmp_path: Path) -> None:
    ls.evaluate("base-puzzles", "grpo", folder=tmp_path / "run", actions="explained", **FEW)
    ls.load_run(tmp_path / "run").export_trajectories(tmp_path / "out", "atif", "before")
    assert referee(tmp_path / "run", tmp_path / "out")["comparable"]


def results(folder: Path, successes: list[bool], protocol: dict[str, Any]) -> Path:
    """Files of episodes on tasks t0, t1, ... with a protocol."""
    told: list[Trajectory] = [
        make_trajectory(reward=float(s), ordinal=k, task=make_task(f"t{k}")) for k, s in enumerate(successes)
    ]
    write_episodes(told, folder, "messages", Origin("x"))
    (folder / PROTOCOL).write_text(json.dumps({"protocol": protocol}))
    return folder


WHOLE: dict[str, Any] = dict.fromkeys(
    ("attempts", "template", "context", "actions", "limits", "sampling", "strategy", "judge", "seed"), 1
)


class TestVerdict:
    def test_it_is_that_of_the_interval_of_the_paired_difference(self, tmp_path: Path) -> None:
        better = results(tmp_path / "a", [True] * 30, WHOLE)
        worse = results(tmp_path / "b", [k % 3 == 0 for k in range(30)], WHOLE)
        nearly = results(tmp_path / "c", [k != 4 for k in range(30)], WHOLE)
        d = referee(better, worse)["difference"]
        assert d["mean"] == pytest.approx(2 / 3) and d["lo"] > 0 and (d["higher"], d["lower"]) == (20, 0)
        assert d["verdict"] == "ours" and referee(worse, better)["difference"]["verdict"] == "theirs"
        assert referee(better, nearly)["difference"]["verdict"] == "undecided"

    def test_few_tasks_that_all_differ_alike_decide_nothing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for n, p, verdict in ((2, 2**-1, "undecided"), (5, 2**-4, "undecided"), (6, 2**-5, "ours")):
            a, b = (results(tmp_path / f"{side}{n}", [side == "a"] * n, WHOLE) for side in "ab")
            d = referee(a, b)["difference"]
            assert (d["lo"], d["hi"], d["p"], d["verdict"]) == (1, 1, pytest.approx(p), verdict)
        assert main(["referee", str(tmp_path / "a2"), str(tmp_path / "b2")]) == 0
        assert "(2 higher, 0 lower, sign test p = 0.5): undecided" in capsys.readouterr().out

    def test_what_nobody_says_is_named_and_may_be_accepted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        less = {k: v for k, v in WHOLE.items() if k not in ("seed", "template")}
        sides = [str(results(tmp_path / "a", [True, False], WHOLE)), str(results(tmp_path / "b", [True, True], less))]
        assert main(["referee", *sides]) == 1
        said = capsys.readouterr().out
        assert (
            "unsaid: template: theirs does not say it" in said
            and "2 settings of the protocol; there is no verdict" in said
        )
        assert main(["referee", *sides, "--accept", "seed"]) == 1
        assert main(["referee", *sides, "--accept", "seed", "--accept", "template", "--json"]) == 0
        out = capsys.readouterr().out
        assert json.loads(out[out.index("{") :])["difference"]["mean"] == -0.5
        assert main(["referee", *sides, "--accept", "king"]) == 2
        assert "no setting of that name differs or is unsaid" in capsys.readouterr().err

    def test_a_task_that_is_drawn_twice_is_two_tasks(self, tmp_path: Path) -> None:
        twice = [make_trajectory(reward=float(k), ordinal=k, group=k, task=make_task("t")) for k in range(2)]
        for name, told in (("a", twice), ("b", twice[::-1])):
            write_episodes(told, tmp_path / name, "messages", Origin("x"))
            (tmp_path / name / PROTOCOL).write_text(json.dumps({"protocol": WHOLE}))
        d = referee(tmp_path / "a", tmp_path / "b")["difference"]
        assert (d["tasks"], d["higher"], d["lower"]) == (2, 1, 1)

    def test_a_task_without_an_outcome_is_counted_and_left_out(self, tmp_path: Path) -> None:
        a, b = results(tmp_path / "a", [True] * 4, WHOLE), results(tmp_path / "b", [True] * 4, WHOLE)
        rows_of_files(b, lambda rows: [{**rows[0], "stop": "infra_failure"}, *rows[1:]])
        d = referee(a, b)["difference"]
        assert (d["tasks"], d["missing"]) == (3, 1)


class TestInspect:
    def test_a_log_is_read_by_inspect_and_has_every_episode(self, kept: Path, tmp_path: Path) -> None:
        log = pytest.importorskip("inspect_ai.log")
        few = [f"{k}={v}" for k, v in {"evaluation.tasks": 6, "evaluation.attempts": 2, "evaluation.baselines": "false",
                                       "test_budget.turn_tokens": 24}.items()]  # fmt: skip
        path = tmp_path / "logs" / "a.eval"
        assert main(["eval", "base-puzzles", *few, "--inspect", str(path)]) == 0
        found = log.read_eval_log(str(path))
        assert (found.status, found.eval.config.epochs, len(found.samples)) == ("success", 2, 12)
        values = [sample.scores["success"].value for sample in found.samples]
        assert found.results.scores[0].metrics["mean"].value == pytest.approx(sum(values) / 12)
        sample = found.samples[0]
        assert [m.role for m in sample.messages] == ["user", "assistant"] and sample.input in sample.messages[0].text
        assert len(log.list_eval_logs(str(tmp_path / "logs"))) == 1
        assert main(["eval", "base-puzzles", *few, "--inspect", str(path)]) == 2  # it exists
        assert referee(path, path)["comparable"] and referee(path, path)["difference"]["mean"] == 0.0
        other = referee(kept, path)
        assert {"attempts"} <= other["differs"].keys() and "template" not in other["differs"] | other["unsaid"]

    def test_a_log_of_others_says_what_it_says(self, tmp_path: Path) -> None:
        log, scorer = pytest.importorskip("inspect_ai.log"), pytest.importorskip("inspect_ai.scorer")
        for name, temperature in (("a", 0.0), ("b", 1.0)):
            samples = [
                log.EvalSample(
                    id=k, epoch=1, input="2+2?", target="4", scores={"match": scorer.Score(value="CI"[k % 2])}
                )
                for k in range(4)
            ]
            spec = log.EvalSpec(created="2026-01-01T00:00:00+00:00", task="sums", dataset=log.EvalDataset(),
                                model="m/x", config=log.EvalConfig(message_limit=9),
                                model_generate_config={"temperature": temperature})  # fmt: skip
            log.write_eval_log(
                log.EvalLog(status="success", eval=spec, samples=samples), str(tmp_path / f"{name}.eval")
            )
        found = referee(tmp_path / "a.eval", tmp_path / "b.eval")
        assert found["differs"] == {"sampling.temperature": [0.0, 1.0]}
        assert set(found["unsaid"]) == {"template", "context", "actions", "seed"}
        accepted = referee(tmp_path / "a.eval", tmp_path / "b.eval", ["sampling", *found["unsaid"]])
        assert accepted["difference"]["tasks"] == 4 and accepted["difference"]["verdict"] == "undecided"

    def test_what_is_no_log_is_one_line(self, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai.log")
        (tmp_path / "a.eval").write_bytes(b"PK nothing")
        with pytest.raises(ls.RunError, match="no log that inspect_ai reads"):
            referee(tmp_path / "a.eval", tmp_path / "a.eval")
