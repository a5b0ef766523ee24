"""SPCT's votes: scores of several judgements, summed, and the filter of judgements that are likely wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero
from longstride.core.seeds import derive, stream
from longstride.core.trajectory import Trajectory
from longstride.envs.judgements import ASKS
from longstride.envs.questions import FIRST_SECOND, SCORES, Question
from longstride.rewards.probe import LinearHead, hidden_states
from longstride.rewards.scorers import Answered, NoVerdict, Reply, Score, Scorer, Scoring
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.chosen import folded
from longstride.strategies.scored import AskedPolicy


def kept(sure_NK: np.ndarray, keep: int) -> np.ndarray:
    """[N, K] which judgements of an item count: the `keep` of which a filter is surest."""
    return sure_NK.argsort(1).argsort(1) >= sure_NK.shape[1] - keep


@dataclass(frozen=True)
class Judgement:
    """A question about two answers of an item."""

    question: Question
    pair: tuple[int, int]
    """Which answers are shown, in this order."""


def judgements(text: str, task: str, answers: Sequence[str], votes: int, reasons: int) -> Iterator[list[Judgement]]:
    """The questions of each vote: all answers, shuffled and taken two by two. Of an odd number the last one is shown beside
    the first; of one answer alone, beside itself."""
    for vote in range(votes):
        order = list(range(len(answers)))
        stream(derive(0, task, *answers), "order", vote).shuffle(order)
        order += order[:1] * (len(order) % 2)
        yield [
            Judgement(
                Question(
                    text,
                    {"task": task, **dict(zip(FIRST_SECOND, (answers[a], answers[b]), strict=True))},
                    SCORES,
                    reasons,
                    vote,
                    count=2,
                ),
                (a, b),
            )
            for a, b in zip(order[::2], order[1::2], strict=True)
        ]


class SummedScores(Scorer):
    """A language model that says how good answers are, from 1 to 10, two at a time, after principles and critiques of its
    own; the scores of several judgements are summed (section 4, equation 14). A filter leaves out, of the judgements of each
    answer, those that it finds likelier to be wrong. Values are sums over the largest that they could be."""

    question: str = ASKS["scores"]
    """What is asked."""
    reasons: CountOrZero = 256
    """Tokens of principles and critiques; 0 asks for the scores at once."""
    votes: Count = 8
    """k: judgements of each answer."""
    keep: CountOrZero = 0
    """k_meta: how many of them count where there is a filter; half of them if 0."""
    meta: Scorer | None = None
    """The filter: says how likely a judgement is right, given the question as the task (the paper's meta RM), such as a
    `probe`."""

    @property
    def name(self) -> str:
        meta = f"_{self.keep or self.votes // 2}_by_{self.meta.name}" if self.meta else ""
        return f"summed_{self.votes}{meta}" + ("" if self.reasons else "_direct")

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        asked = [j for vote in judgements(self.question, task, answers, self.votes, self.reasons) for j in vote]
        replies = yield [j.question for j in asked]
        given = [r if isinstance(r, Reply) else None for r in replies]
        tokens = [(r.tokens, r.read) if isinstance(r, Reply | NoVerdict) else (0, 0) for r in replies]
        sure: list[float | None] = [1.0 if r else None for r in given]
        if self.meta is not None:
            for k, r in enumerate(given):
                if r:
                    (judged,) = yield from self.meta.run(asked[k].question.words, [r.text])
                    sure[k], tokens[k] = judged.value, (tokens[k][0] + judged.tokens, tokens[k][1] + judged.read)
        found: list[Score] = []
        for a in range(len(answers)):
            of = [
                (s, int(r.verdicts[j.pair.index(a)]))
                for j, r, s in zip(asked, given, sure, strict=True)
                if a in j.pair and r and s is not None
            ]
            if self.meta is not None:
                of = sorted(of, key=lambda pair: -pair[0])[: self.keep or max(1, self.votes // 2)]
            value = sum(score for _, score in of) / (len(of) * int(SCORES[-1])) if of else None
            mine = [t for j, t in zip(asked, tokens, strict=True) if j.pair[0] == a]  # each question is counted once
            found.append(Score(value, sum(t for t, _ in mine), sum(r for _, r in mine)))
        return found


class Voted(Strategy):
    """Pairs are judged several times, each time in an order that is drawn, and the scores are summed. The tasks ask for
    scores (`tasks.asks=scores`). With `filtered_by` only those judgements count that a filter finds likely right: a head on
    the hidden states of a model that read them, fitted on one half of the tasks and used on the other.

    Measures: `voted`, whether the right solution has the highest sum, alone.
    """

    votes: Count = 8
    """k."""
    filtered_by: str = ""
    """Model whose hidden states the filter reads, as `probe.model`; empty for no filter. Half of the votes count."""

    @property
    def name(self) -> str:
        return f"voted_{self.votes}" + (f"_filtered_by_{self.filtered_by}" if self.filtered_by else "")

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where the tasks ask for something else, or the player has no token ids."""
        if other := next((p.task for p in plans if p.task.meta.get("options") != list(SCORES)), None):
            raise ConfigError(f"{self.name} sums scores, and task {other.id!r} asks for none; set tasks.asks=scores")
        ask = AskedPolicy(player, plans[0].seed if plans else 0)
        found = yield plans
        asked_NK = [
            [
                j
                for (j,) in judgements(
                    ASKS["scores"], str(m["task"]), list(m["solutions"]), self.votes, p.budget.turn_tokens
                )
            ]
            for p in plans
            for m in [p.task.meta]
        ]
        came = iter(ask([j.question for of in asked_NK for j in of]))
        replies_NK = [[next(came) for _ in of] for of in asked_NK]
        scores_NKA = np.array(
            [[_scores(j, r) for j, r in zip(*of, strict=True)] for of in zip(asked_NK, replies_NK, strict=True)]
        )
        right_N = np.array([list(p.task.meta["right"]).index(True) for p in plans])
        read_N = np.zeros(len(plans), int)
        counted_NK = np.ones(scores_NKA.shape[:2])
        if self.filtered_by and self.votes > 1:
            sure_NK, read_N = self._sure(plans, asked_NK, replies_NK, is_right(scores_NKA, right_N))
            counted_NK = kept(sure_NK, self.votes // 2)
        voted_N = is_right((scores_NKA * counted_NK[..., None]).sum(1, keepdims=True), right_N)[:, 0]
        return [self._episode(t, voted_N[k], replies_NK[k], int(read_N[k])) for k, t in enumerate(found)]

    def _sure(
        self,
        plans: Sequence[Plan],
        asked_NK: Sequence[Sequence[Judgement]],
        replies_NK: Sequence[Sequence[Answered]],
        right_NK: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """[N, K] how likely each judgement is right, as the other half of the tasks teaches; 0 for one without scores. And
        [N] what was read for it."""
        texts = [
            (j.question.words, r.text if isinstance(r, Reply) else "")
            for of in zip(asked_NK, replies_NK, strict=True)
            for j, r in zip(*of, strict=True)
        ]
        states, read = hidden_states(self.filtered_by, texts)
        states_NKD = states.reshape(*right_NK.shape, -1)
        fold_N = np.array(folded([p.group for p in plans], [0] * len(plans)))
        valid_NK = np.array([[isinstance(r, Reply) for r in of] for of in replies_NK]) & np.isfinite(states_NKD).all(-1)
        sure_NK = np.zeros(right_NK.shape)
        for fold in (0, 1):
            taught, used = valid_NK & (fold_N != fold)[:, None], valid_NK & (fold_N == fold)[:, None]
            labels = right_NK[taught]
            if labels.any() and not labels.all():  # nothing is to be learned of judgements that are all alike
                sure_NK[used] = LinearHead.fit(states_NKD[taught], labels)(states_NKD[used])
        return sure_NK, np.array(read).reshape(right_NK.shape).sum(1)

    def _episode(self, played: Trajectory, voted: bool, replies: Sequence[Answered], read: int) -> EvalEpisode:
        taken = [r for r in replies if isinstance(r, Reply | NoVerdict)]
        return EvalEpisode(
            played, {"voted": float(voted)}, sum(r.tokens for r in taken), read + sum(r.read for r in taken)
        )


def _scores(judgement: Judgement, reply: Answered) -> list[int]:
    """Of both answers in their own order; 0 where nothing was said."""
    if not isinstance(reply, Reply):
        return [0, 0]
    said = dict(zip(judgement.pair, map(int, reply.verdicts), strict=True))
    return [said[0], said[1]]


def is_right(scores_NKA: np.ndarray, best_N: np.ndarray) -> np.ndarray:
    """[N, K] whether the best answer has the highest score, alone (equation 10)."""
    is_best = np.arange(scores_NKA.shape[-1]) == best_N[:, None, None]
    return (scores_NKA * is_best).max(-1) > (scores_NKA * ~is_best).max(-1)
