"""A judge that is a language model here: the policy of a run that learned to judge, or any model that can be loaded."""

from collections.abc import Sequence
from functools import cache

from longstride.core.implementation import implements
from longstride.engines.base import Sampling
from longstride.engines.config import Local
from longstride.rewards.scorers import Answered, Question, RunJudge
from longstride.rollout.context import FullHistory
from longstride.rollout.players import LanguagePlayer
from longstride.run.policies import load
from longstride.strategies.scored import AskedPolicy


@implements(RunJudge)
def ask(judge: RunJudge, questions: Sequence[Question], seed: int) -> list[Answered]:
    """See `RunJudge.ask`."""
    return AskedPolicy(_player(judge.run), seed)(questions)


@cache
def _player(run: str) -> LanguagePlayer:
    policy, sampling = load(run), Sampling()
    return LanguagePlayer(Local().make(policy, 0, [sampling]), policy.chat, FullHistory(), sampling)
