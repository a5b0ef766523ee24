"""Trails: one rule at every step, goal distance by one number, waste that costs its way back, and habits that are
measured as they were had."""

import random
import re
from collections.abc import Callable, Sequence
from itertools import islice
from urllib.parse import urlsplit

import pytest
from guides import DOCS
from helpers import make_task

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.envs.dial import KINDS, Dial, DialCodes, DialEnv, Habits, Trail, Walker
from longstride.envs.dial.env import STILL
from longstride.envs.dial.habits import by_distance
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.episode import Episode
from longstride.starts.demonstrators import run_now
from longstride.starts.dial_walks import DialWalks
from longstride.studies.tti_map.trails import expected


def play(source: Dial, tasks: Sequence[Task], say: Callable[[Episode], str], turns: int = 300) -> list[Trajectory]:
    plans = [Plan(task, i, i, Budget(turns=turns)) for i, task in enumerate(tasks)]
    return Pool(ScriptedPlayer(say), source.env, TaskReward()).run(plans)


def walk(source: Dial, tasks: Sequence[Task], turns: int = 300, **habits: float) -> list[Trajectory]:
    """Played by walkers."""
    walkers = [Walker(random.Random(k), **habits) for k in range(len(tasks))]
    return play(source, tasks, lambda e: walkers[e.plan.ordinal].say(e.page), turns)


def visit(trail: Trail, *texts: str) -> list[str]:
    """What is seen on a trail, from the first page on."""

    async def seen() -> list[str]:
        env = DialEnv()
        first = await env.reset(make_task(meta=trail.model_dump()), 0)
        return [first.text, *[(await env.step(f"Action: {text}")).observation.text for text in texts]]

    return run_now(seen())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distance", [2, 3, 17, 256, 1000])
def test_a_shortest_way_takes_as_many_actions_as_the_goal_is_far(kind: str, distance: int) -> None:
    source = Dial(kinds=(kind,), distances=(distance, distance))
    task = source.held_out(1)[0]
    steps = source.demonstrate(task)
    (found,) = play(source, [task], lambda e: steps[e.turns], turns=distance)
    assert found.supported and found.length == task.optimal == distance
    (cut,) = play(source, [task], lambda e: steps[e.turns], turns=distance - 1)
    assert not cut.success and cut.stop is StopReason.TURNS


def test_a_page_is_read_as_the_documentation_shows_it() -> None:
    trail = Trail(kind="folders", distance=3, seed=5)
    shown = trail.page((0,))
    rows = [f"{name} [{n}]" for n, name in enumerate(shown.links, 2)]
    assert shown.text() == "\n".join(["read help [1]", "# folder", f"in {shown.links[shown.right - 1]}", *rows])
    assert trail.page((2,)).text() == f"read help [1]\n# folder\ncode {trail.code}"
    below = Trail(kind="parcel", distance=3, seed=5, help=False).page((0,))
    assert below.text().startswith("# depot")
    assert below.text().endswith(f"\nsent on to {below.links[below.right - 1]}")


def test_wrong_links_lead_away_to_a_bounded_depth_and_cost_their_way_back() -> None:
    trail = Trail(kind="index", distance=5, seed=1, astray=2)
    right = trail.page((0,)).right
    wrong = 1 + right % trail.links
    first, away, farther, nowhere, back, again = visit(
        trail, f"click [{1 + wrong}]", "click [2]", "click [2]", "back", "back"
    )
    assert "nothing here" in away and "[5]" in away
    assert farther.split("\n") == ["read help [1]", "# index", "nothing here"]
    assert "error: there is no element [2]" in nowhere
    assert (back, again) == (away, first)


@pytest.mark.parametrize("idle", ["wait", "click [1]", "click read help [1]", "scroll down", "goto /dial/", "home"])
def test_idle_actions_cost_a_turn_and_move_nothing(idle: str) -> None:
    source = Dial(distances=(3, 3))
    (found,) = play(source, source.held_out(1), lambda e: f"Action: {idle}", turns=3)
    assert found.length == 3 and not any(turn.changed for turn in found.turns)
    assert all(turn.error for turn in found.turns) and found.turns[0].action is not None


