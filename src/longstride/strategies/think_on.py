"""Think on: each time that a thought ends, it is made to go on (budget forcing: Muennighoff et al. 2025, "s1: Simple
test-time scaling", arXiv 2501.19393, section 3).

What always holds: what ends a thought is taken out, and a word that begins another is put in its place, as often as is
asked for in every turn; then the policy acts. An episode is played in stages, from one end of a thought to the next,
and what was said before is played again: read, and sampled once. All sampled tokens are counted (`spent_tokens`), those
that were taken out too; the tokens of the trajectory that counts are those of its last stage alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.envs.text import MARK, THOUGHT
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import LanguagePlayer, Player
from longstride.strategies.base import APART, EvalEpisode, EvalPlan, Strategy


@dataclass(slots=True)
class _Played:
    """An episode under way."""

    plan: Plan
    """Its next stage."""
    end: Trajectory | None = None
    """Of the last stage so far."""
    thoughts: int = 0
    """How often the thought of the turn that is open was made to go on."""
    tokens: list[int] = field(default_factory=list)
    """Sampled in each stage."""


class ThinkOn(Strategy):
    """Forced longer thoughts. What ends one is `</think>` where the model has it, else `Action:`."""

    times: Count = 1
    """How often each thought is made to go on."""
    word: str = THOUGHT
    """What is put in place of its end; `Wait` for reasoning models (s1)."""

    @property
    def name(self) -> str:
        return f"think_on_{self.times}" + (f"_{self.word}" if self.word != THOUGHT else "")

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where no language model plays."""
        if not isinstance(player, LanguagePlayer):
            raise ConfigError(
                f"strategy {self.name} makes a language model think on, and {type(player).__name__} is none; evaluate "
                "it under direct"
            )
        end = (player.chat.thought_end,) if player.chat.thought_end is not None else tuple(player.chat.encode(MARK))
        word = tuple(player.chat.encode(self.word))
        episodes = [_Played(replace(plan, marks=(end,))) for plan in plans]
        while under_way := [e for e in episodes if e.end is None or e.end.stop is StopReason.MARK]:
            for episode, came in zip(under_way, (yield [e.plan for e in under_way]), strict=True):
                self._take(episode, came, end, word)
        return [_ended(episode, plan) for episode, plan in zip(episodes, plans, strict=True)]

    def _take(self, episode: _Played, came: Trajectory, end: tuple[int, ...], word: tuple[int, ...]) -> None:
        """Keeps a stage, and plans the next one where it paused at the end of a thought."""
        before, episode.end = episode.plan.history, came
        episode.tokens.append(came.sampled_tokens)
        if came.stop is not StopReason.MARK:
            return
        *past, now = came.turns
        if len(past) > len(before):
            episode.thoughts = 0
        thought = tuple(now.ids)
        if episode.thoughts < self.times:
            thought = thought[: len(thought) - len(end)] + word
            episode.thoughts += 1
        first = episode.plan.ordinal if len(episode.tokens) > 1 else (episode.plan.ordinal + 1) * APART
        history = tuple(PastTurn(turn.text, tuple(turn.ids)) for turn in past)
        episode.plan = replace(episode.plan, ordinal=first + 1, prefix=thought, history=history)


def _ended(episode: _Played, plan: Plan) -> EvalEpisode:
    """The episode that counts, under the number of its plan, and the tokens of the stages before its last."""
    assert episode.end is not None
    episode.end.ordinal = plan.ordinal
    return EvalEpisode(episode.end, further_tokens=sum(episode.tokens[:-1]))
