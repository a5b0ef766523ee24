"""Search with a language model: a step is a piece of a thought up to a mark, or a turn of an episode.

What always holds: what was said before is played again, read and sampled once; every sampled token is counted
(`spent_tokens`), those of dropped beginnings and of the guide too; what is random in step n of a task derives from the
task's plan and n, so evaluations stay paired. A beginning that failed, or could not be scored, is not extended, and
counts only where nothing else was finished. Searches of all tasks go step by step together.

| a step is | `mark` | plans |
|---|---|---|
| a piece of a thought | `;`, or any text | `Plan.prefix`, pausing at `Plan.marks` |
| a turn | empty | `Plan.history`, with one turn more in the budget |
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import exp, inf
from statistics import fmean

import numpy as np
from pydantic import field_validator

from longstride.core.budget import StopReason
from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import Weight
from longstride.core.seeds import derive
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles.modular import Chain, ModularChain
from longstride.envs.text import MARK, STEP_END
from longstride.rewards.scorers import AnyJudge, Pairwise, Score, Scorer, score
from longstride.rewards.simulated import StepScorer
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import LanguagePlayer, Player, with_ids
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, further_plan
from longstride.strategies.ledger import Ledger
from longstride.strategies.scored import AskedPolicy
from longstride.strategies.search import Beam, Partial, Search, Searching

STEPS = "steps"
"""In the evidence of what a search found: see `steps_of`."""


class Guide(Component):
    """Family: scores solutions as far as they go."""

    @property
    def name(self) -> str:
        """What metrics rows call it."""
        return self.type_name()

    def check(self, player: Player) -> None:  # noqa: B027 (most need nothing)
        """Refuses, before anything is played, a player that does not have what it needs.

        Raises:
            ConfigError: it does not.
        """

    @abstractmethod
    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        """Scores in [0, 1], in their order.

        Args:
            solutions: none of them failed; of any tasks, finished ones among them.
            player: who played them; nothing is open with it.

        Raises:
            ConfigError: solutions of such tasks cannot be scored.
        """


class Confidence(Guide):
    """The mean probability of a token, by the policy itself: exp of the mean log-probability of what was sampled last.
    In a search that is the newest step; of an answer that was not searched for, all of it. 0 where nothing was."""

    def check(self, player: Player) -> None:
        with_ids(player, "the guide confidence reads how likely a language model finds what it says")

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        return [Score(exp(fmean(_logprobs(t) or [-inf]))) for t in solutions]


def _logprobs(solution: Trajectory) -> list[float]:
    return [x for turn in solution.turns for x in turn.behaviour_logprobs]


class PathLikelihood(Guide):
    """exp(sum log p / L^alpha) of a solution of L steps, whose probabilities are the policy's own (BFS-Prover, arXiv
    2502.03438, section 3.1, as a probability): 0 prefers short solutions, and the larger alpha the more are long ones
    looked at. Steps in which nothing was sampled do not count; a solution without any other has 0. The steps of an
    answer that was not searched for are its turns."""

    alpha: Weight = 0.5
    """How much a long solution is forgiven; the paper tries 0, 0.5 and 1."""

    @property
    def name(self) -> str:
        return f"path_likelihood_{self.alpha:g}"

    def check(self, player: Player) -> None:
        with_ids(player, "the guide path_likelihood reads how likely a language model finds what it says")

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        return [Score(self._value([logp for n, logp in steps_of(t) or _turns_of(t) if n])) for t in solutions]

    def _value(self, logps: Sequence[float]) -> float:
        return exp(sum(logps) / len(logps) ** self.alpha) if logps else 0.0


def steps_of(solution: Trajectory) -> list[tuple[int, float]]:
    """Of each step by which a search extended a solution, how many tokens were sampled, and their log-probability."""
    return [(n, logp) for n, logp in solution.evidence.get(STEPS, ())]


def _turns_of(solution: Trajectory) -> list[tuple[int, float]]:
    return [(len(turn.behaviour_logprobs), sum(turn.behaviour_logprobs)) for turn in solution.turns]


def _grown(came: Trajectory, before: Trajectory | None) -> Trajectory:
    """What a step led to, with this step among its steps."""
    own = _logprobs(came)
    steps = [*(steps_of(before) if before else ()), (len(own), sum(own))]
    return replace(came, evidence=came.evidence | {STEPS: steps})


class Checked(Guide):
    """The verdict of the task's own verifier on what has ended, 1 or 0; another guide scores what may go on, and what a
    budget of turns cut, for a search by turns goes on from there. For tasks whose answers can be checked at test time
    too, such as proofs."""

    guide: Guide = PathLikelihood()
    """Scores what is not finished."""

    @property
    def name(self) -> str:
        return f"checked_{self.guide.name}"

    def check(self, player: Player) -> None:
        self.guide.check(player)

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        going = [t for t in solutions if t.stop in (StopReason.MARK, StopReason.TURNS)]
        scores = dict(zip(map(id, going), self.guide(going, player) if going else (), strict=True))
        return [scores.get(id(t)) or Score(float(t.success)) for t in solutions]


class Oracle(Guide):
    """The truth with noise: the labels of the steps of modular chains, and at the end whether the task was done; seen
    as a `StepScorer` sees it. For experiments: it reads the solution."""

    noise: Weight = 0.0
    """Standard deviation; the truth is 1 or -1."""

    @property
    def name(self) -> str:
        return f"oracle_{self.noise:g}"

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        return [self._score(t) for t in solutions]

    def _score(self, solution: Trajectory) -> Score:
        rng = np.random.default_rng(derive(solution.seed, "oracle", solution.ordinal))
        return Score(StepScorer(noise=self.noise).see(1, None if self._sound(solution) else 0, 0.0, rng)[0])

    def _sound(self, solution: Trajectory) -> bool:
        if solution.stop is not StopReason.MARK:
            return solution.success
        if solution.task.source != ModularChain().source:
            raise ConfigError(
                f"an oracle needs tasks whose steps have labels (puzzles/modular_chain), and task {solution.task.id!r} "
                f"is of {solution.task.source}; take another guide"
            )
        return all(Chain.of(solution.task).step_labels(f"{solution.turns[-1].text} {MARK}"))


class Asked(Guide):
    """A scorer of answers, which is shown the solution so far in place of an answer."""

    scorer: Scorer
    """Says how good it is."""
    judge: AnyJudge | None = None
    """Who is asked; a text is a run folder, a model's folder, or a name. The policy itself where left out."""

    @field_validator("scorer")
    @classmethod
    def _scores_one(cls, scorer: Scorer) -> Scorer:
        if isinstance(scorer, Pairwise):
            raise ValueError("pairwise compares answers, and a guide scores each solution for itself: take generative")
        return scorer

    @property
    def name(self) -> str:
        return self.scorer.name + (f"_{self.judge.name}" if self.judge else "")

    def check(self, player: Player) -> None:
        if self.judge is None:
            AskedPolicy(player, 0)

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        judge, seed = self.judge, solutions[0].seed if solutions else 0
        ask = (lambda questions: judge.ask(questions, seed)) if judge else AskedPolicy(player, seed)
        said = [(t.task.goal, ["\n".join(turn.text for turn in t.turns)]) for t in solutions]
        return [of_one for (of_one,) in score(self.scorer, said, ask)]


