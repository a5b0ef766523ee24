"""A workspace that is rebuilt in every turn (`Workspace`), credit that falls with the turns that are still to come
(`EfficiencyAware`), and solutions that report (`ReportedSolutions`)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from longstride.core.errors import ConfigError
from longstride.core.numbers import Share
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Noting, Solver
from longstride.envs.text import THOUGHT
from longstride.methods import Advantage, Credit
from longstride.methods.advantages import group_advantages
from longstride.rollout.context import ContextPolicy, FullHistory, LatestObservation, Past, PromptPieces
from longstride.run.imitation import SolverDemonstrations


class Workspace(ContextPolicy):
    """The goal, what was said last, and what came of it: the report that stands before the last action is all that is left
    of what was before. A prompt is as long in turn 2,000 as in turn 2.

    The report is whatever the policy says beside its action, in its own ids; a thought in `<think>` is none of it where
    the chat format cuts thoughts out. A policy that reports nothing forgets everything.
    """

    placeholder: str = "omitted"
    """What stands where the observation stood to which the report is an answer."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        if not past.sampled:
            return LatestObservation().render(chat, past)
        seen = [self.placeholder, past.observations[-1]]
        return FullHistory().render(chat, replace(past, observations=seen, sampled=past.sampled[-1:]))


class EfficiencyAware(Credit):
    """The credit of EAPO: turn t of T has earned discount^(T - t) of its episode's reward R, and its advantage is

        A_t = (r_t - m) / s,  r_t = discount^(T - t) R

    with mean m and deviation s of all turns of all episodes of its group. So of two successes the turns of the shorter one
    weigh more, and in an episode the later ones; with discount 1 every turn of a success weighs alike.
    """

    discount: Share
    """Of a turn that is still to come (gamma)."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        earned = [self.discount ** (t.length - 1 - k) * t.reward for t in played for k in range(t.length)]
        groups = [t.group for t in played for _ in t.turns]
        flat = iter(group_advantages(earned, groups, "mean", "std").tolist())
        return [list(islice(flat, t.length)) for t in played]


class ReportedSolutions(SolverDemonstrations):
    """Solutions in which every turn reports before it acts. For tasks that know what is to be remembered
    (`envs.base.Noting`); a larger model's reports are `ModelSuccesses`."""

    def texts(self, source: Solver, task: Task) -> list[str]:
        if not isinstance(source, Noting):
            raise ConfigError(
                f"demonstrations of type reported_solutions need tasks that know what to report; {type(source).__name__} has "
                "no `note`: take dial_codes, or demonstrations.type=model_successes with a model that reports"
            )
        return [f"{THOUGHT} {source.note(task, k)} {text}" for k, text in enumerate(source.demonstrate(task))]
