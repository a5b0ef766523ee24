"""The documentation site: it builds without a broken link, and has a page for every recipe and every public name."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from guides import DOCS

import longstride as ls
from longstride import papers
from longstride.claims.kept import read_kept

pytest.importorskip("mkdocstrings", reason="needs the extra `docs`")

ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(DOCS.parent / "src")}


def build(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(out)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=ENV)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(DOCS.parent, out)
    assert done.returncode == 0, done.stderr
    return out


def text(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_every_recipe_has_its_paper_table_command_and_claim(site: Path) -> None:
    for name, listed in papers.catalogue().items():
        page = text(site / "recipes" / f"{name}.html")
        assert f"longstride train {name}" in page
        assert words(listed.summary)[:6] == words(page.partition("¶")[2])[:6]
        assert (f"longstride claim {name}" in page) == listed.claim
        assert (site / "claims" / f"{name}.html").is_file() == (name in papers.results())


def test_the_table_of_papers_has_every_result_that_counts_and_says_what_decided_against_it(site: Path) -> None:
    page = (site / "systems.html").read_text(encoding="utf-8")
    rows = {text_of(row).split()[0]: row for row in re.findall(r"<tr>\n<td>.*?</tr>", page, re.S)}
    assert set(rows) == set(papers.cards())
    for name, path in papers.results().items():
        result = read_kept(path)
        said = {"reproduced": "shown", "not reproduced": "null", "undecided": "open"}[result["verdict"]]
        counts = "earlier" not in result
        assert (f'<a href="claims/{name}.html">{said}</a>' in page) == counts
        differences = [f"{e['relation']}: {e['mean']:+.3f}" for e in result["effects"] + result["control_effects"]]
        assert any(each in unescape(page) for each in differences) == (counts and said != "shown")


def test_every_public_name_has_an_entry_with_its_docstring(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    assert [name for name in ls.__all__ if f'.{name}" class="doc doc-heading"' not in pages] == []
    assert "turns trajectories into weighted samples" in pages


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
