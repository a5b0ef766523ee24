"""Models that are trained in rows: what shares a pass changes nothing of a row, or it does not share one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from families import gap, gradients, learner_of, make, samples_of
from helpers import make_turn
from one_page import save_model
from torch import nn

from longstride.engines.plain import PlainEngine
from longstride.learner import networks
from longstride.learner.batching import MicroBatch, micro_batch, packs
from longstride.learner.likelihood import takes_padding
from longstride.learner.packing import Row


class LooksAhead(nn.Module):
    """A model whose every logit depends on how much stands behind it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.config, self._supports_sdpa = inner, inner.config, True

    def set_attn_implementation(self, kind: str) -> None:
        pass

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        found = self.inner(input_ids, use_cache=False)
        found.logits = found.logits * (1 + input_ids.shape[1] / 100)
        return found


@pytest.mark.parametrize("name", ["Mamba", "Qwen3.5", "gpt-oss", "Gemma 2"])
def test_padding_behind_a_row_leaks_into_no_state(name: str) -> None:
    assert takes_padding(make(name))


def test_rows_that_padding_would_change_share_a_pass_with_rows_of_their_length_alone() -> None:
    model = make("Qwen2, Qwen2.5")
    samples = samples_of(PlainEngine(model, frozenset(), 128))
    learner = learner_of(LooksAhead(model))
    assert not learner._likelihood.padded and learner_of(model)._likelihood.padded
    together, alone = learner.logprobs(samples), [learner.logprobs([s])[0] for s in samples]
    assert together == [pytest.approx(ids, abs=1e-6) for ids in alone]
    assert gap(learner, samples) > 1e-3  # it is another model than the one that sampled
    one_by_one = gradients(learner_of(LooksAhead(model), micro_tokens=1), samples)
    assert torch.allclose(gradients(learner, samples), one_by_one, rtol=1e-4, atol=1e-5)


def test_an_encoder_of_turns_reads_them_in_such_passes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = list[set[int]]()

    def seen(rows: Sequence[Row], *rest: Any) -> MicroBatch:
        lengths.append({len(row.ids) for row in rows})
        return micro_batch(rows, *rest)

    monkeypatch.setattr(networks, "micro_batch", seen)
    encoder = networks.TurnEncoder(str(save_model(tmp_path / "model")))
    encoder._read.padded = encoder._read.trees = False
    encoder([make_turn([1], range(n)) for n in (5, 2, 5)])
    assert [len(of) for of in lengths] == [1, 1]


def test_packs_without_padding_have_rows_of_one_length() -> None:
    rows = [Row([0] * n, []) for n in (3, 5, 3, 4, 5, 5)]
    found = [[len(row.ids) for row in part] for part in packs(rows, 12, padded=False)]
    assert found == [[3, 3], [4], [5, 5], [5]]
