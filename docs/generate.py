"""What the site has beyond the files of this folder; a hook of mkdocs (mkdocs.yml).

Nothing that is generated is kept in the repository, so it cannot differ from the code: a page for each paper and each
study, from its card, its docstrings and the kept results of its claims, whose pictures are drawn here; all papers by
topic; what is shown; all claims; a page for each benchmark, which says whether the code has changed since; a page of
the reference for each section of api.md; files that live outside this folder because people look for them there. A
recipe may say why its claim came out as it did, in a sentence: `FINDING`, beside `CLAIM`.
"""

import ast
import json
import posixpath
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

from packaging.version import Version

import longstride
from longstride import papers
from longstride.claims.kept import read_kept
from longstride.claims.stages import stages
from longstride.claims.standard import EXACT, word
from longstride.papers.card import TOPICS, Paper, Study
from longstride.papers.naming import find_claim
from longstride.report.claims import overview, page, picture, tally

ROOT = Path(__file__).parent.parent
HOURS = ROOT / "docs" / "claim_hours.json"
"""By claim that has not been run, about how many hours of a core it takes: `longstride claim NAME --estimate`."""
ELSEWHERE = {"CHANGELOG.md": "changelog.md", "src/longstride/models/shipped/README.md": "models.md"}
"""Pages that are files of the repository."""
MEASURED = {
    "browser": ("web/chromium", "web/miniwob.py"),
    "control": ("control",),
    "curves": ("control",),
    "gateway": ("adapters", "rollout"),
    "generation": ("engines", "models"),
    "gpu": ("engines", "learner", "models"),
    "maze": ("control",),
    "plan": ("models/public.py", "run/cards.py", "run/memory.py", "run/plan.py", "run/demand.py"),
    "scheduler": ("engines/servers.py", "rollout"),
    "search": ("engines", "rollout", "strategies"),
    "step": ("engines", "learner", "methods", "models"),
    "store": ("rollout/index.py", "rollout/store.py", "core/sealed.py"),
    "train": ("engines", "envs/sites", "learner", "methods", "models", "rollout", "run"),
    "turns": ("learner", "models"),
}
"""What a benchmark measures, below src/longstride."""
WIDE = "---\nhide: [toc]\n---\n"
"""Before a page with a table that takes the width of the table of contents too."""
READ = {
    "full": "The paper was read in full.",
    "abstract": "Of the paper its abstract was read: what is here is after its idea.",
    "notes": "The paper was read in the notes and the code of others: what is here is after its idea.",
}
ABOUT = {
    "exact": "exact problems",
    "language model": "language models",
    "control": "control, with networks in mazes",
    "design": "offline design, with networks",
}
"""How a kind of claim is called in a sentence."""
PAPERS = """# Papers

{} papers by topic; a paper stands under each of its topics. What can be run of a paper *acts*, on a language model or
on networks in an environment, or is *exact*: a problem whose answer is computed. *Mechanism* and *effect* are what its
claims came to: [what is shown](../shown.md).
"""
SHOWN = """# What is shown

Of each paper two things can be asked: whether its *mechanism* is there, on an exact problem, where success is computed,
and its *effect*, in runs on a model or in an environment, at the scale of a laptop. Claims about

{}

A mechanism **holds** in its worlds, and an effect is **shown**, where six rules were kept, which `longstride claim`
holds: the seed draws the world, and the share of worlds is said; every arm is tuned alike, on other seeds; arms are
compared at equal cost; a control could have failed, and did not; a hash of the claim was committed before its seeds
were run; and what is shown was run, with as many seeds as its pilot asks for. **null**: the effect is not there;
**open**: the seeds, or the rules, do not decide. Results **below the standard**, most of them in one world that
was set, are kept with their verdict by it, and count neither as held nor as shown. Beside a word stand the
difference that decides, its interval of 95 %, and what is known of the cause. A result whose claim has changed
since it was measured is of an *earlier form* and counts nowhere. [All claims](claims.md).
"""
RECIPES = ("| recipe | | to train | to claim, and what came of it |", "|---|---|---|---|")
_BAR = re.compile(r"(?<=\S)\||\|(?=\S)")
_ROW_NAME = re.compile(r"(?<=^\| )`(\w+)`(?= \|)", re.M)
_TEXT_NAME = re.compile(r"(?<!\[)`ls\.(\w+)`")
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


