"""The first error of a failed answer, found by going on from before and behind it (`Interventions`) or named by a judge
(`JudgedInterventions`), and the credit that clones what stood before it and the step in its place (`Spliced`)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from longstride.core.numbers import Count, CountOrZero
from longstride.core.trajectory import Trajectory, Usage, by_group
from longstride.envs.judgements import ASKS
from longstride.envs.questions import Question
from longstride.envs.text import STEP_END
from longstride.methods import Advantage, Credit
from longstride.rewards.scorers import AnyJudge, NoVerdict, Reply
from longstride.rollout.branching import Codec, check_single_turn, cuts
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler, Stages

PROBE = "probe"
"""Role of an episode that goes on from a part of a failed answer."""
PREFIX, INTERVENTION = "right_tokens", "step_tokens"
"""In `Trajectory.evidence`: how many of its first tokens stood before its first error; how many are the step that takes
the place of one."""


@dataclass
class _Search:
    """Where the first error of an answer is: behind cut `right`, from which `found` goes on to a success, and before cut
    `wrong`, from which none of so many went on to one. Cut 0 is the beginning, and the last one the whole answer."""

    failed: Trajectory
    ends: list[int]
    found: Trajectory | None
    right: int
    wrong: int

    @property
    def middle(self) -> int:
        return (self.right + self.wrong) // 2

    def prefix(self, cut: int) -> list[int]:
        return self.failed.turns[0].ids[: self.ends[cut - 1]] if cut else []


class Interventions(Sampler):
    """Groups, and in the first iterations a search for the first error of one failed answer of each group.

    A beginning of it, of whole steps, is right where an answer that goes on from there succeeds, one of `continuations`;
    how far it is right is found by halving. The first step of the answer that succeeded from there is the intervention:
    it was said by the policy itself and leads to a success. An answer is left alone where not even its beginning leads to
    one, and where the step is the last one, which has the result in it.
    """

    iterations: Count = 4
    """With a search; after them groups alone are played."""
    continuations: Count = 4
    """From each beginning that is looked at."""
    mark: str = STEP_END
    """The token that divides the steps of an answer."""

    def plan(self, planner: Planner) -> Stages:
        plans = [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]
        check_single_turn(plans, "interventions looks for an error")
        played = yield plans
        if planner.iteration > self.iterations:
            return played
        searches = [s for group in by_group(played) if (s := self._begun(planner.chat, group)) is not None]
        probes = yield from self._locate(planner, searches)
        for s in searches:
            self._note(planner.chat, s)
        return played + probes

    def _locate(self, planner: Planner, searches: Sequence[_Search]) -> Stages:
        """Fills in where the first errors are, and what goes on to a success before them; returns what was played for it."""
        played: list[Trajectory] = []
        while left := [s for s in searches if s.wrong - s.right > 1]:
            probes = yield from self._probe(planner, left, [s.middle for s in left])
            for s, found in zip(left, probes, strict=True):
                s.found, s.right, s.wrong = self._halved(s, found)
                played += found
        return played

    def _probe(
        self, planner: Planner, searches: Sequence[_Search], at: Sequence[int]
    ) -> Generator[Sequence[Plan], list[Trajectory], list[list[Trajectory]]]:
        """What goes on from a cut of each failed answer."""
        groups = [
            planner.group(s.failed.task, self.continuations, s.prefix(cut), PROBE, like=s.failed)
            for s, cut in zip(searches, at, strict=True)
        ]
        found = yield [plan for group in groups for plan in group]
        return [[t for t in found if t.group == group[0].group] for group in groups]

    def _begun(self, chat: Codec, group: Sequence[Trajectory]) -> _Search | None:
        """The search in the first failed answer of a group; None without one."""
        failed = next((t for t in group if t.turns and not (t.success or t.stop.failed)), None)
        if failed is None:
            return None
        ends = [k for k in cuts(chat, failed.turns[0].ids, (self.mark,)) if k]
        return _Search(failed, ends, next((t for t in group if t.success), None), 0, len(ends) + 1)

    def _halved(self, s: _Search, probes: Sequence[Trajectory]) -> tuple[Trajectory | None, int, int]:
        success = next((t for t in probes if t.success), None)
        return (s.found, s.right, s.middle) if success is None else (success, s.middle, s.wrong)

    def _note(self, chat: Codec, s: _Search) -> None:
        """Writes down which tokens are cloned."""
        if s.found is None or not s.found.turns:
            return
        found, begun = s.found.turns[0], len(s.prefix(s.right))
        ends = [begun + k for k in cuts(chat, found.ids[begun:], (self.mark,)) if k]
        if ends and ends[0] > found.given:  # a thought that its budget cut is given, and not trained
            s.found.evidence[INTERVENTION] = ends[0] - found.given
            s.failed.evidence[PREFIX] = max(0, begun - s.failed.turns[0].given)


class JudgedInterventions(Interventions):
    """Groups, and in the first iterations a judge that names the first wrong step of one failed answer of each group.

    From before that step `continuations` answers go on, and the first step of one that succeeds is the intervention. An
    answer is left alone where the judge finds nothing wrong or gives no verdict, and where none of them succeeds. What
    the judge samples and reads is counted with the answer (`judge_usage`).

    For a judge that was trained to say which line is the first wrong one (`tasks.asks=line`), or a model behind a chat API.
    `mark` is what divides lines there, a semicolon or the end of a line; the last line is the answer.
    """

    judge: AnyJudge
    """Who is asked; a text is a run folder, a model's folder, or a name."""
    reasons: CountOrZero = 256
    """Tokens of its reasons; 0 asks for the verdict at once."""

    def _locate(self, planner: Planner, searches: Sequence[_Search]) -> Stages:
        named = self._lines(planner.chat, searches)
        for s, line in zip(searches, named, strict=True):
            s.right = self._before(planner.chat, s, line or 1)
            if line is None or s.right:  # a sibling that succeeded mends an error in the first step alone
                s.found = None
        left = [s for s, line in zip(searches, named, strict=True) if line and s.found is None]
        if not left:
            return []
        probes = yield from self._probe(planner, left, [s.right for s in left])
        for s, found in zip(left, probes, strict=True):
            s.found = next((t for t in found if t.success), None)
        return [t for found in probes for t in found]

    def _lines(self, chat: Codec, searches: Sequence[_Search]) -> list[int | None]:
        """The number, from 1, of the first wrong line of each answer; None where the judge names none."""
        questions = []
        for s in searches:
            turn = s.failed.turns[0]
            about = {"task": s.failed.task.goal, "answer": turn.text}
            lines = range(1, self._marks(chat, turn.ids) + 3)  # a mark stands between two lines; then comes the answer
            questions.append(Question(ASKS["line"], about, ("none", *map(str, lines)), self.reasons))
        replies = self.judge.ask(questions, searches[0].failed.seed) if questions else []
        for s, reply in zip(searches, replies, strict=True):
            if isinstance(reply, Reply | NoVerdict):
                taken = Usage(1, read=reply.read, sampled=reply.tokens)
                s.failed.judge_usage = (s.failed.judge_usage or Usage()).plus(taken)
        # the place of an option is the number of its line, and 0 is none
        return [
            reply.shares.index(max(reply.shares)) or None if isinstance(reply, Reply) else None for reply in replies
        ]

    def _before(self, chat: Codec, s: _Search, line: int) -> int:
        """The last cut that stands before a line."""
        ids = s.failed.turns[0].ids
        return sum(self._marks(chat, ids[:end]) < line - 1 for end in s.ends)

    def _marks(self, chat: Codec, ids: Sequence[int]) -> int:
        return chat.verbatim(ids).replace(" ", "").count(self.mark.replace(" ", ""))


class Spliced(Credit):
    """Clones the beginnings of failed answers that are right and the steps that take the place of their first errors, a
    weight of 1 a token. What stood behind an error is dropped, and so is what came behind the step."""

    prefix: bool = True
    """Whether beginnings are cloned too."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[self._of(t)] + [None] * (t.length - 1) if t.turns else [] for t in played]

    def _of(self, t: Trajectory) -> Advantage:
        cloned = t.evidence.get(INTERVENTION, 0) or (t.evidence.get(PREFIX, 0) if self.prefix else 0)
        return [1.0] * cloned + [0.0] * (len(t.turns[0].sampled_ids) - cloned) if cloned else None
