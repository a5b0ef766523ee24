"""The parts of a run at work: policy, engine, learner, critic, players, pool and run folder, put together once.

What always holds: every method that computes is called by all processes of several, in the same order; iteration i
depends on the recipe, the policy after i - 1 and what was collected so far, and on nothing else.
"""

import copy
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from statistics import fmean
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from longstride.core.budget import Budget
from longstride.core.component import Component, parts_of
from longstride.core.content import placed
from longstride.core.errors import ConfigError, LongstrideWarning, RunError
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import LOGPROB_DIGITS, EpisodeRecord, Trajectory
from longstride.engines.base import Request
from longstride.learner import parallel
from longstride.learner.critics import CriticBatch
from longstride.learner.learner import STEP_FIELDS, Learner
from longstride.methods import Mean, Reinforce, Sample
from longstride.methods.base import ADVANTAGES
from longstride.models.load import Policy, load_policy, save_policy
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.planning import Planner, Stages
from longstride.rollout.players import LanguagePlayer, ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.rollout.summary import summarise
from longstride.run.checkpoint import FIRST, check_finite, open_checkpoint
from longstride.run.evaluation import evaluate_baselines, evaluate_player, language_player
from longstride.run.folder import RunFolder
from longstride.run.imitation import Cloning, Imitation
from longstride.run.patience import warn_of_failures, warn_of_room
from longstride.run.placement import Placed
from longstride.run.policies import EarlierSelf, companion_players, load, with_tokens_of
from longstride.run.preflight import preflight
from longstride.run.recipe import Recipe
from longstride.run.stored import stored_iterations
from longstride.run.teachers import forget

CRITIC = "critic/"
"""What the names of the critic's tensors begin with, among those of a checkpoint."""
COMPANION = "companion/"
"""The same of companions that follow the policy, before their names."""
CLONING_ROWS = 20
"""Metrics rows of a phase of cloning, at most."""
IMITATION = Reinforce(aggregation=Mean(over="token"))
"""The loss of demonstrations: their mean negative log-likelihood."""


