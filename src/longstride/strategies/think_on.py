"""Think on: thoughts are made to go on where they end, and are ended by force where they have become long enough
(budget forcing: Muennighoff et al. 2025, "s1: Simple test-time scaling", arXiv 2501.19393, section 3).

What always holds: what ends a thought is taken out, and a word that begins another is put in its place, as often as is
asked for in every turn; a thought that has as many tokens as it may have gets its end, given and not sampled; then the
policy acts. An episode is played in stages, from one end of a thought to the next, and what was said before is played
again: read, and sampled once. All sampled tokens are counted (`spent_tokens`), those that were taken out too; the
tokens of the trajectory that counts are those of its last stage alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.numbers import CountOrZero, Limit
from longstride.core.trajectory import Trajectory
from longstride.envs.text import MARK, THOUGHT
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import Player, with_ids
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, nth_plan

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


@dataclass(slots=True)
class _Played:
    """An episode under way."""

    plan: Plan
    """As the evaluation planned it."""
    stage: Plan
    """What is played next."""
    end: Trajectory | None = None
    """Of the last stage so far."""
    over: bool = False
    thoughts: int = 0
    """How often the thought of the turn that is open was made to go on."""
    tokens: list[int] = field(default_factory=list)
    """Sampled in each stage."""


class ThinkOn(Strategy):
    """Thoughts of a length that is asked for. What ends one is `</think>` where the model has it, else `end`."""

    times: CountOrZero | None = None
    """How often each thought is made to go on, at most; where left out, until it has `most` tokens, or once."""
    word: Annotated[str, Field(min_length=1)] = THOUGHT
    """What is put in place of its end; `Wait` for reasoning models (s1)."""
    end: str = MARK
    """What ends a thought: `Verdict:` for judges."""
    most: Limit = None
    """Tokens of a thought, all that stands before its end, at which it is ended by force. One that ends so shortly
    before that the word would fill it up is left as it is."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.times == 0 and self.most is None:
            raise ValueError("times=0 changes no thought without most: name the tokens of the longest one")
        return self

    @property
    def at_most(self) -> int | None:
        """How often each thought is made to go on, at most; None: as often as it ends."""
        return 1 if self.times is None and self.most is None else self.times

    @property
    def name(self) -> str:
        parts = ["think_on", self.at_most, self.word if self.word != THOUGHT else None]
        parts.append(None if self.end == MARK else f"before_{self.end}")
        parts.append(None if self.most is None else f"to_{self.most}")
        return "_".join(str(part) for part in parts if part is not None)

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where no language model plays, or a turn has no room for such thoughts."""
        player = with_ids(player, f"strategy {self.name} decides how long a language model thinks")
        least = min((plan.budget.turn_tokens for plan in plans), default=0)
        if plans and self.most is not None and least <= self.most:
            raise ConfigError(
                f"strategy {self.name} lets thoughts have {self.most} tokens, and a turn may have {least}, its action "
                "included; name fewer, or raise test_budget.turn_tokens"
            )
        forcing = _Forcing(self, player.chat)
        episodes = [_Played(plan, forcing.stage(plan, plan.history, plan.prefix)) for plan in plans]
        while under_way := [e for e in episodes if not e.over]:
            for episode, came in zip(under_way, (yield [e.stage for e in under_way]), strict=True):
                forcing.take(episode, came)
        return [_ended(episode) for episode in episodes]


class _Forcing:
    """How long thoughts are made, in the ids of a chat."""

    def __init__(self, asked: ThinkOn, chat: "ChatFormat") -> None:
        self._asked, self._chat = asked, chat
        ids = (chat.thought_end,) if chat.thought_end is not None else chat.encode(asked.end)
        self._end = tuple(ids)
        self._close = tuple(ids if chat.thought_end is None else chat.thought_close)
        self._word = tuple(chat.encode(asked.word))

    def stage(
        self, plan: Plan, history: tuple[PastTurn, ...], prefix: tuple[int, ...], acts: bool = False, number: int = 0
    ) -> Plan:
        """The plan of a stage of an episode: up to the next end of a thought. Where thoughts are cut it is one turn at
        most: its thought, or what follows that (`acts`)."""
        marks, budget, most = (self._end,), plan.budget, self._asked.most
        if most is not None:
            limits = {"turns": len(history) + 1} | ({} if acts else {"turn_tokens": most})
            marks, budget = () if acts else marks, budget.model_copy(update=limits)
        return replace(nth_plan(plan, number), history=history, prefix=prefix, marks=marks, budget=budget)

    def take(self, episode: _Played, came: Trajectory) -> None:
        """Keeps a stage, and plans the next one where the episode is not over."""
        asked, stage, episode.end = self._asked, episode.stage, came
        episode.tokens.append(came.sampled_tokens)
        history, prefix, acts = PastTurn.of(came.turns), (), False
        if came.stop is StopReason.MARK:
            if len(history) > len(stage.history) + 1:
                episode.thoughts = 0
            *past, (_, prefix, _) = history
            longer = prefix[: len(prefix) - len(self._end)] + self._word
            acts = episode.thoughts == asked.at_most or asked.most is not None and len(longer) >= asked.most
            if not acts:
                prefix, episode.thoughts = longer, episode.thoughts + 1
            history = tuple(past)
        elif self._is_cut(stage, came):
            *past, (_, prefix, _) = history
            is_open = self._chat.thought_end is None or self._chat.is_thinking(prefix)
            history, prefix, acts = tuple(past), prefix + self._close * is_open, True
        elif came.stop is StopReason.TURNS and came.length < episode.plan.turns:
            episode.thoughts = 0
        else:
            episode.over = True
        episode.stage = self.stage(episode.plan, history, prefix, acts, len(episode.tokens))

    def _is_cut(self, stage: Plan, came: Trajectory) -> bool:
        """Whether a stage ended in a thought that has as many tokens as it may have."""
        most, thinks = self._asked.most, bool(stage.marks)
        if most is None or not thinks or came.stop.failed or len(came.turns) <= len(stage.history):
            return False
        return came.turns[-1].finish == "length" and len(came.turns[-1].ids) >= most


def _ended(episode: _Played) -> EvalEpisode:
    """The episode that counts, under the number and the budget of its plan, and the tokens of the stages before its
    last."""
    assert episode.end is not None
    episode.end.ordinal = episode.plan.ordinal
    episode.end.budget = episode.plan.budget.model_copy(update={"turns": episode.plan.turns})
    return EvalEpisode(episode.end, further_tokens=sum(episode.tokens[:-1]))
