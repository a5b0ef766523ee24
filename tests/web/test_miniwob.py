"""MiniWoB++ in Chromium: problems follow their seeds, a scripted agent solves them, pages are used again."""

import os
import random
import shutil

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
pytest.importorskip("miniwob", reason="needs the extra `miniwob`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.content import text_in
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.envs.base import TaskSource
from longstride.models.load import load_policy
from longstride.papers.tti.miniwob import RECIPE
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.episode import Episode
from longstride.starts.demonstrators import MiniwobTasks
from longstride.web import miniwob
from longstride.web.chromium.host import host
from longstride.web.miniwob import HOST, SEEDS, Miniwob, MiniwobEnv
from longstride.web.miniwob_agent import SOLVED, MiniwobAgent


def play(names: tuple[str, ...], n: int, patience: float = 1.0) -> dict[str, list[float]]:
    source = Miniwob(names=names)
    agents: dict[int, MiniwobAgent] = {}

    def choose(episode: Episode) -> str:
        plan = episode.plan
        if not episode.turns:
            agents[plan.ordinal] = MiniwobAgent(plan.task.template_id, episode.goal, random.Random(0), patience)
        return agents[plan.ordinal].say(text_in(episode.observations[-1]))

    tasks, at_once = source.held_out(n * len(names)), source.at_once
    tasks.sort(key=lambda task: names.index(task.template_id) // at_once)  # each page serves all its problems in a row
    plans = [Plan(task, i, i, Budget(turns=12)) for i, task in enumerate(tasks)]
    done = Pool(ScriptedPlayer(choose), source.env, TaskReward(), batch=at_once).run(plans)
    rewards: dict[str, list[float]] = {}
    for t in done:
        assert not t.stop.failed, t.evidence
        rewards.setdefault(t.task.template_id, []).append(t.reward)
        assert t.task.goal != t.task.template_id  # the page's own words
    return rewards


@pytest.mark.parametrize(
    "names", [SOLVED[:4], pytest.param(SOLVED[4:], marks=pytest.mark.slow)], ids=["four", "others"]
)
def test_the_scripted_agent_solves_all_of_its_tasks(names: tuple[str, ...]) -> None:
    assert len(SOLVED) >= 20
    assert play(names, 1) == {name: [1.0] for name in names}


def test_an_impatient_agent_fails_where_it_has_to_look_on() -> None:
    rewards = play(("click-collapsible-2", "click-tab-2"), 3, patience=0.0)
    assert 0 < sum(map(sum, rewards.values())) < 6


async def first(task: Task) -> tuple[str, str]:
    env = MiniwobEnv()
    seen = await env.reset(task, 0)
    await env.close()
    return seen.goal, seen.text


async def test_a_problem_is_a_function_of_its_seed_on_whatever_page_it_is_played() -> None:
    a, b = Miniwob(names=("click-checkboxes",)).held_out(2)
    one, two, again = await first(a), await first(b), await first(a)
    assert one == again != two


def test_training_and_evaluation_share_no_seed() -> None:
    source = Miniwob()
    train, test = source.sample(random.Random(0), 50), source.held_out(50)
    assert all(t.meta["seed"] < SEEDS for t in train) and all(t.meta["seed"] >= SEEDS for t in test)


@pytest.mark.filterwarnings("error:the model's vocabulary lacks")
async def test_the_shipped_start_reads_the_tasks_of_its_recipe_without_a_warning() -> None:
    chat = load_policy(str(RECIPE.model)).chat
    for task in RECIPE.tasks.held_out(9):
        for text in (task.goal, *await first(task)):
            chat.encode(text)


async def test_a_wrong_click_ends_the_episode_without_reward() -> None:
    env = MiniwobEnv()
    await env.reset(Task(id="t", source="m", goal="", start="/miniwob/click-test-2.html", meta={"seed": 1}), 0)
    step = await env.step("Action: click [2]")
    await env.close()
    assert (step.terminated, step.reward, step.info["raw_reward"]) == (True, 0.0, -1)


async def test_a_tab_or_a_scrolled_window_is_not_left_to_the_next_episode() -> None:
    task = Miniwob(names=("click-tab-2",)).held_out(1)[0]
    clean = await first(task)
    for said in ("tab new", "scroll down"):
        env = MiniwobEnv(window=1)
        await env.reset(task, 0)
        await env.step(f"Action: {said}")
        await env.close()
        assert await first(task) == clean


async def test_pages_are_used_again_and_reach_nothing_else() -> None:
    task = Miniwob(names=("click-test",)).held_out(1)[0]
    await first(task)
    kept = len(miniwob._idle)
    await first(task)
    assert len(miniwob._idle) == kept
    assert miniwob.reach().sites == [f"{HOST}:80"]
    assert host().browser is not None


async def test_the_page_that_was_used_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniwob, "_idle", [])
    monkeypatch.setattr(miniwob, "IDLE", 1)
    for name in ("click-test", "click-button"):
        await first(Miniwob(names=(name,)).held_out(1)[0])
    (kept,) = miniwob._idle
    assert kept.url.endswith("/click-button.html")
    await host().run(kept.close())


def test_an_unknown_task_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="click-test-2"):
        build(TaskSource, {"type": "miniwob", "names": ["click-tset-2"]})


def test_demonstrations_are_a_function_of_their_number() -> None:
    one, two = [MiniwobTasks(names=("click-tab-2",), episodes=4).demonstrations(0) for _ in range(2)]
    first, second = [next(one) for _ in range(8)], [next(two) for _ in range(8)]
    assert [(d.task.goal, d.observations, d.texts) for d in first] == [
        (d.task.goal, d.observations, d.texts) for d in second
    ]
    assert [d.observations for d in first[:4]] == [d.observations for d in first[4:]]
    assert {d.task.split for d in first} == {"train"}