def test_home_and_back_lose_the_way() -> None:
    trail = Trail(kind="thread", distance=4, seed=2)
    on = [f"click [{1 + trail.page((k,)).right}]" for k in range(3)]
    seen = visit(trail, on[0], on[1], "back", "home", "back", "back")
    assert seen == [trail.page((k,)).text() for k in (0, 1, 2, 1, 0, 1, 0)]
    assert visit(trail, "back")[1].endswith("error: there is no page before this one")


def test_a_guess_is_worth_nothing_and_rests_on_nothing() -> None:
    source = Dial(distances=(4, 4))
    tasks = source.held_out(400)
    guessed = play(source, tasks, lambda e: f"Action: answer {random.Random(e.plan.seed).randint(10, 99)}")
    assert sum(t.success for t in guessed) <= 15  # 4.4 are expected
    assert not any(t.supported for t in guessed)


def test_held_out_trails_have_new_names_made_of_words_that_training_has() -> None:
    def names(tasks: Sequence[Task]) -> set[str]:
        trails = [Trail.of(task) for task in tasks]
        return {name for t in trails for k in range(t.distance - 1) for name in t.page((k,)).links}

    train, test = names(Dial().sample(random.Random(0), 300)), names(Dial().held_out(100))
    assert not train & test
    assert {word for name in test for word in name.split()} <= {word for name in train for word in name.split()}


def test_held_out_distances_are_those_that_are_named_and_bands_are_those_of_training() -> None:
    source = Dial(distances=(2, 13), test_distances=(8, 64, 256))
    assert [task.optimal for task in source.held_out(6)] == [8, 64, 256, 8, 64, 256]
    assert [source.difficulty(d) for d in (2, 5, 6, 9, 10, 13, 256)] == ["easy"] * 2 + ["medium"] * 2 + ["hard"] * 3
    drawn = [task.optimal for task in source.sample(random.Random(3), 500)]
    assert set(drawn) == set(range(2, 14))
    assert source.sample(random.Random(3), 5) == source.sample(random.Random(3), 5)


@pytest.mark.parametrize(
    "meta",
    [{}, {"kind": "maze"}, {"distance": 1}, {"distance": 10**9}, {"links": 100}, {"seed": "x"}, {"more": 1}],
)
def test_what_is_no_trail_is_refused(meta: dict) -> None:
    good = {} if not meta else Trail(kind="index", distance=3, seed=1).model_dump()
    with pytest.raises(EnvFailure, match=r"meta\."):
        run_now(DialEnv().reset(make_task(meta=good | meta), 0))


def test_settings_that_fit_no_trail_are_refused() -> None:
    for bad in ({"kinds": ["maze"]}, {"kinds": []}, {"distances": [9, 3]}, {"distances": [1, 3]}, {"links": 1}):
        with pytest.raises(ConfigError):
            build(TaskSource, {"type": "dial"} | bad)


OFF = ["", "0", "/dial/x/0", "{root}3", "{root}2.1", "{root}0.5", "{root}0.1.1.1", "{root}-1"]


@pytest.mark.parametrize("path", OFF)
def test_an_address_off_the_trail_is_no_place(path: str) -> None:
    trail = Trail(kind="index", distance=3, seed=1, astray=2)
    assert trail.place(path.format(root=trail.root)) is None
    assert trail.place(trail.address((1, 4, 2))) == (1, 4, 2) and Trail.at(trail.key) == trail


