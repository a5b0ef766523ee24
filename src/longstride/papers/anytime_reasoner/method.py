"""Answers that are asked for at several budgets of a thought (`AtBudgets`), and BRPO: credit from all of them
(`BudgetRelative`)."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Literal

import numpy as np

from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory, by_group
from longstride.envs.text import ANSWERING, MARK
from longstride.methods import Advantage, Credit, group_advantages
from longstride.rollout.branching import answer_plan, check_single_turn, ending
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler, Stages

THOUGHT, ANSWER = "thought", "answer"
"""`Trajectory.role`: a thought, whose own answer counts for nothing, and an answer that was asked for at a budget."""
BY_BUDGET = "by_budget"
"""In `Trajectory.evidence` of a thought: the mean of the answers at each budget, in order."""
SEGMENTS = "segments"
"""Likewise: how many of its sampled tokens lie between each budget and the one before; the end of the thought is in one
of them, and its own answer in none."""


class AtBudgets(Sampler):
    """Groups of thoughts; each is cut at budgets that are equally far apart, the last one being the whole turn, and
    answers are asked for at each of them. A thought that ended before a budget has its answers there at its end."""

    budgets: Count = 4
    """S."""
    answers: Count = 4
    """At each budget of a thought: they are a group of their own."""
    longest: Count = 16
    """Tokens of an answer: five numbers of a Countdown in brackets, and no room to think on."""
    ends: str = MARK
    """The words that end a thought by themselves, such as `</think>`."""
    closing: str = ANSWERING
    """The words that ask for an answer where a thought is cut."""

    def plan(self, planner: Planner) -> Stages:
        plans = [replace(p, role=THOUGHT) for task in planner.tasks(planner.groups) for p in planner.group(task)]
        check_single_turn(plans, "at_budgets cuts thoughts")
        thoughts = yield plans
        closing, asked = tuple(planner.chat.encode(self.closing)), list[Plan]()
        for t in thoughts:
            ids, given = (t.turns[0].ids, t.turns[0].given) if t.turns else ([], 0)
            end, stops = ending(planner.chat, ids, self.ends)
            most = min(t.budget.turn_tokens, t.budget.tokens or t.budget.turn_tokens)
            places = [min(round(most * (s + 1) / self.budgets), end) for s in range(self.budgets)]
            # to end it is a choice of the thought too; where its budget cut it, it was given as a whole
            ends = [max(0, (stops if place == end else place) - given) for place in places]
            t.evidence[SEGMENTS] = np.diff([0, *ends]).tolist()
            for place in places:
                group = planner.group(t.task, self.answers, like=t)
                asked += [answer_plan(plan, (*ids[:place], *closing), self.longest, ANSWER) for plan in group]
        answers = yield asked
        of_place = [answers[k : k + self.answers] for k in range(0, len(answers), self.answers)]
        for n, t in enumerate(thoughts):
            here = of_place[n * self.budgets : (n + 1) * self.budgets]
            played = [[answer.reward for answer in group if not answer.stop.failed] for group in here]
            if all(played):
                t.evidence[BY_BUDGET] = list(map(fmean, played))
        return thoughts + answers


class BudgetRelative(Credit):
    """BRPO: the tokens of a segment of a thought have the advantage of the equation above, and those of an answer that
    of the answer among those at the same place."""

    prior: Literal["uniform", "linear", "base"] = "uniform"
    """P_j: the same for all budgets, proportional to them, or the largest one alone."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        answers = [t for t in played if t.role == ANSWER]
        rewards, groups = [t.reward for t in answers], [t.group for t in answers]
        found: dict[int, Advantage] = {}
        for t, a in zip(answers, group_advantages(rewards, groups, normalize="none").tolist(), strict=True):
            found[t.ordinal] = a
        for group in by_group(t for t in played if BY_BUDGET in t.evidence):
            advantages_NS = self.of_group(np.array([t.evidence[BY_BUDGET] for t in group]))
            for t, advantages_S in zip(group, advantages_NS, strict=True):
                of_thought = np.repeat(advantages_S, t.evidence[SEGMENTS]).tolist()
                tokens = sum(len(turn.sampled_ids) for turn in t.turns)
                found[t.ordinal] = of_thought + [0.0] * (tokens - len(of_thought))
        return [[found.get(t.ordinal)] * t.length for t in played]

    def of_group(self, scores_NS: np.ndarray) -> np.ndarray:
        """[N, S] of a group, from the mean of its answers at each budget."""
        budgets = scores_NS.shape[1]
        shape = {"uniform": np.ones(budgets), "linear": np.arange(budgets) + 1.0, "base": np.eye(budgets)[-1]}
        prior_S = shape[self.prior] / shape[self.prior].sum()
        to_go_NS = (prior_S * scores_NS)[:, ::-1].cumsum(1)[:, ::-1]
        weight_S, left_S = 2.0 ** np.arange(budgets), prior_S[::-1].cumsum()[::-1]
        before_NS = np.cumsum(weight_S * scores_NS, 1) - weight_S * scores_NS
        own_NS = before_NS / np.maximum(np.cumsum(weight_S) - weight_S, 1) * left_S
        s = np.arange(budgets)
        return to_go_NS - (s * own_NS + (budgets - s) * to_go_NS.mean(0)) / budgets
