"""A model cut among the ranks of a torchrun job (FSDP2), and made whole again.

What always holds: gradients are sums over ranks, as in `learner.parallel`; all ranks make the same calls.
"""

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from longstride.learner.parallel import full, world


def shard(model: nn.Module, layers: Sequence[nn.Module]) -> None:
    """Cuts parameters among the ranks, in place (FSDP2): those of each layer are collected when it runs, the rest while
    `model` runs. Gradients are sums."""
    mesh = init_device_mesh(next(model.parameters()).device.type, (world(),))
    for module in (*layers, model):
        sharded = fully_shard(module, mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)
        sharded.set_force_sum_reduction_for_comms(True)  # gloo knows no scaled sum


def skeleton(module: nn.Module) -> nn.Module:
    """A copy of a module without the memory of its parameters."""
    empty = {id(p): nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad) for p in module.parameters()}
    return copy.deepcopy(module, empty)


def filled(skeleton: nn.Module, parameters: dict[str, nn.Parameter]) -> nn.Module:
    """A copy of a skeleton with complete parameters, by name; all ranks must ask for it."""
    given = {
        id(p): nn.Parameter(full(parameters[name].detach()), p.requires_grad) for name, p in skeleton.named_parameters()
    }
    return copy.deepcopy(skeleton, given)
