"""The base model: made the same way twice, from training material only; the shipped one is impatient, not incapable."""

from itertools import islice

import pytest
from helpers import make_task, word_chat

from longstride.core.trajectory import Trajectory
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.learner.batching import StreamTable, chains, rows_of
from longstride.learner.config import LearnerConfig
from longstride.models.load import BASE, load_policy
from longstride.models.tiny import TinyConfig
from longstride.papers.tti.recipe import RECIPE
from longstride.rollout.context import FullHistory, RecentObservations
from longstride.run.evaluation import Result, evaluate_policy
from longstride.starts import warmstart
from longstride.starts.demonstrators import Demonstration, Sites
from longstride.starts.warmstart import WarmStart, make_base, turns_of

SMALL = WarmStart(
    model=TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16),
    tokens=3000,
    recitals=2,
    step_tokens=1500,
    learner=LearnerConfig(lr=1e-3, dtype="float32"),
)


def shown() -> Demonstration:
    return next(d for d in Sites().demonstrations(0) if len(d.observations) > 3)


def test_demonstrations_are_a_function_of_their_number_and_use_training_material_only():
    some = list(islice(Sites().demonstrations(0), 40))
    assert next(Sites().demonstrations(0, first=17)) == some[17]
    assert {d.task.split for d in some} == {"train"}
    assert any(d.task.source == "web/sheet" for d in islice(Sites().demonstrations(0), 100))


def test_demonstrators_wander_as_much_as_they_are_told_to():
    def turns(shown: Sites) -> int:
        return sum(len(d.texts) for d in islice(shown.demonstrations(0), 40))

    straight = Sites(slips=0, patient=1)
    plain = 1.1 * turns(straight)
    assert turns(straight.replace(detours=0.5)) > plain < turns(straight.replace(loops=0.8))


def test_the_turns_of_a_demonstration_are_one_row_and_begin_at_their_newest_page():
    demonstration = shown()
    chat = word_chat(demonstration.task.goal, *demonstration.observations, *demonstration.texts)
    turns = turns_of(demonstration, chat, FullHistory(), page_weight=0.5)
    assert len(chains(turns)) == 1 and len(turns) == len(demonstration.observations)
    (row,) = rows_of(turns, StreamTable(turns))
    assert row.ids == turns[-1].prompt_ids + turns[-1].sampled_ids
    for sample, page, text in zip(turns, demonstration.observations, demonstration.texts, strict=True):
        response = len(chat.encode(text) + chat.close)
        assert chat.decode(sample.sampled_ids[:-response]) == " ".join(page.split())
        assert chat.decode(sample.sampled_ids[-response:]) == text
        assert sum(sample.advantages[:-response]) == pytest.approx(0.5)
        weight = sum(sample.advantages[-response:])
        assert weight in (pytest.approx(1), pytest.approx(Sites().example))


def test_without_a_page_weight_only_responses_are_trained_in_any_context():
    demonstration = shown()
    chat = word_chat(demonstration.task.goal, *demonstration.observations, *demonstration.texts, "omitted")
    turns = turns_of(demonstration, chat, RecentObservations(), page_weight=0.0)
    for sample, text in zip(turns, demonstration.texts, strict=True):
        trained = [i for i, weight in zip(sample.sampled_ids, sample.advantages, strict=True) if weight]
        assert trained == chat.encode(text) + chat.close
    prompt = chat.decode(turns[-1].prompt_ids)
    assert prompt.count("omitted") == len(turns) - 1 and len(chains(turns)) == len(turns)


def test_weights_of_words_become_weights_of_their_tokens():
    demonstration = Demonstration(make_task(goal="make 7 from 3 4"), ["", ""], ["no ; again", "yes"])
    demonstration.weights = [[1.0, 0.0, 0.5], 0.2]
    chat = word_chat(demonstration.task.goal, *demonstration.texts)
    first, second = turns_of(demonstration, chat, FullHistory(), page_weight=0.0)
    assert first.advantages[-4:] == [0.25, 0.0, 0.125, 0.25]  # the last one ends the turn
    assert second.advantages[-2:] == [0.1, 0.1]


def test_the_same_settings_make_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr(warmstart, "ROUND", 40)
    seen: list[dict[str, float]] = []
    one = make_base(tmp_path / "one", SMALL, seen.append)
    two = make_base(tmp_path / "two", SMALL)
    for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert a.equal(b)
    assert seen[-1]["share"] == 1
    assert load_policy(str(tmp_path / "one")).chat.close == one.chat.close


def test_a_model_that_is_trained_on_keeps_its_words_and_network_and_recites_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(warmstart, "ROUND", 20)
    first = make_base(tmp_path / "first", SMALL)
    seen: list[dict[str, float]] = []
    further = SMALL.replace(start=str(tmp_path / "first"), model=TinyConfig(width=32), tokens=1500)
    second = make_base(tmp_path / "second", further, seen.append)
    assert second.tokenizer.get_vocab() == first.tokenizer.get_vocab()
    assert [r["share"] for r in seen] == [1]
    sizes = [sum(p.numel() for p in made.model.parameters()) for made in (first, second)]
    assert sizes[0] == sizes[1]
    assert not all(a.equal(b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))


# The shipped one


@pytest.fixture(scope="module")
def played() -> Result:
    return evaluate_policy(load_policy("base"), RECIPE, EmbeddedWeb().held_out(300))


def test_the_shipped_base_is_small_and_gives_up_too_early(played: Result):
    assert sum(p.stat().st_size for p in BASE.iterdir()) < 5e6
    assert 0.2 <= played.summary["success"] <= 0.45
    assert played.summary["length"] < 0.75 * sum(t.task.optimal or 0 for t in played.trajectories) / 300
    assert played.summary["invalid"] < 0.02
    by_difficulty = played.summary["by_difficulty"]
    assert by_difficulty["easy"]["success"] > by_difficulty["hard"]["success"]


@pytest.mark.slow
def test_the_shipped_base_recognises_a_page_that_answers_the_goal(played: Result):
    answers = {True: [], False: []}
    for fits, verb in searches(played.trajectories):
        answers[fits].append(verb == "answer")
    fits, others = (sum(answers[k]) / len(answers[k]) for k in (True, False))
    assert len(answers[True]) > 20 and fits > 0.9
    assert others < 0.75


@pytest.mark.slow
def test_the_shipped_start_that_wanders_does_so_and_finds_a_fact_reliably():
    source = EmbeddedWeb(new_templates=False)
    wanders, impatient = (
        evaluate_policy(load_policy(name), RECIPE, source.held_out(90)).summary for name in ("base-wander", "base")
    )
    assert wanders["idle"] > 0.03 and wanders["length"] > 1.3 * impatient["length"]
    assert wanders["supported"] < wanders["success"] < 0.6
    facts = source.replace(errands=("find",)).held_out(60)
    assert evaluate_policy(load_policy("base-wander"), RECIPE, facts).summary["supported"] >= 0.9


def searches(trajectories: list[Trajectory]) -> list[tuple[bool, str]]:
    """(whether the page has the value that is looked for, what was done there) for every item page of a search."""
    found = []
    for t in trajectories:
        meta = t.task.meta
        if meta["errand"] == "search" and not meta["action"]:
            pages = [u for u in t.turns if f"\n{meta['attribute']} " in u.observation]
            found += [(f"{meta['attribute']} {meta['value']}" in u.observation, u.verb) for u in pages]
    return found
