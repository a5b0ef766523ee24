"""The guides of adapters, of data sets and of talking to a model are followed, with a small model that has Qwen3's
template in place of Qwen3."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from chat_templates import QWEN3, tokenizer_of
from guides import DOCS, follow, own_modules

import longstride as ls
from longstride.claims import frozen
from longstride.claims.standard import word
from longstride.models.chat import ChatConfig, ChatFormat
from longstride.models.load import make_policy, save_policy
from longstride.models.tiny import TinyConfig, build_model
from longstride.rollout import FullHistory, Past

NEEDS = {
    "gateway.md": "openai", "gymnasium.md": "gymnasium", "mcp.md": "mcp", "own_data.md": "jsonschema",
    "textworld.md": "textworld",
    "talking.md": "jsonschema", "terminal.md": "jsonschema", "textarena.md": "textarena",
    "verifiers.md": "verifiers.v1",
}  # fmt: skip
"""The package that a guide needs. That of OpenEnv needs a server beside it: `adapters/test_openenv.py` has one."""
STARTS_PROGRAMS = ("gateway.md", "mcp.md", "terminal.md")
BUDGETS = [f"{b}.{limit}" for b in ("budget", "test_budget") for limit in ("turns=2", "turn_tokens=6")]
FEW = ["iterations=1", "episodes_per_iteration=4", "group_size=2", "evaluation.baselines=false", *BUDGETS]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with the model that the guides name."""
    tokenizer = tokenizer_of(QWEN3)
    shape = TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16, context=8192)
    policy = make_policy("small", build_model(shape, len(tokenizer), seed=0), tokenizer)
    save_policy(policy, tmp_path / "Qwen" / "Qwen3-0.6B")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with own_modules(tmp_path):
        yield tmp_path


def rows(home: Path) -> list[dict[str, Any]]:
    (metrics,) = home.glob("runs/*/metrics.jsonl")
    return [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "guide", [pytest.param(g, marks=[pytest.mark.slow] if g in STARTS_PROGRAMS else []) for g in NEEDS]
)
def test_a_guide_does_what_it_says(guide: str, home: Path) -> None:
    if find_spec(NEEDS[guide].partition(".")[0]) is None:
        pytest.skip(f"needs {NEEDS[guide]}")
    tasks = "evaluation.tasks=1"
    thoughts = ["budget.thought_tokens=3", "test_budget.thought_tokens=3"] if guide == "talking.md" else []
    follow(guide, home, *FEW, tasks, *thoughts)
    (trained,) = [row for row in rows(home) if row["kind"] == "train"]
    for text in re.findall(r"^```toml\n(.*?)^```", (DOCS / "guides" / guide).read_text(encoding="utf-8"), re.M | re.S):
        if "npx" not in text or which("npx"):
            (home / "recipe.toml").write_text(f'base = "grpo"\n{text}', encoding="utf-8")
            assert ls.load_recipe("recipe.toml") != ls.load_recipe("grpo")
    assert trained["summary"]["episodes"] == 4 and trained["summary"]["failed"] == 0


def test_the_template_of_the_guide_presents_tools_to_mistral(home: Path) -> None:
    text = (DOCS / "guides" / "talking.md").read_text(encoding="utf-8")
    template = text.partition("# mistral.jinja\n")[2].partition("```")[0]
    tokenizer = tokenizer_of(template)
    tools = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}]
    chat = ChatFormat(tokenizer, ChatConfig(system="Be brief.")).offering(tools)
    prompt = tokenizer.decode(FullHistory().render(chat, Past("go", ["x", "y"], [tokenizer.encode(" hi</s>")])))
    assert prompt.startswith("<s>[INST] [AVAILABLE_TOOLS] [{") and prompt.endswith(
        "\nBe brief.\ngo\nx[/INST] hi</s>[INST] y[/INST]"
    )


@pytest.mark.filterwarnings("error:the model's vocabulary lacks")
def test_the_guide_of_learning_in_a_context_trains_in_a_world_of_one_s_own(home: Path) -> None:
    few = ["group_size=1", "episodes_per_iteration=4", "evaluation.tasks=2", "cloning.episodes=80"]
    follow("in_context.md", home, *few)
    evaluated = [row for row in rows(home) if row["kind"] == "eval" and row["strategy"] == "direct"]
    assert [len(row["measures"]["reward@4"]) for row in evaluated] == [2, 2]
    assert rows(home)[0]["kind"] == "cloning"


@pytest.mark.slow
def test_the_guide_of_traces_primes_a_model_makes_a_start_and_relabels_what_is_unfamiliar(home: Path) -> None:
    follow("traces.md", home)
    runs = {folder.name: ls.Run(folder).metrics for folder in (home / "runs").iterdir()}
    assert [bool(runs[name].where(kind="cloning")) for name in ("primed", "from_start", "unfamiliar")] == [1, 0, 1]
    assert (home / "primed" / "model.safetensors").is_file()


@pytest.mark.slow
def test_the_guide_of_scaling_goes_from_a_sweep_to_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    follow("scaling.md", tmp_path)
    said = capsys.readouterr().out
    assert "held out" in said and "best: " in said and "better than the first" in said
    assert len(json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"))["groups"]) == 2


@pytest.mark.slow
def test_the_guide_of_one_s_own_claim_goes_from_a_file_to_a_verdict_that_was_frozen_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Reader")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "reader@example.org")
    monkeypatch.setattr(frozen, "clean", lambda: None)  # as where Longstride is installed
    monkeypatch.chdir(tmp_path)
    with own_modules(tmp_path):
        follow("own_claim.md", tmp_path)
    result = json.loads((tmp_path / "claims" / "many_rollouts.json").read_text(encoding="utf-8"))
    assert word(result) == "holds" and result["frozen"]["commit"]
