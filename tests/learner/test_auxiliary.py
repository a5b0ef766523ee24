"""A model's own losses in a learner's step."""

from typing import Any

import pytest
import torch

from longstride.core.errors import ConfigError
from longstride.core.seeds import derive
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample
from longstride.models.experts import Experts, LlamaExperts
from longstride.models.tiny import TinyConfig, build_model

SHAPE = TinyConfig(
    width=16, layers=1, heads=2, kv_heads=1, ffn=20, context=64, experts=Experts(tokens=4, tasks=3, ffn=6)
)
CONFIG = LearnerConfig(dtype="float32", lr=1e-2, warmup_steps=0)


def samples(behaviour: bool) -> list[Sample]:
    """Four rows of three lengths, the first and the third of one task, the others of another one."""
    streams = [
        {ADVANTAGES: [0.0] * n + [1.0]} | ({BEHAVIOUR: [-1.0] * (n + 1)} if behaviour else {}) for n in (3, 5, 2, 3)
    ]
    return [Sample([5, 6 + k], list(range(9, 9 + len(s[ADVANTAGES]))), s, pair=k % 2) for k, s in enumerate(streams)]


def model() -> LlamaExperts:
    made = build_model(SHAPE, 40, 0)
    assert isinstance(made, LlamaExperts)
    return made


@pytest.mark.parametrize("noise", [derive(0, "gates", 0), None])
def test_a_step_has_their_gradient_and_noise_only_for_what_others_said(noise: int | None) -> None:
    learner, by_hand, mine = Learner(model(), CONFIG), model(), samples(behaviour=noise is None)
    loss, found = learner.accumulate(mine)
    rows = [s.prompt_ids + s.sampled_ids for s in sorted(mine, key=lambda s: len(s.sampled_ids))]
    lengths = [len(row) - 1 for row in rows]
    ids = torch.tensor([row + [0] * (8 - len(row)) for row in rows])
    with by_hand.watched(noise):
        said = by_hand(ids).logits.log_softmax(-1)
        last = [said[k, n - 1, row[n]] for k, (row, n) in enumerate(zip(rows, lengths, strict=True))]
        wanted = -torch.stack(last).mean()
        counted = torch.arange(8)[None] < torch.tensor(lengths)[:, None]
        more, own = by_hand.losses(counted, torch.tensor([0, 0, 1, 1]))
        (wanted + more).backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-4)
    for name, p in by_hand.named_parameters():
        if p.grad is not None:
            ours: Any = learner.parameters[name].grad
            assert torch.allclose(p.grad, ours, atol=1e-5), name


def test_gates_of_the_keys_follow_after_a_step() -> None:
    learner = Learner(model(), CONFIG)
    before = learner.model.expert_layers()[0].key_2.clone()
    learner.step(samples(behaviour=False))
    assert not torch.equal(before, learner.model.expert_layers()[0].key_2)


def test_a_step_of_several_passes_is_refused_in_one_line() -> None:
    learner = Learner(model(), CONFIG.replace(micro_tokens=16))
    with pytest.raises(ConfigError, match="takes 2 passes: set micro_tokens of the learner to 32 or more"):
        learner.step(samples(behaviour=False))
