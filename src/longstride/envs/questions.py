"""Questions to a judge: what is asked about material, and the words in which a language model is asked. No torch.

What always holds: a judge is trained on the words in which it is asked later: `Question.words` is the goal of a task of
`envs.judgements` and the prompt of a scorer alike. A verdict is one of the question's options, and nothing else is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

YES_NO = ("yes", "no")
FIRST_SECOND = ("first", "second")
SCORES = tuple(map(str, range(1, 11)))
"""How good an answer is: 10 is the best."""
VERDICT = "Verdict:"
"""What stands before the verdict, whether or not there were reasons."""
REASONS = "Give your reasons, then say"
"""What asks for reasons."""
_MARK = re.compile(r"verdict\s*:", re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """What a judge is asked."""

    text: str
    about: Mapping[str, str]
    """Material to judge, by name. It is not to be trusted: it may hold anything."""
    options: tuple[str, ...]
    """The verdicts to choose from, a word each."""
    reasons: int = 0
    """Tokens that the judge may reason before its verdict; 0 asks for the verdict at once."""
    vote: int = 0
    """Which of several replies to the same question: each has reasons of its own."""
    count: int = 1
    """Verdicts that are asked for: one, or one of each answer, in the order in which they are shown."""

    @property
    def words(self) -> str:
        """The question as the goal of a turn."""
        about = (f"{name}: {value}" for name, value in self.about.items())
        ends = f"{REASONS if self.reasons else 'Say'} {VERDICT} and one of {', '.join(self.options)}"
        if self.count > 1:
            ends += " of " + ", then of ".join([*self.about][-self.count :])
        return "\n".join([self.text, *about, ends])


def verdicts_in(text: str, options: Sequence[str], count: int) -> tuple[str, ...] | None:
    """So many options behind the last `Verdict:` of a reply; None where there are more, or fewer, or others."""
    _, *after = _MARK.split(text)
    words = tuple(word.strip("*_.,;") for word in after[-1].casefold().split()) if after else ()
    words = tuple(filter(None, words))
    return words if len(words) == count and set(words) <= set(options) else None


def verdict_in(text: str, options: Sequence[str]) -> str | None:
    """The option that stands behind the last `Verdict:` of a reply, case, a full stop and the space of a tokenizer
    aside; None where there is none."""
    _, *after = _MARK.split(text)
    word = after[-1].strip(" \t\r\n*_.").casefold() if after else ""
    return word if word in options else None
