"""A plan of a run on cards that nobody has rented yet: layout, memory, time by phase, and what bounds it.

A roofline: a decoding pass takes what launching its kernels, reading weights, keys and values, or its operations take,
whichever is longest; prompts and optimiser steps take their operations at a stated share of the card's; weights take
their bytes. What the scheduler leaves of that was simulated (`longstride bench scheduler`). What always holds: nothing
is loaded, and every number that goes in says where it comes from (`cards.Sourced`); the layouts are those that a run
can have today, and each names its settings.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from longstride.core.errors import ConfigError
from longstride.models.device import settled_weights, skeleton_of
from longstride.models.public import described
from longstride.run import memory
from longstride.run.cards import NETWORK, OURS, USABLE, VLLM, Card, Sourced, Speeds
from longstride.run.demand import Demand, TurnDemand, demand_of, rows_of
from longstride.run.memory import BYTES, GIB, MemoryPlan, room_on
from longstride.run.recipe import Recipe

ROWS = 256
"""Sequences that an engine computes together at most, where keys and values have room for more: vLLM's default."""
HERE = "this machine"
CACHE, LOCAL, SERVED = "keys and values", "engine.type=local", ("engine.type=http", "engine.weights.type=nccl")
PASSING = "gradients", "activations", "logits", "weights in the type of the arithmetic"
"""What the parts of a learner's memory begin with that it has in an optimiser step alone."""
UTILISATION = {
    0: {1.5: 0.0878, 4: 0.131, 8: 0.151},
    1: {1.5: 0.312, 4: 0.649, 8: 0.873},
    4: {1.5: 0.259, 4: 0.59, 8: 0.762},
}
"""What rollouts reach of what engines could sample, by the bound on staleness and how many episodes are under way (of
this iteration and of those ahead) for each that is live, as benchmarks/scheduler.json has it."""
TURN = Sourced(0.000543, "measured", "one core's seconds a turn with 256 simulated ones in flight, x86_64, 2026-11-27")
NOT_COUNTED = "starts and restarts, checkpoints, judges, companions and critics, cloning and imitation"
"""What a run may have and a plan leaves out."""


@dataclass(frozen=True)
class Shape:
    """A model, as far as time depends on it."""

    parameters: int
    """All of them."""
    computed: int
    """Those that a token is multiplied with: all but a table of embeddings that is not the head too."""
    layers: int
    attention: int
    """Width of all heads together."""
    token: int
    """Bytes that a token's keys and values take in a layer, in bfloat16."""
    windows: tuple[tuple[float, int], ...]
    """Tokens that a layer sees at most, and how many layers see as many."""

    @classmethod
    def of(cls, model: str) -> Self:
        """The shape of a model whose configuration can be read.

        Raises:
            ConfigError: it cannot, or the model has experts, whose passes are not planned.
        """
        made = skeleton_of(model)
        config = made.config.get_text_config()
        if any(p.dim() == 3 for p in made.parameters()):
            raise ConfigError("the passes of a model with experts are not planned; expected a dense one")
        heads, layers = config.num_attention_heads, config.num_hidden_layers
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * layers
        window = getattr(config, "sliding_window", None) or math.inf
        total = sum(p.numel() for p in made.parameters())
        words = made.get_input_embeddings().weight
        tied = made.get_output_embeddings().weight is words
        return cls(
            total,
            total - (0 if tied else words.numel()),
            layers,
            heads * head,
            4 * getattr(config, "num_key_value_heads", heads) * head,
            tuple(Counter(window if kind == "sliding_attention" else math.inf for kind in kinds).items()),
        )

    def kept(self, tokens: float) -> float:
        """Bytes of keys and values of a sequence."""
        return self.token * self._attended(tokens)

    def work(self, tokens: float, seen: float) -> float:
        """Operations of a forward pass of tokens that see so many each, in the mean."""
        return tokens * (2 * self.computed + 4 * self.attention * self._attended(seen))

    def _attended(self, tokens: float) -> float:
        """Tokens that a layer sees, summed over layers."""
        return sum(layers * min(tokens, window) for window, layers in self.windows)


