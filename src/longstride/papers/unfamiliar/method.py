"""Demonstrations whose least familiar ones are answered otherwise, and how often a policy says that it does not know."""

import random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from longstride.core.numbers import Share
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles.facts import UNKNOWN
from longstride.methods.base import Sample, demonstration
from longstride.rollout.summary import Measure
from longstride.run.imitation import Demonstrations, SolverDemonstrations

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.models.load import Policy
    from longstride.run.recipe import Recipe


class RelabelledUnfamiliar(Demonstrations):
    """Demonstrations of one turn, the least familiar of which get one and the same reply.

    Familiar is what the policy would have said itself, before it is trained on any of it: the mean log-probability of a
    token of the demonstrated reply.
    """

    demonstrations: Demonstrations = SolverDemonstrations()
    """What is imitated otherwise."""
    share: Share = 1 / 3
    """How many of them are relabelled."""
    reply: Annotated[str, Field(min_length=1)] = f"Action: answer {UNKNOWN}"
    """What is said in their place."""
    by: Literal["familiarity", "chance"] = "familiarity"
    """Which ones: the least familiar, or any."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        from longstride.run.policies import load

        return self.of_policy(load(recipe.start, recipe.chat, recipe.device), recipe, episodes, rng)

    def of_policy(self, policy: "Policy", recipe: "Recipe", episodes: int, rng: random.Random) -> list[Sample]:
        """Of the policy as it is now; for that it has to be familiar, or not, with what is demonstrated."""
        from longstride.learner.config import LearnerConfig
        from longstride.learner.learner import Learner

        found = self.demonstrations.of_policy(policy, recipe, episodes, rng)
        if self.by == "familiarity":
            known = [fmean(of) for of in Learner(policy.model, LearnerConfig()).logprobs(found)]
        else:
            known = [rng.random() for _ in found]
        reply = policy.chat.encode(self.reply) + policy.chat.close
        for k in sorted(range(len(found)), key=known.__getitem__)[: round(self.share * len(found))]:
            found[k] = demonstration(found[k].prompt_ids, reply, 1.0, found[k].episode, found[k].media)
        return found


class Unknown(Measure):
    """Whether the policy says that it does not know: 1 or 0."""

    reply: Annotated[str, Field(min_length=1)] = UNKNOWN
    """What its last turn has in it then."""
    difficulty: Literal["", "easy", "medium", "hard"] = ""
    """Of which tasks; of all if empty."""

    @property
    def name(self) -> str:
        return f"unknown_{self.difficulty}".rstrip("_")

    def __call__(self, trajectory: Trajectory) -> float | None:
        if self.difficulty and trajectory.task.difficulty != self.difficulty:
            return None
        return float(bool(trajectory.turns) and self.reply in trajectory.turns[-1].text)


class Apt(Measure):
    """Whether the policy answers rightly, or says that it does not know where no model was told (a hard task)."""

    reply: Annotated[str, Field(min_length=1)] = UNKNOWN
    """How it says so."""

    def __call__(self, trajectory: Trajectory) -> float:
        unknown = bool(trajectory.turns) and self.reply in trajectory.turns[-1].text
        return float(unknown if trajectory.task.difficulty == "hard" else trajectory.success)
