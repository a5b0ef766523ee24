"""Best of n by a scorer: the policy itself is asked, or a judge.

What always holds: what a scorer samples is in `spent_tokens`, and with what it reads in `scored_tokens`; an attempt
that could not be scored is a failed one (`StopReason.INFRA_FAILURE`), so it is chosen only where all are, and then the
task counts as failed, not as unsolved; the score of an attempt is in its evidence as `score`; attempts of a task that
say the same are scored once.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Literal

from longstride.core.budget import StopReason
from longstride.core.errors import EngineFailure
from longstride.core.seeds import derive
from longstride.core.trajectory import LOGPROB_DIGITS, Trajectory
from longstride.engines.base import Completion, Request
from longstride.envs.questions import VERDICT, Question, verdicts_in
from longstride.rewards.scorers import Answered, AnyJudge, Generative, NoVerdict, Reply, Score, Scorer, score
from longstride.rollout.players import Player, with_ids
from longstride.strategies.base import EvalEpisode
from longstride.strategies.best_of import Choice

_log = logging.getLogger(__name__)


class Scored(Choice):
    """The attempt with the highest score, the first of equals."""

    scorer: Scorer = Generative()
    """Says how good an answer is; an attempt without one is worth 0 and asks nobody."""
    judge: AnyJudge | None = None
    """Who is asked; a text is a run folder, a model's folder, or a name. The policy itself where left out."""
    shown: Literal["answer", "turn"] | None = None
    """What is scored: the answer alone, or all that was said in the turn that gave it, its reasons too. Left out, what
    the judge is used to; of the policy itself, the answer alone."""

    @property
    def name(self) -> str:
        asked = f"_{self.judge.name}" if self.judge else ""
        return self.scorer.name + asked + ("_turn" if self._shows == "turn" else "")

    @property
    def _shows(self) -> Literal["answer", "turn"]:
        return self.shown or (self.judge.reads if self.judge else "answer")

    def check(self, player: Player) -> None:
        if self.judge is None:
            AskedPolicy(player, 0)

    def __call__(self, attempts: Sequence[Trajectory]) -> Trajectory:
        return max(attempts, key=lambda t: t.evidence.get("score", 0.0))

    def choose(self, groups: Sequence[Sequence[Trajectory]], player: Player) -> list[EvalEpisode]:
        seed = groups[0][0].seed if groups else 0

        def ask(questions: Sequence[Question]) -> Sequence[Answered]:
            replies = self.judge.ask(questions, seed) if self.judge else AskedPolicy(player, seed)(questions)
            if failed := [r for r in replies if not isinstance(r, Reply)]:
                _log.warning("%d of %d questions of a scorer have no reply: %s", len(failed), len(replies), failed[0])
            return replies

        shown = [list(dict.fromkeys(self._shown(t) for t in g if _is_scored(t))) for g in groups]
        tasks = [(g[0].task.goal, answers) for g, answers in zip(groups, shown, strict=True) if answers]
        found = iter(score(self.scorer, tasks, ask))
        scores = [dict(zip(answers, next(found), strict=True)) if answers else {} for answers in shown]
        marked = [
            [_marked(t, of[self._shown(t)]) if _is_scored(t) else t for t in g]
            for g, of in zip(groups, scores, strict=True)
        ]
        return [
            episode._replace(
                further_tokens=episode.further_tokens + sum(s.tokens for s in of.values()),
                measures={"scored_tokens": sum(s.tokens + s.read for s in of.values())},
                read_tokens=sum(s.read for s in of.values()),
            )
            for episode, of in zip(super().choose(marked, player), scores, strict=True)
        ]

    def _shown(self, attempt: Trajectory) -> str:
        return attempt.turns[-1].text if self._shows == "turn" else attempt.answer or ""


def _is_scored(attempt: Trajectory) -> bool:
    return attempt.answer is not None and not attempt.stop.failed


def _marked(attempt: Trajectory, of: Score) -> Trajectory:
    """The attempt with its score as evidence, or as failed."""
    if of.value is None:
        return replace(attempt, stop=StopReason.INFRA_FAILURE, reward=0.0, success=False)
    return replace(attempt, evidence=attempt.evidence | {"score": round(of.value, 6)})


