"""T1: what is punished, the KL in the reward, its exact gradient, and an anchor that moves and resumes to its bits."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.claims.stages import stages
from longstride.core.budget import Budget, StopReason
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.puzzles import ModularChain
from longstride.exact.worlds.tabular import random_mdp
from longstride.methods import KL, GroupRelative, Sample, Start
from longstride.methods.base import ADVANTAGES, REFERENCE
from longstride.methods.kl import MovingAverage
from longstride.models.load import load_policy
from longstride.papers.t1.method import AnchoredReinforce, Penalised
from longstride.papers.t1.recipe import CLAIM, RECIPE
from longstride.rollout.episode import set_verdict
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.loop import train
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe

TASK = Task(id="t", source="s", goal="g", start="s", evaluator={"type": "answer", "reference": "4"})
CREDIT = GroupRelative(baseline="leave_one_out", normalize="none")


def answer(ids: Sequence[int], reward: float = 0.0, ordinal: int = 0, group: int = 0) -> Trajectory:
    """A single-turn episode that earned so much."""
    turn = Turn([1], list(ids), [-1.0] * len(ids), [0] * len(ids), "", "", action="answer 4", reward=reward)
    return Trajectory(TASK, ordinal, 0, Budget(), [turn], StopReason.ANSWERED, "4", reward, group=group)


# what is punished


@pytest.mark.parametrize("right", [True, False])
def test_an_unwanted_pattern_costs_one_whether_the_answer_is_right_or_wrong(right: bool) -> None:
    reward = Penalised(ngram=2, times=3)
    plain, again, cut, unread = (answer(ids) for ids in ([1, 2, 3], [5, 6, 5, 6, 5, 6], [1, 2], [1, 2]))
    cut.stop, unread.stop = StopReason.TOKENS, StopReason.PARSE_FAILURE
    for t, pattern in ((plain, ""), (again, "repeated"), (cut, "overlong"), (unread, "gibberish")):
        t.answer = "4" if right else "5"
        verdict = reward(t, {}, seed=0)
        assert verdict.reward == (-1.0 if pattern else float(right))
        assert verdict.success is right
        assert verdict.terms == {name: float(name == pattern) for name in ("repeated", "overlong", "gibberish")}


@pytest.mark.parametrize(("ids", "earned"), [([1, 2, 3], 1.0), ([5, 6, 5, 6, 5, 6], -1.0)])
def test_a_pattern_costs_as_much_where_the_environment_paid_for_the_answer(ids: list[int], earned: float) -> None:
    t, reward = answer(ids, 1.0), Penalised(ngram=2, times=3)
    t.task = TASK.model_copy(update={"evaluator": {}})
    set_verdict(t, reward(t, {}, seed=0))
    assert t.reward == earned and t.success


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([1, 2, 9, 1, 2, 8, 1, 2], True),
        ([1, 2, 9, 1, 2, 8, 2, 1], False),
        ([5, 5, 5, 5], True),  # at places 0, 1 and 2
        ([5, 5, 5], False),
        ([5], False),
        ([], False),
    ],
)
def test_what_is_said_three_times_is_repetition(ids: list[int], found: bool) -> None:
    assert Penalised(ngram=2, times=3).repeats(ids) is found


# the KL in the reward


def test_an_answer_is_charged_for_the_log_ratio_that_it_has_above_the_others_of_its_group() -> None:
    groups = [
        answer([1, 2], ordinal=0),
        answer([3], ordinal=1),
        answer([4], ordinal=2),
        answer([5], ordinal=3, group=1),
    ]
    samples = CREDIT(groups)
    for s, reference in zip(samples, ([-2.0, -1.0], [-1.0], [-3.0], [-7.0]), strict=True):
        s.streams[REFERENCE] = reference
    loss = AnchoredReinforce(kl=KL(coefficient=0.1))
    now = [[-1.0, -0.5], [-1.5], [-3.0], [-1.0]]  # log-ratios of answers: 1.5, -0.5 and 0; the last one is alone
    found = [s.advantages for s in loss.reweigh(samples, now)]
    charges = [0.1 * (1.5 + 0.25), 0.1 * (-0.5 - 0.75), 0.1 * (0 - 0.5), 0.0]
    assert found[0] == pytest.approx([-charges[0]] * 2)
    assert [a for (a,) in found[1:]] == pytest.approx([-c for c in charges[1:]])
    assert all(a == 0 for s in samples for a in s.advantages), "what was given is not changed"


def test_an_answer_of_two_turns_is_charged_for_both_in_each() -> None:
    turns = [Sample([1], [2], {ADVANTAGES: [0.0], REFERENCE: [-1.0]}, episode=e) for e in (0, 0, 1)]
    found = AnchoredReinforce(kl=KL(coefficient=0.1)).reweigh(turns, [[-0.5], [-0.7], [-2.0]])
    # log-ratios of answers: .5 + .3 and -1
    assert [s.advantages for s in found] == [pytest.approx([a]) for a in (-0.18, -0.18, 0.18)]


def test_the_expected_gradient_is_that_of_reward_less_the_divergence_of_whole_answers() -> None:
    rng, beta = np.random.default_rng(1), 0.3
    problem = random_mdp(rng, states=3, actions=2, horizon=2, stochastic=True)
    logits, anchor = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    log_anchor = np.log(problem.policy(anchor))
    paths = list(problem.trajectories(logits))
    loss, found = AnchoredReinforce(kl=KL(coefficient=beta)), np.zeros_like(logits)
    log_policy = np.log(problem.policy(logits))
    for group in itertools.product(paths, repeat=2):
        episodes = [answer(p.actions, sum(p.rewards), n) for n, p in enumerate(group)]
        samples = CREDIT(episodes)
        for s, p in zip(samples, group, strict=True):
            s.streams[REFERENCE] = log_anchor[p.states, p.actions].tolist()
        now = [log_policy[p.states, p.actions].tolist() for p in group]
        for s, p in zip(loss.reweigh(samples, now), group, strict=True):
            chance = group[0].probability * group[1].probability
            found += chance * s.advantages[0] * problem.score(logits, p) / len(group)

    table = torch.tensor(logits, requires_grad=True)
    total = torch.zeros((), dtype=torch.float64)
    for p in paths:
        here = table.log_softmax(1)[list(p.states), list(p.actions)].sum()
        chance = p.probability * (here - here.detach()).exp()
        total = total + chance * (sum(p.rewards) - beta * (here - float(log_anchor[p.states, p.actions].sum())))
    total.backward()
    assert table.grad is not None
    np.testing.assert_allclose(found, table.grad.numpy(), atol=1e-12)


def gradient_of(loss: AnchoredReinforce, logits: Tensor, samples: list[Sample], actions: Sequence[int]) -> Tensor:
    """Of a step on answers of one token, as the learner computes it."""
    shares, denominator = loss.aggregation(samples)
    streams = {name: torch.tensor([s.streams[name][0] for s in samples]) for name in (ADVANTAGES, REFERENCE)}
    streams |= {name: torch.tensor(values) for name, values in loss.coefficients(samples).items()}
    logp_V = logits.log_softmax(0)
    entropy_P = -(logp_V.exp() * logp_V).sum().expand(len(samples))
    tokens: Any = SimpleNamespace(streams=streams, entropy_P=entropy_P, sequence_P=torch.arange(len(samples)))
    assert shares == [1.0] * len(samples)
    value = loss(logp_V[list(actions)], tokens).loss_P.sum() / denominator
    return torch.autograd.grad(value, logits)[0]


def test_the_loss_of_a_step_ascends_reward_less_divergence_plus_entropy() -> None:
    beta, alpha, rewards = 0.4, 0.2, [1.0, 0.0, 0.5]
    logits = torch.tensor([0.2, -0.5, 0.9], dtype=torch.float64, requires_grad=True)
    anchor = torch.tensor([-0.3, 0.4, 0.1], dtype=torch.float64).log_softmax(0)
    loss, found = AnchoredReinforce(entropy=alpha, kl=KL(coefficient=beta)), torch.zeros(3, dtype=torch.float64)
    here = logits.log_softmax(0)
    for actions in itertools.product(range(3), repeat=3):
        samples = CREDIT([answer([a], rewards[a], n) for n, a in enumerate(actions)])
        for s, a in zip(samples, actions, strict=True):
            s.streams[REFERENCE] = [anchor[a].item()]
        weighed = loss.reweigh(samples, [[here[a].item()] for a in actions])
        found -= here[list(actions)].sum().exp().item() * gradient_of(loss, logits, weighed, actions)
    p = here.exp()
    aim = (p * (torch.tensor(rewards) - beta * (here - anchor) - alpha * here)).sum()
    torch.testing.assert_close(found, torch.autograd.grad(aim, logits)[0], atol=1e-6, rtol=0)


# the run

SMALL = RECIPE.replace(
    iterations=2,
    episodes_per_iteration=16,
    group_size=8,
    tasks={"sources": (ModularChain(),)},
    loss={"kl": {"anchor": MovingAverage(decay=0.5)}},
    evaluation={"tasks": 2, "every": 2},
)


def state_of(run: Path) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """The policy, the anchor, and all that a checkpoint holds of the learner."""
    checkpoint = latest_checkpoint(run)
    assert checkpoint is not None
    tensors = checkpoint.tensors()
    anchor = {name.removeprefix("reference/"): t for name, t in tensors.items() if name.startswith("reference/")}
    return dict(load_run(run)[1].model.named_parameters()), anchor, tensors


def kls(run: Path) -> list[float]:
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [row["kl"] for row in rows if row["kind"] == "train"]


def test_the_anchor_follows_the_policy_and_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    before = dict(load_policy(str(SMALL.model)).model.named_parameters())
    for n in (1, 2):  # stopped after every iteration
        train(SMALL.replace(iterations=n), tmp_path / "cut", resume=True)
        policy, anchor, _ = state_of(tmp_path / "cut")
        assert anchor.keys() == policy.keys()
        for name, p in policy.items():
            torch.testing.assert_close(anchor[name], (before[name] + p).detach() / 2, atol=1e-7, rtol=1e-5)
        before = anchor
    train(SMALL, tmp_path / "whole")
    assert kls(tmp_path / "cut") == kls(tmp_path / "whole")
    for ours, theirs in zip(state_of(tmp_path / "cut"), state_of(tmp_path / "whole"), strict=True):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.slow
def test_a_moving_anchor_is_nearer_to_the_policy_than_a_fixed_one(tmp_path: Path) -> None:
    for name, anchor in (("moving", MovingAverage(decay=0.5)), ("fixed", Start())):
        train(SMALL.replace(iterations=2, loss={"kl": {"anchor": anchor}}), tmp_path / name)
    moving, fixed = kls(tmp_path / "moving"), kls(tmp_path / "fixed")
    assert moving[0] == fixed[0] == pytest.approx(0, abs=1e-6)  # both are the start
    assert 0 < moving[1] < fixed[1]


def test_arms_of_the_claim_are_equally_long_and_differ_in_their_anchor_alone() -> None:
    """A control whose arms run shorter than those of the effect is void, whatever comes of it."""
    stages(CLAIM)
    for name, arm in CLAIM.arms.items():
        assert isinstance(arm, Recipe) and arm.iterations == CLAIM.recipe.iterations and arm.loss.kl is not None
        gone = 1 - (1 - arm.loss.kl.anchor.step(1)) ** arm.iterations
        assert gone == pytest.approx(0.92 if name.startswith("moving") else 0, abs=1e-3)
    for held in ("quarter", "half", "whole"):
        moving, fixed = CLAIM.arms[f"moving_{held}"], CLAIM.arms[f"fixed_{held}"]
        assert moving == fixed.replace(loss={"kl": {"anchor": MovingAverage(decay=0.9)}})
