"""A policy in a page: in a real browser it has the library's log-probabilities, prompts, tokens, actions and pages."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import eventually

from longstride import papers
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.engines.sampling import uniforms
from longstride.envs.dial import Dial
from longstride.models.load import Policy, load_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer
from longstride.report.card import write_card
from longstride.report.html import write_report
from longstride.report.play import LIKELY, carried, rounded, rounding
from longstride.rollout.context import LatestObservation, Past, RecentObservations
from longstride.run.evaluation import evaluate_policy
from longstride.run.experiment import checkpoint_folders
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe
from longstride.web.chromium.process import find_chromium

TURNS = 8
CARD = {
    "policy": "base-wander", "recipe": "tti", "unit": "turns", "episodes": 2, "seed": 0, "commit": None, "command": "",
    "tasks": {"count": 2, "sources": ["dial/index"], "distances": None},
    "forecast": {
        "success": 0.5, "budget": 4, "at": 8, "under_way": 0, "tasks": 2, "mean": 0.5, "lo": 0.5, "hi": 0.5,
        "written": "", "sha256": "",
    },
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:the model's vocabulary lacks")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    found = papers.load("tti")
    assert isinstance(found, Recipe)
    return found.replace(
        tasks=Dial(distances=(2, 6)), context=RecentObservations(keep=1), sampling={"temperature": 0.0, "top_p": 1.0},
        test_budget={"turns": TURNS, "turn_tokens": 16}, engine={"type": "local"}, reward={"evidence": False},
    )  # fmt: skip


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Half precision is what the shipped models are kept in; an update moves the weights away from it."""
    found = load_policy("base-wander")
    with torch.no_grad():
        for weight in found.model.parameters():
            weight.mul_(1.0003)
    return found


