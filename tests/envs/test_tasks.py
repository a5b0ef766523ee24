"""Tasks on the embedded sites: no leak between the splits, optimal lengths as promised, judged by what the sites
show."""

import random
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from longstride.core.component import build
from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import ConfigError, TaskError
from longstride.core.task import DIFFICULTIES, Task, difficulty_of, read_tasks, save_tasks
from longstride.envs.base import Mix, TaskSource
from longstride.envs.sites import HELD_OUT, KINDS, make_world
from longstride.envs.sites.demonstrator import Demonstrator
from longstride.envs.sites.tasks import EmbeddedWeb, TaskFile, templates
from longstride.papers.tti.recipe import RECIPE
from longstride.rewards import judge
from longstride.run.recipe import Recipe
from longstride.starts.demonstrators import run_now

EVERYWHERE = EmbeddedWeb(sites=tuple(KINDS))


async def play(
    task: Task, agent: Demonstrator, limit: int = 60, urls: list[str] | None = None
) -> tuple[float, int, str | None]:
    env = EVERYWHERE.env()
    seen, steps, answer = await env.reset(task, 0), 0, None
    while answer is None and steps < limit:
        if urls is not None:
            urls.append(seen.url)
        step = await env.step(agent.say(seen.text))
        seen, answer, steps = step.observation, step.answer, steps + 1
    state = await env.final_state()
    await env.close()
    return judge(task, answer, state).reward, steps, answer


@pytest.mark.parametrize("kind", KINDS)
def test_the_patient_solver_solves_every_template_in_exactly_the_optimal_length(kind: str) -> None:
    seen = 0
    for template in templates(kind):
        for difficulty in template.difficulties:
            made = (template.make(site + HELD_OUT * template.held_out, site, difficulty) for site in range(12))
            for task in [t for t in made if t][:3]:
                urls: list[str] = []
                reward, steps, answer = run_now(play(task, Demonstrator(task, random.Random(0)), urls=urls))
                assert (reward, steps) == (1.0, task.optimal), (task.id, task.goal, answer)
                assert task.pages and {urlsplit(url).path for url in urls} >= set(task.pages), task.id
                seen += 1
    assert seen >= len(templates(kind))


def test_a_solver_that_gives_up_at_once_is_shorter_and_rarely_right() -> None:
    tasks = EmbeddedWeb().sample(random.Random(1), 200)
    played = [run_now(play(t, Demonstrator(t, random.Random(i), patience=0.0))) for i, t in enumerate(tasks)]
    assert sum(r for r, _, _ in played) / 200 < 0.5
    assert sum(s for _, s, _ in played) < 0.6 * sum(t.optimal or 0 for t in tasks)


def test_a_solver_that_slips_still_ends_and_mostly_succeeds() -> None:
    tasks = EmbeddedWeb().sample(random.Random(2), 200)
    played = [run_now(play(t, Demonstrator(t, random.Random(i), slips=0.2))) for i, t in enumerate(tasks)]
    assert sum(r for r, _, _ in played) / 200 > 0.7


@pytest.mark.parametrize(("detours", "loops"), [(0.3, 0.0), (0.0, 0.3)])
def test_a_solver_that_wanders_finds_its_way_back_and_succeeds_in_more_steps(detours: float, loops: float) -> None:
    tasks = EmbeddedWeb().sample(random.Random(3), 100)
    solvers = [Demonstrator(t, random.Random(i), detours=detours, loops=loops) for i, t in enumerate(tasks)]
    played = [run_now(play(t, solver)) for t, solver in zip(tasks, solvers, strict=True)]
    assert sum(r for r, _, _ in played) / 100 > 0.9
    assert sum(s for _, s, _ in played) > 1.2 * sum(t.optimal or 0 for t in tasks)


def test_a_solver_that_recalls_says_which_item_is_done_before_it_looks_for_the_next() -> None:
    template = next(t for t in templates("shop") if dict(t.params) == {"verb": "put", "items": 3})
    task = template.make(0, 0, "medium")
    assert task is not None
    said: list[str] = []

    class Noting(Demonstrator):
        def say(self, text: str) -> str:
            said.append(super().say(text))
            return said[-1]

    assert run_now(play(task, Noting(task, random.Random(0), recalls=True)))[:2] == (1.0, task.optimal)
    a, b, c = task.meta["items"]
    recalled = [text.split(" Action")[0] for text in said if " next " in text]
    assert list(dict.fromkeys(recalled)) == [f"Thought: done {a} next {b}", f"Thought: done {b} next {c}"]


def test_new_tasks_of_training_templates_are_on_sites_and_of_names_that_training_never_sees() -> None:
    source = EmbeddedWeb(new_templates=False)
    tasks = source.held_out(300)
    known = {t.id for kind in source.sites for t in templates(kind) if not t.held_out}
    assert {t.template_id for t in tasks} <= known
    assert all(_site(t)[1] >= HELD_OUT and t.split == "test" for t in tasks)
    assert tasks != EmbeddedWeb().held_out(300) and source.sample(random.Random(0), 9) == EmbeddedWeb().sample(
        random.Random(0), 9
    )


def test_tasks_act_on_no_more_items_than_they_may() -> None:
    tasks = EmbeddedWeb(most_acted=3).sample(random.Random(4), 600)
    assert {len(t.meta["items"]) for t in tasks if t.meta["errand"] == "act"} == {1, 2, 3}


