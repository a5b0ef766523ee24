"""Several processes, one learner: what the ranks of a torchrun job share.

What always holds: with one process every function here is the identity; all ranks are given the same samples and take
a share of their rows; gradients are summed, never averaged, because the denominator of a loss is that of the whole
step; so the numbers are those of one process up to the order of sums. Who rolls out what is the trainer's business.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

T = TypeVar("T")

WAIT = timedelta(days=7)
"""Timeout of collectives on objects: the other processes may still play long episodes when one is done with its own,
and torch's half an hour would end the run. Where one of them ends, torchrun ends all. Collectives on tensors, to which
all come at about the same time, keep torch's timeout."""
_objects: Any = None
"""The process group of collectives on objects; None: torch's default group."""


@contextmanager
def joined() -> Iterator[None]:
    """Joins the processes that torchrun started, and leaves them at the end; alone where it did not."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl")  # the models may be on the CPU all the same
    else:
        dist.init_process_group("gloo")
    global _objects
    _objects = dist.new_group(backend="gloo", timeout=WAIT)
    try:
        yield
    finally:
        _objects = None
        dist.destroy_process_group()


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def balance(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Splits items into parts of about equal total size (greedy: the largest item first, to the lightest part); each
    part lists the numbers of its items in ascending order."""
    split: list[list[int]] = [[] for _ in range(parts)]
    load = [0] * parts
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        least = load.index(min(load))
        split[least].append(k)
        load[least] += sizes[k]
    return [sorted(part) for part in split]


def scatter(items: Sequence[T]) -> list[T]:
    """This rank's share of what all ranks have: every `world()`-th, from `rank()` on."""
    return list(items[rank() :: world()])


def gather(items: Sequence[T]) -> list[T]:
    """The items of all ranks on every rank, rank by rank. Of picklable things of ranks that trust each other."""
    if world() == 1:
        return list(items)
    parts: list[Any] = [None] * world()
    dist.all_gather_object(parts, list(items), group=_objects)
    return [item for part in parts for item in part]


def unscatter(share: Sequence[T]) -> list[T]:
    """The inverse of `scatter`: from each rank's share all items, in their first order."""
    parts = gather([list(share)])
    return [parts[k % len(parts)][k // len(parts)] for k in range(sum(map(len, parts)))]


def broadcast(make: Callable[[], T]) -> T:
    """What rank 0 makes, on every rank; the others wait for it. Of picklable things of ranks that trust each other."""
    if world() == 1:
        return make()
    box: list[Any] = [make() if rank() == 0 else None]
    dist.broadcast_object_list(box, group=_objects)
    return box[0]


def broadcast_tensors(tensors: Sequence[Tensor]) -> None:
    """Gives tensors of all ranks, in place, the values of rank 0's."""
    if world() > 1:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Sets the gradient of every parameter to the sum over ranks, in one flat buffer for each type.

    A parameter without a gradient on any rank stays without, so that the optimiser leaves it alone.
    """
    if world() == 1:
        return
    for dtype in sorted({p.dtype for p in parameters}, key=str):
        mine = [p for p in parameters if p.dtype == dtype]
        given = torch.tensor([p.grad is not None for p in mine], dtype=dtype, device=mine[0].device)
        flat = torch.cat([*((p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in mine), given])
        dist.all_reduce(flat)
        *sums, given = flat.split([*(p.numel() for p in mine), len(mine)])
        for p, total, some in zip(mine, sums, given.tolist(), strict=True):
            p.grad = total.view_as(p) if some else None


def full(tensor: Tensor) -> Tensor:
    """The complete tensor, on every rank; all ranks must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(value: Tensor, parameter: Tensor, whole: bool = False) -> Tensor:
    """A copy of a complete tensor, cut like a parameter (unless it is to be whole), on its device."""
    value = value.to(parameter.device, copy=True)
    if whole or not isinstance(parameter, DTensor):
        return value
    return distribute_tensor(value, parameter.device_mesh, parameter.placements)
