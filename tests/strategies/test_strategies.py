"""Check-again through the real pool, direct evaluation under other limits, and the trivial policies on pages of
text."""

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest
from helpers import make_task

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.envs.base import Observation, Step
from longstride.envs.sites.actions import WebAction, parse
from longstride.rewards import TaskReward
from longstride.rollout import Episode, Plan, Pool, ScriptedPlayer
from longstride.strategies import Direct, Strategy
from longstride.strategies.baselines import BASELINES, elements
from longstride.strategies.check_again import CheckAgain


class PageEnv:
    """Numbers its pages; an answer ends it, and a step after the end is an error."""

    def __init__(self):
        self.texts, self.over = [], False

    async def reset(self, task, seed):
        return Observation("page 0", "/0")

    async def step(self, text):
        assert not self.over
        self.texts.append(text)
        action = parse(text)
        if isinstance(action, WebAction) and action.verb == "answer":
            self.over = True
            return Step(Observation("bye"), terminated=True, action=str(action), answer=action.text)
        page = Observation(f"page {len(self.texts)}", f"/{len(self.texts)}")
        return Step(page, action=str(action) if isinstance(action, WebAction) else None)

    async def final_state(self):
        return {}

    async def close(self):
        pass


def play(strategy, answers, turns=5, **budget):
    """Plays 5 turns with the answers given {turn from 1: answer}; the trajectory and the environment."""
    envs = []

    def make():
        envs.append(PageEnv())
        return strategy.wrap(envs[-1])

    task = make_task(evaluator={"type": "answer", "reference": "red"})
    player = ScriptedPlayer(
        lambda e: f"Action: answer {answers[e.turns + 1]}" if e.turns + 1 in answers else "Action: wait"
    )
    return Pool(player, make, TaskReward()).run([Plan(task, 0, 1, Budget(turns=turns, **budget))])[0], envs[0]


def test_the_second_answer_ends_the_episode_and_is_judged():
    t, env = play(CheckAgain(checks=2), {3: "blue", 5: "red"})
    assert (t.stop, t.length, t.answer, t.reward) == (StopReason.ANSWERED, 5, "red", 1.0)
    assert sum("answer" in text for text in env.texts) == 1


def test_a_right_first_answer_does_not_count_when_the_last_is_wrong():
    assert play(CheckAgain(checks=2), {3: "red", 5: "blue"})[0].reward == 0.0
    assert play(CheckAgain(checks=2, keep_last_answer=True), {3: "red", 5: "blue"})[0].answer == "blue"


def test_an_answer_that_a_budget_cut_is_discarded_by_default():
    t, _ = play(CheckAgain(checks=2), {5: "red"})
    assert (t.stop, t.answer, t.reward, t.evidence) == (StopReason.TURNS, None, 0.0, {})


@pytest.mark.parametrize("at", [{5: "red"}, {2: "red"}])
def test_an_answer_that_a_budget_cut_is_judged_if_it_is_kept(at):
    t, _ = play(CheckAgain(checks=2, keep_last_answer=True), at)
    assert (t.stop, t.answer, t.reward) == (StopReason.TURNS, "red", 1.0)


def test_after_an_answer_the_same_page_comes_back_with_the_paragraph():
    t, _ = play(CheckAgain(checks=3), {2: "a", 3: "b", 5: "red"})
    assert [turn.observation for turn in t.turns] == [
        "page 0", "page 1", "page 1\ncheck again", "page 1\ncheck again", "page 2",
    ]  # fmt: skip
    assert [turn.action for turn in t.turns] == ["wait", "answer a", "answer b", "wait", "answer red"]
    assert t.turns[2].url == "/1"


def test_an_answer_that_is_held_back_is_no_tool_call():
    t, _ = play(CheckAgain(checks=3), {1: "a", 2: "b", 4: "red"}, tool_calls=2)
    assert (t.stop, t.length) == (StopReason.ANSWERED, 4)


def test_one_check_is_direct():
    direct, one = play(Direct(), {3: "red"})[0], play(CheckAgain(checks=1), {3: "red"})[0]
    assert [turn.text for turn in direct.turns] == [turn.text for turn in one.turns]
    assert (direct.reward, one.reward, direct.length) == (1.0, 1.0, 3)


def test_direct_evaluation_may_have_limits_of_its_own():
    budget = Budget(turns=24, turn_tokens=160)
    assert Direct().budget(budget) == budget
    limited = Direct(turns=3, tokens=40)
    assert limited.budget(budget) == Budget(turns=3, tokens=40, turn_tokens=160)
    assert [s.name for s in (limited, Direct(turns=3), Direct(tokens=40))] == [
        "direct_3_turns_40_tokens", "direct_3_turns", "direct_40_tokens",
    ]  # fmt: skip


