"""WebRL by hand: tasks made of failed ones, the critic's band, replay by perplexity, its advantage and its loss; and a
resumed run."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from by_hand import Batch
from helpers import Collected, make_task, make_trajectory, make_turn, rows_of, trajectories_of, weights_hash

from longstride.claims.pilot import check_pilot
from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import Env, TaskSource
from longstride.envs.puzzles import ModularChain
from longstride.envs.sites.tasks import EmbeddedWeb, templates
from longstride.methods import Sample
from longstride.methods.base import ADVANTAGES, REFERENCE
from longstride.methods.losses import KL_COEFFICIENT
from longstride.papers.webrl.method import FailedTasks, NextAndFinal, PerplexityReplay
from longstride.papers.webrl.recipe import CLAIM, RECIPE
from longstride.run.loop import train
from longstride.run.recipe import Recipe

WEB = EmbeddedWeb()


def played(ordinal: int, iteration: int, template: str = "shop/find/color", reward: float = 0.0, **fields: Any):
    task = make_task(str(ordinal), source=f"web/{template.split('/')[0]}", template_id=template)
    return make_trajectory(1, reward, task=task, ordinal=ordinal, iteration=iteration, **fields)


class Past(Collected):
    """What a run has collected, and models with known answers: of each task that the critic is asked about its value
    (None: its start cannot be opened), and of each episode the log-probabilities of its only turn."""

    def __init__(
        self,
        trajectories: Sequence[Trajectory] = (),
        values: Sequence[float | None] = (),
        likely: Mapping[int, list[float]] | None = None,
    ) -> None:
        super().__init__(trajectories)
        self.values, self.likely = values, likely or {}
        self.critic: Any = SimpleNamespace(estimate=self.estimate) if values else None

    def openings(self, tasks: Sequence[Task]) -> list[Trajectory]:
        assert len(tasks) == len(self.values)
        failed = make_trajectory([], stop=StopReason.INFRA_FAILURE)
        return [failed if value is None else make_trajectory([make_turn([])]) for value in self.values]

    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        for t, value in zip(trajectories, self.values, strict=True):
            for turn in t.turns:
                assert value is not None
                turn.estimates["value"] = value

    def logprobs(self, samples: Sequence[Sample]) -> list[list[float]]:
        return [self.likely[s.episode] for s in samples]


@pytest.mark.parametrize(
    ("failed", "near"),
    [
        ("search/color/2", {"search/color/1", "search/color/2"}),  # search/material/2 is held out
        ("search/color/1", {"search/color/1", "search/color/2", "search/material/1", "search/color/1/put"}),
        ("act/put/3", {"act/put/1", "act/put/2", "act/put/3", "act/put/4", "act/put/6", "act/order/3"}),
    ],
)
def test_a_variation_differs_from_the_failed_task_in_one_parameter_at_most_and_is_never_held_out(failed, near):
    rng, source = random.Random(0), WEB.replace(per_kind=7)
    made = [task for _ in range(200) if (task := source.vary(played(0, 1, f"shop/{failed}").task, rng))]
    assert {t.template_id for t in made} == {f"shop/{name}" for name in near}
    assert {t.start for t in made} == {f"/shop/{site}/" for site in range(7)}
    assert len({t.id for t in made}) == len(made) and {t.split for t in made} == {"train"}
    assert source.vary(played(0, 1, "shop/of/another/version").task, rng) is None


def test_new_tasks_come_from_the_failures_of_the_last_iteration_alone_and_from_all_errands_and_kinds_alike():
    past = [
        played(0, 1, "stays/find/view"),  # an older failure
        *(played(n, 2, "shop/act/put/1") for n in range(1, 30)),
        played(30, 2, "shop/find/color"),
        played(31, 2, "forum/find/topic"),
        played(32, 2, "encyclopedia/find/era", reward=1.0),
        played(33, 2, "stays/find/view", stop=StopReason.INFRA_FAILURE),
    ]
    made = FailedTasks().evolve(WEB, 600, random.Random(0), Past(past))
    errands = Counter(t.template_id.rsplit("/", t.template_id.count("/") - 1)[0] for t in made)
    assert set(errands) == {"shop/act", "shop/find", "forum/find"}
    assert errands["shop/act"] == pytest.approx(200, abs=60)
    only_forum = FailedTasks().evolve(WEB.replace(sites=("forum",)), 9, random.Random(0), Past(past))
    assert {t.source for t in only_forum} == {"web/forum"}


def test_where_nothing_failed_tasks_are_those_of_the_source():
    for past in ([], [played(0, 1, reward=1.0)], [played(0, 1, "sheet/find/color")]):
        drawn = FailedTasks(candidates=1).draw(WEB, 9, random.Random(3), Past(past, [0.5] * 9))
        assert (drawn == WEB.sample(random.Random(3), 9)) == (not past or past[0].success)
        assert len(drawn) == 9 and {t.source.removeprefix("web/") for t in drawn} <= set(WEB.sites)


class Letters(TaskSource):
    """A source of one's own: the goal of a variation is that of the task it is made from, and one letter more."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [make_task(f"a{rng.random()}", goal="a") for _ in range(n)]

    def vary(self, task: Task, rng: random.Random) -> Task | None:
        goal = task.goal + rng.choice("xyz")
        return make_task(goal, goal=goal, template_id=task.template_id) if task.goal != "none" else None

    def env(self) -> Env:
        raise AssertionError


