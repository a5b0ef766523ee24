"""Steps of episodes that are imitated: what a step is, what filters drop, and a run that clones what it searches."""

import random
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of, word_chat
from one_page import WORDS, make_recipe, save_model

from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.models.load import load_policy
from longstride.rollout import FullHistory
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run import teachers
from longstride.run.filters import Effective, FoundStep, Improved, Novel, PerplexityBand, filtered, steps_in
from longstride.run.imitation import ModelSuccesses, turn_samples
from longstride.run.policies import load
from longstride.run.recipe import Companion
from longstride.strategies.searched import STEPS, PathLikelihood


def searched() -> Trajectory:
    """A turn of five ids that a search found in two steps, and one that was a single step."""
    turns = [make_turn([4, 5], [0, 1, 2, 3], given=3), make_turn([6], [0, 9])]
    return make_trajectory(turns, 1.0, evidence={STEPS: [(3, 3 * log(0.5)), (2, 2 * log(0.9)), (1, log(0.1))]})


def test_a_step_of_a_search_is_read_after_those_before_it_and_knows_how_likely_it_was() -> None:
    first, second, third = steps_in(searched())
    assert (first.prompt_ids, first.ids) == ([0], [1, 2, 3]) and (second.prompt_ids, second.ids) == (
        [0, 1, 2, 3],
        [4, 5],
    )
    assert (third.prompt_ids, third.ids) == ([0, 9], [6])
    assert [exp(s.logprob / len(s.ids)) for s in (first, second, third) if s.logprob] == pytest.approx([0.5, 0.9, 0.1])


def test_a_turn_that_no_search_found_is_a_step() -> None:
    sampled, begun = make_turn([1, 2], [0], behaviour_logprobs=[-1.0, -2.0]), make_turn([3], [0, 1], given=1)
    steps = steps_in(make_trajectory([sampled, begun]))
    assert [(s.prompt_ids, s.ids, s.logprob) for s in steps] == [([0], [1, 2], -3.0), ([0], [1, 3], None)]


def test_what_a_companion_said_is_read_and_not_imitated(tmp_path: Path) -> None:
    recipe = make_recipe(
        tmp_path, companions={"guide": Companion(model="its own", context=FullHistory())}, context=FullHistory()
    )
    chat = word_chat(WORDS)
    said, own = chat.encode("blue"), chat.encode("red")
    guide = make_turn([], [0, *said], given=1, text="blue", speaker="guide", observation="home")
    t = make_trajectory([guide, make_turn(own, [0], text="red", observation="home")], 1.0)
    (sample,) = turn_samples(t, recipe, chat)
    assert sample.sampled_ids == own + chat.close and said[0] in sample.prompt_ids
    assert [step.ids for step in steps_in(t, companions=recipe.companions)] == [own]


class Format:
    """A chat format that presents each tool as an id."""

    close: ClassVar = [9]

    def __init__(self, tools: int = 0) -> None:
        self.head = [5] * tools

    def offering(self, tools: Sequence[Any]) -> "Format":
        return Format(len(tools))

    def encode(self, text: str) -> list[int]:
        return [1]


@pytest.mark.parametrize(("actions", "head"), [("tool_calls", [5, 5]), ("text", [])])
def test_a_demonstration_is_read_with_the_tools_that_the_policy_will_read(actions: str, head: list[int]) -> None:
    context = SimpleNamespace(render=lambda chat, past: [*chat.head, 7])
    recipe: Any = SimpleNamespace(actions=actions, companions={}, context=context)
    chat: Any = Format()
    t = make_trajectory([make_turn([])], 1.0, tools=({"name": "a"}, {"name": "b"}))
    (sample,) = turn_samples(t, recipe, chat)
    assert sample.prompt_ids == [*head, 7]


def test_a_band_leaves_out_both_tails_of_perplexity() -> None:
    steps = steps_in(searched())  # perplexities of 2, 1.1 and 10
    assert PerplexityBand(low=1.5, high=9)(steps) == steps[:1]
    assert PerplexityBand(low=1.5)(steps) == [steps[0], steps[2]] and PerplexityBand()(steps) == steps
    with pytest.raises(ConfigError, match="how likely the policy found"):
        PerplexityBand(low=1.5)([FoundStep(searched(), [0], [1], None)])