def test_more_checks_than_turns_are_refused_where_no_answer_would_count():
    with pytest.raises(ConfigError, match="given 4 times, and episodes take 3 turns at most, so none would count"):
        CheckAgain(checks=4).budget(Budget(turns=3))
    for strategy in (CheckAgain(checks=3), CheckAgain(checks=4, keep_last_answer=True)):
        assert strategy.budget(Budget(turns=3)) == Budget(turns=3)


def test_names_tell_strategies_apart_and_data_builds_them():
    assert [s.name for s in (Direct(), CheckAgain(), CheckAgain(checks=4))] == [
        "direct",
        "check_again_2",
        "check_again_4",
    ]
    assert CheckAgain(keep_last_answer=True).name != CheckAgain().name
    assert CheckAgain(paragraph="look again").name == "check_again_2_look again_paragraph"
    assert build(Strategy, {"type": "check_again", "checks": 3}) == CheckAgain(checks=3)
    assert build(Strategy, Direct().as_data()) == Direct()
    with pytest.raises(ConfigError):
        build(Strategy, {"type": "check_again", "checks": 0})


LIST = "home [1] cart [2] textbox search [3]\n# lamps\ndusty lantern [4]\namber lantern [5]\nnext [6]"
FACTS = "home [1] textbox search [2]\n# amber lantern\ncolor red\nprice 12\nweight 7"


def at(page, goal="color of amber lantern", turns=0, seed=0):
    seen = SimpleNamespace(goal=goal, page=page, turns=turns, turn_seed=seed)
    return cast(Episode, seen)


def test_answer_at_once_takes_the_last_word_of_the_text():
    assert BASELINES["answer_at_once"](at(FACTS)) == "Action: answer 7"


def test_first_result_clicks_the_link_nearest_to_the_goal():
    assert BASELINES["first_result"](at(LIST)) == "Action: click amber lantern [5]"


def test_first_result_clicks_the_first_of_equals_and_never_navigation():
    assert BASELINES["first_result"](at(LIST, goal="nothing here")) == "Action: click dusty lantern [4]"
    assert BASELINES["first_result"](at(LIST, goal="home next cart")) == "Action: click dusty lantern [4]"


def test_first_result_answers_from_the_line_nearest_to_the_goal_on_a_page_without_links():
    assert BASELINES["first_result"](at(FACTS)) == "Action: answer red"
    assert BASELINES["first_result"](at(FACTS, goal="the price of amber lantern")) == "Action: answer 12"


def test_first_result_answers_where_a_fact_is_about_the_goal_and_goes_on_where_none_is():
    page = f"{FACTS}\nmaker northwind [3]"
    assert BASELINES["first_result"](at(page)) == "Action: answer red"
    assert BASELINES["first_result"](at(page, goal="city")) == "Action: click maker northwind [3]"


def test_first_result_answers_after_three_clicks():
    assert BASELINES["first_result"](at(LIST, turns=2)).startswith("Action: click")
    assert BASELINES["first_result"](at(LIST, turns=3)).startswith("Action: answer")


def test_random_walk_does_every_valid_action_and_answers_at_its_rate():
    controls = "select size [7] = any ( any | very big )\nbutton order [8]\nsmall talk\nscroll down for more"
    page = f"{LIST}\n{controls}"
    texts = [BASELINES["random_walk"](at(page, seed=s)) for s in range(3000)]
    actions = [a for text in texts if isinstance(a := parse(text), WebAction)]
    assert len(actions) == len(texts)
    answers = [a.text for a in actions if a.verb == "answer"]
    assert 0.13 < len(answers) / len(texts) < 0.17
    assert set(answers) == {"small", "talk"}
    counts = Counter((a.verb, a.element) for a in actions if a.verb != "answer")
    clicks = {("click", n) for n in (1, 2, 4, 5, 6, 8)}
    assert set(counts) == {("back", None), ("scroll", None), ("type", 3), ("select", 7)} | clicks
    assert min(counts.values()) > 0.75 * counts.total() / 10
    assert {a.text for a in actions if a.verb == "select"} == {"any", "very big"}
    assert texts[:100] == [BASELINES["random_walk"](at(page, seed=s)) for s in range(100)]


def test_elements_behind_text_or_a_value_are_read():
    found = elements("price 5 textbox count [1] = two button buy now [2] disabled\ngift checkbox wrap [3] = on")
    assert [(e.number, e.role, e.words) for e in found] == [
        (1, "textbox", ("count",)), (2, "button", ("buy", "now")), (3, "checkbox", ("wrap",)),
    ]  # fmt: skip


@pytest.mark.parametrize("page", ["", "\n\n", "[1]", "# ", "] [ [9", "textbox [1]"])
@pytest.mark.parametrize("name", list(BASELINES))
def test_baselines_say_an_action_on_any_page(name, page):
    for goal in ("", "???", "a b"):
        for seed in range(20):
            assert isinstance(parse(BASELINES[name](at(page, goal=goal, seed=seed))), WebAction)
