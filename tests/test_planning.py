"""Planning: groups, stages, and the samplers' rules."""

import json
from typing import Any

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Mastermind, ModularChain
from longstride.envs.puzzles.base import PuzzleSource
from longstride.methods import GroupRelative
from longstride.models.load import load_policy
from longstride.recipes import grpo
from longstride.rollout import LanguagePlayer, Plan, Pool
from longstride.rollout.context import KeepAll
from longstride.rollout.planning import DifficultyAdaptive, DynamicSampling, Groups, Planner, at_once
from longstride.rollout.replay import replay
from longstride.rollout.store import TrajectoryStore
from longstride.run.loop import train
from longstride.run.recipe import Recipe

CHAINS = ModularChain()


def planner(first=0, episodes=8, size=4, chat: Any = None) -> Planner:
    budget = Budget(turns=1, turn_tokens=64)
    return Planner(CHAINS, lambda task: budget, chat, 0, 1, first, episodes, size)


def played(plan, reward):
    return Trajectory(plan.task, plan.ordinal, plan.seed, plan.budget, stop=StopReason.ANSWERED, reward=reward,
                      group=plan.group)  # fmt: skip


def outcome(stages, rewards):
    """Sends each stage's plans back with rewards by a function of the plan; all plans, and what is returned."""
    plans, stage = [], next(stages)
    while True:
        plans.append(stage)
        try:
            stage = stages.send([played(p, rewards(p)) for p in stage])
        except StopIteration as e:
            return plans, e.value


def test_groups_are_named_by_their_first_ordinal_and_share_task_and_seed():
    (stage,), episodes = outcome(Groups().stages(planner(first=16)), lambda p: 0.0)
    assert [p.ordinal for p in stage] == list(range(16, 24)) == [t.ordinal for t in episodes]
    assert [p.group for p in stage] == [16] * 4 + [20] * 4
    assert all(
        len({f(p) for p in stage[k : k + 4]}) == 1 for k in (0, 4) for f in (lambda p: p.task.id, lambda p: p.seed)
    )


def test_one_stage_returns_what_it_came_to():
    stages = at_once(planner().group(CHAINS.held_out(1)[0]))
    assert [t.ordinal for t in outcome(stages, lambda p: 1.0)[1]] == [0, 1, 2, 3]


def test_dynamic_sampling_refills_until_enough_groups_are_mixed():
    # of the first two groups one is mixed, the one after it is not, the next is
    mixed = {0, 12}
    plans, episodes = outcome(DynamicSampling().stages(planner()), lambda p: float(p.group in mixed and p.ordinal % 2))
    assert [len(stage) for stage in plans] == [8, 4, 4]
    assert [t.ordinal for t in episodes] == list(range(16))


def test_dynamic_sampling_gives_up_after_its_rounds():
    plans, episodes = outcome(DynamicSampling(rounds=3).stages(planner()), lambda p: 1.0)
    assert [len(stage) for stage in plans] == [8, 8, 8] and len(episodes) == 24


@pytest.mark.parametrize(
    ("target", "solved", "extra"),
    # DARS with 8 episodes: shares of 1/16 (none solved), 1/8, 1/4, 3/8, 1/2
    [("equal", n, e) for n, e in ((0, 27), (1, 11), (2, 3), (3, 1), (4, 0), (8, 0))]
    + [("hardness", n, e) for n, e in ((0, 56), (1, 24), (2, 8), (3, 3), (4, 0), (8, 0))],
)
def test_hard_groups_get_as_many_more_as_the_paper_says(target, solved, extra):
    assert DifficultyAdaptive(target=target, most=64).extra(8, solved) == extra
    assert DifficultyAdaptive(target=target, most=32).extra(8, solved) == min(extra, 24)


@pytest.mark.parametrize("target", ["equal", "hardness"])
def test_what_is_added_raises_the_sum_of_advantages_to_its_target(target):
    for solved in (1, 2, 3):
        n, a = 8 + DifficultyAdaptive(target=target, most=10_000).extra(8, solved), solved / 8
        assert n * 2 * a * (1 - a) == pytest.approx(8 * (0.5 if target == "equal" else 1 - a), abs=2 * a * (1 - a))


def test_a_second_stage_joins_the_groups_of_the_first():
    # one group has a success in four, the other is solved
    plans, episodes = outcome(
        DifficultyAdaptive(most=6).stages(planner()), lambda p: float(p.group == 4 or p.ordinal == 0)
    )
    assert [(p.ordinal, p.group) for p in plans[1]] == [(8, 0), (9, 0)]
    assert {p.seed for p in plans[1]} == {plans[0][0].seed} and len(episodes) == 10


SMALL = ["iterations=2", "episodes=8", "group=4", "evaluation.tasks=3", "evaluation.every=2",
         "tasks={type='modular_chain'}", "learner.batch_samples=16"]  # fmt: skip


def rows(run, kind):
    return [r for r in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()) if r["kind"] == kind]