def test_equal_steps_are_imitated_once_and_what_is_no_improvement_is_not() -> None:
    t = searched()
    a, again, b = FoundStep(t, [0], [1], 0.0), FoundStep(t, [0], [1], -1.0), FoundStep(t, [0], [2], 0.0)
    assert Novel()([a, again, b]) == Novel()([a, b, again]) == [a, b]
    usual = [FoundStep(t, [0], [1], 0.0, usual) for usual in (0.0, 0.5, 1.0, None)]
    assert Improved()(usual) == [usual[0], usual[1], usual[3]] and Improved(by=0.6)(usual) == [usual[0], usual[3]]
    (sample,) = filtered([a, again, usual[2]], (Novel(), Improved()))
    assert (sample.prompt_ids, sample.sampled_ids) == ([0], [1])


def test_what_had_no_effect_is_left_out() -> None:
    moved, still = make_turn([1], [0]), make_turn([2], [0, 1], error="nothing moved")
    steps = steps_in(make_trajectory([moved, still, moved], 1.0))
    assert [s.ids for s in steps] == [[1], [2], [1]] and Effective()(steps) == [steps[0], steps[2]]


def test_a_path_is_as_likely_as_its_steps_over_a_power_of_their_number() -> None:
    t = make_trajectory([make_turn([1])], evidence={STEPS: [(2, -1.0), (2, -2.0), (1, 0.0), (1, -1.0)]})
    values = [PathLikelihood(alpha=a)([t], None)[0].value for a in (0.0, 0.5, 1.0)]  # pyright: ignore
    assert values == pytest.approx([exp(-4), exp(-2), exp(-1)])


def test_a_teacher_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, loaded = save_model(tmp_path / "teacher"), list[str]()
    chat = load_policy(str(model)).chat
    monkeypatch.setattr(teachers, "load", lambda name, *rest: loaded.append(name) or load(name, *rest))
    teacher = ModelSuccesses(model=str(model))
    recipe = make_recipe(model, device="cpu")
    for _ in range(2):
        teacher.samples(recipe, chat, 1, random.Random(0))
    assert loaded == [str(model)]
    teachers.forget()
    teacher.samples(recipe, chat, 1, random.Random(0))
    assert len(loaded) == 2


SEARCH = "search={type='best_first', expansions=4, width=2}, guide={type='path_likelihood'}"
STRATEGY = f"{{type='searched', mark='red', {SEARCH}}}"
FILTERS = "[{type='novel'}, {type='improved'}]"
BAND = "[{type='perplexity_band', low=1.1}]"


@pytest.mark.parametrize("model", ["gpt2", "llama"])  # in rows, and over trees with an attention of the learner's own
def test_a_run_clones_what_it_finds_by_a_search(model: str, tmp_path: Path) -> None:
    llama = [f"model={save_model(tmp_path / 'llama')}"] if model == "llama" else []
    run = train_elsewhere(
        "bfs_prover",
        tmp_path,
        *llama,
        f"imitation.demonstrations={{type='strategy_successes', strategy={STRATEGY}, filters={FILTERS}}}",
        "imitation.episodes=24",
        f"evaluation.strategies=[{{type='direct'}}, {STRATEGY}]",
    )
    assert [row["imitation_loss"] > 0 for row in rows_of(run, "train")] == [True, True]


def test_a_phase_of_cloning_takes_stored_successes_through_filters(tmp_path: Path) -> None:
    stored = train_elsewhere("grpo", tmp_path / "stored")
    solved = sum(record.success for record in TrajectoryStore(stored / TRAJECTORIES).records)
    run = train_elsewhere(
        "grpo",
        tmp_path / "cloned",
        f"cloning.demonstrations={{type='stored_successes', run='{stored}', filters={BAND}}}",
        f"cloning.episodes={solved}",
    )
    assert 0 < rows_of(run, "cloning")[-1]["examples"] <= solved
    none = f"cloning.demonstrations={{type='stored_successes', run='{stored}', filters={BAND.replace('1.1', '1e9')}}}"
    with pytest.raises(ConfigError, match="nothing is left to imitate"):
        train_elsewhere("grpo", tmp_path / "none", none)
