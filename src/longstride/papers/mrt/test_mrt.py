"""MRT: where thoughts are cut, what progress is worth, its expected gradient, and the length penalty."""

from math import exp
from typing import Any

import numpy as np
import pytest
from estimators import all_of, episode_of, weighted_scores
from helpers import (
    cut_thought,
    make_planner,
    make_trajectory,
    make_turn,
    played,
    rows_of,
    run_stages,
    trajectories_of,
    word_chat,
)
from one_page import make_recipe, save_model

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import Credit, GroupRelative, OnPolicy
from longstride.papers.mrt.method import FORCED, GO_ON, TRACE, ForcedTermination, LengthPenalty, ProgressCredit
from longstride.papers.mrt.recipe import ARM, CLAIM
from longstride.rewards import Reward
from longstride.rollout.planning import Planner
from longstride.run.loop import compare, train

# Forced termination

THOUGHT = "Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3"
PLACES = ["", "Thought: 3 + 4 = 7", "Thought: 3 + 4 = 7 ; 7 * 2 = 3"]
CHAT = word_chat(THOUGHT)


def planner(episodes: int, turns: int = 1) -> Planner:
    return make_planner(ModularChain(), episodes=episodes, size=4, chat=CHAT, budget=Budget(turns=turns, tokens=40))


def stages(sampler: ForcedTermination, episodes: int, thought: str = THOUGHT) -> Any:
    ids = CHAT.encode(thought)
    return run_stages(sampler.plan(planner(episodes)), lambda plan: played(plan, ids))


def test_a_group_begins_where_its_trace_was_cut_and_half_of_it_must_answer():
    (traces, groups), episodes = stages(ForcedTermination(), episodes=40)
    assert [p.role for p in traces] == [TRACE] * 10 and not any(p.prefix for p in traces)
    assert len(episodes) == 50 and [p.ordinal for p in groups] == list(range(10, 50))
    starts = set()
    for trace, k in zip(traces, range(0, 40, 4), strict=True):
        group = groups[k : k + 4]
        assert {(p.task.id, p.group, p.env_seed) for p in group} == {(trace.task.id, group[0].ordinal, trace.seed)}
        assert [p.role for p in group] == [FORCED, FORCED, GO_ON, GO_ON]
        start = CHAT.decode(group[2].prefix)
        assert [CHAT.decode(p.prefix) for p in group] == [f"{start} Action: answer".strip()] * 2 + [start] * 2
        starts.add(start)
    assert starts == set(PLACES)  # whichever ten draws take


def test_a_trace_without_text_is_begun_at_its_start():
    (_, group), _ = stages(ForcedTermination(forced=0.25), episodes=4, thought="")
    assert [CHAT.decode(p.prefix) for p in group] == ["Action: answer", "", "", ""]


def test_a_trace_whose_thought_its_budget_cut_is_begun_in_that_thought():
    sampler, ids = ForcedTermination(forced=1.0, everywhere=True), CHAT.encode(THOUGHT)
    (_, answers), _ = run_stages(sampler.plan(planner(4)), lambda plan: cut_thought(plan, ids, 10))
    places = [CHAT.decode(p.prefix).removesuffix("Action: answer").strip() for p in answers[::4]]
    assert places == PLACES


def test_answers_can_be_asked_for_at_every_place():
    (_, answers), _ = stages(ForcedTermination(forced=1.0, everywhere=True), episodes=4)
    assert {p.role for p in answers} == {FORCED}
    places = [CHAT.decode(p.prefix).removesuffix("Action: answer").strip() for p in answers[::4]]
    assert places == PLACES


def test_words_of_a_model_of_ones_own_divide_its_thoughts_and_ask_for_an_answer():
    own = ForcedTermination(forced=1.0, everywhere=True, marks=("*",), closing="answer")
    (_, answers), _ = stages(own, episodes=4)
    assert [CHAT.decode(p.prefix) for p in answers[::4]] == ["answer", "Thought: 3 + 4 = 7 ; 7 answer"]


def test_tasks_of_several_turns_are_refused():
    with pytest.raises(ConfigError, match="cuts thoughts in an only turn, and episodes may take 2"):
        next(ForcedTermination().plan(planner(episodes=4, turns=2)))


def test_an_episode_that_must_answer_may_sample_an_answer_and_nothing_more():
    ((trace,), group), _ = stages(ForcedTermination(), episodes=4)
    for plan in group:
        if plan.role == GO_ON:
            assert plan.budget == trace.budget
        else:
            assert plan.budget.turn_tokens == len(plan.prefix) + 16 and plan.budget.tokens is None


# Credit for progress


def episode(role: str, reward: float, group: int = 0, length: int = 1, **fields: Any) -> Trajectory:
    return make_trajectory([make_turn([1] * length)], reward, group=group, role=role, **fields)


def advantages(credit: Credit, episodes: list[Trajectory]) -> list[list[float]]:
    return [s.advantages for s in credit(episodes)]


