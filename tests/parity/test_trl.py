# pyright: reportMissingImports=false
"""Losses, advantages and updates beside an independent implementation of the same papers: TRL's trainers, on the same
batch and the same tiny model. Run with TRL 1.13.0 and 1.16.0 (which has no Nash-MD any more).

Where definitions differ, a test converts one into the other:

| | TRL | here |
|---|---|---|
| a group's deviation | divisor n - 1, plus 1e-4 | divisor n, nothing added |
| `cispo`, `dapo` | divides by the tokens of the generated batch | by those of the optimiser step |
| IPO | log-ratios are means over an answer's tokens | sums, as in the paper |
| entropy bonus | mean over tokens, with every loss | the loss's own aggregation |
| KL term | times the importance ratio, unless `use_bias_correction_kl` is off, as here | samples are not weighed anew |
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import tiny_model
from scipy.special import log_softmax
from transformers import PreTrainedTokenizerFast

from longstride.exact.games import Duel
from longstride.exact.worlds.games import PreferenceGame, cyclic
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO, Constant, Loss, Mean, Sample
from longstride.methods.advantages import group_advantages
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, REFERENCE
from longstride.methods.kl import KL
from longstride.methods.preferences import DPO, IPO, PairLoss, pair
from longstride.methods.ratios import CISPO, GSPO, ImportanceCorrection
from longstride.papers.nash_mp.exact import NashMD

trl = pytest.importorskip("trl", reason="compares with TRL: make parity")
datasets = pytest.importorskip("datasets")  # TRL brings it

VOCABULARY = 20
REWARDS = [0.3, 1.0, 0.0, 0.5, 0.9, 0.9, 0.1, 0.2]
"""Of four answers to each of two prompts."""
COMMON: dict[str, Any] = {"use_cpu": True, "report_to": [], "bf16": False, "gradient_checkpointing": False}


def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def other_model() -> Any:
    return tiny_model(VOCABULARY, seed=1)


def online_trainer(kind: str, folder: Path, **choices: Any) -> Any:
    """A trainer of `kind` ("GRPO" or "RLOO") whose reward function gives `REWARDS`, and whose reference is
    `other_model()`."""
    model = tiny_model(VOCABULARY)
    model.config._name_or_path = str(folder / "reference")  # where a trainer looks for the reference
    other_model().save_pretrained(folder / "reference")
    if kind == "GRPO":
        choices["use_bias_correction_kl"] = False
    config = getattr(trl, f"{kind}Config")(
        output_dir=str(folder), per_device_train_batch_size=8, num_generations=4, max_completion_length=16,
        **COMMON, **choices,
    )  # fmt: skip
    return getattr(trl, f"{kind}Trainer")(
        model, lambda completions, **_: REWARDS, config,
        datasets.Dataset.from_list([{"prompt": "a"}] * 8), processing_class=tokenizer(),
    )  # fmt: skip


def answers(*names: str) -> list[Sample]:
    """Eight answers of two prompts, of 2 to 9 tokens, with advantages; further streams are like log-probabilities."""
    rng, found = np.random.default_rng(0), []
    for n in range(8):
        size = 2 + n
        ids, advantage = rng.integers(2, VOCABULARY, size=size).tolist(), float(rng.normal())
        streams = {name: rng.normal(-3.0, 0.5, size=size).tolist() for name in names}
        found.append(Sample([2, 3 + n // 4, 5], ids, {ADVANTAGES: [advantage] * size} | streams, n, n // 4))
    return found


def padded(rows: Sequence[Sequence[Any]], fill: float = 0) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])


def unpadded(rows: torch.Tensor, samples: Sequence[Sample]) -> list[list[float]]:
    return [row[: len(s.sampled_ids)].tolist() for row, s in zip(rows, samples, strict=True)]


def learner_of(model: Any, loss: Loss, **parts: Any) -> Learner:
    return Learner(model, LearnerConfig(dtype="float32", micro_tokens=20), loss, **parts)


def gradients_of(model: torch.nn.Module, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def check_gradients(learner: Learner, expected: dict[str, torch.Tensor], scale: float = 1.0) -> None:
    assert learner.parameters.keys() == expected.keys()
    for name, p in learner.parameters.items():
        assert p.grad is not None
        torch.testing.assert_close(p.grad / scale, expected[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "choices"),
    [
        (PPO(aggregation=Mean(over="episode")), {"loss_type": "grpo"}),
        (PPO(clip_high=0.28), {"loss_type": "dapo", "epsilon_high": 0.28}),
        (PPO(dual_clip=1.5, entropy=0.02), {"loss_type": "bnpo", "delta": 1.5}),
        (PPO(aggregation=Constant(length=16, per="episode")), {"loss_type": "dr_grpo"}),
        (PPO(aggregation=Mean(over="episode"), kl=KL(coefficient=0.04)), {"loss_type": "grpo"}),
        (PPO(aggregation=Constant(length=16), kl=KL(coefficient=0.04)), {"loss_type": "dr_grpo"}),
        (CISPO(max=1.1), {"loss_type": "cispo", "epsilon_high": 1.1}),
        (
            GSPO(clip_low=0.1, clip_high=0.2),
            {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "epsilon_high": 0.2},
        ),
    ],
)
def test_loss_and_gradient_are_those_of_grpo_and_its_variants(tmp_path: Path, loss: Loss, choices: dict[str, Any]):
    beta = 0.0 if loss.kl is None else loss.kl.coefficient
    trainer = online_trainer("GRPO", tmp_path, **choices, beta=beta, entropy_coef=loss.entropy)
    samples = answers(BEHAVIOUR, REFERENCE)
    batch = {
        "prompt_ids": torch.tensor([s.prompt_ids for s in samples]),
        "prompt_mask": torch.ones(8, 3, dtype=torch.long),
        "completion_ids": padded([s.sampled_ids for s in samples]),
        "completion_mask": padded([[1] * len(s.sampled_ids) for s in samples]),
        "advantages": torch.tensor([s.advantages[0] for s in samples]),
        "old_per_token_logps": padded([s.streams[BEHAVIOUR] for s in samples]),
        "ref_per_token_logps": padded([s.streams[REFERENCE] for s in samples]),
        "num_items_in_batch": torch.tensor(sum(len(s.sampled_ids) for s in samples)),
    }
    theirs = trainer._compute_loss(trainer.model, batch)
    expected = gradients_of(trainer.model, theirs)
    learner = learner_of(trainer.model, loss)
    ours, found = learner.accumulate(samples)
    assert ours == pytest.approx(theirs.item(), abs=1e-6)
    assert 0 < found["clip_fraction"] < 1
    check_gradients(learner, expected)


def rolled_out(trainer: Any, samples: Sequence[Sample]) -> dict[str, Any]:
    """The trainer's own batch, as if it had sampled these answers. (`_generate` stands for sampling; the trainer's own
    code does the rest.)"""
    prompts, ids = [s.prompt_ids for s in samples], [s.sampled_ids for s in samples]
    logps, texts = [s.streams[BEHAVIOUR] for s in samples], [""] * len(samples)
    more = prompts, ids, None, texts, logps, {}, None, []
    trainer._generate = lambda _: more if isinstance(trainer, trl.GRPOTrainer) else (prompts, ids, texts)
    return trainer._generate_and_score_completions([{"prompt": "a"} for _ in samples])


@pytest.mark.parametrize(("scale", "normalize"), [("group", "std"), ("batch", "batch_std"), ("none", "none")])
def test_advantages_are_those_of_grpo(tmp_path: Path, scale: str, normalize: Any):
    trainer = online_trainer("GRPO", tmp_path, beta=0.0, scale_rewards=scale)
    theirs = rolled_out(trainer, answers(BEHAVIOUR))["advantages"]
    ours = group_advantages(REWARDS, [0] * 4 + [1] * 4, "mean", normalize)
    if normalize != "none":  # theirs divides by sqrt(n / (n - 1)) times our deviation, plus 1e-4
        deviation = np.repeat(np.reshape(REWARDS, (2, 4)).std(1), 4) if scale == "group" else np.std(REWARDS)
        n = 4 if scale == "group" else 8
        ours = ours * deviation / (deviation * np.sqrt(n / (n - 1)) + 1e-4)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_advantages_are_those_of_rloo(tmp_path: Path):
    theirs = rolled_out(online_trainer("RLOO", tmp_path, beta=0.0), answers(BEHAVIOUR))["advantages"]
    ours = group_advantages(REWARDS, [0] * 4 + [1] * 4, "leave_one_out", "none")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("mode", ["truncate", "mask"])
def test_what_a_sampler_samples_differently_is_corrected_as_in_grpo(tmp_path: Path, mode: Any, level: Any):
    """From rewards to gradients: log-probabilities at the start of the update, importance weights against the
    sampler's, and the loss after the policy moved."""
    bounds = {"min": 0.5, "max": 1.5}
    trainer = online_trainer(
        "GRPO", tmp_path, loss_type="bnpo", beta=0.04, scale_rewards="none",
        vllm_importance_sampling_mode=f"{level}_{mode}", vllm_importance_sampling_clip_min=bounds["min"],
        vllm_importance_sampling_clip_max=bounds["max"],
    )  # fmt: skip
    loss = PPO(kl=KL(coefficient=0.04), correction=ImportanceCorrection(mode=mode, level=level, **bounds))
    learner = learner_of(trainer.model, loss, reference=other_model())
    rng, advantages = np.random.default_rng(0), group_advantages(REWARDS, [0] * 4 + [1] * 4, "mean", "none")
    samples = learner.with_streams(answers(), [PROXIMAL, REFERENCE])
    samples = [
        replace(s, streams=s.streams | {
            ADVANTAGES: [float(a)] * len(s.sampled_ids),
            BEHAVIOUR: [p + float(rng.normal(0, 0.3)) for p in s.streams[PROXIMAL]],
        })
        for s, a in zip(samples, advantages, strict=True)
    ]  # fmt: skip
    trainer.use_vllm = True  # set later: nothing is sampled here, so no vLLM is needed
    batch = rolled_out(trainer, samples)
    for name, stream in (("old_per_token_logps", PROXIMAL), ("ref_per_token_logps", REFERENCE)):
        for theirs, s in zip(unpadded(batch[name], samples), samples, strict=True):
            assert theirs == pytest.approx(s.streams[stream], abs=1e-5)
    weights = batch["importance_sampling_ratio"]
    assert ((weights == 0) if mode == "mask" else (weights == 1.5) | (weights == 0.5)).any()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for p in trainer.model.parameters():
            p += 0.05 * torch.randn(p.shape, generator=generator)
    theirs = trainer._compute_loss(trainer.model, batch)
    expected = gradients_of(trainer.model, theirs)
    ours, found = learner.accumulate(samples)
    assert ours == pytest.approx(theirs.item(), abs=1e-6)
    assert 0 < found["clip_fraction"] < 1
    check_gradients(learner, expected)


