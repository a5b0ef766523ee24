"""Kimi k1.5: the gradient of its squared objective, and where its fixed point is; what is paid for short answers, which
tasks are drawn, answers in pieces, and what makes a long thinker short."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from elsewhere import train_elsewhere
from enumerated import ascent
from helpers import (
    Collected,
    make_planner,
    make_trajectory,
    make_turn,
    played,
    rows_of,
    run_stages,
    tiny_policy,
    trajectories_of,
    word_chat,
)  # fmt: skip

from longstride.core.budget import Budget
from longstride.core.errors import ConfigError, ModelError
from longstride.core.trajectory import PIECE, Trajectory
from longstride.envs.puzzles import ModularChain
from longstride.exact.answers import Answers
from longstride.exact.learner import gradient
from longstride.methods import Constant, GroupRelative, Mean, Reinforce, Sample
from longstride.methods.preferences import PREFERRED
from longstride.models.merge import merge
from longstride.models.tiny import TinyConfig
from longstride.papers.kimi.method import (
    LengthReward,
    MirrorDescent,
    Prioritised,
    ShorterPairs,
    ShortestRight,
    WholeGroups,
)
from longstride.rollout import PartialRollouts

CREDIT = GroupRelative(normalize="none")
TREE = Answers(tasks=((0.3,), (0.2,)), vocabulary=2, length=3, decoy=0.2)


def test_the_gradient_is_that_of_the_squared_difference() -> None:
    rng, tau, tree = np.random.default_rng(0), 0.3, TREE.tree
    old = TREE.begin(rng)
    now = old + 0.3 * rng.normal(size=old.shape)
    answers_QN = tree.sample(old, 5, rng)
    samples = CREDIT(TREE.episodes(old, answers_QN))
    table, total = torch.tensor(now, requires_grad=True), torch.zeros((), dtype=torch.float64)
    old_log, log = torch.tensor(tree.log_policy(old)), table.log_softmax(-1)
    for q, row in enumerate(answers_QN):
        mean = tree.rewards[q, row].mean()
        for k in row:
            place = (tree.context[q], torch.from_numpy(tree.places[k]), torch.from_numpy(tree.tokens[k]))
            ratio = (log[place] - old_log[place]).sum()
            total = total + (tree.rewards[q, k] - mean - tau * ratio) ** 2 / (2 * tau)
    (expected,) = torch.autograd.grad(total / answers_QN.size, table)
    loss = MirrorDescent(aggregation=Constant(per="episode"), tau=tau)
    np.testing.assert_allclose(gradient(tree, now, samples, loss), expected.numpy(), atol=1e-9)
    by_mean = gradient(tree, now, samples, loss.replace(aggregation=Mean(over="episode")))
    np.testing.assert_allclose(3 * by_mean, expected.numpy(), atol=1e-9)  # the square is shared as advantages are


def test_at_the_policy_that_sampled_it_is_the_plain_gradient() -> None:
    logits = TREE.begin(np.random.default_rng(1))
    samples = CREDIT(TREE.play(logits, 4, np.random.default_rng(2)))
    plain, mirror = (
        gradient(TREE.tree, logits, samples, loss(aggregation=Constant(per="episode")))
        for loss in (Reinforce, MirrorDescent)
    )
    np.testing.assert_array_equal(plain, mirror)


def test_with_the_true_normaliser_the_fixed_point_is_the_known_one_and_with_the_mean_it_moves_less() -> None:
    tau, problem = 0.25, Answers(tasks=((0.2,),), vocabulary=4, decoy=0.3)
    tree, old = problem.tree, problem.begin(np.random.default_rng(0))
    p, r = tree.answers(old)[0], tree.rewards[0]
    known = p * np.exp(r / tau) / (p @ np.exp(r / tau))
    baselines = {"normaliser": tau * np.log(p @ np.exp(r / tau)), "mean": float(p @ r)}
    loss, ends = MirrorDescent(aggregation=Constant(per="episode"), tau=tau), {}
    for name, baseline in baselines.items():

        def credit(episodes: Sequence[Trajectory], baseline: float = baseline) -> list[Sample]:
            samples = GroupRelative(baseline="none", normalize="none")(episodes)
            for s in samples:
                s.streams["advantages"] = [a - baseline for a in s.advantages]
            return samples

        z = np.log(p)
        for _ in range(20_000):  # the stationary point: p_k (r_k - b - tau log q_k / p_k) = q_k times their sum
            q = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            pull = p * (r - baseline - tau * np.log(q / p))
            z = z + pull - q * pull.sum()
        ends[name] = q
        there = tree.logits_of(q[None])
        np.testing.assert_allclose(ascent(problem, there, credit, loss, size=1, sampler=old), 0, atol=1e-6)
    np.testing.assert_allclose(ends["normaliser"], known, atol=1e-6)
    right = int(r.argmax())
    assert p[right] < ends["mean"][right] < known[right] - 0.05


def answer(tokens: int, right: bool, ordinal: int = 0, **fields) -> Trajectory:
    return make_trajectory([make_turn(range(tokens))], float(right), ordinal=ordinal, **fields)


def test_a_short_answer_earns_more_where_it_is_right_and_a_wrong_one_never_earns_by_it() -> None:
    group = [answer(n, right, iteration=3) for n, right in ((2, True), (4, True), (6, True), (2, False), (5, False))]
    verdicts = LengthReward(after=2, weight=0.4).compare(group)
    assert verdicts is not None
    assert [v.reward for v in verdicts] == pytest.approx([1 + 0.2, 1, 1 - 0.2, 0, 0.4 * (0.5 - 0.75)])
    assert [v.success for v in verdicts] == [True, True, True, False, False]


def test_length_earns_nothing_while_it_warms_up_and_where_all_are_equally_long() -> None:
    assert LengthReward(after=3).compare([answer(2, True, iteration=3), answer(4, True, iteration=3)]) is None
    assert LengthReward(after=2).compare([answer(4, False, iteration=3), answer(4, True, iteration=3)]) is None


def test_tasks_are_drawn_in_proportion_to_what_is_not_solved() -> None:
    source = ModularChain()
    tasks = source.sample(random.Random(0), 40)
    share = {"easy": 1.0, "medium": 0.75, "hard": 0.0}
    kept = [make_trajectory(1, float(k < share[task.difficulty] * 4), task=task) for task in tasks for k in range(4)]
    drawn = Prioritised(by="difficulty", pool=10).draw(source, 150, random.Random(1), Collected(kept))
    found = Counter(task.difficulty for task in drawn)
    assert found["easy"] == 0 and 0.1 < found["medium"] / 150 < 0.3  # 1/4 against 1, of as many candidates
    assert len({task.id for task in Prioritised().draw(source, 5, random.Random(1), Collected())}) == 5


def test_a_piece_of_an_answer_is_no_failure_of_its_task() -> None:
    source = ModularChain()
    tasks = source.sample(random.Random(0), 60)
    solved = [make_trajectory(1, float(task.difficulty != "easy"), task=task) for task in tasks]
    pieces = [make_trajectory(1, 0.0, task=task, role=PIECE) for task in tasks if task.difficulty == "hard"]
    for experience in (Collected(solved), Collected(solved + pieces)):
        drawn = Prioritised(by="difficulty", pool=10).draw(source, 10, random.Random(1), experience)
        assert {task.difficulty for task in drawn} == {"easy"}


CHAT = word_chat("Thought: 3 + 4 = 7 Action: answer 7")
WORDS = CHAT.encode("Thought: 3 + 4 = 7 Action: answer 7")


def test_a_cut_answer_goes_on_in_the_next_iteration_and_its_group_is_trained_when_all_have_ended() -> None:
    sampler, experience, replay = PartialRollouts(tokens=4), Collected(), WholeGroups()
    lengths = {0: 3, 1: 9}  # by member of the group: one ends at once, one in the third iteration

    def play(plan):
        begun, member = len(plan.prefix), int(plan.ordinal > 0)
        most = plan.budget.turn_tokens - begun
        said = WORDS[begun : begun + min(lengths[member] - begun, most)]
        cut = begun + len(said) < lengths[member]
        t = played(plan, said, float(not cut))
        t.turns[0].finish = "length" if cut else "stop"
        return t

    drawn = []
    for iteration in (1, 2, 3):
        planner = make_planner(
            ModularChain(), iteration, len(experience.trajectories), episodes=2, size=2, chat=CHAT,
            experience=experience, budget=Budget(turns=1, turn_tokens=20),
        )  # fmt: skip
        _, episodes = run_stages(sampler.plan(planner), play)
        experience.trajectories += episodes
        kept = [t.record() for t in experience.trajectories if replay.admits(t.record())]
        drawn.append([e.ordinal for e in replay.draw(kept, len(episodes), random.Random(0), experience)])
    first, second, third = (t for t in experience.trajectories if t.group == 0 and (t.ordinal or t.role == PIECE))
    assert (first.role, second.role, third.role) == (PIECE, PIECE, "")
    assert [t.turns[0].ids for t in (first, second, third)] == [WORDS[:4], WORDS[:8], WORDS[:9]]
    assert third.turns[0].sampled_ids == WORDS[8:9] and drawn == [[], [], [0, third.ordinal]]


def test_answers_in_pieces_are_compared_by_their_lengths_when_all_have_ended() -> None:
    group = [answer(n, True, k, iteration=1) for k, n in enumerate((2, 5, 3))]
    replay = WholeGroups(reward=LengthReward(weight=0.5))
    renewed = replay.renew(group, random.Random(0), Collected(group))
    assert [t.reward for t in renewed] == pytest.approx([1.25, 0.75, 1 + 0.5 * (0.5 - 1 / 3)])
    assert [t.reward for t in group] == [1.0] * 3, "what is stored stays"
    assert WholeGroups().renew(group, random.Random(0), Collected(group)) == group


def test_answers_in_pieces_have_one_turn() -> None:
    planner = make_planner(ModularChain(), episodes=2, size=2, chat=CHAT, budget=Budget(turns=3))
    with pytest.raises(ConfigError, match="partial_rollouts cuts answers in an only turn, and episodes may take 3"):
        next(PartialRollouts().plan(planner))


def test_the_shortest_right_answer_of_a_group_is_imitated_and_nothing_else() -> None:
    group = [answer(n, right, k) for k, (n, right) in enumerate(((2, False), (5, True), (3, True)))]
    (sample,) = ShortestRight()([*group, answer(1, False, 3, group=1)])
    assert (sample.episode, sample.advantages) == (2, [1.0] * 3)


def test_the_shortest_right_answer_is_preferred_to_wrong_ones_and_to_much_longer_ones() -> None:
    group = [
        answer(n, right, k) for k, (n, right) in enumerate(((9, False), (2, True), (3, True), (2, True), (1, False)))
    ]
    samples = ShorterPairs(times=1.5)([*group, answer(3, False, 5, group=1)])
    pairs = [(a.episode, b.episode) for a, b in zip(samples[::2], samples[1::2], strict=True)]
    assert pairs == [(1, 0), (1, 2), (1, 4)]
    assert [s.streams[PREFERRED][0] for s in samples] == [1, 0] * 3 and [s.pair for s in samples] == [0, 0, 1, 1, 2, 2]
    any_longer = ShorterPairs(times=1.0)(group)
    assert [s.episode for s in any_longer[1::2]] == [0, 2, 3, 4], "the preferred one is no pair with itself"


def test_merged_weights_are_between_those_of_both() -> None:
    def weights(policy) -> torch.Tensor:
        return next(policy.model.parameters()).detach().clone()

    first, second = tiny_policy("a b", seed=1), tiny_policy("a b", seed=2)
    expected = 0.25 * weights(first) + 0.75 * weights(second)
    torch.testing.assert_close(weights(merge(first, second, share=0.25)), expected)
    with pytest.raises(ModelError, match="other tokenizers"):
        merge(first, tiny_policy("a b c"))
    with pytest.raises(ModelError, match="no models of one shape"):
        merge(first, tiny_policy("a b", shape=TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=64, context=128)))
    with pytest.raises(ConfigError, match="from 0 to 1; got 2"):
        merge(first, second, share=2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("kimi", ["reward.after=1", "curriculum.by=task", "learner.epochs=2"]),
        ("kimi/partial", ["sampler.tokens=2", "iterations=3"]),
        ("kimi/shortest", []),
        ("kimi/shorter_pairs", []),
    ],
)
def test_it_trains_another_model_on_other_tasks_by_settings_alone(
    name: str, settings: list[str], tmp_path: Path
) -> None:
    run = train_elsewhere(name, tmp_path, *settings)
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    if name == "kimi":
        of_length = [t.iteration for t in trajectories_of(run) if "length" in t.terms]
        assert set(of_length) <= {2}
    if name == "kimi/partial":
        assert {t.turns[0].given for t in trajectories_of(run) if t.iteration == 2} == {2}
