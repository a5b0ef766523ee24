"""What the site has beyond the files of this folder; a hook of mkdocs (mkdocs.yml).

What always holds: nothing that is generated is kept in the repository, so it cannot differ from the code: a page for
each recipe, from its docstring; the claims; a page of the reference for each section of api.md; files that live outside
this folder because people look for them there.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import longstride
from longstride import recipes

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"CHANGELOG.md": "changelog.md", "src/longstride/models/README.md": "models.md"}
"""Pages that are files of the repository."""
FAMILIES = {"agents": "Agents", "reasoning": "Reasoning", "control": "Control"}
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
    return found | dict(_recipes()) | dict(_claims()) | dict(_reference())


def _recipes() -> Iterator[tuple[str, str]]:
    listed = recipes.catalogue()
    rows = [f"| [{name}]({name}.md) | {each.family} | {each.summary} |" for name, each in listed.items()]
    yield "recipes/index.md", "\n".join([
        "# Recipes", "",
        "A recipe is one file: the paper's algorithm, its settings, how they differ from the paper's, and its claim. "
        "`longstride train NAME` runs it.", "", "| recipe | family | what it is about |", "|---|---|---|", *rows, "",
    ])  # fmt: skip
    for name, each in listed.items():
        path = Path(*each.module.split(".")).with_suffix(".py")
        text = ast.get_docstring(ast.parse((ROOT / "src" / path).read_text("utf-8"))) or ""
        title, _, body = text.partition("\n\n")
        claim = f"Its claim: `longstride claim {name}`"
        if (ROOT / "claims" / f"{name}.md").is_file():
            claim += f" ([what was found](../claims/{name}.md))"
        yield f"recipes/{name}.md", "\n\n".join([
            f"# {name}", _linked(title.replace("\n", " ")), f"```\nlongstride train {name}\n```", _linked(body),
            f"The file is `src/{path}`." + (f" {claim}." if each.claim else ""), "",
        ])  # fmt: skip


def _linked(text: str) -> str:
    """With links to the papers on arXiv."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", text)


def _claims() -> Iterator[tuple[str, str | bytes]]:
    for path in sorted((ROOT / "claims").glob("*.*")):
        if path.suffix == ".md":
            yield f"claims/{'index' if path.stem == 'README' else path.stem}.md", _linked(path.read_text("utf-8"))
        elif path.suffix == ".svg":
            yield f"claims/{path.name}", path.read_bytes()


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
    if folder != "recipes/":
        return made
    listed = recipes.catalogue()
    return [
        {title: [uri for uri in made if listed[Path(uri).stem].family == family]} for family, title in FAMILIES.items()
    ]
