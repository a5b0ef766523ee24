"""Chat formats: a tokenizer's chat template, cut once into pieces of ids.

What always holds: a prompt is `head(goal)`, `observation(text, first=True)`, sampled ids, `observation(text)`, sampled
ids, and so on; it spells what the template would render, but nothing the policy sampled is decoded and encoded again;
a conversation only grows at its end, but where thoughts are stripped, which cuts sampled ids and encodes none; text of
a system prompt, a goal, a page or a tool never becomes a special token, whatever it spells. Images and data of an
observation stand in it as placeholders (`core.content`), each once, in their places; what an id below zero becomes is
for the model to say.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from longstride.core.bounded import LimitError, RefusedError, text_of
from longstride.core.component import Component
from longstride.core.content import Content, joined, text_in
from longstride.core.errors import EnvFailure, LongstrideWarning, ModelError, short
from longstride.models.thoughts import THINK, THOUGHT_END

NAMED_WORDS = 20
"""Words that the vocabulary lacks and that are named, about."""
UNSEEN_WORDS = "unseen_words"
"""In tokenizer_config.json: words of the recipes that a model was made for that no demonstration showed, so that it
lacks them; brackets too, which a site shows where the policy has typed square ones."""
TEMPLATE_SECONDS, TEMPLATE_MEGABYTES = 5.0, 256
"""What a template may take; those of models take milliseconds. It is a program of whoever made the model."""
CACHED_PIECES = 4096
"""Encoded observations kept: many episodes see the same page."""
CACHED_TOOLS = 64
"""Formats kept, for the sets of tools that environments offer."""
CACHED_ROLES = 1024
"""Sequences of roles whose markup is kept, for conversations that programs make up."""
CACHED_ENDINGS = 64
"""Words whose ids are kept, for the marks of searches."""
_MADE: dict[str, str] = {}
"""What templates made of conversations, by all that they were given; the newest `CACHED_ROLES`."""
_MARKS = [f"sentinel{n}sentinel" for n in ("System", *(f"{who}{k}" for k in "ABC" for who in ("User", "Agent")), "End")]


def _read(template: str) -> str:
    if not template or "{" in template:
        return template
    try:
        return Path(template).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ValueError(f"{template[:200]!r} is neither a Jinja template nor a file that holds one ({e})") from e


class ChatConfig(Component):
    """How a recipe talks to its model."""

    system: str = ""
    """System prompt; a template without a system role gets it in front of the goal."""
    template: Annotated[str, AfterValidator(_read)] = ""
    """Chat template in place of the model's own: Jinja, or a file that holds it (the recipe keeps the text, and every
    checkpoint has it in its tokenizer)."""
    thinking: Literal["keep", "strip", "off"] = "keep"
    """What becomes of a reasoning model's thoughts in the prompts of later turns: they stay, so that a prompt only
    grows, or they are cut out, as many templates do. `off` tells the template that the model shall not think
    (`enable_thinking`). `budget.thought_tokens` limits them."""
    media: Literal["give", "leave_out"] = "give"
    """What becomes of images and data in observations: the model is given them, and is refused where it takes text
    alone; or they are left out of prompts, and summaries count them (`left_out`)."""


class ChatFormat:
    """A chat template as constant pieces.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        config: system prompt and what becomes of thoughts; its template is the tokenizer's by now (`make_policy`).
        tools: functions that the template presents to the agent (`envs.tools.Tool.function`); observations are then
            their answers, where it has a role for these.

    Raises:
        ModelError: there is no template, it does not only append, it does not end the agent's turn with a special
            token, it does not present the tools, or the tokenizer cannot keep special tokens out of plain text.
    """

    end_ids: frozenset[int]
    """Ids that end the agent's turn."""
    close: list[int]
    """The ids that close an agent's turn that was cut short."""
    thought_end: int | None
    """The id of `</think>`; None where the model has no such token."""
    thought_close: list[int]
    """The ids that end a thought that was cut short."""

    def __init__(
        self, tokenizer: Any, config: ChatConfig | None = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                "the tokenizer has no chat template, so there is no telling where the agent speaks; take an "
                "instruction-tuned model, or set chat.template"
            )
        self._tokenizer, self._config, self._tools = tokenizer, config or ChatConfig(), list(tools)
        self._names = [tool["function"]["name"] for tool in tools]
        self._known = frozenset(self.vocabulary.values())
        self._unknown_words = frozenset(tokenizer.init_kwargs.get(UNSEEN_WORDS, ()))
        self._warned = len(self._unknown_words) >= NAMED_WORDS  # whoever lists that many expects others
        special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._refuse_markup(special)
        before, system, first, later, newest, after_agent = self._cut()
        closing = self._markup(after_agent.lstrip())
        if not closing or closing[0] not in special:
            raise ModelError(
                f"the chat template puts {after_agent[:40]!r} behind the agent's turn; expected was a special token "
                "that ends the turn (such as <|im_end|>): add one to the template and to the tokenizer's special tokens"
            )
        self.close = closing[:1]
        self.end_ids = frozenset([*self.close, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])])
        self._head = [*self._markup(before), *system]
        self._next = closing[1:]
        self._openings = {
            (one, past): self._markup(text if past else text + newest)
            for one, text in ((True, first), (False, later))
            for past in (True, False)
        }
        opened = (i for ids in self._openings.values() for i in ids)
        self._refuse_injection({*self._head, *opened, *closing, *self.end_ids} & special)
        begin, end = (tokenizer.get_vocab().get(tag) for tag in (THINK, THOUGHT_END))
        if begin is None or end is None or {begin, end} & special:
            begin, end = -1, None
        self._thought_begin, self.thought_end = begin, end
        self._thinks_at_once = THINK in newest and THOUGHT_END not in newest.rpartition(THINK)[2]
        self.thought_close = self._markup(f"{THOUGHT_END}\n\n")
        if self._config.thinking == "strip" and self.thought_end is None:
            raise ModelError(
                f"chat.thinking=strip needs a model with the tokens {THINK} and {THOUGHT_END}; set it to keep"
            )
        self._observation = lru_cache(CACHED_PIECES)(self._encode_observation)
        self._offering = lru_cache(CACHED_TOOLS)(self._with_tools)
        self._endings = lru_cache(CACHED_ENDINGS)(self._find_endings)  # which reads the whole vocabulary
        self._around = lru_cache(CACHED_ROLES)(self._cut_around)

    def offering(self, tools: Sequence[Mapping[str, Any]]) -> "ChatFormat":
        """The format whose template presents these tools; this one where there are none.

        Raises:
            ModelError: it cannot.
            EnvFailure: what a tool says of itself spells a special token.
        """
        return self._offering(json.dumps(tools)) if tools else self

    @property
    def config(self) -> ChatConfig:
        """How the model is talked to."""
        return self._config

    @property
    def pieces(self) -> dict[str, Any]:
        """The constant ids of a conversation of text alone: `head`, `next` (before a later observation), `opening`
        (after the first observation, and after a later one), `end` (those that end a turn) and `close`."""
        opening = [self._openings[one, False] for one in (True, False)]
        end = sorted(self.end_ids)
        return {"head": self._head, "next": self._next, "opening": opening, "end": end, "close": self.close[0]}

    @property
    def vocabulary(self) -> dict[str, int]:
        """The id of each token."""
        return self._tokenizer.get_vocab()

    def head(self, goal: str) -> list[int]:
        """All that stands before the first observation."""
        return [*self._head, *self.encode(goal)]

    def observation(self, content: Content, first: bool = False, past: bool = False) -> list[int]:
        """An observation with what stands before and after it, up to the place where the agent speaks.

        The first one stands in the goal's message, on a new line; each other one is a message of its own. `past`: the
        agent has spoken after it in an earlier turn.
        """
        past = past and self._config.thinking == "strip"
        if self._config.media == "leave_out":
            content = text_in(content)
        if isinstance(content, str):
            return list(self._observation(content, first, past))
        chunks = joined(("\n", *content)) if first else content
        ids = [i for c in chunks for i in (self.encode(c) if isinstance(c, str) else [c.placeholder])]
        return [*(() if first else self._next), *ids, *self._openings[first, past]]

    def spoken(self, ids: list[int]) -> list[int]:
        """The ids of an earlier turn as they stand in later prompts, with an end: all of them, or those after its
        thought."""
        if self._config.thinking == "strip":
            ids = self._without_thought(ids)
        return ids if ids and ids[-1] in self.end_ids else [*ids, *self.close]

    def conversation(self, roles: Sequence[str], contents: Sequence[list[int]], later: bool) -> list[int]:
        """Messages of a conversation, up to the place where the agent speaks; what they say stands between the markup
        that the template puts around messages of these roles.

        Args:
            roles: system, user, assistant or tool; a template without the role of tools has their answers as a user's.
            contents: the ids of each; an assistant's are `spoken`.
            later: whether they stand behind a turn of the agent; if not, they begin the conversation.

        Raises:
            EnvFailure: the template refuses such a conversation, or leaves out or reorders what it says.
        """
        before, *behind = self._around(tuple(roles), later)
        return [*before, *(i for content, after in zip(contents, behind, strict=True) for i in (*content, *after))]

    def encode(self, text: str) -> list[int]:
        """The ids of plain text: nothing in it becomes a special token."""
        ids = self._plain(text)
        if self._tokenizer.unk_token_id in ids:
            self._warn_of_unknown_words(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a turn's ids, without special tokens and without ids that are no token, which a model with more
        embeddings than tokens may sample; a thought that the template began has its tag."""
        text = self.verbatim(ids).strip()
        return THINK + text if self._thinks_at_once else text

    def verbatim(self, ids: Sequence[int]) -> str:
        """As `decode`, with white space at both ends, and without a tag that nobody sampled."""
        return self._text(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def endings(self, words: str) -> tuple[tuple[int, ...], ...]:
        """The ids with which a text ends that has just said some words: theirs, also behind a space, and each token
        that says them among other characters, as `.\\n\\n` does an empty line."""
        return self._endings(words)

    def _find_endings(self, words: str) -> tuple[tuple[int, ...], ...]:
        own, behind = (tuple(self.encode(space + words)) for space in ("", " "))
        found = [own] if behind[-len(own) :] == own else [own, behind]
        return (*found, *((i,) for i in sorted(self._known) if words in self.verbatim([i]) and (i,) not in found))

    def is_thinking(self, ids: Sequence[int]) -> bool:
        """Whether a turn of these ids is in the middle of a thought."""
        if self._thinks_at_once or self._thought_begin in ids:
            return self.thought_end not in ids
        return False

    def _without_thought(self, ids: list[int]) -> list[int]:
        if self.is_thinking(ids):
            return [] if self._thinks_at_once else ids[: ids.index(self._thought_begin)]
        if self.thought_end in ids:
            ids = ids[len(ids) - ids[::-1].index(self.thought_end) :]
            while ids and not self._text(ids[:1]).strip():
                ids = ids[1:]
        return ids

    def _with_tools(self, tools: str) -> "ChatFormat":
        return ChatFormat(self._tokenizer, self._config, json.loads(tools))

    def _encode_observation(self, text: str, first: bool, past: bool) -> tuple[int, ...]:
        opening = self._openings[first, past]
        return (*(() if first else self._next), *self.encode("\n" + text if first else text), *opening)

    def _text(self, ids: Sequence[int], **options: bool) -> str:
        return self._tokenizer.decode([i for i in ids if i in self._known], **options)

    def _plain(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    def _markup(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=False)

    def _cut(self) -> tuple[str, list[int], str, str, str, str]:
        """The constant parts: text before the system prompt, ids from there to the goal, texts between the user and the
        agent (after the goal; after a later observation; what only the newest turn has besides), text between agent and
        user.

        Raises:
            ModelError: no way to render a conversation can be cut; it says what is wrong with the plainest.
        """
        roles = ("tool", "user") if self._tools else ("user",)
        ways = [
            (role, as_system) for role in roles for as_system in ([True, False] if self._config.system else [False])
        ]
        for role, as_system in ways:
            try:
                return self._cut_as(role, as_system)
            except ModelError:
                if (role, as_system) == ways[-1]:
                    raise
        raise AssertionError("there is always a way")

    def _cut_as(self, role: str, as_system: bool) -> tuple[str, list[int], str, str, str, str]:
        """As `_cut`, with observations in a role, and the system prompt as one or in front of the goal."""
        pieces, rest = [], self._render(role, as_system)
        if not all(name in rest for name in self._names):
            raise ModelError("the chat template presents no tools; set actions=explained, or chat.template")
        for mark in _MARKS if as_system else _MARKS[1:]:
            piece, found, rest = rest.partition(mark)
            if not found:
                raise ModelError(
                    "the chat template leaves out or reorders turns of a plain conversation; set chat.template"
                )
            pieces.append(piece)
        system, before = self.encode(self._config.system), pieces.pop(0)
        if as_system:
            system += self._markup(pieces.pop(0))
        elif system:
            system += self.encode("\n")
        first, user_b, later, user_c, agent_c, user_d = pieces
        if later.rstrip() == rest:  # the space before the agent's words is its own (Mistral)
            first, later, agent_c = first.rstrip(), later.rstrip(), agent_c.rstrip()
        # a template may open the newest turn further than older ones (`<think>`): what was sampled stood behind that
        if later != agent_c or len({user_b, user_c, user_d}) > 1 or not rest.startswith(later):
            opens = ", ".join(short(piece, 60) for piece in (later, agent_c, rest))
            closes = ", ".join(short(piece, 60) for piece in (user_b, user_c, user_d))
            raise ModelError(
                "the chat template does not only append: what it puts around a turn changes with the turn's place "
                f"({opens} before it speaks; {closes} after): set chat.template"
            )
        return before, system, first, later, rest[len(later) :], user_b

    def _cut_around(self, roles: tuple[str, ...], later: bool) -> list[list[int]]:
        """The markup before the first of some messages, and behind each: with the roles as they are; where the template
        has no role of tools, with a user's; where it has none of a system, with its text in front of the user's.

        Raises:
            EnvFailure: none of these ways can be cut; it says what is wrong with the last.
        """
        opening = ("user", "assistant") if later else ()
        plain = tuple("user" if role == "tool" else role for role in roles)
        ways = [(of, False) for of in dict.fromkeys([roles, plain] if self._tools else [plain])]
        ways += [(of, True) for of, _ in ways if not later and of[:2] == ("system", "user")]
        for of, merged in ways:
            try:
                return self._cut_between((*opening, *of), merged)[len(opening) :]
            except EnvFailure:
                if (of, merged) == ways[-1]:
                    raise
        raise AssertionError("there is always a way")

    def _cut_between(self, roles: tuple[str, ...], merged: bool) -> list[list[int]]:
        """The markup before the first message of a conversation, and behind each; the end of an agent's turn, which is
        among its ids, is left out. `merged`: the first two are one message of a user."""
        marks = [f"sentinelMessage{k}sentinel" for k in range(len(roles))]
        told = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        if merged:
            told[:2] = [{"role": "user", "content": f"{marks[0]}\n{marks[1]}"}]
        for message in told:
            if message["role"] == "tool":
                message |= {"name": self._names[0], "tool_call_id": "call00000"}
        try:
            rest = self._apply(told)
        except ModelError as e:
            raise EnvFailure(f"{e}; the roles were {', '.join(roles)}") from None
        pieces: list[list[int]] = []
        for role, mark in zip(("", *roles), (*marks, ""), strict=True):
            piece, found, rest = rest.partition(mark) if mark else (rest, "end", "")
            ids = self._markup(piece.lstrip() if role == "assistant" else piece)
            if role == "assistant" and ids[:1] != self.close:
                found = ""
            if not found:
                raise EnvFailure(
                    "the chat template leaves out or reorders messages of a conversation, or does not end an agent's "
                    f"turn; the roles were {', '.join(roles)}; set chat.template"
                )
            pieces.append(ids[1:] if role == "assistant" else ids)
        return pieces

    def _render(self, role: str, as_system: bool) -> str:
        system, goal, *turns = _MARKS
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if as_system else []
        messages.append({"role": "user", "content": goal})
        answered = {"name": self._names[0], "tool_call_id": "call00000"} if role == "tool" else {}
        for k, text in enumerate(turns):
            messages.append(
                {"role": role, "content": text, **answered} if k % 2 else {"role": "assistant", "content": text}
            )
        return self._apply(messages)

    def _apply(self, messages: list[dict[str, Any]]) -> str:
        """What the template makes of a conversation; asked once in a process, as a child has to be made for it.

        Raises:
            ModelError: it refuses, or takes too long.
        """
        options: dict[str, Any] = {"tools": self._tools} if self._tools else {}
        if self._config.thinking == "off":
            options["enable_thinking"] = False
        work = partial(
            self._tokenizer.apply_chat_template, messages, tokenize=False, add_generation_prompt=True, **options
        )
        asked = [self._tokenizer.chat_template, self._tokenizer.special_tokens_map, messages, options]
        key = json.dumps(asked, sort_keys=True, default=str)
        try:
            made = _MADE.get(key)
            if made is None:
                made = _MADE[key] = text_of(work, TEMPLATE_SECONDS, TEMPLATE_MEGABYTES)
                for oldest in list(_MADE)[:-CACHED_ROLES]:
                    _MADE.pop(oldest, None)
            return made
        except RefusedError as e:  # how templates say no is up to them
            said = " ".join(str(e).split())[:100]
            raise ModelError(f"the chat template refuses a plain conversation ({said}); set chat.template") from e
        except LimitError as e:
            raise ModelError(f"the chat template {e} for a conversation of short texts; set chat.template") from e

    def _refuse_markup(self, special: set[int]) -> None:
        """The template writes what tools say of themselves, so that must not spell special tokens."""
        for tool in self._tools:
            text = json.dumps(tool, ensure_ascii=False)
            for token in self._tokenizer.convert_ids_to_tokens(sorted(special)):
                if token in text:
                    raise EnvFailure(
                        f"the tool {tool['function']['name']!r} spells the special token {token!r}; leave the tool out"
                    )

    def _warn_of_unknown_words(self, text: str) -> None:
        """Warns once of words that the vocabulary lacks: the policy sees no difference between such words. Words of an
        error are left out, for that there is one says enough, and so are `UNSEEN_WORDS`."""
        if self._warned:
            return
        unknown = self._tokenizer.unk_token_id
        text = "\n".join(line for line in text.splitlines() if not line.startswith("error: "))
        split = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
        places = [span for i, span in zip(split["input_ids"], split["offset_mapping"], strict=True) if i == unknown]
        words = dict.fromkeys(text[begin:end] for begin, end in places)
        new = [word for word in words if word not in self._unknown_words]
        if not new:
            return
        self._warned = True
        named = ", ".join(map(repr, new[:NAMED_WORDS])) + " and others" * (len(new) > NAMED_WORDS)
        warnings.warn(
            f"the model's vocabulary lacks {named}: the policy sees them all as {self._tokenizer.unk_token}; use words "
            "that it knows, or another model",
            LongstrideWarning,
            stacklevel=2,
        )

    def _refuse_injection(self, used: set[int]) -> None:
        for i in used:
            text = self._tokenizer.convert_ids_to_tokens(i)
            if i in self._plain(text):
                raise ModelError(f"the tokenizer turns plain text {text!r} into a special token; use its fast version")
