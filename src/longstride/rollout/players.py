"""Players: who acts in an episode.

What always holds: a player that was asked for a turn of an episode answers once, in the order in which turns are
finished; nothing is asked of a player by two threads at a time.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from longstride.core.errors import EngineFailure
from longstride.engines.base import Engine, Request, Sampling
from longstride.rollout.context import ContextPolicy
from longstride.rollout.episode import Episode, Generation

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


class Player(Protocol):
    """Who acts."""

    def ask(self, episode: Episode) -> None:
        """Wants a turn for an episode that waits for one."""
        ...

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        """Goes on with all that was asked, and returns the turns that are finished by now; `[]` where nothing was
        asked. A failure is infrastructure trouble: the episode failed."""
        ...

    def release(self, episode: Episode) -> None:
        """Forgets what is kept for an episode that is over, an open question included."""
        ...


class LanguagePlayer:
    """A language model: a context policy makes the prompt, an engine continues it.

    Args:
        engine: continues prompts. Players may share one where only one of them has open questions.
        chat: makes ids of texts.
        context: makes a prompt of a history.
        sampling: how tokens are drawn.
    """

    def __init__(self, engine: Engine, chat: "ChatFormat", context: ContextPolicy, sampling: Sampling) -> None:
        self.engine = engine
        self.chat = chat
        self.context = context
        self.sampling = sampling
        self._asked: dict[int, tuple[Episode, Request]] = {}
        """Episode and request of each ticket of the engine."""

    def ask(self, episode: Episode) -> None:
        prompt = self.context.render(self.chat, episode.goal, episode.observations, episode.turn_ids) + episode.opening
        plan, sampling = episode.plan, self.sampling
        request = Request(
            prompt, episode.max_new, episode.turn_seed, episode.session, sampling, plan.marks, plan.ordinal
        )
        self._asked[self.engine.submit(request)] = episode, request

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        done: list[tuple[Episode, Generation | EngineFailure]] = []
        for ticket, outcome in self.engine.poll():
            episode, request = self._asked.pop(ticket)
            if not isinstance(outcome, EngineFailure):
                opening = episode.opening
                text = self.chat.decode(opening + outcome.ids)
                finish = "mark" if outcome.finish == "stop" and request.stopped(outcome.ids) else outcome.finish
                outcome = Generation(
                    request.prompt, outcome.ids, outcome.logprobs, outcome.versions, text, finish, len(opening)
                )
            done.append((episode, outcome))
        return done

    def release(self, episode: Episode) -> None:
        for ticket in [t for t, (asked, _) in self._asked.items() if asked is episode]:
            del self._asked[ticket]
            self.engine.cancel(ticket)
        self.engine.release(episode.session)


class CompanionPlayer:
    """Several speakers in one episode: the policy, and frozen other models.

    What another model says stands in the trajectory as given ids: it is read and never trained.

    Args:
        policy: plays whoever has no companion.
        companions: by speaker (`Observation.speaker`).
    """

    def __init__(self, policy: Player, companions: Mapping[str, Player]) -> None:
        self.policy, self.companions = policy, dict(companions)

    def ask(self, episode: Episode) -> None:
        self.companions.get(episode.speaker, self.policy).ask(episode)

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        done = self.policy.poll()
        for companion in self.companions.values():
            done += [(episode, _given(outcome)) for episode, outcome in companion.poll()]
        return done

    def release(self, episode: Episode) -> None:
        for player in (self.policy, *self.companions.values()):
            player.release(episode)


def _given(outcome: Generation | EngineFailure) -> Generation | EngineFailure:
    """A generation of a model that is not trained."""
    if isinstance(outcome, EngineFailure):
        return outcome
    ids = outcome.prompt_ids + outcome.sampled_ids
    return Generation(ids, [], [], [], outcome.text, outcome.finish, outcome.given + len(outcome.sampled_ids))


class ScriptedPlayer:
    """A function of the episode: demonstrators, baselines, and episodes that are played again. It gives a text, or a
    generation where it matters how that ended. Nothing is sampled, so nothing of it can be trained."""

    def __init__(self, choose: Callable[[Episode], str | Generation]) -> None:
        self.choose = choose
        self._asked: list[Episode] = []

    def ask(self, episode: Episode) -> None:
        self._asked.append(episode)

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        asked, self._asked = self._asked, []
        chosen = [(e, self.choose(e)) for e in asked]
        return [(e, c if isinstance(c, Generation) else Generation([], [], [], [], c)) for e, c in chosen]

    def release(self, episode: Episode) -> None:
        if episode in self._asked:
            self._asked.remove(episode)
