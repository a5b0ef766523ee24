"""A page as text: HTML becomes lines and numbered elements, like an accessibility tree.

One line a block element. A link is `name [3]`; other elements have their role in front: `button add to cart [4]`,
`textbox search [2] = lamp`, `select color [5] = any ( any | red )`, `checkbox gift [6] = on`. What always holds: no
HTML, however broken or hostile, raises or takes more time than its size allows (`bounds`); if a limit leaves something
out, the page's last line names the limit; elements keep their numbers when the visitor scrolls or types; a number in
square brackets is always that of an element (`[3]` in a page's own text becomes `(3)`). What was parsed is never
changed and is shared between pages of the same bytes; what a visitor typed or chose belongs to one `WebPage`. UTF-8 is
assumed; style sheets, scripts and the `form` attribute are ignored.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from longstride.envs.sites.bounds import bounded
from longstride.envs.sites.cleaning import clean

MAX_DEPTH = 150  # nested elements that are looked into: each costs two frames of Python's stack
MAX_ELEMENTS = 2000
MAX_NAME = 200
MAX_LINE = 1000  # characters; what is longer goes on in the next line, so that a window bounds an observation
SHOWN_OPTIONS = 50
CACHED_BYTES = 50_000  # pages up to this size are parsed once; 512 of them are kept


@dataclass(slots=True, eq=False)
class Form:
    """Where the fields of a form go."""

    action: str
    post: bool


@dataclass(slots=True, eq=False)
class PageElement:
    """A link or a control. A control's state is the value that its form would submit, None where it would not."""

    role: str  # link, button, textbox, checkbox, radio, select, file, or hidden (which has no number and is not shown)
    kind: str = ""  # a control's `type`; `textarea` for one
    number: int = 0
    name: str = ""  # accessible name: aria-label, else label, else placeholder, else key; text of a link or a button
    key: str = ""  # the name that it is submitted under
    value: str = ""  # a link's address; what a button or a checked box submits
    initial: str | None = None  # state on a fresh page
    options: tuple[tuple[str, str, bool], ...] = ()  # of a select: label, value, whether it can be chosen
    form: Form | None = None
    note: str = ""  # `disabled` or `read only`, where it is

    def show(self, state: str | None) -> str:
        """What a reader sees."""
        words = [self.name] if self.role == "link" else [self.role, self.name]
        words.append(f"[{self.number}]")
        if self.role in ("checkbox", "radio"):
            words.append("= on" if state is not None else "")
        elif self.role == "select":
            chosen = next((label for label, value, _ in self.options if value == state), "")
            words += [f"= {chosen}" if chosen else "", "(", self.choices(), ")"]
        elif state:
            words.append(f"= {_short(state)}")
        return " ".join([w for w in (*words, self.note) if w])

    def choices(self) -> str:
        """The labels of a select's options."""
        more = [f"{len(self.options) - SHOWN_OPTIONS} more"] if len(self.options) > SHOWN_OPTIONS else []
        return " | ".join([label for label, _, _ in self.options[:SHOWN_OPTIONS]] + more)


@dataclass(slots=True, eq=False)
class PageLayout:
    """What was parsed."""

    elements: list[PageElement] = field(default_factory=list)  # the numbered ones; number n is at n - 1
    controls: list[PageElement] = field(default_factory=list)  # of all forms, hidden ones too, in the order of the page
    lines: list[list[str | PageElement]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)  # the lines of a fresh page
    line_of: dict[int, int] = field(default_factory=dict)  # the line of each element, by number


