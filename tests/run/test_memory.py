"""Memory plans from a configuration alone, and what is said where memory ran out."""

import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from families import make
from helpers import make_trajectory, make_turn, rows_of
from one_page import make_recipe, save_model
from transformers import Qwen3Config, Qwen3ForCausalLM

import longstride as ls
from longstride.cli.main import main
from longstride.core.config import load_toml
from longstride.learner.likelihood import TokenLikelihood
from longstride.methods import PPO
from longstride.models.adapters import LoRA
from longstride.models.room import doing, what_was_done
from longstride.run import memory
from longstride.run.agreement import warn_of_gap
from longstride.run.loop import train
from longstride.run.memory import GIB, MemoryPlan, plan, suggestion, trouble_on_device
from longstride.run.recipe import Recipe

SHAPE: Any = {
    "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 512, "vocab_size": 3000, "head_dim": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the configuration of a model, and no weights."""
    folder = tmp_path_factory.mktemp("models") / "described"
    Qwen3Config(**SHAPE).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


def recipe_of(model: str, **learner: Any) -> Recipe:
    found = ls.load_recipe("tti").replace(model=model, device="cpu", engine={"cache_gigabytes": 1.0}, learner=learner)
    assert isinstance(found, Recipe)
    return found


def part(found: MemoryPlan, name: str) -> int:
    return next(size for key, size in found.parts.items() if key.startswith(name))


def test_a_plan_has_the_bytes_of_the_model_that_the_configuration_describes(described: str) -> None:
    model = Qwen3ForCausalLM(Qwen3Config(**SHAPE))
    size = 4 * sum(p.numel() for p in model.parameters())
    found = plan(recipe_of(described, dtype="float32", micro_tokens=2048))
    assert (part(found, "weights"), part(found, "gradients"), part(found, "optimiser")) == (size, size, 2 * size)
    assert part(found, "engine: keys") == GIB and part(found, "engine: weights") == 0
    assert part(found, "weights in the type") == 0 and part(found, "reference") == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("tokens", [96, 200])
def test_activations_are_what_torch_keeps_of_a_real_pass_and_at_most_a_tenth_more(
    described: str, dtype: str, tokens: int
) -> None:
    model = Qwen3ForCausalLM(Qwen3Config(**SHAPE))
    own, kept = {p.untyped_storage()._cdata for p in model.parameters()}, {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"), hooks:
        model.get_decoder()(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=False)
    real = sum(storage.nbytes() for storage in kept.values())
    found = plan(recipe_of(described, dtype=dtype, micro_tokens=tokens))
    ours = part(found, "activations") + part(found, "weights in the type")
    assert real <= ours <= 1.1 * real


def test_experts_are_planned_in_float32_too(tmp_path: Path) -> None:
    """Their product has no form without memory in that type."""
    model, kept = make("Qwen3, experts"), {}
    model.config.save_pretrained(tmp_path)
    own = {p.untyped_storage()._cdata for p in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.model(torch.zeros(1, 120, dtype=torch.long), use_cache=False)
    real = sum(storage.nbytes() for key, storage in kept.items() if key not in own)
    found = part(plan(recipe_of(str(tmp_path), dtype="float32", micro_tokens=120)), "activations")
    assert real <= found <= 1.5 * real


def test_moments_of_8_bits_and_the_share_of_vllm_are_counted(described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "total_on", lambda device: 80 * GIB)
    recipe = recipe_of(described)
    small = plan(recipe.replace(learner={"optimiser": "adamw_8bit"}, engine={"type": "vllm", "memory": 0.25}))
    assert part(small, "optimiser") < 0.26 * part(plan(recipe), "optimiser")
    assert part(small, "engine: vLLM") == 20 * GIB and part(small, "engine: keys") == 0
    assert part(plan(recipe.replace(engine={"type": "vllm", "sleep": True})), "engine: vLLM") == 0


def test_logits_of_captured_passes_are_counted_where_passes_are_captured(
    described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, recipe = "engine: logits of captured", recipe_of(described)
    assert part(plan(recipe), name) == 0  # on a CPU
    monkeypatch.setattr(memory, "room_on", lambda device: None)
    assert part(plan(recipe.replace(device="cuda")), name) == 2 * 512 * SHAPE["vocab_size"] * 2
    assert part(plan(recipe.replace(device="cuda", engine={"graphs": False})), name) == 0


def test_checkpointing_and_adapters_need_less(described: str) -> None:
    full = plan(recipe_of(described, micro_tokens=4096))
    checkpointed = plan(recipe_of(described, micro_tokens=4096, checkpointing=True))
    adapted = plan(recipe_of(described, micro_tokens=4096, lora=LoRA(rank=4)))
    layers = SHAPE["num_hidden_layers"]
    assert part(checkpointed, "activations") < (1 / layers + 0.15) * part(full, "activations")
    assert part(adapted, "optimiser") < 0.1 * part(full, "optimiser")
    assert part(adapted, "weights with the adapters") == part(adapted, "weights (")


def test_a_model_that_cannot_fit_is_refused_before_it_is_loaded(
    tmp_path: Path, described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(described, micro_tokens=65536)
    needed = plan(recipe.replace(learner={"checkpointing": True, "micro_tokens": 16384})).needed
    monkeypatch.setattr(memory, "room_on", lambda device: needed)
    assert suggestion(recipe) in ("what fits: learner.micro_tokens=8192", "what fits: learner.micro_tokens=4096")
    with pytest.raises(ls.ConfigError, match=r"does not fit: this run needs [\d.]+ GiB on cpu, which has .* what fits"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(memory, "room_on", lambda device: 10)
    assert suggestion(recipe).startswith("neither checkpointing nor adapters would make it fit")
    monkeypatch.setattr(memory, "room_on", lambda device: None)
    assert "free on cpu" in str(plan(recipe)) and plan(recipe).fits


def test_what_fits_is_said_of_a_recipe_with_few_tokens_a_pass_too(
    described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(described, micro_tokens=256)
    needed = plan(recipe.replace(learner={"checkpointing": True})).needed
    monkeypatch.setattr(memory, "room_on", lambda device: needed)
    assert suggestion(recipe) == "what fits: learner.checkpointing=true"


def test_dry_run_prints_the_plan_as_comments(
    described: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tti", f"model={described}", "device=cpu", "--dry-run"]) == 0
    out = capsys.readouterr().out
    (tmp_path / "again.toml").write_text(out)
    assert load_toml(Recipe, tmp_path / "again.toml").model == described
    for name in ("weights (", "optimiser", "activations (", "engine: keys and values", "in all", "free on cpu", "left"):
        assert name in out
    assert main(["train", "tti", f"model={tmp_path}", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "# memory: not known: " in out and tomllib.loads(out)["model"] == str(tmp_path)


# Out of memory, and devices that fail


def failing(*given: Any, **named: Any) -> Any:
    raise torch.OutOfMemoryError(FULL)


FULL = "CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 79 GiB"


def test_memory_that_runs_out_in_training_ends_with_one_message_and_the_run_goes_on(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, folder = make_recipe(model_folder, iterations=2), tmp_path / "run"
    plain = TokenLikelihood.forward
    with monkeypatch.context() as patch:
        patch.setattr(TokenLikelihood, "forward", failing)
        with pytest.raises(ls.RunError) as e:
            train(recipe, folder)
    assert TokenLikelihood.forward is plain
    for said in (
        r"out of memory (for 2.25 GiB more) while training on a pass of ", " tokens (", "set learner.micro_tokens=",
        "learner.checkpointing=true", "keeps the run up to iteration 0",
    ):  # fmt: skip
        assert said in str(e.value)
    train(recipe, folder, resume=True)
    train(recipe, tmp_path / "whole")
    losses = [[row["loss"] for row in rows_of(f) if row["kind"] == "train"] for f in (folder, tmp_path / "whole")]
    assert losses[0] == losses[1] and len(losses[0]) == 2


def test_memory_that_runs_out_elsewhere_is_named(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(model_folder, iterations=1)
    with monkeypatch.context() as patch:
        patch.setattr("longstride.engines.local.Layout", failing)
        with pytest.raises(ls.RunError, match=r"while sampling 1 rows; set engine.cache_gigabytes lower"):
            train(recipe, tmp_path / "a")
    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", failing)
        with pytest.raises(ls.RunError, match="while taking an optimiser step; set learner.lora={}"):
            train(recipe, tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr("longstride.models.load.AutoModelForCausalLM.from_pretrained", failing)
        with pytest.raises(ls.RunError, match="while loading the model; take a smaller one"):
            train(recipe, tmp_path / "c")


def test_a_cpu_that_runs_out_and_a_device_that_fails_are_known_and_a_bug_is_not() -> None:
    cpu = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 bytes.")
    assert str(trouble_on_device(cpu)).startswith("out of memory (for 123 bytes more) while computing")
    mps = RuntimeError("MPS backend out of memory (max allowed: 9 GB). Tried to allocate 256.00 MB on private pool.")
    assert str(trouble_on_device(mps)).startswith("out of memory (for 256.00 MB more)")
    library = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    assert str(trouble_on_device(library)).startswith("out of memory while computing")
    lost = torch.distributed.DistNetworkError("NCCL timeout\nmore")
    said = "processes lost one another (NCCL timeout); where another process stopped first, its own message says why"
    assert f"{said}; no episode was rewarded" in str(trouble_on_device(lost))
    gone = RuntimeError("[/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:12695: Connection reset by peer")
    assert "processes lost one another" in str(trouble_on_device(gone))
    assert trouble_on_device(RuntimeError("shapes do not fit")) is None


def test_the_innermost_of_what_was_being_done_is_named_and_errors_of_another_kind_have_no_note() -> None:
    for error, notes in ((torch.OutOfMemoryError(FULL), 2), (RuntimeError("shapes do not fit"), 0)):
        with pytest.raises(RuntimeError) as e, doing("training", "train less"), doing("sampling", "sample less"):
            raise error
        assert e.value is error and len(getattr(error, "__notes__", [])) == notes
        assert what_was_done(error).startswith("while sampling; sample less" if notes else "while computing; take")


# Whether sampler and learner agree


def test_a_gap_above_the_bound_is_warned_of_with_its_remedies() -> None:
    recipe = recipe_of("base").replace(sampling={"top_p": 1.0})
    chosen = [make_trajectory([make_turn(versions=[2])])]
    with pytest.warns(ls.LongstrideWarning, match="0.080 nats off the sampler's .*learner.float32_head=true") as seen:
        warn_of_gap(recipe, 3, chosen, 0.08)
    assert "engine.dtype=float32" in str(seen[0].message) and "loss.type=cispo" in str(seen[0].message)
    with pytest.warns(ls.LongstrideWarning, match="loss.correction={mode='truncate'}"):
        warn_of_gap(recipe.replace(loss=PPO()), 3, chosen, 0.08)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_gap(recipe, 3, chosen, 0.04)
        warn_of_gap(recipe, 4, chosen, 0.08)  # an older policy's tokens
        warn_of_gap(recipe.replace(sampling={"temperature": 0.7}), 3, chosen, 0.08)


def test_every_iteration_has_the_gap_and_it_is_rounding_alone(tmp_path: Path, model_folder: Path) -> None:
    train(make_recipe(model_folder, iterations=2), tmp_path / "run")
    gaps = [row["sampling_gap"] for row in rows_of(tmp_path / "run") if row["kind"] == "train" and row["steps"]]
    assert gaps and max(gaps) < 1e-5
