"""Delegation: where the policy is in doubt a stronger model goes on in its place.

What always holds: the policy tries first, and a guide says how good that looks; what it finds worse than `below` is
dropped and done by the other model, from the same place; then the policy is asked again. What was said before is
played again, read and sampled once. All sampled tokens are counted (`spent_tokens`), dropped ones too, and those of the
other model apart. A try that failed, or could not be judged, fails the episode: it is no doubt. Episodes in which
nothing is handed over are those of `Direct`, id for id, unless they are cut into steps of a thought.

| `each` | what is handed over | source |
|---|---|---|
| episode | the task: a cascade | Chen et al., 2023, FrugalGPT, arXiv 2305.05176 |
| turn | a turn of an episode | |
| step | a piece of a thought, up to `mark` | TRIM, arXiv 2601.10245, thresholds on the score of a step |
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, EngineFailure
from longstride.core.numbers import Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Engine
from longstride.engines.config import EngineConfig, Local
from longstride.envs.text import STEP_END
from longstride.models.api import ChatAPI
from longstride.rewards.scorers import Score
from longstride.rollout.chat_player import ChatPlayer
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.players import LanguagePlayer, Player, with_ids
from longstride.strategies.base import EvalEpisode, EvalPlan, Load, Strategy
from longstride.strategies.searched import Confidence, Guide, next_step, unfinished

HANDED = "handed_over"
"""Role of what the other model does."""
P = TypeVar("P", bound=Player)


class StepTaken(NamedTuple):
    """A step that was taken. Each field is a number, or an array over tasks that take their steps side by side."""

    tried: Any
    """Score of the policy's try."""
    tokens: Any
    """Of that try."""
    again: Any
    """Whether the other model took it again."""
    score: Any
    """Of what was kept; 0 where the guide was not asked again."""


class HandsOver(Strategy):
    """What strategies share that hand over some of the policy's tries to another model."""

    rescores: ClassVar[bool] = False
    """Whether the guide scores what the other model does as well."""
    model: str | ChatAPI
    """Who goes on: a run folder, a model's folder, a name, or a model behind a chat API. It is shown what the policy is
    shown, and samples as it does."""
    guide: Guide = Confidence()
    """Scores tries."""
    each: Literal["episode", "turn", "step"] = "episode"
    """What is tried at a time."""
    mark: str = STEP_END
    """What ends a step of a thought, in the model's words."""
    engine: EngineConfig = Local()
    """What samples its tokens; a server (`http`) has to serve this model."""
    price: Weight = 1.0
    """What a token of the other model costs, of the policy 1: for the measure `cost`."""

    @abstractmethod
    def doubts(self, task: "UnderWay", score: float, tokens: int) -> bool:
        """Whether a try with this score and so many tokens is handed over."""

    def _named(self, what: str) -> str:
        mark = f"_at_{self.mark!r}" if self.each == "step" and self.mark != STEP_END else ""
        other = self.model.name if isinstance(self.model, ChatAPI) else self.model
        price = "" if self.price == 1 else f"_at_price_{self.price:g}"
        return f"{self.type_name()}_{self.each}{mark}_{what}_by_{self.guide.name}_to_{other}{price}"

    def players(self, player: Player, load: Load) -> Player:
        """The policy, and the other model beside it.

        Raises:
            ConfigError: the policy has no token ids, or parts of episodes are handed over between different tokenizers.
        """
        player = with_ids(player, f"strategy {self.name} goes on with what a language model said")
        if isinstance(self.model, ChatAPI):
            if self.each == "step":
                raise ConfigError(
                    f"strategy {self.name}: a step goes on in the middle of a thought, and a chat API takes whole "
                    "turns; hand over turns (each=turn) or episodes (each=episode)"
                )
            asked = ChatPlayer(self.model, player.chat.config, player.context, player.sampling, player.chat)
            return Pair(player, asked)
        other = load(self.model)
        if self.each != "episode" and other.chat.vocabulary != player.chat.vocabulary:
            raise ConfigError(
                f"strategy {self.name}: {self.model!r} has another vocabulary than the policy, and each would read the "
                "tokens of the other; hand over whole episodes (each=episode), or choose models of one tokenizer"
            )
        engine = self.engine.make(other, 0, [player.sampling])
        return Pair(player, LanguagePlayer(engine, other.chat, player.context, player.sampling), engine)

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        assert isinstance(player, Pair)
        kept = player.other.keeping() if isinstance(player.other, LanguagePlayer) else nullcontext()
        with closing(player), player.policy.keeping(), kept:
            return (yield from self.shared(plans, player))

    def shared(self, plans: Sequence[Plan], player: "Pair[LanguagePlayer]") -> EvalPlan:
        """`run`, after which the player goes on playing."""
        marks = player.policy.chat.endings(self.mark) if self.each == "step" else ()
        tasks = [UnderWay(plan) for plan in plans]
        while live := [task for task in tasks if task.goes_on]:
            yield from self._step(live, marks, player)
        return [self._ended(task) for task in tasks]

    def _step(
        self, tasks: Sequence["UnderWay"], marks: tuple[tuple[int, ...], ...], player: "Pair[LanguagePlayer]"
    ) -> Generator[Sequence[Plan], list[Trajectory], None]:
        """Lets the policy try one step of each, and the other model what it is in doubt of."""
        tries = yield [self._next(task, marks) for task in tasks]
        scores = self._scored(tasks, tries, player)
        doubted: list[UnderWay] = []
        for task, t, score in zip(tasks, tries, scores, strict=True):
            task.steps += 1
            task.own += t.sampled_tokens
            if score is not None:
                again = self.doubts(task, score, t.sampled_tokens)
                task.taken.append(StepTaken(score, t.sampled_tokens, again, score))
                if again:
                    doubted.append(task)
                    continue
            task.so_far = t if score is not None else _unjudged(t)
        if doubted:
            done = yield [self._next(task, marks, HANDED) for task in doubted]
            scores = self._scored(doubted, done, player) if self.rescores else [0.0] * len(done)
            for task, t, score in zip(doubted, done, scores, strict=True):
                task.handed += 1
                task.others += t.sampled_tokens
                task.so_far = t if score is not None else _unjudged(t)
                task.taken[-1] = task.taken[-1]._replace(score=score or 0.0)

    def _scored(
        self, tasks: Sequence["UnderWay"], came: Sequence[Trajectory], player: "Pair[LanguagePlayer]"
    ) -> list[float | None]:
        """What the guide says of each, and what that takes; None of what failed or could not be judged."""
        scores = iter(self.guide([t for t in came if not t.stop.failed], player.policy))
        found: list[float | None] = []
        for task, t in zip(tasks, came, strict=True):
            of = Score(None) if t.stop.failed else next(scores)
            task.own += of.tokens
            task.read += of.read
            task.scored += of.tokens + of.read
            found.append(of.value)
        return found

    def _next(self, task: "UnderWay", marks: tuple[tuple[int, ...], ...], role: str = "") -> Plan:
        plan = next_step(task.plan, task.so_far, 2 * task.steps + bool(role), marks, whole=self.each == "episode")
        same = not role and self.each != "step"  # as `Direct` plays it
        return replace(plan, role=role, ordinal=task.plan.ordinal if same else plan.ordinal)

    def _ended(self, task: "UnderWay") -> EvalEpisode:
        """The episode that counts, under the number, the budget and the role of its plan."""
        assert task.so_far is not None
        counts = task.so_far
        budget = counts.budget.model_copy(update={"turns": task.plan.turns})
        episode = replace(counts, ordinal=task.plan.ordinal, role=task.plan.role, budget=budget)
        measures = {
            "steps": task.steps,
            "handed_over": task.handed,
            "handed_over_tokens": task.others,
            "cost": task.own + self.price * task.others,
            "scored_tokens": task.scored,
        }
        return EvalEpisode(episode, measures, task.own + task.others - counts.sampled_tokens, task.read)


