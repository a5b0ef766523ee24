"""The benchmark of GPUs: refused without one, and its parts at work on a CPU with a tiny model, beside Hugging Face
itself and beside programs in the places of vLLM and TRL."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.bench import gpu, hf_peer, step
from longstride.bench.base import Quantity
from longstride.bench.gpu import Beside, Sizes, measured_on
from longstride.bench.peers import Peer
from longstride.cli.main import main
from longstride.core.errors import ConfigError, RunError

TINY = Sizes(
    shape={
        "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 16, "intermediate_size": 64, "max_position_embeddings": 128, "tie_word_embeddings": True,
    },
    prompts=(4, 8), prompt=(10, 20), new=(4, 8), rows=8, context=20, passes=8, sample=(24, 6), group=4, cache=1 << 22,
)  # fmt: skip


def test_without_a_gpu_it_says_so_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", "gpu"]) == 2
    assert "torch finds no CUDA device on this machine" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


VLLM = """
import json, os, pathlib
class SamplingParams:
    def __init__(self, **settings): self.wanted = settings
class Said:
    def __init__(self, n): self.outputs, self.token_ids = [self], [5] * n
class LLM:
    def __init__(self, model, **settings):
        print("a line of a library that is no answer")
        assert (pathlib.Path(model) / "model.safetensors").exists()
        assert settings["kv_cache_memory_bytes"] == 1 << 22 and settings["skip_tokenizer_init"]
        self.calls = 0
    def generate(self, prompts, wanted, use_tqdm):
        self.calls += 1
        assert all(w.wanted["ignore_eos"] and w.wanted["temperature"] == 1 for w in wanted)
        if self.calls > int(os.environ["CALLS"]): raise MemoryError("no memory for so many blocks")
        return [Said(w.wanted["max_tokens"]) for p, w in zip(prompts, wanted, strict=True)]
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Packages in the places of vLLM (which answers so often) and TRL."""
    (folder / "vllm.py").write_text(VLLM)
    for name, version in (("vllm", "0.33.0"), ("trl", "1.2.3")):
        place = folder / f"{name}-{version}.dist-info"
        place.mkdir()
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("CALLS", str(calls))

    def trl(python: str, work: step.StepWork, seed: int, versions: dict[str, str], timeout: float) -> dict[str, float]:
        assert (python, work.groups, work.siblings) == (sys.executable, 2, 4) and 0 < timeout <= 60
        if not calls:
            raise RunError("TRL could not be measured")
        versions["trl"] = "1.2.3"
        return {"step": 9.0}

    monkeypatch.setattr(step, "ask_trl", trl)


@pytest.mark.slow
def test_every_part_of_it_runs_on_any_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, calls=100)
    faster = {"checkpointed": {"checkpointing": True}, "without a kernel": {"head": "liger"}}
    monkeypatch.setattr(gpu, "FASTER", faster)  # the others need a compiler, and minutes
    monkeypatch.setitem(sys.modules, "liger_kernel.transformers", None)
    beside = Beside(sys.executable, time.monotonic() + 60, print)
    rows = {row.name: row for row in measured_on("cpu", TINY, 2, lambda _: None, beside)}
    works, others = ("4 prompts", "8 prompts", "1 groups of 4"), ("generate", "continuous batching", "vLLM")
    assert list(rows) == [
        *(f"sampling: {work}{how}, beside {peer}" for work in works for how in ("", ", as graphs") for peer in others),
        "sampling: a pass of 8 rows at context 20", "sampling: a pass of 8 rows at context 20, as a graph",
        "learning: a step", "learning: groups, prompts shared", "learning: first two steps",
        "gap of sampler (bfloat16) and learner", "learning: a step, checkpointed",
        "a GRPO step: 2 groups of 4, 6 new tokens each",
    ]  # fmt: skip
    assert all(value > 0 for row in rows.values() for value in [*row.ours, *(row.peer if row.peer is not None else ())])  # pyright: ignore
    assert rows["gap of sampler (bfloat16) and learner"].ours[0] < 0.1  # pyright: ignore
    assert rows["sampling: 8 prompts, beside vLLM"].against == "vLLM 0.33.0"
    assert rows["a GRPO step: 2 groups of 4, 6 new tokens each"].against == "TRL 1.2.3"
    left_out = beside.versions.pop("left out: without a kernel")
    assert left_out.startswith("MissingExtra") and beside.versions == {"vLLM": "0.33.0", "TRL": "1.2.3"}


def test_a_peer_that_fails_is_named_and_all_other_rows_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, calls=0)

    def no_kernel(*_: object) -> None:
        raise RuntimeError("no kernel\nfor this card")

    monkeypatch.setattr(hf_peer, "continuous_batching", no_kernel)
    monkeypatch.setattr(step, "ours", lambda *_: {"step": 1.0})
    monkeypatch.setattr(gpu, "_learning", lambda *_: [])
    monkeypatch.setattr(gpu, "FASTER", {})
    monkeypatch.setattr(gpu, "_one_pass", lambda *_: Quantity("a pass", "ms", [1.0]))
    told: list[str] = []
    beside = Beside(sys.executable, time.monotonic() + 60, told.append)
    found = measured_on("cpu", replace(TINY, prompts=(4,)), 2, lambda _: None, beside)
    works = "4 prompts", "1 groups of 4"
    assert [row.name for row in found] == [
        *(f"sampling: {n}{how}, beside generate" for n in works for how in ("", ", as graphs")),
        "a pass", "a pass",
        "a GRPO step: 2 groups of 4, 6 new tokens each",
    ]  # fmt: skip
    assert found[-1].peer is None
    said = beside.versions
    assert said["left out: continuous batching"] == "RuntimeError: no kernel for this card"
    assert said["left out: vLLM, 4 prompts"].endswith("MemoryError: no memory for so many blocks")
    assert said["left out: TRL"] == "RunError: TRL could not be measured"
    assert "left out: continuous batching: RuntimeError: no kernel for this card" in told


def test_what_was_measured_before_it_is_ended_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> Any:
        yield Quantity("two", "ms", [2.0])
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "_sampling", lambda *_: [Quantity("one", "ms", [1.0])])
    monkeypatch.setattr(gpu, "_passes", ended)
    beside = Beside(sys.executable, 0.0, print)
    assert [row.name for row in measured_on("cpu", TINY, 1, print, beside)] == ["one", "two"]
    assert beside.versions["left out: what follows"] == "it was ended early"


def test_peers_that_are_not_installed_are_named() -> None:
    beside = Beside(sys.executable, 0.0, print)
    assert beside.versions == {"left out: vLLM": "not installed", "left out: TRL": "not installed"}
    with pytest.raises(ConfigError, match="--peer /nowhere/python cannot be run"):
        Beside("/nowhere/python", 0.0, print)


def test_continuous_batching_gives_what_was_asked_for_and_is_greedy_where_the_model_is_sure() -> None:
    torch.manual_seed(0)
    model: Any = Qwen3ForCausalLM(Qwen3Config(**TINY.shape)).eval()
    model.set_input_embeddings(torch.nn.Embedding.from_pretrained(30 * torch.randn(64, 32)))
    model.tie_weights()
    prompts, new = [[5, 6, 7], [8, 9], [10] * 12], [3, 6, 4]
    with hf_peer.continuous_batching(model, 1 << 20, 3, 12, 6) as sample:
        found = [sample(prompts, new) for _ in range(2)]
    plain = hf_peer.generate(model, prompts, new)
    assert [[len(ids) for ids in one] for one in found] == [new, new]
    assert found == [plain, plain]


class TestPeer:
    def test_it_answers_line_by_line_and_ends_when_it_is_closed(self, tmp_path: Path) -> None:
        program = tmp_path / "echo.py"
        program.write_text("import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n")
        large = {"ids": list(range(50_000))}
        with Peer(sys.executable, program) as peer:
            assert peer.ask(large, 10.0) == large
            assert peer.ask({"a": 1}, 10.0) == {"a": 1}
        assert peer._process.returncode == 0

    def test_one_that_does_not_answer_in_time_is_ended(self, tmp_path: Path) -> None:
        program = tmp_path / "silent.py"
        program.write_text("import time\ntime.sleep(60)\n")
        with Peer(sys.executable, program) as peer:
            with pytest.raises(RunError, match="silent did not answer within 0 s"):
                peer.ask({"ids": list(range(50_000))}, 0.1)
            with pytest.raises(RunError, match="silent has ended"):
                peer.ask({}, 10.0)

    def test_one_that_fails_is_quoted(self, tmp_path: Path) -> None:
        program = tmp_path / "broken.py"
        program.write_text("raise ValueError('no card')\n")
        with Peer(sys.executable, program) as peer, pytest.raises(RunError, match="broken ended: ValueError: no card"):
            peer.ask({}, 10.0)
