"""Tiny random models of many families, and what Longstride makes of each: the table of docs/guides/own_model.md.

`python tests/support/families.py` writes the table; `make families` holds all of it against what is found.
"""

import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from longstride.core.errors import LongstrideError, ModelError
from longstride.engines.base import Engine, Request
from longstride.engines.local import LocalEngine
from longstride.engines.plain import PlainEngine, Way
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods.base import ADVANTAGES, Sample
from longstride.models.lora import LoRA

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own_model.md"
HEAD = "| family | sampled | trained | LoRA |\n|---|---|---|---|\n"
VOCABULARY, CONTEXT = 64, 128
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": CONTEXT,
    "initializer_range": 0.06, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
"""What most configurations call their numbers; others leave out what they do not know."""
GPT: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
MOE: dict[str, Any] = {
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
}  # fmt: skip
LATENT: dict[str, Any] = MOE | {
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 1,
    "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4,
}  # fmt: skip
DELTA: dict[str, Any] = {
    "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}  # fmt: skip
SSM: dict[str, Any] = {
    "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_ssm": 64, "mamba_d_state": 8, "mamba_n_groups": 1,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16,
}  # fmt: skip
WINDOW: dict[str, Any] = {"sliding_window": 6}
GEMMA = WINDOW | {"query_pre_attn_scalar": 8}
CONVOLVED: dict[str, Any] = {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "BLOOM": ("bloom", {"n_head": 4, "n_layer": 2}),
    "Bamba": ("bamba", SSM | {"num_hidden_layers": 4, "attn_layer_indices": [1, 3]}),
    "Cohere 2": ("cohere2", WINDOW),
    "DeepSeek V2": ("deepseek_v2", LATENT),
    "DeepSeek V3, R1": ("deepseek_v3", LATENT),
    "DeepSeek V3.2": ("deepseek_v32", LATENT | {"index_n_heads": 64, "index_head_dim": 16, "index_topk": 8}),
    "Falcon": ("falcon", {"alibi": False}),
    "Falcon H1": ("falcon_h1", SSM),
    "FalconMamba": ("falcon_mamba", {"state_size": 8}),
    "GLM-4": ("glm4", {}),
    "GLM-4.5": ("glm4_moe", MOE),
    "GPT-2": ("gpt2", GPT),
    "GPT-J": ("gptj", GPT | {"rotary_dim": 4}),
    "GPT-NeoX, Pythia": ("gpt_neox", {}),
    "Gemma": ("gemma", {}),
    "Gemma 2": ("gemma2", GEMMA),
    "Gemma 3, text": ("gemma3_text", GEMMA),
    "Granite": ("granite", {}),
    "Granite 4, hybrid": (
        "granitemoehybrid",
        MOE | SSM | {"num_hidden_layers": 4, "layer_types": ["mamba", "attention"] * 2, "shared_intermediate_size": 64},
    ),
    "Jamba": (
        "jamba",
        {
            "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
            "expert_layer_offset": 1, "num_experts": 2, "mamba_d_state": 8, "mamba_dt_rank": 4,
            "use_mamba_kernels": False,
        },
    ),
    "LFM2": ("lfm2", CONVOLVED),
    "Llama 2, 3": ("llama", {}),
    "Llama 4, text": ("llama4_text", MOE),
    "MPT": ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "expansion_ratio": 2, "max_seq_len": CONTEXT}),
    "Mamba": ("mamba", {"state_size": 8}),
    "Mamba 2": ("mamba2", {"num_heads": 8, "state_size": 8, "n_groups": 1, "chunk_size": 16, "expand": 2}),
    "MiniMax": ("minimax", MOE),
    "Ministral 3": ("ministral3", {}),
    "Mistral": ("mistral", WINDOW),
    "Mixtral": ("mixtral", MOE),
    "Nemotron": ("nemotron", {}),
    "Nemotron H": (
        "nemotron_h",
        {
            "num_hidden_layers": 4, "layers_block_type": ["mamba", "attention", "mamba", "mlp"], "ssm_state_size": 8,
            "mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 1, "chunk_size": 16,
        },
    ),
    "OLMo 2": ("olmo2", {}),
    "OLMo 3": ("olmo3", WINDOW),
    "OLMo, hybrid": ("olmo_hybrid", {"num_hidden_layers": 4}),
    "OLMoE": ("olmoe", MOE),
    "OPT": ("opt", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "Phi-3, Phi-4": ("phi3", {}),
    "Qwen2, Qwen2.5": ("qwen2", {}),
    "Qwen3": ("qwen3", {}),
    "Qwen3, experts": ("qwen3_moe", MOE),
    "Qwen3-Next": ("qwen3_next", MOE | DELTA),
    "Qwen3.5": ("qwen3_5_text", DELTA),
    "RWKV": ("rwkv", {"attention_hidden_size": 32, "context_length": CONTEXT}),
    "RWKV, rescale_every 0": ("rwkv", {"attention_hidden_size": 32, "context_length": CONTEXT, "rescale_every": 0}),
    "RecurrentGemma": ("recurrent_gemma", {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8}),
    "SmolLM3": ("smollm3", {}),
    "StableLM": ("stablelm", {}),
    "StarCoder2": ("starcoder2", {}),
    "Zamba": (
        "zamba",
        {
            "num_hidden_layers": 6, "mamba_d_state": 8, "mamba_dt_rank": 4, "n_mamba_heads": 2, "attn_layer_period": 3,
            "attn_layer_offset": 2, "use_mamba_kernels": False,
        },
    ),
    "gpt-oss": ("gpt_oss", MOE | WINDOW),
    "xLSTM": ("xlstm", {"num_heads": 4, "num_blocks": 2}),
}  # fmt: skip
"""By name the `model_type`, and what is not as `SHAPE` has it."""
WAYS = {
    Way.PADDED: "plainly",
    Way.LEVEL: "plainly, rows of one length together",
    Way.WHOLE: "plainly, a whole pass for each token",
}


