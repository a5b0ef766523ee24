"""Policy updates through the learner: expected gradients against those of enumerable problems, independence of how a
step is cut, tokens that were not sampled, and an independent implementation of the same losses."""

import itertools
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.core.budget import Budget, StopReason
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.tabular import bandit, random_mdp
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import CISPO, GAE, GSPO, PPO, Constant, Correction, GroupRelative, Mean, Reinforce
from longstride.methods.base import Credit, Sample
from longstride.methods.losses import Loss

OPEN: dict[str, Any] = {"low": 1.0, "high": 1e6}
"""A clip that never binds."""
LOSSES = [
    Reinforce(), PPO(), PPO(high=0.28, dual=3.0), GSPO(), CISPO(), PPO(correction=Correction()),
    GSPO(correction=Correction(level="sequence")), CISPO(correction=Correction(beyond="mask", cap=5.0)),
]  # fmt: skip


class Table(nn.Module):
    """Logits that depend on the last token alone: a tabular softmax policy whose states are token ids."""

    def __init__(self, logits: np.ndarray) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits, dtype=torch.float32))

    def forward(self, input_ids: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=F.embedding(input_ids, self.logits))

    def set_attn_implementation(self, kind: str) -> None:
        """It has none."""


def learner_of(logits: np.ndarray, loss: Loss, **numbers) -> Learner:
    return Learner(Table(logits), LearnerConfig(dtype="float32", **numbers), loss)


def gradient_of(logits: np.ndarray, samples: list[Sample], loss: Loss, **numbers) -> np.ndarray:
    """The direction in which a step goes up."""
    learner = learner_of(logits, loss, **numbers)
    learner.accumulate(samples)
    found = learner.model.logits.grad
    return np.zeros_like(logits) if found is None else -found.numpy()  # None where no token has a weight