def test_training_and_evaluation_share_no_template_site_or_name() -> None:
    source, rng = EmbeddedWeb(), random.Random(0)
    train, test = source.sample(rng, 3000), source.held_out(600)
    assert {t.split for t in train} == {"train"} and {t.split for t in test} == {"test"}
    assert not {t.template_id for t in train} & {t.template_id for t in test}
    assert not {t.start for t in train} & {t.start for t in test}

    def names(tasks: list[Task]) -> set[str]:
        worlds = [make_world(*_site(t)) for t in tasks]
        return {i.name for w in worlds for i in w.items}

    assert not names(train) & names(test)


def _site(task: Task) -> tuple[str, int]:
    _, kind, seed, _ = task.start.split("/")
    return kind, int(seed)


def test_every_word_of_an_evaluation_goal_occurs_in_training_goals() -> None:
    source = EmbeddedWeb(sites=tuple(KINDS))
    train = {w for t in source.sample(random.Random(0), 20_000) for w in t.goal.split()}
    assert {w for t in source.held_out(900) for w in t.goal.split()} <= train


def test_there_are_thousands_of_tasks_on_every_kind_of_site() -> None:
    for kind in ("shop", "stays", "forum", "encyclopedia"):
        goals = {(t.start, t.goal) for t in EmbeddedWeb(sites=(kind,)).sample(random.Random(0), 3000)}
        assert len(goals) > 2500


def test_evaluation_is_fixed_and_balanced_over_difficulties() -> None:
    tasks = EmbeddedWeb().held_out(300)
    assert tasks[:100] == EmbeddedWeb(mix=Mix(easy=9)).held_out(100)
    assert Counter(t.difficulty for t in tasks) == dict.fromkeys(DIFFICULTIES, 100)
    assert all(difficulty_of(t.facts) == t.difficulty for t in tasks)


def test_the_mix_sets_the_shares_of_the_difficulties() -> None:
    counts = Counter(t.difficulty for t in EmbeddedWeb(mix=Mix(easy=0, medium=1, hard=3)).sample(random.Random(0), 400))
    assert counts["easy"] == 0 and 240 < counts["hard"] < 360


def test_the_control_site_shows_the_answer_on_its_first_page() -> None:
    source = EmbeddedWeb(sites=("sheet",))
    for task in source.sample(random.Random(0), 60):
        page = run_now(source.env().reset(task, 0)).text
        assert task.optimal == 1 and task.difficulty == "easy"
        assert task.evaluator["reference"] in page


def test_on_the_other_sites_no_value_is_shown_on_the_first_page() -> None:
    for task in EmbeddedWeb(errands=("find", "hop")).sample(random.Random(0), 60):
        page = run_now(EVERYWHERE.env().reset(task, 0)).text
        assert task.evaluator["reference"] not in page.split() or task.source == "web/stays"


def test_a_task_file_round_trips_and_serves_as_a_source(tmp_path) -> None:
    tasks = EmbeddedWeb().sample(random.Random(3), 20) + EmbeddedWeb().held_out(9)
    path = tmp_path / "tasks.jsonl"
    assert save_tasks(tasks, path) == 29
    assert list(read_tasks(path)) == tasks
    source = build(TaskSource, {"type": "task_file", "path": str(path)})
    assert isinstance(source, TaskFile)
    assert source.held_out(100) == tasks[20:]
    assert {t.id for t in source.sample(random.Random(0), 50)} <= {t.id for t in tasks[:20]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"sites": ["shopp"]}, "did you mean 'shop'"),
        ({"errands": ["hops"]}, "did you mean 'hop'"),
        ({"sites": []}, "at least one site"),
        ({"mix": {"eazy": 1}}, "did you mean 'easy'"),
    ],
)
def test_unknown_sites_families_and_keys_are_refused_with_the_nearest(data: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build(TaskSource, {"type": "embedded_web", **data})


def test_an_unknown_kind_of_site_is_a_task_error() -> None:
    with pytest.raises(TaskError, match="did you mean 'forum'"):
        make_world("forun", 1)


def test_a_source_with_a_path_can_be_written_and_read_as_toml(tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"tasks": TaskFile(path=tmp_path / "tasks.jsonl")})
    (tmp_path / "recipe.toml").write_text(dump_toml(recipe))
    assert load_toml(Recipe, tmp_path / "recipe.toml") == recipe


def test_variations_act_on_no_more_items_than_tasks_do() -> None:
    source, rng = EmbeddedWeb(errands=("act",), most_acted=2), random.Random(0)
    varied = [new for task in source.sample(rng, 20) if (new := source.vary(task, rng))]
    items = {t.id: dict(t.params)["items"] for site in KINDS for t in templates(site) if t.errand == "act"}
    assert varied and max(items[task.template_id] for task in varied) <= 2


def test_held_out_templates_stand_beside_new_tasks_of_training_templates() -> None:
    source = EmbeddedWeb(new_templates=False, most_acted=1)
    beside = {name: other.as_data() for name, other in source.beside.items()}
    assert beside == {"new_templates": EmbeddedWeb().as_data()}
    assert EmbeddedWeb().beside == {}