def test_a_staged_run_stores_all_its_stages_and_resumes_to_the_same_numbers(tmp_path):
    recipe = resolve(Recipe, grpo.RECIPE, [*SMALL, "sampler={type='difficulty_adaptive', most=6}"])
    train(recipe, tmp_path / "whole")
    train(resolve(Recipe, recipe, ["iterations=1"]), tmp_path / "cut")
    train(recipe, tmp_path / "cut", resume=True)
    whole, cut = (TrajectoryStore(tmp_path / name / "trajectories.jsonl") for name in ("whole", "cut"))
    episodes = list(whole.read(range(len(whole))))
    assert len(episodes) > 16 and [t.ordinal for t in episodes] == list(range(len(whole)))
    assert [t.turns[0].sampled_ids for t in episodes] == [t.turns[0].sampled_ids for t in cut.read(range(len(cut)))]
    assert [r["loss"] for r in rows(tmp_path / "whole", "train")] == [
        r["loss"] for r in rows(tmp_path / "cut", "train")
    ]


def test_a_staged_run_can_be_trained_again_from_what_it_stored(tmp_path):
    recipe = resolve(Recipe, grpo.RECIPE, [*SMALL, "sampler={type='difficulty_adaptive', most=6}"])
    train(recipe, tmp_path / "run")
    train(resolve(Recipe, recipe, [f"stored={tmp_path / 'run'}"]), tmp_path / "again")
    losses = [[r["loss"] for r in rows(tmp_path / name, "train")] for name in ("run", "again")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_later_stages_are_refused_where_rollouts_run_ahead():
    with pytest.raises(ConfigError, match=r"pool\.staleness to 0, not 1"):
        resolve(Recipe, grpo.RECIPE, ["sampler={type='dynamic_sampling'}", "pool.staleness=1"])


def test_token_schedules_bound_what_training_episodes_sample(tmp_path):
    changes = ["iterations=2", "tokens={type='staged', stages=[3, 5], every=2}", "learner.epochs=0"]
    train(resolve(Recipe, grpo.RECIPE, [*SMALL, *changes]), tmp_path / "run")
    store = TrajectoryStore(tmp_path / "run" / "trajectories.jsonl")
    longest = [max(t.sampled_tokens for t in store.read(range(k, k + 8))) for k in (0, 8)]
    assert longest == [3, 5]
    assert [r["tokens"]["easy"] for r in rows(tmp_path / "run", "train")] == [3, 5]


def test_stages_change_the_objective_from_their_iteration_on():
    recipe = resolve(Recipe, grpo.RECIPE, ["stages=[{after=3, credit={type='group_relative', scale='none'}}]"])
    assert recipe.at(3).credit == recipe.credit and recipe.at(4).credit == GroupRelative(scale="none")
    assert recipe.at(4).loss == recipe.loss
    with pytest.raises(ConfigError, match="must ascend"):
        resolve(Recipe, grpo.RECIPE, ["stages=[{after=3}, {after=3}]"])


@pytest.fixture(scope="module")
def policy():
    return load_policy("base-puzzles")


class TestPrefix:
    """An episode that begins in the middle of what the policy says."""

    def play(self, policy, plan, source: PuzzleSource = CHAINS):
        engine = grpo.RECIPE.engine.make(policy, 0, [grpo.RECIPE.sampling])
        player = LanguagePlayer(engine, policy.chat, KeepAll(), grpo.RECIPE.sampling)
        return Pool(player, source.env, grpo.RECIPE.reward).run([plan])[0]

    def test_it_is_read_said_and_not_sampled(self, policy):
        task = CHAINS.held_out(3)[1]
        begun = tuple(policy.tokenizer.encode("Thought: 3 + 4", add_special_tokens=False))
        (plan,) = planner(chat=policy.chat).group(task, 1, prefix=begun, role="guided")
        t = self.play(policy, plan)
        turn = t.turns[0]
        assert turn.prompt_ids[-len(begun) :] == t.prefix == list(begun) and t.role == "guided"
        assert turn.text.startswith("Thought: 3 + 4") and len(turn.sampled_ids) == len(turn.logprobs)
        assert len(begun) + len(turn.sampled_ids) <= 64
        assert Trajectory.from_json(t.to_json()).prefix == t.prefix
        assert replay(t, CHAINS.env, grpo.RECIPE.reward)[1] == []

    def test_a_prefix_of_all_that_was_to_be_said_leaves_one_token(self, policy):
        (plan,) = planner(chat=policy.chat).group(CHAINS.held_out(1)[0], 1, prefix=range(5, 69))
        assert len(self.play(policy, plan).turns[0].sampled_ids) == 1

    def test_what_was_begun_stands_in_later_prompts(self, policy):
        task = Mastermind().held_out(1)[0]
        plan = Plan(task, 0, 0, Budget(turns=2, turn_tokens=4), prefix=(7, 8, 9))
        first, second = self.play(policy, plan, Mastermind()).turns
        assert second.prompt_ids[: len(first.prompt_ids) + 1] == first.prompt_ids + first.sampled_ids