def log_policy(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def logps_of(logits: np.ndarray, s: Sample) -> list[float]:
    """Log-probabilities of a sample's tokens under a table."""
    return [float(log_policy(logits)[b, t]) for b, t in itertools.pairwise([s.prompt_ids[-1], *s.sampled_ids])]


def drifted(seed: int = 0, vocabulary: int = 6, count: int = 12) -> tuple[np.ndarray, list[Sample]]:
    """A policy, and samples of an older one with an advantage each; some prompts go on where a sample ended."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(vocabulary, vocabulary))
    samples = []
    for n in range(count):
        ids = rng.integers(vocabulary, size=rng.integers(1, 4)).tolist()
        for _ in range(rng.integers(1, 4)):
            said = rng.integers(vocabulary, size=rng.integers(1, 6)).tolist()
            made = Sample(ids, said, [float(rng.normal())] * len(said), [0.0] * len(said), n, n // 3)
            made.logprobs = (logps_of(logits, made) + rng.normal(scale=0.3, size=len(said))).tolist()
            made.proximal = (made.logprobs + rng.normal(scale=0.1, size=len(said))).tolist()
            samples.append(made)
            ids = ids + said + rng.integers(vocabulary, size=2).tolist()
    return logits, samples


WHOLE = [Mean(over=o) for o in ("token", "sequence", "episode", "prompt")] + [Constant(length=9, per="episode")]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("aggregation", WHOLE)
def test_the_gradient_does_not_depend_on_micro_batches_or_order(loss, aggregation):
    logits, samples = drifted()
    loss = loss.model_copy(update={"aggregation": aggregation})
    reference = gradient_of(logits, samples, loss)
    assert np.abs(reference).max() > 1e-3
    for other, numbers in ((samples, {"micro_tokens": 1}), (samples, {"micro_tokens": 40}), (samples[::-1], {})):
        np.testing.assert_allclose(gradient_of(logits, other, loss, **numbers), reference, atol=1e-6)


@pytest.mark.parametrize("aggregation", WHOLE)
def test_a_tokens_advantage_is_multiplied_by_its_share_of_the_step(aggregation):
    logits, samples = drifted()
    shares, denominator = aggregation(samples)
    scaled = [
        replace(s, weights=[w * share * len(samples) / denominator for w in s.weights])
        for s, share in zip(samples, shares, strict=True)
    ]
    found = gradient_of(logits, samples, PPO(aggregation=aggregation))
    np.testing.assert_allclose(found, gradient_of(logits, scaled, PPO(aggregation=Constant())), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_was_injected_has_no_gradient(loss):
    """0 1 | 2 3 | 4 5 | 6: after 3 and 4 stands what the policy did not say."""
    logits = np.random.default_rng(0).normal(size=(7, 7))
    old = [-1.0, -2.0]
    turns = [
        Sample([0, 1], [2, 3], [1.0, 1.0], old, proximal=old),
        Sample([0, 1, 2, 3, 4, 5], [6], [-1.0], [-1.0], turn=1, proximal=[-1.0]),
    ]
    loss = loss.model_copy(update={"low": 1.0, "high": 99.0} if isinstance(loss, PPO | GSPO) else {})
    found = np.abs(gradient_of(logits, turns, loss)).sum(1)
    assert [bool(row) for row in found] == [False, True, True, False, False, True, False]


def paths_of(seed: int = 18):
    rng = np.random.default_rng(seed)
    problem, logits = random_mdp(rng, 3, 3, 2, stochastic=False), rng.normal(size=(3, 3))
    return problem, logits, list(problem.trajectories(logits))


def trajectory(states, actions, rewards, logp: np.ndarray, ordinal: int = 0) -> Trajectory:
    turns = [
        Turn([s], [a], [float(logp[s, a])], [0], f"state {s}", "", "go", reward=float(r))
        for s, a, r in zip(states, actions, rewards, strict=True)
    ]
    task = Task(id="t", source="s", goal="g", start="s")
    return Trajectory(task, ordinal, 0, Budget(), turns, StopReason.ENV_ENDED, reward=float(sum(rewards)))


@pytest.mark.parametrize("loss", [Reinforce(), PPO(), GSPO(), CISPO()])
@pytest.mark.parametrize("credit", [GroupRelative(centre="leave_one_out", scale="none"), GAE(values="group")])
def test_on_policy_the_expected_step_is_the_exact_gradient_per_episode(loss: Loss, credit: Credit):
    problem, logits, paths = paths_of()
    loss = loss.model_copy(update={"aggregation": Constant(per="episode")})
    total = np.zeros_like(logits)
    for pair in itertools.product(paths, repeat=2):
        episodes = [trajectory(p.states, p.actions, p.rewards, log_policy(logits), n) for n, p in enumerate(pair)]
        total += pair[0].probability * pair[1].probability * gradient_of(logits, credit(episodes), loss)
    np.testing.assert_allclose(total, problem.gradient(logits), atol=1e-5)


def test_a_mean_over_tokens_follows_the_return_per_token():
    """One episode a step: the random denominator divides its return by its length."""
    problem, logits, paths = paths_of()
    credit, total, formula = GroupRelative(centre="none", scale="none"), np.zeros_like(logits), np.zeros_like(logits)
    for p in paths:
        samples = credit([trajectory(p.states, p.actions, p.rewards, log_policy(logits))])
        total += p.probability * gradient_of(logits, samples, PPO(aggregation=Mean(over="token")))
        formula += p.probability * sum(p.rewards) / len(p.actions) * problem.score(logits, p)
    np.testing.assert_allclose(total, formula, atol=1e-5)
    assert not np.allclose(total, problem.gradient(logits), atol=1e-2)


ARMS = np.array([1.0, 0.0, 0.5, -0.2])


def off_policy(loss: Loss) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The expected step on a bandit whose arms an older policy drew; that policy, this one, its scores [arm, arm]."""
    rng = np.random.default_rng(2)
    now, old = rng.normal(size=(1, 4)), rng.normal(size=(1, 4))
    middle, total = log_policy(rng.normal(size=(1, 4))), np.zeros(4)
    for arm, reward in enumerate(ARMS):
        seen = Sample([0], [arm], [float(reward)], [float(log_policy(old)[0, arm])], proximal=[float(middle[0, arm])])
        table = np.concatenate([now, np.zeros((3, 4))])  # rows of the other ids are never asked
        total += np.exp(log_policy(old)[0, arm]) * gradient_of(table, [seen], loss)[0]
    pi = np.exp(log_policy(now)[0])
    return total, np.exp(log_policy(old)[0]), pi, np.eye(4) - pi


@pytest.mark.parametrize(
    "loss",
    [
        PPO(**OPEN),
        GSPO(**OPEN),
        CISPO(cap=1e6),
        PPO(**OPEN, correction=Correction(cap=1e6)),
        CISPO(cap=1e6, correction=Correction(cap=1e6, level="sequence")),
    ],
)
def test_off_policy_an_unclipped_ratio_gives_the_exact_gradient_of_one_token(loss):
    found, _, pi, score = off_policy(loss)
    np.testing.assert_allclose(found, bandit(ARMS.tolist()).gradient(np.log(pi)[None])[0], atol=1e-6)
    np.testing.assert_allclose(found, (pi * ARMS) @ score, atol=1e-6)


def test_off_policy_the_bias_is_what_was_capped_and_without_a_ratio_all_of_it():
    found, old, pi, score = off_policy(CISPO(cap=1.2))
    assert (pi > 1.2 * old).any() and (pi < 1.2 * old).any()
    np.testing.assert_allclose(found, (np.minimum(pi, 1.2 * old) * ARMS) @ score, atol=1e-6)
    found, old, pi, score = off_policy(Reinforce())
    np.testing.assert_allclose(found, (old * ARMS) @ score, atol=1e-6)


def test_off_policy_gspo_weighs_a_sequence_by_its_geometric_mean():
    """Two independent draws in a row: the weight of a pair is the root of the product of its ratios."""
    rng = np.random.default_rng(2)
    now, old = (log_policy(rng.normal(size=(2, 2))) for _ in range(2))
    reward, found, formula = np.array([[1.0, 0.2], [-0.5, 0.0]]), np.zeros((2, 2)), np.zeros((2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        logps = [old[0, a], old[a, b]]
        p, r = np.exp(sum(logps)), reward[a, b]
        seen = Sample([0], [a, b], [r, r], [float(x) for x in logps])
        found += p * gradient_of(now, [seen], GSPO(**OPEN, aggregation=Constant()))
        s = np.exp((now[0, a] + now[a, b] - sum(logps)) / 2)
        for state, action in ((0, a), (a, b)):
            formula[state] += p * s * r * (np.eye(2)[action] - np.exp(now[state]))
    np.testing.assert_allclose(found, formula, atol=1e-6)


def test_an_update_remembers_where_it_started():
    """With a correction every step of an update is taken against the weights before the first."""
    logits, samples = drifted()
    samples = [replace(s, proximal=[], weights=[0.0, *s.weights[1:]]) for s in samples]  # alignment despite a 0
    numbers = {"lr": 0.1, "warmup_steps": 0, "batch_samples": 100, "epochs": 2}
    one, other = (learner_of(logits, PPO(correction=Correction()), **numbers) for _ in range(2))
    out = one.update(samples, random.Random(0))
    by_hand = [replace(s, proximal=logps_of(logits, s)) for s in samples]
    assert other.step(by_hand)["ratio_max"] == pytest.approx(1, abs=1e-5)
    assert other.step(by_hand)["ratio_max"] == pytest.approx(out["ratio_max"], abs=1e-5)
    torch.testing.assert_close(one.model.logits, other.model.logits)
    assert all(not s.proximal for s in samples)


def test_statistics_of_the_ratio_are_those_of_all_tokens_of_the_step():
    for seed, micro_tokens in itertools.product((0, 1, 2), (1, 10_000)):
        logits, samples = drifted(seed)
        found = learner_of(logits, PPO(), micro_tokens=micro_tokens).accumulate(samples)[1]
        now = np.concatenate([logps_of(logits, s) for s in samples])
        log_ratio = now - np.concatenate([s.logprobs for s in samples])
        w = np.concatenate([s.weights for s in samples])
        clipped = np.where(w > 0, log_ratio > np.log(1.2), log_ratio < np.log(0.8))
        assert 0 < clipped.mean() < 1
        assert found == pytest.approx({
            "tokens": len(w), "clip_fraction": clipped.mean(), "ratio_max": np.exp(log_ratio.max()),
            "approx_kl": (np.exp(log_ratio) - 1 - log_ratio).mean(),
        }, abs=1e-5)  # fmt: skip
    assert learner_of(logits, Reinforce()).accumulate(samples)[1].keys() == {"tokens"}


@pytest.mark.parametrize(
    ("credit", "loss"),
    [
        (GroupRelative(), PPO(aggregation=Mean(over="episode"))),
        (GroupRelative(scale="none"), PPO(aggregation=Constant(per="episode"))),
        (GroupRelative(centre="leave_one_out", scale="none"), Reinforce()),
        (GAE(values="group", whiten=True), PPO(dual=3.0)),
        (GroupRelative(mixed_only=True), PPO(high=0.28)),
        (GroupRelative(scale="batch_std"), CISPO(aggregation=Mean(over="prompt"))),
        (GroupRelative(), GSPO(low=0.2, high=0.2, correction=Correction())),
    ],
)
def test_a_bandit_is_learnt(credit: Credit, loss: Loss):
    problem, rng = bandit([0.0, 0.0, 1.0, 0.0, 0.5]), np.random.default_rng(0)
    learner = learner_of(np.zeros((5, 5)), loss, lr=0.1, warmup_steps=0, batch_samples=32, epochs=2)
    for iteration in range(25):
        logits = learner.model.logits.detach().double().numpy()[:1]
        episodes = [
            trajectory(p.states, p.actions, p.rewards, log_policy(logits), n)
            for n, p in enumerate(problem.sample(logits, rng, 32))
        ]
        for n, t in enumerate(episodes):
            t.group = n // 8
        learner.update(credit(episodes), random.Random(iteration))
    logits = learner.model.logits.detach().double().numpy()[:1]
    assert problem.expected_return(logits) > 0.9  # 0.3 at the start


@pytest.fixture
def peer(tmp_path):
    """TRL's trainer over a tiny model, and samples: eight answers of two prompts, of 2 to 9 tokens."""
    trl = pytest.importorskip("trl", reason="parity with TRL's GRPO loss needs `trl` (pip install trl)")
    datasets = pytest.importorskip("datasets")  # TRL brings it
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    def make(**choices):
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                num_key_value_heads=2, max_position_embeddings=64,
            )
        ).eval()  # fmt: skip
        words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="a"))
        config = trl.GRPOConfig(
            output_dir=str(tmp_path), use_cpu=True, report_to=[], bf16=False, gradient_checkpointing=False,
            per_device_train_batch_size=8, num_generations=4, max_completion_length=16, beta=0.0, **choices,
        )  # fmt: skip
        return trl.GRPOTrainer(
            model, lambda completions, **_: [0.0] * len(completions), config,
            datasets.Dataset.from_list([{"prompt": "a"}] * 8),
            processing_class=PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>"),
        )  # fmt: skip

    rng = np.random.default_rng(0)
    samples = []
    for n in range(8):
        size = 2 + n
        ids, old = rng.integers(2, 20, size=size).tolist(), rng.normal(-3.0, 0.5, size=size).tolist()
        samples.append(Sample([2, 3 + n // 4, 5], ids, [float(rng.normal())] * size, old, n, n // 4))
    return make, samples


@pytest.mark.parametrize(
    ("loss", "choices"),
    [
        (PPO(aggregation=Mean(over="episode")), {"loss_type": "grpo"}),
        (PPO(high=0.28), {"loss_type": "dapo", "epsilon_high": 0.28}),
        (PPO(dual=1.5), {"loss_type": "bnpo", "delta": 1.5}),
        (PPO(aggregation=Constant(length=16, per="episode")), {"loss_type": "dr_grpo"}),
        (CISPO(cap=1.1), {"loss_type": "cispo", "epsilon_high": 1.1}),
        (
            GSPO(low=0.1, high=0.2),
            {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "epsilon_high": 0.2},
        ),
    ],
)
def test_loss_and_gradient_are_those_of_trl_on_the_same_batch(peer, loss, choices):
    make, samples = peer
    trainer = make(**choices)
    longest = max(len(s.sampled_ids) for s in samples)

    def padded(rows, fill):
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])

    batch = {
        "prompt_ids": torch.tensor([s.prompt_ids for s in samples]),
        "prompt_mask": torch.ones(8, 3, dtype=torch.long),
        "completion_ids": padded([s.sampled_ids for s in samples], 0),
        "completion_mask": padded([[1] * len(s.sampled_ids) for s in samples], 0),
        "advantages": torch.tensor([s.weights[0] for s in samples]),
        "old_per_token_logps": padded([s.logprobs for s in samples], 0.0),
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
