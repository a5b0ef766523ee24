"""Recipe and claim as data: the five choices of the loop and their numbers, and what a paper says comes of them. No
torch.

What always holds: two runs of one recipe give the same numbers. TOML and overrides are `core.config`'s.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

import longstride.envs.puzzles
import longstride.envs.sites.tasks  # noqa: F401 (members of TaskSource that can be named in TOML)
from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.curriculum.schedules import BudgetSchedule
from longstride.engines.base import Sampling
from longstride.engines.config import EngineConfig, Local
from longstride.envs.base import TaskSource
from longstride.learner.config import Count, LearnerConfig
from longstride.learner.critic import Critic
from longstride.methods import GAE, Credit, Loss, Reinforce, Replay
from longstride.methods.losses import RatioLoss
from longstride.rewards import Reward, TaskReward
from longstride.rollout.context import ContextPolicy
from longstride.rollout.planning import Groups, Sampler
from longstride.rollout.rounds import PoolConfig
from longstride.run.experiment import Experiment
from longstride.strategies import Direct, Strategy

if TYPE_CHECKING:
    from longstride.cluster.config import ClusterConfig
    from longstride.run.folder import Listener


class Evaluation(Component):
    """What is measured on held-out tasks while a recipe runs; the same tasks and seeds every time."""

    tasks: Count = 200
    """Held-out tasks."""
    samples: Count = 1
    """Episodes of each of them: several tell how often one of k solves it."""
    every: Count = 1
    """Iterations between evaluations; the warm start and the last iteration are always evaluated."""
    sampling: Sampling | None = None
    """How tokens are drawn; as in training if left out."""
    reward: Reward = TaskReward()
    """What counts as success: the tasks' own evaluators, unless they need a judge."""
    strategies: tuple[Strategy, ...] = (Direct(),)
    """Test-time strategies, each a row of its own."""
    baselines: bool = True
    """Whether the trivial policies are run on the same tasks, once."""

    @model_validator(mode="after")
    def _tells_strategies_apart(self) -> Self:
        names = [strategy.name for strategy in self.strategies]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"strategies: two of them are called {min(twice)!r}, and rows are told apart by name")
        return self


class Stage(Component):
    """A part of a run with another objective, from some iteration on; what is left out stays as the stage before had
    it."""

    after: Count
    """The last iteration before it."""
    credit: Credit | None = None
    """In place of the recipe's."""
    loss: Loss | None = None
    """In place of the recipe's."""


class Recipe(Experiment):
    """A method for language agents, and its numbers. Iteration 0 is the warm start."""

    iterations: Count
    """Rounds of collecting and training."""
    episodes: Count
    """Episodes started in each iteration."""
    group: Count = 1
    """Episodes of one task and one start: what group-relative credit compares. A divisor of `episodes`."""
    model: str = "base"
    """Where the policy starts: `base` (the shipped one), a folder, or a Hugging Face name."""
    tasks: TaskSource
    """Where training and held-out tasks and their environments come from."""
    horizon: BudgetSchedule
    """Turns that a training episode may take, by iteration and difficulty."""
    tokens: BudgetSchedule | None = None
    """Sampled tokens that a training episode may take, by iteration and difficulty; left out: `budget.tokens`."""
    test_horizon: BudgetSchedule
    """Turns that an evaluation episode may take; asked for iteration 1 always, so that it does not move during a
    run."""
    budget: Budget = Budget()
    """Every other limit of an episode; its `turns` are replaced by the horizon."""
    sampler: Sampler = Groups()
    """Which episodes of these tasks are played, in stages."""
    context: ContextPolicy
    """How a history becomes a prompt."""
    sampling: Sampling = Sampling()
    """How tokens are drawn."""
    engine: EngineConfig = Local()
    """Where they come from."""
    pool: PoolConfig = PoolConfig()
    """How episodes are played side by side, and how far ahead of the update."""
    stored: str = ""
    """Folder of a run whose trajectories are trained on, iteration by iteration, instead of new ones; nothing is rolled
    out but for evaluation. Empty rolls out."""
    reward: Reward
    """How an episode is scored in training."""
    replay: Replay
    """Which of all collected episodes are trained on."""
    credit: Credit
    """Which tokens of them are trained, with which weight."""
    loss: Loss = Reinforce()
    """What an optimiser step makes of the weights."""
    learner: LearnerConfig = LearnerConfig()
    """The optimiser step."""
    critic: Critic | None = None
    """What learns the values of turns, where credit reads them."""
    stages: tuple[Stage, ...] = ()
    """Other objectives later on, by iteration."""
    evaluation: Evaluation = Evaluation()
    """What is measured."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.episodes % self.group:
            raise ValueError(f"episodes ({self.episodes}) must be a multiple of group ({self.group})")
        if self.sampler.staged and self.pool.staleness:
            raise ValueError(
                f"sampler {self.sampler.type_name()} decides what is played by what came before: set pool.staleness to "
                f"0, not {self.pool.staleness}"
            )
        if [s.after for s in self.stages] != sorted({s.after for s in self.stages}):
            raise ValueError("stages go by iteration: `after` must ascend")
        drawn = (self.sampling.temperature, self.sampling.top_p)
        credits = (at.credit for at in (self, *self.stages))
        reads = any(isinstance(credit, GAE) and credit.values == "critic" for credit in credits)
        if reads != (self.critic is not None):
            raise ValueError(
                "a critic goes with credit that reads its values: credit={type='gae', values='critic'} and critic={} "
                "belong together"
            )
        for loss in self.losses:
            if isinstance(loss, RatioLoss) and drawn != (1.0, 1.0):
                raise ValueError(
                    f"loss {loss.type_name()} compares the policy with the distribution that was sampled from: "
                    f"sampling.temperature and sampling.top_p must be 1 and 1, not {drawn[0]} and {drawn[1]}"
                )
        return self

    @property
    def losses(self) -> list[Loss]:
        """Of all stages."""
        return [self.loss, *(stage.loss for stage in self.stages if stage.loss)]

    def at(self, iteration: int) -> Self:
        """The recipe as it stands in an iteration: with the choices of the stages that have begun."""
        begun = [stage for stage in self.stages if stage.after < iteration]
        chosen = {name: choice for s in begun for name in ("credit", "loss") if (choice := getattr(s, name))}
        return self.model_copy(update=chosen)

    def train(
        self,
        folder: Path,
        listener: "Listener | None" = None,
        resume: bool = False,
        cluster: "ClusterConfig | None" = None,
    ) -> None:
        """See `trainer.train`."""
        from longstride.run.loop import train

        train(self, folder, listener, resume, cluster)

    def identity(self) -> dict[str, Any]:
        data = self.as_data()
        del data["iterations"]
        return data