class Found(NamedTuple):
    """What Longstride makes of a family, in the words of the guide."""

    sampled: str
    trained: str
    lora: str


def make(name: str, **changes: Any) -> Any:
    """A tiny model of a family, with random weights."""
    kind, numbers = FAMILIES[name]
    shape = SHAPE | numbers | changes
    if kind == "falcon":
        del shape["head_dim"]
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **shape)).eval()


def engine_of(model: Any) -> tuple[Engine, str]:
    """The engine that `engine.plain=auto` comes to, and what the guide says of it."""
    try:
        return LocalEngine(model, frozenset(), CONTEXT), "fast"
    except ModelError:
        engine = PlainEngine(model, frozenset(), CONTEXT)
        return engine, WAYS[engine.way]


def requests(n: int = 5) -> list[Request]:
    """Of several lengths, two of one prompt."""
    rng = random.Random(0)
    prompts = [[rng.randrange(3, VOCABULARY) for _ in range(rng.randint(2, 30))] for _ in range(n - 1)]
    return [Request(prompt, rng.randint(3, 9), seed=k) for k, prompt in enumerate([*prompts, prompts[0]])]


def samples_of(engine: Engine) -> list[Sample]:
    """What an engine samples, with its log-probabilities as a stream."""
    asked = requests()
    done = engine.generate(asked)
    return [
        Sample(r.prompt, c.ids, {ADVANTAGES: [1.0 + k] * len(c.ids), "logprobs": c.logprobs})
        for k, (r, c) in enumerate(zip(asked, done, strict=True))
    ]


def learner_of(model: Any, **numbers: Any) -> Learner:
    return Learner(model, LearnerConfig(dtype="float32", **numbers))


def gap(learner: Learner, samples: list[Sample]) -> float:
    """Largest difference between the learner's log-probabilities and the engine's."""
    ours = learner.logprobs(samples)
    return max(
        abs(a - b)
        for mine, s in zip(ours, samples, strict=True)
        for a, b in zip(mine, s.streams["logprobs"], strict=True)
    )


def gradients(learner: Learner, samples: list[Sample]) -> torch.Tensor:
    """Of one step, in one vector."""
    learner.accumulate(samples)
    found = [p.grad if p.grad is not None else torch.zeros_like(p) for p in learner.parameters.values()]
    return torch.cat([g.flatten() for g in found])


def found(name: str) -> Found:
    """What is found of a family.

    Raises:
        AssertionError: engine and learner differ, or the gradient depends on what shares a pass.
    """
    model = make(name)
    try:
        engine, sampled = engine_of(model)
    except ModelError as e:
        return Found(f"refused: {said(e)}", "refused", "no")
    samples, learner = samples_of(engine), learner_of(model)
    assert gap(learner, samples) < 1e-5, f"{name}: {gap(learner, samples)}"
    together, alone = gradients(learner, samples), gradients(learner_of(model, micro_tokens=1), samples)
    assert together.norm() > 0
    assert (together - alone).norm() < 1e-3 * alone.norm(), f"{name}: {(together - alone).norm() / alone.norm()}"
    likelihood: Any = learner._likelihood
    trained = "in trees" if likelihood.trees else "in rows" if likelihood.padded else "in rows of one length"
    try:
        adapted = learner_of(model, lora=LoRA(rank=2))
        lora = "yes" if gradients(adapted, samples).norm() > 0 else "no gradient"
        engine.update(adapted.full_model(), 1)
    except LongstrideError as e:
        lora = f"no: {said(e)}"
    return Found(sampled, trained, lora)


def said(e: LongstrideError) -> str:
    """The first part of an error, without the class of the model."""
    return re.split(r"[;,]", re.sub(r"\w+ForCausalLM", "it", str(e)))[0].replace("of it ", "")


def row(name: str, what: Found) -> str:
    return f"| {name} | {' | '.join(what)} |"


def rows_in(guide: str) -> dict[str, str]:
    """The rows of the guide's table, by family."""
    lines = guide.partition(HEAD)[2].partition("\n\n")[0].splitlines()
    return {line.split("|")[1].strip(): line for line in lines}


def main() -> None:
    """Writes the table into the guide."""
    text = GUIDE.read_text("utf-8")
    before, head, rest = text.partition(HEAD)
    table = "\n".join(row(name, found(name)) for name in FAMILIES)
    _, end, after = rest.partition("\n\n")
    GUIDE.write_text(before + head + table + end + after, "utf-8")


if __name__ == "__main__":
    main()