STATE = [episode(FORCED, r) for r in (1, 0, 0, 0)] + [episode(GO_ON, r, length=2) for r in (1, 1, 0, 0)]
FAILED = StopReason.INFRA_FAILURE


def test_advantages_by_hand():
    """At once 1/4 succeed, going on 1/2: a success that went on gets 1/2 and 0.5 (1 - 1/4)."""
    assert advantages(ProgressCredit(bonus=0.5), STATE) == [
        [0.75],
        [-0.25],
        [-0.25],
        [-0.25],
        *[[0.5 + 0.375] * 2] * 2,
        *[[-0.5 - 0.125] * 2] * 2,
    ]


def test_going_on_without_gain_is_punished_where_answering_at_once_succeeds():
    state = [episode(FORCED, 1), episode(FORCED, 1), episode(GO_ON, 0), episode(GO_ON, 0)]
    assert advantages(ProgressCredit(), state) == [[0], [0], [-1], [-1]]
    assert advantages(ProgressCredit(bonus=0), state) == [[0]] * 4


def test_states_are_apart_and_a_divisor_divides_the_outcome_alone():
    other = [episode(FORCED, 0, 1), episode(FORCED, 0, 1), episode(GO_ON, 1, 1), episode(GO_ON, 0, 1)]
    credit = ProgressCredit(normalize="std")
    found = advantages(credit, [*STATE, *other])
    assert found[:8] == advantages(credit, STATE)
    assert found[8:] == [[0], [0], [1 + 1], [-1]]


def test_without_forced_episodes_there_is_no_bonus():
    state = [episode(GO_ON, 1), episode(GO_ON, 0)]
    assert advantages(ProgressCredit(), [*state, episode(FORCED, 1, stop=FAILED)]) == [[0.5], [-0.5]]


def test_traces_and_failures_are_not_trained():
    extra = [episode(TRACE, 1, 5), episode(TRACE, 0, 5), episode(GO_ON, 0, stop=FAILED)]
    assert ProgressCredit()([*extra, *STATE]) == ProgressCredit()(STATE)
    assert ProgressCredit()(extra) == [] == ProgressCredit()([])


@pytest.mark.parametrize("settings", [{"normalize": "none"}, {"normalize": "std", "baseline": "leave_one_out"}])
def test_episodes_from_the_start_are_compared_with_each_other_as_in_group_relative_credit(settings):
    plain = [episode("", r, g) for r, g in ((1, 0), (0, 0), (0, 0), (1, 1), (0, 1))]
    assert ProgressCredit(**settings)(plain) == GroupRelative(**settings)(plain)


def problems() -> tuple[EnumerableMDP, EnumerableMDP, np.ndarray]:
    """From state 0 an episode goes on to state 1 or 2 and then answers; one that is forced answers in state 3."""
    moves = np.zeros((5, 2, 5))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1:, :, 4] = 1
    rng = np.random.default_rng(3)
    rewards = np.where(np.arange(5)[:, None] > 0, rng.random((5, 2)), 0.0)
    start, ends = np.eye(5), np.arange(5) == 4
    going = EnumerableMDP(moves, rewards, start[0], ends, horizon=2)
    return going, EnumerableMDP(moves, rewards, start[3], ends, horizon=1), rng.normal(size=(5, 2))


@pytest.mark.parametrize(
    ("settings", "sizes", "outcome"),
    [
        ({"baseline": "leave_one_out"}, (2, 2), (1, 1)),
        ({"baseline": "leave_one_out", "bonus": 0.5}, (3, 1), (1, 0)),  # one alone has nothing to be compared with
        ({"baseline": "mean"}, (2, 2), (1 / 2, 1 / 2)),
        ({"baseline": "mean", "bonus": 2.0}, (3, 2), (2 / 3, 1 / 2)),
        ({"baseline": "none", "bonus": 0.0}, (1, 1), (1, 1)),
    ],
)
def test_the_expected_gradient_is_that_of_going_on_and_of_answering_at_once(settings, sizes, outcome):
    """Per episode of a role: (k + bonus) times the exact gradient of going on, k that of answering at once."""
    going, forced, logits = problems()
    credit, policy = ProgressCredit(**settings), going.policy(logits)
    roles = [GO_ON] * sizes[0] + [FORCED] * sizes[1]
    found = {role: np.zeros_like(logits) for role in (GO_ON, FORCED)}
    every = {GO_ON: list(going.trajectories(logits)), FORCED: list(forced.trajectories(logits))}
    for paths, chance in all_of(*(every[role] for role in roles)):
        drawn = [episode_of(p, ordinal=n, role=r) for n, (r, p) in enumerate(zip(roles, paths, strict=True))]
        samples = credit(drawn)
        for role in found:
            found[role] += chance * weighted_scores(policy, [s for s in samples if roles[s.episode] == role])
    going_on, at_once = (outcome[0] + credit.bonus) * going.gradient(logits), outcome[1] * forced.gradient(logits)
    np.testing.assert_allclose(found[GO_ON] / sizes[0], going_on, atol=1e-12)
    np.testing.assert_allclose(found[FORCED] / sizes[1], at_once, atol=1e-12)


