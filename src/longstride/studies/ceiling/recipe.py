"""A solver imitated, and success by errand."""

from longstride.core.trajectory import Trajectory
from longstride.learner.config import LearnerConfig
from longstride.papers.tti import recipe as tti
from longstride.rollout.summary import Measure
from longstride.run.imitation import Cloning
from longstride.starts.demonstrators import Sites
from longstride.starts.scripted import ScriptedDemonstrations

SOLVER = Sites(patient=1.0, example=1.0, slips=0.0, sheet=0.0, checked=0.0, recalls=True)


class ErrandSuccess(Measure):
    """Success in the tasks of one errand."""

    errand: str
    """Its name in the tasks' `meta`."""

    @property
    def name(self) -> str:
        return f"success_{self.errand}"

    def __call__(self, trajectory: Trajectory) -> float | None:
        return float(trajectory.success) if trajectory.task.meta.get("errand") == self.errand else None


ERRANDS = ("act", "compare", "find", "hop", "search", "survey")

RECIPE = tti.RECIPE.replace(
    name="ceiling",
    iterations=1,
    episodes_per_iteration=8,
    cloning=Cloning(
        demonstrations=ScriptedDemonstrations(demonstrators=SOLVER),
        episodes=6000,
        learner=LearnerConfig(
            lr=2e-3,
            warmup_steps=100,
            decay_steps=900,
            min_lr_ratio=0.02,
            betas=(0.9, 0.98),
            batch_samples=64,
            dtype="float32",
            threads="auto",
        ),
    ),
    learner={"epochs": 0},
    evaluation={
        "tasks": 400,
        "every": 1,
        "baselines": False,
        "measures": tuple(ErrandSuccess(errand=e) for e in ERRANDS),
    },
)
