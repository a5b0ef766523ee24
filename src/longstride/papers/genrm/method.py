"""GenRM's parts for a language model: right solutions beside verdicts, and the ranking of solutions by votes or by any
scorer."""

import random
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.envs.judgements import ASKS, Judgements
from longstride.envs.questions import REASONS, YES_NO, Question
from longstride.envs.text import said
from longstride.methods.base import Sample, demonstration
from longstride.models.chat import ChatFormat
from longstride.rewards.scorers import NoVerdict, Reply, Scorer, score
from longstride.rollout.context import Past
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.run.imitation import Demonstrations
from longstride.run.recipe import Recipe
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.scored import AskedPolicy


class RightSolutions(Demonstrations):
    """Solutions that are right, as answers to their tasks: a verifier that also generates (the joint loss of section
    3.2; its weight lambda is that of the imitation)."""

    def samples(self, recipe: Recipe, chat: ChatFormat, episodes: int, rng: random.Random) -> list[Sample]:
        source = recipe.tasks
        if not isinstance(source, Judgements):
            raise ConfigError(f"right solutions are those of tasks.type=judgements, and this is {source.type_name()}")
        right = [s for s in source.solutions["train"] if s.right]
        if not right:
            raise ConfigError("none of the solutions to judge is right; set imitation.weight to nothing, or bring some")
        return [
            demonstration(
                recipe.context.render(chat, Past(s.task, [""], [])), chat.encode(s.solution) + chat.close, 1.0, k
            )
            for k, s in enumerate(rng.choices(right, k=episodes))
        ]


class Ranked(Strategy):
    """Solutions are ranked by the mean of K verdicts, each after reasons of its own (section 3.3). The held-out tasks
    ask whether a solution is right, and those about one task stand together.

    Measures, of each task once: `chosen`, whether the solution with the highest mean probability of `yes` is right (the
    first of equals); `majority`, whether the first one with the most frequent answer is; `possible`, whether one is.
    """

    votes: Count = 4
    """K."""

    @property
    def name(self) -> str:
        return f"ranked_by_{self.votes}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where the tasks are not of such a kind, or the player has no token ids."""
        if other := next((p.task for p in plans if p.task.meta.get("options") != list(YES_NO)), None):
            raise ConfigError(f"{self.name} ranks solutions by yes and no, and task {other.id!r} does not ask for them")
        asked = AskedPolicy(player, plans[0].seed if plans else 0)
        found = yield plans
        replies = iter(asked([self._question(plan, vote) for plan in plans for vote in range(self.votes)]))
        votes = [[next(replies) for _ in range(self.votes)] for _ in plans]
        scores = [fmean([v.shares[0] for v in of if isinstance(v, Reply)] or [0.0]) for of in votes]
        return [
            self._episode(trajectory, measures, [v for v in of if isinstance(v, Reply | NoVerdict)])
            for trajectory, measures, of in zip(found, ranked(plans, scores), votes, strict=True)
        ]

    def _question(self, plan: Plan, vote: int) -> Question:
        meta = plan.task.meta
        reasons = plan.budget.turn_tokens if REASONS in plan.task.goal else 0
        return Question(ASKS["right"], {"task": meta["task"], "answer": meta["solutions"][0]}, YES_NO, reasons, vote)

    def _episode(
        self, played: Trajectory, measures: dict[str, float | None], votes: Sequence[Reply | NoVerdict]
    ) -> EvalEpisode:
        return EvalEpisode(played, measures, sum(v.tokens for v in votes), sum(v.read for v in votes))


class RankedBy(Strategy):
    """Solutions are ranked by a scorer, which sees all that was said: `taught_probe`, a head that learned from as many
    labels, is the discriminative verifier that the paper compares with. Measures as those of `Ranked`."""

    scorer: Scorer
    """Says how good a solution is."""

    @property
    def name(self) -> str:
        return f"ranked_by_{self.scorer.name}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where a task is not about one solution."""
        if other := next((p.task for p in plans if len(p.task.meta.get("solutions", ())) != 1), None):
            raise ConfigError(f"{self.name} ranks solutions one by one, and task {other.id!r} is not about one")
        asked = [(str(p.task.meta["task"]), [str(p.task.meta["solutions"][0])]) for p in plans]
        found = yield plans
        scored = [s for (s,) in score(self.scorer, asked, AskedPolicy(player, plans[0].seed if plans else 0))]
        measured = ranked(plans, [s.value or 0.0 for s in scored])
        return [EvalEpisode(t, of, s.tokens, s.read) for t, of, s in zip(found, measured, scored, strict=True)]


def ranked(plans: Sequence[Plan], scores: Sequence[float]) -> list[dict[str, float | None]]:
    """The measures of `Ranked` by the scores of the solutions that are asked about; they stand with the first solution
    of each task."""
    groups: dict[str, list[int]] = {}
    for k, plan in enumerate(plans):
        groups.setdefault(plan.task.template_id, []).append(k)
    measured = {of[0]: _ranked([plans[k] for k in of], [scores[k] for k in of]) for of in groups.values()}
    nothing: dict[str, float | None] = {"chosen": None, "majority": None, "possible": None}
    return [measured.get(k, nothing) for k in range(len(plans))]


def _ranked(plans: Sequence[Plan], scores: Sequence[float]) -> dict[str, float | None]:
    right = [bool(plan.task.meta["right"][0]) for plan in plans]
    answers = [said(plan.task.meta["solutions"][0]) for plan in plans]
    most = Counter(answers).most_common(1)[0][0]
    return {
        "chosen": float(right[scores.index(max(scores))]),
        "majority": float(right[answers.index(most)]),
        "possible": float(any(right)),
    }
