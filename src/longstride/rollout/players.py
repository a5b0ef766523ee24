"""Players: who acts in an episode.

What always holds: a player that was asked for a turn of an episode answers once, in the order in which turns are
finished; nothing is asked of a player by two threads at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from longstride.core.content import placed
from longstride.core.errors import ConfigError, EngineFailure, EnvFailure
from longstride.core.seeds import derive
from longstride.engines.base import Completion, Engine, Request, Sampling
from longstride.rollout.context import ContextPolicy
from longstride.rollout.episode import Episode, Generation

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


class Player(Protocol):
    """Who acts."""

    @property
    def parts(self) -> int:
        """Parts that work apart, as those of an engine of several processes: episode n is served by part n modulo
        this."""
        ...

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


class _Asked(NamedTuple):
    """A request for a turn, or for what follows its thought."""

    episode: Episode
    request: Request
    thought: Completion | None = None
    """What was sampled of the turn before."""
    closed: int = 0
    """How many ids ended a thought that its budget cut."""


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
        self._asked: dict[int, _Asked] = {}
        """By ticket of the engine."""
        self._tickets: dict[Episode, int] = {}
        """Of each episode with an open question."""
        self._refused: list[tuple[Episode, Generation | EngineFailure]] = []
        """Episodes whose environment names tools, or says messages, that cannot be presented."""
        self._kept: list[int] | None = None
        """Sessions of episodes that are over, where they are kept."""

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While it lasts, what is cached for an episode outlives it: others begin with what it said."""
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for session in kept:
                self.engine.release(session)

    @property
    def parts(self) -> int:
        """Those of its engine."""
        return self.engine.parts

    def ask(self, episode: Episode) -> None:
        plan, most = episode.plan, episode.max_new
        try:
            chat = self.chat.offering(episode.functions)
            prompt = self.context.render(chat, episode.past) + episode.opening
        except EnvFailure as e:
            self._refused.append((episode, EngineFailure(f"nothing was asked: {e}")))
            return
        media = placed(prompt, episode.media) if episode.media else ()
        stop = plan.marks
        if (limit := episode.max_thought) is not None and chat.thought_end is not None:
            stop, most = (*stop, (chat.thought_end,)), min(limit, most)
        request = Request(prompt, most, episode.turn_seed, episode.session, self.sampling, stop, plan.first, media)
        self._submit(_Asked(episode, request))

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        done, self._refused = self._refused, []
        for ticket, outcome in self.engine.poll() if self._asked else ():
            asked = self._asked.pop(ticket)
            del self._tickets[asked.episode]
            if isinstance(outcome, EngineFailure):
                done.append((asked.episode, outcome))
            elif (further := self._after_thought(asked, outcome)) is not None:
                self._submit(further)
            else:
                done.append((asked.episode, self._generation(asked, outcome)))
        return done

    def _submit(self, asked: "_Asked") -> None:
        ticket = self.engine.submit(asked.request)
        self._asked[ticket], self._tickets[asked.episode] = asked, ticket

    def _after_thought(self, asked: "_Asked", came: Completion) -> "_Asked | None":
        """What is asked for after a thought that has ended or was cut by its budget; None where the turn is over."""
        episode, request, ids = asked.episode, asked.request, came.ids
        ended = ids[-1:] == [self.chat.thought_end]
        if episode.max_thought is None or asked.thought or not (ended or came.finish == "length"):
            return None
        cut = self.chat.thought_close if self.chat.is_thinking(episode.opening + ids) else []
        rest = episode.max_new - len(ids) - len(cut)
        further = replace(
            request,
            prompt=request.prompt + ids + cut,
            max_new=rest,
            seed=derive(request.seed, "speech"),
            stop=episode.plan.marks,
        )
        return _Asked(episode, further, came, len(cut)) if rest > 0 else None

    def _generation(self, asked: "_Asked", came: Completion) -> Generation:
        episode, prompt, before = asked.episode, asked.request.prompt, asked.thought
        given, cut = len(episode.opening), 0
        if before and asked.closed:  # ids that were not sampled follow the thought, so it cannot be trained
            given, cut = given + len(before.ids) + asked.closed, len(before.ids)
        elif before:
            prompt = prompt[: -len(before.ids)]
            came = Completion(
                before.ids + came.ids, before.logprobs + came.logprobs, before.versions + came.versions, came.finish
            )
        finish = came.finish
        if finish == "stop" and replace(asked.request, stop=episode.plan.marks).stopped(came.ids):
            finish = "mark"
        elif finish == "stop" and came.ids[-1] == self.chat.thought_end:  # no token is left for speech
            finish = "length"
        text = self.chat.decode(prompt[len(prompt) - given :] + came.ids)
        return Generation(prompt, came.ids, came.logprobs, came.versions, text, finish, given, cut, asked.request.media)

    def release(self, episode: Episode) -> None:
        ticket = self._tickets.pop(episode, None)
        if ticket is not None:
            del self._asked[ticket]
            self.engine.cancel(ticket)
        (self.engine.release if self._kept is None else self._kept.append)(episode.session)


def with_ids(player: Player, who: str) -> LanguagePlayer:
    """A player of a model in this process or behind a server of tokens.

    Args:
        player: any.
        who: needs token ids or log-probabilities: the subject of a sentence, with what it does with them.

    Raises:
        ConfigError: it is another one: a script, or a model behind a chat API, which gives text alone.
    """
    if not isinstance(player, LanguagePlayer):
        raise ConfigError(
            f"{who}: it needs token ids and log-probabilities, and {type(player).__name__} gives text alone; take "
            "direct, check_again, or best_of by.type=majority"
        )
    return player


class ScriptedPlayer:
    """A function of the episode: demonstrators, baselines, and episodes that are played again. It gives a text, or a
    generation where it matters how that ended. Nothing is sampled, so nothing of it can be trained."""

    parts = 1

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