@pytest.fixture(scope="module")
def page(recipe: Recipe, policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = carried({"start": load_policy("base-wander"), "policy": policy}, recipe, recipe.tasks.held_out(10))
    return write_card(CARD, tmp_path_factory.mktemp("page") / "card.html", data)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    try:
        chromium = find_chromium()
    except ConfigError as e:
        pytest.skip(str(e))
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(page: Path, browser: Any) -> Any:
    return opened(browser, page)


def opened(browser: Any, page: Path) -> Any:
    """The page in a tab that keeps all that it asks for and says in `told`."""
    tab, told = browser.new_page(), []
    tab.on("request", lambda request: told.append(request.url))
    tab.on("console", lambda message: told.append(message.text))
    tab.on("pageerror", lambda error: told.append(str(error)))
    tab.goto(page.as_uri())
    tab.told = told
    return tab


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one update."""
    folder, found = tmp_path_factory.mktemp("run") / "run", papers.load("tti/dial")
    found.replace(
        iterations=1, episodes_per_iteration=12, tasks={"distances": (2, 4)}, test_budget={"turns": 4},
        engine={"processes": 1}, evaluation={"tasks": 4, "every": 1, "sampling": {"temperature": 0.0, "top_p": 1.0}},
    ).train(folder)  # fmt: skip
    return folder


@torch.no_grad()
def test_log_probabilities_are_the_librarys_for_the_weights_that_the_page_has(tab: Any, policy: Policy) -> None:
    ids = policy.chat.head("find the code") + policy.chat.observation(
        "read help [1]\n# folder\nin amber castle", first=True
    )
    script = """(ids) => { const { model } = PLAY.agents[1], cache = model.cache();
        return ids.map((_, n) => Array.from(chances(model.read(ids.slice(0, n + 1), cache), 1), Math.log)); }"""
    found = torch.tensor(tab.evaluate(script, ids), dtype=torch.float64)
    wanted = rounded(policy).model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    assert float((found - wanted).abs().max()) < 1e-4
    full = policy.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    assert float((full - wanted).abs().max()) > 1e-4


def test_an_untied_head_and_other_shapes_are_carried_too(tab: Any, recipe: Recipe) -> None:
    from longstride.models.load import make_policy

    tokenizer = build_tokenizer(["find the code read help"])
    model = build_model(TinyConfig(width=24, layers=2, heads=3, kv_heads=1, ffn=40, context=64), len(tokenizer), seed=3)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(model.lm_head.weight.shape) * 0.2)
    model.config.tie_word_embeddings = False
    other = make_policy("other", model, tokenizer)
    data, ids = carried({"other": other}, recipe, recipe.tasks.held_out(1)), [2, 9, 70, 3]
    found = tab.evaluate(
        "([data, ids]) => { const a = agentOf(data, data.policies[0]);"
        " return Array.from(chances(a.model.read(ids, a.model.cache()), 1), Math.log); }",
        [data, ids],
    )
    with torch.no_grad():
        wanted = rounded(other).model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
    assert torch.tensor(found, dtype=torch.float64).sub(wanted).abs().max() < 1e-4


def test_words_and_prompts_are_the_librarys(tab: Any, policy: Policy) -> None:
    seen, said = ["read help [1]\nin amber caf\u00e9", "<user> x_1, 12!\nerror: no", "# post"], [[5, 6, 4], [7]]
    for context in (LatestObservation(), RecentObservations(keep=1), RecentObservations(keep=2, placeholder="gone")):
        script = """([context, seen, said]) => { const p = PLAY.agents[0].prompts;
            return new Prompts(p.words, p.chat, context).render("find the code", seen, said); }"""
        assert tab.evaluate(script, [context.as_data(), seen, said]) == context.render(
            policy.chat, Past("find the code", seen, said)
        )


def test_uniform_numbers_are_those_of_the_librarys_sampling(tab: Any) -> None:
    seeds, indices = [0, 1, 2**62 + 7, 12345678901234567], [0, 1, 5, 200]
    found = tab.evaluate(
        "(p) => p.map(([s, i]) => uniform(BigInt(s), i))", [[str(s), i] for s, i in zip(seeds, indices, strict=True)]
    )
    assert found == uniforms(seeds, indices).tolist()


def test_a_task_in_the_page_is_the_task_whatever_is_done(tab: Any, recipe: Recipe) -> None:
    script = """([k, said]) => { const v = new Visit(PLAY.tasks[k]);
        return [v.page, ...said.map((text) => v.observation(v.act(text).error))]; }"""
    assert isinstance(recipe.tasks, Dial)
    for k, task in enumerate(recipe.tasks.held_out(4)):
        rng = random.Random(k)
        said = recipe.tasks.demonstrate(task)[: k % 2] + [_arbitrary(rng) for _ in range(24)]
        with ThreadPoolExecutor(1) as apart:  # Playwright has the event loop of this thread
            wanted = apart.submit(asyncio.run, _observations(recipe.tasks, task, said)).result()
        assert tab.evaluate(script, [k, said]) == wanted


async def _observations(source: Dial, task: Task, said: list[str]) -> list[str]:
    env = source.env()
    return [(await env.reset(task, 0)).text, *[(await env.step(text)).observation.text for text in said]]


def _arbitrary(rng: random.Random) -> str:
    n = rng.randint(0, 6)
    acts = [
        f"click [{n}]",
        f"click amber castle [{n}]",
        f"Click [{n}]",
        "back",
        "back",
        "home",
        "wait",
        "scroll up",
        "hover [1]",
    ]
    return "Thought: Action: so Action: " + rng.choice(
        [*acts, "click", "type [1]", "nonsense", "", "goto", "tab 2", "fill [2] x"]
    )


def test_greedy_episodes_take_the_librarys_actions_and_tokens(tab: Any, policy: Policy, recipe: Recipe) -> None:
    tasks = recipe.tasks.held_out(10)[:3]
    wanted = evaluate_policy(rounded(policy), recipe, tasks).trajectories
    for k, t in enumerate(wanted):
        found = tab.evaluate(
            f"""(k) => {{ const greedy = {{ temperature: 0, top_p: 1 }};
            const w = new Walk(PLAY.agents[1], PLAY.tasks[k], {TURNS}, greedy, 1).play();
            return [w.turns.map((turn) => [turn.ids, turn.action]), w.success, w.stop, w.seen]; }}""",
            k,
        )
        turns, success, stop, seen = found
        assert turns == [[turn.ids, turn.action] for turn in t.turns]
        assert (success, stop) == (t.success, t.stop.value)
        assert seen[: len(t.turns)] == [turn.observation for turn in t.turns]


def test_the_page_is_played_forked_and_edited_without_a_request_or_an_error(tab: Any, page: Path) -> None:
    tab.get_by_role("button", name="Play episodes").click()
    eventually(lambda: tab.evaluate("PLAY.many.results.every((r) => r.length >= 2)"))
    tab.get_by_role("button", name="Pause").click()
    assert "of" in tab.locator("#play [role=status]").first.inner_text()
    tab.get_by_role("button", name="Step", exact=True).first.click()
    tab.get_by_role("button", name="Fork here").first.click()
    fork = tab.locator("#play .pane").nth(2)
    fork.get_by_label("What it sees").fill("read help [1]\nnothing here")
    fork.get_by_role("button", name="Step", exact=True).click()
    assert fork.get_by_label("What it sees").input_value() != ""
    fork.get_by_role("button", name="1", exact=False).first.click()
    tab.wait_for_timeout(50)
    assert [t for t in tab.told if not t.startswith(page.as_uri())] == []
    assert page.stat().st_size < 3_000_000


@pytest.mark.slow
def test_the_report_of_a_run_carries_its_policy_before_and_after_beside_the_episodes(browser: Any, run: Path) -> None:
    # a process of its own, which has imported no source of tasks for other reasons
    subprocess.run([sys.executable, "-m", "longstride", "view", str(run)], check=True, capture_output=True, timeout=300)
    report, recipe = run / "report.html", load_run(run)[0]
    tab, task = opened(browser, report), recipe.tasks.held_out(4)[:1]
    assert tab.evaluate("PLAY.agents.map((a) => a.name)") == ["before training", "after training"]
    assert len(tab.query_selector_all("#viewer .pane")) == 2
    script = """(k) => { const w = new Walk(PLAY.agents[k], PLAY.tasks[0], 4, { temperature: 0, top_p: 1 }, 1);
        return w.play().turns.map((turn) => turn.ids); }"""
    for k, checkpoint in enumerate(checkpoint_folders(run)):
        played = evaluate_policy(rounded(load_policy(str(checkpoint))), recipe, task).trajectories[0]
        assert tab.evaluate(script, k) == [turn.ids for turn in played.turns]
    tab.get_by_role("button", name="Step all").click()
    tab.get_by_role("button", name="next \u2192").click()
    assert [told for told in tab.told if not told.startswith(report.as_uri())] == []
    assert report.stat().st_size < 3_000_000
    tab.close()


def test_a_report_says_that_its_policy_is_damaged_and_has_no_place_for_one_where_there_is_none(run: Path) -> None:
    weights = checkpoint_folders(run)[-1] / "model.safetensors"
    weights.rename(run / "elsewhere")
    assert "policy could not be read" in write_report(run).read_text(encoding="utf-8")
    (run / "elsewhere").rename(weights)
    (run / "checkpoints").rename(run / "elsewhere")
    assert 'id="play"' not in write_report(run).read_text(encoding="utf-8")
    (run / "elsewhere").rename(run / "checkpoints")


def test_what_cannot_be_carried_is_said_in_the_page(recipe: Recipe, policy: Policy, tmp_path: Path) -> None:
    sites = papers.load("tti")
    assert isinstance(sites, Recipe)
    assert "charts" in carried({"p": policy}, sites, [])["why"]
    wide = recipe.replace(tasks=Dial(distances=(21, 21), links=8, astray=4))
    assert "more than 5,000 pages" in carried({"p": policy}, wide, wide.tasks.held_out(1))["why"]
    tokenizer = build_tokenizer([f"w{n}" for n in range(12_000)])
    large = Policy("large", build_model(TinyConfig(), len(tokenizer), 0), tokenizer, policy.chat, 1280)
    said = carried({"large": large}, recipe, recipe.tasks.held_out(2))["why"]
    assert "too large for a page" in said
    assert json.dumps(said)[1:-1] in write_card(CARD, tmp_path / "card.html", {"why": said}).read_text()


@torch.no_grad()
def test_what_rounding_changes_is_looked_for_at_every_word_of_a_turn(recipe: Recipe, policy: Policy) -> None:
    assert isinstance(recipe.tasks, Dial)
    charts = [chart for task in recipe.tasks.held_out(3) if (chart := recipe.tasks.chart(task))]
    assert len(charts) == 3
    episodes = evaluate_policy(policy, recipe.replace(test_budget={"turns": 1}), recipe.tasks.held_out(3)).trajectories
    largest, first = 0.0, 0.0
    for turn in (t.turns[0] for t in episodes):
        ids, at = turn.prompt_ids + turn.sampled_ids, len(turn.prompt_ids) - 1
        one, two = (p.model(torch.tensor([ids])).logits[0, at:-1].log_softmax(-1) for p in (policy, rounded(policy)))
        differences = ((one - two).abs() * (one.exp() >= LIKELY)).amax(-1)
        largest, first = max(largest, float(differences.max())), max(first, float(differences[0]))
    assert rounding(policy, recipe, charts) == pytest.approx(largest, abs=1e-4) and first < 0.5 * largest
    assert rounding(rounded(policy), recipe, charts) == 0
