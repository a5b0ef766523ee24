"""The trainer: the one loop. plan -> roll out -> score -> assign credit -> update, an evaluation, a checkpoint.

What always holds: iteration i depends on the recipe, the policy after i - 1 and what was collected so far, and on
nothing else, so a resumed run gives the numbers of one that was not stopped; a failed episode is counted and never
trained on; the run folder holds the last whole iteration whenever the process ends, however it ends.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from longstride.cluster.cluster import Cluster
from longstride.cluster.config import ClusterConfig
from longstride.core.budget import Budget
from longstride.core.errors import RunError
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.learner import parallel
from longstride.learner.learner import Learner
from longstride.learner.turn_critic import PREFIX
from longstride.methods import GAE
from longstride.models.chat import ChatFormat
from longstride.models.load import load_policy
from longstride.rollout.planning import Planner, Stages
from longstride.rollout.players import Player
from longstride.rollout.pool import Pool
from longstride.rollout.store import TrajectoryStore
from longstride.rollout.summary import summarise
from longstride.run.evaluation import (
    evaluate_baselines,
    evaluate_player,
    language_player,
    limits_by_difficulty,
)
from longstride.run.folder import TRAJECTORIES, Listener, RunFolder, Silent
from longstride.run.recipe import Recipe


def train(
    recipe: Recipe,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    cluster: ClusterConfig | None = None,
) -> None:
    """Runs a recipe in a run folder (see docs/architecture.md for what it holds).

    Args:
        recipe: what is run.
        folder: created; must not hold a run unless `resume`.
        listener: takes every metrics row and the progress between rows.
        resume: go on after the last checkpoint of the run in `folder`; start it where there is none. `iterations` may
            have grown meanwhile, nothing else may differ.
        cluster: where the run is spread over a Ray cluster: what goes where. A run may be resumed with another one, or
            with none.

    Raises:
        RunError: the folder holds a run already, or one of another recipe; a damaged checkpoint; a full disk.
    """
    with parallel.joined(), Cluster(cluster, recipe) if cluster else nullcontext() as spread:
        run = RunFolder(recipe, folder, listener or Silent(), resume)
        with run.full_disk_told():
            _loop(recipe, run, spread)


def _loop(recipe: Recipe, run: RunFolder, cluster: Cluster | None) -> None:
    checkpoint = run.checkpoint
    # adapters are kept apart from the weights that they adapt
    source = str(checkpoint.folder) if checkpoint and recipe.learner.lora is None else recipe.model
    policy = load_policy(source)
    samplings = dict.fromkeys([recipe.sampling, recipe.evaluation.sampling or recipe.sampling])
    ahead = recipe.pool.staleness
    held = any(loss.kl for loss in recipe.losses) and recipe.learner.lora is None
    reference = load_policy(recipe.model).model if held else None
    if cluster:
        engine, learner = cluster.engine(policy, run.iteration), cluster.learner(policy, reference)
    else:
        engine = recipe.engine.make(policy, run.iteration, list(samplings), shared=ahead == 0)
        learner = Learner(policy.model, recipe.learner, recipe.loss, reference)
    critic = recipe.critic.make(learner, derive(recipe.seed, "critic")) if recipe.critic else None
    if checkpoint is not None:
        tensors = checkpoint.tensors()
        if critic:
            critic.load_state(tensors)
        learner.load_state({k: v for k, v in tensors.items() if not k.startswith(PREFIX)}, checkpoint.numbers)
    engine.update(learner.whole(), run.iteration)  # an engine that takes none says so now, not after a rollout
    player = language_player(policy, recipe, engine)
    tested = language_player(policy, recipe, engine, testing=True)
    if checkpoint is None:
        evaluate(recipe, run, tested)
        run.save(policy, learner, critic)

    pool = Pool(player, recipe.tasks.env, recipe.reward, recipe.tasks.at_once, recipe.pool)
    with cluster.pool() if cluster else pool as pool:
        if recipe.stored:
            rounds = stored_rounds(recipe, run)
        else:
            pool.restore(run.pending())
            stages = lambda i: share(run, recipe.sampler.stages(planner(recipe, run, i, policy.chat)))  # noqa: E731
            rounds = pool.rounds(stages, run.iteration + 1, recipe.iterations, run.progress("rollout"))
        began, sampled_before = time.perf_counter(), engine.tokens_out
        for i, trajectories in rounds:
            collected = time.perf_counter()
            run.iteration = i

            now = recipe.at(i)
            chosen = parallel.told(lambda: run.chosen(i, trajectories))  # noqa: B023 (called now)
            if critic:
                critic.values(chosen)
            learner.loss = now.loss
            waits = critic is not None and i <= critic.config.warmup
            samples = [] if waits else parallel.told(lambda: now.credit(chosen))  # noqa: B023
            trained = learner.update(samples, stream(recipe.seed, "learner", i), run.progress("train"))
            if critic and isinstance(now.credit, GAE):
                trained |= critic.fit(chosen, now.credit.targets(chosen), stream(recipe.seed, "critic", i))
            weights = learner.whole()
            pool.between(lambda: engine.update(weights, i))  # noqa: B023
            ended = time.perf_counter()

            run.row(
                "train",
                horizon=limits_by_difficulty(recipe.horizon, i),
                tokens=limits_by_difficulty(recipe.tokens, i) if recipe.tokens else None,
                summary=summarise(trajectories),
                **trained,
                **staleness(trajectories, i - 1),
                replay_size=len(run.kept),
                solved_tasks=len(run.solved) / max(len(run.started), 1),
                tokens_per_second=(engine.tokens_out - sampled_before) / ((ended if ahead else collected) - began),
                rollout_seconds=collected - began,
                train_seconds=ended - collected,
            )
            if i % recipe.evaluation.every == 0 or i == recipe.iterations:
                with pool.paused():
                    evaluate(recipe, run, tested)
            run.save(replace(policy, model=weights), learner, critic, pool.finished())
            began, sampled_before = time.perf_counter(), engine.tokens_out


def stored_rounds(recipe: Recipe, run: RunFolder) -> Iterator[tuple[int, list[Trajectory]]]:
    """The iterations that are left, as the run in the folder `recipe.stored` collected them.

    Raises:
        RunError: that run has not so many, or, where it is known how many episodes they have, of another size.
    """
    store = TrajectoryStore(Path(recipe.stored) / TRAJECTORIES)
    places: dict[int, list[int]] = {}
    for k, entry in enumerate(store.entries):
        places.setdefault(entry.iteration, []).append(k)
    for i in range(run.iteration + 1, recipe.iterations + 1):
        if i not in places or not recipe.sampler.staged and len(places[i]) != recipe.episodes:
            raise RunError(
                f"{store.path} holds no iteration {i} of {recipe.episodes} episodes; set iterations and episodes to "
                "those of the run that stored it"
            )
        yield i, store.read(places[i])


def staleness(trajectories: Sequence[Trajectory], version: int) -> dict[str, float]:
    """How many updates older than `version`, which is trained now, the policy was that sampled a token: mean and
    largest over the tokens of the trajectories."""
    ages = [version - v for t in trajectories for turn in t.turns for v in turn.versions]
    return {"staleness": sum(ages) / max(len(ages), 1), "staleness_max": max(ages, default=0)}


def planner(recipe: Recipe, run: RunFolder, iteration: int, chat: ChatFormat) -> Planner:
    """Makes the plans of an iteration, each under the budget of its task's difficulty."""
    turns = limits_by_difficulty(recipe.horizon, iteration)
    tokens = limits_by_difficulty(recipe.tokens, iteration) if recipe.tokens else None

    def budget(task: Task) -> Budget:
        limits: dict[str, int] = {"turns": turns[task.difficulty]}
        if tokens is not None:
            limits["tokens"] = tokens[task.difficulty]
        return recipe.budget.model_copy(update=limits)

    # with later stages, how many episodes came before is known when they were played; without, it is always the same
    first = run.episodes if recipe.sampler.staged else (iteration - 1) * recipe.episodes
    return Planner(recipe.tasks, budget, chat, recipe.seed, iteration, first, recipe.episodes, recipe.group)


def share(run: RunFolder, stages: Stages) -> Stages:
    """This process's part of the stages of all: what they return is the same in every process."""
    plans = next(stages)
    while True:
        mine = yield [plan for plan in plans if run.mine(plan.group)]
        found = sorted(parallel.gather(mine), key=lambda t: t.ordinal)
        try:
            plans = stages.send(found)
        except StopIteration as e:
            return e.value


def evaluate(recipe: Recipe, run: RunFolder, player: Player) -> None:
    """Adds the evaluation rows of the policy as it is now; at iteration 0 those of the trivial policies too."""
    tasks = recipe.tasks.held_out(recipe.evaluation.tasks)
    name = "agent" if run.iteration else "warm_start"
    for k, strategy in enumerate(recipe.evaluation.strategies):
        result = evaluate_player(player, recipe, tasks, strategy, run.progress("eval"))
        run.evaluated(name, strategy.name, result)
        if k == 0:
            run.show("after" if run.iteration else "before", result.trajectories)
    if run.iteration == 0 and recipe.evaluation.baselines:
        for baseline, result in evaluate_baselines(recipe, tasks, run.progress("eval")).items():
            run.evaluated(baseline, "direct", result)
