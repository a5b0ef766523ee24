"""BrowserGym's environments as ours, and our sites as its tasks. Most of it needs BrowserGym and a Chromium."""

import asyncio
import importlib.util
import os
import random
import shutil
import time

import pytest
from helpers import SLOW

from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure, MissingExtra
from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.sites.actions import WebAction, parse
from longstride.web.browsergym import (
    BrowserGym,
    BrowserGymEnv,
    env,
    register_tasks,
)


class TestSource:
    def test_training_and_evaluation_share_no_seed(self, monkeypatch):
        monkeypatch.setattr(env, "entry", lambda id: id)
        source = build(TaskSource, {"type": "browser_gym", "ids": ["browsergym/miniwob.click-test"]})
        train, test = source.sample(random.Random(0), 50), source.held_out(50)
        assert {t.split for t in train} == {"train"} and {t.split for t in test} == {"test"}
        assert max(t.meta["seed"] for t in train) < env.SEEDS <= min(t.meta["seed"] for t in test)
        assert source.held_out(50)[:10] == source.held_out(10)
        assert train[0].start == "browsergym/miniwob.click-test" and train[0].source == "browsergym/miniwob"

    def test_evaluation_tasks_of_their_own_are_the_held_out_ones(self, monkeypatch):
        monkeypatch.setattr(env, "entry", lambda id: id)
        source = BrowserGym(ids=("browsergym/webarena.1",), test_ids=("browsergym/webarena.2",))
        assert {t.start for t in source.held_out(3)} == {"browsergym/webarena.2"}

    def test_an_id_that_is_none_is_refused(self):
        with pytest.raises(ConfigError, match="'miniwob.click-test'.*looks like browsergym/miniwob.click-test"):
            env.entry("miniwob.click-test")

    @pytest.mark.skipif(importlib.util.find_spec("browsergym") is not None, reason="BrowserGym is installed")
    def test_without_browsergym_the_message_names_the_command(self):
        with pytest.raises(MissingExtra, match=r"pip install 'longstride\[browsergym\]'"):
            env.entry("browsergym/miniwob.click-test")
        with pytest.raises(MissingExtra, match=r"pip install 'longstride\[browsergym\]'"):
            register_tasks()


def there(package):
    return importlib.util.find_spec("browsergym") is not None and importlib.util.find_spec(package) is not None


needs_browsergym = pytest.mark.skipif(
    not there("browsergym.core") or not (shutil.which("chromium") or os.environ.get("LONGSTRIDE_CHROMIUM")),
    reason="needs pip install 'longstride[browsergym]' and Chromium",
)
PAGE = """<p>welcome</p><button onclick="document.title = 'pressed'">press</button><input aria-label=word>
<select aria-label=color><option>red<option>blue</select><span id=s>only a handler</span>
<iframe srcdoc="<button>inside</button>"></iframe><button onclick="for (;;) ;">hang</button>
<script>document.getElementById('s').addEventListener('click', () => { document.title = 'handled' })</script>"""


@pytest.fixture(scope="module")
def page():
    """The id of a BrowserGym task on a page with one of everything; it is done when the title is 'pressed'."""
    from browsergym.core.registration import register_task  # pyright: ignore[reportMissingImports]
    from browsergym.core.task import AbstractBrowserTask  # pyright: ignore[reportMissingImports]

    class OnePage(AbstractBrowserTask):
        def setup(self, page):
            self.slow_mo = 0
            page.set_content(PAGE)
            return "press it", {}

        def validate(self, page, chat_messages):
            if page.title() == "pressed":
                return 0.5, True, "", {"why": "pressed"}
            return 0.0, False, "", {}

    register_task("one-page", OnePage)
    yield "browsergym/one-page"


def browsers_of(world):
    """Process ids of an environment's browsers."""
    return set(world._thread.browsers)


async def begin(id, seed=0, **settings):
    world = BrowserGymEnv(delay=0.0, **settings)
    task = Task(id="t", source="s", goal="g", start=id, meta={"seed": seed})
    return world, await world.reset(task, 0)


def number(text, name):
    """The number of the line that has `name` in quotes."""
    line = next(x for x in text.split("\n") if f'"{name}"' in x)
    return int(line.partition("[")[2].partition("]")[0])


@needs_browsergym
class TestEnvironment:
    async def test_the_tree_is_the_text_and_actions_reach_the_page(self, page):
        world, seen = await begin(page)
        try:
            assert seen.goal == "press it"
            assert 'button "press" [1]\n' in seen.text and 'button "inside" [' in seen.text
            assert seen.text.count('"inside"') == 1
            filled = await world.step(f'fill [{number(seen.text, "word")}] it\'s "red"')
            assert (filled.error, filled.reward, filled.terminated, filled.truncated) == (None, 0.0, False, False)
            assert '= it\'s "red"' in filled.observation.text
            chosen = await world.step(f"select [{number(filled.observation.text, 'color')}] blue")
            assert '"color"' in chosen.observation.text and "= blue" in chosen.observation.text
            inside = await world.step(f"click [{number(seen.text, 'inside')}]")
            assert inside.error is None
            pressed = await world.step("Thought: now. Action: click [1]")
            assert (pressed.action, pressed.reward, pressed.terminated) == ("click [1]", 0.5, True)
            assert pressed.answer is None and pressed.info == {"task_info": {"why": "pressed"}}
        finally:
            await world.close()

    async def test_what_only_a_handler_makes_clickable_has_a_number(self, page):
        world, seen = await begin(page)
        try:
            lines = seen.text.split("\n")
            at = next(i for i, x in enumerate(lines) if "only a handler" in x)
            line = next(x for x in lines[at::-1] if "[" in x)
            step = await world.step(f"click [{line.partition('[')[2].partition(']')[0]}]")
            assert 'RootWebArea "handled"' in step.observation.text
        finally:
            await world.close()

    async def test_what_does_nothing_is_explained_and_costs_a_step(self, page):
        world, seen = await begin(page)
        try:
            for said, why in [
                ("dance", "unknown action"),
                ("click [99]", "no element [99]"),
                ("tab 3", "no tab 3; there are 1"),
                (f"tab {'9' * 5000}", "no tab 999"),
                ("goto file:///etc/passwd", "an address of the web"),
                ("goto chrome://version", "an address of the web"),
                ("scroll down", "the end of the page"),
                ("scroll up", "the top of the page"),
                ("fill [1] words", "not an <input>"),
            ]:
                step = await world.step(said)
                assert step.error and why in step.error and step.observation.text.endswith(f"error: {step.error}")
                assert (step.reward, step.terminated) == (0.0, False)
        finally:
            await world.close()

    async def test_a_long_page_is_seen_through_a_window(self, page):
        world, seen = await begin(page, window=5)
        try:
            assert len(seen.text.split("\n")) == 6 and seen.text.endswith("scroll down for more")
            below = (await world.step("scroll down")).observation.text
            assert below.startswith("scroll up for more") and 'button "press"' not in below
        finally:
            await world.close()

    @pytest.mark.parametrize(("said", "answer"), [("answer red", "red"), ("infeasible because", "n/a")])
    async def test_an_answer_ends_the_episode(self, page, said, answer):
        world, _ = await begin(page)
        try:
            step = await world.step(said)
            assert (step.answer, step.terminated, step.reward) == (answer, True, 0.0)
        finally:
            await world.close()

    async def test_a_hang_ends_at_the_deadline_and_takes_its_browsers_along(self, page):
        world, seen = await begin(page)
        browsers = browsers_of(world)
        assert len(browsers) == 2
        world.deadline = 3.0
        began = time.monotonic()
        with pytest.raises(EnvFailure, match="step click did not end within 3 s"):
            await world.step(f"click [{number(seen.text, 'hang')}]")
        await world.close()
        assert time.monotonic() - began < SLOW
        await gone(browsers)

    async def test_a_step_that_is_cancelled_leaves_no_browser(self, page):
        world, seen = await begin(page)
        browsers = browsers_of(world)
        step = asyncio.ensure_future(world.step(f"click [{number(seen.text, 'hang')}]"))
        await asyncio.sleep(0.5)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        await world.close()
        await gone(browsers)

    async def test_the_loop_is_not_held_up_and_two_environments_do_not_meet(self, page):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        clock = asyncio.ensure_future(tick())
        (a, _), (b, _) = await asyncio.gather(begin(page), begin(page))
        assert ticks > 20
        clock.cancel()
        try:
            assert not browsers_of(a) & browsers_of(b)
            assert (await a.step("click [1]")).terminated
            assert not (await b.step("wait")).terminated
        finally:
            await asyncio.gather(a.close(), b.close())

    async def test_a_task_that_is_not_there_or_cannot_be_set_up_is_an_error_that_says_so(self):
        for id in ("browsergym/openendet", "browsergym/../openended.x"):
            with pytest.raises(ConfigError, match="did you mean 'browsergym/openended'"):
                await begin(id)
        with pytest.raises(MissingExtra, match="pip install browsergym-nothing"):
            await begin("browsergym/nothing.1")
        world = BrowserGymEnv()
        with pytest.raises(EnvFailure, match="start_url"):
            await world.reset(Task(id="t", source="s", goal="g", start="browsergym/openended"), 0)
        await world.close()


