"""A network and its Adam as arrays: for experiments that keep all their state as NumPy's.

What always holds: `arrays` of what `loaded` and `adam` made of them are the same arrays, so training that is put away
after each iteration gives the numbers of training that is not.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

N = TypeVar("N", bound=nn.Module)
MOMENTS = {"mean": "exp_avg", "square": "exp_avg_sq"}
"""Our names of Adam's moments, and PyTorch's."""


def arrays(net: nn.Module, optimiser: torch.optim.Adam | None = None) -> dict[str, np.ndarray]:
    """`weights` [P], the moments `mean` and `square` [P] of Adam, and the `updates` that it has made; zeros without
    one."""
    weights = _flat(list(net.parameters()))
    if optimiser is None:
        return {"weights": weights, "updates": np.zeros(()), **{name: np.zeros_like(weights) for name in MOMENTS}}
    of = [optimiser.state[p] for p in net.parameters()]
    moments = {name: _flat([state[key] for state in of]) for name, key in MOMENTS.items()}
    return {"weights": weights, "updates": np.array(float(of[0]["step"])), **moments}


def loaded(net: N, kept: Mapping[str, np.ndarray]) -> N:
    """The network, with the weights that are kept."""
    vector_to_parameters(torch.from_numpy(kept["weights"].copy()), net.parameters())
    return net


def adam(net: nn.Module, kept: Mapping[str, np.ndarray], lr: float) -> torch.optim.Adam:
    """Adam (arXiv 1412.6980) for the network, with the moments that are kept."""
    optimiser, parameters = torch.optim.Adam(net.parameters(), lr=lr), list(net.parameters())
    sizes = [p.numel() for p in parameters]
    moments = {key: torch.from_numpy(kept[name].copy()).split(sizes) for name, key in MOMENTS.items()}
    for k, p in enumerate(parameters):
        step = torch.tensor(float(kept["updates"]))
        optimiser.state[p] = {"step": step, **{key: of[k].view_as(p).clone() for key, of in moments.items()}}
    return optimiser


def _flat(tensors: list[Tensor] | list[nn.Parameter]) -> np.ndarray:
    return parameters_to_vector(tensors).detach().numpy()