class Session:
    """A run at work. A context manager: it opens the pool.

    Args:
        recipe: what is run.
        run: its folder.
        placed: where its parts go.
    """

    def __init__(self, recipe: Recipe, run: RunFolder, placed: Placed) -> None:
        self.recipe, self.run = recipe, run
        checkpoint, start = run.checkpoint, recipe.start
        if checkpoint and recipe.cloning:
            start = str(open_checkpoint(run.folder / "checkpoints" / FIRST).folder)
        # adapters are kept apart from the weights that they adapt
        now = str(checkpoint.folder) if checkpoint and recipe.learner.lora is None else start
        self.policy = load_policy(now, recipe.chat, recipe.device, recipe.weights)
        preflight(recipe, self.policy)
        if checkpoint is None and recipe.cloning:
            self._clone()
        self.engine = placed.engine(self.policy, run.iteration)
        self.learner = placed.learner(self.policy, self._reference(start))
        seed = derive(recipe.seed, "critic")
        self.critic = recipe.critic.make(self.learner, seed) if recipe.critic else None
        self._places = {id(part): place for place, part in parts_of(recipe)}
        self._memory: dict[str, dict[str, Any]] = {}
        beside: dict[str, Tensor] = {}
        if checkpoint is not None:
            tensors = checkpoint.tensors()
            check_finite(tensors, checkpoint.folder)
            mine = taken(tensors, CRITIC)
            if self.critic:
                self.critic.load_state(mine)
            beside = taken(tensors, COMPANION)
            self.learner.load_state(tensors, checkpoint.numbers)
            self._memory = checkpoint.numbers.get("memory", {})
            if strange := sorted(self._memory.keys() - self._places.values()):
                raise RunError(
                    f"{checkpoint.folder} keeps the memory of {strange[0]!r}, and this recipe has no such place; go on "
                    "with the version of Longstride that wrote it, or begin a new run from its policy"
                )
        self.weights = self.learner.full_model()
        self.engine.update(
            self._sampled_from(), run.iteration
        )  # an engine that takes none says so now, not after a rollout
        self._companions = companions = companion_players(replace(self.policy, model=self.weights), recipe)
        self._earlier = {name: p for name, p in companions.items() if isinstance(p, EarlierSelf)}
        if checkpoint is not None:
            for name, companion in self._earlier.items():
                companion.load_state(taken(beside, f"{name}/"), run.iteration)
        self.player = language_player(self.policy, recipe, self.engine, companions)
        self.tested = language_player(self.policy, recipe, self.engine, companions, testing=True)
        self._placed, self._open = placed, ExitStack()
        self._began, self._collected, self._tokens_before = time.perf_counter(), 0.0, self.engine.tokens_out

    def __enter__(self) -> Self:
        self.pool = self._open.enter_context(self._placed.pool(self.player))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._open.__exit__(kind, error, tb)
        self.engine.close()
        forget()

    # what components may read: `core.experience.Experience`

    @property
    def records(self) -> Sequence[EpisodeRecord]:
        return self.run.records

    def read(self, records: Sequence[EpisodeRecord]) -> list[Trajectory]:
        return self.run.read(records)

    def memory(self, owner: Component) -> dict[str, Any]:
        place = self._places.get(id(owner))
        if place is None:
            raise ConfigError(f"{owner.type_name()} is no part of the recipe: what has no place there has no memory")
        return self._memory.setdefault(place, {})

    def logprobs(self, samples: Sequence[Any]) -> list[list[float]]:
        return self.learner.logprobs(samples)

    def openings(self, tasks: Sequence[Task]) -> list[Trajectory]:
        r = self.recipe
        plans = [
            Plan(task, k, derive(r.seed, "opening", k), r.test_budget.at(1, task.difficulty))
            for k, task in enumerate(tasks)
        ]

        def pause(episode: Episode) -> Generation:
            prompt = r.context.render(self.policy.chat.offering(episode.functions), episode.past)
            return Generation(prompt, [], [], [], "", "mark", media=placed(prompt, episode.media))

        pool = Pool(ScriptedPlayer(pause), r.env, r.reward, r.tasks.at_once, r.pool)
        return parallel.unscatter(pool.run(parallel.scatter(plans)))

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        found = [
            replace(
                t,
                turns=[
                    replace(turn, action=None, error=None, reward=0.0, estimates={}, token_values=[])
                    for turn in t.turns
                ],
            )
            for t in trajectories
        ]
        if any(t.budget.thought_tokens is not None for t in found):
            raise ConfigError("new actions for stored turns are sampled in one piece; leave out budget.thought_tokens")
        again = [(turn, t.budget.turn_tokens) for t in found for turn in t.turns if turn.sampled_ids]
        requests = [
            Request(
                turn.prompt_ids,
                max(1, limit - turn.given),
                derive(seed, k),
                sampling=self.recipe.sampling,
                media=turn.media,
            )
            for k, (turn, limit) in enumerate(again)
        ]
        mine = [replace(r, ordinal=n) for n, r in enumerate(parallel.scatter(requests))]  # shared out among processes
        before = self.engine.tokens_out
        completions = parallel.unscatter(self.pool.run_on_sampler_thread(lambda: self.engine.generate(mine)))
        self._tokens_before += self.engine.tokens_out - before  # tokens a second are those of episodes
        for (turn, _), c in zip(again, completions, strict=True):
            turn.sampled_ids, turn.versions, turn.finish = c.ids, c.versions, c.finish
            turn.behaviour_logprobs = [round(x, LOGPROB_DIGITS) for x in c.logprobs]
            turn.text = self.policy.chat.decode(turn.ids)
        return found

    # the five places of the loop

    def rollouts(self) -> Iterator[tuple[int, list[Trajectory]]]:
        """Plans and plays the iterations that are left; each is yielded when it is complete."""
        recipe, run = self.recipe, self.run
        if recipe.stored_run:
            vocabulary: int = self.policy.model.get_input_embeddings().weight.shape[0]  # pyright: ignore
            iterations = stored_iterations(recipe, run.iteration, vocabulary)
        else:
            self.pool.restore(run.pending())
            stages = lambda i: shared(run, recipe.sampler.plan(self._planner(i)))  # noqa: E731
            iterations = self.pool.iterations(stages, run.iteration + 1, recipe.iterations, run.progress("rollout"))
        self._restart_clock()
        for i, trajectories in iterations:
            self._collected = time.perf_counter()
            yield i, trajectories

    def replay(self, iteration: int, trajectories: list[Trajectory]) -> list[Trajectory]:
        """Stores what was played, and draws what is trained on."""
        fresh = self.run.collect(iteration, trajectories)
        rng = stream(self.recipe.seed, "replay", iteration)
        drawn = self.run.read(self.recipe.replay.draw(self.run.kept, fresh, rng, self))
        return self.recipe.replay.renew(drawn, rng, self)

    def assign_credit(self, now: Recipe, chosen: list[Trajectory]) -> tuple[list[Sample], dict[str, float]]:
        """The samples of the update, after the critic has estimated what credit reads; no samples while the critic
        learns alone. With the critic's metrics."""
        i, metrics = self.run.iteration, {}
        if self.critic:
            metrics = self.critic.before_update(self._critic_batch(now, chosen, "critic-before"))
        waits = now.critic is not None and i <= now.critic.warmup
        samples = [] if waits else parallel.broadcast(lambda: now.credit(chosen))
        return list(now.replay.select(samples, self)), metrics

    def update(self, now: Recipe, samples: list[Sample], chosen: list[Trajectory]) -> dict[str, Any]:
        """Updates policy and critic, and gives the engine the new weights; returns metrics."""
        i, seed, learner = self.run.iteration, self.recipe.seed, self.learner
        learner.loss = now.loss
        self.pool.run_on_sampler_thread(self.engine.rest)
        metrics = learner.update(samples, stream(seed, "learner", i), self.run.progress("train"))
        if now.imitation:
            metrics |= self._imitate(now)
        learner.move_reference(i)
        if self.critic:
            metrics |= self.critic.after_update(self._critic_batch(now, chosen, "critic"))
        self.weights = learner.full_model()
        self.pool.run_on_sampler_thread(lambda: self._give_weights(i))
        return metrics

    def _give_weights(self, iteration: int) -> None:
        """Gives the weights after an iteration to all who sample from them."""
        self.engine.update(self._sampled_from(), iteration)
        for companion in self._earlier.values():
            companion.follow(self.weights, iteration)
        self._companions_forget(all_but=iteration)

    def _companions_forget(self, all_but: int | None = None) -> None:
        """Drops what their engines keep of earlier prompts: a run that goes on from a checkpoint begins without it too,
        and what is read from a cache differs in its last bits. Those with an iteration's weights have done so."""
        for companion in self._companions.values():
            if isinstance(companion, LanguagePlayer) and companion.engine.version != all_but:
                companion.engine.forget()

    def _sampled_from(self) -> Any:
        """What the engine is given: complete weights, or those of the learner with its adapters."""
        return self.learner.full_model(merge=False) if self.engine.adapters else self.weights

    # what is written

    def report(self, trajectories: list[Trajectory], metrics: dict[str, Any]) -> None:
        """Writes the row of an iteration."""
        recipe, run, ended = self.recipe, self.run, time.perf_counter()
        i, sampling = run.iteration, (ended if recipe.pool.staleness else self._collected) - self._began
        run.row(
            "train",
            horizon=recipe.budget.limits("turns", i, self),
            tokens=recipe.budget.limits("tokens", i, self) if recipe.budget.tokens is not None else None,
            summary=summarise(trajectories),
            **metrics,
            **staleness(trajectories, i - 1),
            **self.engine.metrics(),
            replay_size=len(run.kept),
            solved_tasks=len(run.solved) / max(len(run.started), 1),
            tokens_per_second=(self.engine.tokens_out - self._tokens_before) / sampling,
            rollout_seconds=self._collected - self._began,
            train_seconds=ended - self._collected,
        )

    def evaluate(self) -> None:
        """Adds the evaluation rows of the policy as it is now; at the start those of the trivial policies too."""
        recipe, run = self.recipe, self.run
        tasks = recipe.held_out()
        once = lru_cache(1)(load)  # strategies that take the same other model share it, and training has its room
        with self.pool.paused():
            for k, strategy in enumerate(recipe.evaluation.strategies):
                result = evaluate_player(self.tested, recipe, tasks, strategy, run.progress("eval"), once)
                warn_of_failures(f"evaluation after iteration {run.iteration}", result.trajectories)
                if run.iteration == 0:
                    warn_of_room("evaluation before training", result.trajectories)
                run.evaluated("agent" if run.iteration else "warm_start", strategy.name, result)
                if k == 0:
                    run.show("after" if run.iteration else "before", result.trajectories)
            if run.iteration == 0 and recipe.evaluation.baselines:
                for baseline, result in evaluate_baselines(recipe, tasks, run.progress("eval")).items():
                    run.evaluated(baseline, "direct", result)
            if run.iteration in (0, recipe.iterations):
                for name, source in recipe.tasks.beside.items():
                    there, tasks = recipe.model_copy(update={"tasks": source}), source.held_out(recipe.evaluation.tasks)
                    result = evaluate_player(self.tested, there, tasks, progress=run.progress("eval"))
                    run.evaluated("agent" if run.iteration else "warm_start", "direct", result, beside=name)
            self.pool.run_on_sampler_thread(self.engine.forget)  # as where a run goes on after it
            self.pool.run_on_sampler_thread(self._companions_forget)

    def save(self) -> None:
        """Makes a checkpoint of all processes' state."""
        tensors, numbers = self.learner.state()
        if self.critic:
            tensors |= {f"{CRITIC}{name}": tensor for name, tensor in self.critic.state().items()}
        for name, companion in self._earlier.items():
            tensors |= {f"{COMPANION}{name}/{key}": tensor for key, tensor in companion.state().items()}
        numbers |= {"episodes": self.run.episodes, "memory": self._memory}
        pending = parallel.gather(self.pool.finished())
        self.run.keep(partial(save_policy, replace(self.policy, model=self.weights)), tensors, numbers, pending)
        self._restart_clock()

    def _restart_clock(self) -> None:
        self._began, self._tokens_before = time.perf_counter(), self.engine.tokens_out

    def _planner(self, iteration: int) -> Planner:
        """Makes the plans of an iteration, each under the budget of its task's difficulty."""
        r, n = self.recipe, self.recipe.episodes_per_iteration
        # an adaptive iteration may play more episodes than it was asked for, and any other always plays as many
        first = self.run.episodes if r.adaptive else (iteration - 1) * n

        def budget(task: Task) -> Budget:
            return r.budget.at(iteration, task.difficulty, self)

        chat, size = self.policy.chat, r.group_size
        return Planner(r.tasks, r.curriculum, self, r.replay, budget, chat, r.seed, iteration, first, n, size, r.trial)

    def _critic_batch(self, now: Recipe, chosen: list[Trajectory], name: str) -> CriticBatch:
        return CriticBatch(chosen, now.credit, self, stream(self.recipe.seed, name, self.run.iteration))

    def _reference(self, start: str) -> Any:
        """The model that the losses hold on to; None where they hold on to none, or to the policy without adapters."""
        for name in self.recipe.references:
            if name is not None:
                teacher = load(name, self.recipe.chat, self.policy.device, self.recipe.weights)
                return with_tokens_of(self.policy, teacher, f"loss.kl.anchor: {name!r}").model
            if self.recipe.learner.lora is None:
                return self._start_model(start)
        return None

    def _start_model(self, start: str) -> Any:
        """The policy's model as it was at the start, apart from the one that is trained."""
        if self.run.checkpoint is None and self.recipe.cloning:
            return copy.deepcopy(self.policy.model)
        return load_policy(start, self.recipe.chat, self.recipe.device, self.recipe.weights).model

    def _clone(self) -> None:
        """Trains the policy on demonstrations, before anything else."""
        cloning = self.recipe.cloning
        assert cloning is not None
        samples = self._demonstrated(cloning, self.policy, stream(self.recipe.seed, "cloning"))
        forget()  # a teacher is asked once, and training needs its room
        if not samples:
            raise ConfigError(
                f"cloning: of {cloning.episodes} episodes nothing is left to imitate; take more of them, an abler "
                "teacher, or fewer filters"
            )
        learner = Learner(self.policy.model, cloning.learner, IMITATION, seed=self.recipe.seed)
        report = CloningRows(self.run)
        order = stream(self.recipe.seed, "cloning-order")
        learner.update(samples, order, self.run.progress("cloning"), report.stepped)
        self.policy.model = learner.full_model()

    def _demonstrated(self, what: Cloning | Imitation, policy: Policy, rng: random.Random) -> list[Sample]:
        """What is imitated: in every process what the first one has, since a teacher may not say the same twice; turns
        that are longer than what the policy sees are left out, with a warning."""
        found = what.demonstrations.of_policy(policy, self.recipe, what.episodes, rng)
        lengths = [len(s.prompt_ids) + len(s.sampled_ids) for s in found]
        if (longest := max(lengths, default=0)) > policy.max_context:
            fitting = [s for s, length in zip(found, lengths, strict=True) if length <= policy.max_context]
            warnings.warn(
                f"{len(found) - len(fitting)} of {len(found)} demonstrated turns are longer than the "
                f"{policy.max_context} tokens that {policy.name} sees, the longest has {longest}: they are left out; "
                "take shorter demonstrations, or a context policy that keeps less (context.type=...)",
                LongstrideWarning,
                stacklevel=2,
            )
            found = fitting
        return parallel.broadcast(lambda: found)

    def _imitate(self, now: Recipe) -> dict[str, float]:
        """Trains on an iteration's demonstrations; returns their loss, where there are any."""
        imitation, i, seed = now.imitation, self.run.iteration, self.recipe.seed
        assert imitation is not None
        policy = replace(self.policy, model=self.learner.full_model())
        found = self._demonstrated(imitation, policy, stream(seed, "imitation", i))
        if not found:
            warnings.warn(
                "there was nothing to imitate: no demonstration came, or none passed the filters of "
                "imitation.demonstrations, whose numbers may be those of another model",
                LongstrideWarning,
                stacklevel=2,
            )
            return {}
        samples = [replace(s, streams={ADVANTAGES: [imitation.weight * a for a in s.advantages]}) for s in found]
        self.learner.loss = IMITATION
        loss = self.learner.update(samples, stream(seed, "imitation-order", i))["loss"]
        self.learner.loss = now.loss
        return {"imitation_loss": loss}


