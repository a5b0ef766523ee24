"""The documentation site: it builds without a broken link, and has a page for every paper and every public name."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from guides import DOCS

import longstride as ls
from longstride import papers
from longstride.claims.kept import read_kept
from longstride.claims.standard import word
from longstride.papers.card import Paper, Study
from longstride.report.claims import tally
from longstride.web.chromium.process import find_chromium

pytest.importorskip("mkdocstrings", reason="needs the extra `docs`")

EARLIER = "0.1.9"
SOURCE = DOCS.parent / "src" / "longstride"
ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(DOCS.parent / "src")}


def build(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(out)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=ENV)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / ls.__version__
    earlier = out.parent / EARLIER / "index.html"
    earlier.parent.mkdir()
    earlier.write_text("earlier", encoding="utf-8")
    done = build(DOCS.parent, out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def tab() -> Iterator[Any]:
    """A page of a browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    try:
        chromium = find_chromium()
    except ls.ConfigError as e:
        pytest.skip(str(e))
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def text(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html))


def generator() -> Any:
    """The module that makes pages."""
    spec = spec_from_file_location("generate", DOCS / "generate.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(listed: papers.Listed) -> str:
    return f"{'papers' if isinstance(listed.card, Paper) else 'studies'}/{listed.home}.html"


@pytest.mark.slow
def test_the_page_of_a_paper_has_its_card_every_recipe_and_what_came_of_its_claims(site: Path) -> None:
    for name, listed in papers.catalogue().items():
        assert listed.card
        html, page = (site / page_of(listed)).read_text(encoding="utf-8"), text(site / page_of(listed))
        assert listed.card.title in page and f"<code>longstride train {name}</code>" in html
        assert (f"<td><code>longstride claim {name}</code>" in html) == listed.claim
        source = f"source/{listed.home}/{listed.module.rpartition('.')[2]}.py.txt"
        assert f'href="{source}"' in html
        assert (site / page_of(listed)).parent.joinpath(source).read_text(encoding="utf-8").startswith('"""')
        assert isinstance(listed.card, Study) or f"arXiv {listed.card.arxiv}" in page
    for name, path in papers.results().items():
        home, result = papers.cards()[name.partition("/")[0]], read_kept(path)
        folder = site / ("papers" if isinstance(home, Paper) else "studies")
        page = (folder / f"{name.partition('/')[0]}.html").read_text(encoding="utf-8")
        assert result["statement"] in text_of(page) or result["statement"] in unescape(page)
        assert f"commit {result['commit']}" in page and f'src="{name}.svg"' in page
        assert (folder / f"{name}.svg").is_file()


@pytest.mark.slow
def test_a_paper_stands_under_each_of_its_topics_with_what_of_it_was_read(site: Path) -> None:
    page = (site / "papers" / "index.html").read_text(encoding="utf-8")
    sections = {section.partition('"')[0]: section for section in page.split('<h2 id="')[1:]}
    for name, card in papers.cards().items():
        if isinstance(card, Paper):
            rows = {
                t: next((r for r in s.split("<tr>") if f'href="{name}.html"' in r), "") for t, s in sections.items()
            }
            assert {topic for topic, row in rows.items() if row} == set(card.topics)
            assert all(f"<td>{card.read}</td>" in rows[topic] for topic in card.topics)


@pytest.mark.slow
def test_what_is_shown_has_every_kept_claim_with_the_difference_that_decides(site: Path) -> None:
    page = (site / "shown.html").read_text(encoding="utf-8")
    rows = {text_of(row).split()[0]: unescape(row) for row in re.findall(r"<tr>\n<td>.*?</tr>", page, re.S)}
    kept = {name: read_kept(path) for name, path in papers.results().items()}
    assert rows.keys() == {name.partition("/")[0] for name in kept}
    for name, listed in papers.catalogue().items():
        if (result := kept.get(name)) and "earlier" not in result:
            row, called = rows[listed.home], word(result)
            said = f"{result['verdict']} below the standard" if called == "below standard" else called
            assert said in row.split("</td>")[2 if listed.acts else 1]
            differences = [f"{e['relation']}: {e['mean']:+.3f}" for e in result["effects"] + result["control_effects"]]
            assert any(each in row for each in differences)


@pytest.mark.slow
def test_the_readme_counts_what_is_shown_as_the_site_does(site: Path) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    found = tally(read_kept(path) for path in papers.results().values())
    shown = text(site / "shown.html")
    assert all(of in shown for of in found.values())
    counted = re.findall(r"[^:\n]*\bbelow the standard", readme)
    assert all(any(line.strip() in of for of in found.values()) for line in counted)
    assert "over a hundred papers" in readme and sum(isinstance(card, Paper) for card in papers.cards().values()) > 100


@pytest.mark.slow
def test_a_benchmark_says_when_it_was_measured_and_whether_the_code_has_changed(site: Path) -> None:
    for path in (DOCS.parent / "benchmarks").glob("*.json"):
        commit = json.loads(path.read_text(encoding="utf-8"))["commit"]
        page = text(site / "benchmarks" / f"{path.stem}.html")
        assert re.search(rf"commit {commit[:7]}[;.] ?(whether|the code|\d+ later commits?)", page)


def test_a_measurement_is_old_where_the_code_that_it_measured_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = generator()
    code = tmp_path / "src" / "longstride"
    for folder in ("engines", "models"):
        (code / folder).mkdir(parents=True)

    def committed(file: str) -> str:
        (code / file).write_text(f"{len(commits)}", encoding="utf-8")
        who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    commits: list[str] = []
    for file in ("engines/a.py", "models/a.py", "engines/b.py"):
        commits.append(committed(file))
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert "1 later commit changed" in generate._aged(commits[0], ["models"])
    assert "has not changed since" in generate._aged(commits[1], ["models"])
    assert "2 later commits changed" in generate._aged(commits[0], ["models", "engines"])
    assert "not known" in generate._aged("0" * 40, ["models"])


def test_every_paper_and_study_has_a_page_with_its_card_and_every_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    generate = generator()
    monkeypatch.setattr(generate, "_picture", lambda name: b"")
    pages = dict(generate._homes())
    for name, listed in papers.catalogue().items():
        page = pages[page_of(listed).replace(".html", ".md")]
        assert listed.card and listed.card.title in page and f"`longstride train {name}`" in page
        assert (f"`longstride claim {name}`<br>" in page) == listed.claim
        assert isinstance(listed.card, Study) or f"arXiv {listed.card.arxiv}" in page
    assert {
        f"{generate._kind(papers.cards()[name.partition('/')[0]])}/{name}.svg" for name in papers.results()
    } <= pages.keys()


def test_what_a_benchmark_measures_exists() -> None:
    measured = generator().MEASURED
    kept = (DOCS.parent / "benchmarks").glob("*.json")
    assert {path.stem.removesuffix("-short") for path in kept} <= measured.keys()
    paths = {path for of in measured.values() for path in of}
    assert {path for path in paths if not (SOURCE / path).exists()} == set()


@pytest.mark.slow
def test_every_public_name_has_an_entry_with_its_docstring(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    assert [name for name in ls.__all__ if f'.{name}" class="doc doc-heading"' not in pages] == []
    assert "how much every turn of the episodes of an update weighs" in pages


@pytest.mark.slow
def test_a_public_name_is_a_link_to_its_entry_in_the_list_of_all_and_in_guides(site: Path) -> None:
    entries = {
        name: f"reference/{page.name}#{address}"
        for page in (site / "reference").glob("*.html")
        for address, name in re.findall(
            r'id="(longstride[a-z_.]*\.(\w+))" class="doc doc-heading"', page.read_text(encoding="utf-8")
        )
    }
    listed = (site / "api.html").read_text(encoding="utf-8")
    assert [n for n in ls.__all__ if f'<td><a href="{entries[n]}"><code>{n}</code></a></td>' not in listed] == []
    guide = (site / "guides" / "own_recipe.html").read_text(encoding="utf-8")
    assert f'<a href="../{entries["group_advantages"]}"><code>ls.group_advantages</code></a>' in guide


@pytest.mark.slow
def test_pages_that_are_opened_from_their_folder_can_be_searched(site: Path, tab: Any) -> None:
    tab.goto((site / "index.html").as_uri())
    tab.click("input.md-search__input")
    tab.keyboard.type("GenRM")
    found = tab.wait_for_selector(".md-search-result__item a[href*='papers/genrm.html']")
    assert found and "GenRM" in found.inner_text()


@pytest.mark.slow
def test_a_page_leads_to_other_versions_that_stand_beside_its_own(site: Path, tab: Any) -> None:
    tab.goto((site.parent / "index.html").as_uri())
    tab.wait_for_url((site / "index.html").as_uri())
    tab.goto((site / "guides" / "gateway.html").as_uri())
    choice = tab.wait_for_selector("select.versions")
    assert choice.input_value() == ls.__version__ and choice.inner_text().split() == [ls.__version__, EARLIER]
    choice.select_option(EARLIER)
    tab.wait_for_url((site.parent / EARLIER / "index.html").as_uri())


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]* (?:src|href)="(https?://[^"]+)"', page.read_text(encoding="utf-8")
        )
        assert [address for address in loaded if "canonical" not in address] == [], page


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    settings = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    plain = re.sub(r"^(hooks|nav|plugins):.*?(?=^\S|\Z)", "", settings, flags=re.M | re.S)
    (tmp_path / "mkdocs.yml").write_text(plain + "\nplugins: []\n", encoding="utf-8")
    (tmp_path / "docs" / "index.md").write_text("[there](there.md)", encoding="utf-8")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0 and "there.md" in done.stderr
