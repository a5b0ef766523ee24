"""What `docs/guides/gpu_cluster.md` says of memory is what the plan says of models of that shape."""

import re
from pathlib import Path
from typing import Any

import pytest
from guides import DOCS
from transformers import Qwen3Config

from longstride import papers
from longstride.run.memory import GIB, plan
from longstride.run.recipe import Recipe

WIDTH_LAYERS_HEADS_INNER = {
    "0.6B": (1024, 28, 16, 3072), "1.7B": (2048, 28, 16, 6144), "4B": (2560, 36, 32, 9728), "8B": (4096, 36, 32, 12288)
}  # fmt: skip
"""Of Qwen3. All have 8 heads of keys and values of 128 numbers; the largest has a head of its own for the tokens."""


@pytest.mark.slow
def test_what_fits_a_card_is_as_planned(tmp_path: Path) -> None:
    page = (DOCS / "guides" / "gpu_cluster.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+B) \| 80 GB \| [^|]* \| (\d+) GiB \| (.*) \|$", page, re.M)
    assert [row[0] for row in rows] == list(WIDTH_LAYERS_HEADS_INNER)
    base, settings = papers.load("tti"), dict[str, str]()
    assert isinstance(base, Recipe)
    for name, gib, command in rows:
        settings |= dict(re.findall(r"(learner\.[\w.]+)=(\w+)", command))
        width, layers, heads, inner = WIDTH_LAYERS_HEADS_INNER[name]
        Qwen3Config(
            vocab_size=151_936, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
            intermediate_size=inner, num_key_value_heads=8, head_dim=128, tie_word_embeddings=name != "8B",
            max_position_embeddings=40_960, architectures=["Qwen3ForCausalLM"],
        ).save_pretrained(tmp_path / name)  # fmt: skip
        learner: dict[str, Any] = {"dtype": "auto"}
        if "learner.checkpointing" in settings:
            learner["checkpointing"] = True
        if rank := settings.get("learner.lora.rank"):
            learner["lora"] = {"rank": int(rank)}
        recipe = base.replace(
            model=str(tmp_path / name), device="cuda", engine={"cache_gigabytes": 16}, learner=learner
        )
        needed = sum(plan(recipe, processes=1).parts.values()) / GIB
        assert round(needed) == int(gib) and needed < 80e9 / GIB, name
