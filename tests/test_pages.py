"""Every page: it is whole, it says what it differs in, and what its claim overrides can be built."""

import importlib

import pytest

from longstride.core.config import resolve
from longstride.recipes import catalogue, load, load_claim

PAGES = catalogue()
CLAIMS = sorted(name for name, page in PAGES.items() if page.claim)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_checked_as_a_whole(name: str) -> None:
    recipe = load(name)  # `model_copy`, which pages are made with, checks nothing
    assert recipe.name == name and resolve(type(recipe), recipe, []) == recipe


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"tti_map", "tti_miniwob"}))
def test_the_page_of_a_paper_says_where_it_comes_from_and_what_it_differs_in(name: str) -> None:
    text = importlib.import_module(PAGES[name].module).__doc__ or ""
    assert "arXiv" in text and "| place |" in text and "Deviations:" in text


@pytest.mark.parametrize("name", CLAIMS)
def test_every_arm_of_a_claim_can_be_built(name: str) -> None:
    claim, recipe = load_claim(name), load(name)
    built = {
        arm: resolve(type(recipe), recipe, (*claim.scale, *changes, "seed=1")) for arm, changes in claim.arms.items()
    }
    assert len({repr(arm) for arm in built.values()}) == len(built)  # no two arms are one
    assert len(claim.seeds) >= 3
