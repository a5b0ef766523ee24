"""The base model: made the same way twice, from training material only; the shipped one is impatient, not incapable."""

from itertools import islice

import pytest
from longstride.recipes.tti import RECIPE

from longstride.core.trajectory import Trajectory
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.learner.batching import chains
from longstride.learner.config import LearnerConfig
from longstride.models.chat import ChatFormat
from longstride.models.load import BASE, load_policy
from longstride.models.tiny import TinyConfig, build_tokenizer
from longstride.rollout.context import KeepAll
from longstride.run.evaluation import Result, evaluate_policy
from longstride.starts.demonstrators import Sites
from longstride.starts.warmstart import WarmStart, make_base, turns_of

SMALL = WarmStart(
    model=TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16),
    tokens=3000,
    recitals=2,
    step_tokens=1500,
    learner=LearnerConfig(lr=1e-3, dtype="float32"),
)


def test_demonstrations_are_a_function_of_their_number_and_use_training_material_only() -> None:
    some = list(islice(Sites().demos(0), 40))
    again = next(Sites().demos(0, first=17))
    assert (again.task, again.pages, again.texts) == (some[17].task, some[17].pages, some[17].texts)
    assert {d.task.split for d in some} == {"train"}
    assert any(d.task.source == "web/sheet" for d in islice(Sites().demos(0), 100))


def test_turns_of_a_demonstration_are_one_row_and_each_page_is_found_again() -> None:
    demo = next(d for d in Sites().demos(0) if len(d.pages) > 3)
    tokenizer = build_tokenizer([demo.task.goal, *demo.pages, *demo.texts])
    chat = ChatFormat(tokenizer)
    turns = turns_of(demo, chat, tokenizer, KeepAll())
    assert len(chains(turns)) == 1
    for turn, page, text in zip(turns, demo.pages, demo.texts, strict=True):
        assert chat.decode(turn.prompt_ids[turn.prompt_from :]) == " ".join(page.split())
        assert chat.decode(turn.sampled_ids) == text
        assert sum(turn.weights) in (pytest.approx(1), pytest.approx(SMALL.demonstrators.example))


def test_the_same_settings_make_the_same_model(tmp_path) -> None:
    seen: list[dict[str, float]] = []
    one = make_base(tmp_path / "one", SMALL, seen.append)
    two = make_base(tmp_path / "two", SMALL)
    for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert a.equal(b)
    assert seen[-1]["share"] == 1
    assert load_policy(str(tmp_path / "one")).chat.close == one.chat.close


@pytest.fixture(scope="module")
def played() -> Result:
    return evaluate_policy(load_policy("base"), RECIPE, EmbeddedWeb().held_out(300))


def test_the_shipped_base_is_small_and_gives_up_too_early(played: Result) -> None:
    assert sum(p.stat().st_size for p in BASE.iterdir()) < 5e6
    assert 0.2 <= played.summary["success"] <= 0.45
    assert played.summary["length"] < 0.75 * sum(t.task.optimal or 0 for t in played.trajectories) / 300
    assert played.summary["invalid"] < 0.02
    by_difficulty = played.summary["by_difficulty"]
    assert by_difficulty["easy"]["success"] > by_difficulty["hard"]["success"]


def test_the_shipped_base_recognises_a_page_that_answers_the_goal(played: Result) -> None:
    answers = {True: [], False: []}
    for page, verb in searches(played.trajectories):
        answers[page].append(verb == "answer")
    fits, others = (sum(answers[k]) / len(answers[k]) for k in (True, False))
    assert len(answers[True]) > 20 and fits > 0.9
    assert others < 0.75


def searches(trajectories: list[Trajectory]) -> list[tuple[bool, str]]:
    """(whether the page has the value that is looked for, what was done there) for every item page of a search."""
    found = []
    for t in trajectories:
        meta = t.task.meta
        if meta["family"] == "search" and not meta["action"]:
            pages = [u for u in t.turns if f"\n{meta['attribute']} " in u.observation]
            found += [(f"{meta['attribute']} {meta['value']}" in u.observation, u.verb) for u in pages]
    return found
