"""LCOM with networks: vectors are climbed, and designs come back in the form of the user's file."""

from pathlib import Path

import numpy as np
import pytest
import torch

from longstride.design import DesignRecipe, FileDesigns
from longstride.design.recipe import ModelFit
from longstride.models.mlp import Trunk
from longstride.papers.lcom.method import LatentConservativeModel, LatentModel, rebuilding

SMALL = Trunk(width=16, depth=1, norm=False, activation="relu")


def test_the_loss_is_comss_on_vectors_and_the_rebuilding_and_the_fit_leaves_the_encoder_alone() -> None:
    model = LatentConservativeModel(trunk=SMALL, latent=2, spread=0.3, prior=0.2, steps=3)
    nets = model.nets(3, torch.Generator().manual_seed(0))
    x, y = torch.randn(5, 3), torch.randn(5)
    loss, said = model.loss(nets, x, y, torch.Generator().manual_seed(7))
    z = model.encode(nets, x)
    noise = 0.3 * torch.randn(5, 2, generator=torch.Generator().manual_seed(7))
    rebuilt = ((model.decode(nets, z + noise) - x) ** 2).mean() + 0.2 * (z**2).mean()
    gap = (model.predict(nets, model.climbed(nets, z, 3)) - model.predict(nets, z)).mean()
    fitted = ((model.predict(nets, z) - y) ** 2).mean() + gap + (0.5 - gap)  # alpha is 1
    assert loss.item() == pytest.approx((fitted + rebuilt).item(), abs=1e-5)
    assert float(said["rebuilding"]) == pytest.approx(rebuilt.item(), abs=1e-6)
    encoder = list(nets["encoder"].parameters())
    for mine, other in zip(torch.autograd.grad(loss, encoder), torch.autograd.grad(rebuilt, encoder), strict=True):
        assert torch.allclose(mine, other, atol=1e-6)
    assert float(rebuilding(lambda p: p, x[:, :2], 0 * x[:, :2], x[:, :2], 0.0)) == 0
    assert {"log_alpha" in str(dict(nets.named_parameters()).keys()), len(model.groups(nets)) == 2} == {True}
    plain = LatentModel(trunk=SMALL, latent=2)
    assert len(plain.groups(plain.nets(3, torch.Generator()))) == 1


def test_designs_of_words_of_the_tests_own_are_encoded_climbed_and_decoded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.choice(["red", "green", "blue"], 3) for _ in range(100)]
    lines = [",".join([*row, str(sum(word == "red" for word in row))]) for row in rows]
    (tmp_path / "mine.csv").write_text("\n".join(["roof,door,wall,score", *lines]))
    tasks, fit = FileDesigns(data=str(tmp_path / "mine.csv")), ModelFit(epochs=30, batch=25)
    model = LatentConservativeModel(trunk=SMALL, latent=6, lr=1e-2, steps=3, rate=0.2)
    recipe = DesignRecipe(name="tiny", tasks=tasks, model=model, fit=fit, iterations=10, every=10, proposals=30)
    recipe.train(tmp_path / "run")
    head, *found = (tmp_path / "run" / "designs.csv").read_text().splitlines()
    proposed = [word for line in found for word in line.split(",")[:3]]
    assert head == "roof,door,wall,predicted,true" and set(proposed) <= {"red", "green", "blue"}
    assert proposed.count("red") / len(proposed) > 0.6
