"""Trivial policies that every evaluation is held against.

What always holds: they see what the policy sees (the goal and the text of observations) and their own past actions,
and nothing else; they say actions in the grammar of `envs.sites.actions`; what is random in them derives from the plan
and the turn.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longstride.core.seeds import stream
from longstride.rollout.episode import Episode

NAVIGATION = frozenset({"home", "cart", "login", "next", "previous", "back"})
"""Links that lead about a site and not to what is looked for."""
ROLES = {
    "textbox": "type",
    "select": "select",
    "button": "click",
    "checkbox": "click",
    "radio": "click",
    "file": "click",
}
"""Words that stand before an element's name, and the verb for it; without one it is a link, to be clicked."""
SCROLLS = {"scroll up for more": "scroll up", "scroll down for more": "scroll down"}
"""Lines that say that a page goes on, and what to do about it."""
CLICKS = 3
"""Clicks of `first_result` before it answers."""
ANSWER_RATE = 0.15
"""Probability of an answer in each turn of `random_walk`."""

_ELEMENT = re.compile(r"([^\[\]]*)\[(\d{1,6})\](?:[^\[\]()]*\( ([^\[\]()]*) \))?")
"""Name and number, and the options that a select shows: `select color [5] = any ( any | red )`."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a page: `textbox search [2]` has the role `textbox`, a link has none."""

    number: int
    role: str
    words: tuple[str, ...]
    options: tuple[str, ...] = ()


def elements(page: str) -> list[Element]:
    """The elements of a page's text, in its order; a name begins behind the element before it on the line, and behind
    its role where it has one."""
    found = []
    for line in page.splitlines():
        for name, number, options in _ELEMENT.findall(line):
            words = _words(name)
            at = max((i for i, word in enumerate(words) if word in ROLES), default=-1)
            role = words[at] if at >= 0 else ""
            chosen_from = tuple(option for o in options.split("|") if (option := o.strip()))
            found.append(Element(int(number), role, tuple(words[at + 1 :]), chosen_from))
    return found


def facts(page: str) -> list[list[str]]:
    """The words of each line that is neither a heading nor holds an element."""
    lines = [line for line in page.splitlines() if not (line.startswith("#") or line in SCROLLS)]
    return [words for line in lines if not _ELEMENT.search(line) and (words := _words(line))]


def text_lines(page: str) -> list[list[str]]:
    """The facts of a page; without any, the words of every line."""
    lines = (_words(_ELEMENT.sub(r"\1", line)) for line in page.splitlines())
    return facts(page) or [words for words in lines if words]


def answer_at_once(episode: Episode) -> str:
    """Answers with the last word of the first page: what an answer is worth without a look at the site."""
    return _answer(text_lines(episode.page), ())


def first_result(episode: Episode) -> str:
    """Clicks the link that shares most words with the goal (the first of several), never one of the site's
    navigation. Where a fact shares a word with the goal, on a page without links, and after three clicks it answers
    with the last word of the line that shares most words with the goal."""
    page, goal = episode.page, _words(episode.goal)
    links = [e for e in elements(page) if not e.role and e.words and NAVIGATION.isdisjoint(e.words)]
    if not links or episode.turns >= CLICKS or any(set(goal).intersection(fact) for fact in facts(page)):
        return _answer(text_lines(page), goal)
    link = max(links, key=lambda e: len(set(e.words).intersection(goal)))
    return f"Action: click {' '.join(link.words)} [{link.number}]"


def random_walk(episode: Episode) -> str:
    """Does one of the page's actions at random (a field gets a word of the goal), or answers with a random word of its
    text."""
    rng = stream(episode.turn_seed, "random_walk")
    page = episode.page
    words = [word for line in text_lines(page) for word in line]
    if words and rng.random() < ANSWER_RATE:
        return f"Action: answer {rng.choice(words)}"
    actions = ["back", *(action for line, action in SCROLLS.items() if line in page.splitlines())]
    for e in elements(page):
        verb = ROLES.get(e.role, "click")
        fill = "" if verb == "click" else " " + rng.choice(e.options or _words(episode.goal) or ["n/a"])
        actions.append(f"{verb} [{e.number}]{fill}")
    return f"Action: {rng.choice(actions)}"


BASELINES: dict[str, Callable[[Episode], str]] = {
    "answer_at_once": answer_at_once,
    "first_result": first_result,
    "random_walk": random_walk,
}


def _answer(lines: Sequence[Sequence[str]], goal: Sequence[str]) -> str:
    """Answers with the last word of the line that shares most words with the goal; of the last line where all share
    alike."""
    best = max(reversed(lines), key=lambda words: len(set(words).intersection(goal)), default=["n/a"])
    return f"Action: answer {best[-1]}"


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
