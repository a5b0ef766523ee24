"""IOM with networks: both players have their own gradient, and invariance takes away what is overrated."""

import numpy as np
import pytest
import torch

from longstride.design import DesignRecipe, FileDesigns
from longstride.design.recipe import ModelFit
from longstride.models.mlp import Trunk
from longstride.papers.iom.method import InvariantModel, distance_of_means, mistaken
from longstride.run.folder import read_rows

SMALL = Trunk(width=8, depth=1, norm=False, activation="relu")
X, Y = (torch.randn(*shape, generator=torch.Generator().manual_seed(1)) for shape in ((6, 3), (6,)))


def grads(loss: torch.Tensor, net: torch.nn.Module) -> list[torch.Tensor]:
    found = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True, allow_unused=True)
    return [torch.zeros(1) if g is None else g for g in found]


def test_the_discriminator_learns_and_the_features_learn_against_it() -> None:
    model = InvariantModel(trunk=SMALL, features=4, weight=3.0, steps=2, rate=0.5)
    nets = model.nets(3, torch.Generator().manual_seed(0))
    loss, said = model.loss(nets, X, Y, torch.Generator())
    net, climbed = nets["discriminator"], model.climbed(nets, X, 2)
    data, found = model.phi(nets, X), model.phi(nets, climbed)
    by_hand = ((1 - net(data)[0]).square().mean() + net(found)[0].square().mean()) / 2
    assert float(said["mistaken"]) == pytest.approx(by_hand.item())
    assert torch.allclose(data.norm(dim=1), torch.ones(6))
    for mine, other in zip(grads(loss, net), grads(by_hand, net), strict=True):
        assert torch.allclose(mine, other, atol=1e-6)  # it minimises its mistakes
    fitted = (model.predict(nets, X) - Y).square().mean()
    of_found = net(found)[0].square().mean() / 2  # what the data look like is held, as released
    for mine, other in zip(grads(loss, nets["features"]), grads(fitted - 3 * of_found, nets["features"]), strict=True):
        assert torch.allclose(mine, other, atol=1e-6)
    groups = model.groups(nets)
    assert [group["lr"] for group in groups] == [3e-4, 1e-3] and groups[1]["betas"] == (0.5, 0.999)
    assert sorted(id(p) for group in groups for p in group["params"]) == sorted(map(id, nets.parameters()))


def test_a_discriminator_that_cannot_tell_is_mistaken_by_a_quarter() -> None:
    net = SMALL.make(4, 1, torch.Generator().manual_seed(0))
    with torch.no_grad():
        net.weights[-1].zero_()
        net.biases[-1].fill_(0.5)
    assert float(mistaken(net, torch.rand(5, 4), torch.rand(5, 4), frozen=False)) == pytest.approx(0.25)


def test_the_distance_of_means_is_from_the_mean_of_the_data() -> None:
    data, found = torch.tensor([[0.0, 2.0], [2.0, 2.0]]), torch.tensor([[1.0, 4.0], [3.0, 2.0]])
    assert float(distance_of_means(data, found)) == pytest.approx((4 + 4) / 4)


@pytest.mark.parametrize("distance", ["discriminator", "means"])
def test_invariance_lowers_what_is_promised_on_designs_of_the_tests_own(distance: str, tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(120, 4))
    np.savez(tmp_path / "mine.npz", designs=x, scores=x[:, 0])

    def promised(weight: float) -> float:
        model = InvariantModel(trunk=SMALL, features=8, lr=1e-2, weight=weight, distance=distance, steps=5, rate=0.3)  # pyright: ignore[reportArgumentType]
        folder = tmp_path / f"{weight}"
        tasks, fit = FileDesigns(data=str(tmp_path / "mine.npz")), ModelFit(epochs=10, batch=30)
        DesignRecipe(name="tiny", tasks=tasks, model=model, fit=fit, iterations=4, every=4).train(folder)
        with np.load(folder / "designs.npz") as found:
            assert all(("distance" in row) == (distance == "means") for row in read_rows(folder / "metrics.jsonl")[:-2])
            return float(found["predicted"].mean())

    assert promised(100.0) < promised(0.0) - 0.1
