"""Evaluators and the reward that uses them."""

import json
from typing import Any

import pytest
from helpers import make_task, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, TaskError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.rewards import Reward, TaskReward, Verdict, judge
from longstride.rewards.evaluators import normalise


def task(evaluator: Any) -> Task:
    return Task(id="t7", source="web/shop", goal="g", start="s", evaluator=evaluator)


def state_note(expected: dict[str, Any], state: dict[str, Any]) -> str | None:
    verdict = judge(task({"type": "state", "expected": expected}), None, state)
    assert verdict.reward == float(verdict.evidence["matched"])
    return verdict.evidence.get("note")


RED = task({"type": "answer", "reference": "Red"})


@pytest.mark.parametrize("said", ["red", "RED", " red. ", '"red"', "'Red.'", "\tred\n", '"red".'])
def test_an_answer_counts_in_its_normal_form(said: str):
    assert judge(RED, said, {}).reward == 1.0


@pytest.mark.parametrize("said", ["", "dark red", "re d", "green", '"', "."])
def test_another_answer_does_not(said: str):
    assert judge(RED, said, {}).reward == 0.0


def test_white_space_inside_is_collapsed_and_inner_marks_stay():
    assert normalise("The  Dogs' \n 3.5 kg") == "the dogs' 3.5 kg"
    assert normalise("Cafe\u0301") == normalise("caf\u00e9")


def test_evidence_says_what_was_expected_and_got():
    assert judge(RED, "green", {}).evidence == {
        "evaluator": "answer", "expected": "Red", "got": "green", "matched": False,
    }  # fmt: skip


def test_no_answer_earns_nothing_and_says_so():
    verdict = judge(RED, None, {})
    assert verdict.reward == 0.0
    assert verdict.evidence["note"] == "no answer"


def test_any_of_several_answers_counts():
    either = task({"type": "answer", "any_of": ["red", "crimson"]})
    assert [judge(either, said, {}).reward for said in ("crimson", "red", "blue")] == [1.0, 1.0, 0.0]


def test_expected_state_is_a_subset_at_every_depth():
    state = {"cart": {"items": [{"name": "Lamp", "n": 2, "price": 3.0}], "open": True}, "user": "ann"}
    assert state_note({"cart": {"items": [{"name": "lamp", "n": 2.0}], "open": True}}, state) is None


@pytest.mark.parametrize(
    ("expected", "state", "note"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "state.a.b: expected 1, got 2"),
        ({"a": {"b": 1}}, {"a": {}}, "state.a.b: missing"),
        ({"a": [{"n": 1}]}, {"a": [{"n": 3}]}, "state.a[0].n: expected 1, got 3"),
        ({"a": [1, 1]}, {"a": [1, 2]}, "state.a: no item of its own for 1"),
        ({"a": [1]}, {"a": [1, 2]}, "state.a: expected 1 items, got 2"),
        ({"a": True}, {"a": 1}, "state.a: expected True, got 1"),
        ({"a": "1"}, {"a": 1}, "state.a: expected '1', got 1"),
        ({"a": None}, {"a": 0}, "state.a: expected None, got 0"),
        ({"a": []}, {"a": ["x"]}, "state.a: expected 0 items, got 1"),
    ],
)
def test_the_first_difference_of_a_state_is_named(expected: dict[str, Any], state: dict[str, Any], note: str):
    assert state_note(expected, state) == note


def test_lists_match_in_any_order_and_by_assignment_not_greedily():
    # {"n": 1} fits both items; a greedy match would give it the one that the second needs.
    expected = {"a": [{"n": 1}, {"n": 1, "color": "red"}]}
    assert state_note(expected, {"a": [{"n": 1, "color": "red"}, {"n": 1, "color": "blue"}]}) is None
    assert state_note({"a": [3, 1, 2]}, {"a": [1, 2, 3]}) is None


def test_all_is_the_product_of_its_parts():
    both = task({"type": "all", "of": [RED.evaluator, {"type": "state", "expected": {"n": 1}}]})
    assert judge(both, "red", {"n": 1}).reward == 1.0
    verdict = judge(both, "red", {"n": 2})
    assert verdict.reward == 0.0
    assert [part["matched"] for part in verdict.evidence["parts"]] == [True, False]


def test_evidence_is_json():
    both = task({"type": "all", "of": [RED.evaluator, {"type": "state", "expected": {"n": [1]}}]})
    evidence = TaskReward(false_positive=0.5)(ended(both), {"n": [2], "more": "x"}, 0).evidence
    assert json.loads(json.dumps(evidence)) == evidence


@pytest.mark.parametrize(
    "evaluator",
    [
        {},
        {"type": 3},
        {"type": "answer"},
        {"type": "answer", "reference": 5},
        {"type": "answer", "reference": " . "},
        {"type": "answer", "any_of": []},
        {"type": "answer", "any_of": "red"},
        {"type": "answer", "reference": "a", "any_of": ["b"]},
        {"type": "state", "expected": {}},
        {"type": "state", "expected": [1]},
        {"type": "state", "expected": {"a": 1}, "extra": 1},
        {"type": "all", "of": []},
        {"type": "all", "of": ["red"]},
    ],
)
def test_a_malformed_evaluator_names_the_task_and_is_never_a_zero(evaluator: dict[str, Any]):
    with pytest.raises(TaskError, match="'t7'"):
        judge(task(evaluator), "red", {})


def test_an_unknown_evaluator_names_the_nearest():
    with pytest.raises(TaskError, match=r"'t7'.*'anwser'; did you mean 'answer'"):
        judge(task({"type": "anwser", "reference": "red"}), "red", {})


