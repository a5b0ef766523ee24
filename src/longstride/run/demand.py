"""What an iteration of a recipe asks of engines and learner, in tokens: from its settings, from a run that was kept,
and assumed where neither says.

What always holds: each number says which of these it is. No torch is needed for a demand that no run measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.task import DIFFICULTIES
from longstride.core.trajectory import Trajectory, Turn
from longstride.curriculum import BudgetSchedule
from longstride.engines.cache import common_prefix
from longstride.learner.packing import SHARE, SHARED
from longstride.rollout.context import LatestObservation, RecentObservations
from longstride.rollout.simulated import Workload as Simulated
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.cards import Sourced
from longstride.run.experiment import load_run_experiment
from longstride.run.folder import read_rows
from longstride.run.recipe import Recipe

PLACEHOLDER = 4
"""Tokens that stand where an older page stood (assumed)."""
_USUAL = Simulated(places=1, servers=1)


@dataclass(frozen=True)
class Demand:
    """An iteration of a recipe."""

    recipe: Recipe
    ends: Sourced
    """Chance that an episode ends at a turn by itself; its budget of turns, tokens or tool calls ends it otherwise."""
    tokens: Sourced
    """Sampled in a turn."""
    page: Sourced
    """Tokens of an observation, with what a chat template puts around it."""
    head: Sourced
    """Tokens of a prompt before the first observation."""
    latency: Sourced
    """Seconds of a step of the environment."""
    trained: Sourced
    """Share of an iteration's episodes that is trained on."""

    @property
    def facts(self) -> dict[str, Sourced]:
        """By name."""
        return {name: getattr(self, name) for name in NAMES}

    @property
    def samples(self) -> float:
        """Episodes that an iteration trains on."""
        return self.recipe.episodes_per_iteration * self.trained.value

    def most_turns(self, budget: BudgetSchedule, iteration: int) -> tuple[int, ...]:
        """Turns that an episode of an iteration may take, by difficulty: its budget may have tokens or tool calls for
        fewer than it names."""
        limits = [budget.at(iteration, d) for d in DIFFICULTIES]
        tokens = [math.inf if b.tokens is None else math.ceil(b.tokens / self.tokens.value) for b in limits]
        return tuple(int(min(b.turns, b.tool_calls or b.turns, n)) for b, n in zip(limits, tokens, strict=True))

    def turns(self, budget: BudgetSchedule, iteration: int) -> list["TurnDemand"]:
        """The turns of an episode of an iteration, in the mean over difficulties.

        Prompts go by the recipe's context; any but the two that forget is taken for one that only grows. What the
        learner computes goes by `learner.packing.trees`: a turn joins the row of the one before where its prompt
        continues that, or branches off late enough and the row stays within `learner.micro_tokens`.
        """
        context, page, said = self.recipe.context, self.page.value, self.tokens.value
        limits = self.most_turns(budget, iteration)
        limit, first = self.recipe.learner.micro_tokens, self.head.value + page
        found: list[TurnDemand] = []
        branched, row = False, 0.0
        for n in range(max(limits)):
            reached = (1 - self.ends.value) ** n * fmean(n < most for most in limits)
            prompt, new = first, page
            if isinstance(context, RecentObservations):
                old = max(0, n + 1 - context.keep)
                prompt = self.head.value + n * said + old * PLACEHOLDER + (n + 1 - old) * page
                new = PLACEHOLDER + context.keep * (said + page) if old else page
            elif not isinstance(context, LatestObservation):
                prompt += n * (page + said)
            new = new if n else prompt
            branches = branched or prompt - new < (found[-1].prompt + said if found else 0.0)
            late = prompt - new >= max(SHARED, SHARE * (prompt + said))
            joins = n > 0 and (not branches or (late and row + new + said <= limit))
            row, branched = (row + new + said, branches) if joins else (prompt + said, False)
            found.append(TurnDemand(reached, prompt, new, new + said if joins else prompt + said, row))
        return found


@dataclass(frozen=True)
class TurnDemand:
    """A turn of an episode."""

    reached: float
    """Share of the episodes that come to it."""
    prompt: float
    """Tokens of its prompt."""
    new: float
    """Those of them that an engine reads: no earlier prompt of the episode had them at the same place."""
    learned: float
    """Tokens that the learner computes for it, what it shares with earlier turns left out."""
    row: float
    """Tokens of the learner's row up to it."""


NAMES = "ends", "tokens", "page", "head", "latency", "trained"
"""What may be assumed otherwise."""


