"""Tasks made from failed ones, replay by perplexity, and credit from the next and the final value (equation 9)."""

import random
from collections.abc import Sequence
from itertools import islice
from math import exp
from statistics import fmean

from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Share, Weight
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, Trajectory
from longstride.curriculum import TaskCurriculum
from longstride.curriculum.tasks import Tasks
from longstride.envs.base import Varying
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.methods import Advantage, Credit, OnPolicy, Sample, turn_rewards
from longstride.methods.advantages import gae

TRIES = 20
"""Times that a source is asked, for each task that is wanted of it."""


class FailedTasks(TaskCurriculum):
    """New tasks made from those that failed in the iteration before, in the band of the critic's values. How a task is made
    from another one is its source's to say (`envs.base.Varying`). Kinds of tasks are drawn alike: those with one source and
    with the first two parts of `template_id`, which slashes divide (an errand on a kind of site). Where nothing failed,
    where a source finds no variations, and in the first iteration, candidates are the source's tasks."""

    band: tuple[Share, Share] = (0.05, 0.75)
    """Least and largest value of a task's first prompt."""
    candidates: Count = 2
    """Candidates for each task that is played."""
    order: tuple[str, ...] = ()
    """The kind of site of each iteration, the last one from then on; all kinds of the source if empty. For the claim."""

    def check(self, source: Tasks) -> None:
        if not isinstance(source, Varying):
            raise ConfigError(
                f"curriculum {self.type_name()} makes new tasks by a method vary(task, rng) of their source, and "
                f"{type(source).__name__} has none: write one, as the page of the paper shows, take "
                "tasks.type=embedded_web, or set curriculum.type=uniform"
            )
        if self.order and not isinstance(source, EmbeddedWeb):
            raise ConfigError(
                f"curriculum.order names kinds of embedded sites, and tasks are {type(source).__name__}: set "
                "curriculum.order=[]"
            )

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        """The first `n` candidates in the band, and those nearest to it if they are fewer. A candidate whose start
        cannot be opened is left out.

        Raises:
            ConfigError: there is no critic.
        """
        assert isinstance(source, Varying)  # `check`
        if experience.critic is None:
            raise ConfigError(
                f"curriculum {self.type_name()} takes tasks by their values, and there is no critic: set "
                "critic.type=turn_value with a credit that reads it, or curriculum.type=uniform"
            )
        if self.order:
            assert isinstance(source, EmbeddedWeb)  # `check`
            done = experience.records[-1].iteration if experience.records else 0
            source = source.replace(sites=(self.order[min(done, len(self.order) - 1)],))
        wanted = self.candidates * n
        tasks = self.evolve(source, wanted, rng, experience)
        tasks += source.sample(rng, wanted - len(tasks))
        opened = experience.openings(tasks)
        experience.critic.estimate(opened)
        least, largest = self.band
        values = {k: t.turns[0].estimates["value"] for k, t in enumerate(opened) if not t.stop.failed}
        nearest = sorted(values, key=lambda k: max(least - values[k], values[k] - largest, 0.0))
        return [tasks[k] for k in nearest[:n]]

    def evolve(self, source: Varying, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        """Variations of failed tasks, `n` at most."""
        records = experience.records
        failed: dict[tuple[str, ...], list[Task]] = {}
        for t in experience.read([r for r in records if r.iteration == records[-1].iteration and not r.success]):
            if not t.stop.failed:
                failed.setdefault((t.task.source, *t.task.template_id.split("/")[:2]), []).append(t.task)
        kinds = sorted(failed)
        made = (source.vary(rng.choice(failed[rng.choice(kinds)]), rng) for _ in range(TRIES * n if kinds else 0))
        return list(islice((task for task in made if task is not None), n))


class PerplexityReplay(OnPolicy):
    """This iteration's episodes, and of earlier successes the turns whose perplexity, before the update, is in a band
    (the paper's actor confidence filtering): lower ones are learnt already, higher ones too far from the policy."""

    band: tuple[Share, Share] = (0.5, 0.95)
    """Inverse perplexity of a turn, the geometric mean of its tokens' probabilities: above the first, up to the second."""
    times: Weight = 2.0
    """Replayed episodes for one of this iteration, at most."""

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        old = [r for r in kept[: len(kept) - fresh] if r.success]
        chosen = rng.sample(range(len(old)), min(len(old), int(self.times * fresh)))
        return [old[k] for k in sorted(chosen)] + super().draw(kept, fresh, rng, experience)

    def select(self, samples: Sequence[Sample], experience: Experience) -> list[Sample]:
        newest = experience.records[-1].iteration
        earlier = {r.ordinal for r in experience.records if r.iteration < newest}
        replayed = [s for s in samples if s.episode in earlier]
        found = zip(replayed, experience.logprobs(replayed), strict=True)
        unsure = [s for s, logps in found if self.band[0] < exp(fmean(logps)) <= self.band[1]]
        return unsure + [s for s in samples if s.episode not in earlier]


class NextAndFinal(Credit):
    """Equation 9: A_t = lam (r_t + V_{t+1} - V_t) + (1 - lam) (R_t - V_t), R_t what was earned from turn t on. Values
    learn R_t of new episodes: whether they succeeded (equation 8). Those of replay, all successes, would raise them.

    The paper's problem has a finite horizon: an episode that a limit cut has failed, and no value follows its last turn.
    """

    lam: Share = 0.5
    """Weight of the next step against the end."""

    @property
    def estimates(self) -> frozenset[str]:
        return frozenset({"value"})

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        newest = max((t.iteration for t in trajectories), default=0)
        earned = super().targets(trajectories)
        return [of if t.iteration == newest else [] for t, of in zip(trajectories, earned, strict=True)]

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [self._of(turn_rewards(t), [turn.estimates["value"] for turn in t.turns]) for t in played]

    def _of(self, rewards_T: Sequence[float], values_T: Sequence[float]) -> list[float]:
        next_T, final_T = gae(rewards_T, values_T, lam=0.0), gae(rewards_T, values_T, lam=1.0)
        return (self.lam * next_T + (1 - self.lam) * final_T).tolist()
