"""A run on a cluster: who of it is a Ray actor, and how they are started and ended.

What always holds: run folder, replay, credit, checkpoints and the evaluations' environments are in the process that was
started; engine replicas, workers and learner ranks are actors, and none of them is left when the cluster is closed.
Replicas and ranks have a placement group of Ray: room for all of them, on as few machines as they fit, or for none, so
that two runs never wait for each other's cards. Workers are spread over what there is.
Models and code are passed by pickle, so every machine needs the same packages, and all trust each other.
"""

import logging
import os
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self, cast

from torch import nn

from longstride.cluster.config import ClusterConfig
from longstride.cluster.engine import RemoteEngine, Replica, WeightStore, last_line, result
from longstride.cluster.last_word import LastWord
from longstride.cluster.pool import ClusterPool, Worker
from longstride.cluster.ranks import Rank, Ranks
from longstride.core.errors import ConfigError, MissingExtra
from longstride.core.implementation import implements
from longstride.engines.config import VLLM, Local
from longstride.learner import parallel
from longstride.learner.learner import Learner
from longstride.models.load import Policy
from longstride.rollout.players import Player
from longstride.run.recipe import Recipe

_serials = count()
"""Of stores of weights: names within the job."""


@implements(ClusterConfig)
class Cluster:
    """Engine, learner and pool of a recipe on a Ray cluster. A context manager: it connects to Ray, unless the process
    is connected already, and ends its actors.

    Args:
        config: what goes where.
        recipe: what is run.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: the recipe's engine is a server, or sleeps; it names a GPU, or other models speak in its episodes;
            the process is one of several already; there is no cluster at the address.
    """

    def __init__(self, config: ClusterConfig, recipe: Recipe) -> None:
        try:
            import ray  # noqa: F401
        except ImportError as e:
            raise MissingExtra("Ray is needed for a cluster; pip install 'longstride[ray]'") from e
        if not isinstance(recipe.engine, Local | VLLM):
            raise ConfigError(
                f"a cluster's replicas are engines of its own, and engine.type is {recipe.engine.type_name()!r}; set "
                "engine.type=local or vllm, or train without --cluster"
            )
        if isinstance(recipe.engine, VLLM) and recipe.engine.sleep:
            raise ConfigError("a cluster's replicas share no card with the learner: leave engine.sleep out")
        if recipe.device not in ("auto", "cpu"):
            raise ConfigError(
                f"a cluster's GPUs are shared out by Ray among replicas and learner_ranks, and device is "
                f"{recipe.device!r}: set device=cpu for this process"
            )
        if recipe.companions:
            raise ConfigError(f"a cluster's workers have one policy; {recipe.name} has companions: leave out --cluster")
        if parallel.world() > 1:
            raise ConfigError(
                "a cluster starts its learner ranks itself: set learner_ranks, and start one process without torchrun"
            )
        self.config, self.recipe = config, recipe
        self._slots = min(config.envs_per_worker, recipe.tasks.at_once)
        self._actors: list[Any] = []
        self._group: Any = None
        """Ray's placement group: the replicas' places, then the learner ranks'."""
        self._leaves = False
        """Whether Ray was started, or connected to, here."""

    def __enter__(self) -> Self:
        import ray

        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            dashboard = False if self.config.address == "local" else None
            try:
                ray.init(
                    self.config.address, include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR
                )
            except ConnectionError as e:
                raise ConfigError(
                    f"no Ray cluster at {self.config.address!r} ({last_line(e)}); start one with `ray start --head`, "
                    "or set address to 'local'"
                ) from e
            self._leaves = True
        given, any_there = self.config.gpus, ray.cluster_resources().get("GPU", 0) > 0
        self._gpus = float(any_there) if given is None else given
        self._last_word = LastWord().__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        import ray

        for actor in reversed(self._actors):  # clients before those whom they ask
            ray.kill(actor)
        if self._group is not None:
            ray.util.remove_placement_group(self._group)
        if self._leaves:
            ray.shutdown()
        self._last_word.__exit__(kind, error, tb)

    def engine(self, policy: Policy, version: int) -> RemoteEngine:
        """An engine over replicas that sample from copies of the policy's weights, which are number `version`.

        Raises:
            ConfigError: the cluster lacks the CPUs or GPUs for the replicas.
        """
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        config, recipe = self.config, self.recipe
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        parts = ray.put((policy.name, policy.model, policy.tokenizer))
        self._store = f"weights-{next(_serials)}"
        self._start(WeightStore, [parts], version, name=self._store, scheduling_strategy=here)
        self._tokenizer = ray.put(policy.tokenizer)
        samplings = list(dict.fromkeys([recipe.sampling, recipe.evaluation.sampling or recipe.sampling]))
        clients = config.workers * self._slots + recipe.tasks.at_once  # evaluations have the last of them
        options = {"max_restarts": config.retries, "max_task_retries": -1, "max_concurrency": 2 * clients}
        args = recipe.engine, samplings, self._store
        self._replicas = [
            self._start(Replica, *args, **self._place(n, config.replica_cpus), **options)
            for n in range(config.replicas)
        ]
        self._await(self._replicas, "engine replicas")
        return RemoteEngine(self._replicas, self._store, version)

    def learner(self, policy: Policy, reference: nn.Module | None = None) -> Learner:
        """The learner of the policy: in this process, or `Ranks`, which have what a training loop uses of one; see
        `Learner` for its reference.

        Raises:
            ConfigError: the cluster lacks the CPUs or GPUs for the ranks; or as `Learner`.
        """
        config, recipe, world = self.config, self.recipe, self.config.learner_ranks
        if world == 0:
            return Learner(policy.model, recipe.learner, recipe.loss, reference, recipe.needs, recipe.seed)
        places = [self._place(config.replicas + n, config.learner_cpus) for n in range(world)]
        ranks = [self._start(Rank, n, world, **place) for n, place in enumerate(places)]
        self._await(ranks, "learner ranks")
        made = Ranks(ranks, policy.model, recipe.learner, recipe.loss, reference, recipe.needs, recipe.seed)
        return cast(Learner, made)

    def pool(self, player: Player) -> ClusterPool:
        """A pool of workers that play with tokens of `engine`, which must have been asked for before: each has a player
        of its own in the place of `player`.

        Raises:
            ConfigError: the cluster lacks the CPUs or GPUs for the workers.
        """
        config, recipe = self.config, self.recipe

        def start() -> Any:
            args = recipe, self._tokenizer, self._replicas, self._store, self._slots
            options = {"scheduling_strategy": "SPREAD", "max_concurrency": self._slots + 1}
            return self._start(Worker, *args, cpus=config.worker_cpus, **options)

        workers = [start() for _ in range(config.workers)]
        self._await(workers, "workers")
        return ClusterPool(workers, start, self._slots, config.retries, recipe.pool)

    def _start(self, actor: type, *args: Any, cpus: float = 0, gpus: float = 0, **options: Any) -> Any:
        import ray

        handle = ray.remote(num_cpus=cpus, num_gpus=gpus, **options)(actor).remote(*args)
        self._actors.append(handle)
        return handle

    def _place(self, number: int, cpus: float) -> dict[str, Any]:
        """How the replica or rank of a number is started in its place; the first one reserves the places of all.

        Raises:
            ConfigError: the cluster has no room for all of them.
        """
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        if self._group is None:
            config = self.config
            each = [config.replica_cpus] * config.replicas + [config.learner_cpus] * config.learner_ranks
            gpus = [self._gpus_of(n) for n in range(len(each))]
            # a place is of something; actors of no CPU get a thousandth
            places = [{"CPU": max(c, 0.001)} | ({"GPU": g} if g else {}) for c, g in zip(each, gpus, strict=True)]
            self._group = ray.util.placement_group(places, strategy="PACK")
            if not self._group.wait(config.start_seconds):
                raise ConfigError(
                    f"no room within {config.start_seconds:g} s for {config.replicas} engine replicas and "
                    f"{config.learner_ranks} learner ranks together: {self._there()}"
                )
        strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=number)
        return {"cpus": cpus, "gpus": self._gpus_of(number), "scheduling_strategy": strategy}

    def _gpus_of(self, number: int) -> float:
        """GPUs of the replica or rank of a number; a vLLM that is cut over several has them all."""
        engine = self.recipe.engine
        cards = engine.cards if isinstance(engine, VLLM) and number < self.config.replicas else 1
        return self._gpus * cards

    def _there(self) -> str:
        import ray

        there = {name: ray.cluster_resources().get(name, 0) for name in ("CPU", "GPU")}
        return (
            f"the cluster has {there['CPU']:g} CPUs and {there['GPU']:g} GPUs; ask for less of them, or for more "
            "start_seconds"
        )

    def _await(self, actors: Sequence[Any], who: str) -> None:
        """Waits until actors can be asked."""
        import ray

        calls, seconds = [actor.__ray_ready__.remote() for actor in actors], self.config.start_seconds
        _, left = ray.wait(calls, num_returns=len(calls), timeout=seconds)
        if left:
            raise ConfigError(
                f"{len(left)} of {len(calls)} {who} have not started within {seconds:g} s: {self._there()}"
            )
        for call in calls:
            result(call, f"one of the {who}")
