"""Anytime: what an answer is worth that must be given now, at every place of a thought (MRT, arXiv 2503.07572).

What always holds: the episodes that count are those of `Direct`, id for id; the answers that are asked for measure them
and are in no summary; the seed of an episode's n-th answer depends on the episode's own and on n alone, so evaluations
stay paired. For tasks of a single turn.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from longstride.algorithms.progress import FORCED, regret
from longstride.core.budget import Budget
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.text import MARK
from longstride.rollout.branching import STEP, cuts
from longstride.rollout.episode import Plan
from longstride.rollout.players import LanguagePlayer, Player
from longstride.strategies.base import Course, Played, Strategy

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat

Count = Annotated[int, Field(ge=1)]
APART = 2**32
"""Between the ordinals of two episodes' answers: more than one is asked for, or there are episodes."""


class Anytime(Strategy):
    """The first answer counts. Beside it `anytime` is 1 - normalised regret: the mean height, over the tokens of the
    budget, of the share of right answers among those asked for there (`algorithms.progress.regret`). A place is as many
    tokens from the start as an answer there begins with; the answer itself is not counted."""

    answers: Count = 1
    """Answers at each place. Regret is linear in them, so that one is enough where there are many tasks; the paper's
    release asks for 8."""
    within: tuple[Count, ...] = ()
    """Smaller budgets, in tokens, each a measure `anytime@N` of the same answers."""
    longest: Count = 16
    """Tokens that an answer may take, beyond the budget: five numbers of a Countdown in brackets, and no room to think
    on."""
    marks: tuple[str, ...] = (STEP, MARK)
    """Tokens before which an answer is asked for, beside the start: where the next step, or the answer, begins."""
    closing: str = f"{MARK} answer"
    """What ends the thought; the answer itself is the policy's."""

    @property
    def name(self) -> str:
        return f"anytime_{self.answers}"

    def stages(self, plans: Sequence[Plan], player: Player) -> Course:
        """Raises: ConfigError where no language model plays, or episodes have several turns."""
        if not isinstance(player, LanguagePlayer):
            raise ConfigError(
                f"strategy {self.name} cuts what a language model says into steps, and {type(player).__name__} is no "
                "language model; evaluate it under direct"
            )
        if (turns := max((plan.budget.turns for plan in plans), default=1)) > 1:
            raise ConfigError(
                f"strategy {self.name} asks for answers in the middle of an only turn, and episodes may take {turns}; "
                "take tasks of a single turn, with test_horizon={type='fixed', limit=1}, or evaluate under direct"
            )
        episodes = yield plans
        asked = [self._asked(plan, t, player.chat) for plan, t in zip(plans, episodes, strict=True)]
        answers = iter((yield [plan for of_one in asked for plan in of_one]))
        return [
            Played(t, self._measures(plan.budget, list(islice(answers, len(of_one)))))
            for plan, t, of_one in zip(plans, episodes, asked, strict=True)
        ]

    def _asked(self, plan: Plan, episode: Trajectory, chat: "ChatFormat") -> list[Plan]:
        """The plans of an episode's answers, place by place; of a failed one none."""
        if episode.stop.failed:
            return []
        said, closing = episode.turns[0].sampled_ids if episode.turns else [], chat.encode(self.closing)
        prefixes = [tuple(said[:place] + closing) for place in sorted({0, *cuts(chat, said, self.marks)})]
        return [
            replace(
                plan,
                ordinal=(plan.ordinal + 1) * APART + n,
                budget=plan.budget.model_copy(update={"tokens": None, "turn_tokens": len(prefix) + self.longest}),
                prefix=prefix,
                role=FORCED,
            )
            for n, prefix in enumerate(prefix for prefix in prefixes for _ in range(self.answers))
        ]

    def _measures(self, budget: Budget, answers: Sequence[Trajectory]) -> dict[str, float | None]:
        """`anytime` and its kin of an episode; None where it or one of its answers failed."""
        solved: dict[int, list[float]] = {}
        for t in answers:
            solved.setdefault(len(t.prefix), []).append(float(t.success))
        curve = list(solved), [fmean(at) for at in solved.values()]
        budgets = {"anytime": min(budget.turn_tokens, budget.tokens or budget.turn_tokens)}
        budgets |= {f"anytime@{n}": n for n in self.within}
        whole = bool(answers) and not any(t.stop.failed for t in answers)
        return {name: 1 - regret(*curve, n) if whole else None for name, n in budgets.items()}