class WebPage:
    """A page that a visitor has open."""

    def __init__(self, html: str | bytes, url: str = "", notice: str = "") -> None:
        """`notice` is shown above the window, wherever that is."""
        raw = html.encode("utf-8", "replace") if isinstance(html, str) else html
        self.layout = _layout(raw) if len(raw) <= CACHED_BYTES else _layout.__wrapped__(raw)
        self.url, self.notice = url, notice
        self.state: dict[int, str | None] = {}  # what the visitor changed, by the element's number

    def value(self, element: PageElement) -> str | None:
        """The state of a control."""
        return self.state.get(element.number, element.initial)

    def entries(self, form: Form, pressed: PageElement | None) -> list[tuple[str, str]]:
        """What the form submits when `pressed` is its button, in the order of the page."""
        sent = (c for c in self.layout.controls if c.form is form and c.key and c.note != "disabled")
        values = [(c.key, c.value if c is pressed else self.value(c)) for c in sent]
        return [(key, value) for key, value in values if value is not None]

    def text(self, offset: int = 0, window: int = 60) -> str:
        """Lines `offset` to `offset + window`, with a line more where there is something above or below."""
        lines = self.layout.text
        if self.state:
            lines = list(lines)
            for at in {self.layout.line_of[number] for number in self.state}:
                pieces = self.layout.lines[at]
                lines[at] = " ".join([p if isinstance(p, str) else p.show(self.value(p)) for p in pieces])
        shown = lines[offset : offset + window]
        if offset:
            shown.insert(0, "scroll up for more")
        if self.notice:
            shown.insert(0, self.notice)
        if offset + window < len(lines):
            shown.append("scroll down for more")
        return "\n".join(shown)


@functools.lru_cache(maxsize=512)
def _layout(html: bytes) -> PageLayout:
    if not html.isascii():  # the parser keeps bytes that are not UTF-8, and reading those back raises
        html = html.decode("utf-8", "replace").encode()
    html, cut = bounded(html)
    walk = _Walk(cut, look_for_hidden=b"hidden" in html.lower())
    if (body := LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS).body) is not None:
        walk.children(body, 0)
    return walk.finish()


Part = str | PageElement | list[str]  # of a line; a list holds the text of a label, which may yet become a name


