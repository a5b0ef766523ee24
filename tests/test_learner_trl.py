"""Losses beside an independent implementation of the same formulas: the GRPO trainer of TRL."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import tiny_model
from transformers import PreTrainedTokenizerFast

from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO, Constant, Loss, Mean, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.ratios import CISPO, GSPO

trl = pytest.importorskip("trl", reason="parity with TRL's GRPO loss needs `trl` (pip install trl)")
datasets = pytest.importorskip("datasets")  # TRL brings it
VOCABULARY = 20


def trainer_of(folder: Any, **choices: Any) -> Any:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="a"))
    config = trl.GRPOConfig(
        output_dir=str(folder), use_cpu=True, report_to=[], bf16=False, gradient_checkpointing=False,
        per_device_train_batch_size=8, num_generations=4, max_completion_length=16, beta=0.0, **choices,
    )  # fmt: skip
    return trl.GRPOTrainer(
        tiny_model(VOCABULARY), lambda completions, **_: [0.0] * len(completions), config,
        datasets.Dataset.from_list([{"prompt": "a"}] * 8),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>"),
    )  # fmt: skip


def answers() -> list[Sample]:
    """Eight answers of two prompts, of 2 to 9 tokens."""
    rng, found = np.random.default_rng(0), []
    for n in range(8):
        size = 2 + n
        ids, old = rng.integers(2, VOCABULARY, size=size).tolist(), rng.normal(-3.0, 0.5, size=size).tolist()
        streams = {ADVANTAGES: [float(rng.normal())] * size, BEHAVIOUR: old}
        found.append(Sample([2, 3 + n // 4, 5], ids, streams, n, n // 4))
    return found


@pytest.mark.parametrize(
    ("loss", "choices"),
    [
        (PPO(aggregation=Mean(over="episode")), {"loss_type": "grpo"}),
        (PPO(clip_high=0.28), {"loss_type": "dapo", "epsilon_high": 0.28}),
        (PPO(dual_clip=1.5), {"loss_type": "bnpo", "delta": 1.5}),
        (PPO(aggregation=Constant(length=16, per="episode")), {"loss_type": "dr_grpo"}),
        (CISPO(max=1.1), {"loss_type": "cispo", "epsilon_high": 1.1}),
        (
            GSPO(clip_low=0.1, clip_high=0.2),
            {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "epsilon_high": 0.2},
        ),
    ],
)
def test_loss_and_gradient_are_those_of_trl_on_the_same_batch(tmp_path, loss: Loss, choices: dict[str, Any]):
    trainer, samples = trainer_of(tmp_path, **choices), answers()
    longest = max(len(s.sampled_ids) for s in samples)

    def padded(rows: list[list[Any]], fill: float) -> torch.Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])

    batch = {
        "prompt_ids": torch.tensor([s.prompt_ids for s in samples]),
        "prompt_mask": torch.ones(8, 3, dtype=torch.long),
        "completion_ids": padded([s.sampled_ids for s in samples], 0),
        "completion_mask": padded([[1] * len(s.sampled_ids) for s in samples], 0),
        "advantages": torch.tensor([s.advantages[0] for s in samples]),
        "old_per_token_logps": padded([s.streams[BEHAVIOUR] for s in samples], 0.0),
        "num_items_in_batch": torch.tensor(sum(len(s.sampled_ids) for s in samples)),
    }
    theirs = trainer._compute_loss(trainer.model, batch)
    theirs.backward()
    gradients = {name: p.grad.clone() for name, p in trainer.model.named_parameters()}
    learner = Learner(trainer.model, LearnerConfig(dtype="float32", micro_tokens=20), loss)
    ours, found = learner.accumulate(samples)
    assert ours == pytest.approx(theirs.item(), abs=1e-6)
    assert 0 < found["clip_fraction"] < 1
    for name, p in learner.parameters.items():
        torch.testing.assert_close(p.grad, gradients[name], rtol=1e-4, atol=1e-6)
