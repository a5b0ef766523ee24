"""What only a card can show: the kernels that it runs give the numbers of the plain ones on a CPU. `make gpu` runs
these tests with those of captured passes and then `longstride bench gpu`. LONGSTRIDE_DEVICE=cpu runs them without a
card, to see that they are sound."""

import copy
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from by_hand import VOCABULARY, growing_group, step_of_learner
from engine_models import NEVER, batch, difference, prompts
from helpers import rows_of
from one_page import make_recipe, save_model
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.core.errors import ConfigError
from longstride.engines.base import Sampling
from longstride.engines.config import VLLM
from longstride.engines.local import LocalEngine
from longstride.engines.preflight import preflight
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO
from longstride.models.device import try_on
from longstride.models.load import load_policy
from longstride.run.loop import train
from longstride.run.memory import trouble_on_device

DEVICE = os.environ.get("LONGSTRIDE_DEVICE", "cuda")
pytestmark = pytest.mark.skipif(
    DEVICE == "cuda" and not torch.cuda.is_available(), reason="needs a card; LONGSTRIDE_DEVICE=cpu runs it without"
)
SHAPE: Any = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 512,
}  # fmt: skip


def make() -> Any:
    torch.manual_seed(0)
    return Qwen3ForCausalLM(Qwen3Config(**SHAPE)).eval()


def gradients(device: str, **numbers: Any) -> tuple[float, dict[str, torch.Tensor]]:
    settings = LearnerConfig(**{"dtype": "float32", "packed": False} | numbers)
    learner = Learner(make().to(device), settings, PPO())
    loss, _, found = step_of_learner(learner, growing_group(episodes=4, prompt=60))
    return loss, {name: g.detach().cpu() for name, g in found.items()}


@pytest.mark.parametrize(
    ("numbers", "tolerance"),
    [
        ({}, 1e-3),
        ({"packed": True}, 1e-3),
        ({"packed": True, "checkpointing": True}, 1e-3),
        ({"packed": True, "dtype": "bfloat16"}, 5e-2),
        pytest.param(
            {"packed": True, "compile": True}, 1e-3, marks=pytest.mark.skipif(DEVICE == "cpu", reason="takes a minute")
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_a_step_has_the_gradient_of_the_plain_one_on_a_cpu(numbers: dict[str, Any], tolerance: float) -> None:
    loss, found = gradients(DEVICE, **numbers)
    plain_loss, plain = gradients("cpu")
    assert loss == pytest.approx(plain_loss, abs=tolerance) and found.keys() == plain.keys()
    for name, g in plain.items():
        assert (found[name] - g).norm() <= tolerance * g.norm() + 1e-7, name


@pytest.mark.parametrize(("dtype", "gap"), [("float32", 1e-4), ("bfloat16", 5e-2)])
@pytest.mark.parametrize("graphs", [False, True])
def test_sampled_tokens_have_the_log_probabilities_of_the_model(dtype: Any, gap: float, graphs: bool) -> None:
    model, requests = make(), batch([[i % VOCABULARY for i in ids] for ids in prompts(6)], max_new=9)
    engine = LocalEngine(copy.deepcopy(model).to(DEVICE), NEVER, 512, dtype=dtype, graphs=graphs)
    for version in range(2):
        assert difference(model, requests, engine.generate(requests)) < gap
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(1.1)
        engine.update(copy.deepcopy(model).to(DEVICE), version + 1)


def test_a_run_learns_on_the_device_and_its_sampler_agrees(tmp_path: Path) -> None:
    train(make_recipe(save_model(tmp_path / "model"), iterations=2, device=DEVICE), tmp_path / "run")
    assert f'device = "{DEVICE}"' in (tmp_path / "run" / "run.toml").read_text()
    assert all(row["sampling_gap"] < 0.05 for row in rows_of(tmp_path / "run", "train"))


def test_memory_that_runs_out_is_known() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 52, device=DEVICE)
    assert str(trouble_on_device(raised.value)).startswith("out of memory (for ")


def test_a_pass_of_a_model_in_bfloat16_is_finite() -> None:
    assert torch.isfinite(torch.tensor(try_on(make().to(DEVICE, torch.bfloat16))))


@pytest.mark.skipif("LONGSTRIDE_MODEL" not in os.environ, reason="LONGSTRIDE_MODEL names a model that vLLM can serve")
def test_vllm_in_the_run_takes_weights_and_gives_its_memory_back() -> None:
    pytest.importorskip("vllm")
    policy = load_policy(os.environ["LONGSTRIDE_MODEL"], device=DEVICE, dtype="bfloat16")
    engine = VLLM(memory=0.3, sleep=True).make(policy, 0, [Sampling()])
    try:
        with torch.no_grad():
            for p in policy.model.parameters():
                p.copy_(p.roll(1, 0))
        with pytest.raises(ConfigError, match="preflight"):
            preflight(engine, policy)
        before = torch.cuda.mem_get_info()[0]
        engine.rest()
        assert torch.cuda.mem_get_info()[0] > before
        engine.update(policy.model, 1)
        preflight(engine, policy)
    finally:
        engine.close()
