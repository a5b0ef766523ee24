"""BrowserGym's grammar of actions and ours: translated both ways, whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.envs.base import TaskSource
from longstride.envs.sites.actions import WebAction, parse
from longstride.web.browsergym import from_browsergym, to_browsergym

BIDS = {1: "12", 2: "a7", 3: "it's"}
NUMBERS = {bid: number for number, bid in BIDS.items()}
PAIRS = [
    ("click [1]", "click('12')"),
    ("hover [2]", "hover('a7')"),
    ('fill [2] it\'s "red"', "fill('a7', 'it\\'s \"red\"')"),
    ("type [2] red", "fill('a7', 'red')\npress('a7', 'Enter')"),
    ("select [3] dark red", "select_option(\"it's\", 'dark red')"),
    ("scroll down", "scroll(0, 600)"),
    ("scroll up", "scroll(0, -600)"),
    ("goto http://a.test/b?c=1", "goto('http://a.test/b?c=1')"),
    ("back", "go_back()"),
    ("tab new", "new_tab()"),
    ("tab 2", "tab_focus(1)"),
    ("answer 3 red lamps", "send_msg_to_user('3 red lamps')"),
    ("infeasible no such lamp", "report_infeasible('no such lamp')"),
    ("wait", "noop()"),
]


class TestGrammar:
    @pytest.mark.parametrize(("ours", "theirs"), PAIRS)
    def test_an_action_is_translated_there_and_back(self, ours, theirs):
        action = parse(ours)
        assert isinstance(action, WebAction)
        assert to_browsergym(action, BIDS) == theirs
        assert from_browsergym(theirs, NUMBERS) == action

    @pytest.mark.parametrize(
        ("theirs", "ours"),
        [
            ("  click(bid='12')\n", "click [1]"),
            ("fill('12', 'two\\nlines  of words', True)", "fill [1] two lines of words"),
            ("fill('12', value='red')", "fill [1] red"),
            ("select_option('12', ['red'])", "select [1] red"),
            ("scroll(0.0, 12.5)", "scroll down"),
            ("noop(500)", "wait"),
            ("send_msg_to_user('N/A')", "answer N/A"),
        ],
    )
    def test_what_has_several_forms_has_one_meaning(self, theirs, ours):
        assert str(from_browsergym(theirs, NUMBERS)) == ours

    def test_the_answer_that_nothing_can_be_done_is_a_report(self):
        assert to_browsergym(WebAction("answer", text="N/A"), {}) == "report_infeasible('N/A')"

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            ("", "no action"),
            ("click('99')", "no element with the bid '99'"),
            ("click(12)", "no element with the bid '12'"),
            ("click(['12'])", "no element with the bid"),
            ("click()", "takes (bid)"),
            ("click('12', 'right')", "takes (bid)"),
            ("click(bid='12', **{})", "takes (bid)"),
            ("click('12')\nclick('12')", "one action at a time"),
            ("fill('12', 'x')\npress('a7', 'Enter')", "one action at a time"),
            ("press('12', 'Escape')", "no counterpart"),
            ("dblclick('12')", "'dblclick' has no counterpart"),
            ("select_option('12', ['red', 'blue'])", "no counterpart"),
            ("scroll(0, 0)", "no counterpart"),
            ("scroll(5, 10)", "no counterpart"),
            ("tab_focus(-1)", "no counterpart"),
            (f"tab_focus({'9' * 4300})", "no counterpart"),
            ("fill('12', '  ')", "cannot be said"),
            ("send_msg_to_user('x Action: back')", "cannot be said"),
            ("__import__('os').system('true')", "a call is needed"),
            ("eval('1')", "'eval' has no counterpart"),
            ("click(__import__('os').name)", "literal arguments"),
            ("send_msg_to_user(f'{1 + 1}')", "literal arguments"),
            ("send_msg_to_user('a' * 9)", "literal arguments"),
            ("x = click('12')", "a call is needed"),
            ("click('12'", "literal arguments"),
            ("click('\0')", "literal arguments"),
            ("click('\ud800')", "literal arguments"),
            ("(" * 9000, "literal arguments"),
            ("-" * 19000 + "1", ""),
            ("x" * 20_001, "at most 20000"),
        ],
    )
    def test_what_means_nothing_is_explained(self, code, reason):
        told = from_browsergym(code, NUMBERS)
        assert isinstance(told, str) and reason in told and len(told) < 400

    def test_nothing_is_evaluated(self, tmp_path):
        proof = tmp_path / "proof"
        for code in (
            f"open({str(proof)!r}, 'w')",
            f"click(open({str(proof)!r}, 'w'))",
            f"noop(*[open({str(proof)!r}, 'w')])",
        ):
            assert isinstance(from_browsergym(code, NUMBERS), str)
        assert not proof.exists()

    def test_an_element_that_is_not_there_and_an_action_without_a_counterpart_raise(self):
        with pytest.raises(KeyError):
            to_browsergym(WebAction("click", 9), BIDS)
        with pytest.raises(ValueError, match="'home'"):
            to_browsergym(WebAction("home"), BIDS)

    @given(st.text() | st.from_regex(r"(click|fill|scroll|tab_focus|send_msg_to_user)\([^\n]{0,40}\)"))
    def test_no_text_raises(self, text):
        told = from_browsergym(text, NUMBERS)
        assert told and (isinstance(told, str) or parse(str(told)) == told)

    @given(st.sampled_from(("fill", "type", "select", "answer", "infeasible")), st.text(min_size=1))
    def test_words_of_all_kinds_come_back_as_they_were(self, verb, words):
        action = parse(f"{verb} [2] {words}" if verb in ("fill", "type", "select") else f"{verb} {words}")
        if isinstance(action, WebAction) and action.verb == verb and action.text.lower() != "n/a":
            try:
                to_browsergym(action, BIDS).encode()
            except UnicodeEncodeError:
                return  # half a character: no browser could type it
            assert from_browsergym(to_browsergym(action, BIDS), NUMBERS) == action


def test_a_source_without_tasks_is_refused() -> None:
    with pytest.raises(ConfigError, match="ids"):
        build(TaskSource, {"type": "browser_gym", "ids": []})
