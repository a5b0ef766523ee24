"""Chat formats: a tokenizer's chat template, cut once into pieces of ids.

What always holds: a prompt is `head(goal)`, `observation(text, first=True)`, sampled ids, `observation(text)`, sampled
ids, and so on; it spells what the template would render, but nothing the policy sampled is decoded and encoded again;
a conversation only grows at its end; text of a goal or a page never becomes a special token, whatever it spells.
"""

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from longstride.core.bounded import LimitError, RefusedError, text_of
from longstride.core.errors import LongstrideWarning, ModelError

NAMED_WORDS = 20
"""Words that the vocabulary lacks and that are named, about."""
TEMPLATE_SECONDS, TEMPLATE_MEGABYTES = 5.0, 256
"""What a template may take; those of models take milliseconds. It is a program of whoever made the model."""
CACHED_PIECES = 4096
"""Encoded observations kept: many episodes see the same page."""
_MARKS = [f"sentinel{name}sentinel" for name in ("System", "UserA", "AgentA", "UserB", "AgentB", "UserC")]


class ChatFormat:
    """A chat template as constant pieces.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        system: system text; a template without a system role gets it in front of the goal.

    Raises:
        ModelError: there is no template, it does not only append, it does not end the agent's turn with a special
            token, or the tokenizer cannot keep special tokens out of plain text.
    """

    end_ids: frozenset[int]
    """Ids that end the agent's turn."""
    close: list[int]
    """The ids that close an agent's turn that was cut short."""

    def __init__(self, tokenizer: Any, system: str = "") -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                "the tokenizer has no chat template, so there is no telling where the agent speaks; take an "
                "instruction-tuned model, or set tokenizer.chat_template and save the tokenizer into the model's folder"
            )
        self._tokenizer = tokenizer
        self._unknown_words: set[str] = set()
        before_goal, after_user, after_agent = self._cut(system)
        closing = self._markup(after_agent.lstrip())
        special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        if not closing or closing[0] not in special:
            raise ModelError(
                f"the chat template puts {after_agent[:40]!r} behind the agent's turn; expected was a special token "
                "that ends the turn (such as <|im_end|>): add one to the template and to the tokenizer's special tokens"
            )
        self.close = closing[:1]
        self.end_ids = frozenset([*self.close, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])])
        self._head, self._agent, self._next = self._markup(before_goal), self._markup(after_user), closing[1:]
        self._refuse_injection({*self._head, *self._agent, *closing, *self.end_ids} & special)
        self._observation = lru_cache(CACHED_PIECES)(self._encode_observation)

    def head(self, goal: str) -> list[int]:
        """All that stands before the first observation."""
        return [*self._head, *self.encode(goal)]

    def observation(self, text: str, first: bool = False) -> list[int]:
        """An observation with what stands before and after it, up to the place where the agent speaks.

        The first one stands in the goal's message, on a new line; each other one is a message of its own.
        """
        return list(self._observation(text, first))

    def encode(self, text: str) -> list[int]:
        """The ids of plain text: nothing in it becomes a special token."""
        ids = self._plain(text)
        if self._tokenizer.unk_token_id in ids:
            self._warn_of_unknown_words(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without special tokens."""
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()

    def _encode_observation(self, text: str, first: bool) -> tuple[int, ...]:
        return (*(() if first else self._next), *self.encode("\n" + text if first else text), *self._agent)

    def _plain(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    def _markup(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=False)

    def _cut(self, system: str) -> tuple[str, str, str]:
        """The constant texts before the goal, between user and agent, and between agent and user."""
        rendered = self._render(_MARKS) if system else None
        if rendered is not None and _MARKS[0] in rendered:
            before = rendered.partition(_MARKS[1])[0].replace(_MARKS[0], system)
        else:
            rendered = self._render(["", *_MARKS[1:]])
            if rendered is None:
                raise ModelError("the chat template refuses a plain conversation of user and assistant turns")
            before = rendered.partition(_MARKS[1])[0] + (system + "\n" if system else "")
        pieces, rest = [], rendered
        for mark in _MARKS[1:]:
            piece, found, rest = rest.partition(mark)
            if not found:
                raise ModelError("the chat template leaves out or reorders turns of a plain conversation")
            pieces.append(piece)
        _, agent_a, user_b, agent_b, user_c = pieces
        # a template may open the newest turn further than older ones (`<think>`): what was sampled stood behind that
        if agent_a != agent_b or user_b != user_c or not rest.startswith(agent_a):
            raise ModelError(
                "the chat template does not only append: what it puts around a turn changes with the turn's place "
                f"({agent_a!r}, {agent_b!r}, {rest!r} before the agent speaks; {user_b!r}, {user_c!r} after); "
                "use a simpler one"
            )
        return before, rest, user_b

    def _render(self, texts: Sequence[str]) -> str | None:
        roles = ["system", "user", "assistant", "user", "assistant", "user"]
        messages = [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True) if t]
        work = partial(self._tokenizer.apply_chat_template, messages, tokenize=False, add_generation_prompt=True)
        try:
            return text_of(work, TEMPLATE_SECONDS, TEMPLATE_MEGABYTES)
        except RefusedError:  # how templates say no is up to them
            return None
        except LimitError as e:
            raise ModelError(f"the chat template {e} for a conversation of six short texts; use a simpler one") from e

    def _warn_of_unknown_words(self, text: str) -> None:
        """Warns of each word once that the vocabulary lacks: the policy sees no difference between such words."""
        unknown = self._tokenizer.unk_token_id
        split = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
        places = [span for i, span in zip(split["input_ids"], split["offset_mapping"], strict=True) if i == unknown]
        words = dict.fromkeys(text[begin:end] for begin, end in places)
        new = [word for word in words if word not in self._unknown_words]
        if not new or len(self._unknown_words) >= NAMED_WORDS:
            return
        self._unknown_words.update(new)
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
