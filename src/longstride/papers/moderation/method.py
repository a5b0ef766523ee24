"""Labels without reasons, as demonstrations."""

from longstride.core.task import Task
from longstride.envs.base import Solver
from longstride.envs.text import MARK
from longstride.run.imitation import SolverDemonstrations


class AnswersAlone(SolverDemonstrations):
    """What the task source's solver answers, without the thought before it: a label, and no reason."""

    def texts(self, source: Solver, task: Task) -> list[str]:
        said = super().texts(source, task)
        return [text[text.index(MARK) :] if MARK in text else text for text in said]