def test_ones_own_source_says_how_a_task_is_varied_and_gives_new_ones_where_it_cannot():
    tasks = [
        make_task(g, goal=g, template_id=t) for g, t in (("b", "m/1/2"), ("c", "m/1/3"), ("d", "k"), ("none", "n"))
    ]
    past = [make_trajectory(1, task=task, ordinal=k, iteration=1) for k, task in enumerate(tasks)]
    drawn = FailedTasks(candidates=1).draw(Letters(), 300, random.Random(0), Past(past, [0.5] * 300))
    kinds = Counter(t.template_id for t in drawn)
    assert set(kinds) == {"m/1/2", "m/1/3", "k"} and kinds["k"] == pytest.approx(150, abs=40)
    assert all(len(t.goal) == 2 and t.goal[1] in "xyz" for t in drawn)
    stuck = FailedTasks(candidates=1).draw(Letters(), 3, random.Random(0), Past(past[3:], [0.5] * 3))
    assert [t.goal for t in stuck] == ["a"] * 3
    with pytest.raises(ConfigError, match="kinds of embedded sites, and tasks are Letters"):
        FailedTasks(order=("shop",)).check(Letters())


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([0.04, 0.05, 0.5, 0.75, 0.76, 0.9], [1, 2, 3]),
        # two are in the band, and 0.02 is nearer to it than 0.8
        ([0.8, 0.3, 0.02, 0.6, 0.99, 0.9], [1, 3, 2]),
        ([0.9, 0.8, None, None, None, 0.3], [5, 1, 0]),
        ([None, None, 0.9, None, None, None], [2]),
    ],
)
def test_tasks_in_the_band_of_the_critic_are_played_and_then_the_nearest_to_it(values, drawn):
    curriculum, past = FailedTasks(candidates=2), Past([played(0, 1)], values)
    candidates = curriculum.evolve(WEB, 6, random.Random(1), past)
    assert curriculum.draw(WEB, 3, random.Random(1), past) == [candidates[k] for k in drawn]


def test_the_kind_of_site_changes_in_the_given_order_and_the_last_one_stays():
    curriculum = FailedTasks(candidates=1, order=("stays", "stays", "shop"))
    for iteration, kind in ((1, "stays"), (2, "stays"), (3, "shop"), (9, "shop")):
        past = [played(0, iteration - 1, "stays/find/view")] if iteration > 1 else []
        drawn = curriculum.draw(WEB, 4, random.Random(0), Past(past, [0.5] * 4))
        assert {t.source for t in drawn} == {f"web/{kind}"}


def test_tasks_of_which_no_new_ones_are_made_and_runs_without_a_critic_are_refused():
    with pytest.raises(ConfigError, match="ModularChain has none: write one.*embedded_web"):
        FailedTasks().check(ModularChain())
    with pytest.raises(ConfigError, match="there is no critic: set critic.type=turn_value"):
        FailedTasks().draw(WEB, 1, random.Random(0), Past(values=[]))