class _Walk:
    """One walk over the tree: lines of parts, numbered elements, labels to be settled at the end."""

    def __init__(self, cut: list[str], look_for_hidden: bool) -> None:
        self.cut, self.look_for_hidden = dict.fromkeys(cut), look_for_hidden
        self.layout = PageLayout()
        self.lines: list[list[Part]] = []
        self.parts: list[Part] = []
        self.form: Form | None = None
        self.ids: dict[str, PageElement] = {}
        self.unnamed: set[PageElement] = set()
        self.labels: list[tuple[list[str], str, PageElement | None]] = []
        self.in_line = self.in_link = False  # inside a cell, heading, label; a link, button: blocks begin no new line

    def children(self, node: LexborNode, depth: int) -> None:
        child = node.first_child
        if depth > MAX_DEPTH and child is not None:
            self.cut["nested too deeply"] = child = None
        while child is not None:
            if (tag := child.tag) == "-text":
                text = child.text_content or ""
                if self.parts or not text.isspace():
                    self.parts.append(text)
            elif self.look_for_hidden and ("hidden" in (a := child.attributes) or _lower(a, "aria-hidden") == "true"):
                for n in child.traverse():  # hidden fields count wherever they are
                    if n.tag == "input" and _lower(n.attributes, "type") == "hidden":
                        self.input(n, depth)
            elif handler := _HANDLERS.get(tag or "", _Walk.children):
                handler(self, child, depth + 1)
            child = child.next

    def line_break(self) -> None:
        if self.in_line or self.in_link:
            self.parts.append(" ")
        elif self.parts:
            self.lines.append(self.parts)
            self.parts = []

    def block(self, node: LexborNode, depth: int) -> None:
        self.line_break()
        self.children(node, depth)
        self.line_break()

    def new_line(self, node: LexborNode, depth: int) -> None:  # `<br>`; `<dt>`, in a line with the `<dd>` behind it
        self.line_break()
        self.cell(node, depth)

    def cell(self, node: LexborNode, depth: int) -> None:
        outer, self.in_line = self.in_line, True
        self.parts.append(" ")
        self.children(node, depth)
        self.parts.append(" ")
        self.in_line = outer

    def table(self, node: LexborNode, depth: int) -> None:  # rows are lines, in a cell of another table too
        outer, self.in_line = self.in_line, False
        self.block(node, depth)
        self.in_line = outer

    def heading(self, node: LexborNode, depth: int) -> None:
        self.line_break()
        self.cell(node, depth)
        alone = not (self.in_line or self.in_link)
        if alone and any(not isinstance(p, str) or p.strip() for p in self.parts):
            self.parts.insert(0, "#" * int((node.tag or "h1")[1]) + " ")
        self.line_break()

    def image(self, node: LexborNode, depth: int) -> None:
        self.parts += (" ", node.attributes.get("alt") or "", " ")

    def form_(self, node: LexborNode, depth: int) -> None:  # begins no line: a search field stands beside the links
        outer, attributes = self.form, node.attributes
        self.form = Form(attributes.get("action") or "", _lower(attributes, "method") == "post")
        self.children(node, depth)
        self.line_break()
        self.form = outer

    def label(self, node: LexborNode, depth: int) -> None:
        if self.in_link:
            return self.children(node, depth)
        outer, self.parts = self.parts, []
        before = len(self.layout.controls)
        self.cell(node, depth)
        text, rest = _split(self.parts)
        inside = next((c for c in self.layout.controls[before:] if c in self.unnamed), None)
        self.labels.append(([text], node.attributes.get("for") or "", inside))
        outer += (self.labels[-1][0], *rest)
        self.parts = outer

    def link_or_button(self, node: LexborNode, depth: int) -> None:
        """Named by the text inside; other elements inside stand behind it."""
        attributes = node.attributes
        if self.in_link or (node.tag != "button" and "href" not in attributes):
            return self.children(node, depth)
        if node.tag == "button":
            kind = _lower(attributes, "type")
            element = self._control("button", kind if kind in ("button", "reset") else "submit", attributes)
            element.value = attributes.get("value") or ""
        else:
            element = PageElement("link", value=attributes["href"] or "")
            self._number(element)
        outer, self.parts, self.in_link = self.parts, [], True
        self.children(node, depth)
        (text, rest), self.parts, self.in_link = _split(self.parts), outer, False
        own, otherwise = attributes.get("aria-label") or "", attributes.get("title") or element.role
        element.name = _short(own) or _short(text) or _short(otherwise)
        self.parts += rest if element.number else [f" {text} ", *rest]

    def input(self, node: LexborNode, depth: int) -> None:
        attributes = node.attributes
        kind, value = _lower(attributes, "type") or "text", attributes.get("value")
        if node.tag == "textarea":
            kind, value = "textarea", node.text()
        if kind in ("submit", "image", "button", "reset"):
            element = self._control("button", "submit" if kind == "image" else kind, attributes)
            element.name = _short(attributes.get("aria-label") or value or attributes.get("alt") or kind)
            element.value = value or ""
        elif kind in ("checkbox", "radio"):
            element = self._control(kind, kind, attributes)
            element.value = "on" if value is None else value
            element.initial = element.value if "checked" in attributes else None
        else:
            element = self._control(kind if kind in ("hidden", "file") else "textbox", kind, attributes)
            element.initial = None if kind == "file" else value or ""

    def select(self, node: LexborNode, depth: int) -> None:  # one of several choices is taken for one of one choice
        element = self._control("select", "", node.attributes)
        options, selected = [], []
        for option in node.traverse():
            if option.tag == "option":
                attributes = option.attributes
                words, value = clean(attributes.get("label") or option.text()), attributes.get("value")
                options.append((_short(words), words if value is None else value, "disabled" not in attributes))
                if "selected" in attributes:
                    selected.append(options[-1])
        element.options = tuple(options)
        chosen = selected[-1:] or [o for o in options if o[2]][:1]
        element.initial = chosen[0][1] if chosen and chosen[0][2] else None

    def _control(self, role: str, kind: str, attributes: Mapping[str, str | None]) -> PageElement:
        note = "disabled" if "disabled" in attributes else "read only" if "readonly" in attributes else ""
        element = PageElement(role, kind, key=attributes.get("name") or "", form=self.form, note=note)
        if role not in ("button", "hidden"):
            element.name = _short(attributes.get("aria-label") or "")
            if not element.name:
                element.name = _short(attributes.get("placeholder") or element.key)
                self.unnamed.add(element)
            self.ids.setdefault(attributes.get("id") or "", element)
        if role != "hidden":
            self._number(element)
        if element.number or role == "hidden":
            self.layout.controls.append(element)
        return element

    def _number(self, element: PageElement) -> None:
        """Gives an element its number and its place in the text, while there are numbers left."""
        elements = self.layout.elements
        if len(elements) < MAX_ELEMENTS:
            elements.append(element)
            element.number = len(elements)
            self.parts.append(element)
        else:
            self.cut[f"more than {MAX_ELEMENTS} elements"] = None

    def finish(self) -> PageLayout:
        """Settles the labels and makes the lines."""
        self.line_break()
        layout = self.layout
        for text, target, inside in self.labels:
            element = self.ids.get(target) if target else inside
            if element in self.unnamed and text[0]:
                self.unnamed.discard(element)
                element.name, text[0] = _short(text[0]), ""
        for parts in self.lines:
            layout.lines += _wrap(parts)
        if not layout.lines:
            layout.lines.append(["this page is empty"])
        if self.cut:
            layout.lines.append([f"the page was cut here: {', '.join(self.cut)}"])
        for at, pieces in enumerate(layout.lines):
            layout.text.append(" ".join([p if isinstance(p, str) else p.show(p.initial) for p in pieces]))
            layout.line_of.update((p.number, at) for p in pieces if isinstance(p, PageElement))
        return layout


