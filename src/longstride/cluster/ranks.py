"""Learner ranks: actors that are joined by torch.distributed and take every step together.

What always holds is what `learner.parallel` says: the numbers are those of one process up to the order of sums. A rank
that dies ends the run: the others have lost a part of the step, and the last checkpoint is whole.
"""

import os
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from longstride.cluster.engine import last_line
from longstride.core.errors import RunError
from longstride.learner import parallel
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods.base import Sample
from longstride.methods.losses import Loss

GRACE = 10.0
"""Seconds after a rank's error in which the one that caused it must show itself."""


class Rank:
    """One learner of several. A Ray actor.

    Args:
        number: of this rank, from 0.
        world: how many there are.
    """

    def __init__(self, number: int, world: int) -> None:
        os.environ |= {"RANK": str(number), "WORLD_SIZE": str(world), "LOCAL_RANK": "0"}

    def address(self) -> tuple[str, int]:
        """Host and a free port, where the ranks can meet."""
        import ray

        with socket.socket() as s:
            s.bind(("", 0))
            return ray.util.get_node_ip_address(), s.getsockname()[1]

    def join(
        self,
        place: tuple[str, int],
        model: nn.Module,
        config: LearnerConfig,
        loss: Loss,
        reference: nn.Module | None,
        needs: frozenset[str],
        seed: int,
    ) -> None:
        """Meets the other ranks at a host and port, and makes the learner."""
        import ray

        os.environ |= {"MASTER_ADDR": place[0], "MASTER_PORT": str(place[1])}
        self._joined = parallel.joined()  # until the actor ends
        self._joined.__enter__()
        model = model.to("cuda" if ray.get_gpu_ids() else "cpu")
        self._learner = Learner(model, config, loss, reference, needs, seed)

    def update(self, samples: Sequence[Sample], rng: random.Random, loss: Loss) -> dict[str, Any]:
        """As `Learner.update`, by a loss that may be another one than before."""
        self._learner.loss = loss
        return self._learner.update(samples, rng)

    def move_reference(self, iteration: int, loss: Loss) -> None:
        """As `Learner.move_reference`, by the anchor of this loss."""
        self._learner.loss = loss
        self._learner.move_reference(iteration)

    def logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        """As `Learner.logprobs`; of rank 0 alone."""
        found = self._learner.logprobs(samples)
        return found if parallel.rank() == 0 else []

    def features(self, samples: Sequence[Sample]) -> Tensor:
        """As `Learner.features`; of rank 0 alone."""
        found = self._learner.features(samples)
        return found if parallel.rank() == 0 else found[:0]

    def weights(self) -> dict[str, Tensor]:
        """The weights of `Learner.full_model`, on the CPU; of rank 0 alone."""
        return self._mine(self._learner.full_model().state_dict())

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """As `Learner.state`, on the CPU; the tensors of rank 0 alone."""
        tensors, numbers = self._learner.state()
        return self._mine(tensors), numbers

    def load_state(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """As `Learner.load_state`."""
        self._learner.load_state(tensors, numbers)

    def _mine(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: t.detach().cpu() for name, t in tensors.items()} if parallel.rank() == 0 else {}


class Ranks:
    """All ranks as one, with what of a `Learner` a training loop uses.

    Args:
        ranks: handles of `Rank` actors, by number, not joined yet.
        model: where they start; it is given their weights whenever these are asked for.
        config: the learners' numbers.
        loss: what is minimised.
        reference, needs, seed: as of `Learner`.

    Raises:
        RunError: a rank died.
        ConfigError, ModelError: as `Learner`.
    """

    def __init__(
        self,
        ranks: Sequence[Any],
        model: nn.Module,
        config: LearnerConfig,
        loss: Loss,
        reference: nn.Module | None = None,
        needs: frozenset[str] = frozenset(),
        seed: int = 0,
    ) -> None:
        import ray

        self._ranks, self._model = list(ranks), model
        self.loss, self.device = loss, "cpu"
        place = ranks[0].address.remote()
        self._all("join", place, ray.put(model), config, loss, ray.put(reference), needs, seed)

    def update(
        self,
        samples: Sequence[Sample],
        rng: random.Random,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """As `Learner.update`, but that progress is reported once, at the end."""
        import ray

        metrics = self._all("update", ray.put(list(samples)), rng, self.loss)
        if progress is not None and metrics["steps"]:
            progress(metrics["steps"], metrics["steps"])
        return metrics

    def move_reference(self, iteration: int) -> None:
        """As `Learner.move_reference`."""
        self._all("move_reference", iteration, self.loss)

    def logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        """As `Learner.logprobs`."""
        import ray

        return self._all("logprobs", ray.put(list(samples)))

    def features(self, samples: Sequence[Sample]) -> Tensor:
        """As `Learner.features`."""
        import ray

        return self._all("features", ray.put(list(samples)))

    def full_model(self) -> nn.Module:
        """The policy as an ordinary module: the one that was given."""
        self._model.load_state_dict(self._all("weights"))
        return self._model

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """As `Learner.state`."""
        return self._all("state")

    def load_state(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """As `Learner.load_state`."""
        import ray

        self._all("load_state", ray.put(tensors), numbers)

    def _all(self, method: str, *args: Any) -> Any:
        """Calls a method of every rank; returns what rank 0 returned."""
        import ray
        from ray.exceptions import RayActorError, RayTaskError

        calls = left = [getattr(rank, method).remote(*args) for rank in self._ranks]
        dead: RayActorError | None = None
        failed: RayTaskError | None = None
        while left and dead is None:  # one that dies makes others fail, and either may be heard of first
            ready, left = ray.wait(left, timeout=GRACE if failed else None)
            if not ready:
                break
            try:
                ray.get(ready)
            except RayTaskError as e:
                failed = failed or e
            except RayActorError as e:
                dead = e
        if dead is not None:
            raise RunError(
                f"a learner rank is dead: {last_line(dead)}; the last checkpoint is whole: resume the run"
            ) from dead
        if failed is not None:
            raise failed.cause from failed
        return ray.get(calls[0])
