"""Branching: episodes that begin in the middle of a thought, the oracle's or the policy's own.

What always holds: a thought is cut *before* a mark that divides its steps, so that whether to go on is still the
policy's to say; what an episode begins with is read and never trained; the number of groups and their size are the
recipe's, and what is played beyond them is counted like all else. For tasks of a single turn.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

from pydantic import Field

from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.text import MARK
from longstride.methods.progress import FORCED, GO_ON, TRACE
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Count, Planner, Sampler, Stages, by_group

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat

STEP = ";"
"""What divides the steps of a thought about a puzzle."""
MARKS = (STEP, MARK)
"""Tokens before which a thought may be cut: where the next step, or the answer, begins."""
CLOSING = f"{MARK} answer"
"""What ends a thought; the answer itself is the policy's."""
LONGEST = 16
"""Tokens of an answer that is asked for: five numbers of a Countdown in brackets, and no room to think on."""
GUIDED = "guided"
"""Role of an episode that begins with a part of a solution."""


@runtime_checkable
class Oracle(Protocol):
    """A task source that knows solutions."""

    def demonstrate(self, task: Task) -> list[str]:
        """What a solver says, turn by turn."""
        ...


def cuts(chat: "ChatFormat", ids: Sequence[int], marks: Sequence[str]) -> list[int]:
    """How many ids stand before each token that is one of the marks."""
    return [k for k, i in enumerate(ids) if chat.decode([i]) in marks]


def answering(plan: Plan, prefix: tuple[int, ...], longest: int) -> Plan:
    """The plan of an answer at once, behind a prefix that asks for it: it has room of its own, whatever the budget."""
    budget = plan.budget.model_copy(update={"tokens": None, "turn_tokens": len(prefix) + longest})
    return replace(plan, prefix=prefix, budget=budget, role=FORCED)


class OraclePrefix(Sampler):
    """POPE (arXiv 2601.18779): a task of which no episode succeeds is played again from the beginning of a solution,
    as short a beginning as leads to a success.

    Beginnings are tried from the shortest on, a group each, until a group has a success; that group is the guided one,
    and those before it teach nothing (all their rewards are equal). So the search costs no episodes beside those that
    are trained on, but for its failures.
    """

    share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """Largest part of the solution's steps that is shown."""
    checkpoints: Count = 4
    """How many beginnings there are, uniformly spaced up to `share`; fewer where the solution is short."""
    mark: str = STEP
    """The token that divides the steps of a solution."""
    unguided: bool = True
    """Whether tasks are played without guidance first; if not, every task is guided."""

    def stages(self, planner: Planner) -> Stages:
        if not isinstance(planner.source, Oracle):
            raise ConfigError(
                f"sampler {self.type_name()} shows the beginning of a solution, and tasks "
                f"{planner.source.type_name()} know none (they have no `demonstrate`); take modular_chain or countdown"
            )
        played: list[Trajectory] = []
        tasks = planner.tasks(planner.groups)
        if self.unguided:
            played += yield [plan for task in tasks for plan in planner.group(task)]
            tasks = [group[0].task for group in by_group(played) if not any(t.success for t in group)]
        unsolved = [(task, self.beginnings(planner.chat, planner.source.demonstrate(task)[0])) for task in tasks]
        for n in range(self.checkpoints):
            unsolved = [(task, shown) for task, shown in unsolved if n < len(shown)]
            groups = [planner.group(task, prefix=shown[n], role=GUIDED) for task, shown in unsolved]
            if not groups:
                break
            found = yield [plan for group in groups for plan in group]
            played += found
            solved = {t.group for t in found if t.success}
            unsolved = [u for u, group in zip(unsolved, groups, strict=True) if group[0].group not in solved]
        return played

    def beginnings(self, chat: "ChatFormat", solution: str) -> list[list[int]]:
        """The ids of the beginnings of a solution that may be shown, the shortest first: whole steps, never all."""
        ids = chat.encode(solution)
        ends = cuts(chat, ids, (self.mark,))
        wanted = {
            max(1, round(self.share * (len(ends) + 1) * n / self.checkpoints)) for n in range(1, self.checkpoints + 1)
        }
        return [ids[: ends[steps - 1]] for steps in sorted(wanted) if steps <= len(ends)]


class ForcedTermination(Sampler):
    """MRT (arXiv 2503.07572): the policy's own thought about each task is cut at a random place, and a group begins
    there of which a part must answer at once.

    The trace is an episode of its own (role `trace`). The places are its start and all marks, equally likely.
    """

    marks: tuple[str, ...] = MARKS
    """Tokens before which a trace may be cut."""
    closing: str = CLOSING
    """What ends a thought."""
    forced: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of a group that must answer at once (role `forced`); the rest may go on (role `go_on`)."""
    longest: Count = LONGEST
    """Tokens that such an answer may take, beyond the budget."""
    everywhere: bool = False
    """Whether groups begin at all places of a trace, as in the paper's online release."""

    def stages(self, planner: Planner) -> Stages:
        traces = yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task, 1, role=TRACE)]
        closing = tuple(planner.chat.encode(self.closing))
        plans = []
        for trace in traces:
            said = trace.turns[0].sampled_ids if trace.turns else []
            places = [0, *cuts(planner.chat, said, self.marks)]
            for place in places if self.everywhere else [planner.rng.choice(places)]:
                group = planner.group(trace.task, prefix=said[:place], role=GO_ON)
                forced = round(self.forced * len(group))
                # an action from the same state, so it is held against those that go on from there
                plans += [answering(plan, plan.prefix + closing, self.longest) for plan in group[:forced]]
                plans += group[forced:]
        return traces + (yield plans)