_HANDLERS: dict[str, Callable[[_Walk, LexborNode, int], None] | None] = {
    "a": _Walk.link_or_button,
    "area": _Walk.link_or_button,
    "button": _Walk.link_or_button,
    "input": _Walk.input,
    "textarea": _Walk.input,
    "select": _Walk.select,
    "form": _Walk.form_,
    "label": _Walk.label,
    "img": _Walk.image,
    "table": _Walk.table,
    "td": _Walk.cell,
    "th": _Walk.cell,
    "dd": _Walk.cell,
    "dt": _Walk.new_line,
    "br": _Walk.new_line,
    "hr": _Walk.new_line,
}
"""By tag; None is not shown, what is not here is text in its line."""
_BLOCKS = """address article aside blockquote body caption center details dialog div dl fieldset figcaption figure
    footer header legend li main menu nav ol p pre search section summary tbody tfoot thead tr ul"""
_NOT_SHOWN = "-comment script style template noscript head title iframe noembed noframes datalist svg math object"
_HANDLERS |= dict.fromkeys(_BLOCKS.split(), _Walk.block) | dict.fromkeys(_NOT_SHOWN.split())
_HANDLERS |= dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Walk.heading)


def _lower(attributes: Mapping[str, str | None], name: str) -> str:
    return (attributes.get(name) or "").strip().lower()


def _short(name: str) -> str:
    name = clean(name)
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 3] + "..."


def _split(parts: list[Part]) -> tuple[str, list[Part]]:  # the text as one clean string, and what is not text
    return clean("".join([p for p in parts if isinstance(p, str)])), [p for p in parts if not isinstance(p, str)]


def _wrap(parts: Iterable[Part]) -> Iterable[list[str | PageElement]]:
    """Lines of clean text and elements: one, or more where it would be longer than `MAX_LINE`."""
    line: list[str | PageElement] = []
    length, run = 0, ""
    for part in (*parts, None):
        if isinstance(part, str | list):  # cleaned as a whole: a bracketed number may come from several nodes
            run += part if isinstance(part, str) else f" {part[0]} "
            continue
        text, run = clean(run), ""
        chunks = [text[i : i + MAX_LINE] for i in range(0, len(text), MAX_LINE)]
        for piece in (*chunks, part) if part else chunks:
            size = len(piece if isinstance(piece, str) else piece.show(piece.initial))
            if line and length + size > MAX_LINE:
                yield line
                line, length = [], 0
            line.append(piece)
            length += size + 1
    if line:
        yield line