def test_an_evaluator_without_bottom_is_one_message():
    deep: dict[str, Any] = RED.evaluator
    for _ in range(3000):
        deep = {"type": "all", "of": [deep]}
    with pytest.raises(TaskError, match="nested too deeply"):
        judge(RED.model_copy(update={"evaluator": deep}), "red", {})


def test_without_noise_the_reward_is_the_verdict():
    assert TaskReward()(ended(RED, "red"), {}, 0) == judge(RED, "red", {})


@pytest.mark.parametrize(("said", "truth"), [("red", 1.0), ("blue", 0.0)])
def test_label_noise_flips_at_its_rate_and_evidence_keeps_the_truth(said: str, truth: float):
    reward = TaskReward(false_positive=0.1, false_negative=0.3)
    verdicts = [reward(ended(RED, said), {}, seed) for seed in range(3000)]
    assert {v.evidence["true_reward"] for v in verdicts} == {truth}
    assert {v.evidence["matched"] for v in verdicts} == {bool(truth)}
    flipped = sum(v.reward != truth for v in verdicts) / len(verdicts)
    assert flipped == pytest.approx(0.3 if truth else 0.1, abs=0.03)


def visited(*urls: str, answer: str = "red") -> Trajectory:
    turns = [make_turn(url=url) for url in urls]
    pages = ("/shop/1/i/2", "/shop/1/i/3")
    return make_trajectory(turns, task=RED.model_copy(update={"pages": pages}), answer=answer, stop=StopReason.ANSWERED)


def test_with_evidence_a_right_answer_earns_nothing_where_a_page_that_it_rests_on_was_not_seen():
    seen = visited("http://x/shop/1/i/3?a=1", "http://x/shop/1/i/2#top")
    guessed = visited("http://x/shop/1/", "http://x/shop/1/i/2")
    verdict = TaskReward(evidence=True)(guessed, {}, 0)
    assert (verdict.reward, verdict.success, verdict.terms) == (0.0, False, {"right": 1.0, "supported": 0.0})
    assert verdict.evidence["unseen"] == ["/shop/1/i/3"]
    assert TaskReward()(guessed, {}, 0).success
    verdict = TaskReward(evidence=True)(seen, {}, 0)
    assert (verdict.reward, verdict.success, verdict.terms) == (1.0, True, {"right": 1.0, "supported": 1.0})
    wrong = visited("http://x/shop/1/i/3", "http://x/shop/1/i/2", answer="blue")
    assert TaskReward(evidence=True)(wrong, {}, 0).terms == {"right": 0.0, "supported": 1.0}


def test_a_task_that_is_judged_by_a_state_is_refused_where_there_is_none():
    with pytest.raises(TaskError, match=r"'t7' is judged by the final state of its environment, and there is none"):
        judge(task({"type": "state", "expected": {"n": 2}}), "red", {})


def test_evidence_of_an_environment_that_does_not_say_what_is_seen_is_refused():
    with pytest.raises(ConfigError, match=r"reward.evidence: expected an environment that says which page is seen"):
        TaskReward(evidence=True)(visited("", ""), {}, 0)


def test_a_success_is_supported_where_all_pages_were_seen_or_none_are_named():
    guessed, seen = visited("http://x/shop/1/"), visited("http://x/shop/1/i/3", "http://x/shop/1/i/2")
    guessed.success = seen.success = True
    assert (guessed.supported, seen.supported, make_trajectory(reward=1.0).supported) == (False, True, True)
    assert not make_trajectory().supported


def test_label_noise_is_a_function_of_the_seed():
    reward = TaskReward(false_positive=0.5)
    assert [reward(ended(RED, "blue"), {}, s) for s in range(20)] == [
        reward(ended(RED, "blue"), {}, s) for s in range(20)
    ]


def test_a_reward_is_rebuilt_from_its_data():
    reward = TaskReward(false_negative=0.25)
    assert build(Reward, reward.as_data()) == reward


def ended(task: Task, answer: str | None = None, stop: StopReason | None = None, earned: float = 0.0) -> Trajectory:
    """An episode that was answered, or that its environment ended, after a turn that earned something."""
    stop = stop or (StopReason.ENV_ENDED if answer is None else StopReason.ANSWERED)
    return make_trajectory([make_turn(reward=earned)], task=task, answer=answer, stop=stop)


def test_an_episode_that_a_limit_cut_earns_nothing_and_needs_no_state():
    cut = ended(RED, stop=StopReason.TURNS)
    assert not TaskReward().needs_state(cut)
    assert TaskReward(false_positive=1.0)(cut, {}, 0) == Verdict(0.0, False)


def test_an_answer_that_was_held_back_when_a_limit_cut_the_episode_is_judged():
    held = ended(RED, "red", stop=StopReason.TURNS)
    assert TaskReward().needs_state(held)
    assert TaskReward()(held, {}, 0).success


def test_a_task_without_an_evaluator_is_done_where_its_environment_paid_for_it():
    free = make_task(evaluator={})
    for stop in (StopReason.ENV_ENDED, StopReason.TURNS):
        assert TaskReward()(ended(free, stop=stop, earned=0.5), {}, 0) == Verdict(0.0, True)
        assert TaskReward()(ended(free, stop=stop, earned=-0.5), {}, 0) == Verdict(0.0, False)


def test_what_an_environment_paid_is_no_success_of_a_task_that_has_an_evaluator():
    assert not TaskReward()(ended(RED, stop=StopReason.TURNS, earned=0.5), {}, 0).success
