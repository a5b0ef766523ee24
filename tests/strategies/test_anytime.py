"""Anytime: what is asked for at every place of a thought, what it measures, and what of it an evaluation keeps."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from helpers import cut_thought, make_task, make_trajectory, played, word_chat

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Sampling
from longstride.envs.puzzles import Puzzles
from longstride.models.load import load_policy
from longstride.papers.mrt import recipe as mrt
from longstride.rollout import FullHistory, LanguagePlayer, Plan, ScriptedPlayer
from longstride.rollout.branching import cuts
from longstride.run.evaluation import Result, evaluate_policy
from longstride.strategies import Direct, EvalEpisode, EvalPlan, Strategy
from longstride.strategies.anytime import Anytime, regret

THOUGHT = "Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3"
PLACES = ["", "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3"]
CHAT = word_chat(THOUGHT)
PLAYER = LanguagePlayer(cast(Any, None), CHAT, FullHistory(), Sampling())
FAILED = StopReason.INFRA_FAILURE


def plan(ordinal: int = 0, **budget: Any) -> Plan:
    return Plan(make_task(), ordinal, 10 + ordinal, Budget(turns=1, **budget), group=ordinal)


def asked(
    strategy: Strategy, plans: list[Plan], thought: str = THOUGHT, **fields: Any
) -> tuple[EvalPlan, list[Trajectory], Sequence[Plan]]:
    """The evaluation after its first stage, the episodes of that, and the plans of the second."""
    stages = strategy.run(plans, PLAYER)
    assert next(stages) == plans
    episodes = [played(p, CHAT.encode(thought), **fields) for p in plans]
    return stages, episodes, stages.send(episodes)


def ended(stages: EvalPlan, answers: list[Trajectory]) -> list[EvalEpisode]:
    with pytest.raises(StopIteration) as end:
        stages.send(answers)
    return end.value.value


def test_a_thought_is_cut_before_its_marks():
    chat = word_chat("Thought: 3 + 4 = 7 ; 7 * 2 = 3 ; no Action: answer 3")
    ids = chat.encode("Thought: 3 + 4 = 7 ; 7 * 2 = 3 ; no Action: answer 3")
    assert [chat.decode(ids[:k]) for k in cuts(chat, ids, (";", "Action:"))] == [
        "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3", "Thought: 3 + 4 = 7 ; 7 * 2 = 3 ; no",
    ]  # fmt: skip


class Pieces:
    """A codec whose token n is the n-th piece of a text, as tokenizers of large models cut it. `begun` is what a
    template has said before."""

    def __init__(self, *pieces: str, begun: str) -> None:
        self.pieces, self.begun = pieces, begun

    def encode(self, text: str) -> list[int]:
        raise AssertionError("a thought is ids already")

    def decode(self, ids: Sequence[int]) -> str:
        return self.begun + self.verbatim(ids).strip()

    def verbatim(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[i] for i in ids)


@pytest.mark.parametrize("begun", ["", "<think>"])
def test_a_mark_may_be_several_tokens_or_a_part_of_one(begun: str):
    said = "So", ".\n\n", " Act", "ing", ";", "\n", "Action", ":", " answer", "\n", "\n", " Action", ":", " Action"
    chat, ids = Pieces(*said, begun=begun), range(len(said))
    assert cuts(chat, ids, (";", "Action:")) == [4, 6, 11]
    assert cuts(chat, ids, ("\n\n",)) == [1, 9]


def test_words_of_a_model_of_ones_own_divide_a_thought_and_ask_for_an_answer():
    own = Anytime(marks=("*",), closing="answer")
    _, _, answers = asked(own, [plan()])
    assert [CHAT.decode(p.prefix) for p in answers] == ["answer", "Thought: 3 + 4 = 7 ; 7 answer"]
    names = {s.name for s in (own, Anytime(), Anytime(marks=("*",)), Anytime(closing="answer"))}
    assert len(names) == 4 and Anytime().name == "anytime_1"


def test_at_every_place_of_a_thought_an_answer_is_asked_for():
    _, _, answers = asked(Anytime(answers=2), [plan(tokens=9, turn_tokens=20)])
    begun = [CHAT.decode(p.prefix) for p in answers]
    assert begun == [f"{place} Action: answer".strip() for place in PLACES for _ in range(2)]
    assert {(p.task.id, p.seed, p.group, p.role) for p in answers} == {("t", 10, 0, "forced")}
    # an answer may take 16 tokens, wherever it begins
    assert [p.budget for p in answers] == [Budget(turns=1, turn_tokens=len(p.prefix) + 16) for p in answers]


def test_answers_are_asked_for_in_a_thought_that_its_budget_cut_too():
    stages, ids = Anytime().run([plan()], PLAYER), CHAT.encode(THOUGHT)
    (first,) = next(stages)
    answers = stages.send([cut_thought(first, ids, 10)])
    assert [CHAT.decode(p.prefix) for p in answers] == [f"{place} Action: answer".strip() for place in PLACES]


@pytest.mark.parametrize("thought", ["Action: answer 3", ""])
def test_a_thought_that_begins_with_a_mark_or_is_empty_has_one_place(thought):
    _, _, answers = asked(Anytime(), [plan()], thought)
    assert [CHAT.decode(p.prefix) for p in answers] == ["Action: answer"]


def test_the_seed_of_an_answer_depends_on_its_episode_and_its_number_alone():
    alone = asked(Anytime(), [plan(1)], "Action: answer 3")[2]
    many = asked(Anytime(answers=2), [plan(n) for n in range(3)])[2]
    assert (alone[0].ordinal, alone[0].seed) == (many[6].ordinal, many[6].seed)
    assert len({0, 1, 2, *(p.ordinal for p in many)}) == 3 + 3 * 6


def test_anytime_is_the_mean_height_of_the_success_of_answers():
    """Places at 2, 8 and 14 tokens, right in 0, 1/2 and 1 of two answers; the budget is 20."""
    strategy = Anytime(answers=2, within=(8, 14))
    stages, episodes, answers = asked(strategy, [plan(tokens=20, turn_tokens=30)])
    assert [len(p.prefix) for p in answers[::2]] == [2, 8, 14]
    rewards = (0, 0, 0, 1, 1, 1)
    (found,) = ended(stages, [played(p, reward=r) for p, r in zip(answers, rewards, strict=True)])
    assert found.trajectory is episodes[0]
    rise, second = 6 * 0.25, 6 * 0.75
    assert found.measures == pytest.approx(
        {"anytime": (rise + second + 6) / 20, "anytime@8": rise / 8, "anytime@14": (rise + second) / 14}
    )


def test_without_a_limit_on_all_tokens_the_budget_is_that_of_a_turn():
    stages, _, answers = asked(Anytime(), [plan(turn_tokens=10)], "")
    (found,) = ended(stages, [played(p, reward=1.0) for p in answers])
    assert found.measures == {"anytime": pytest.approx((1 + 8) / 10)}  # up to 1 at the second token


def test_a_failed_answer_leaves_its_episode_unmeasured_and_the_next_one_as_it_is():
    stages, _, answers = asked(Anytime(), [plan(0), plan(1)], "")
    first, second = ended(stages, [played(answers[0], stop=FAILED), played(answers[1])])
    assert first.measures == {"anytime": None} and second.measures == {"anytime": 0.0}


def test_an_answer_that_the_end_of_the_context_cut_is_wrong_at_its_own_place():
    stages, _, answers = asked(Anytime(), [plan(tokens=20, turn_tokens=30)])
    right, cut = [played(p, reward=1.0) for p in answers[:2]], make_trajectory([], stop=StopReason.CONTEXT)
    (found,) = ended(stages, [*right, cut])
    assert found.measures == {"anytime": pytest.approx((1 + 6 + 3) / 20)}  # up at 2, level to 8, down to 0 at 14


def test_nothing_is_asked_of_a_failed_episode():
    stages, episodes, answers = asked(Anytime(), [plan()], stop=FAILED)
    assert answers == [] and ended(stages, []) == [EvalEpisode(episodes[0], {"anytime": None})]


def test_it_is_refused_where_it_cannot_measure():
    with pytest.raises(ConfigError, match="ScriptedPlayer gives text alone"):
        next(Anytime().run([plan()], ScriptedPlayer(lambda e: "")))
    with pytest.raises(ConfigError, match="episodes may take 24; take tasks of a single turn"):
        next(Anytime().run([Plan(make_task(), 0, 0, Budget(turns=24))], PLAYER))
    assert next(Anytime().run([Plan(make_task(horizon=1), 0, 0, Budget(turns=24))], PLAYER))
    with pytest.raises(ConfigError, match="within has budgets up to 40 tokens, and an episode may take 30"):
        next(Anytime(within=(40,)).run([plan(turn_tokens=30)], PLAYER))


def test_it_is_built_from_data_and_named_by_its_answers():
    strategy = build(Strategy, {"type": "anytime", "answers": 4, "within": [40]})
    assert strategy == Anytime(answers=4, within=(40,)) and strategy.name == "anytime_4"
    assert build(Strategy, strategy.as_data()) == strategy


def test_a_measure_of_a_strategy_is_the_mean_of_the_samples_that_have_it():
    """Three tasks, two samples: both measured, one measured, one failed and one not measured."""
    values = [(1.0, 0.5, None), (0.0, None, 0.25)]
    episodes = [
        EvalEpisode(make_trajectory(reward=1.0, stop=FAILED if (n, k) == (1, 2) else StopReason.ANSWERED), {"x": v})
        for n, row in enumerate(values)
        for k, v in enumerate(row)
    ]
    measures = Result({}, (0, 1), episodes, 3).measures
    assert measures["x"] == [0.5, 0.5, None]
    assert measures["success"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("tokens", "solved", "budget", "area"),
    [
        ([10], [1.0], 10, 0.5),  # straight up from nothing
        ([10], [1.0], 20, 0.75),  # and stays there
        ([10, 20], [0.5, 1.0], 15, (10 * 0.25 + 5 * 0.625) / 15),  # cut between two points
        ([10, 20], [1.0, 0.0], 40, (5 + 5) / 40),  # an answer that is lost again
        ([], [], 8, 0.0),
    ],
)
def test_regret_by_hand(tokens, solved, budget, area):
    assert regret(tokens, solved, budget) == pytest.approx(1 - area)


@pytest.mark.parametrize(("tokens", "solved", "budget"), [([5, 5], [0, 1], 9), ([5], [0, 1], 9), ([5], [1], 0)])
def test_regret_refuses_what_is_no_curve(tokens, solved, budget):
    with pytest.raises(ValueError, match="regret needs ascending tokens"):
        regret(tokens, solved, budget)


# Evaluations


def test_an_evaluation_under_anytime_is_that_of_direct_with_measures_more():
    policy, tasks = load_policy("base-puzzles"), Puzzles().held_out(4)
    one, two = (mrt.RECIPE.replace(evaluation={"attempts": n}) for n in (1, 2))
    direct, anytime = (evaluate_policy(policy, two, tasks, s) for s in (Direct(), Anytime(within=(20,))))
    assert anytime.summary == direct.summary and anytime.outcomes == direct.outcomes
    assert [[u.sampled_ids for u in t.turns] for t in anytime.trajectories] == [
        [u.sampled_ids for u in t.turns] for t in direct.trajectories
    ]
    more = {name: of for name, of in anytime.measures.items() if name not in direct.measures}
    assert set(more) == {"anytime", "anytime@20"}
    assert all(len(of) == 4 and all(v is not None and 0 <= v <= 1 for v in of) for of in more.values())
    first = evaluate_policy(policy, one, tasks, Anytime(within=(20,)))
    assert [e.measures for e in first.episodes] == [e.measures for e in anytime.episodes[:4]]
