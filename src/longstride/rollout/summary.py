"""What a list of trajectories amounts to, as plain numbers.

What always holds: failed episodes are counted in `failed` and in nothing else; a mean or share of nothing is 0.0, and
the count beside it says so; keys are in one fixed order, so equal lists give equal JSON.
"""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.component import Component
from longstride.core.trajectory import Trajectory, usages

HORIZONS = {"goal_distance": "goal distance", "budget": "budget", "length": "effective horizon"}
"""Three numbers that are easily mixed up (arXiv 2605.02572), by their names in a summary, with their titles
in tables: the fewest actions that do a task, the turns that an episode may take, and the turns that it takes."""
MEASURES: dict[str, Callable[[Trajectory], float | None]] = {
    "success": lambda t: float(t.success),
    "supported": lambda t: float(t.supported),
    "reward": lambda t: t.reward,
    "length": lambda t: float(t.length),
    "budget": lambda t: float(t.budget.turns),
    "goal_distance": lambda t: t.task.optimal and float(t.task.optimal),
    "sampled_tokens": lambda t: float(t.sampled_tokens),
    "prompt_tokens": lambda t: float(sum(turn.prompt_tokens for turn in t.turns)),
}
"""What every evaluation measures of an episode, by name: what claims compare. None where a task does not say."""


class Measure(Component):
    """Family: what a recipe measures of an episode besides `MEASURES`."""

    @property
    def name(self) -> str:
        """What rows and claims call it: the class name in snake case, unless fields give different results."""
        return self.type_name()

    @abstractmethod
    def __call__(self, trajectory: Trajectory) -> float | None:
        """The value for an episode that did not fail; None for one that it says nothing of."""


def summarise(trajectories: Iterable[Trajectory]) -> dict[str, Any]:
    """The summary that metrics rows carry.

    Returns:
        `episodes` (not failed), `failed`, `env_steps` and `sampled_tokens` (sums), `slot_steps` (tokens of the
        longest episode times episodes: what is spent where each has a slot of its own until all are done), `success`
        (share that did the task), `supported` (share that did it and saw all that their answer rests on), `reward`
        (mean), `length` and
        `length_success` (mean environment steps of all, the effective horizon, and of successes), `budget` (mean of the
        turns that episodes might take), `timeouts` (share that a limit cut), `cut`,
        `idle` and `invalid` (share of turns whose generation a limit cut, of those that changed nothing, the last of
        each episode left out, and of those without a parsed action), `actions` {verb: count}, `stops` {reason: count},
        `by_difficulty`, `by_source` and, where a sampler gave them several roles, `by_role` {name: {`episodes`,
        `success`, `length`}}; likewise `by_place` {number of the episode in its trial, from 1}, where there are trials,
        with `unplayed`, the episodes that came after the ends of their trials; where tasks know it, `goal_distance`
        (mean) and `by_distance` {goal distance: the same}; where rewards have several terms,
        `terms` {name: mean over the episodes that have it}; where images and data were seen and not given to the
        policy, `left_out` (how many); where programs opened branches, `forks` {why: how many turns}; where a model
        behind a chat API spoke or judged, `costs`.
    """
    given = list(trajectories)
    played = [t for t in given if not t.stop.failed]
    steps = sum(t.length for t in played)
    acted = [turn for t in played for turn in t.turns[:-1]]  # the last turn mostly answers, which moves nothing
    verbs = Counter(turn.verb for t in played for turn in t.turns)
    by_difficulty: dict[str, list[Trajectory]] = {"easy": [], "medium": [], "hard": []}
    by_source: dict[str, list[Trajectory]] = defaultdict(list)
    by_role: dict[str, list[Trajectory]] = defaultdict(list)
    by_place: dict[int, list[Trajectory]] = defaultdict(list)
    by_distance: dict[int, list[Trajectory]] = defaultdict(list)
    terms: dict[str, list[float]] = defaultdict(list)
    left_out = sum(turn.left_out for t in played for turn in t.turns)
    forks = Counter(turn.fork for t in played for turn in t.turns if turn.fork)
    for t in played:
        for name, value in t.terms.items():
            terms[name].append(value)
        by_difficulty[t.task.difficulty].append(t)
        by_source[t.task.source].append(t)
        by_role[t.role].append(t)
        by_place[t.place + 1].append(t)
        if t.task.optimal is not None:
            by_distance[t.task.optimal].append(t)
    unplayed = sum(t.stop is StopReason.UNPLAYED for t in given)
    trials = {"by_place": {str(k): _brief(by_place[k]) for k in sorted(by_place)}, "unplayed": unplayed}
    known = [distance for distance, part in by_distance.items() for _ in part]
    distances = {
        "goal_distance": _mean(known),
        "by_distance": {str(distance): _brief(by_distance[distance]) for distance in sorted(by_distance)},
    }
    return {
        "episodes": len(played),
        "failed": len(given) - len(played) - unplayed,
        "env_steps": steps,
        "success": _mean([t.success for t in played]),
        "supported": _mean([t.supported for t in played]),
        "reward": _mean([t.reward for t in played]),
        "length": _mean([t.length for t in played]),
        "length_success": _mean([t.length for t in played if t.success]),
        "budget": _mean([t.budget.turns for t in played]),
        "timeouts": _mean([t.stop.truncated for t in played]),
        "cut": _mean([turn.finish == "length" for t in played for turn in t.turns]),
        "idle": _mean([not turn.changed for turn in acted]),
        "invalid": verbs["invalid"] / steps if steps else 0.0,
        "sampled_tokens": sum(t.sampled_tokens for t in played),
        "slot_steps": len(played) * max((t.sampled_tokens for t in played), default=0),
        "actions": dict(sorted(verbs.items())),
        "stops": dict(sorted(Counter(t.stop.value for t in played).items())),
        "by_difficulty": {name: _brief(part) for name, part in by_difficulty.items() if part},
        "by_source": {name: _brief(by_source[name]) for name in sorted(by_source)},
        **({"by_role": {name: _brief(by_role[name]) for name in sorted(by_role)}} if len(by_role) > 1 else {}),
        **(distances if known else {}),
        **(trials if any(t.place for t in given) else {}),
        **({"left_out": left_out} if left_out else {}),
        **({"forks": dict(sorted(forks.items()))} if forks else {}),
        **costs(given),
        **({"terms": {name: _mean(terms[name]) for name in sorted(terms)}} if terms else {}),
    }


def costs(trajectories: Iterable[Trajectory]) -> dict[str, dict[str, float]]:
    """`usage` and `judge_usage` (the fields of `core.trajectory.Usage`), each where there is any; of failed episodes
    too, which were paid for as well."""
    return {name: usage._asdict() for name, usage in usages(trajectories).items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _brief(part: list[Trajectory]) -> dict[str, float]:
    return {
        "episodes": len(part),
        "success": _mean([t.success for t in part]),
        "length": _mean([t.length for t in part]),
    }
