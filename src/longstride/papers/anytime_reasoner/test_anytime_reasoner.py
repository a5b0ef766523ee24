"""BRPO: its advantages by hand, and how much of the exact gradient each segment has."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from enumerated import ascent
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

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.methods import Constant, GroupRelative, Reinforce, Sample
from longstride.papers.anytime_reasoner.exact import RECIPE, Thoughts
from longstride.papers.anytime_reasoner.method import ANSWER, BY_BUDGET, SEGMENTS, THOUGHT, AtBudgets, BudgetRelative
from longstride.rollout.branching import ending

LOSS = Reinforce(aggregation=Constant(per="episode"))


def test_advantages_of_a_group_by_hand() -> None:
    scores = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    found = 3 * BudgetRelative().of_group(scores)
    # R (times 3): [2, 2, 1] and [1, 1, 1], V2 = [1.5, 1.5, 1]; V1: before segment 1 the scores are 0, before segment 2
    # (1 * 0 + 2 * 1) / 3 and 0, times one budget that is left
    first = [2 - 1.5, 2 - (0 + 2 * 1.5) / 3, 1 - (2 * 2 / 3 + 1) / 3]
    second = [1 - 1.5, 1 - (0 + 2 * 1.5) / 3, 1 - (0 + 1) / 3]
    np.testing.assert_allclose(found, [first, second])


def test_the_prior_weighs_budgets() -> None:
    scores = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(BudgetRelative(prior="base").of_group(scores)[:, 0], [-0.5, 0.5])
    np.testing.assert_allclose(BudgetRelative(prior="linear").of_group(scores)[:, 0], [1 / 3 - 0.5, 2 / 3 - 0.5])


def test_with_one_budget_it_is_the_mean_of_the_group() -> None:
    scores = np.array([[1.0], [0.25], [0.0]])
    np.testing.assert_allclose(BudgetRelative().of_group(scores)[:, 0], scores[:, 0] - scores.mean())


@pytest.mark.parametrize("n", [2, 3])
def test_the_expected_update_of_a_segment_is_its_known_share_of_the_exact_gradient(n: int) -> None:
    problem = Thoughts(tasks=((0.3,),), length=2, sure=0.8)
    logits = problem.begin(np.random.default_rng(0))

    def credit(episodes: Sequence[Trajectory]) -> list[Sample]:
        for t in episodes:
            first, second = t.turns[0].sampled_ids
            t.evidence |= {BY_BUDGET: problem.accuracy[2 * first + second].tolist(), SEGMENTS: [1, 1]}
        return BudgetRelative()(episodes)

    found = ascent(problem, logits, credit, LOSS, n)
    tree = problem.tree
    tree = type(tree)(problem.accuracy.mean(1)[None], tree.context, tree.vocabulary, tree.length)
    exact = tree.gradient(logits, np.ones(1))
    np.testing.assert_allclose(found[0, 0], (1 - 1 / n) * exact[0, 0], atol=1e-9)  # S = 2: 1 - (S - s) / (S n)
    np.testing.assert_allclose(found[0, 1:], (1 - 1 / (2 * n)) * exact[0, 1:], atol=1e-9)


def test_what_is_found_stays_found_and_the_start_finds_with_the_chance_of_the_task() -> None:
    problem = Thoughts(tasks=((0.3,),), vocabulary=3, length=2, sure=0.9)
    assert problem.accuracy[0 * 3 + 2].tolist() == [0.9, 0.9] and problem.accuracy[5].tolist() == pytest.approx(
        [0.1, 0.1]
    )
    assert problem.replace(last_only=True).accuracy[0 * 3 + 2].tolist() == pytest.approx([0.1, 0.1])
    measured = problem.measures({"logits": problem.begin(np.random.default_rng(0))})
    at_first, at_last = 0.1 + 0.8 * 0.3, 0.1 + 0.8 * (1 - 0.7**2)
    assert measured == pytest.approx({"anytime": (at_first + at_last) / 2, "success": at_last})


def test_episodes_have_the_scores_of_all_budgets_and_earn_that_of_the_last() -> None:
    problem = RECIPE.problem
    assert isinstance(problem, Thoughts)
    for t in problem.play(problem.begin(np.random.default_rng(0)), 2, np.random.default_rng(0)):
        assert len(t.evidence[BY_BUDGET]) == 4 and t.reward == t.evidence[BY_BUDGET][-1]
        assert all(0 <= score <= 1 and (4 * score).is_integer() for score in t.evidence[BY_BUDGET])
    assert GroupRelative(normalize="none")(
        problem.play(problem.begin(np.random.default_rng(0)), 2, np.random.default_rng(0))
    )


TEXT = "Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3"
CHAT = word_chat(TEXT)


def test_a_thought_is_cut_at_every_budget_and_once_it_has_ended_its_answers_are_asked_for_at_its_end() -> None:
    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=1, turn_tokens=20))
    ids = CHAT.encode(TEXT)  # the thought has 12 tokens, a 13th ends it

    def play(plan):
        right = float(plan.role == ANSWER and (len(plan.prefix) > 10 or plan.ordinal % 2))
        return played(plan, ids if plan.role == THOUGHT else ids[-1:], right)

    (thoughts, asked), episodes = run_stages(AtBudgets(budgets=4, answers=2).plan(planner), play)
    assert [p.role for p in thoughts] == [THOUGHT] * 2 and [p.role for p in asked] == [ANSWER] * 16
    closing = CHAT.encode("Action: answer")
    assert [list(p.prefix) for p in asked[:8:2]] == [ids[:k] + closing for k in (5, 10, 12, 12)]
    assert [len({p.group for p in asked[k : k + 2]}) for k in range(0, 16, 2)] == [1] * 8
    assert len({p.group for p in [*thoughts, *asked]}) == 1 + 8
    assert {p.env_seed for p in asked} == {thoughts[0].seed}
    first = episodes[0]
    assert first.evidence == {SEGMENTS: [5, 5, 3, 0], BY_BUDGET: [0.5, 1.0, 1.0, 1.0]}


def test_of_a_thought_that_was_cut_and_closed_for_the_policy_the_tokens_behind_that_are_trained() -> None:
    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=1, turn_tokens=20))
    ids = CHAT.encode(TEXT)

    def play(plan):
        return cut_thought(plan, ids, 8) if plan.role == THOUGHT else played(plan, ids[-1:], float(plan.ordinal % 2))

    (_, asked), episodes = run_stages(AtBudgets(budgets=4, answers=2).plan(planner), play)
    assert [list(p.prefix)[: len(p.prefix) - 2] for p in asked[:8:2]] == [ids[:k] for k in (5, 10, 12, 12)]
    assert episodes[0].evidence[SEGMENTS] == [0, 2, 3, 0]
    assert [len(s.advantages) for s in BudgetRelative()(episodes)][:2] == [len(ids) - 8] * 2


def test_tokens_have_the_advantage_of_their_segment_an_answer_its_own_and_the_thought_s_own_answer_none() -> None:
    scores = [[0.0, 1.0], [0.0, 0.0]]
    thoughts = [
        make_trajectory([make_turn(range(6))], ordinal=n, role=THOUGHT, evidence={BY_BUDGET: of, SEGMENTS: [2, 3]})
        for n, of in enumerate(scores)
    ]
    answers = [make_trajectory(1, float(n == 2), ordinal=n, role=ANSWER, group=2) for n in (2, 3)]
    found = [s.advantages for s in BudgetRelative()([*thoughts, *answers])]
    of_group = BudgetRelative().of_group(np.array(scores))
    assert found[0] == pytest.approx([of_group[0, 0]] * 2 + [of_group[0, 1]] * 3 + [0.0])
    assert found[2:] == [[0.5], [-0.5]]


def test_a_thought_whose_answers_at_a_budget_all_failed_is_not_trained() -> None:
    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=1, turn_tokens=20))

    def play(plan):
        fails = plan.role == ANSWER and 2 <= plan.ordinal < 4
        return played(plan, CHAT.encode(TEXT), stop=StopReason.INFRA_FAILURE if fails else StopReason.ANSWERED)

    _, episodes = run_stages(AtBudgets(budgets=2, answers=2).plan(planner), play)
    samples = BudgetRelative()(episodes)
    assert [s.episode for s in samples if s.episode < 2] == [1] and len(samples) == 1 + 6


def test_advantages_of_thoughts_are_those_of_the_released_code() -> None:
    """`compute_cot_advantage` of the release with `brpo`, by its loops: the mean of earlier scores with weights 2^j, and
    the mean of the group, in shares s / S and (S - s) / S."""
    scores = np.random.default_rng(3).integers(5, size=(6, 4)) / 4
    for prior, shares in (("uniform", [1.0] * 4), ("linear", [1.0, 2, 3, 4]), ("base", [0.0, 0, 0, 1])):
        p = np.array(shares) / sum(shares)
        expected = np.zeros_like(scores)
        for g in range(6):
            for s in range(4):
                earlier, weights = scores[g, :s], 2.0 ** np.arange(s)
                v1 = (earlier * weights).sum() / weights.sum() * p[s:].sum() if s else 0.0
                v2 = np.mean([(scores[k, s:] * p[s:]).sum() for k in range(6)])
                expected[g, s] = (scores[g, s:] * p[s:]).sum() - (s * v1 + (4 - s) * v2) / 4
        found = BudgetRelative.model_validate({"prior": prior}).of_group(scores)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_it_trains_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    own = ["sampler.closing=click", "sampler.ends=home", "sampler.budgets=3", "sampler.longest=2"]
    run = train_elsewhere(
        "anytime_reasoner", tmp_path, *own, "sampler.answers=3", "episodes_per_iteration=4", "evaluation.strategies=[]"
    )
    rows, episodes = rows_of(run, "train"), trajectories_of(run)
    assert all(row["grad_norm"] > 0 for row in rows)
    thoughts, answers = ([t for t in episodes if t.role == role] for role in (THOUGHT, ANSWER))
    assert len(thoughts) == 8 and len(answers) == 8 * 3 * 3
    for t in thoughts:
        ends = np.cumsum(t.evidence[SEGMENTS])
        assert all(a <= b for a, b in pairwise(ends)) and len(t.evidence[BY_BUDGET]) == 3


@pytest.mark.parametrize(
    ("words", "place"),
    [("Action:", (12, 13)), ("Action: answer", (12, 14)), ("= 7 ;", (4, 7)), ("never said", (15, 15))],
)
def test_a_thought_ends_where_its_words_begin_whether_they_are_one_token_or_several(
    words: str, place: tuple[int, int]
) -> None:
    assert ending(CHAT, CHAT.encode(TEXT), words) == place


def test_episodes_of_several_turns_are_refused() -> None:
    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=3))
    with pytest.raises(
        ConfigError, match="at_budgets cuts thoughts in an only turn, and episodes may take 3; .*turns=1"
    ):
        next(AtBudgets().plan(planner))
