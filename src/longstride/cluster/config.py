"""What of a run goes where on a cluster, as data. It is no part of the recipe: a run may be resumed on other machines,
or on one, and its numbers are the same up to rounding. No torch, no Ray.
"""

from typing import Annotated

from pydantic import Field

from longstride.core.component import Component
from longstride.learner.config import Count

Share = Annotated[float, Field(ge=0)]


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
    worker_cpus: Share = 1.0
    """CPUs that Ray reserves for each."""
    replicas: Count = 1
    """Copies of the engine."""
    replica_cpus: Share = 1.0
    """CPUs that Ray reserves for each."""
    learner_ranks: Annotated[int, Field(ge=0)] = 0
    """Processes that train together; 0 trains in the process that was started."""
    learner_cpus: Share = 1.0
    """CPUs that Ray reserves for each."""
    gpus: Share | None = None
    """GPUs that Ray reserves for each replica and each learner rank. Left out: 1 where the cluster has any."""
    retries: Annotated[int, Field(ge=0)] = 3
    """How often a replica that died is started again, and a plan whose worker died is played anew."""
    start_seconds: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that actors have to be placed and to start."""
