"""Planning: groups, stages, task curricula, the samplers of DAPO and DARS, and budgets by iteration and difficulty."""

import random
from dataclasses import replace
from typing import ClassVar

import pytest
from helpers import (
    Collected,
    make_planner,
    make_task,
    make_trajectory,
    played,
    run_stages,
    tiny_policy,
    trajectories_of,
    weights_hash,
)
from one_page import OnePage, OnePageTasks, make_recipe, save_model

from longstride.core.budget import Budget, StopReason
from longstride.core.config import resolve
from longstride.core.content import text_in
from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, by_trial
from longstride.curriculum import BudgetSchedule, Fixed, OnPlateau, TaskCurriculum
from longstride.curriculum.schedules import PerDifficulty, StepList
from longstride.envs.base import Observation, TaskSource
from longstride.envs.puzzles import Mastermind, ModularChain
from longstride.envs.puzzles.base import PuzzleSource
from longstride.methods import MixedGroups, OnPolicy
from longstride.methods.advantages import GroupRelative
from longstride.papers.dars.method import DifficultyAdaptive
from longstride.papers.grpo import recipe as grpo
from longstride.rewards import TaskReward
from longstride.rollout import (
    DynamicSampling,
    FullHistory,
    Groups,
    LanguagePlayer,
    PastTurn,
    Plan,
    Pool,
    ScriptedPlayer,
    Trial,
    WithRivals,
)
from longstride.rollout.planning import at_once
from longstride.rollout.playback import play_back
from longstride.run.loop import train
from longstride.run.recipe import Recipe

CHAINS = ModularChain()


def test_groups_are_named_by_their_first_ordinal_and_share_task_and_seed():
    (stage,), episodes = run_stages(Groups().plan(make_planner(CHAINS, first=16)), played)
    assert [p.ordinal for p in stage] == list(range(16, 24)) == [t.ordinal for t in episodes]
    assert [p.group for p in stage] == [16] * 4 + [20] * 4
    for k in (0, 4):
        group = stage[k : k + 4]
        assert len({p.task.id for p in group}) == len({p.seed for p in group}) == 1
    assert stage[0].seed != stage[4].seed


def test_one_stage_returns_what_it_came_to():
    stages = at_once(make_planner(CHAINS).group(CHAINS.held_out(1)[0]))
    assert [t.ordinal for t in run_stages(stages, played)[1]] == [0, 1, 2, 3]


def test_a_group_begins_as_it_is_asked_to():
    past = PastTurn("go", (4, 5))
    group = make_planner(CHAINS).group(make_task(), 3, prefix=[1], role="step", history=[past], marks=[[7, 8], [9]])
    assert [(p.prefix, p.role, p.history, p.marks) for p in group] == [((1,), "step", (past,), ((7, 8), (9,)))] * 3


def test_further_episodes_of_a_group_begin_as_it_began():
    planner = make_planner(CHAINS)
    (plan,) = planner.group(make_task(), 1, prefix=[1, 2])
    (more,) = planner.more(played(plan, [3]), 1, role="more")
    assert (more.ordinal, more.group, more.seed, more.prefix, more.role) == (1, 0, plan.seed, (1, 2), "more")
    t = played(plan, [3])
    t.turns.insert(0, t.turns[0])
    t.history = 1
    (later,) = planner.more(t, 1)
    assert later.history == (PastTurn("text", (1, 2, 3)),) and later.prefix == (1, 2)


class Seeded(OnePage):
    """Shows the seed that it began with."""

    async def reset(self, task: Task, seed: int) -> Observation:
        return Observation(f"home {seed}")


def test_a_group_that_goes_on_from_an_episode_begins_in_its_environment_and_samples_as_any_other() -> None:
    (plan,) = make_planner(CHAINS).group(make_task(), 1)
    first, planner, source = played(plan, [3]), make_planner(CHAINS, first=1), OnePageTasks()
    task, past = source.held_out(1)[0], [PastTurn("red", (1,))]
    others = planner.group(task, 2, history=past)
    group = make_planner(CHAINS, first=1).group(task, 2, history=past, like=first)
    assert [replace(p, env_seed=None) for p in group] == others, "nothing else depends on where it goes on from"
    assert {p.env_seed for p in group} == {first.seed} != {p.seed for p in group}
    found = Pool(ScriptedPlayer(lambda _: "home"), Seeded, TaskReward()).run(group)
    found = [Trajectory.from_json(t.to_json()) for t in found]
    assert {text_in(t.turns[0].observation) for t in found} == {f"home {first.seed}"}
    # and so does whatever goes on from them
    again = [*planner.group(task, 1, like=found[0]), *planner.more(found[0], 1), planner.onward(found[0], 1)]
    assert {p.env_seed for p in [*again, planner.carry_on(found[0], 1)]} == {first.seed}
    assert not play_back(found[0], Seeded, TaskReward())[1]


