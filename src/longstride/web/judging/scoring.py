"""A judge over HTTP for scorers: questions of `rewards.scorers` to a language model at an OpenAI-compatible address.

What always holds: a question without a verdict is a failure and never a vote; material stands between tags that it
cannot close; the words of a judge carry no probabilities, so its verdict has all of the share: votes make it graded.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from longstride.core.errors import JudgeFailure
from longstride.core.trajectory import Usage
from longstride.envs.questions import verdicts_in
from longstride.rewards.scorers import Answered, Judge, NoVerdict, Question, Reply
from longstride.web.judging.judges import OpenAIJudge
from longstride.web.judging.rubric import RubricQuestion, prompt


class HTTPJudge(Judge):
    """A language model over HTTP. It reasons as long as `judge.max_tokens` lets it; several votes on one question are
    useful where `judge.temperature` is not 0. Tokens are counted as the server counts them, if it does."""

    judge: OpenAIJudge
    """Who is asked."""

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        with ThreadPoolExecutor(1) as thread:  # a loop of its own, also where one is running (a notebook)
            return thread.submit(asyncio.run, self._ask(questions, seed)).result()

    async def _ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return await asyncio.gather(*(self._reply(q, seed) for q in questions))

    async def _reply(self, asked: Question, seed: int) -> Answered:
        words = prompt(asked.text, dict(asked.about), asked.options)
        if asked.count > 1:
            words += f"\nSay one of {', then of '.join([*asked.about][-asked.count :])}, with a space between them."
        question = RubricQuestion(words, "score", asked.options)
        took: list[Usage] = []
        try:
            said = await self.judge.ask(question.text, seed, asked.vote, took.append)
        except JudgeFailure as e:
            return e
        usage = reduce(Usage.plus, took, Usage())
        if asked.count > 1 and (verdicts := verdicts_in(said, asked.options, asked.count)):
            return Reply((), usage.sampled, usage.read, verdicts, said)
        option = question.read(said) if asked.count == 1 else None
        if option is None:
            ends = f"it said none of {', '.join(asked.options)}; its reply ends with {said[-100:]!r}"
            why = f"the judge {self.judge.model!r}: {ends}; raise max_tokens, or take an abler model"
            return NoVerdict(why, usage.sampled, usage.read)
        return Reply(tuple(float(o == option) for o in asked.options), usage.sampled, usage.read)