LENGTH = 5
"""Tokens of a side of a pair where sides are equally long."""


@pytest.mark.parametrize(
    ("name", "loss", "equal", "scale"),
    [
        ("sigmoid", DPO(beta=0.3), False, 1.0),
        # the mean of an answer's log-ratio is its sum / n: (h / n - 1 / (2 beta))^2 = (h - 1 / (2 beta / n))^2 / n^2
        ("ipo", IPO(tau=0.3 / LENGTH), True, LENGTH**2),
    ],
)
def test_the_gradient_of_pairs_is_that_of_dpo_and_ipo(
    tmp_path: Path, name: str, loss: PairLoss, equal: bool, scale: float
):
    config = trl.DPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=4, beta=0.3, loss_type=[name], **COMMON
    )
    trainer = trl.DPOTrainer(
        tiny_model(VOCABULARY), other_model(), config,
        train_dataset=datasets.Dataset.from_list([{"prompt": "a", "chosen": "a a", "rejected": "a"}] * 4),
        processing_class=tokenizer(),
    )  # fmt: skip
    sides = answers()
    if equal:
        sides = [Sample(s.prompt_ids, (s.sampled_ids * 3)[:LENGTH], {ADVANTAGES: [0.0] * LENGTH}) for s in sides]
    chosen, rejected = sides[::2], sides[1::2]
    rows = [*chosen, *rejected]
    batch = {
        "input_ids": padded([s.prompt_ids + s.sampled_ids for s in rows]),
        "attention_mask": padded([[1] * (3 + len(s.sampled_ids)) for s in rows]),
        "completion_mask": padded([[0] * 3 + [1] * len(s.sampled_ids) for s in rows]),
    }
    theirs = trainer.compute_loss(trainer.model, batch)
    expected = gradients_of(trainer.model, theirs)
    learner = learner_of(trainer.model, loss, reference=trainer.ref_model)
    pairs = [s for n, two in enumerate(zip(chosen, rejected, strict=True)) for s in pair(*two, n)]
    pairs = learner.with_streams(pairs, loss.needs)
    learner.accumulate(loss.reweigh(pairs, learner.logprobs(pairs)))
    check_gradients(learner, expected, scale)


