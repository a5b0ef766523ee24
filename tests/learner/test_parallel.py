"""Several processes: two ranks over gloo take the steps of one process; what ranks scatter, gather and share."""

import math
import multiprocessing
import os
import pickle
import random
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.learner import parallel, sharding
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import KL, PPO
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample
from longstride.methods.ratios import GSPO, ImportanceCorrection
from longstride.models.lora import LoRA

VOCABULARY = 40
HELD = KL(coefficient=0.5)
CORRECTED = PPO(correction=ImportanceCorrection(), kl=HELD)
CASES = {
    "replicated": (LearnerConfig(), CORRECTED),
    "sharded": (LearnerConfig(sharded=True, checkpointing=True), GSPO(kl=HELD)),
    "sharded, adapters": (LearnerConfig(sharded=True, lora=LoRA(rank=2)), CORRECTED),
}


def make(seed: int = 0) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=256, tie_word_embeddings=True,
    ))  # fmt: skip


def samples() -> list[Sample]:
    rng = random.Random(1)
    out = []
    for k in range(5):
        head = [rng.randrange(VOCABULARY) for _ in range(rng.choice([3, 60]))]
        for _ in range(4):
            said = [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 9))]
            streams = {ADVANTAGES: [rng.choice([-1.0, 1.0])] * len(said), BEHAVIOUR: [-3.7] * len(said)}
            out.append(Sample(head, said, streams, k, k))
    return out


def trained(name: str, seed: int) -> tuple[dict, dict, dict]:
    """Weights, metrics and state after three optimiser steps; the state has been through `load_state` once."""
    numbers, loss = CASES[name]
    if "lora" in numbers.model_fields_set:
        pytest.importorskip("peft")
    more = {"dtype": "float32", "lr": 1e-2, "warmup_steps": 0, "batch_samples": 8, "micro_tokens": 100}
    learner = Learner(make(seed), numbers.model_copy(update=more), loss)
    learner.update(samples()[:1], random.Random(1))  # fewer rows than ranks
    metrics = learner.update(samples()[:8], random.Random(2))
    tensors, counts = learner.state()
    learner.load_state({k: v.clone() for k, v in tensors.items()}, dict(counts))
    learner.update(samples()[8:], random.Random(3))
    metrics["features"] = learner.features(samples()).sum().item()
    apart = {f"apart.{k}": v for k, v in learner.full_model(merge=False).state_dict().items() if "lora" in k}
    return learner.full_model().state_dict() | apart, metrics, learner.state()[0]


def work(rank: int, port: int, folder: str) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with parallel.joined():
        found = {name: trained(name, seed=rank) for name in CASES}  # rank 1 starts elsewhere: it takes rank 0's weights
        share = parallel.scatter(range(7))
        lists = (share, parallel.gather(share), parallel.unscatter(share))
        p, q = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
        p.grad = torch.full((2,), 1.0 + rank) if rank else None
        parallel.sum_gradients([p, q])
        torch.save((found, lists, p.grad, q.grad), Path(folder, f"{rank}.pt"))
    assert parallel.world() == 1


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = multiprocessing.get_context("forkserver")  # which has imported everything, once for both
    context.set_forkserver_preload(["longstride.learner.learner"])
    processes = [context.Process(target=work, args=(rank, port, str(folder))) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_two_processes_take_the_steps_of_one(ranks, name):
    weights, metrics, state = trained(name, seed=0)
    for found, *_ in ranks:
        their_weights, their_metrics, their_state = found[name]
        assert their_metrics == pytest.approx(metrics, rel=1e-4)
        assert weights.keys() == their_weights.keys() and state.keys() == their_state.keys()
        for key, value in weights.items():
            torch.testing.assert_close(their_weights[key], value, rtol=0, atol=1e-6)
        for key, value in state.items():
            torch.testing.assert_close(their_state[key], value, rtol=1e-3, atol=1e-6)
    assert not all(torch.equal(value, weights[key]) for key, value in make().state_dict().items())
    assert any(key.startswith("apart") for key in weights) == ("adapters" in name)


@pytest.mark.slow
def test_what_ranks_share_comes_together_again(ranks):
    assert [lists for _, lists, *_ in ranks] == [
        ([0, 2, 4, 6], [0, 2, 4, 6, 1, 3, 5], [0, 1, 2, 3, 4, 5, 6]),
        ([1, 3, 5], [0, 2, 4, 6, 1, 3, 5], [0, 1, 2, 3, 4, 5, 6]),
    ]


@pytest.mark.slow
def test_a_gradient_that_one_rank_has_is_summed_and_one_that_none_has_stays_away(ranks):
    for *_, one, none in ranks:
        assert one.tolist() == [2.0, 2.0] and none is None


def test_what_is_handed_round_waits_for_long_episodes_and_holds_no_tensor(monkeypatch):
    made, sent = [], []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(parallel.dist, "init_process_group", lambda backend: None)
    monkeypatch.setattr(parallel.dist, "new_group", lambda **options: made.append(options) or "round")
    monkeypatch.setattr(parallel.dist, "destroy_process_group", lambda: None)
    monkeypatch.setattr(parallel, "world", lambda: 2)
    monkeypatch.setattr(parallel.torch.cuda, "is_available", lambda: False)

    def all_gather(parts: list, mine: list, group: object) -> None:
        sent.append((pickle.dumps(mine), group))
        parts[:] = [mine, mine]

    monkeypatch.setattr(parallel.dist, "all_gather_object", all_gather)
    with parallel.joined():
        monkeypatch.setattr(parallel, "rank", lambda: 0)
        monkeypatch.setattr(parallel, "broadcast_tensors", lambda tensors: None)
        monkeypatch.setattr(parallel, "sum_gradients", lambda parameters: None)
        learner = Learner(make(), LearnerConfig(dtype="float32"), PPO())
        loss, found = learner.accumulate(samples())
    assert made[0]["timeout"].total_seconds() > 24 * 3600 and made[0]["backend"] == "gloo"
    ((data, group),) = sent
    assert group == "round" and b"torch" not in data
    assert found["tokens"] % 2 == 0 and math.isfinite(loss)


@given(st.lists(st.integers(1, 50)), st.integers(1, 5))
def test_balanced_shares_have_each_item_once_and_differ_by_no_more_than_the_largest(sizes, ranks):
    shares = parallel.balance(sizes, ranks)
    assert len(shares) == ranks and sorted(k for share in shares for k in share) == list(range(len(sizes)))
    loads = [sum(sizes[k] for k in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes, default=0)


def test_one_process_alone_needs_no_partner():
    with parallel.joined():
        assert (parallel.rank(), parallel.world()) == (0, 1)
        assert parallel.scatter([1, 2]) == parallel.gather([1, 2]) == parallel.unscatter([1, 2]) == [1, 2]


def test_a_filled_skeleton_is_the_module_again():
    model = make()
    bones: Any = sharding.skeleton(model)
    assert all(p.is_meta for p in bones.parameters())
    again: Any = sharding.filled(bones, dict(model.named_parameters()))
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(again(ids).logits, model(ids).logits)
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight
