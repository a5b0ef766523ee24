"""TTI's regimes: pages with links that distract, and the share of turns that changed nothing."""

import asyncio

import pytest
from helpers import make_trajectory

from longstride.core.errors import ConfigError
from longstride.studies.tti_regimes.recipe import RECIPE, Idle, LinkedWeb


async def pages(tasks: LinkedWeb) -> list[str]:
    """The first page of a task, and the one behind its last link."""
    env = tasks.env()
    first = (await env.reset(tasks.held_out(1)[0], 0)).text
    second = (await env.step(f"Action: click {first.splitlines()[-1]}")).observation.text
    await env.close()
    return [first, second]


def test_links_stand_at_the_end_of_a_page_and_lead_to_the_item_that_they_name() -> None:
    plain, linked = (asyncio.run(pages(LinkedWeb(links=n)))[0] for n in (0, 2))
    assert linked.startswith(f"{plain}\n") and len(linked.splitlines()) == len(plain.splitlines()) + 2
    first, item = asyncio.run(pages(LinkedWeb(links=2)))
    assert first == linked
    name = linked.splitlines()[-1].rpartition(" [")[0]
    assert f"# {name}" in item.splitlines()


def test_a_real_browser_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tasks\.browser"):
        RECIPE.replace(tasks={"browser": "chromium"})


def test_idle_turns_are_those_that_changed_nothing_before_the_last() -> None:
    trajectory = make_trajectory(3)
    for turn, changed in zip(trajectory.turns, (False, True, False), strict=True):
        turn.changed = changed
    assert Idle()(trajectory) == 0.5
    assert Idle()(make_trajectory(1)) is None