@pytest.mark.parametrize("help_", [True, False])
def test_habits_are_measured_as_they_were_had(help_: bool) -> None:
    """Without wrong links a walker's habits are those of the exact model: some 8,000 turns, so .02 is four standard
    errors."""
    source = Dial(distances=(2, 21), help=help_)
    found = walk(source, source.sample(random.Random(1), 500), begins=0.3, goes_on=0.5, patience=0.95)
    habits = Habits.of(found)
    assert habits.begins == pytest.approx(0.3, abs=0.02) and habits.goes_on == pytest.approx(0.5, abs=0.025)
    assert habits.quits == pytest.approx(0.05, abs=0.015)
    assert (habits.wrong, habits.misread) == (0, 0) and habits.idle == habits.wasted
    assert sum((each for each in by_distance(found).values()), Habits()) == habits


def test_a_wrong_link_and_each_step_back_are_wasted() -> None:
    trail = Trail(kind="index", distance=3, seed=1)
    right = [1 + trail.page((k,)).right for k in range(2)]
    wrong = 2 if right[0] != 2 else 3
    texts = [f"click [{wrong}]", "click [2]", "back", "back", f"click [{right[0]}]", "wait", "back",
             f"click [{right[0]}]", f"click [{right[1]}]", f"answer {trail.code}"]  # fmt: skip
    source = Dial()
    task = make_task(meta=trail.model_dump(), evaluator={"type": "answer", "reference": trail.code})
    (found,) = play(source, [task], lambda e: f"Action: {texts[e.turns]}")
    habits = Habits.of([found])
    assert found.success
    assert (habits.turns, habits.wasted, habits.idle, habits.wrong) == (10, 7, 1, 2)
    assert (habits.fresh, habits.begun, habits.continued) == (3, 2, 5)
    assert (habits.asked, habits.quit) == (1, 0)


def test_what_is_copied_wrongly_is_told_from_what_is_wandered() -> None:
    trail = Trail(kind="index", distance=3, seed=1)
    shown = trail.page((0,))
    name, number = shown.links[shown.right - 1], 1 + shown.right
    other = shown.links[shown.right % 4]
    for text, misread in (
        (f"click {name} [{number}]", 0),
        (f"click {other} [{number}]", 1),
        (f"click {name} [{number % 4 + 2}]", 1),
        ("click velvet anchor [2]", 1),
    ):
        (found,) = play(Dial(), [make_task(meta=trail.model_dump())], lambda e, t=text: f"Action: {t}", turns=1)
        assert (Habits.of([found]).said, Habits.of([found]).misread) == (1, misread), text


def test_demonstrated_walks_are_a_function_of_their_number_and_of_training_trails_only() -> None:
    walks = DialWalks(tasks=Dial(distances=(2, 6)))
    some = list(islice(walks.demonstrations(0), 40))
    assert next(walks.demonstrations(0, first=17)) == some[17]
    assert {shown.task.split for shown in some} == {"train"}
    said = {text for shown in some for text in shown.texts}
    assert "Action: wait" in said and "Action: click read help [1]" in said and "Action: back" in said
    assert any(STILL in seen for shown in some for seen in shown.observations)


@pytest.mark.parametrize("wrong", [0.0, 0.5])
def test_the_exact_model_says_what_measured_habits_come_to(wrong: float) -> None:
    """Of 600 walks .06 is three standard errors; that a step back is no free turn makes less than .01."""
    source = Dial()
    found = walk(
        source, source.sample(random.Random(1), 600), turns=24, begins=0.3, goes_on=0.5, patience=0.95, wrong=wrong
    )
    by_chance = expected(Habits.of(found), range(2, 22), turns=24)
    supported = sum(t.supported for t in found) / len(found)
    assert supported == pytest.approx(sum(by_chance.values()) / len(by_chance), abs=0.06)
    assert by_chance[2] > by_chance[10] > by_chance[21] < 0.2


async def both(source: Dial, task: Task, texts: Sequence[str]) -> None:
    """Plays the same on the pages and in text, and compares all that is seen."""
    pages, text = source.env(), DialEnv()
    try:
        on_page, in_text = await pages.reset(task, 0), await text.reset(task, 0)
        for said in texts:
            assert on_page.text == in_text.text and urlsplit(on_page.url).path == in_text.url
            step, same = await pages.step(said), await text.step(said)
            assert (step.action, step.error, step.answer) == (same.action, same.error, same.answer), said
            on_page, in_text = step.observation, same.observation
    finally:
        await pages.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("help_", [True, False])