def on_post_build(config: Any) -> None:
    """Where the site is in a folder of its version (`make docs`), names all versions that stand side by side there, and
    leads to the newest."""
    site = Path(config.site_dir)
    if site.name == longstride.__version__:
        names = sorted((page.parent.name for page in site.parent.glob("[0-9]*/index.html")), key=Version, reverse=True)
        (site.parent / "versions.js").write_text(f"var versions = {json.dumps(names)}\n", encoding="utf-8")
        leads = f'<meta http-equiv="refresh" content="0; url={names[0]}/index.html">\n'
        (site.parent / "index.html").write_text(leads, encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leads links between the files of the repository to their pages, and public names to their reference."""
    uri = page.file.src_uri
    file = next((path for path, at in ELSEWHERE.items() if at == uri), f"docs/{uri}")

    def led(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), found[1]))
        target = ELSEWHERE.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}{found[2] or ''})"

    def named(found: re.Match[str]) -> str:
        place = _places().get(found[1])
        return f"[{found[0]}]({posixpath.relpath(place, posixpath.dirname(uri) or '.')})" if place else found[0]

    return (_ROW_NAME if uri == "api.md" else _TEXT_NAME).sub(named, _LINK.sub(led, markdown))


@cache
def pages() -> dict[str, str | bytes]:
    """The content of every generated page and picture, by its address."""
    found: dict[str, str | bytes] = {uri: (ROOT / path).read_text("utf-8") for path, uri in ELSEWHERE.items()}
    found |= {"papers/index.md": _papers(), "studies/index.md": _studies()}
    found |= {"shown.md": _shown(), "claims.md": _claims()}
    return found | dict(_homes()) | dict(_benchmarks()) | dict(_reference())


def claims_readme() -> str:
    """`claims/README.md`: the overview for readers of the repository; `python docs/generate.py` writes it."""
    return overview({f"../{path.relative_to(ROOT).as_posix()}": read_kept(path) for path in _files().values()})


def _papers() -> str:
    """All papers under each of their topics."""
    listed = {name: card for name, card in papers.cards().items() if isinstance(card, Paper)}
    links = " · ".join(f"[{topic}](#{topic})" for topic in TOPICS)
    lines = [WIDE, PAPERS.format(len(listed)), links, ""]
    for topic in TOPICS:
        lines += [f"## {topic}", "", "| | paper | read | to run | mechanism | effect |", "|---" * 6 + "|"]
        for name, card in listed.items():
            if topic in card.topics:
                source = f"{_authors(card)}, {card.year}, {_arxiv(card)}"
                kinds = dict.fromkeys("acts" if each.acts else "exact" for each in _of(name).values())
                cells = [f"[{name}]({name}.md)", f"{card.title}<br>{source}", card.read, ", ".join(kinds)]
                lines.append(f"| {' | '.join([*cells, *_verdicts(name)])} |")
        lines.append("")
    return "\n".join(lines)


def _studies() -> str:
    """All studies of our own."""
    lines = [
        "# Studies",
        "",
        "Questions of our own, which no paper asks in this form.",
        "",
        "| | question |",
        "|---|---|",
    ]
    lines += [f"| [{name}]({name}.md) | {c.title} |" for name, c in papers.cards().items() if isinstance(c, Study)]
    return "\n".join([*lines, ""])


def _homes() -> Iterator[tuple[str, str | bytes]]:
    """A page of every paper and every study, and a picture of each kept result."""
    for home, card in papers.cards().items():
        recipes = _of(home)
        folder = ROOT / "src" / "longstride" / _kind(card) / home
        title, _, body = _docstring(folder / "__init__.py").partition("\n\n")
        lines = [f"# {card.title if isinstance(card, Study) else _headline(title)}", *_described(card)]
        lines += ["\n".join([*RECIPES, *starmap(_row, recipes.items())])]
        lines += [_linked(body)]
        for name, each in recipes.items():
            source = _source(_file(each))
            lines += [
                f"## {name}",
                f"[Source]({source})",
                _linked(_docstring(_file(each))),
                *_result(name),
                _finding(each),
            ]
            yield f"{_kind(card)}/{source}", _file(each).read_text(encoding="utf-8")
        for name in _results(home):
            lines += [] if name in recipes else [f"## {name}", *_result(name)]
            yield f"{_kind(card)}/{name}.svg", _picture(name)
        files = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith(("test_", "__"))]
        links = ", ".join(f"[{path.name}]({_source(path)})" for path in files)
        lines += [f"The code is in `src/longstride/{_kind(card)}/{home}/`: {links}."]
        for path in files:
            yield f"{_kind(card)}/{_source(path)}", path.read_text(encoding="utf-8")
        yield f"{_kind(card)}/{home}.md", "\n\n".join([*filter(None, lines), ""])


def _source(file: Path) -> str:
    """Where the page of a paper finds a file of its code: as a text, which browsers show."""
    return f"source/{file.parent.name}/{file.name}.txt"


def _result(name: str) -> list[str]:
    """What came of a claim, where that is kept: on the page of its paper, so the picture stands in a folder below."""
    if not (result := _kept(name)):
        return []
    table = page(result, drawn=True).partition("\n\n")[2]
    return [
        f"### Its claim: {word(result)}",
        _linked(table.replace(f"({name.rpartition('/')[2]}.svg)", f"({name}.svg)")),
    ]


def _described(card: Paper | Study) -> list[str]:
    """What a card says."""
    topics = ", ".join(f"[{topic}](../papers/index.md#{topic})" for topic in card.topics)
    if isinstance(card, Study):
        return [f"A study of our own. Topics: {topics}."]
    return [f"{card.authors}: *{card.title}*, {card.year}, {_arxiv(card)}.", f"{READ[card.read]} Topics: {topics}."]


def _row(name: str, each: papers.Listed) -> str:
    """A recipe in the table of its paper."""
    result = _kept(name)
    claim = f"`longstride claim {name}`<br>{word(result) if result else _not_run(name)}" if each.claim else ""
    cells = [f"[{name}](#{_slug(name)})", "acts" if each.acts else "exact", f"`longstride train {name}`", claim]
    return f"| {' | '.join(cells)} |"


def _shown() -> str:
    """Of every paper what its claims have shown."""
    kinds = tally(filter(None, map(_kept, _files()))).items()
    counted = "\n".join(f"- {ABOUT[kind]}: {of}" for kind, of in kinds)
    rows = {home: _verdicts(home) for home in papers.cards() if _results(home)}
    lines = [
        WIDE,
        SHOWN.format(counted),
        "| paper | mechanism | effect | what is known beside it |",
        "|---" * 4 + "|",
    ]
    for home, (mechanism, effect) in rows.items():
        known = "<br>".join(filter(None, (_known(name, each) for name, each in _of(home).items())))
        lines.append(f"| [{home}]({_kind(papers.cards()[home])}/{home}.md) | {mechanism} | {effect} | {known} |")
    return "\n".join([*lines, ""])


def _verdicts(home: str) -> tuple[str, str]:
    """What became of the mechanism of a paper, and of its effect."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for name in _results(home):
        if (result := _kept(name)) and (called := word(result)) != "earlier form":
            star = f"{result['verdict']} below the standard"
            found[result["recipe"]["type"] == EXACT].append(star if called == "below standard" else called)
    mechanism, effect = (", ".join(dict.fromkeys(words)) or "-" for words in found.values())
    return mechanism, effect


def _known(name: str, each: papers.Listed) -> str:
    """What stands beside the verdict on a claim; empty where there is no claim."""
    if not (result := _kept(name)):
        return f"`{name}`: {_not_run(name)}" if each.claim else ""
    if "earlier" in result:
        return f"`{name}` was measured in an earlier form"
    return f"`{name}`: {_decisive(result)} {_finding(each)}".strip()


@cache
def _not_run(name: str) -> str:
    """What a claim takes of which no result is kept."""
    before, pilot, own = (load.runs for load in stages(find_claim(name)).values())
    first = f" after {before + pilot} of tuning and pilot" if before + pilot else ""
    hours = json.loads(HOURS.read_text(encoding="utf-8")).get(name)
    long = f", all together about {hours:g} hours of a core" if hours else ""
    return f"not run yet: {own} runs{first}{long}"


def _decisive(result: dict[str, Any]) -> str:
    """The first difference that did not come out as expected, else one that is there in a control too, else the first
    of all."""
    expected = [e for e in result["effects"] if e["verdict"] != "reproduced"]
    present = [e for e in result["control_effects"] if e["verdict"] != "not reproduced"]
    e = [*expected, *present, *result["effects"]][0]
    where = "in the control " if present and not expected else ""
    return f"{where}{e['relation']}: {e['mean']:+.3f} [{e['lo']:+.3f}, {e['hi']:+.3f}], {len(result['seeds'])} seeds."


def _claims() -> str:
    """All kept results, with links to their places on the pages of their papers."""
    homes = {name: name.partition("/")[0] for name in _files()}
    places = {f"{_kind(papers.cards()[home])}/{home}.md#{_slug(name)}": name for name, home in homes.items()}
    return WIDE + overview({place: result for place, name in places.items() if (result := _kept(name))})


def _benchmarks() -> Iterator[tuple[str, str]]:
    """A page for each benchmark that is kept, and all of them."""
    lines = ["# Benchmarks", "", "| | question | measured |", "|---|---|---|"]
    for path in sorted((ROOT / "benchmarks").glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        title, _, body = path.with_suffix(".md").read_text("utf-8").partition("\n\n")
        aged = _aged(result["commit"], MEASURED[path.stem.removesuffix("-short")])
        lines.append(f"| [{path.stem}]({path.stem}.md) | {result['question']} | {aged} |")
        measured = f'!!! note "When this was measured"\n    {aged}'
        yield f"benchmarks/{path.stem}.md", f"{WIDE}{title}\n\n{measured}\n\n{body}"
    yield "benchmarks/index.md", "\n".join([*lines, ""])


def _aged(commit: str, paths: Iterable[str]) -> str:
    """When something was measured, and how often the code that it measures has changed since."""
    date = _git("show", "--no-patch", "--format=%cs", commit)
    later = _git("rev-list", "--count", f"{commit}..HEAD", "--", *(f"src/longstride/{path}" for path in paths))
    if not date or not later:
        return f"At commit {commit[:7]}; whether the code has changed since is not known without its history."
    if later == "0":
        return f"On {date}, at commit {commit[:7]}; the code that is measured has not changed since."
    commits = "commit" if later == "1" else "commits"
    return (
        f"On {date}, at commit {commit[:7]}. **{later} later {commits} changed the code that is measured** "
        f"({', '.join(f'`{path}`' for path in paths)}), so today's numbers may be others."
    )


def _git(*arguments: str) -> str:
    """What Git says in the repository; empty where it says nothing of it."""
    try:
        git = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _reference() -> Iterator[tuple[str, str]]:
    """A page for each section of api.md, with the docstrings of the names in its table."""
    for uri, title, names in _sections():
        entries = [f"::: {longstride._public()[name]}.{name}" for name in names]
        yield uri, "\n\n".join([f"# {title}", *entries, ""])


def _sections() -> Iterator[tuple[str, str, list[str]]]:
    """Of each section of api.md its page of the reference, its title and the names in its table."""
    for section in re.split(r"^## ", (ROOT / "docs" / "api.md").read_text("utf-8"), flags=re.M)[1:]:
        title = section.partition("\n")[0]
        names = _ROW_NAME.findall(section)
        page = re.sub(r"\W+", "_", title.lower())
        yield f"reference/{page}.md", title, names


@cache
def _places() -> dict[str, str]:
    """Where the docstring of each public name stands."""
    modules = longstride._public()
    return {name: f"{uri}#{modules[name]}.{name}" for uri, _, names in _sections() for name in names}


@cache
def _listed() -> dict[str, papers.Listed]:
    """The recipes of all papers and studies by name: none of other packages."""
    return {name: each for name, each in papers.catalogue().items() if each.card}


def _of(home: str) -> dict[str, papers.Listed]:
    """The recipes of a paper or a study."""
    return {name: each for name, each in _listed().items() if each.home == home}


def _results(home: str) -> list[str]:
    """The claims of a paper or a study of which results are kept; of claims that are gone too."""
    return [name for name in _files() if name.partition("/")[0] == home]


@cache
def _files() -> dict[str, Path]:
    """Where results are kept, by the name of their claim."""
    return papers.results()


@cache
def _kept(name: str) -> dict[str, Any] | None:
    """The kept result of a claim."""
    path = _files().get(name)
    return read_kept(path) if path else None


@cache
def _picture(name: str) -> bytes:
    """The figure of a result."""
    return picture(read_kept(_files()[name])).encode()


def _kind(card: Paper | Study) -> str:
    """The folder of papers, or that of studies."""
    return "papers" if isinstance(card, Paper) else "studies"


def _file(each: papers.Listed) -> Path:
    return ROOT / "src" / Path(*each.module.split(".")).with_suffix(".py")


def _docstring(path: Path) -> str:
    """The docstring of a file. A bar in a table that no spaces part from its neighbours is a bar: 1/|a|."""
    lines = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")
    return "\n".join(_BAR.sub(r"\|", row) if row.startswith("| ") else row for row in lines)


def _finding(each: papers.Listed) -> str:
    """What a recipe says of its claim's result, empty where it says nothing."""
    tree = ast.parse(_file(each).read_text("utf-8"))
    findings = [s.value for s in tree.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "FINDING"]
    return " ".join(ast.literal_eval(findings[0]).split()) if findings else ""


def _headline(title: str) -> str:
    """The first line of a docstring without authors and year, which the card has in full."""
    return re.sub(r"\. [A-Z][^:]*?,? (19|20)\d\d, .*$", "", " ".join(title.split())).removesuffix(".")


def _authors(card: Paper) -> str:
    """The last names of two authors at most; a team has its whole name."""
    last = [name if name.endswith("Team") else name.split()[-1] for name in card.authors.split(", ")]
    return f"{last[0]} et al." if len(last) > 2 else " and ".join(last)


def _arxiv(card: Paper) -> str:
    return f"[arXiv {card.arxiv}](https://arxiv.org/abs/{card.arxiv})"


def _linked(text: str) -> str:
    """With links to the papers on arXiv."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", text)


def _slug(name: str) -> str:
    """The anchor of a heading that is the name of a recipe."""
    return name.replace("/", "")


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
    """The pages of a folder; of papers in groups, by their first topic."""
    made = [uri for uri in pages() if uri.startswith(folder) and uri.endswith(".md") and not uri.endswith("/index.md")]
    if folder == "reference/":
        return made
    named = {Path(uri).stem: uri for uri in made}
    if folder != "papers/":
        return [{name: uri} for name, uri in named.items()]
    groups = {topic: [{n: uri} for n, uri in named.items() if papers.cards()[n].topics[0] == topic] for topic in TOPICS}
    return [{topic: members} for topic, members in groups.items() if members]


if __name__ == "__main__":
    (ROOT / "claims" / "README.md").write_text(claims_readme(), "utf-8")
