"""Runs side by side, and policies for other people's tools."""

import json
import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from guides import follow
from helpers import begin_run

import longstride as ls
from longstride import papers
from longstride.cli.main import main
from longstride.core.sealed import place_of, seal
from longstride.report.compare import as_text, compare, write_comparison
from longstride.web.chromium.process import find_chromium

SMALL: dict[str, Any] = {
    "iterations": 1, "episodes_per_iteration": 16, "evaluation": {"tasks": 24}, "budget": {"turn_tokens": 40},
    "test_budget": {"turn_tokens": 40},
}  # fmt: skip
IDS = torch.tensor([[5, 6, 7, 8]])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[ls.Run, ls.Run]:
    home = tmp_path_factory.mktemp("runs")
    plain = ls.train("grpo", home / "plain", ls.Silent(), **SMALL)
    lora = {"lora": {"rank": 4}, "lr": 0.01}
    return plain, ls.train("grpo", home / "lora", ls.Silent(), **SMALL, learner=lora)


def test_runs_of_control_are_paired_by_their_seed_and_shown_by_the_measure_that_is_asked_for(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        begin_run(tmp_path / name, papers.load("td3").replace(seed=seed))
        returns = [-100.0 * (seed + 2) + k for k in range(5)]
        row: dict[str, Any] = {
            "kind": "eval",
            "iteration": 1,
            "policy": "agent",
            "strategy": "direct",
            "summary": {"success": 0.0},
        }
        row["measures"] = {"success": [0.0] * 5, "return": returns if name == "a" else [x + 30 for x in returns]}
        row |= {"total_env_steps": 700, "measures": {**row["measures"], "env_steps": [100.0] * 5}}
        (tmp_path / name / "metrics.jsonl").write_text(seal(json.dumps(row), place_of(0)) + "\n")
    same, other = compare([tmp_path / name for name in "abc"], "return")["differences"]
    assert same["return"]["mean"] == 30 and "go by the seed" in other["note"] and "return" not in other
    (point,) = compare([tmp_path / "a", tmp_path / "b"], "env_steps")["runs"][0]["curve"]
    assert (point["env_steps"], point["value"]) == (700, 100)  # of training so far, and of an episode of the test
    text = as_text(compare([tmp_path / "a", tmp_path / "b"]))  # nothing is ever a success
    assert re.search(r"b - a +return +\+30\.000", text)


class TestCompare:
    def test_a_difference_is_paired_by_task(self, runs: tuple[ls.Run, ls.Run]) -> None:
        found = ls.compare(*runs)
        (d,) = found["differences"]
        a, b = (run.metrics.where(kind="eval", policy="agent")[-1]["measures"]["success"] for run in runs)
        changes = [y - x for x, y in zip(a, b, strict=True)]
        assert (d["run"], d["against"], d["success"]["tasks"]) == ("lora", "plain", 24)
        assert d["success"]["mean"] == pytest.approx(sum(changes) / 24)
        assert d["success"]["higher"] == sum(c > 0 for c in changes)
        assert d["success"]["lo"] <= d["success"]["mean"] <= d["success"]["hi"]
        assert [run["after"] for run in found["runs"]] == pytest.approx([sum(a) / 24, sum(b) / 24])

    def test_a_run_does_not_differ_from_its_copy_and_is_not_taken_twice(
        self, runs: tuple[ls.Run, ls.Run], tmp_path: Path
    ) -> None:
        found = ls.compare(runs[0], copytree(runs[0].folder, tmp_path / "copy"))
        assert found["recipe"] == {} and "The recipes are the same." in as_text(found)
        assert found["differences"][0]["success"] | {"tasks": 24} == {
            "mean": 0.0, "lo": 0.0, "hi": 0.0, "higher": 0, "lower": 0, "tasks": 24,
        }  # fmt: skip
        with pytest.raises(ls.ConfigError, match="is given twice"):
            compare([*(run.folder for run in runs), runs[0].folder.parent / "lora" / ".." / "plain"])

    def test_a_measure_that_no_run_has_is_refused_with_what_was_meant(
        self, runs: tuple[ls.Run, ls.Run], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compare", *(str(run.folder) for run in runs), "--measure", "succes"]) == 2
        assert "unknown measure 'succes'; did you mean 'success'?" in capsys.readouterr().err

    def test_of_runs_of_different_kinds_the_kinds_are_said_and_not_their_settings(
        self, runs: tuple[ls.Run, ls.Run], tmp_path: Path
    ) -> None:
        begin_run(tmp_path, papers.load("td3"))
        found = ls.compare(runs[0], tmp_path)
        assert found["recipe"] == {"type": ["recipe", "control_recipe"]}
        assert "of different kinds (recipe, control_recipe)" in as_text(found)

    def test_files_of_episodes_have_no_settings_that_differ(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        assert (
            main(["export", str(runs[0].folder), "--trajectories", str(tmp_path / "after"), "--episodes", "after"]) == 0
        )
        found = ls.compare(runs[0], tmp_path / "after")
        assert found["recipe"] == found["code"] == {} and "Files of episodes have no recipe" in as_text(found)
        three = ls.compare(*runs, tmp_path / "after")["recipe"]
        assert three.keys() == ls.compare(*runs)["recipe"].keys() and three["learner.lr"] == [3e-4, 0.01, None]

    def test_settings_that_differ_are_named_and_no_others(self, runs: tuple[ls.Run, ls.Run]) -> None:
        recipe = ls.compare(*runs)["recipe"]
        assert recipe["learner.lr"] == [3e-4, 0.01] and recipe["learner.lora.rank"] == [None, 4]
        assert all(key.startswith("learner.l") for key in recipe)

    def test_other_held_out_tasks_are_not_paired(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        text = (runs[0].folder / "run.toml").read_text()
        other = tmp_path / "other"
        begin_run(other, re.sub(r"easy = [0-9.]+", "easy = 3.0", text).rpartition("#")[0])
        (other / "metrics.jsonl").write_text((runs[0].folder / "metrics.jsonl").read_text())
        (d,) = ls.compare(runs[0], other)["differences"]
        assert d["note"] == "other held-out tasks, so nothing can be paired" and "success" not in d
        page = write_comparison([runs[0].folder, other], ls.compare(runs[0], other), tmp_path / "page.html")
        for text in (as_text(ls.compare(runs[0], other)), page.read_text()):
            assert "other - plain: other held-out tasks" in text and "tasks higher" not in text

    def test_an_unfinished_run_is_compared_as_far_as_it_goes(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        begin_run(tmp_path, "name = 'x'\n")
        found = ls.compare(runs[0], tmp_path)
        assert found["runs"][1]["after"] is None and "no evaluation by task" in as_text(found)

    def test_the_command_prints_tables_json_and_a_page(
        self, runs: tuple[ls.Run, ls.Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folders = [str(run.folder) for run in runs]
        page = tmp_path / "pages" / "compared.html"
        assert main(["compare", *folders, "--html", str(page)]) == 0
        out = capsys.readouterr().out
        assert "run    goal distance  budget  effective horizon" in out
        assert "lora - plain" in out and "learner.lr" in out and max(map(len, out.splitlines())) < 160
        assert main(["compare", *folders, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(ls.compare(*folders)))
        text = page.read_text()
        assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
        assert '"name":"lora"' in text and "points of success on the same 24 tasks" in text
        assert main(["compare", folders[0]]) == 2

    @pytest.mark.parametrize("width", [1200, 390])
    def test_the_page_does_not_scroll_sideways(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path, width: int) -> None:
        playwright = pytest.importorskip("playwright.sync_api")
        try:
            chromium = find_chromium()
        except ls.ConfigError as e:
            pytest.skip(str(e))
        folders = [run.folder for run in runs]
        page = write_comparison(folders, compare(folders), tmp_path / "compared.html")
        with playwright.sync_playwright() as p:
            browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for path in (page, runs[0].report()):
                tab = browser.new_page(viewport={"width": width, "height": 800})
                tab.goto(path.absolute().as_uri())
                inside = "[document.documentElement, ...document.querySelectorAll('.scroll')]"
                wide = tab.evaluate(f"{inside}.map((e) => e.scrollWidth - e.clientWidth)")
                assert max(wide[:1] if width < 1200 else wide) <= 0
            browser.close()


class TestExport:
    def test_merged_weights_are_those_of_the_policy(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        for run in runs:
            folder = run.export(tmp_path / run.folder.name)
            model = AutoModelForCausalLM.from_pretrained(folder)
            torch.testing.assert_close(model(IDS).logits, run.policy.model(IDS).logits)
            assert AutoTokenizer.from_pretrained(folder).chat_template == run.policy.tokenizer.chat_template
            assert not list(folder.glob("trainer*")) and not list(tmp_path.glob(".*.part"))

    def test_an_exported_policy_answers(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder = runs[0].export(tmp_path / "out")
        model: Any
        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        messages = [{"role": "user", "content": "start 2 ; + 3 ; * 2 mod 7\n"}]
        prompt = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        sampled = model.generate(**prompt, max_new_tokens=40, do_sample=False)[0, prompt["input_ids"].shape[1] :]
        assert re.fullmatch(r"Thought: .+ Action: answer \d", tokenizer.decode(sampled, skip_special_tokens=True))

    def test_adapters_alone_make_the_policy_of_the_start(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        peft = pytest.importorskip("peft")
        folder = runs[1].export(tmp_path / "adapter", adapter=True)
        assert not list(folder.glob("model*.safetensors"))
        loaded = peft.AutoPeftModelForCausalLM.from_pretrained(folder)
        torch.testing.assert_close(loaded(IDS).logits.float(), runs[1].policy.model(IDS).logits, rtol=1e-4, atol=1e-4)
        start = ls.load_policy("base-puzzles").model(IDS).logits
        assert not torch.allclose(runs[1].policy.model(IDS).logits, start, atol=1e-3)

    def test_the_card_says_what_was_measured(self, runs: tuple[ls.Run, ls.Run], tmp_path: Path) -> None:
        card = (runs[1].export(tmp_path / "out", adapter=True) / "README.md").read_text()
        assert card.startswith("---\nlibrary_name: peft\n") and "base_model:" not in card  # the start is no hub name
        value = runs[1].metrics.where(kind="eval", policy="agent").column("summary.success")[-1]
        assert f"| after training | {value:.3f} |" in card and "rank = 4" in card
        assert 'AutoPeftModelForCausalLM.from_pretrained("out")' in card
        assert "The adapters stand on `base-puzzles`, which Longstride brings" in card

    def test_what_cannot_be_exported_is_said(
        self, runs: tuple[ls.Run, ls.Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(ls.ConfigError, match="trained all weights, not adapters"):
            runs[0].export(tmp_path / "a", adapter=True)
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "notes.txt").write_text("mine")
        with pytest.raises(ls.RunError, match="is not empty"):
            runs[0].export(tmp_path / "b")
        assert main(["export", str(tmp_path / "b"), "--out", str(tmp_path / "c")]) == 2
        assert "has no run.toml" in capsys.readouterr().err and not (tmp_path / "c").exists()


@pytest.mark.slow
def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("compare_export.md", tmp_path)
    assert (tmp_path / "compared.html").is_file()