class Table(torch.nn.Module):
    """A language model whose answers are single tokens."""

    config = None

    def __init__(self, logits: np.ndarray) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self) -> Any:
        return SimpleNamespace(logits=self.logits.clone())


def test_a_step_of_nash_md_follows_the_natural_gradient_of_its_loss():
    """Both take the geometric mixture of policy and reference as the opponent; TRL's loss is summed over all answers,
    weighed by the policy."""
    reason = "TRL has Nash-MD up to 1.13.0"
    theirs = pytest.importorskip("trl.experimental.nash_md.nash_md_trainer", reason=reason, exc_type=ImportError)
    rng, share, problem = np.random.default_rng(0), 0.125, Duel(strength=0.25)
    reference, policy = log_softmax(rng.normal(size=(2, 12)))
    game = PreferenceGame(cyclic(rng, 12, 0.1), reference, problem.strength)

    opponent = theirs.GeometricMixtureWrapper(Table(policy), Table(reference), None, mixture_coef=share)().logits
    trainer: Any = object.__new__(theirs.NashMDTrainer)
    trainer._beta = problem.strength
    logits = torch.tensor(policy, requires_grad=True)
    logp_V, wins_V = logits.log_softmax(0), torch.tensor(game.wins(opponent.numpy()))
    for y, answer in enumerate(torch.eye(12, dtype=torch.bool)):
        loss = trainer._compute_losses(logp_V[None, answer], torch.tensor(reference)[None, answer], wins_V[answer])[0]
        (logp_V[y].exp().detach() * loss).backward(retain_graph=True)
    assert logits.grad is not None
    natural = -logits.grad.numpy() / np.exp(policy)  # the inverse of a softmax's Fisher matrix, up to a constant

    method = NashMD(rate=share / problem.strength)
    preferences = {"preferences": game.preferences, "reference": reference}
    after = method.step(problem, preferences | {"policy": policy, "queries": np.array(0.0)}, rng)["policy"]
    step = (after - policy) / method.rate
    np.testing.assert_allclose(step - step.mean(), natural - natural.mean(), atol=1e-10)
