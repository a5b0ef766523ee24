"""What a run has collected so far, as its components may read it.

What always holds: what plans an iteration reads the iterations before it; replay, critics and credit, which come after
its episodes, read these too. So whatever is decided by it is decided again in the same way after a resume.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, Trajectory


class Experience(Protocol):
    """What a run has collected so far, and its models as they are now."""

    @property
    def records(self) -> Sequence[EpisodeRecord]:
        """Every episode so far, oldest first."""
        ...

    def read(self, records: Sequence[EpisodeRecord]) -> list[Trajectory]:
        """The episodes that records stand for."""
        ...

    def memory(self, owner: Component) -> dict[str, Any]:
        """What a component keeps between iterations: plain JSON data, which it changes in place. It is saved with each
        checkpoint, by the place that the component has in the recipe.

        Raises:
            ConfigError: the component has no place there.
        """
        ...

    def logprobs(self, samples: Sequence[Any]) -> list[list[float]]:
        """Of each sampled token of `methods.Sample`s, its log-probability under the policy as it is now."""
        ...

    def openings(self, tasks: Sequence[Task]) -> list[Trajectory]:
        """Of each task an episode that ended before its first turn was sampled: what the policy would read, under the
        budget of the test, is the prompt of its only turn, so that `logprobs` and `critic` can be asked of a task that
        nobody has begun. It is not stored and counts nowhere; a failed one has no turn."""
        ...

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        """The same episodes with another action in every turn that the policy sampled: one that the policy as it is now
        samples after the same prompt, as in training. No environment takes it, so the new turns have no action and no
        reward; what the episodes ended with is what was played. All processes must ask for it; `seed` is of the draw.
        """
        ...

    @property
    def critic(self) -> Any:
        """The `learner.critics.Critic` at work, or None."""
        ...


class NoExperience:
    """An `Experience` where nothing is kept and no model is at work, as in an exact problem."""

    records: Sequence[EpisodeRecord] = ()
    critic = None

    def read(self, records: Sequence[EpisodeRecord]) -> list[Trajectory]:
        return []

    def memory(self, owner: Component) -> dict[str, Any]:
        raise self._lacks("memory")

    def logprobs(self, samples: Sequence[Any]) -> list[list[float]]:
        raise self._lacks("log-probabilities")

    def openings(self, tasks: Sequence[Task]) -> list[Trajectory]:
        raise self._lacks("openings")

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        raise self._lacks("proposals")

    def _lacks(self, what: str) -> ConfigError:
        return ConfigError(f"a part of this recipe asks for {what}, which only runs of language agents have")