def taken(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with a prefix, without it; they are taken out."""
    return {name.removeprefix(prefix): tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}


class CloningRows:
    """Metrics rows of cloning: one a step, `CLONING_ROWS` at most, each of the steps since the one before; losses of
    the model's own are those of the step."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._step = self._examples = self._tokens = 0
        self._losses: list[float] = []

    def stepped(self, examples: int, steps: int, done: dict[str, float]) -> None:
        """Takes a step of `steps`; see `Learner.update`."""
        self._step, self._examples = self._step + 1, self._examples + examples
        self._tokens += int(done["tokens"])
        if not done["skipped"]:
            self._losses.append(done["loss"])
        if self._step * CLONING_ROWS // steps > (self._step - 1) * CLONING_ROWS // steps:
            loss = fmean(self._losses) if self._losses else None
            counts = {"examples": self._examples, "tokens": self._tokens}
            own = {name: done[name] for name in sorted(done.keys() - STEP_FIELDS)}
            self._run.row("cloning", step=self._step, steps=steps, **counts, loss=loss, lr=done["lr"], **own)
            self._losses = []


def staleness(trajectories: Sequence[Trajectory], version: int) -> dict[str, float]:
    """How many updates older than `version`, which is trained now, the policy was that sampled a token: mean and
    largest over the tokens of the trajectories."""
    ages = [version - v for t in trajectories for turn in t.turns for v in turn.versions]
    return {"staleness": sum(ages) / max(len(ages), 1), "staleness_max": max(ages, default=0)}


def shared(run: RunFolder, stages: Stages) -> Stages:
    """This process's part of the stages of all: what they return is the same in every process."""
    plans = next(stages)
    while True:
        mine = yield [plan for plan in plans if run.plays(plan.group)]
        found = sorted(parallel.gather(mine), key=lambda t: t.ordinal)
        try:
            plans = stages.send(found)
        except StopIteration as e:
            return e.value
