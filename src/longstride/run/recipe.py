"""A recipe as data: the five choices of the loop and their numbers. No torch.

What always holds: two runs of one recipe give the same numbers. TOML and overrides are `core.config`'s.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

import longstride.envs.dial
import longstride.envs.hidden
import longstride.envs.judgements
import longstride.envs.levels
import longstride.envs.puzzles
import longstride.envs.sites.tasks
import longstride.envs.terminal
import longstride.rollout.hidden
import longstride.rollout.trails
import longstride.run.histories  # noqa: F401 (members of families that can be named in TOML)
from longstride.core.component import Component
from longstride.core.errors import ConfigError, OwnCodeError, short
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.curriculum import BudgetSchedule, TaskCurriculum, Uniform
from longstride.engines.base import Sampling
from longstride.engines.config import EngineConfig, Local
from longstride.envs.acting import Actions, acting
from longstride.envs.base import Env, TaskSource
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import CriticConfig, TokenValue
from longstride.methods import Anchor, Credit, Loss, Reinforce, Replay
from longstride.methods.base import ANCHOR, REFERENCE
from longstride.models.api import ChatAPI
from longstride.models.chat import ChatConfig
from longstride.rewards import EvaluatorFirst, Reward, TaskReward
from longstride.rollout.context import ContextPolicy
from longstride.rollout.planning import Groups, Sampler, WithRivals
from longstride.rollout.scheduler import PoolConfig
from longstride.rollout.summary import Measure
from longstride.rollout.trial import Trial
from longstride.run.experiment import Experiment
from longstride.run.imitation import Cloning, Imitation
from longstride.strategies import Direct, Strategy

if TYPE_CHECKING:
    from longstride.run.placement import Placement


class Evaluation(Component):
    """What is measured on held-out tasks while a recipe runs; the same tasks and seeds every time."""

    tasks: Count = 200
    """Held-out tasks."""
    attempts: Count = 1
    """Episodes of each of them: several tell how often one of k solves it."""
    every: Count = 1
    """Iterations between evaluations; the last iteration is always evaluated."""
    start: bool = True
    """Whether the start is evaluated too; without it nothing says what training has brought."""
    sampling: Sampling | None = None
    """How tokens are drawn; as in training if left out."""
    reward: Reward | None = None
    """What counts as success; left out, the tasks' own evaluators, and the recipe's reward for tasks without one."""
    strategies: tuple[Strategy, ...] = (Direct(),)
    """Test-time strategies, each a row of its own."""
    measures: tuple[Measure, ...] = ()
    """What is measured of an episode besides `rollout.summary.MEASURES`."""
    baselines: bool = True
    """Whether the trivial policies are run on the same tasks, once, beside the start."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for field, named in (("strategies", self.strategies), ("measures", self.measures)):
            names = [each.name for each in named]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{field}: two of them are called {min(twice)!r}, and rows are identified by name")
        return self


class ObjectivePhase(Component):
    """A part of a run with another objective, from some iteration on; what is left out stays as it was before."""

    after: Count
    """The last iteration before it."""
    credit: Credit | None = None
    """In place of the recipe's."""
    loss: Loss | None = None
    """In place of the recipe's."""


class Companion(Component):
    """A model that speaks in episodes beside the policy, or plays some in its place, and is never trained."""

    model: str | ChatAPI
    """As `Recipe.model`; one behind a chat API need not have the policy's tokens."""
    context: ContextPolicy
    """How a history becomes its prompt."""
    chat: ChatConfig = ChatConfig()
    """How it is talked to; it acts as the policy does."""
    sampling: Sampling = Sampling()
    """How its tokens are drawn."""
    follows: Anchor | None = None
    """How its weights follow those of the policy after the updates of a run, which makes it an earlier self: under
    `Latest(every=5)` it is the policy of up to five iterations ago. Left out, they stay those of `model`, as they do
    where nothing is trained."""

    @model_validator(mode="after")
    def _can_follow(self) -> Self:
        if self.follows is not None and (isinstance(self.model, ChatAPI) or self.follows.begins_as is not None):
            raise ValueError(
                "follows moves weights from those of `model` toward the policy's: let model be a folder, a run or a "
                "name, and follows latest or moving_average"
            )
        return self


AFTERWARDS = ("name", "sampler", "replay", "credit", "loss", "objectives", "imitation", "learner")
"""Settings of which nothing is read before the first iteration, but for the adapters of `learner`."""


