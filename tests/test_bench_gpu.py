"""The benchmark of GPUs: refused without one, and its parts at work on a CPU with a tiny model."""

from pathlib import Path

import pytest
import torch

from longstride.bench.gpu import Sizes, measured_on
from longstride.cli.main import main

TINY = Sizes(
    shape={
        "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 16, "intermediate_size": 64, "max_position_embeddings": 128, "tie_word_embeddings": True,
    },
    prompts=(4, 8), prompt=(10, 20), new=(4, 8), rows=8, context=20, passes=8, sample=(24, 6), group=4,
)  # fmt: skip


def test_without_a_gpu_it_says_so_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", "gpu"]) == 2
    assert "torch finds no CUDA device on this machine" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_every_part_of_it_runs_on_any_device() -> None:
    rows = {row.name: row for row in measured_on("cpu", TINY, 2, lambda _: None)}
    assert list(rows) == [
        "sampling: 4 prompts", "sampling: 8 prompts", "sampling: 1 groups of 4",
        "sampling: a pass of 8 rows at context 20", "sampling: a pass of 8 rows at context 20, as a graph",
        "learning: a step", "learning: groups, prompts shared", "learning: first two steps",
        "gap of sampler (bfloat16) and learner",
    ]  # fmt: skip
    assert all(value > 0 for row in rows.values() for value in [*row.ours, *(row.peer if row.peer is not None else ())])  # pyright: ignore
    assert rows["gap of sampler (bfloat16) and learner"].ours[0] < 0.1  # pyright: ignore
