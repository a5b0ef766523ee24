"""Chromium's accessibility tree as text: a line a node, indented by depth, `role "name" [number]`.

What always holds: nodes that a visitor can act on have numbers, from 1 in the order of the page; nodes without a name
and without a use are left out and their children stand in their place; lines are of bounded length.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longstride.envs.sites.cleaning import clean
from longstride.envs.sites.page import MAX_ELEMENTS, MAX_LINE
from longstride.web.chromium.failures import trouble

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

ACTED_ON = frozenset(
    """button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider
    spinbutton switch tab textbox treeitem""".split()
)
PLAIN = frozenset(("none", "generic", "InlineTextBox", "LineBreak", "LabelText", "ListMarker"))
MAX_NODES = 20_000
"""Of a document whose tree is asked for: Chromium answers with half a kilobyte for each."""
STATES = ("checked", "pressed", "expanded", "selected", "disabled", "readonly", "required")


@dataclass
class Tree:
    """What was read; `nodes` are the numbered ones, by what Chromium calls a backend node id."""

    lines: list[str] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    @classmethod
    async def read(cls, session: "CDPSession") -> "Tree":
        """The tree of the document that is open."""
        async with trouble("the accessibility tree could not be read"):
            answer = await session.send("Accessibility.getFullAXTree")
        return cls.of(answer["nodes"])

    @classmethod
    def of(cls, nodes: list[dict[str, Any]]) -> "Tree":
        """The tree of a list of AXNodes of the DevTools protocol."""
        tree, by_id = cls(), {n["nodeId"]: n for n in nodes}
        roots = [n for n in nodes if n.get("parentId") not in by_id]
        stack = [(n, 0, "") for n in reversed(roots)]
        while stack:
            node, depth, above = stack.pop()
            line = "" if node.get("ignored") else tree._line(node, above)
            if line:
                tree.lines.append("  " * min(depth, 20) + line)
                depth, above = depth + 1, _value(node, "name")
            children = [by_id[c] for c in node.get("childIds", ()) if c in by_id]
            stack += [(c, depth, above) for c in reversed(children)]
        return tree

    def _line(self, node: dict[str, Any], above: str) -> str:
        role, name = _value(node, "role"), _value(node, "name")
        if role == "StaticText":
            return f'text "{name}"' if name and name != above else ""
        acted_on = role in ACTED_ON and "backendDOMNodeId" in node and len(self.nodes) < MAX_ELEMENTS
        if role in PLAIN or not (name or acted_on):
            return ""
        words = [role, f'"{name}"']
        if acted_on:
            self.nodes.append(node["backendDOMNodeId"])
            words.append(f"[{len(self.nodes)}]")
        if value := _value(node, "value"):
            words.append(f"= {value}")
        given = {p["name"]: p.get("value", {}).get("value") for p in node.get("properties", ())}
        words += [s for s in STATES if given.get(s) in (True, "true", "mixed")]
        return " ".join(words)


def _value(node: dict[str, Any], key: str) -> str:
    """A text of the node, as one clean line."""
    text = clean(str(node.get(key, {}).get("value", "")))
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 3] + "..."