def test_replay_adds_twice_as_many_earlier_successes_as_there_are_new_episodes():
    old = [played(n, 1 + n // 5, reward=float(n % 2 == 0)).record() for n in range(20)]
    new = [played(20, 5).record(), played(21, 5, reward=1.0).record()]
    drawn = PerplexityReplay().draw(old + new, 2, random.Random(0), Past())
    assert drawn[4:] == new and all(r.success for r in drawn[:4])
    assert [r.ordinal for r in drawn] == sorted({r.ordinal for r in drawn})
    assert PerplexityReplay(times=0).draw(old + new, 2, random.Random(0), Past()) == new
    assert len(PerplexityReplay(times=99).draw(old + new, 2, random.Random(0), Past())) == 10 + 2


def test_replayed_turns_are_kept_where_their_perplexity_is_between_1_by_095_and_2():
    likely = {
        0: [log(0.5)],  # perplexity 2
        1: [log(0.96)],
        2: [log(0.7)],
        3: [log(0.9), log(0.4)],  # 0.6 on the geometric mean
        4: [log(0.9), log(0.2)],  # 0.42
        5: [log(0.1)],  # new
    }
    past = Past([played(n, 1 + n // 5) for n in range(6)], likely=likely)
    samples = [Sample([0], [1] * len(logps), {ADVANTAGES: [0.1] * len(logps)}, n) for n, logps in likely.items()]
    assert [s.episode for s in PerplexityReplay().select(samples, past)] == [2, 3, 5]


def turn(ids: Sequence[int], value: float) -> Turn:
    return make_turn(ids, estimates={"value": value})


@pytest.mark.parametrize(
    ("reward", "stop", "by_hand"),
    [
        # halves of 0.5 - 0.2 and 1 - 0.2, of 0.6 - 0.5 and 1 - 0.5; the last turn has one advantage
        (1.0, StopReason.ANSWERED, [0.55, 0.3, 0.4]),
        (0.0, StopReason.ANSWERED, [0.05, -0.2, -0.6]),
        (0.0, StopReason.TURNS, [0.05, -0.2, -0.6]),
    ],
)
def test_advantages_are_those_of_equation_9_and_values_learn_the_outcome(reward, stop, by_hand):
    t = make_trajectory([turn([1, 2], 0.2), turn([3], 0.5), turn([4], 0.6)], reward, stop=stop, iteration=2)
    failed = make_trajectory(stop=StopReason.INFRA_FAILURE, iteration=2)
    samples = NextAndFinal()([t, failed])
    assert [s.advantages for s in samples] == [pytest.approx([a] * n) for a, n in zip(by_hand, (2, 1, 1), strict=True)]
    replayed = make_trajectory(1, 1.0, iteration=1)
    assert NextAndFinal().targets([replayed, t, failed]) == [[], [reward] * 3, []]


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_the_loss_has_the_gradient_of_equation_6_by_2_beta(beta):
    """The mean over actions of two tokens each."""
    torch.manual_seed(0)
    reference, advantage, logp = -torch.rand(5, 2), torch.randn(5), (-torch.rand(5, 2)).requires_grad_()
    equation_6 = (beta * (logp - reference).sum(1) - advantage).square().mean() / (2 * beta)
    (expected,) = torch.autograd.grad(equation_6, logp)
    loss = RECIPE.loss.replace(kl={"coefficient": beta})
    samples = [Sample([0], [1, 1], {ADVANTAGES: [a] * 2}) for a in advantage.tolist()]
    shares, denominator = loss.aggregation(samples)
    streams = {name: torch.tensor(of).repeat_interleave(2) for name, of in loss.coefficients(samples).items()}
    assert shares == [1.0] * 5 and set(streams) == {KL_COEFFICIENT}
    streams |= {ADVANTAGES: advantage.repeat_interleave(2), REFERENCE: reference.flatten()}
    terms = loss(logp.flatten(), Batch(streams, torch.arange(5).repeat_interleave(2)))
    (found,) = torch.autograd.grad(terms.loss_P.sum() / denominator, logp)
    torch.testing.assert_close(found, expected)


SMALL = RECIPE.replace(
    iterations=2,
    episodes_per_iteration=12,
    critic={"warmup": 0},
    budget={"turns": 6},
    learner={"lr": 1e-3, "batch_samples": 16, "warmup_steps": 0},
    evaluation={"tasks": 4, "every": 9, "baselines": False},
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("webrl") / "whole"
    train(SMALL, run)
    return run


def test_a_resumed_run_plays_the_same_tasks_and_gives_the_same_bits(whole, tmp_path):
    cut = tmp_path / "cut"
    train(SMALL.replace(iterations=1), cut)
    train(SMALL, cut, resume=True)
    assert [t.task for t in trajectories_of(cut)] == [t.task for t in trajectories_of(whole)]
    assert rows_of(cut, "train") == rows_of(whole, "train")
    assert weights_hash(cut) == weights_hash(whole)


def test_every_task_of_a_run_is_a_variation_of_a_failure_of_the_iteration_before(whole):
    episodes = trajectories_of(whole)
    by_id = {t.id: t for kind in WEB.sites for t in templates(kind)}
    for t in episodes:
        own = by_id[t.task.template_id]
        seeds = [by_id[f.task.template_id] for f in episodes if f.iteration == t.iteration - 1 and not f.success]
        near = [s for s in seeds if (s.kind, s.errand) == (own.kind, own.errand)]
        assert t.iteration == 1 or any(len(set(s.params) ^ set(own.params)) <= 2 for s in near)


def test_arms_of_the_claim_differ_in_what_it_is_about():
    moved = {"curriculum.order": ["stays", "stays", "stays", "shop"]}
    bare = {"replay.times": 0.0, "loss.kl": None}
    changes = {arm: CLAIM.changes(arm) for arm in CLAIM.arms}
    assert changes == {"moving": moved, "moving_bare": moved | bare, "still": {}, "still_bare": bare}
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and {t.source for t in arm.tasks.held_out(9)} == {"web/stays"}


def test_the_claim_can_be_frozen_and_read_at_equal_cost() -> None:
    check_pilot(CLAIM)
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and arm.iterations >= 2 * arm.evaluation.every
