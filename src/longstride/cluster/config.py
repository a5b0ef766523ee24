"""What of a run goes where on a cluster, as data. It is no part of the recipe: a run may be resumed on other machines,
or on one, and its numbers are the same up to rounding. No torch, no Ray.
"""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from longstride.core.component import Component
from longstride.core.implementation import implementation
from longstride.core.numbers import Count, CountOrZero, Seconds, Weight

if TYPE_CHECKING:
    from longstride.run.placement import Placed
    from longstride.run.recipe import Recipe


class ClusterConfig(Component):
    """How many actors there are, and what each of them reserves.

    Ray listens on the network, and whoever reaches it with its token runs code on every machine: keep a cluster in a
    network of its own, and start it with `RAY_AUTH_MODE=token`, as Ray does for `local` unless that is set otherwise.
    Learner ranks meet at a port that wants no token, like those of torchrun.
    """

    address: str = "local"
    """Where Ray's head listens (`HOST:PORT`), or `auto`: the cluster that this machine belongs to. `local` starts Ray
    on this machine alone, and ends it with the run."""
    workers: Count = 1
    """Processes that play episodes."""
    envs_per_worker: Count = 64
    """Episodes that are live at once in each; fewer where the task source has fewer at once."""
    worker_cpus: Weight = 1.0
    """CPUs that Ray reserves for each."""
    replicas: Count = 1
    """Copies of the engine."""
    replica_cpus: Weight = 1.0
    """CPUs that Ray reserves for each."""
    learner_ranks: CountOrZero = 0
    """Processes that train together; 0 trains in the process that was started."""
    learner_cpus: Weight = 1.0
    """CPUs that Ray reserves for each."""
    gpus: Weight | None = None
    """GPUs that Ray reserves for each replica and each learner rank. Left out: 1 where the cluster has any."""
    retries: CountOrZero = 3
    """How often a replica that died is started again, and a plan whose worker died is played anew."""
    start_seconds: Seconds = 300.0
    """Seconds that actors have to be placed and to start."""

    def place(self, recipe: "Recipe") -> AbstractContextManager["Placed"]:
        """As `run.placement.Placement`: see `cluster.cluster.Cluster`."""
        return implementation(ClusterConfig)(self, recipe)
