"""The score of a judge as a reward: for tasks that no verifier judges.

What always holds: an answer earns the value that the scorer gives it; one that could not be scored fails the episode
(`JudgeFailure`) and is never rewarded with 0; what the judge sampled and read is kept with the episode, and summaries
add it up. A judge says the same of the same answer to the same task.
"""

from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from longstride.core.errors import JudgeFailure
from longstride.core.trajectory import Trajectory, Usage
from longstride.rewards.evaluators import Verdict
from longstride.rewards.scorers import Answered, AnyJudge, Generative, Pairwise, Scorer
from longstride.rewards.task_reward import Reward

SEED = 0
"""Of what a judge samples: its verdict on an answer is one function of task and answer."""


class ScoredReward(Reward):
    """The value of an answer, between 0 and 1, by a scorer; it counts as done from 0.5 on. An episode without an answer
    earns 0 and asks nobody. `reward.type=scored_reward reward.judge=RUN` takes the judge that a run trained."""

    judge: AnyJudge | None = None
    """Who is asked; a text is a run folder, a model's folder, or a name. Left out where the scorer asks nobody."""
    scorer: Scorer = Generative()
    """What it is asked of the one answer that there is."""
    shown: Literal["answer", "turn"] | None = None
    """What is judged: the answer alone, or all that was said in the turn that gave it; left out, what the judge is used
    to."""

    @field_validator("scorer")
    @classmethod
    def _scores_one_answer(cls, scorer: Scorer) -> Scorer:
        if isinstance(scorer, Pairwise):
            raise ValueError(
                "pairwise compares answers, and a reward sees one: take scorer.type=generative, or reward.type=duels "
                "with preference.type=asked_pair"
            )
        return scorer

    @model_validator(mode="after")
    def _knows_whom_to_ask(self) -> Self:
        if self.judge is None and self.scorer.asks:
            raise ValueError(
                f"the scorer {self.scorer.type_name()} asks somebody: set reward.judge to a run or a model"
            )
        return self

    def needs_state(self, trajectory: Trajectory) -> bool:
        return False

    async def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        """Raises: JudgeFailure where the judge gives no verdict."""
        if trajectory.answer is None:
            return Verdict(0.0, False)
        judge = self.judge
        shown = self.shown or (judge.reads if judge else "answer")
        said = trajectory.turns[-1].text if shown == "turn" else trajectory.answer
        scoring, replies = self.scorer.run(trajectory.task.goal, [said]), list[Answered]()
        try:
            questions = next(scoring)
            while True:
                assert judge is not None  # a scorer that asks has one
                replies = list(await judge.answers(questions, SEED))
                questions = scoring.send(replies)
        except StopIteration as end:
            (score,) = end.value
        taken = Usage(len(replies), read=score.read, sampled=score.tokens)
        trajectory.judge_usage = (trajectory.judge_usage or Usage()).plus(taken)
        who = judge.name if judge else self.scorer.name
        if score.value is None:
            if not replies:
                raise JudgeFailure(f"the scorer {self.scorer.type_name()} gave the answer no value, and asked nobody")
            raise JudgeFailure(f"the judge {who} gave no verdict: {replies[0]}")
        return Verdict(score.value, score.value >= 0.5, evidence={"evaluator": who})