def demand_of(recipe: Recipe, run: Path | None = None, assumed: Mapping[str, float] | None = None) -> Demand:
    """What a recipe asks for.

    Args:
        recipe: whose settings count.
        run: a run that was kept, of the same tasks, whose episodes say what settings do not.
        assumed: by name, in place of what else would be taken.

    Raises:
        ConfigError: an unknown name, or a number that its name does not allow.
        RunError: the run cannot be read, or has nothing that was sampled.
    """
    usual = "as in the simulation of the scheduler; {}"
    limit = max(n or 1 for n in recipe.budget.limits("turn_tokens", 1).values())
    kept = getattr(recipe.replay, "keep", math.inf)
    share = min(1.0, kept / recipe.episodes_per_iteration)
    how = "--assume {}=NUMBER or --from RUN says better"
    facts = {
        "ends": Sourced(0.0, "assumed", f"every episode takes all turns of its budget; {how.format('ends')}"),
        "tokens": Sourced(min(limit, _USUAL.tokens.mean), "assumed", f"limit {limit}; {how.format('tokens')}"),
        "page": Sourced(_USUAL.page, "assumed", usual.format(how.format("page"))),
        "head": Sourced(_USUAL.head, "assumed", usual.format(how.format("head"))),
        "latency": Sourced(_USUAL.latency.mean, "assumed", usual.format(how.format("latency"))),
        "trained": Sourced(share, "assumed", f"as many episodes as the replay gives at most; {how.format('trained')}"),
    }
    facts |= measured(run) if run is not None else {}
    for name, value in (assumed or {}).items():
        if name not in NAMES:
            raise ConfigError(unknown("assumption", name, NAMES))
        if not value >= 0 or math.isinf(value) or (name == "ends" and value > 1) or (name == "tokens" and not value):
            wanted = {"ends": "a chance, from 0 to 1", "tokens": "a number above 0"}.get(name, "a number of 0 or more")
            raise ConfigError(f"--assume {name}={value:g}: expected {wanted}")
        facts[name] = Sourced(value, "assumed", "given with the command")
    return Demand(recipe, **facts)


def measured(run: Path) -> dict[str, Sourced]:
    """What the episodes and rows of a run say.

    Raises:
        RunError: it cannot be read, or nothing was sampled in it.
    """
    recipe, rows = rows_of(run)
    episodes = [t for t in TrajectoryStore(run / TRAJECTORIES) if t.turns and not t.stop.failed]
    turns = [turn for t in episodes for turn in t.turns]
    if not turns or not all(t.prompt_ids and t.sampled_ids for t in turns):
        raise RunError(f"{run} has no episodes with token ids; expected a run that sampled from a model of tokens")
    said, context = fmean(len(t.sampled_ids) for t in turns), recipe.context
    keep = context.keep if isinstance(context, RecentObservations) else math.inf

    def page_of(n: int, a: Turn, b: Turn) -> float:
        """Tokens of a page, by what a turn reads anew that so many stand before: from where it leaves out an older page
        on, or its own page alone."""
        new = len(b.prompt_ids) - common_prefix(a.prompt_ids + a.sampled_ids, b.prompt_ids)
        return new if n < keep else (new - PLACEHOLDER) / keep - said

    pages = [page_of(n, a, b) for t in episodes for n, (a, b) in enumerate(pairwise(t.turns), 1)]
    page = max(0.0, fmean(pages)) if pages else float(len(turns[0].prompt_ids))
    steps = sum(row["summary"]["env_steps"] for row in rows)
    values = {
        "ends": sum(not _by_budget(t) for t in episodes) / len(turns),
        "tokens": said,
        "page": page,
        "head": max(0.0, fmean(len(t.turns[0].prompt_ids) for t in episodes) - page),
        "trained": sum(row["trained_turns"] for row in rows) / max(1, recipe.learner.epochs) / max(1, steps),
    }
    return {name: Sourced(value, "measured", f"episodes of {run}") for name, value in values.items()}


def _by_budget(t: Trajectory) -> bool:
    """Whether a limit ended an episode that `Demand.most_turns` knows of. A stop at `tokens` is that of a turn where
    the episode has none."""
    spent = t.stop is StopReason.TOKENS and t.budget.tokens is not None
    return spent or t.stop in (StopReason.TURNS, StopReason.TOOL_CALLS)


def rows_of(run: Path) -> tuple[Recipe, Sequence[dict[str, Any]]]:
    """The recipe of a run, and its rows of iterations that trained.

    Raises:
        ConfigError: it is no run of a language agent.
        RunError: it cannot be read, or no iteration of it is complete.
    """
    recipe = load_run_experiment(run)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"{run} is a run of a {recipe.type_name()}; expected one of a language agent")
    rows = [row for row in read_rows(run / "metrics.jsonl") if row["kind"] == "train"]
    if not rows:
        raise RunError(f"{run} has no complete iteration, so it says nothing of what one takes")
    return recipe, rows