@dataclass(frozen=True)
class CardLayout:
    """What is where."""

    engines: int
    tensor: int
    """Cards of an engine (tensor parallelism)."""
    learners: int
    shared: bool
    """Whether every card samples and learns in turn."""
    settings: tuple[str, ...]
    """That make it so, as they are typed."""

    @property
    def cards(self) -> int:
        return self.learners if self.shared else self.engines * self.tensor + self.learners

    @property
    def engine(self) -> str:
        """Whose it is: `local` is ours."""
        return "local" if self.settings[:1] in ((), (LOCAL,)) else "vLLM"

    def __str__(self) -> str:
        if not self.settings:
            return "as the run was made"
        if self.shared:
            each = f"{self.learners} cards, each samples and learns" if self.learners > 1 else "one card for both"
            return f"{each}, {self.engine} engine"
        each = f" of {self.tensor} cards" if self.tensor > 1 else ""
        return f"{_several(self.engines, f'{self.engine} engine')}{each}, {_several(self.learners, 'learner')}"


@dataclass(frozen=True)
class Phase:
    """A part of an iteration, in the mean over iterations."""

    name: str
    seconds: float
    tokens: float
    """That it works on; 0 where it has none."""
    bound: str
    """What bounds it."""

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class CardPlan:
    """What a run takes in one layout."""

    layout: CardLayout
    settings: tuple[str, ...]
    """Changes of the recipe without which it would not fit, or take longer."""
    learner: dict[str, float]
    """Bytes of a learner's card by part."""
    engine: dict[str, float]
    """Bytes of an engine's card by part; of a card that does both, while it samples."""
    room: float
    """Bytes that a card has for them."""
    in_flight: float
    """Episodes of an engine that are live at once."""
    phases: tuple[Phase, ...]
    iteration: float
    """Seconds of one, in the mean."""
    hours: float
    """To the recipe's end, with its evaluations."""
    ahead: bool
    """Whether it rolls out while it learns."""

    @property
    def fits(self) -> bool:
        return max(sum(self.learner.values()), sum(self.engine.values())) <= self.room and self.in_flight >= 1

    @property
    def card_hours(self) -> float:
        return self.hours * self.layout.cards

    @property
    def bound(self) -> str:
        """What bounds the run: the longest phase, and what bounds that."""
        worst = max(self.phases, key=lambda phase: phase.seconds)
        return f"{worst.name}, by {worst.bound}"


