"""Enumerable answers whose episodes a recipe's own `rollout.Sampler` plans: in stages, from beginnings that it chooses.

What always holds: the sampler is the one that plans the episodes of a language model, with a `Planner` of the library;
what is here is only the world that it plans for. All tasks of the problem are drawn in every iteration. A token of a
beginning is spelled as its place and itself, so that a sampler sees where a step ends.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from longstride.core.budget import Budget
from longstride.core.experience import NoExperience
from longstride.core.generators import driven
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.curriculum.tasks import Uniform
from longstride.envs.text import STEP_END
from longstride.exact.answers import Answers, Grouped
from longstride.exact.experiment import State
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler


class PlannedTasks:
    """The tasks of a problem as a source with solutions, and its tokens as a chat format, for a planner.

    The id of a token that stands at place t of an answer is t V + token.
    """

    def __init__(self, problem: Answers) -> None:
        self.problem = problem

    def sample(self, rng: Random, n: int) -> list[Task]:
        """Every task once."""
        return [self.problem.task(q) for q in range(len(self.problem.tree.context))]

    def demonstrate(self, task: Task) -> list[str]:
        """The right answer, as text."""
        tree, q = self.problem.tree, int(task.id.rpartition("-")[2])
        return [STEP_END.join(map(str, tree.tokens[int((tree.rewards[q] == 1).argmax())]))]

    def encode(self, text: str) -> list[int]:
        return [t * self.problem.vocabulary + int(token) for t, token in enumerate(text.split(STEP_END))]

    def decode(self, ids: Sequence[int]) -> str:
        return STEP_END.join(str(i % self.problem.vocabulary) for i in ids)

    def verbatim(self, ids: Sequence[int]) -> str:
        """What stands before a token: nothing at the beginning of an answer, and a mark everywhere else."""
        return STEP_END if ids[0] >= self.problem.vocabulary else ""


class Planned(Grouped):
    """`Grouped` whose episodes are planned by a sampler; `group` is the size of its groups."""

    sampler: Sampler
    """Which episodes an iteration plays."""

    def collect(self, problem: Answers, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        world, tasks, seed = PlannedTasks(problem), len(problem.tree.context), int(rng.integers(2**31))
        planner = Planner(
            world,
            Uniform(),
            NoExperience(),
            self.replay,
            lambda _: Budget(),
            world,
            seed,
            int(state["iteration"]) + 1,
            0,
            tasks * self.group,
            self.group,
        )
        return driven(self.sampler.plan(planner), lambda plans: follow(problem, logits, plans, rng))


def follow(problem: Answers, logits: np.ndarray, plans: Sequence[Plan], rng: np.random.Generator) -> list[Trajectory]:
    """The episodes of plans: answers that begin as their plan begins."""
    tree, log_policy, played = problem.tree, problem.tree.log_policy(logits), []
    p_CK = tree.answers(logits)
    for plan, draw in zip(plans, rng.random(len(plans)), strict=True):
        given = [i % tree.vocabulary for i in plan.prefix]
        rest = tree.vocabulary ** (tree.length - len(given))
        first = rest * int(np.dot(given, tree.vocabulary ** np.arange(len(given))[::-1]))
        below = p_CK[tree.context[int(plan.task.id.rpartition("-")[2])], first : first + rest].cumsum()
        answer = first + int(np.searchsorted(below, draw * below[-1]))
        episode = problem.episode(log_policy, plan.task, answer, plan.ordinal, plan.group, len(given))
        episode.role = plan.role
        played.append(episode)
    return played
