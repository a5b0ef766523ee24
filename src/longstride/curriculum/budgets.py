"""Budgets over iterations: all limits of an episode, each a number or a schedule.

What always holds: a budget depends on iteration and difficulty, and, where a schedule is adaptive, on what came before
the iteration; a limit that is left out does not bind.
"""

from typing import Any

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Seconds
from longstride.core.task import DIFFICULTIES, Difficulty
from longstride.curriculum.schedules import Schedule


class BudgetSchedule(Component):
    """What an episode may take, by iteration and difficulty. Each field is a limit of `Budget`."""

    turns: Schedule | Count = Budget().turns
    """Environment steps: the horizon. An answer is a step."""
    tokens: Schedule | Count | None = None
    """Sampled tokens of the episode."""
    turn_tokens: Schedule | Count = Budget().turn_tokens
    """Sampled tokens of a turn."""
    thought_tokens: Schedule | Count | None = None
    """Sampled tokens of a turn up to `</think>`: a thought that is cut is ended for the policy, and not trained."""
    tool_calls: Schedule | Count | None = None
    """Actions other than an answer."""
    seconds: Seconds | None = None
    """Wall clock of the episode; it makes runs depend on the speed of the machine."""

    @property
    def schedules(self) -> dict[str, Schedule]:
        """By name the limits that are no numbers."""
        return {name: v for name in Budget.model_fields if isinstance(v := getattr(self, name), Schedule)}

    @property
    def adaptive(self) -> bool:
        """Whether a limit depends on earlier iterations."""
        return any(schedule.adaptive for schedule in self.schedules.values())

    def at(self, iteration: int, difficulty: Difficulty, experience: Experience | None = None) -> Budget:
        """The budget of an episode; arguments and errors are those of `Schedule.at`."""
        limits: dict[str, Any] = {name: getattr(self, name) for name in Budget.model_fields}
        now = {name: schedule.limit_at(iteration, difficulty, experience) for name, schedule in self.schedules.items()}
        return Budget(**limits | now)

    def most(self, name: str, iterations: int) -> int | None:
        """The largest limit called `name` of a run of so many iterations."""
        schedule = self.schedules.get(name)
        return getattr(self, name) if schedule is None else max(schedule.most(iterations, d) for d in DIFFICULTIES)

    def limits(self, name: str, iteration: int, experience: Experience | None = None) -> dict[str, int | None]:
        """The limit called `name` by difficulty, as it stands in a metrics row."""
        return {d: getattr(self.at(iteration, d, experience), name) for d in DIFFICULTIES}