# The length penalty


def penalised(penalty: LengthPenalty, group: list[Trajectory]) -> list[float]:
    return [verdict.reward for verdict in penalty.compare(group)]


def sigmoid(z: float) -> float:
    return 1 / (1 + exp(-z))


def test_a_success_earns_less_the_longer_it_is_beside_other_successes():
    """Successes of 2, 4 and 6 tokens: mean 4, deviation sqrt(8 / 3). A failure of 60 tokens changes nothing."""
    group = [episode("", 1, length=2), episode("", 1, length=4), episode("", 1, length=6), episode("", 0, length=60)]
    z = 2 / (8 / 3) ** 0.5
    expected = [1 - 0.4 * sigmoid(-z), 1 - 0.4 / 2, 1 - 0.4 * sigmoid(z), 0]
    assert penalised(LengthPenalty(weight=0.4), group) == pytest.approx(expected)
    assert [verdict.success for verdict in LengthPenalty().compare(group)] == [True, True, True, False]


def test_a_single_success_of_a_group_loses_half_the_weight_and_without_weight_nothing_changes():
    assert penalised(LengthPenalty(weight=0.2), [episode("", 1, length=3)]) == pytest.approx([0.9])
    group = [episode("", 1, length=50), episode("", 0, length=9)]
    assert penalised(LengthPenalty(weight=0.2), group) == pytest.approx([0.9, 0])
    assert penalised(LengthPenalty(weight=0.0), group) == [1, 0]


def test_group_relative_credit_reads_the_rewards_after_the_penalty():
    """Of one length: 1 - 0.2 / 2 against 0, without a deviation to divide by; what failed keeps its reward."""
    group = [episode("", 1, length=2), episode("", 0), episode("", 0, stop=FAILED)]
    compare(LengthPenalty(weight=0.2), group)
    assert advantages(GroupRelative(normalize="none"), group) == [pytest.approx([0.45] * 2), pytest.approx([-0.45])]
    assert [t.reward for t in group] == pytest.approx([0.9, 0, 0])


def test_the_penalty_keeps_evidence_and_terms_and_what_the_environment_gave():
    turns = [make_turn(reward=0.5), make_turn(reward=0.25)]
    t = make_trajectory(turns, reward=1.0, evidence={"true_reward": 1.0}, terms={"format": 0.5})
    compare(LengthPenalty(weight=0.4), [t])
    assert (t.reward, t.evidence, t.terms) == (pytest.approx(0.8), {"true_reward": 1.0}, {"format": 0.5})


def test_a_run_on_stored_episodes_does_not_penalise_them_again(tmp_path):
    changes = {"reward": LengthPenalty(weight=1.0), "replay": OnPolicy(), "group_size": 5, "iterations": 2}
    recipe = make_recipe(save_model(tmp_path / "model"), **changes)
    train(recipe, tmp_path / "first")
    train(recipe.replace(stored_run=str(tmp_path / "first")), tmp_path / "again")
    rewards = [[t.reward for t in trajectories_of(tmp_path / run)] for run in ("first", "again")]
    assert rewards[0] == rewards[1] and 0.5 in rewards[0]


@pytest.mark.parametrize(
    ("family", "member"),
    [
        (Credit, ProgressCredit(bonus=0.5, baseline="leave_one_out", normalize=2.0)),
        (Reward, LengthPenalty(weight=0.4, false_positive=0.1)),
    ],
)
def test_its_components_are_built_again_from_their_data(family, member):
    assert build(family, member.as_data()) == member


# A run


def test_a_run_trains_answers_and_what_goes_on_but_no_trace_and_measures_what_its_claim_compares(tmp_path):
    changes = {"episodes_per_iteration": 16, "evaluation": {"tasks": 3, "every": 1}}
    ARM.replace(iterations=1, **changes).train(tmp_path / "run")
    episodes, (row,) = trajectories_of(tmp_path / "run"), rows_of(tmp_path / "run", "train")
    roles = [t.role for t in episodes]
    assert [roles.count(role) for role in (TRACE, FORCED, GO_ON)] == [2, 8, 8]
    assert row["trained_turns"] <= 16 * ARM.learner.epochs
    forced = [t.turns[0].text for t in episodes if t.role == FORCED]
    assert all(text.split("Action:")[1].startswith(" answer") for text in forced)
    evaluated = rows_of(tmp_path / "run", "eval")
    assert [row["strategy"] for row in evaluated] == ["anytime_1", "direct_40_tokens"] * 2
    assert set(CLAIM.measures) <= set(evaluated[-2]["measures"])
    assert all(len(of) == 3 for of in evaluated[-2]["measures"].values())
