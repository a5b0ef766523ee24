"""What the site has beyond the files of this folder; a hook of mkdocs (mkdocs.yml).

What always holds: nothing that is generated is kept in the repository, so it cannot differ from the code: a page for
each recipe, from its docstring; the claims; what is shown of each system, from its kept claims; a page of the reference
for each section of api.md; files that live outside this folder because people look for them there. A recipe may say why
its claim came out as it did, in a sentence: `FINDING`, beside `CLAIM`.
"""

import ast
import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import longstride
from longstride import papers
from longstride.claims.kept import read_kept
from longstride.report.claims import overview, page, picture, shown, verdict

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"CHANGELOG.md": "changelog.md", "src/longstride/models/shipped/README.md": "models.md"}
"""Pages that are files of the repository."""
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are generated."""
    from mkdocs.structure.files import File

    for uri, content in pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_config(config: Any) -> Any:
    """Writes the generated pages into the navigation, where it names their folder."""
    config.nav = _filled(config.nav)
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leads links between the files of the repository to their pages."""
    uri = page.file.src_uri
    file = next((path for path, at in ELSEWHERE.items() if at == uri), f"docs/{uri}")

    def led(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), found[1]))
        target = ELSEWHERE.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}{found[2] or ''})"

    return _LINK.sub(led, markdown)


def pages() -> dict[str, str | bytes]:
    """The content of every generated page and picture, by its address."""
    found: dict[str, str | bytes] = {uri: (ROOT / path).read_text("utf-8") for path, uri in ELSEWHERE.items()}
    return found | dict(_recipes()) | dict(_claims()) | dict(_reference()) | {"systems.md": _systems()}


def _recipes() -> Iterator[tuple[str, str]]:
    listed = papers.catalogue()
    rows = [
        f"| [{name}]({name}.md) | {'acts' if each.acts else 'exact'} | {each.summary} |"
        for name, each in listed.items()
    ]
    yield "recipes/index.md", "\n".join([
        "# Recipes", "",
        "A paper is a folder: what it adds, the recipes that run it, and what was measured. A recipe *acts*, on a "
        "model or in an environment, or is *exact*: its problem is computed. `longstride train NAME` runs it.", "",
        "| recipe | kind | what it is about |", "|---|---|---|", *rows, "",
    ])  # fmt: skip
    for name, each in listed.items():
        text, finding = _written(each)
        title, _, body = text.partition("\n\n")
        parts = [f"# {name}", _linked(title.replace("\n", " ")), f"```\nlongstride train {name}\n```", _linked(body)]
        claim = f" Its claim: `longstride claim {name}`" if each.claim else ""
        page, kept = f"recipes/{name}.md", f"claims/{name}"
        if result := _kept(name):
            claim += f" ([{verdict(result)}]({_to(page, kept)}.md))"
            parts += [f"![What was measured]({_to(page, kept)}.svg)", *([finding] if finding else [])]
        beside = [other for other in listed if other != name and listed[other].home == each.home]
        parts += [f"The file is `src/{_path(each)}`." + (f"{claim}." if claim else "")]
        parts += [f"Beside it: {_links(page, 'recipes', beside)}."] if beside else []
        yield page, "\n\n".join([*parts, ""])


