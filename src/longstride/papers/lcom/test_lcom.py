"""LCOM: what is climbed is latent, and exact where encoder, decoder and model are linear."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from linear_designs import PROBLEM, Linear, weight
from torch import nn

from longstride.papers.lcom.exact import LCOM, RECIPE, LatentAscent
from longstride.run.folder import read_rows
from longstride.run.listener import Silent


def test_the_loss_is_comss_on_latent_vectors_and_the_reconstruction_under_noise() -> None:
    nets = nn.ModuleDict(
        {
            "value": Linear(w := weight(2, 1)),
            "encoder": Linear(e := weight(3, 2)),
            "decoder": Linear(d := weight(2, 3)),
        }
    )
    x, y = weight(5, 3), weight(5)
    method = LCOM(rate=0.1, steps=4, spread=0.3, prior=0.2)
    z = x @ e
    noisy = z + 0.3 * torch.from_numpy(np.random.default_rng(7).standard_normal(z.shape, np.float32))
    rebuilt = (noisy @ d - x).square().mean() + 0.2 * z.square().mean()
    fitted = ((z @ w)[:, 0] - y).square().mean() + 4 * 0.1 * 2**0.5 * w.square().sum()
    state = {"log_alpha": np.zeros(())}
    loss = method.loss(nets, x, y, state, np.random.default_rng(7))
    assert loss.item() == pytest.approx(float(fitted + rebuilt), abs=1e-6)
    loss.backward()
    assert nets["encoder"].weight.grad is not None
    by_hand = weight(3, 2).requires_grad_()  # the fit of the values gives the encoder no gradient
    again = x @ by_hand
    kept = (again + (noisy - z)) @ d - x
    (kept.square().mean() + 0.2 * again.square().mean()).backward()
    assert torch.allclose(nets["encoder"].weight.grad, by_hand.grad, atol=1e-6)  # pyright: ignore[reportArgumentType]


def test_designs_are_encoded_when_the_climb_begins_and_decoded_to_be_measured() -> None:
    method = LatentAscent(fit=1, updates=2, latent=5)
    state = method.start(PROBLEM, np.random.default_rng(0))
    fitted = method.step(PROBLEM, state, np.random.default_rng(1))
    assert fitted["designs"].shape == (36, 16) and np.array_equal(fitted["designs"], state["designs"])
    assert np.array_equal(method.solution(PROBLEM, fitted)["designs"], state["designs"])
    climbed = method.step(PROBLEM, fitted, np.random.default_rng(2))
    assert climbed["point"].shape == (36, 5)
    assert method.solution(PROBLEM, climbed)["designs"].shape == (36, 16)
    twice = method.step(PROBLEM, climbed, np.random.default_rng(3))
    nets = method._nets(PROBLEM, climbed)  # pyright: ignore[reportPrivateUsage]
    once_more = method.climb(nets, torch.from_numpy(climbed["point"]), 1)
    assert np.allclose(twice["point"], once_more, atol=1e-6)


class StopsAfter(Silent):
    """Stops a run when it has measured an iteration."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def __call__(self, row: dict[str, Any]) -> None:
        if row["iteration"] > self.iteration:  # what came before is kept
            raise KeyboardInterrupt


@pytest.mark.parametrize("iteration", [1, 3])
def test_a_run_that_was_stopped_before_or_in_its_climb_ends_like_one_that_was_not(
    tmp_path: Path, iteration: int
) -> None:
    run = RECIPE.replace(problem=PROBLEM, method={"fit": 2, "updates": 1, "latent": 5}, iterations=5, every=1)
    with pytest.raises(KeyboardInterrupt):
        run.train(tmp_path / "stopped", StopsAfter(iteration))
    run.train(tmp_path / "stopped", Silent(), resume=True)
    run.train(tmp_path / "whole", Silent())
    stopped, whole = (
        [row["measures"] for row in read_rows(tmp_path / of / "metrics.jsonl")] for of in ("stopped", "whole")
    )
    assert len(whole) == 6 and stopped == whole