class Delegate(HandsOver):
    """Hands over what the policy is in doubt of."""

    below: Share = 0.5
    """Score of the guide under which a try is handed over."""

    @property
    def name(self) -> str:
        return self._named(f"below_{self.below:g}")

    def doubts(self, task: "UnderWay", score: float, tokens: int) -> bool:
        return score < self.below


def _unjudged(t: Trajectory) -> Trajectory:
    """What could not be judged, as failed."""
    return t if t.stop.failed else replace(t, stop=StopReason.INFRA_FAILURE, reward=0.0, success=False)


@dataclass(eq=False, slots=True)
class UnderWay:
    """An episode under way."""

    plan: Plan
    so_far: Trajectory | None = None
    steps: int = 0
    handed: int = 0
    own: int = 0
    """Tokens that the policy sampled."""
    others: int = 0
    read: int = 0
    """Tokens that the guide read."""
    scored: int = 0
    """Tokens that it read and sampled."""
    taken: list[StepTaken] = field(default_factory=list)
    """The steps so far that were judged."""

    @property
    def goes_on(self) -> bool:
        return self.so_far is None or unfinished(self.plan, self.so_far)


class Pair(Generic[P]):
    """A player that gives what is handed over to another one.

    Args:
        policy: plays what is not handed over.
        other: plays what is.
        engine: is closed with it.
    """

    parts = 1

    def __init__(self, policy: P, other: LanguagePlayer | ChatPlayer, engine: Engine | None = None) -> None:
        self.policy, self.other, self.engine = policy, other, engine

    def close(self) -> None:
        """Gives back what the engine holds that was made for it."""
        if self.engine is not None:
            self.engine.close()

    def _who(self, episode: Episode) -> Player:
        return self.other if episode.plan.role == HANDED else self.policy

    def ask(self, episode: Episode) -> None:
        self._who(episode).ask(episode)

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        return self.policy.poll() + self.other.poll()

    def release(self, episode: Episode) -> None:
        self._who(episode).release(episode)