async def gone(processes):
    """Returns when none of the processes runs any more."""

    def running(process):
        try:
            with open(f"/proc/{process}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    for _ in range(200):
        if not any(map(running, processes)):
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"still running: {[p for p in processes if running(p)]}")


@needs_browsergym
class TestOurSites:
    def test_every_template_is_registered_once(self):
        import gymnasium  # pyright: ignore[reportMissingImports]

        ids = register_tasks()
        assert register_tasks() == ids and len(set(ids)) == len(ids) > 200
        assert set(ids) <= set(gymnasium.registry)

    def test_a_seed_makes_a_task_and_held_out_templates_have_held_out_sites(self):
        from longstride.envs.sites import HELD_OUT
        from longstride.envs.sites.tasks import templates
        from longstride.web.browsergym.tasks import task_of

        for template in templates("shop"):
            task = task_of(template, 1)
            assert task == task_of(template, 1)
            assert (int(task.start.split("/")[2]) >= HELD_OUT) == template.held_out
        assert len({task_of(templates("shop")[0], k).id for k in range(20)}) > 10

    @pytest.mark.parametrize(("right", "earned"), [(True, 1.0), (False, 0.0)])
    async def test_an_answer_earns_what_our_evaluator_says(self, right, earned):
        from longstride.envs.sites.tasks import templates
        from longstride.web.browsergym.tasks import task_of

        template = templates("shop")[0]
        reference = task_of(template, 5).evaluator["reference"]
        register_tasks()
        world, seen = await begin(f"browsergym/longstride.{template.id.replace('/', '.')}", 5)
        try:
            assert seen.goal == task_of(template, 5).goal and 'heading "shop"' in seen.text
            assert (await world.step("wait")).reward == 0.0
            step = await world.step(f"answer {reference if right else 'nonsense'}")
            assert (step.reward, step.terminated) == (earned, True)
            assert step.info["task_info"]["evidence"]["expected"] == reference
        finally:
            await world.close()

    async def test_what_was_done_on_the_site_earns_the_reward_of_its_state(self):
        from longstride.envs.sites import application
        from longstride.envs.sites.browser import TextBrowser
        from longstride.envs.sites.demonstrator import Demonstrator
        from longstride.envs.sites.env import WebEnv
        from longstride.envs.sites.tasks import templates
        from longstride.web.browsergym.tasks import task_of

        template = next(t for t in templates("shop") if t.errand == "act")
        task = task_of(template, 2)
        assert "expected" in str(task.evaluator)
        register_tasks()
        world, seen = await begin(f"browsergym/longstride.{template.id.replace('/', '.')}", 2)
        guide = WebEnv(application())  # the demonstrator reads our text; its element is the one of the same name here
        page, agent, step = await guide.reset(task, 0), Demonstrator(task, random.Random(0)), Step(Observation(""))
        browser = guide.browser
        assert isinstance(browser, TextBrowser) and task.optimal
        try:
            for _ in range(task.optimal):
                said = agent.say(page.text)
                action = parse(said)
                assert isinstance(action, WebAction)
                if action.element is not None:
                    name = browser.page.layout.elements[action.element - 1].name
                    action = WebAction(action.verb, number(seen.text, name), action.text)
                page, step = (await guide.step(said)).observation, await world.step(str(action))
                assert step.error is None
                seen = step.observation
            assert (step.reward, step.terminated) == (1.0, True)
        finally:
            await world.close()
