"""Readers of other people's benchmarks: what becomes of each format, and that a bad record is named."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import times_as_long
from hypothesis import given
from hypothesis import strategies as st

from longstride.core.errors import TaskError
from longstride.core.task import Task, read_tasks, save_tasks, split_of
from longstride.web.benchmarks import (
    Helper,
    programs_of,
    read_tti,
    read_webarena,
    read_webgym,
    read_webvoyager,
    subtasks,
)
from longstride.web.benchmarks.programs import read_programs
from longstride.web.benchmarks.records import PORTS, BenchmarkRecord, tasks_from
from longstride.web.benchmarks.tti_files import _task as tti_task
from longstride.web.benchmarks.webgym import _task as webgym_task

DATA = Path(__file__).parents[1] / "data" / "benchmarks"
HOSTS = {name: f"https://{name.replace('_', '-')}.test" for name in PORTS.values()} | {
    "shopping_admin": "https://shopping-admin.test/backend"
}
PROGRAM = {"url": "last", "locator": "document.title", "required_contents": {"exact_match": "x"}}


@pytest.fixture(scope="module")
def arena() -> dict[str, Task]:
    return {task.id: task for task in read_webarena(DATA / "webarena.json", HOSTS)}


def record(path: str, number: int) -> dict[str, Any]:
    text = (DATA / path).read_text()
    items = json.loads(text) if path.endswith(".json") else [json.loads(line) for line in text.split("\n") if line]
    return copy.deepcopy(items[number])


def write(path: Path, *items: Any) -> Path:
    path.write_text(json.dumps(list(items)) if path.suffix == ".json" else "\n".join(map(json.dumps, items)))
    return path


def test_a_webarena_configuration_becomes_a_task(arena):
    assert arena["webarena/1"] == Task(
        id="webarena/1", source="webarena/shopping", split="test", goal="What does the blue kettle cost?",
        start="https://shopping.test", template_id="webarena/11",
        evaluator={"type": "string_match", "exact_match": "$24.50"},
        meta={"sites": ["shopping"], "storage_state": "./.auth/shopping_state.json"},
    )  # fmt: skip


def test_the_score_is_the_product_of_the_named_checkers_and_of_no_other(arena):
    assert [part["type"] for part in arena["webarena/6"].evaluator["of"]] == ["url_match", "program_html"]
    assert arena["webarena/4"].evaluator == {
        "type": "string_match", "fuzzy_match": "N/A", "string_note": "Ada gave no phone number",
    }  # fmt: skip


def test_several_tabs_are_kept_and_the_first_is_the_start(arena):
    tabs = ["https://shopping.test/kettle.html", "https://shopping.test/toaster.html"]
    assert (arena["webarena/2"].start, arena["webarena/2"].meta["tabs"]) == (tabs[0], tabs)
    assert "tabs" not in arena["webarena/1"].meta


def test_programs_are_listed_in_order_with_helpers_as_named_probes(arena):
    post, page, role = programs_of(arena["webarena/6"])
    assert (post.url, post.rule, post.contents) == (
        Helper("reddit_get_post_url", "last"), "must_include", ("v2.0 |OR| 2.0", "release"),
    )  # fmt: skip
    assert (page.url, page.locator) == ("last", "")
    assert role.url == "https://gitlab.test/a/b/-/project_members"
    assert role.locator == Helper("gitlab_get_project_memeber_role", "ada")
    note, author, rating = programs_of(arena["webarena/7"])
    assert (note.url, note.contents) == (Helper("shopping_get_latest_order_url"), ("",))
    assert note.prep_actions == ("document.querySelector('#more').click()",)
    assert author.locator == Helper("shopping_get_sku_latest_review_author", "B00X")
    assert rating.locator == Helper("shopping_get_sku_latest_review_rating", "B00X")
    assert programs_of(arena["webarena/1"]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"url": "func:__import__('os').system('x')"}, "no probe"),
        ({"url": "func:shopping_get_newest_order_url()"}, "did you mean 'shopping_get_latest_order_url'"),
        ({"url": "func:shopping_get_latest_order_url('x')"}, "no argument"),
        ({"locator": "func:reddit_get_post_url('__last_url__')"}, "unknown probe for a locator"),
        ({"locator": "func:shopping_get_sku_latest_review_author()"}, "one argument"),
        ({"url": "file:///etc/passwd"}, "`url` is 'last', an address"),
        ({"url": "func:reddit_get_post_url('file:///etc/passwd')"}, "takes __last_url__ or an address"),
        ({"url": "func:reddit_get_post_url('http://[x')"}, "takes __last_url__ or an address"),
        ({"locator": "fetch('x')"}, "`locator` begins with document."),
        ({"locator": None}, "are texts"),
        ({"prep_actions": "x()"}, "`prep_actions`"),
        ({"required_contents": {}}, "`required_contents`"),
        ({"required_contents": {"must_include": []}}, "`required_contents`"),
        ({"required_contents": {"must_include": ["x"], "exact_match": "x"}}, "`required_contents`"),
        ({"script": "x"}, "expected `url`, `locator`"),
    ],
)
def test_a_program_that_is_not_understood_is_refused_with_its_number(change, said):
    with pytest.raises(TaskError, match="program 2") as e:
        read_programs([PROGRAM, PROGRAM | change], "task 't'")
    assert said in str(e.value)


def test_two_lists_of_programs_in_one_evaluator_are_refused():
    part = {"type": "program_html", "programs": [PROGRAM]}
    task = Task(id="t", source="s", goal="g", start="s", evaluator={"type": "all", "of": [part, part]})
    with pytest.raises(TaskError, match="put all programs into one"):
        programs_of(task)


def test_webarena_lite_shares_templates_with_webarena_and_takes_a_text_for_a_list(arena):
    names, refund = read_webarena(DATA / "webarena_lite.json", HOSTS)
    assert (names.id, names.source, names.meta["old_task_id"]) == ("webarena_lite/0", "webarena_lite/gitlab", "90")
    assert names.template_id == arena["webarena/5"].template_id
    assert names.evaluator == {"type": "string_match", "must_include": ["ada"]}
    assert [p.rule for p in programs_of(refund)] == ["fuzzy_match", "must_include"]


def test_tti_lines_are_webarena_with_eval_and_webvoyager_without(arena):
    issues, soup = read_tti(DATA / "tti.jsonl", HOSTS)
    assert issues == arena["webarena/5"]
    assert soup == read_webvoyager(DATA / "webvoyager.jsonl", {})[0]


def test_webvoyager_gets_its_reference_answers_and_other_addresses():
    hosts = {"https://old-search.test": "https://search.test/"}
    soup, oldest, tower = read_webvoyager(DATA / "webvoyager.jsonl", hosts, DATA / "webvoyager_answers.json")
    assert soup == Task(
        id="webvoyager/Cookbook--0", source="webvoyager/Cookbook", split="test", start="https://cookbook.test/",
        goal="Find a soup with at least 4 stars.",
        evaluator={"type": "judged", "possible": "Leek soup, 4.6 stars"},
    )  # fmt: skip
    assert oldest.evaluator == {"type": "judged", "golden": "Ada"}
    assert (tower.start, tower.evaluator) == ("https://search.test/q", {"type": "judged"})


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("__SHOPPING_ADMIN__/sales", "https://shopping-admin.test/backend/sales"),
        ("http://gone.test:7780/backend/sales", "https://shopping-admin.test/backend/sales"),
        ("http://gone.test:7770", "https://shopping.test"),
        ("see http://gone.test:7770.", "see https://shopping.test."),
        ("http://gone.test:77701/x", "http://gone.test:77701/x"),
        ("http://gone.test:9998/x", "http://gone.test:9998/x"),
        ("http://old.test/a?u=http://old.test/b", "http://new.test:1/a?u=http://new.test:1/b"),
        ("http://old.test.org/a", "http://old.test.org/a"),
        ("http://old.test/shop/x", "http://shop.new.test/x"),
        ("func:f('__last_url__') __init__", "func:f('__last_url__') __init__"),
    ],
)
def test_addresses_are_moved_by_site_port_and_beginning(text, moved):
    hosts = HOSTS | {"http://old.test/": "http://new.test:1", "http://old.test/shop": "http://shop.new.test"}
    seen: list[Any] = []
    tasks_from([BenchmarkRecord({"a": [{"b": text}]}, "f", 1)], lambda r: seen.append(r.data), hosts)
    assert seen == [{"a": [{"b": moved}]}]


def test_a_site_without_an_address_is_named():
    with pytest.raises(TaskError, match="record 3: __MAP__ needs an address; give hosts one for 'map'"):
        read_webarena(DATA / "webarena.json", {"shopping": "http://s.test"})


@pytest.mark.parametrize(
    ("hosts", "said"),
    [({"shoping": "http://s.test"}, "did you mean 'shopping'"), ({"shopping": "s.test"}, "expected an http")],
)
def test_a_table_of_hosts_that_cannot_be_used_is_refused(hosts, said):
    with pytest.raises(TaskError, match=said):
        read_webarena(DATA / "webarena.json", hosts)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task_id": True}, "task_id: expected a text"),
        ({"intent": " "}, "intent: expected a text, got ' '"),
        ({"sites": []}, "sites: expected a list of texts"),
        ({"start_url": "javascript:x"}, "start_url: expected an http"),
        ({"start_url": "http://a.test |AND| b"}, "start_url: expected an http"),
        ({"eval": []}, "eval: expected an object"),
        ({"eval": {"eval_types": []}}, "eval: eval_types: expected a list"),
        ({"eval": {"eval_types": ["strng_match"]}}, "did you mean 'string_match'"),
        ({"eval": {"eval_types": ["string_match"]}}, "reference_answers: missing"),
        ({"eval": {"eval_types": ["string_match"], "reference_answers": {}}}, "at least one rule"),
        (
            {"eval": {"eval_types": ["string_match"], "reference_answers": {"must_inclde": ["x"]}}},
            "did you mean 'must_include'",
        ),
        ({"eval": {"eval_types": ["url_match"], "reference_url": "no address"}}, "reference_url: expected"),
        (
            {"eval": {"eval_types": ["url_match"], "reference_url": "http://a.test", "url_note": "EXACT"}},
            "url_note: expected 'GOLD in PRED', got 'EXACT'",
        ),
        ({"eval": {"eval_types": ["program_html"], "program_html": []}}, "needs a list of programs"),
        ({"eval": {"eval_types": ["program_html"], "program_html": [{}]}}, "program 1"),
    ],
)
def test_a_bad_webarena_record_is_named_with_its_number_and_field(tmp_path, change, said):
    good = record("webarena.json", 0)
    path = write(tmp_path / "tasks.json", good, good | {"task_id": 99} | change)
    with pytest.raises(TaskError, match="tasks.json, record 2") as e:
        read_webarena(path, HOSTS)
    assert said in str(e.value)


def test_an_id_that_comes_twice_is_refused_with_both_places(tmp_path):
    path = write(tmp_path / "t.json", record("webarena.json", 0), record("webarena.json", 0))
    with pytest.raises(TaskError, match=r"record 2: the id 'webarena/1' was used in .*record 1"):
        read_webarena(path, HOSTS)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"web_name": ', "line 1: not JSON"),
        (b"[]", "line 1: expected a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"\n" + b"[" * 100_000, "line 2: nested too deeply"),
        (b'{"ques": "\\ud800"}', "lone surrogate"),
        (b'{"id": ' + b"9" * 5000 + b"}", "line 1: "),
        (b'{"web_name": "a", "id": 1, "ques": "q", "web": "http://[x"}', "web: expected an http"),
    ],
)
def test_a_file_that_is_no_json_lines_is_refused(tmp_path, content, said):
    (tmp_path / "t.jsonl").write_bytes(content)
    for read in (read_tti, read_webvoyager):
        with pytest.raises(TaskError, match="t.jsonl") as e:
            read(tmp_path / "t.jsonl", {})
        assert said in str(e.value)


def test_a_file_that_is_missing_or_of_another_shape_is_refused(tmp_path):
    with pytest.raises(TaskError, match="cannot read"):
        read_webarena(tmp_path / "none.json", HOSTS)
    with pytest.raises(TaskError, match="expected a JSON list"):
        read_webarena(DATA / "webvoyager_answers.json", HOSTS)
    (tmp_path / "a.json").write_text('{"Cookbook": {"answers": [{"id": 0, "type": "maybe", "ans": "x"}]}}')
    with pytest.raises(TaskError, match="Cookbook: answer 1: type: expected 'golden' or 'possible'"):
        read_webvoyager(DATA / "webvoyager.jsonl", {}, tmp_path / "a.json")


def test_all_forms_of_a_webgym_rubric_become_groups_of_facts():
    walk, tent, lakes, hill = read_webgym(DATA / "webgym.jsonl")
    assert [len(g["facts"]) for g in walk.evaluator["groups"]] == [3, 1, 2]
    assert walk.evaluator["reference"] == "Lake loop, Café Nord, 9 to 17"
    assert tent.evaluator["groups"] == [
        {"description": "The price of a tent is told", "facts": ["The price of a tent is told"], "size": 3},
        {"description": "It is a tent for two", "facts": ["It is a tent for two"]},
    ]
    assert "reference" not in tent.evaluator and "reference" not in lakes.evaluator
    assert lakes.evaluator["groups"][1]["facts"] == ["Another lake is named"]
    assert hill.evaluator["groups"] == [{"description": "A hill is named", "facts": ["A hill is named"]}]


def test_webgym_difficulty_is_the_number_of_facts_and_its_template_the_site():
    tasks = read_webgym(DATA / "webgym.jsonl")
    assert [(t.facts, t.difficulty) for t in tasks] == [(6, "medium"), (4, "medium"), (2, "easy"), (1, "easy")]
    assert [t.id for t in tasks] == ["webgym/1", "webgym/2", "webgym/line-3", "webgym/4"]
    assert [t.template_id for t in tasks[:2]] == ["webgym/tarn.test", "webgym/shop.tarn.test"]
    assert [t.start for t in tasks[:2]] == ["https://www.tarn.test", "https://shop.tarn.test/tents"]


def test_tasks_of_blocked_sites_and_of_sites_below_them_are_left_out():
    ids = [t.id for t in read_webgym(DATA / "webgym.jsonl", blocked=["WWW.tarn.test", "ills.test"])]
    assert ids == ["webgym/line-3", "webgym/4"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"website": "ftp://a.test"}, "website: expected a host"),
        ({"website": "http://["}, "website: expected a host"),
        ({"task_name": None}, "task_name: expected a text"),
        ({"evaluator_reference": []}, "evaluator_reference: expected a rubric"),
        ({"evaluator_reference": [3]}, "item 1: expected an object or a text"),
        ({"evaluator_reference": [{"description": "d", "facts": []}]}, "facts: expected a list"),
        ({"evaluator_reference": [{"difficulty": 1}]}, "description: missing"),
        ({"evaluator_reference": [{"description": "d", "difficulty": 0}]}, "difficulty: expected a whole number"),
    ],
)
def test_a_bad_webgym_line_is_named_with_its_number_and_field(tmp_path, change, said):
    path = write(tmp_path / "g.jsonl", record("webgym.jsonl", 1), record("webgym.jsonl", 0) | change)
    with pytest.raises(TaskError, match="g.jsonl, line 2") as e:
        read_webgym(path)
    assert said in str(e.value)


def test_a_task_is_taken_apart_into_proper_subsets_with_a_large_group():
    walk = read_webgym(DATA / "webgym.jsonl")[0]
    parts = subtasks(walk)
    assert [p.id for p in parts] == ["webgym/1/part-1", "webgym/1/part-1-2", "webgym/1/part-1-3"]
    assert [(p.facts, p.difficulty) for p in parts] == [(3, "easy"), (4, "medium"), (5, "medium")]
    assert parts[1].goal == "Find a walk in Tarn; Find a café on the way"
    assert parts[1].evaluator == {"type": "rubric", "groups": walk.evaluator["groups"][:2]}
    assert {p.start for p in parts} == {walk.start} and {p.meta["parent"] for p in parts} == {walk.id}
    assert subtasks(walk, limit=2) == parts[:2] == subtasks(walk)[:2]


def test_a_task_without_two_groups_or_a_large_one_is_not_taken_apart():
    _, tent, lakes, hill = read_webgym(DATA / "webgym.jsonl")
    assert [p.id for p in subtasks(tent)] == ["webgym/2/part-1"]
    assert subtasks(lakes) == subtasks(hill) == []
    with pytest.raises(TaskError, match="only a task whose evaluator is a 'rubric'"):
        subtasks(hill.model_copy(update={"evaluator": {"type": "judged"}}))


def test_no_template_is_in_two_splits_nor_a_part_away_from_its_whole():
    tasks = [
        Task(id=f"t{i}", source="s", goal="g", start="s", template_id=f"template {i % 300}" if i % 3 else "")
        for i in range(3000)
    ]
    for seed in range(3):
        of: dict[str, set[str]] = {}
        for task in tasks:
            of.setdefault(task.template_id or task.id, set()).add(split_of(task, 0.25, seed))
        assert all(len(splits) == 1 for splits in of.values())
        assert 0.2 < sum(splits == {"test"} for splits in of.values()) / len(of) < 0.3
    assert [split_of(t, 0.25, 0) for t in tasks] != [split_of(t, 0.25, 1) for t in tasks]
    assert {split_of(t, 0.0, 0) for t in tasks} == {"train"} and {split_of(t, 1.0, 0) for t in tasks} == {"test"}
    walk = read_webgym(DATA / "webgym.jsonl")[0]
    for whole in (walk, walk.model_copy(update={"template_id": ""})):
        assert all(split_of(p, 0.5, s) == split_of(whole, 0.5, s) for s in range(20) for p in subtasks(whole))


def test_what_was_read_can_be_saved_and_read_again(tmp_path, arena):
    tasks = [
        *arena.values(), *read_webarena(DATA / "webarena_lite.json", HOSTS), *read_webgym(DATA / "webgym.jsonl"),
        *read_webvoyager(DATA / "webvoyager.jsonl", {}),
    ]  # fmt: skip
    save_tasks(tasks, tmp_path / "t.jsonl")
    assert list(read_tasks(tmp_path / "t.jsonl")) == tasks


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["__GITLAB__", "http://a.test:7770", "http://[", "func:f()", "N/A", " |OR| ", " |AND| "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
SAMPLES = [record("webarena.json", i) for i in range(7)] + [record("webvoyager.jsonl", 0)]
RUBRICS = [record("webgym.jsonl", i) for i in range(4)]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [path] * bool(path) + [p for key in keys for p in places(value[key], (*path, key))]


def spoiled(data: st.DataObject, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """A sample with one to three of its values replaced by anything."""
    sample = copy.deepcopy(data.draw(st.sampled_from(samples)))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(sample)))
        place = sample
        for key in path:
            place = place[key]
        place[last] = data.draw(JSON)
    return sample


@given(st.data())
def test_a_hostile_record_is_a_task_error_or_a_task_that_can_be_probed(data):
    for make, samples in ((tti_task, SAMPLES), (lambda r: webgym_task(r, frozenset()), RUBRICS)):
        hostile = BenchmarkRecord(spoiled(data, samples), "f, line 1", 1)
        try:
            tasks = tasks_from([hostile], make, HOSTS)
        except TaskError as e:
            assert str(e).startswith("f, line 1")
            continue
        for task in tasks:
            programs_of(task)
            if task.evaluator["type"] == "rubric":
                subtasks(task)


def test_a_probe_with_four_times_the_spaces_takes_about_four_times_as_long():
    def refuse(spaces: int) -> None:
        with pytest.raises(TaskError, match="no probe"):
            read_programs([{"url": f"func:a({' ' * spaces}x", "locator": "", "required_contents": {}}], "t")

    assert times_as_long(refuse, 80_000, 20_000) < 10  # 16, were it quadratic
