"""Anytime: what an answer is worth that must be given now, at every place of a thought (MRT, arXiv 2503.07572).

What always holds: the episodes that count are those of `Direct`, id for id; the answers that are asked for measure them
and are in no summary; the seed of an episode's n-th answer depends on the episode's own and on n alone, so evaluations
stay paired. For tasks of a single turn.
"""

from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.envs.text import ANSWERING, MARK, STEP_END
from longstride.rollout.branching import answer_plan, check_single_turn, cuts
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player, with_ids
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, further_plan

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat

LONGEST = 16
"""Tokens of an answer: five numbers of a Countdown in brackets, and no room to think on."""


class Anytime(Strategy):
    """The first answer counts. Beside it answers are asked for at the start and wherever a step or the answer begins,
    as MRT's `ForcedTermination` does; `anytime` is 1 - normalised regret: the mean height, over the tokens
    of the budget, of the share of right ones among them (`regret`). A place is as many tokens from
    the start as an answer there begins with; the answer itself is not counted."""

    answers: Count = 1
    """Answers at each place. Regret is linear in them, so that one is enough where there are many tasks; the paper's
    release asks for 8."""
    longest: Count = LONGEST
    """Tokens of such an answer."""
    within: tuple[Count, ...] = ()
    """Smaller budgets, in tokens, each a measure `anytime@N` of the same answers."""
    marks: tuple[str, ...] = (STEP_END, MARK)
    """The words before which answers are asked for: what divides the steps of a thought, and what begins an answer."""
    closing: Annotated[str, Field(min_length=1)] = ANSWERING
    """The words that ask for an answer."""

    @property
    def name(self) -> str:
        own = "" if self.longest == LONGEST else f"_of_{self.longest}"
        own += "" if self.marks == (STEP_END, MARK) else f"_at_{'_'.join(map(repr, self.marks))}"
        own += "" if self.closing == ANSWERING else f"_by_{self.closing!r}"
        return f"anytime_{self.answers}{own}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where no language model plays, or episodes have several turns."""
        player = with_ids(player, f"strategy {self.name} cuts what a language model says into steps")
        check_single_turn(plans, f"strategy {self.name} asks for answers in the middle of a thought", "test_budget")
        if (least := min(map(_tokens, plans), default=0)) < max(self.within, default=0):
            raise ConfigError(
                f"strategy {self.name}: within has budgets up to {max(self.within)} tokens, and an episode may take "
                f"{least}; name smaller ones"
            )
        episodes = yield plans
        asked = [self._asked(plan, t, player.chat) for plan, t in zip(plans, episodes, strict=True)]
        answers = iter((yield [plan for of_one in asked for plan in of_one]))
        given = [list(islice(answers, len(of_one))) for of_one in asked]
        return [
            EvalEpisode(t, self._measures(plan, at, of_one), sum(answer.sampled_tokens for answer in of_one))
            for plan, t, at, of_one in zip(plans, episodes, asked, given, strict=True)
        ]

    def _asked(self, plan: Plan, episode: Trajectory, chat: "ChatFormat") -> list[Plan]:
        """The plans of an episode's answers, place by place; of a failed one none."""
        if episode.stop.failed:
            return []
        thought, closing = episode.turns[0].ids if episode.turns else [], chat.encode(self.closing)
        prefixes = [tuple(thought[:place] + closing) for place in sorted({0, *cuts(chat, thought, self.marks)})]
        return [
            further_plan(answer_plan(plan, prefix, self.longest), n)
            for n, prefix in enumerate(prefix for prefix in prefixes for _ in range(self.answers))
        ]

    def _measures(self, plan: Plan, asked: Sequence[Plan], answers: Sequence[Trajectory]) -> dict[str, float | None]:
        """`anytime` and its kin of an episode; None where it or one of its answers failed."""
        solved: dict[int, list[float]] = {}
        for at, t in zip(asked, answers, strict=True):  # an answer that the context's end cut has no turn
            solved.setdefault(len(at.prefix), []).append(float(t.success))
        curve = list(solved), [fmean(at) for at in solved.values()]
        budgets = {"anytime": _tokens(plan)} | {f"anytime@{n}": n for n in self.within}
        whole = bool(answers) and not any(t.stop.failed for t in answers)
        return {name: 1 - regret(*curve, n) if whole else None for name, n in budgets.items()}


def _tokens(plan: Plan) -> int:
    """Tokens that an episode may sample."""
    return min(plan.budget.turn_tokens, plan.budget.tokens or plan.budget.turn_tokens)


def regret(tokens_T: Sequence[float], solved_T: Sequence[float], budget: float) -> float:
    """Normalised regret of a trace against one that is right from the first token on (arXiv 2503.07572; the
    release's `regret.ipynb`): 1 minus the mean height of its success curve up to the budget. The curve begins at 0,
    goes in straight lines from point to point and stays after the last.

    Args:
        tokens_T: how long the trace was at each point, ascending, above 0.
        solved_T: share of answers given there that were right.
        budget: tokens, above 0.

    Returns:
        In [0, 1].

    Raises:
        ValueError: lengths differ or are not ascending, or the budget is not positive.
    """
    x, y = np.array([0.0, *tokens_T]), np.array([0.0, *solved_T])
    if len(x) != len(y) or (np.diff(x) <= 0).any() or budget <= 0:
        raise ValueError(
            f"regret needs ascending tokens above 0, a success rate for each of them and a budget above 0; got "
            f"{list(tokens_T)}, {list(solved_T)}, {budget}"
        )
    within = x < budget
    return 1 - float(np.trapezoid(np.append(y[within], np.interp(budget, x, y)), np.append(x[within], budget)) / budget)
