"""Searches and guides by plain names: what they mean, what is refused, and a table that counts the guide's tokens."""

from pathlib import Path
from typing import Any

import pytest
from helpers import begin_run

from longstride import papers
from longstride.cli import evaluate
from longstride.cli.main import main
from longstride.envs.judgements import Judgements
from longstride.rewards.probe import LinearHead, TaughtProbe, hidden_states
from longstride.rewards.scorers import Generative, RunJudge
from longstride.strategies.search import Beam, BestFirst, Particles, TreeSearch
from longstride.strategies.searched import Asked, Oracle, Searched

QUIET = ["engine.processes=1", "evaluation.baselines=false", "tasks.type=modular_chain"]


@pytest.mark.parametrize(
    ("words", "search"),
    [
        (["beam", "n=8", "width=2"], Beam(n=8, width=2)),
        (["lookahead"], Beam(ahead=1)),
        (["dvts", "by=weighted"], Beam(diverse=True, by="weighted")),
        (["particles", "temperature=2"], Particles(temperature=2)),
        (["best-first", "expansions=3"], BestFirst(expansions=3)),
        (["tree", "exploration=0.5"], TreeSearch(exploration=0.5)),
    ],
)
def test_a_plain_name_is_a_search_and_its_settings_stand_without_the_part_they_are_of(words: list[str], search: Any):
    assert evaluate.strategies([words]) == [Searched(search=search)]
    (with_mark,) = evaluate.strategies([[*words, 'mark=""', "guide.type=oracle"]])
    assert with_mark == Searched(search=search, mark="", guide=Oracle())


def test_every_strategy_that_goes_by_a_guide_is_played_under_each_and_others_once():
    found = evaluate.strategies(
        [["direct"], ["beam"], ["delegate", "model=runs/a"]], [["confidence"], ["oracle", "noise=2"]]
    )
    assert [s.name for s in found] == [
        "direct",
        *(f"beam_16_by_score_guided_by_{guide}" for guide in ("confidence", "oracle_2")),
        *(f"delegate_episode_below_0.5_by_{guide}_to_runs/a" for guide in ("confidence", "oracle_2")),
    ]


def test_a_run_folder_is_a_guide_whose_model_is_asked(tmp_path: Path):
    begin_run(tmp_path / "judge", papers.load("grpo"))
    (found,) = evaluate.strategies([["beam"]], [[str(tmp_path / "judge"), "votes=3", "reasons=9"]])
    judge = RunJudge(run=str(tmp_path / "judge"))
    assert found == Searched(search=Beam(), guide=Asked(scorer=Generative(votes=3, reasons=9), judge=judge))
    assert found.name == "beam_16_by_score_guided_by_generative_3_9_reasons_run_judge"


def test_a_judge_over_http_and_a_probe_take_their_settings():
    (judged, probed) = evaluate.strategies(
        [["beam"]],
        [["judge", "url=http://127.0.0.1:1/v1", "model=m", "votes=2"], ["probe", "model=base-puzzles", "head=h"]],
    )
    assert judged.name == "beam_16_by_score_guided_by_generative_2_http_judge"
    assert probed.as_data()["guide"]["scorer"] == {"type": "probe", "model": "base-puzzles", "head": "h"}


def test_a_probe_is_taught_by_a_file_of_solutions(tmp_path: Path):
    (tmp_path / "own.jsonl").write_text('{"task": "a", "solution": "b", "right": true}\n', encoding="utf-8")
    (found,) = evaluate.strategies(
        [["beam"]], [["taught_probe", "model=base-puzzles", f"solutions.path={tmp_path / 'own.jsonl'}", "decay=2"]]
    )
    probe = TaughtProbe(model="base-puzzles", solutions=Judgements(path=tmp_path / "own.jsonl"), decay=2.0)
    assert found == Searched(search=Beam(), guide=Asked(scorer=probe))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--guide", "confidence"], "--guide leads a search or delegate, and none is asked for: add --strategy beam|"),
        (["--strategy", "best_of", "--guide", "confidence"], "and none is asked for"),
        (["--strategy", "beam", "--guide", "confidense"], "unknown guide 'confidense'; did you mean 'confidence'?"),
        (["--strategy", "beam", "--guide", "oracle", "nois=1"], "--guide oracle: nois: unknown key"),
        (["--strategy", "beam", "--guide", "judge", "model=m"], "--guide judge: judge.judge.url: it is missing"),
        (["--strategy", "beem"], "unknown type 'beem'; did you mean 'beam'?"),
        (
            ["--strategy", "beam", "widht=3"],
            "search.widht: unknown key 'widht'; did you mean 'width'?",
        ),
        (["--strategy", "beam", "n=5"], "--strategy beam: search: width must divide n, got n=5 and width=4"),
        (
            ["--strategy", "beam", "--strategy", "beam"],
            "two of them are called 'beam_16_by_",
        ),
        (["trial.episodes=2", "--strategy", "beam"], "evaluate trials under direct"),
        (["tasks.type=countdown", "--strategy", "beam", "--guide", "oracle"], "take another guide"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_a_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["eval", "base-puzzles", "--tasks", "1", *words]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said


def test_the_table_has_what_a_guide_read_and_sampled_beside_the_tokens_of_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked = ["--strategy", "direct", "--strategy", "beam", "n=4", "width=2"]
    probe = tmp_path / "probe.safetensors"
    states, read = hidden_states("base-puzzles", [("start 1 ; + 1 ; mod 7", "1 + 1 ≡ 2")])
    LinearHead(states[0], 0.0).save(probe)
    guide = ["--guide", "probe", "model=base-puzzles", f"head={probe}"]
    assert main(["eval", "base-puzzles", *QUIET, "--tasks", "2", *asked, *guide]) == 0
    head, direct, beam = (line.split() for line in capsys.readouterr().out.splitlines()[1:4])
    assert head[-4:] == ["tokens", "guide", "in", "all"] and direct[-2] == "-" and direct[-1] == direct[-3]
    tokens, scored, total = map(int, beam[-3:])
    assert read[0] > 0 and scored > tokens and total == pytest.approx(tokens + scored, abs=1)


def test_a_recipe_is_evaluated_under_its_own_strategies_where_none_is_asked_for(capsys: pytest.CaptureFixture[str]):
    own = 'evaluation.strategies=[{type="direct", tokens=9}, {type="best_of", attempts=2}]'
    assert main(["eval", "base-puzzles", *QUIET, own, "--tasks", "2"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[2:4]] == [
        "direct_9_tokens",
        "best_of_2_by_majority",
    ]


def test_each_strategy_has_a_log_of_a_name_that_files_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("longstride.report.inspect_log.require", lambda *_: None)  # inspect has an environment apart
    logs = evaluate._logs(tmp_path / "x.eval", ["direct", "delegate_to_runs/a"])
    assert [path.name for path in logs.values()] == ["x-direct.eval", "x-delegate_to_runs_a.eval"]
