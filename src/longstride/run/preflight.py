"""What is known to be impossible before anything is played: limits that the model's context cannot hold, more held-out
tasks than there are, a critic whose own model has other tokens, tasks that the curriculum cannot draw, and stored
episodes that are not there.

What always holds: only what cannot be otherwise is refused: prompts are counted at their shortest, with empty
observations and turns of one token; a context policy that does not keep all turns is not judged by their number.
"""

from collections.abc import Callable
from pathlib import Path

from longstride.core.errors import ConfigError
from longstride.curriculum import BudgetSchedule
from longstride.models.load import Policy, load_tokenizer
from longstride.rollout.context import Past, Transcript
from longstride.run.policies import check_tokens
from longstride.run.recipe import Recipe


def preflight(recipe: Recipe, policy: Policy) -> None:
    """Refuses a recipe that cannot run as it stands.

    Raises:
        ConfigError: names the setting, what it is, and what would fit.
        ModelError: the model that a critic reads by has other tokens than the policy.
    """
    if recipe.critic and (reader := recipe.critic.reads_by):
        check_tokens(policy, load_tokenizer(reader).get_vocab(), f"critic: {reader!r}")
    if recipe.stored_run and not Path(recipe.stored_run).exists():
        raise ConfigError(
            f"stored_run: there is no {recipe.stored_run}; give the folder of a run, or of episodes that "
            "`longstride export` wrote"
        )
    recipe.curriculum.check(recipe.tasks)
    asked = recipe.evaluation.tasks
    tasks = recipe.tasks.held_out(asked)
    if len(tasks) < asked:
        raise ConfigError(
            f"evaluation.tasks is {asked}, and the task set has {len(tasks)} held-out tasks; "
            + (f"set evaluation.tasks={len(tasks)}" if tasks else "add some")
        )
    goal = min((task.goal for task in tasks), key=len)
    end = [policy.chat.close[0]]

    def shortest(turns: int) -> int:
        """Tokens of the prompt of a turn, counted from 1."""
        return len(recipe.context.render(policy.chat, Past(goal, [""] * turns, [end] * (turns - 1))))

    for name, schedule, iterations in (
        ("budget", recipe.budget, recipe.iterations),
        ("test_budget", recipe.test_budget, 1),
    ):
        _check(name, schedule, iterations, shortest if isinstance(recipe.context, Transcript) else None, policy)


def _check(
    name: str, schedule: BudgetSchedule, iterations: int, shortest: Callable[[int], int] | None, policy: Policy
) -> None:
    """Refuses limits of one budget; `shortest` counts the tokens of a turn's prompt."""
    turns, turn_tokens = schedule.most("turns", iterations) or 0, schedule.most("turn_tokens", iterations) or 0
    holds = policy.max_context
    first = shortest(1) if shortest else 1
    if first + turn_tokens > holds:
        raise ConfigError(
            f"{name}.turn_tokens is {turn_tokens}, and {policy.name} sees {holds} tokens, of which a prompt takes "
            f"{first} or more; set {name}.turn_tokens to at most {max(1, holds - first)}"
        )
    if shortest and shortest(turns) >= holds:
        fit = (holds - 1 - first) // max(1, shortest(2) - first) + 1
        raise ConfigError(
            f"{name}.turns goes up to {turns}, and {policy.name} sees {holds} tokens: the shortest prompt of turn "
            f"{turns} has {shortest(turns)}; set {name}.turns to at most {fit}, or another context (context.type=...)"
        )
