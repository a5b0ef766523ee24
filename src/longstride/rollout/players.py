"""Players: who says what is done in an episode.

What always holds: whoever was asked for an episode answers it once, in the order in which answers are there; nothing is
asked of a player by two threads at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from longstride.core.errors import EngineFailure
from longstride.engines.base import Engine, Request, Sampling
from longstride.rollout.context import ContextPolicy
from longstride.rollout.episode import Episode, Said

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


class Player(Protocol):
    """Who says what is done."""

    def ask(self, episode: Episode) -> None:
        """Wants a turn for an episode that waits for one."""
        ...

    def poll(self) -> list[tuple[Episode, Said | EngineFailure]]:
        """Goes on with all that was asked, and hands out what is said by now; `[]` where nothing was asked. A failure
        is infrastructure trouble: the episode failed."""
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
        self._asked: dict[int, tuple[Episode, list[int]]] = {}
        """Episode and prompt of each ticket of the engine."""

    def ask(self, episode: Episode) -> None:
        prompt = self.context.render(self.chat, episode.goal, episode.observations, episode.said) + episode.opening
        request = Request(prompt, episode.max_new, episode.turn_seed, episode.session, self.sampling)
        self._asked[self.engine.submit(request)] = episode, prompt

    def poll(self) -> list[tuple[Episode, Said | EngineFailure]]:
        said: list[tuple[Episode, Said | EngineFailure]] = []
        for ticket, done in self.engine.poll():
            episode, prompt = self._asked.pop(ticket)
            if not isinstance(done, EngineFailure):
                text = self.chat.decode(episode.opening + done.ids)
                done = Said(prompt, done.ids, done.logprobs, done.versions, text, done.finish)
            said.append((episode, done))
        return said

    def release(self, episode: Episode) -> None:
        for ticket in [t for t, (asked, _) in self._asked.items() if asked is episode]:
            del self._asked[ticket]
            self.engine.cancel(ticket)
        self.engine.release(episode.session)


class ScriptedPlayer:
    """A function of the episode: demonstrators and baselines. Nothing is sampled, so nothing of it can be trained."""

    def __init__(self, choose: Callable[[Episode], str]) -> None:
        self.choose = choose
        self._asked: list[Episode] = []

    def ask(self, episode: Episode) -> None:
        self._asked.append(episode)

    def poll(self) -> list[tuple[Episode, Said | EngineFailure]]:
        asked, self._asked = self._asked, []
        return [(e, Said([], [], [], [], self.choose(e))) for e in asked]

    def release(self, episode: Episode) -> None:
        if episode in self._asked:
            self._asked.remove(episode)