def test_as_pages_a_trail_reads_and_moves_as_in_text(kind: str, help_: bool) -> None:
    source = Dial(kinds=(kind,), distances=(6, 6), help=help_, browser="text")
    task = source.held_out(1)[0]
    (walked,) = walk(source.replace(browser="none"), [task], begins=0.5, goes_on=0.7, wrong=0.5)
    odd = ["Action: back", "Action: home", "Action: goto /", "Action: click [9]", "nonsense"]
    run_now(both(source, task, [*odd, *(turn.text for turn in walked.turns[:-1]), *odd, walked.turns[-1].text]))
    assert walked.success and walked.length > 8


def test_an_address_of_no_trail_is_refused_by_the_site() -> None:
    task = Dial(browser="text").held_out(1)[0]
    for start in ("/dial/maze-3/0", "/dial/index-3-4-2-1-0-7/3", "/dial/index-3-4-2-1-0-7/0.1.1.1"):
        with pytest.raises(EnvFailure, match="status 404"):
            run_now(Dial(browser="text").env().reset(task.model_copy(update={"start": start}), 0))


def test_the_guide_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "guides" / "dial.md").read_text(encoding="utf-8"), re.M | re.S
    )
    (shown,) = re.findall(
        r"^```text\n(.*?)^```", (DOCS / "guides" / "dial.md").read_text(encoding="utf-8"), re.M | re.S
    )
    exec(compile(code.replace("300", "30"), "dial.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'begins': 0.")
    assert Walker(random.Random(0)).say(shown.strip()) == "Action: click amber castle [3]"


def test_the_answer_of_a_trail_with_codes_is_all_of_them_in_their_order() -> None:
    source = DialCodes(distances=(9, 9), codes=3)
    for task in source.held_out(8):
        trail = Trail.of(task)
        first, second = trail.noted
        assert 0 <= first < second < 8 and Trail.at(trail.key) == trail
        assert task.evaluator["reference"] == f"{trail.noted[first]} {trail.noted[second]} {trail.code}"
        on_way = [k for k in range(9) if "\ncode " in trail.page((k,)).text()]
        assert on_way == [first, second, 8]
        steps = source.demonstrate(task)
        (found,) = play(source, [task], lambda e, s=steps: s[e.turns])
        assert found.success and found.length == 9 and Habits.of([found]).misread == 0
        (forgot,) = play(source, [task], lambda e, s=steps, t=trail: [*s[:-1], f"Action: answer {t.code}"][e.turns])
        assert not forgot.success and Habits.of([forgot]).misread == 1


def test_a_short_way_has_as_many_codes_as_it_has_pages() -> None:
    assert [len(t.evaluator["reference"].split()) for t in DialCodes(distances=(2, 2), codes=5).held_out(3)] == [2] * 3


def test_what_is_to_be_noted_is_every_code_that_was_seen() -> None:
    source = DialCodes(distances=(6, 6), codes=4)
    task = source.held_out(1)[0]
    pages = [Trail.of(task).page((k,)).text() for k in range(6)]
    for k in range(6):
        seen = re.findall(r"^code (\d+)$", "\n".join(pages[: k + 1]), re.M)
        assert source.note(task, k) == " ".join(["code", *seen])


def test_a_trail_with_codes_is_otherwise_the_trail_that_it_is_without_them() -> None:
    plain = Trail(kind="parcel", distance=4, seed=5)
    coded = plain.model_copy(update={"codes": 2})
    (place,) = coded.noted
    pages = [(coded.page((k,)).text(), plain.page((k,)).text()) for k in range(4)]
    assert [k for k, (with_code, without) in enumerate(pages) if with_code != without] == [place]
    assert pages[place][0].replace(f"code {coded.noted[place]}\n", "") == pages[place][1]