@dataclass(eq=False, slots=True)
class SearchTask:
    """A search under way."""

    plan: Plan
    searching: Searching
    wanted: Sequence[Partial]
    """What is to be extended next."""
    ledger: Ledger = Ledger()
    guide_tokens: int = 0
    """Of the scored ones those that were sampled."""
    found: Sequence[Partial] = ()
    """What the search returned, when it has."""
    extended: list[Partial] = field(default_factory=list)
    """In their order; one that was extended several times at once stands once."""
    made: list[Partial] = field(default_factory=list)
    """All that came of it."""


class Searched(Strategy):
    """Looks for a solution by a search."""

    search: Search = Beam(n=4, width=2)
    """In which order beginnings are extended, and what is kept of them."""
    guide: Guide = Confidence()
    """Scores beginnings."""
    mark: str = STEP_END
    """What ends a step of a thought, in the model's words; where empty, a step is a turn."""

    @property
    def name(self) -> str:
        words = {STEP_END: "", "": "_turns"}.get(self.mark, f"_at_{self.mark!r}")
        return f"{self.search.name}_guided_by_{self.guide.name}{words}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where a step is a piece of a thought, and the player has no token ids."""
        self.guide.check(player)
        marks: tuple[tuple[int, ...], ...] = ()
        if self.mark:
            whole = with_ids(player, f"strategy {self.name} extends what a language model said")
            marks = whole.chat.endings(self.mark)
        tasks = [self.begun(plan) for plan in plans]
        with player.keeping() if isinstance(player, LanguagePlayer) else nullcontext():
            while live := (yield from self.under_way(tasks)):
                yield from self._step(live, marks, player)
        return [self.ended(task) for task in tasks]

    def begun(self, plan: Plan) -> SearchTask:
        """The search of a task, before its first step."""
        searching = self.searching(plan, Partial(None))
        return SearchTask(plan, searching, next(searching))

    def searching(self, plan: Plan, root: Partial, *stage: int) -> Searching:
        """A search from a partial that is not finished. Where a task is searched in several stages, their numbers tell
        apart what is random in them."""
        return self.search.run(root, np.random.default_rng(derive(plan.seed, "search", plan.ordinal, *stage)))

    def under_way(
        self, tasks: Sequence[SearchTask]
    ) -> Generator[Sequence[Plan], list[Trajectory], Sequence[SearchTask]]:
        """Those whose search goes on, asked before each step of all of them; what is played between two steps is
        played here."""
        yield from ()
        return [task for task in tasks if task.wanted]

    def _step(
        self, tasks: Sequence[SearchTask], marks: tuple[tuple[int, ...], ...], player: Player
    ) -> Generator[Sequence[Plan], list[Trajectory], None]:
        """Extends all that is wanted by one step."""
        stage = [
            next_step(task.plan, p.state, task.ledger.calls + k, marks)
            for task in tasks
            for k, p in enumerate(task.wanted)
        ]
        begun = [p.state for task in tasks for p in task.wanted]
        came = [_grown(t, before) for t, before in zip((yield stage), begun, strict=True)]
        scores = iter(self.guide([t for t in came if not t.stop.failed], player))
        scored = iter([(t, Score(None) if t.stop.failed else next(scores)) for t in came])
        for task in tasks:
            extended = [next(scored) for _ in task.wanted]
            task.ledger += Ledger(
                sampled=sum(t.sampled_tokens for t, _ in extended),
                scored=sum(s.tokens + s.read for _, s in extended),
                calls=len(extended),
            )
            task.guide_tokens += sum(s.tokens for _, s in extended)
            made = [self.partial(task.plan, t, s) for t, s in extended]
            task.extended += dict.fromkeys(task.wanted)
            task.made += made
            try:
                task.wanted = task.searching.send(made)
            except StopIteration as end:
                task.wanted, task.found = (), end.value

    def partial(self, plan: Plan, came: Trajectory, of: Score) -> Partial:
        """A solution as far as it goes, with its score; finished where it cannot go on."""
        if of.value is None:
            failed = replace(came, stop=StopReason.INFRA_FAILURE, reward=0.0, success=False)
            return Partial(failed, 0.0, done=True, failed=True)
        going = unfinished(plan, came)
        answer = None if going or came.answer is None else came.answer.strip().lower()  # as `best_of.Majority` counts
        return Partial(came, of.value, not going, answer)

    def ended(self, task: SearchTask) -> EvalEpisode:
        """The episode that counts, under the number and the budget of its plan."""
        counts: Trajectory = task.found[0].state
        further = task.ledger.sampled - counts.sampled_tokens + task.guide_tokens
        budget = counts.budget.model_copy(update={"turns": task.plan.turns})
        episode = replace(counts, ordinal=task.plan.ordinal, budget=budget)
        measures = {"steps": task.ledger.calls, "scored_tokens": task.ledger.scored}
        return EvalEpisode(episode, measures, further, task.ledger.scored - task.guide_tokens)


def next_step(
    plan: Plan, so_far: Trajectory | None, n: int, marks: tuple[tuple[int, ...], ...], whole: bool = False
) -> Plan:
    """The plan of one step of a task: up to a mark, or one turn where there are no marks.

    Args:
        plan: of the task.
        so_far: what the step goes on from; None at the start.
        n: number of the step, which its randomness derives from.
        marks: see `Plan.marks`.
        whole: whether the step goes to the end of the episode.
    """
    past = [] if so_far is None else list(PastTurn.of(so_far.turns))
    prefix = past.pop().ids if so_far is not None and so_far.stop is StopReason.MARK else ()
    turns = plan.turns if marks or whole else len(past) + 1
    budget = plan.budget.model_copy(update={"turns": turns})
    return replace(further_plan(plan, n), budget=budget, prefix=prefix, history=tuple(past), marks=marks)


def unfinished(plan: Plan, came: Trajectory) -> bool:
    """Whether an episode may go on after a step."""
    return came.stop is StopReason.MARK or (came.stop is StopReason.TURNS and came.length < plan.turns)
