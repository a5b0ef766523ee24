"""Budgets over iterations: all limits of an episode, each a number or a schedule.

What always holds: a budget is a pure function of iteration and difficulty; a limit that is left out does not bind.
"""

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive
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
    seconds: Positive | None = None
    """Wall clock of the episode; it makes runs depend on the speed of the machine."""

    def at(self, iteration: int, difficulty: Difficulty) -> Budget:
        """The budget of an episode; `iteration` counts from 1."""
        limits = {name: getattr(self, name) for name in Budget.model_fields}
        return Budget(
            **{name: v.at(iteration, difficulty) if isinstance(v, Schedule) else v for name, v in limits.items()}
        )

    def limits(self, name: str, iteration: int) -> dict[str, int | None]:
        """The limit called `name` by difficulty, as it stands in a metrics row."""
        return {d: getattr(self.at(iteration, d), name) for d in DIFFICULTIES}