class Recipe(Experiment):
    """A method for language agents, and its numbers. Iteration 0 is the start: the model, after `cloning` if any."""

    iterations: Count
    """Rounds of collecting and training."""
    episodes_per_iteration: Count
    """Episodes started in each iteration."""
    group_size: Count = 1
    """Episodes of one task and one start: what group-relative credit compares. It divides `episodes_per_iteration`."""
    trial: Trial = Trial()
    """Episodes of a task that follow one another under one context, in training and evaluation: `group_size` trials of
    `trial.episodes` episodes each are played of a task, and a group is of those at one place."""
    model: str | ChatAPI = "base"
    """Where the policy starts: `base` (the shipped one), a folder, or a Hugging Face name. Or a model behind a chat API
    (`model.url`, `model.name`), which is evaluated and cannot be trained."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where policy, reference, companions, critics of their own encoder and the local engine compute. `auto`: a GPU
    where there is one, unless the model is tiny and was timed to be faster on the CPU (`models.device`)."""
    weights: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type in which the policy's weights are kept and trained. `auto` is float32; on CUDA with `learner.lora` it is
    bfloat16, for weights that are not trained."""
    cloning: Cloning | None = None
    """Demonstrations that the policy is trained on before the first iteration; none if left out."""
    tasks: TaskSource
    """Where training and held-out tasks and their environments come from."""
    curriculum: TaskCurriculum = Uniform()
    """Which of the training tasks are drawn."""
    budget: BudgetSchedule
    """What a training episode may take, by iteration and difficulty."""
    test_budget: BudgetSchedule
    """What an evaluation episode may take; asked for iteration 1 always, so that it does not move during a run."""
    sampler: Sampler = Groups()
    """Which episodes of these tasks are played, in stages."""
    chat: ChatConfig = ChatConfig()
    """How the model is talked to: system prompt, chat template, thoughts."""
    actions: Actions = "text"
    """How it acts: in words that it knows (`text`), in words that are explained after the goal (`explained`), or by
    calls of tools, which its chat template presents (`tool_calls`)."""
    context: ContextPolicy
    """How a history becomes a prompt."""
    companions: dict[str, Companion] = {}
    """Other models, by the name that the environment gives a speaker (`Observation.speaker`), or that is an episode's
    role (`rollout.WithRivals`); the policy speaks for everyone else."""
    sampling: Sampling = Sampling()
    """How tokens are drawn."""
    engine: EngineConfig = Local()
    """Where they come from."""
    pool: PoolConfig = PoolConfig()
    """How episodes are played side by side, and how far ahead of the update."""
    stored_run: str = ""
    """Folder of a run whose trajectories are trained on, iteration by iteration, instead of new ones, or files of its
    exported ones; nothing is rolled out but for evaluation. A whole run is one iteration where `iterations` is 1 and
    `episodes_per_iteration` counts all of its episodes. Empty rolls out."""
    reward: Reward
    """What a training episode earns."""
    replay: Replay
    """Which of all collected episodes are trained on."""
    credit: Credit
    """Which tokens of them are trained, with which advantage."""
    loss: Loss = Reinforce()
    """What an optimiser step makes of the advantages."""
    learner: LearnerConfig = LearnerConfig()
    """The optimiser step."""
    critic: CriticConfig | None = None
    """What learns the estimates that credit reads."""
    imitation: Imitation | None = None
    """Demonstrations that are trained on beside the collected episodes, in every iteration; none if left out."""
    objectives: tuple[ObjectivePhase, ...] = ()
    """Other objectives later on, by iteration."""
    evaluation: Evaluation = Evaluation()
    """What is measured."""
    patience: Count = 5
    """Iterations in a row in which every episode failed or nothing was trained, after which the run is given up."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        together = f"group_size ({self.group_size})"
        if self.trial.episodes > 1:
            together += f" times trial.episodes ({self.trial.episodes})"
        if self.episodes_per_iteration % (self.group_size * self.trial.episodes):
            raise ValueError(f"episodes_per_iteration ({self.episodes_per_iteration}) must be a multiple of {together}")
        for strategy in self.evaluation.strategies if self.trial.episodes > 1 else ():
            if type(strategy).run is not Strategy.run:
                raise ValueError(
                    f"strategy {strategy.name} plays episodes of its own, and trials are played one episode after the "
                    "other: evaluate trials under direct, or set trial.episodes=1"
                )
        if self.pool.staleness:
            for part in (self.sampler, self.curriculum, *self.budget.schedules.values()):
                if part.adaptive:
                    raise ValueError(
                        f"{part.type_name()} decides what is played by what came before: set pool.staleness to 0, not "
                        f"{self.pool.staleness}"
                    )
        if isinstance(self.sampler, WithRivals) and self.sampler.companion not in self.companions:
            raise ValueError(
                f"with_rivals lets {self.sampler.companion!r} play, and companions has "
                f"{', '.join(self.companions) or 'nobody'}: set companions.{self.sampler.companion}.model"
            )
        if self.tasks.says_worth and isinstance(self.reward, TaskReward):
            raise ValueError(
                f"{self.tasks.type_name()} says itself what an episode was worth, and its tasks have no evaluator: set "
                "reward.type=environment_reward"
            )
        if self.test_budget.adaptive:
            raise ValueError("test_budget does not move during a run, so none of its schedules may be adaptive")
        if [phase.after for phase in self.objectives] != sorted({phase.after for phase in self.objectives}):
            raise ValueError("objectives go by iteration: `after` must ascend")
        needed = frozenset().union(*(at.credit.estimates for at in (self, *self.objectives) if at.credit))
        given = self.critic.estimates if self.critic else frozenset()
        if needed - given or (self.critic and not needed & given):
            raise ValueError(
                "a critic goes with a credit that reads its estimates: the credit reads "
                f"{', '.join(sorted(needed)) or 'none'}, the critic gives {', '.join(sorted(given)) or 'none'}; for "
                "PPO set credit.values='critic' and critic.type='turn_value' together"
            )
        drawn = (self.sampling.temperature, self.sampling.top_p)
        for loss in self.losses:
            if loss.reads_sampler and drawn != (1.0, 1.0):
                raise ValueError(
                    f"loss {loss.type_name()} compares the policy with the distribution that was sampled from: "
                    f"sampling.temperature and sampling.top_p must be 1 and 1, not {drawn[0]} and {drawn[1]}"
                )
        if len(self.references) > 1:
            raise ValueError(
                "the losses of a run hold on to one model at first, and these to "
                f"{' and '.join(sorted(name or 'the start' for name in self.references))}: give kl.anchor one model"
            )
        most = self.budget.most("turns", self.iterations)
        if isinstance(self.critic, TokenValue) and most != 1:
            raise ValueError(
                "critic token_value gives each token what its whole episode earned, so episodes may have one turn: set "
                f"budget.turns to 1, not {most}, or critic.type to turn_value"
            )
        return self

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(strategy.name for strategy in self.evaluation.strategies)

    @property
    def losses(self) -> list[Loss]:
        """Of all objectives."""
        return [self.loss, *(phase.loss for phase in self.objectives if phase.loss)]

    @property
    def needs(self) -> frozenset[str]:
        """The streams that the losses of all objectives need."""
        return frozenset().union(*(loss.needs for loss in self.losses))

    @property
    def references(self) -> frozenset[str | None]:
        """What losses hold on to at first, if any does: a model by its name, or None, the start of the run."""
        return frozenset(
            loss.anchors[name].begins_as if name in loss.anchors else None
            for loss in self.losses
            for name in loss.needs & {REFERENCE, ANCHOR}
        )

    @property
    def start(self) -> str:
        """The model that training starts from.

        Raises:
            ConfigError: it is behind a chat API.
        """
        if isinstance(self.model, ChatAPI):
            raise ConfigError(
                f"model: {self.model} is behind a chat API, which gives neither tokens nor weights, so it cannot be "
                "trained; `longstride eval` evaluates it"
            )
        return self.model

    @property
    def adaptive(self) -> bool:
        """Whether what an iteration plays depends on what was played before."""
        return self.sampler.adaptive or self.curriculum.adaptive or self.budget.adaptive

    @property
    def test_reward(self) -> Reward:
        """What an evaluation episode earns."""
        return self.evaluation.reward or EvaluatorFirst(otherwise=self.reward)

    def env(self) -> Env:
        """A new environment for one task, as the policy acts in it."""
        return acting(self.tasks.env(), self.actions)

    def held_out(self) -> list[Task]:
        """The tasks of an evaluation: `evaluation.tasks` of the held-out ones, or all where there are fewer.

        Raises:
            TaskError: there are none.
            OwnCodeError: a source of the user's own gives something else.
        """
        found = self.tasks.held_out(self.evaluation.tasks)
        if not isinstance(found, Sequence) or not all(isinstance(task, Task) for task in found):
            raise OwnCodeError(
                f"{type(self.tasks).__name__}.held_out returned {short(found)}; expected a list of tasks"
            )
        return list(found)

    def at(self, iteration: int) -> Self:
        """The recipe as it stands in an iteration: with the choices of the objectives that have begun."""
        begun = [phase for phase in self.objectives if phase.after < iteration]
        chosen = {name: choice for phase in begun for name in ("credit", "loss") if (choice := getattr(phase, name))}
        return self.model_copy(update=chosen)

    def settled(self, placement: "Placement | None" = None) -> Self:
        """A copy in which what depends on this machine is decided (device, weights, engine, learner), which `run.toml`
        keeps; `ConfigError` for a device that is not here. On a cluster the GPUs are the cluster's to share out."""
        from longstride.models.device import settled_device, settled_weights

        elsewhere = placement is not None and self.device == "auto"
        device = "cpu" if elsewhere else settled_device(self.device, self.start)
        weights = settled_weights(self.weights, device, trained=self.learner.lora is None)
        engine = self.engine if elsewhere else self.engine.settled(device, self.start)
        learner = self.learner.settled(device)
        return self.replace(device=device, weights=weights, engine=engine, learner=learner)

    def beginning(self) -> dict[str, Any]:
        """All that iteration 0 depends on, in a run and any other one that answers the same."""
        data = self.identity()
        lora = data["learner"].get("lora")
        here = {"lora": lora, "device": self.device, "weights": self.weights}  # which numbers come depends on these
        return {key: value for key, value in data.items() if key not in AFTERWARDS} | here

    def identity(self) -> dict[str, Any]:
        """Besides how long it goes on (`patience` too), where it does is left out: `device`, and `weights`, whose
        `auto` is decided by the device. So the weights of a run may go on in the type that this recipe names."""
        data = self.as_data()
        if data["engine"].get("plain") is not True:  # runs of versions that had no plain engine say nothing of it
            data["engine"].pop("plain", None)
        return {key: value for key, value in data.items() if key not in ("iterations", "patience", "device", "weights")}