def _to(page: str, target: str) -> str:
    """The address of a target in a page."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _links(page: str, folder: str, names: Iterable[str]) -> str:
    return ", ".join(f"[{name}]({_to(page, f'{folder}/{name}.md')})" for name in names)


WIDE = "---\nhide: [toc]\n---\n"
"""Before a page with a table that takes the width of the table of contents too."""
SHOWN = {"reproduced": "shown", "not reproduced": "null", "undecided": "open"}
"""What a verdict means for a paper."""


def _systems() -> str:
    """For every paper what its claims have shown. A claim about exact experiments is about the mechanism, one about
    runs is about the effect."""
    listed = papers.catalogue()
    kept = {name: read_kept(path) for name, path in papers.results().items()}
    lines = [
        WIDE, "# What is shown", "",
        "Of each paper two things can be shown: its *mechanism*, where it can be computed, and its *effect*, in runs",
        "at the scale of a laptop. **shown**: the claim's relation holds, and is gone in its control; **null**: it",
        "does not; **open**: the seeds do not decide. Beside it stand the difference that decides, its interval of",
        "95 %, and why, where that was found. All claims: [Claims](claims/index.md).", "",
        f"Reproduced: {shown(kept.values())}.", "",
        "| paper | mechanism | effect | what is known beside it |", "|---|---|---|---|",
    ]  # fmt: skip
    for home in papers.cards():
        cells: dict[str, list[str]] = {"mechanism": [], "effect": [], "why": []}
        recipes = {name: each for name, each in listed.items() if each.home == home}
        for name, each in recipes.items():
            if not each.claim:
                continue
            if not (result := kept.get(name)) or "earlier" in result:
                what = f"what is kept of [{name}](claims/{name}.md) is of an earlier form"
                cells["why"].append(what if result else f"no result of {name} is kept")
                continue
            cells["effect" if each.acts else "mechanism"].append(f"[{SHOWN[result['verdict']]}](claims/{name}.md)")
            decisive = "" if result["verdict"] == "reproduced" else _decisive(result)
            if known := f"{decisive} {_written(each)[1]}".strip():
                cells["why"].append(known)
        mechanism, effect = (", ".join(cells[kind]) or "-" for kind in ("mechanism", "effect"))
        lines.append(
            f"| [{home}](recipes/{next(iter(recipes))}.md) | {mechanism} | {effect} | {'<br>'.join(cells['why'])} |"
        )
    return "\n".join([*lines, ""])


def _decisive(result: dict[str, Any]) -> str:
    """The first difference of a claim that did not come out as expected, or was there in a control too."""
    expected = [e for e in result["effects"] if e["verdict"] != "reproduced"]
    present = [e for e in result["control_effects"] if e["verdict"] != "not reproduced"]
    if not (found := [*expected, *present]):  # it was lower when it was judged first
        return ""
    e = found[0]
    where = "" if expected else "in the control "
    return f"{where}{e['relation']}: {e['mean']:+.3f} [{e['lo']:+.3f}, {e['hi']:+.3f}], {len(result['seeds'])} seeds."


def _kept(name: str) -> dict[str, Any] | None:
    """The kept result of a claim."""
    path = papers.results().get(name)
    return read_kept(path) if path else None


def _path(each: papers.Listed) -> Path:
    return Path(*each.module.split(".")).with_suffix(".py")


def _written(each: papers.Listed) -> tuple[str, str]:
    """A recipe's docstring, with that of its paper where it is the first one, and its `FINDING`, empty where it has
    none. The one that the summary is from stands first."""
    path = ROOT / "src" / _path(each)
    tree = ast.parse(path.read_text("utf-8"))
    findings = [s.value for s in tree.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "FINDING"]
    texts = [ast.get_docstring(tree) or ""]
    if each == next(other for other in papers.catalogue().values() if other.home == each.home):
        paper = ast.get_docstring(ast.parse(path.with_name("__init__.py").read_text("utf-8"))) or ""
        texts.insert(0 if path.stem == papers.MAIN else 1, paper)
    return "\n\n".join(texts), " ".join(ast.literal_eval(findings[0]).split()) if findings else ""


def _linked(text: str) -> str:
    """With links to the papers on arXiv."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", text)


def _claims() -> Iterator[tuple[str, str | bytes]]:
    """A page and a picture of every kept result, and the overview."""
    kept = {name: read_kept(path) for name, path in papers.results().items()}
    for name, result in kept.items():
        yield f"claims/{name}.md", _linked(page(result, drawn=True))
        yield f"claims/{name}.svg", _picture(papers.results()[name].read_text("utf-8"))
    yield "claims/index.md", WIDE + overview({f"{name}.md": result for name, result in kept.items()})


def claims_readme() -> str:
    """`claims/README.md`: the overview for readers of the repository; `python docs/generate.py` writes it."""
    return overview({f"../{path.relative_to(ROOT).as_posix()}": read_kept(path) for path in papers.results().values()})


@cache
def _picture(kept: str) -> bytes:
    """Drawn once for a build, which asks for all pages several times."""
    return picture(json.loads(kept)).encode()


def _reference() -> Iterator[tuple[str, str]]:
    """A page for each section of api.md, with the docstrings of the names in its table."""
    modules = longstride._public()
    sections = re.split(r"^## ", (ROOT / "docs" / "api.md").read_text("utf-8"), flags=re.M)[1:]
    for section in sections:
        title = section.partition("\n")[0]
        names = re.findall(r"^\| `(\w+)` \|", section, re.M)
        entries = [f"::: {modules[name]}.{name}" for name in names]
        name = re.sub(r"\W+", "_", title.lower())
        yield f"reference/{name}.md", "\n\n".join([f"# {title}", *entries, ""])


def _filled(entries: list[Any]) -> list[Any]:
    """The navigation, with the pages of a folder in the place of its name."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/"):
            found += _folder(entry)
        elif isinstance(entry, dict):
            ((title, value),) = entry.items()
            if isinstance(value, str) and value.endswith("/"):
                value = [f"{value}index.md", *_folder(value)]
            found.append({title: _filled(value) if isinstance(value, list) else value})
        else:
            found.append(entry)
    return found


def _folder(folder: str) -> list[Any]:
    made = [uri for uri in pages() if uri.startswith(folder) and uri.endswith(".md") and not uri.endswith("/index.md")]
    return [{"One by one": made}] if folder in ("claims/", "recipes/") else made


if __name__ == "__main__":
    (ROOT / "claims" / "README.md").write_text(claims_readme(), "utf-8")
