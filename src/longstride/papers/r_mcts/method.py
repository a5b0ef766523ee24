"""Search that reflects, and traversals of it as demonstrations.

A place is where a search came to, by what was done since the start: branches of an exact world, or what a policy said.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

from longstride.core.content import text_in
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory, Turn
from longstride.methods.base import Sample
from longstride.rewards.scorers import Score
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.run.imitation import Demonstrations, own_turns, play_texts, turn_samples
from longstride.strategies.base import EvalEpisode, EvalPlan
from longstride.strategies.search import Partial, Search, TreeSearch
from longstride.strategies.searched import Searched, SearchTask

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.models.load import Policy
    from longstride.run.recipe import Recipe

Action = TypeVar("Action")
ROUND = 2**24
"""Between the ordinals of two searches of a task: more than an evaluation has episodes."""
TRAVERSAL, REFLECTION = "traversal", "reflection"
"""In the evidence of an episode: the places that its search extended, in their order, its own last; and what it
remembers of it."""


def surprises(
    expanded: Sequence[tuple[Action, ...]], scores: Mapping[tuple[Action, ...], float]
) -> dict[tuple[Action, ...], float]:
    """Q of every place but the first that was expanded: the mean value of all that was seen below it."""
    below = {p: [v for q, v in scores.items() if len(q) > len(p) and q[: len(p)] == p] for p in expanded if p}
    return {p: fmean(values) for p, values in below.items() if values}


def shared(a: Sequence[Action], b: Sequence[Action]) -> int:
    """How long two places go together."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def moves(places: Sequence[Sequence[Action]], back: Action) -> list[Action]:
    """What is done on the way from place to place: back to the last that both come from, and on."""
    found: list[Action] = []
    for a, b in pairwise(places):
        same = shared(a, b)
        found += [back] * (len(a) - same) + list(b[same:])
    return found


class Reflective(Searched):
    """A tree search over turns, several times: after each the policy is told of the step whose value was furthest from
    what came of it (Yu et al., 2024, arXiv 2410.02052, contrastive reflection), as a line after the goal of its task.
    The last search counts, and the tokens of all."""

    search: Search = TreeSearch(expansions=16, width=3)
    mark: str = ""
    rounds: Count = 2
    """Searches of a task."""
    back: str = "Action: back"
    """What takes a step back, as the policy says it."""

    @property
    def name(self) -> str:
        return f"{super().name}_{self.rounds}_rounds"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        found, told = (yield from super().run(plans, player)), plans
        for _ in range(1, self.rounds):
            told = [self._told(plan, e.trajectory) for plan, e in zip(told, found, strict=True)]
            again = yield from super().run(told, player)
            found = [self._after(*each) for each in zip(plans, found, again, strict=True)]
        return found

    def _told(self, plan: Plan, before: Trajectory) -> Plan:
        """The plan of the next search of a task, after one that was planned so. Its goal is that of the plan: what the
        environment says of its actions is said anew."""
        goal = "\n".join(filter(None, [plan.task.goal, before.evidence.get(REFLECTION, "")]))
        return replace(plan, task=plan.task.model_copy(update={"goal": goal}), ordinal=ROUND + plan.ordinal)

    def _after(self, plan: Plan, before: EvalEpisode, now: EvalEpisode) -> EvalEpisode:
        measures = {name: (before.measures[name] or 0) + (value or 0) for name, value in now.measures.items()}
        trajectory = replace(now.trajectory, ordinal=plan.ordinal)
        further = now.further_tokens + before.spent_tokens
        return EvalEpisode(trajectory, measures, further, now.read_tokens + before.read_tokens)

    def partial(self, plan: Plan, came: Trajectory, of: Score) -> Partial:
        """As every search has it; what led nowhere is worth nothing."""
        if of.value is not None and came.turns and not came.stop.terminated and not _moves(came.turns[-1]):
            of = of._replace(value=0.0)
        return super().partial(plan, came, of)

    def ended(self, task: SearchTask) -> EvalEpisode:
        found = super().ended(task)
        traversal = [self._way(t) for t in (*_until_done(task), found.trajectory)]
        evidence = found.trajectory.evidence | {TRAVERSAL: traversal, REFLECTION: _reflection(task)}
        return found._replace(trajectory=replace(found.trajectory, evidence=evidence))

    def _way(self, so_far: Trajectory | None) -> list[str]:
        """What led to where a partial is, without what led nowhere and what was taken back."""
        way: list[str] = []
        for turn in so_far.turns if so_far else ():
            if turn.text.strip() == self.back:
                way = way[:-1]
            elif _moves(turn) or so_far and turn is so_far.turns[-1] and so_far.stop.terminated:
                way.append(turn.text)
        return way


def _moves(turn: Turn) -> bool:
    return turn.error is None and turn.changed


def _place(so_far: Trajectory | None) -> tuple[str, ...]:
    return tuple(turn.text for turn in so_far.turns) if so_far else ()


def _until_done(task: SearchTask) -> list[Trajectory | None]:
    """What was extended, in its order, until the task was done."""
    done = {_place(p.state)[:-1] for p in task.made if p.done and p.state.success}
    found: list[Trajectory | None] = []
    for p in task.extended:
        found.append(p.state)
        if _place(p.state) in done:
            break
    return found


def _reflection(task: SearchTask) -> str:
    """What came of the most surprising step: what was said, and what was seen then; empty where nothing surprised."""
    scores = {_place(p.state): p.score for p in task.made}
    q = surprises([_place(p.state) for p in task.extended], scores)
    if not q:
        return ""
    place = max(q, key=lambda p: abs(scores[p] - q[p]))
    child = next(p.state for p in task.made if _place(p.state)[: len(place)] == place and p.state.length > len(place))
    return " ".join(f"{place[-1]} : {text_in(child.turns[len(place)].observation)}".split())


class Traversals(Demonstrations):
    """Whole traversals of searches that came to the end, errors and ways back among them, as episodes of a policy that
    acts without a search (exploratory learning). The environment must be able to take a step back."""

    search: Reflective = Reflective()
    """How tasks are searched; it says what takes a step back."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        from longstride.run.policies import load

        return self.of_policy(load(recipe.start, recipe.chat, recipe.device), recipe, episodes, rng)

    def of_policy(self, policy: "Policy", recipe: "Recipe", episodes: int, rng: random.Random) -> list[Sample]:
        """Those that take at most the turns of an evaluation, played again from the start; what had no effect is read
        and not imitated."""
        from longstride.run.evaluation import evaluate_player
        from longstride.run.teachers import beside

        player, own = beside(policy, recipe, rng)
        tasks = recipe.tasks.sample(rng, episodes)
        searched = evaluate_player(player, own, tasks, self.search).trajectories
        found = [(task, t) for task, t in zip(tasks, searched, strict=True) if t.success and not t.stop.failed]
        texts = [moves([(), *t.evidence[TRAVERSAL]], self.search.back) for _, t in found]
        plans = [Plan(task, k, t.seed, own.test_budget.at(1, task.difficulty)) for k, (task, t) in enumerate(found)]
        return [
            sample
            for t in play_texts(recipe, plans, texts)
            if t.success
            for sample, k in zip(turn_samples(t, recipe, policy.chat), own_turns(t, recipe), strict=True)
            if t.turns[k].error is None
        ]