def test_the_curriculum_says_which_tasks_are_drawn_of_what_came_before():
    class Unsolved(TaskCurriculum):
        adaptive: ClassVar[bool] = True

        def draw(self, source: TaskSource, n: int, rng: random.Random, experience: Experience) -> list[Task]:
            solved = {record.task.id for record in experience.records if record.success}
            return [t for t in source.held_out(n + len(solved)) if t.id not in solved][:n]

    source = OnePageTasks()
    before = [played(p, reward=1.0) for p in make_planner(source).group(source.held_out(1)[0])]
    planner = make_planner(source, curriculum=Unsolved(), experience=Collected(before))
    assert [t.id for t in planner.tasks(2)] == ["test-1", "test-2"]


def test_dynamic_sampling_refills_until_enough_groups_are_mixed():
    # of the first two groups one is mixed, the one after it is not, the next is
    mixed = {0, 12}
    plans, episodes = run_stages(
        DynamicSampling().plan(make_planner(CHAINS, replay=MixedGroups())),
        lambda p: played(p, reward=p.group in mixed and p.ordinal % 2),
    )
    assert [len(stage) for stage in plans] == [8, 4, 4]
    assert [t.ordinal for t in episodes] == list(range(16))


def test_a_companion_plays_the_last_episodes_of_each_group():
    (plans,), _ = run_stages(WithRivals(companion="guide", episodes=1).plan(make_planner(CHAINS)), played)
    assert [p.role for p in plans] == ["", "", "", "guide"] * 2 and {p.group for p in plans} == {0, 4}
    with pytest.raises(ConfigError, match="gives 4 episodes of each group of 4 to 'earlier': set"):
        next(WithRivals().plan(make_planner(CHAINS)))
    with pytest.raises(ConfigError, match="lets 'guide' play, and companions has nobody: set companions.guide.model"):
        grpo.RECIPE.replace(sampler=WithRivals(companion="guide"))


def test_dynamic_sampling_gives_up_after_its_rounds():
    planner, solved = make_planner(CHAINS, replay=MixedGroups()), lambda p: played(p, reward=1.0)
    plans, episodes = run_stages(DynamicSampling(rounds=3).plan(planner), solved)
    assert [len(stage) for stage in plans] == [8, 8, 8] and len(episodes) == 24


def test_dynamic_sampling_counts_tasks_and_not_the_groups_at_each_place_of_their_trials():
    planner = make_planner(CHAINS, episodes=24, size=2, replay=MixedGroups(), trial=Trial(episodes=3))
    groups: list[int] = []

    def mixed_in_the_first_task(plan: Plan) -> Trajectory:
        groups.append(plan.group) if plan.group not in groups else None
        return played(plan, reward=float(plan.group in groups[:3] and plan.ordinal % 2))

    plans, _ = run_stages(DynamicSampling(rounds=2).plan(planner), mixed_in_the_first_task)
    assert [len(stage) for stage in plans] == [24, 18]


def test_dynamic_sampling_is_done_at_once_where_replay_takes_any_group():
    plans, _ = run_stages(DynamicSampling().plan(make_planner(CHAINS)), lambda p: played(p, reward=1.0))
    assert [len(stage) for stage in plans] == [8]


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
    plans, episodes = run_stages(
        DifficultyAdaptive(most=6).plan(make_planner(CHAINS)),
        lambda p: played(p, reward=float(p.group == 4 or p.ordinal == 0)),
    )
    assert [(p.ordinal, p.group) for p in plans[1]] == [(8, 0), (9, 0)]
    assert {p.seed for p in plans[1]} == {plans[0][0].seed} and len(episodes) == 10


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


GROUPED = {"group_size": 5, "replay": OnPolicy(), "credit": GroupRelative(), "iterations": 2}