class AskedPolicy:
    """Asks a player's own model: reasons first where there are to be any, then the verdict.

    A share is read off the verdict that was sampled: its probability p, and 1 - p for the other of two options, as the
    engine reports it for the way of sampling at hand (greedy sampling makes it 1). Where the model says none of the
    options, that is a failure and no verdict.

    Args:
        player: who played; nothing is open with it any more.
        seed: what is sampled derives from it, the question and the vote.
    """

    def __init__(self, player: Player, seed: int) -> None:
        self._player, self._seed = with_ids(player, "a scorer without a judge asks the policy itself"), seed

    def __call__(self, questions: Sequence[Question]) -> list[Answered]:
        chat, mark = self._player.chat, tuple(self._player.chat.encode(VERDICT))
        first = [
            self._request(k, q, "reasons", chat.head(q.words) + chat.observation("", first=True), q.reasons, mark)
            for k, q in enumerate(questions)
        ]
        reasons = self._sample([r if r.max_new else None for r in first])
        then: list[Request | None] = []
        for k, (q, request, came) in enumerate(zip(questions, first, reasons, strict=True)):
            said = [i for i in came.ids if i not in chat.end_ids] if isinstance(came, Completion) else []
            close = chat.thought_close if chat.is_thinking(said) else []
            end = () if tuple(said[-len(mark) :]) == mark else mark  # the model may have come to it by itself
            longest = max(len(chat.encode(f" {option}")) for option in q.options)
            verdict = self._request(k, q, "verdict", [*request.prompt, *said, *close, *end], q.count * longest)
            then.append(None if isinstance(came, EngineFailure) else verdict)
        return [
            came if isinstance(came, EngineFailure) else self._reply(q, request, came, verdict)
            for q, request, came, verdict in zip(questions, then, reasons, self._sample(then), strict=True)
        ]

    def _request(
        self, k: int, question: Question, what: str, prompt: list[int], most: int, mark: tuple[int, ...] = ()
    ) -> Request:
        seed = derive(self._seed, what, question.words, question.vote)
        return Request(prompt, most, seed, None, self._player.sampling, (mark,) if mark else (), k)

    def _sample(self, asked: Sequence[Request | None]) -> list[Completion | EngineFailure | None]:
        """Continues the prompts; trouble of one is its own."""
        engine, done = self._player.engine, dict[int, Completion | EngineFailure]()
        tickets = [None if request is None else engine.submit(request) for request in asked]
        while not all(ticket is None or ticket in done for ticket in tickets):
            done |= dict(engine.poll())
        return [None if ticket is None else done[ticket] for ticket in tickets]

    def _words(self, said: Completion | None) -> str:
        chat = self._player.chat
        return chat.decode([i for i in said.ids if i not in chat.end_ids]) if said else ""

    def _reply(
        self,
        question: Question,
        request: Request | None,
        reasons: Completion | None,
        came: Completion | EngineFailure | None,
    ) -> Answered:
        if isinstance(came, EngineFailure):
            return came
        assert request is not None and came is not None
        taken = len(came.ids) + (len(reasons.ids) if reasons else 0), len(request.prompt)
        if question.count > 1:
            said = f"{self._words(reasons)} {VERDICT} {self._words(came)}"
            if verdicts := verdicts_in(said, question.options, question.count):
                return Reply((), *taken, verdicts, said)
        for n in range(1, len(came.ids) + 1 if question.count == 1 else 0):
            said = self._player.chat.decode(came.ids[:n]).strip().casefold()
            if said in question.options:
                total = sum(round(x, LOGPROB_DIGITS) for x in came.logprobs[:n])  # as turns keep them
                p, others = min(1.0, exp(total)), len(question.options) - 1
                shares = tuple(p if option == said else (1 - p) / others for option in question.options)
                return Reply(shares, *taken)
        said = self._words(came)[:60]
        return NoVerdict(f"the policy's verdict is one of {', '.join(question.options)}; it said {said!r}", *taken)