@dataclass(frozen=True)
class CardPlanner:
    """Plans a demand on cards.

    Args:
        demand: of a recipe.
        shape: of its model.
        card: of which there are some.
        ours: what our engine and the learner make of one.
        served: what a server does.
        known: a memory plan of the recipe, whose passes need not be looked at again.
    """

    demand: Demand
    shape: Shape
    card: Card
    ours: Speeds = OURS
    served: Speeds = VLLM
    known: MemoryPlan | None = None

    @property
    def recipe(self) -> Recipe:
        return self.demand.recipe

    def best(self, cards: int) -> list[CardPlan]:
        """Plans of all layouts of so many cards: those that fit before those that do not, the faster ones first."""
        found = [self.plan(layout) for layout in self.layouts(cards)]
        return sorted(found, key=lambda p: (not p.fits, p.hours))

    def layouts(self, cards: int) -> Iterator[CardLayout]:
        """Those that a run can have; of many cards the sixteenths that serve."""
        apart = ("learner.sharded=true",) if cards > 1 else ()
        if self.card.name == HERE:
            yield CardLayout(1, 1, 1, True, ())
            return
        yield CardLayout(cards, 1, cards, True, (LOCAL, *apart))
        if cards == 1 and not self.recipe.pool.staleness:  # an engine that sleeps cannot sample beside an update
            yield CardLayout(1, 1, 1, True, ("engine.type=vllm", "engine.sleep=true"))
        part = max(1, cards // 16)
        for tensor, serving in product((1, 2, 4, 8), range(part, cards, part)):
            if serving % tensor == 0:
                learners = cards - serving
                more = ("learner.sharded=true",) if learners > 1 else ()
                yield CardLayout(serving // tensor, tensor, learners, False, (*SERVED, *more))

    def speeds(self, layout: CardLayout) -> Speeds:
        """Of the engine of a layout."""
        return self.ours if layout.engine == "local" else self.served

    def plan(self, layout: CardLayout) -> CardPlan:
        """The plan of a layout, with the fewest changes of the recipe under which it fits."""
        r, room = self.recipe, USABLE.value * self.card.memory
        speeds = self.speeds(layout)
        ending = self.demand.turns(r.budget, r.iterations)
        learner, settings = self._learner(layout, math.ceil(max(turn.row for turn in ending)), room)
        engine = self._engine(layout, speeds, room, learner)
        held = engine[CACHE] * layout.tensor / self.shape.kept(ending[-1].prompt + self.demand.tokens.value)
        played = r.tasks.at_once * layout.learners / layout.engines  # each learner's process has a pool of its own
        places = min(max(1.0, min(held, ROWS if speeds is VLLM else math.inf)), played)
        budgets = [self.demand.most_turns(r.budget, i) for i in range(1, r.iterations + 1)]
        of = {b: self._iteration(layout, speeds, settings, places, budgets.index(b) + 1) for b in set(budgets)}
        found = [of[b] for b in budgets]
        phases = tuple(
            replace(column[-1], seconds=fmean(p.seconds for p in column), tokens=fmean(p.tokens for p in column))
            for column in zip(*found, strict=True)
        )
        ahead = r.pool.staleness > 0 and not layout.shared
        seconds = [self._together(each, ahead) for each in found]
        tested = self._evaluation(layout, speeds, places)
        live = min(held, places, r.episodes_per_iteration / layout.engines)
        return CardPlan(
            layout, settings, learner, engine, room, live, phases, fmean(seconds), (sum(seconds) + tested) / 3600, ahead
        )

    def _together(self, phases: tuple[Phase, ...], ahead: bool) -> float:
        *rollout, learning, weights = (phase.seconds for phase in phases)
        return (max(sum(rollout), learning) if ahead else sum(rollout) + learning) + weights

    def _iteration(
        self, layout: CardLayout, speeds: Speeds, settings: tuple[str, ...], places: float, i: int
    ) -> tuple[Phase, ...]:
        turns, n = self.demand.turns(self.recipe.budget, i), self.recipe.episodes_per_iteration
        weights = BYTES[self._weights] * self.shape.parameters
        pushed = 0.0 if layout.shared else layout.engines * weights / self._link(layout.cards)
        return (
            *self._rollout(layout, speeds, places, n, turns),
            self._learning(layout, speeds, settings, turns),
            Phase("weights to engines", pushed, 0, "one engine after the other"),
        )

    def _rollout(
        self, layout: CardLayout, speeds: Speeds, places: float, n: float, turns: list[TurnDemand]
    ) -> tuple[Phase, ...]:
        """Decoding, reading and waiting while `n` episodes are played."""
        w, said = self.demand, self.demand.tokens.value
        length = sum(turn.reached for turn in turns)
        seen = sum(turn.reached * turn.prompt for turn in turns) / length + said / 2
        new = sum(turn.reached * turn.new for turn in turns) / length
        reading = self.reading(speeds, new, seen) / layout.tensor

        def limits(rows: float) -> dict[str, float]:
            return self.limits(speeds, rows, seen, layout.tensor)

        def busy(rows: float) -> float:
            """Seconds of a turn of each of so many sequences, that share a card with one another."""
            return said * max(limits(rows).values()) + rows * reading

        live = min(places, n / layout.engines)
        low, high = 0.0, live
        for _ in range(50):
            rows = (low + high) / 2
            low, high = (rows, high) if rows * (1 + w.latency.value / busy(rows)) < live else (low, rows)
        rows = high
        asked = n * length / layout.engines
        decoding = asked * said * max(limits(rows).values()) / rows
        read = asked * reading
        handled = 0.0 if self.card.name == HERE else TURN.value * n * length / layout.learners
        going = max(asked * busy(rows) / rows, handled)
        waiting = going / self.utilisation(n / (live * layout.engines)).value - decoding - read
        slowest = max(limits(rows), key=lambda name: limits(rows)[name])
        idle = "environments" if rows < live / 2 else "stragglers and updates"
        idle = "the scheduler" if going == handled else idle
        return (
            Phase("decoding", decoding, n * length * said, slowest),
            Phase("reading prompts", read, n * length * new, "operations"),
            Phase("waiting", max(0.0, waiting), 0, idle),
        )

    def limits(self, speeds: Speeds, rows: float, seen: float, tensor: int = 1) -> dict[str, float]:
        """Seconds of a decoding pass of so many sequences of so many tokens on so many cards, by what may bound it: the
        longest does. Cards share bytes and operations, and each launches all kernels."""
        reads = tensor * speeds.reads.value * self.card.bandwidth
        flops = tensor * speeds.prefill.value * self.card.flops
        return {
            "launching of kernels": speeds.launch.value * self.shape.layers,
            "memory bandwidth": (2 * self.shape.parameters + rows * self.shape.kept(seen)) / reads,
            "operations": self.shape.work(rows, seen) / flops,
        }

    def reading(self, speeds: Speeds, tokens: float, seen: float) -> float:
        """Seconds in which tokens of a prompt are read that see so many each."""
        return self.shape.work(tokens, seen) / (speeds.prefill.value * self.card.flops)

    def _learning(
        self, layout: CardLayout, speeds: Speeds, settings: tuple[str, ...], turns: list[TurnDemand]
    ) -> Phase:
        """An update."""
        w, c, shape = self.demand, self.recipe.learner, self.shape
        length = sum(turn.reached for turn in turns)
        tokens = sum(turn.reached * turn.learned for turn in turns)
        seen = sum(turn.reached * turn.learned * (turn.prompt - turn.learned / 2) for turn in turns) / tokens
        again = "learner.checkpointing=true" in settings or c.checkpointing
        # backward takes two forward passes, without gradients of weights one; a reference is read once
        passes = (2 if c.lora else 3) + again + len(self.recipe.references)
        steps = max(1, math.ceil(w.samples * length / c.batch_samples))
        row = max(turn.row for turn in turns)
        in_step = w.samples * tokens / row / steps
        mine = row * max(min(1.0, in_step), in_step / layout.learners)  # a row is of one learner
        computing = passes * shape.work(mine, max(0.0, seen)) / (speeds.learning.value * self.card.flops)
        weights = BYTES[self._weights] * shape.parameters * (layout.learners > 1)
        moved = 3 * max(1.0, mine / max(c.micro_tokens, row)) * weights / self._link(layout.learners)
        bound = "operations" if computing > moved else "gradients and weights between cards"
        if in_step < layout.learners:
            bound = f"steps of {in_step:.1f} rows, fewer than learners"
        return Phase("learning", c.epochs * steps * max(computing, moved), c.epochs * w.samples * tokens, bound)

    def _evaluation(self, layout: CardLayout, speeds: Speeds, places: float) -> float:
        """Seconds of all evaluations of a run."""
        r = self.recipe
        last = {i for i in range(1, r.iterations + 1) if i % r.evaluation.every == 0 or i == r.iterations}
        times = r.evaluation.start + len(last)
        n = r.evaluation.tasks * r.evaluation.attempts * len(r.evaluation.strategies)
        turns = self.demand.turns(r.test_budget, 1)
        return times * sum(phase.seconds for phase in self._rollout(layout, speeds, places, n, turns))

    def _link(self, cards: int) -> float:
        return self.card.link if cards <= self.card.machine else NETWORK.value

    def utilisation(self, share: float) -> Sourced:
        """What rollouts reach of what engines could sample, with so many episodes of an iteration for each that is live
        at once: that of the nearest simulation."""
        if self.card.name == HERE:
            return Sourced(1.0, "measured", "it is in the speeds of the run")
        ahead = max(s for s in UTILISATION if s <= self.recipe.pool.staleness)
        under_way = share * (ahead + 1)
        near = min(UTILISATION[ahead], key=lambda n: abs(math.log(n / under_way)))
        how = f"simulated (`longstride bench scheduler`): {ahead} ahead, {near} under way a place"
        how += "" if ahead else ", in lockstep behind steps of environments of up to 30 s"
        return Sourced(UTILISATION[ahead][near], "derived", how)

    @property
    def _weights(self) -> str:
        device = "cpu" if self.card.name == HERE else "cuda"
        return settled_weights(self.recipe.weights, device, self.recipe.learner.lora is None)

    @cached_property
    def _passes(self) -> MemoryPlan:
        """Whose passes every other memory plan takes over."""
        return self.known or memory.plan(self._learning_alone({}))

    def _learning_alone(self, learner: Mapping[str, Any]) -> Recipe:
        """The recipe with what an engine takes left out, and another learner."""
        device = "cpu" if self.card.name == HERE else "cuda"
        server = {"type": "http", "url": "http://127.0.0.1:8000/v1", "model": "m"}
        return self.recipe.replace(device=device, engine=server, learner=learner)

    @cached_property
    def _memory(self) -> dict[tuple[int, int], tuple[dict[str, float], tuple[str, ...]]]:
        """What `_learner` found, by learners and tokens of a row."""
        return {}

    def _learner(self, layout: CardLayout, row: int, room: float) -> tuple[dict[str, float], tuple[str, ...]]:
        """Memory of a learner's card by part, and the settings by which it fits."""
        if (layout.learners, row) not in self._memory:
            self._memory[layout.learners, row] = self._fitted(layout, row, room)
        return self._memory[layout.learners, row]

    def _fitted(self, layout: CardLayout, row: int, room: float) -> tuple[dict[str, float], tuple[str, ...]]:
        parts, c = {}, self.recipe.learner
        sharded = {"sharded": layout.learners > 1}
        for change in ({}, {"checkpointing": True}, {"checkpointing": True, "micro_tokens": max(row, 512)}):
            if change.get("micro_tokens", 0) > c.micro_tokens:
                break
            # a row that is longer than a pass should be is a pass
            tokens = max(row, change.get("micro_tokens", c.micro_tokens))
            recipe = self._learning_alone(sharded | change | {"micro_tokens": tokens})
            parts = memory.plan(recipe, self._passes, layout.learners).parts
            settings = tuple(f"learner.{k}={str(v).lower()}" for k, v in change.items())
            if sum(parts.values()) <= room:
                return {k: float(v) for k, v in parts.items() if v}, settings
        return {k: float(v) for k, v in parts.items() if v}, settings

    def _engine(
        self, layout: CardLayout, speeds: Speeds, room: float, learner: Mapping[str, float]
    ) -> dict[str, float]:
        """Memory of a card by part while its engine samples."""
        if self.card.name == HERE:
            return {CACHE: getattr(self.recipe.engine, "cache_gigabytes", 4.0) * GIB}
        weights = {"weights (bfloat16)": 2 * self.shape.parameters / layout.tensor}
        if layout.shared and speeds is self.served:  # it sleeps while the learner works
            stays = sum(size for name, size in learner.items() if not name.startswith(PASSING))
            parts = {"what the learner keeps": stays} | weights
        elif layout.shared:
            captured = {"logits of captured passes": float(memory.of_captured(self._passes.kept.words, "bfloat16"))}
            parts = {"what the learner has": sum(learner.values())} | weights | captured
        else:
            parts = weights
        return parts | {CACHE: max(0.0, room - sum(parts.values()))}


@dataclass(frozen=True)
class RunForecast:
    """What `longstride plan` answers."""

    recipe: Recipe
    shape: Shape
    card: Card
    cards: int
    plans: list[CardPlan]
    """Of all layouts, the best first."""
    better: tuple[str, CardPlan] | None
    """What would be faster than the best of them, and its plan."""
    facts: dict[str, Sourced]
    """By name, all that went in."""

    @property
    def best(self) -> CardPlan:
        return self.plans[0]


def forecast(
    recipe: Recipe,
    cards: int = 1,
    card: Card | None = None,
    run: Path | None = None,
    assumed: Mapping[str, float] | None = None,
) -> RunForecast:
    """What a run of a recipe takes on so many cards.

    Args:
        recipe: is not made.
        cards: how many; 1 where none is named.
        card: of which kind; left out, the machine on which `run` ran, in as many processes.
        run: that was kept, with the same model and tasks: what it says takes the place of assumptions.
        assumed: see `demand_of`.

    Raises:
        ConfigError: neither card nor run, a model whose configuration is not known, or a setting that does not fit.
        RunError: the run cannot be read.
    """
    work = demand_of(recipe, run, assumed)
    with _readable(recipe) as readable:
        shape = Shape.of(readable.start)
        work = replace(work, recipe=readable)
        if card is None:
            if run is None:
                raise ConfigError("which card? Give --card H100, or --from RUN to plan for the machine of a run")
            if "latency" in (assumed or {}):
                raise ConfigError(
                    f"--assume latency: what steps of environments take is in the seconds of {run}; give --card too, "
                    "or leave it out"
                )
            if cards != 1:
                raise ConfigError(
                    f"--cards {cards} of which card? Give --card H100; a run's machine is planned as it was"
                )
            planner = here(work, shape, run)
        else:
            planner = CardPlanner(work, shape, card)
        plans = planner.best(cards)
        better, facts = _better(planner, cards, plans[0]), _facts(planner, plans[0])
        return RunForecast(recipe, shape, planner.card, cards, plans, better, facts)


def here(work: Demand, shape: Shape, run: Path) -> CardPlanner:
    """Plans for the machine of a run, used as it used it: the work of its iterations by the seconds that they took are
    its operations a second, in sampling (environments included) and in learning."""
    made, rows = rows_of(run)
    card = Card(HERE, float(room_on("cpu") or math.inf), 1.0, math.inf, math.inf)
    one, none = Sourced(1.0, "derived", ""), Sourced(0.0, "measured", f"it is in what {run} took")
    unit = Speeds(launch=none, reads=one, prefill=one, learning=one)
    then = CardPlanner(replace(demand_of(made, run), latency=none), shape, card, unit)
    layout, sampled, learned = CardLayout(1, 1, 1, True, ()), 0.0, 0.0
    for row in rows:
        # of the mean episode, brought to what this iteration played and trained
        turns = then.demand.turns(made.budget, row["iteration"])
        episodes = row["summary"]["env_steps"] / sum(turn.reached for turn in turns)
        trained = row["trained_turns"] / max(1, made.learner.epochs) / max(1, row["summary"]["env_steps"])
        share = Sourced(trained * episodes / made.episodes_per_iteration, "measured", "")
        planner = replace(then, demand=replace(then.demand, trained=share))
        sampled += sum(p.seconds for p in planner._rollout(layout, unit, math.inf, episodes, turns))
        learned += planner._learning(layout, unit, (), turns).seconds
    speeds = Speeds(
        launch=none,
        reads=one,
        prefill=Sourced(
            sampled / sum(row["rollout_seconds"] for row in rows), "measured", f"operations a second of {run}"
        ),
        learning=Sourced(
            learned / sum(row["train_seconds"] for row in rows), "measured", f"operations a second of {run}"
        ),
    )
    return CardPlanner(replace(work, latency=none), shape, card, speeds)


def _several(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


@contextmanager
def _readable(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe with a model whose configuration can be read here."""
    with described(recipe.start) as model:
        yield recipe.replace(model=model)


def _better(planner: CardPlanner, cards: int, best: CardPlan) -> tuple[str, CardPlan] | None:
    """The change of fewest card-hours that saves a twentieth of the time, or fits at all: rolling out ahead where the
    recipe may, twice the cards, or, where it does not fit, adapters; None where there is none."""
    recipe = planner.recipe
    found: dict[str, CardPlan] = {}
    if not best.fits and recipe.learner.lora is None:
        adapted = replace(planner.demand, recipe=recipe.replace(learner={"lora": {}}))
        found["learner.lora={}"] = replace(planner, demand=adapted).best(cards)[0]
    if not recipe.pool.staleness and not recipe.adaptive:
        ahead = replace(planner.demand, recipe=recipe.replace(pool={"staleness": 1}))
        found["pool.staleness=1"] = replace(planner, demand=ahead, known=planner._passes).best(cards)[0]
    if planner.card.name != HERE:
        found[f"--cards {2 * cards}"] = planner.best(2 * cards)[0]
    found = {name: p for name, p in found.items() if p.fits and (not best.fits or p.hours < 0.95 * best.hours)}
    return min(found.items(), key=lambda item: item[1].card_hours, default=None)


def _facts(planner: CardPlanner, plan: CardPlan) -> dict[str, Sourced]:
    """All that goes into a plan, by name."""
    speeds = planner.speeds(plan.layout)
    return planner.demand.facts | {
        "launching": speeds.launch,
        "bandwidth": speeds.reads,
        "reading": speeds.prefill,
        "learning": speeds.learning,
        "utilisation": planner.utilisation(
            planner.recipe.episodes_per_iteration / (plan.in_flight * plan.layout.engines)
        ),
        "memory": USABLE,
        "network": NETWORK,
        "scheduler": TURN,
    }