def test_a_run_in_stages_stores_all_of_them_and_can_be_trained_again_from_what_it_stored(model, tmp_path):
    recipe = make_recipe(model, sampler=DifficultyAdaptive(most=9), **GROUPED)
    train(recipe, tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    assert len(episodes) > 20 and [t.ordinal for t in episodes] == list(range(len(episodes)))
    train(recipe.replace(stored_run=str(tmp_path / "run")), tmp_path / "again")
    ids = [[turn.sampled_ids for t in trajectories_of(tmp_path / n) for turn in t.turns] for n in ("run", "again")]
    assert ids[0] == ids[1] and weights_hash(tmp_path / "run") == weights_hash(tmp_path / "again")


class Easiest(TaskCurriculum):
    """The same task again and again."""

    def draw(self, source: TaskSource, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        return source.held_out(1) * n


ON_PLATEAU = OnPlateau(start=1, limit=5, step=2, patience=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": DynamicSampling()},
        {"curriculum": Easiest()},
        {"budget": BudgetSchedule(turns=PerDifficulty(easy=ON_PLATEAU, medium=Fixed(limit=1), hard=Fixed(limit=1)))},
    ],
)
def test_whatever_depends_on_what_came_before_is_refused_where_rollouts_run_ahead(model, changes):
    recipe = make_recipe(model, **GROUPED, **changes)
    with pytest.raises(ConfigError, match=r"pool\.staleness to 0, not 1"):
        recipe.replace(pool={"staleness": 1})


def test_every_limit_of_the_budget_follows_its_schedule_and_stands_in_the_rows(model, tmp_path):
    budget = BudgetSchedule(
        turns=StepList(steps=((1, 2), (2, 4))), tokens=StepList(steps=((1, 3), (2, 5))), turn_tokens=2, tool_calls=3
    )
    train(make_recipe(model, iterations=2, budget=budget, learner={"epochs": 0}), tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    given = [(t.budget.turns, t.budget.tokens, t.budget.turn_tokens, t.budget.tool_calls) for t in episodes]
    assert given == [(2, 3, 2, 3)] * 10 + [(4, 5, 2, 3)] * 10
    assert max(t.sampled_tokens for t in episodes[:10]) <= 3 < max(t.sampled_tokens for t in episodes[10:]) <= 5
    assert max(len(turn.sampled_ids) for t in episodes for turn in t.turns) == 2


def test_a_task_has_the_budget_of_its_difficulty():
    by_difficulty = PerDifficulty(easy=Fixed(limit=3), medium=Fixed(limit=5), hard=Fixed(limit=9))
    planner = make_planner(CHAINS, budget=BudgetSchedule(turns=by_difficulty))
    tasks = [make_task(difficulty=d) for d in ("easy", "medium", "hard")]
    assert [planner.group(task, 1)[0].budget.turns for task in tasks] == [3, 5, 9]


def test_objectives_change_credit_and_loss_from_their_iteration_on():
    changes = ["objectives=[{after=3, credit={type='group_relative', normalize='none'}}]"]
    recipe = resolve(Recipe, grpo.RECIPE, changes)
    assert recipe.at(3).credit == recipe.credit and recipe.at(4).credit == GroupRelative(normalize="none")
    assert recipe.at(4).loss == recipe.loss
    with pytest.raises(ConfigError, match="must ascend"):
        resolve(Recipe, grpo.RECIPE, ["objectives=[{after=3}, {after=3}]"])


class TestPrefix:
    """An episode that begins in the middle of what the policy says, with an engine that has a cache."""

    policy = tiny_policy("Thought: 3 + 4 = 0 Action: answer guess digits", seed=2)

    def play(self, plan: Plan, source: PuzzleSource = CHAINS) -> Trajectory:
        engine = grpo.RECIPE.engine.make(self.policy, 0, [grpo.RECIPE.sampling])
        player = LanguagePlayer(engine, self.policy.chat, FullHistory(), grpo.RECIPE.sampling)
        return Pool(player, source.env, TaskReward()).run([plan])[0]

    def planner(self):
        return make_planner(CHAINS, budget=Budget(turns=1, turn_tokens=32), chat=self.policy.chat)

    def test_it_is_read_and_not_sampled(self):
        begun = tuple(self.policy.chat.encode("Thought: 3 + 4"))
        (plan,) = self.planner().group(CHAINS.held_out(3)[1], 1, prefix=begun, role="guided")
        t = self.play(plan)
        turn = t.turns[0]
        assert turn.prompt_ids[-len(begun) :] == t.prefix == list(begun) and t.role == "guided"
        assert turn.text.startswith("Thought: 3 + 4") and len(turn.sampled_ids) == len(turn.behaviour_logprobs)
        assert len(begun) + len(turn.sampled_ids) <= 32
        assert Trajectory.from_json(t.to_json()).prefix == t.prefix
        assert play_back(t, CHAINS.env, TaskReward())[1] == []

    def test_a_prefix_as_long_as_the_budget_leaves_one_token(self):
        (plan,) = self.planner().group(CHAINS.held_out(1)[0], 1, prefix=range(5, 37))
        assert len(self.play(plan).turns[0].sampled_ids) == 1

    def test_what_was_begun_stands_in_later_prompts(self):
        plan = Plan(Mastermind().held_out(1)[0], 0, 0, Budget(turns=2, turn_tokens=4), prefix=(7, 8, 9))
        first, second = self.play(plan, Mastermind()).turns
        assert second.prompt_ids[: len(first.prompt_ids) + 1] == first.prompt_ids + first.sampled_ids[:1]


class TestTrials:
    def test_a_group_is_of_the_episodes_at_one_place_of_their_trials(self):
        planner = make_planner(CHAINS, first=24, episodes=12, size=2, trial=Trial(episodes=3))
        ((*plans,),), _ = run_stages(Groups().plan(planner), played)
        assert [p.ordinal for p in plans] == list(range(24, 36))
        assert [p.after for p in plans[:6]] == [(), (24,), (24, 25), (), (27,), (27, 28)]
        assert [p.group for p in plans] == [24, 25, 26] * 2 + [30, 31, 32] * 2
        for of_task in (plans[:6], plans[6:]):
            assert len({p.task.id for p in of_task}) == len({p.seed for p in of_task}) == 1

    def test_episodes_of_a_trial_may_begin_anew_and_those_of_a_group_begin_alike(self):
        planner = make_planner(CHAINS, episodes=4, size=2, trial=Trial(episodes=2, start="new"))
        plans = planner.group(make_task())
        assert plans[0].seed == plans[2].seed != plans[1].seed == plans[3].seed

    def test_one_episode_is_a_trial_and_is_planned_as_without(self):
        plans, same = (make_planner(CHAINS, trial=trial).group(make_task()) for trial in (None, Trial()))
        assert plans == same and all(p.after == () and p.first == p.ordinal for p in plans)

    def test_a_sampler_that_adds_episodes_to_a_group_is_refused(self):
        planner = make_planner(CHAINS, episodes=4, size=2, trial=Trial(episodes=2))
        with pytest.raises(ConfigError, match="plays no trials; set trial.episodes=1"):
            planner.more(make_trajectory(), 1)

    @pytest.mark.parametrize(
        "how",
        [
            {"size": 3},
            {"prefix": [1]},
            {"role": "trace"},
            {"history": [PastTurn("back", (1,))]},
            {"like": make_trajectory()},
        ],
    )
    def test_a_sampler_whose_groups_begin_otherwise_is_refused(self, how):
        planner = make_planner(CHAINS, episodes=4, size=2, trial=Trial(episodes=2))
        assert len(planner.group(make_task(), size=2)) == 4
        with pytest.raises(ConfigError, match="plays no trials; set trial.episodes=1"):
            planner.group(make_task(), **how)

    def test_trajectories_are_gathered_by_trial_without_failed_and_unplayed_ones(self):
        stops = {2: StopReason.INFRA_FAILURE, 5: StopReason.UNPLAYED}
        after = {0: (), 3: (), 1: (0,), 4: (3,), 2: (0, 1), 5: (3, 4), 6: ()}
        ts = [make_trajectory(ordinal=n, after=a, stop=stops.get(n, StopReason.TURNS)) for n, a in after.items()]
        assert [[t.ordinal for t in trial] for trial in by_trial(ts)] == [[0, 1], [3, 4], [6]]

    def test_a_recipe_plays_whole_trials_and_no_strategy_that_plays_otherwise(self):
        trial = {"episodes": 3}
        with pytest.raises(ConfigError, match=r"multiple of group_size \(4\) times trial.episodes \(3\)"):
            grpo.RECIPE.replace(trial=trial, group_size=4, episodes_per_iteration=32)
        with pytest.raises(ConfigError, match="strategy best_of_2.* plays episodes of its own"):
            evaluation = {"strategies": [{"type": "best_of", "attempts": 2}]}
            grpo.RECIPE.replace(trial=trial, group_size=4, episodes_per_iteration=24, evaluation=evaluation)
