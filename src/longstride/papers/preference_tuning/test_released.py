"""Losses of pairs beside the code of "Preference Fine-Tuning": values that `dpo_loss` of Asap7772/understanding-rlhf
(`bandit_experiment/dpo_utils.py`, commit 9d5844e) gives for a bandit of four answers. Its IPO aims at a margin of beta,
ours at 1 / (2 tau)."""

from itertools import combinations
from math import log

import numpy as np
import pytest
import torch
from by_hand import loss_of

from longstride.methods import Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, REFERENCE
from longstride.methods.preferences import DPO, IPO, PairLoss, pair

POLICY, START = torch.tensor([0.3, -0.6, 1.1, 0.2]), torch.tensor([-0.2, 0.4, 0.5, 0.9])
"""Logits."""
ANSWERS = [[(0, 0.1), (1, 0.9), (2, 0.4)], [(3, 0.6), (2, 0.35), (0, 0.8)]]
"""To two prompts, with their rewards: any two of a prompt are a pair."""


def sample(answer: int) -> Sample:
    reference = START.double().log_softmax(0)[answer].item()
    return Sample([0], [answer], {ADVANTAGES: [0.0], BEHAVIOUR: [log(0.5)], REFERENCE: [reference]})


@pytest.mark.parametrize(
    ("loss", "released"),
    [
        (DPO(beta=0.1), [0.0010399, -0.01795575, 0.01795615, -0.00104031]),
        (DPO(beta=2.0), [0.25657781, -0.6378028, 0.66378795, -0.28256296]),
        (IPO(tau=1 / (2 * 0.5)), [0.83333333, -1.36666667, 1.36666667, -0.83333333]),
        (IPO(tau=1 / (2 * 5.0)), [0.83333333, -4.36666667, 4.36666667, -0.83333333]),
    ],
)
def test_the_gradient_in_the_logits_is_the_released_one(loss: PairLoss, released: list[float]) -> None:
    ranked = [sorted(two, key=lambda a: -a[1]) for of in ANSWERS for two in combinations(of, 2)]
    pairs = [pair(sample(better), sample(worse), n) for n, ((better, _), (worse, _)) in enumerate(ranked)]
    samples = [s for two in pairs for s in two]
    logits = POLICY.double().requires_grad_()
    logps = [logits.log_softmax(0)[s.sampled_ids] for s in samples]
    weighed = loss.reweigh(samples, [of.tolist() for of in logps])
    (found,) = torch.autograd.grad(loss_of(weighed, logps, loss)[0], logits)
    np.testing.assert_allclose(found, released, atol=1e-7)
