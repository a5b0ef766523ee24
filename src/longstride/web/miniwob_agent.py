"""A scripted agent for some twenty MiniWoB++ tasks: the proof that they can be done, and a warm start's demonstrator.

It reads what a policy reads (goal and page) and remembers what it has opened. What always holds: with `patience` 1 it
solves every problem of `SOLVED`; its only fault is giving up too early: where what it wants is not on the page and it
should open the next tab or section, it clicks on something that is there instead, with probability 1 - patience.
"""

import random
import re
from collections.abc import Callable

_ELEMENT = re.compile(r"(button|link|textbox|checkbox|radio|select) ?([^\[\]\n]*?) ?\[(\d+)\]( = on)?")
_QUOTED = re.compile(r'"([^"]*)"')


class MiniwobAgent:
    """One episode's agent.

    Args:
        name: the task, one of `SOLVED`.
        goal: what the page asks for.
        rng: the stream of its choices.
        patience: probability of looking on at each point where it could guess.
    """

    def __init__(self, name: str, goal: str, rng: random.Random, patience: float = 1.0) -> None:
        self.name, self.goal, self.rng, self.patience = name, goal, rng, patience
        self.hesitated = False
        """Whether it could have given up at the last page."""
        self._steps = 0
        self._opened: set[str] = set()
        self._thought = ""

    def say(self, text: str) -> str:
        """The response to a page."""
        self.hesitated, self._thought = False, ""
        elements = [(role, label.strip(), int(n), on) for role, label, n, on in _ELEMENT.findall(text)]
        action = _MOVES[self.name](self, self.goal, text, elements)
        self._steps += 1
        return f"Thought: {self._thought} Action: {action}" if self._thought else f"Action: {action}"

    def _click(self, elements: list["SeenElement"], label: str) -> str:
        n = next((n for _, name, n, _ in elements if name.lower() == label.lower()), None)
        return f"click {label} [{n}]" if n is not None else "wait"

    def _named(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        """Clicks on what the goal names in quotes, in their order."""
        wanted = _QUOTED.findall(goal) or re.findall(r"button (\w+)", goal)
        return self._click(elements, wanted[min(self._steps, len(wanted) - 1)])

    def _test(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        return self._click(elements, "Click Me!")

    def _dialog(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        label = (_QUOTED.findall(goal) or ["x"])[0]
        return self._click(elements, "Close" if label == "x" else label)

    def _boxes(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        """Ticks what the goal lists, then submits."""
        wanted = set(re.sub(r"^Select | and click Submit\.?$", "", goal).split(", "))
        for role, label, n, on in elements:
            if role in ("checkbox", "radio") and label in wanted and not on:
                return f"click {label} [{n}]"
        return self._click(elements, "Submit")

    def _tab(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        return self._click(elements, re.sub(r"^Click on |\.$", "", goal))

    def _fields(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        """Fills the text fields with what the goal has in quotes (the last of them again if there are too few)."""
        words, fields = _QUOTED.findall(goal), [n for role, _, n, _ in elements if role == "textbox"]
        if self._steps < len(fields):
            return f"fill [{fields[self._steps]}] {words[min(self._steps, len(words) - 1)]}"
        button = next(n for role, _, n, _ in elements if role == "button")
        return f"click [{button}]"

    def _focus(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        return "click [1]"

    def _list(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        option = re.sub(r"^Select | from the list and click Submit\.?$", "", goal)
        return f"select [1] {option}" if self._steps == 0 else self._click(elements, "Submit")

    def _table(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        """Copies the value of the row that the goal names."""
        key = re.sub(r"^Enter the value of | into the text field and press Submit\.?$", "", goal)
        value = next(line.removeprefix(key).strip() for line in text.split("\n") if line.startswith(f"{key} "))
        return f"fill [1] {value}" if self._steps == 0 else self._click(elements, "Submit")

    def _sum(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        a, sign, b = re.findall(r"(\d+) ([-+x*]) (\d+) =", text)[0]
        value = {"+": int(a) + int(b), "-": int(a) - int(b)}.get(sign, int(a) * int(b))
        return f"fill [1] {value}" if self._steps == 0 else self._click(elements, "Submit")

    def _explore(self, goal: str, text: str, elements: list["SeenElement"]) -> str:
        """Opens one thing after another until what the goal names is there."""
        wanted = _QUOTED.findall(goal)[0]
        openers = [e for e in elements if re.match(r"(Tab|Section) #", e[1])]
        links = [e for e in elements if e not in openers]
        there = any(label == wanted for _, label, _, _ in links)
        self._thought = f"want {wanted} {'yes' if there else 'no'}"
        if there:
            return self._click(links, wanted)
        if not self._opened and openers and openers[0][1].startswith("Tab"):
            self._opened.add(openers[0][1])  # the first tab is open from the start
        closed = [e for e in openers if e[1] not in self._opened]
        if self._guesses() and links:
            _, label, n, _ = self.rng.choice(links)
            return f"click {label} [{n}]"
        if not closed:
            return "wait"
        _, label, n, _ = closed[0]
        self._opened.add(label)
        return f"click {label} [{n}]"

    def _guesses(self) -> bool:
        self.hesitated = True
        return self.patience < 1 and self.rng.random() >= self.patience


SeenElement = tuple[str, str, int, str]
_Move = Callable[[MiniwobAgent, str, str, list[SeenElement]], str]
_MOVES: dict[str, _Move] = {
    "click-test": MiniwobAgent._test,
    "click-test-2": MiniwobAgent._named,
    "click-button": MiniwobAgent._named,
    "click-link": MiniwobAgent._named,
    "click-button-sequence": MiniwobAgent._named,
    "click-dialog": MiniwobAgent._dialog,
    "click-dialog-2": MiniwobAgent._dialog,
    "click-tab": MiniwobAgent._tab,
    "click-option": MiniwobAgent._boxes,
    "click-checkboxes": MiniwobAgent._boxes,
    "click-checkboxes-transfer": MiniwobAgent._boxes,
    "click-tab-2": MiniwobAgent._explore,
    "click-tab-2-easy": MiniwobAgent._explore,
    "click-tab-2-medium": MiniwobAgent._explore,
    "click-collapsible-2": MiniwobAgent._explore,
    "enter-text": MiniwobAgent._fields,
    "enter-text-dynamic": MiniwobAgent._fields,
    "enter-password": MiniwobAgent._fields,
    "login-user": MiniwobAgent._fields,
    "focus-text": MiniwobAgent._focus,
    "choose-list": MiniwobAgent._list,
    "read-table": MiniwobAgent._table,
    "simple-arithmetic": MiniwobAgent._sum,
}
SOLVED = tuple(sorted(_MOVES))
"""Tasks that it solves."""
