"""A reward for tasks that need a reader: a language model answers the questions of the task's evaluator.

What always holds: a verdict has one option for every question, chosen by more than half of the votes; without such a
majority the trajectory is failed (`JudgeFailure`) and never rewarded with 0; a task that needs no judge gets the
verdict of `evaluators.judge`, and nothing is asked. `web.judging.rubric` makes the questions and reads the replies.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from longstride.core.errors import JudgeFailure
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory, Usage
from longstride.rewards import Reward, Verdict, judged, unjudged
from longstride.web.judging.judges import OpenAIJudge
from longstride.web.judging.rubric import RubricQuestion, decide, questions


def _odd(votes: int) -> int:
    if votes % 2 == 0:
        raise ValueError("expected an odd number, so that two options cannot draw")
    return votes


class JudgedReward(Reward):
    """The verdict of a language model, 0 or 1."""

    judge: OpenAIJudge
    """Who is asked."""
    votes: Annotated[Count, AfterValidator(_odd)] = 1
    """Replies to every question. More than one are useful where the judge's temperature is not 0; evidence then has
    the options of all of them as `votes`."""

    def needs_state(self, trajectory: Trajectory) -> bool:
        return judged(trajectory)

    async def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        """Asks all questions at once and decides. The seed decides only the waits between retries. What the judge's
        answers took is added to the trajectory, also where they give no verdict.

        Raises:
            TaskError: the task's evaluator is malformed.
            JudgeFailure: a question without a verdict.
            ConfigError: as `OpenAIJudge.ask`.
        """
        if not judged(trajectory):
            return unjudged(trajectory)
        task, answer = trajectory.task, trajectory.answer

        def count(usage: Usage) -> None:
            trajectory.judge_usage = (trajectory.judge_usage or Usage()).plus(usage)

        asked = questions(task, answer, state)
        try:
            async with asyncio.TaskGroup() as group:
                ballots = {
                    q.key: [group.create_task(self._choice(q, seed, vote, count)) for vote in range(self.votes)]
                    for q in asked
                }
        except ExceptionGroup as failed:  # one is enough; the others have been cancelled
            raise failed.exceptions[0] from None
        votes = {key: [ballot.result() for ballot in ballots[key]] for key in ballots}
        verdict = decide(task, answer, state, {key: _majority(key, options) for key, options in votes.items()})
        if self.votes > 1 and votes:
            verdict.evidence["votes"] = votes
        return verdict

    async def _choice(self, question: RubricQuestion, seed: int, vote: int, count: Callable[[Usage], object]) -> str:
        """The option of one reply. If a reply has none, the question is asked once more with its last line repeated: a
        greedy model would give the same reply to the same words."""
        reply = await self.judge.ask(question.text, seed, vote, count)
        option = question.read(reply)
        if option is None:
            *_, last = question.text.splitlines()
            again = f"{question.text}\n\nAn earlier reply did not end as asked. {last}"
            reply = await self.judge.ask(again, seed, vote, count)
            option = question.read(reply)
        if option is None:
            raise JudgeFailure(
                f"the judge {self.judge.model!r} said none of {', '.join(question.options)} in two replies to question "
                f"{question.key!r}; the last ends with {reply[-100:]!r}; raise max_tokens, or take an abler model"
            )
        return option


def _majority(key: str, options: list[str]) -> str:
    option, n = Counter(options).most_common(1)[0]
    if 2 * n <= len(options):
        raise JudgeFailure(f"no option has more than half of the votes on question {key!r}: {', '.join(options)}")
    return option
