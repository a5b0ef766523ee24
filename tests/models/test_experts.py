"""Experts: what a token's output is, what it depends on, and that a folder keeps all of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch.nn import functional as F

from longstride.core.errors import ModelError
from longstride.models.chat import ChatFormat
from longstride.models.experts import Experts, LlamaExperts, balance, contrast, with_experts
from longstride.models.load import Policy, load_policy, save_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer

SHAPE = TinyConfig(
    width=16, layers=2, heads=2, kv_heads=1, ffn=20, context=64, experts=Experts(tokens=4, tasks=3, ffn=6)
)
TOKENIZER = build_tokenizer(["a b"])
IDS = torch.tensor([[5, 9, 80, 7, 6, 30], [7, 7, 8, 5, 12, 40]])


@pytest.fixture
def model() -> LlamaExperts:
    made = build_model(SHAPE, len(TOKENIZER), 3)
    assert isinstance(made, LlamaExperts)
    return made


def test_a_token_is_computed_by_the_chosen_experts_of_both_kinds(model: LlamaExperts) -> None:
    layer: Any = model.expert_layers()[0]
    x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))
    halves = []
    for gate, mixture in ((layer.token_gate, layer.tokens), (layer.task_gate, layer.tasks)):
        each = []
        for one in x[0]:
            logits = gate(one)
            best = logits.argsort(descending=True)[:2]
            weights = logits[best].exp() / logits[best].exp().sum()
            chosen = [mixture.experts[k] for k in best.tolist()]
            each.append(
                sum(
                    w * k.down_proj(F.silu(k.gate_proj(one)) * k.up_proj(one))
                    for w, k in zip(weights, chosen, strict=True)
                )
            )
        halves.append(torch.stack(each))
    assert torch.allclose(layer(x)[0], torch.cat(halves, -1), atol=1e-6)
    assert sum(isinstance(m.mlp, type(layer)) for m in model.model.layers) == 1


def test_what_comes_later_changes_nothing(model: LlamaExperts) -> None:
    assert torch.allclose(model(IDS).logits[:, :4], model(IDS[:, :4]).logits, atol=1e-5)


def test_a_folder_keeps_all_of_it(model: LlamaExperts, tmp_path: Path) -> None:
    model.expert_layers()[0].follow(0.5)
    save_policy(Policy("own", model, TOKENIZER, ChatFormat(TOKENIZER), 64), tmp_path / "m")
    again = load_policy(str(tmp_path / "m")).model
    assert again.shape == SHAPE.experts and torch.allclose(again(IDS).logits, model(IDS).logits, atol=1e-6)
    kept = again.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())


def test_noise_is_drawn_where_it_is_asked_for_and_the_same_by_seed(model: LlamaExperts) -> None:
    def logits(noise: int | None) -> list[float]:
        with model.watched(noise):
            return model(IDS).logits.flatten().tolist()

    before = torch.random.get_rng_state()
    assert logits(None) == model(IDS).logits.flatten().tolist()
    assert logits(1) == logits(1) != logits(2)
    assert torch.equal(before, torch.random.get_rng_state())


def test_padding_is_in_no_loss_and_rows_without_a_partner_are_not_compared(model: LlamaExperts) -> None:
    padded = torch.cat([IDS, torch.zeros(2, 3, dtype=torch.long)], 1)
    rows = torch.cat([padded, padded.flip(0)])
    counted = torch.arange(9)[None] < torch.full((4, 1), 6)
    found = []
    for ids, those in ((rows, counted), (rows[:, :6], counted[:, :6])):
        with model.watched(None):
            model(ids)
            found.append(model.losses(those, torch.tensor([7, 2, 2, 7]))[1])
    assert found[0] == pytest.approx(found[1], rel=1e-4) and found[0]["contrast"] > 0
    with model.watched(None):
        model(rows)
        assert model.losses(counted, torch.tensor([7, 2, -1, 5]))[1]["contrast"] == 0


def test_the_balance_by_hand() -> None:
    """Two tokens, three experts, one of them chosen: importance 2, 0, 0; the chances of the load are Phi((2 - 1) / 1)
    and Phi((3 - 0) / 1) of the chosen one, Phi(1 - 2) and Phi(0 - 3), Phi(0 - 2) and Phi(0 - 3) of the others."""
    logits = torch.tensor([[2.0, 1.0, 0.0], [3.0, 0.0, 0.0]])
    load = [0.8413447 + 0.9986501, 0.1586553 + 0.0013499, 0.0227501 + 0.0013499]
    mean = sum(load) / 3
    variation = sum((x - mean) ** 2 for x in load) / 2 / mean**2
    assert balance(logits, logits, torch.ones(2, 3), 1).item() == pytest.approx(3 + variation, rel=1e-4)


def test_the_contrast_is_least_where_partners_say_the_same() -> None:
    told, one = torch.eye(3).repeat(2, 1), torch.full((6, 3), 1 / 3)
    least, none = (contrast(x, x, 9 * torch.eye(3)).item() for x in (told, one))
    assert least < 0.001 and none == pytest.approx(torch.tensor(3.0).log().item())


def test_the_keys_follow_the_gate(model: LlamaExperts) -> None:
    layer: Any = model.expert_layers()[0]
    first = layer.key_2.clone()
    assert torch.equal(first, layer.task_gate[2].weight)
    with torch.no_grad():
        layer.task_gate[2].weight += 1.0
    model.stepped()
    assert torch.allclose(layer.key_2, first + 0.005, atol=1e-6)


def test_experts_of_all_inner_units_say_what_the_network_said() -> None:
    dense = build_model(SHAPE.replace(experts=None), len(TOKENIZER), 3)
    shape = Experts(tokens=4, tasks=3, ffn=20)
    made = with_experts(dense, shape, torch.Generator().manual_seed(0))
    assert torch.allclose(made(IDS).logits, dense(IDS).logits, atol=1e-4)
    with pytest.raises(ModelError, match="expected ffn of at most 20 and layers of at most 2, got 20 and 3"):
        with_experts(dense, shape.replace(layers=3), torch.Generator())
    with pytest.raises(ModelError, match="of a Llama without biases, not of LlamaExperts"):
        with_experts(made, shape, torch.Generator())


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"chosen \(2\) must be below tokens \(2\) and tasks \(8\)"):
        Experts(tokens=2)
    with pytest.raises(ValidationError, match=r"experts.layers \(5\) must be at most layers \(4\)"):
        TinyConfig(experts=Experts(layers=5))
