"""Context policies, the pool on one player, failures, deadlines, playing back and the summary."""

import asyncio
import json
import random
import time
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from helpers import SLOW, content, make_task, make_trajectory, make_turn
from line_world import CHAT, END, Line, LineEngine, ids, language, plan, play, script, walk

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.content import text_in
from longstride.core.errors import ConfigError, EnvFailure, RunError
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step
from longstride.rewards import TaskReward
from longstride.rollout import (
    BudgetInView,
    ContextPolicy,
    FullHistory,
    LatestObservation,
    Past,
    PastTurn,
    Pool,
    RecentObservations,
    ScriptedPlayer,
    SpentBudget,
    TrialHistory,
    summarise,
)
from longstride.rollout.deadline import within
from longstride.rollout.playback import play_back


@pytest.fixture(autouse=True)
def _no_environments():
    Line.opened.clear()


class TestContext:
    a, b = [*ids("red"), END], [*ids("blue"), END]

    def render(self, policy, observations, sampled):
        return policy.render(CHAT, Past("g", observations, sampled))

    def test_a_full_history_puts_the_pieces_one_behind_the_other(self):
        assert self.render(FullHistory(), ["x", "y", "z"], [self.a, self.b]) == [
            *CHAT.head("g"), *CHAT.observation("x", first=True), *self.a, *CHAT.observation("y"), *self.b,
            *CHAT.observation("z"),
        ]  # fmt: skip

    def test_recent_observations_replace_older_ones_and_keep_every_action(self):
        got = self.render(RecentObservations(keep=2, placeholder="omitted"), ["x", "y", "z"], [self.a, self.b])
        assert got == [
            *CHAT.head("g"), *CHAT.observation("omitted", first=True), *self.a, *CHAT.observation("y"), *self.b,
            *CHAT.observation("z"),
        ]  # fmt: skip

    def test_with_enough_recent_observations_the_history_is_full(self):
        history = ["x", "y"], [self.a]
        assert self.render(RecentObservations(keep=2), *history) == self.render(FullHistory(), *history)
        assert self.render(RecentObservations(keep=1), *history) != self.render(FullHistory(), *history)

    def test_the_latest_observation_stands_alone_behind_the_goal(self):
        got = self.render(LatestObservation(), ["x", "y"], [self.a])
        assert got == CHAT.head("g") + CHAT.observation("y", first=True)

    @pytest.mark.parametrize("cut", [ids("red"), []])
    def test_a_turn_that_was_cut_is_closed_in_the_prompt(self, cut):
        got = self.render(FullHistory(), ["x", "y"], [cut])
        assert got == [*CHAT.head("g"), *CHAT.observation("x", first=True), *cut, END, *CHAT.observation("y")]

    def test_rendering_changes_neither_history_nor_the_chats_pieces(self):
        class Pieces:
            end_ids, close = CHAT.end_ids, CHAT.close
            goal, page = [1], [2]

            def head(self, goal):
                return self.goal

            def observation(self, text, first=False, past=False):
                return self.page

            def spoken(self, ids):
                return ids if ids[-1] in self.end_ids else [*ids, *self.close]

        chat, sampled = Pieces(), [list(ids("red")), [*ids("blue"), END]]
        before = [list(turn) for turn in sampled]
        RecentObservations().render(cast(Any, chat), Past("g", ["x", "y", "z"], sampled))
        assert (chat.goal, chat.page, sampled) == ([1], [2], before)

    def test_a_full_history_grows_by_what_was_sampled_and_seen(self):
        trajectory = play(language(context=FullHistory()), plan(3, turns=8))[0]
        assert trajectory.length > 2
        for before, after in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            old = before.prompt_ids + before.sampled_ids
            assert after.prompt_ids[: len(old)] == old

    def test_a_policy_is_built_from_data(self):
        assert build(ContextPolicy, {"type": "recent_observations", "keep": 3}) == RecentObservations(keep=3)
        with pytest.raises(ConfigError):
            build(ContextPolicy, {"type": "recent_observations", "keep": 0})


class TestBudgetInView:
    a, b = [*ids("red"), END], [*ids("blue"), END]
    budget = Budget(turns=9, tokens=20)

    def past(self, **fields: Any) -> Past:
        spent = [SpentBudget(0, 0, 0), SpentBudget(1, 2, 1), SpentBudget(2, 4, 1)]
        return Past("g", ["x", "y", "z"], [self.a, self.b], budget=self.budget, spent=spent, **fields)

    def test_an_observation_ends_with_what_was_left_when_it_came(self):
        policy = BudgetInView(within=FullHistory(), of=("turns", "tokens", "tool_calls"))
        assert policy.render(CHAT, self.past()) == [
            *CHAT.head("g"),
            *CHAT.observation("x\n9 of 9 turns left\n20 of 20 tokens left", first=True), *self.a,
            *CHAT.observation("y\n8 of 9 turns left\n18 of 20 tokens left"), *self.b,
            *CHAT.observation("z\n7 of 9 turns left\n16 of 20 tokens left"),
        ]  # fmt: skip

    def test_another_policy_says_which_observations_are_read(self):
        policy = BudgetInView(within=RecentObservations(keep=1), words="{left} of {limit}")
        seen = ["omitted", "omitted", "z\n7 of 9"]
        shown = Past("g", seen, [self.a, self.b])
        assert policy.render(CHAT, self.past()) == FullHistory().render(CHAT, shown)

    def test_without_a_budget_nothing_is_said(self):
        past = Past("g", ["x", "y"], [self.a])
        assert BudgetInView(within=FullHistory()).render(CHAT, past) == FullHistory().render(CHAT, past)

    def test_in_an_episode_every_turn_reads_its_own_budget_and_what_was_sampled_of_it(self):
        context = BudgetInView(within=FullHistory(), of=("turns", "tokens"), words="{left} of {limit}")
        trajectory = play(language(context=context), plan(3, turns=6, budget={"tokens": 90}))[0]
        sampled = 0
        assert trajectory.length > 2
        for k, turn in enumerate(trajectory.turns):
            lines = CHAT.observation(f"{text_in(turn.observation)}\n{6 - k} of 6\n{90 - sampled} of 90", first=k == 0)
            assert turn.prompt_ids[-len(lines) :] == lines and " of 6" not in text_in(turn.observation)
            sampled += len(turn.sampled_ids)
        for before, after in pairwise(trajectory.turns):
            old = before.prompt_ids + before.sampled_ids
            assert after.prompt_ids[: len(old)] == old

    def test_an_episode_that_goes_on_reads_the_budget_that_it_has(self):
        player = language(context=BudgetInView(within=FullHistory(), words="{left} of {limit}"))
        first = play(player, plan(3, turns=2))[0]
        past = tuple(PastTurn(turn.text, tuple(turn.ids)) for turn in first.turns)
        longer = play(player, replace(plan(3, turns=5), history=past))[0]
        line = CHAT.observation(f"{text_in(longer.turns[2].observation)}\n3 of 5")
        assert longer.history == 2 and longer.turns[2].prompt_ids[-len(line) :] == line

    @pytest.mark.parametrize(
        "words", ["some turns left", "{left} of {all}", "{left.real}", "{left!r}", "{left:>9}", "{left"]
    )
    def test_words_that_do_not_say_what_is_left_are_refused(self, words):
        with pytest.raises(ConfigError, match=r"words say \{left\}"):
            build(ContextPolicy, {"type": "budget_in_view", "words": words})


class TestTrialHistory:
    a, b = [*ids("red"), END], [*ids("blue"), END]

    def trial(self, **fields):
        turns = [make_turn(self.a, observation="x", reward=1.0), make_turn(self.b, observation="y", reward=-0.5)]
        return make_trajectory(turns, 2.5, after=(3,), final="over", **fields)

    def test_an_earlier_episode_stands_before_this_one_with_what_it_earned_and_came_to(self):
        past = Past("g", ["z", "y"], [self.b], [0.25], [self.trial()])
        assert TrialHistory().render(CHAT, past) == [
            *CHAT.head("g"), *CHAT.observation("x", first=True), *self.a,
            *CHAT.observation("y\nreward: 1"), *self.b,
            *CHAT.observation("over\nreward: -0.5\nepisode 2: done, reward 2.5\nz"), *self.b,
            *CHAT.observation("y\nreward: 0.25"),
        ]  # fmt: skip

    def test_a_prompt_continues_that_of_the_episode_before_and_what_was_sampled(self):
        now = TrialHistory().render(CHAT, Past("g", ["z"], [], [], [self.trial()]))
        last = TrialHistory().render(CHAT, Past("g", ["x", "y"], [self.a], [1.0])) + self.b
        assert now[: len(last)] == last

    def test_rewards_and_outcomes_can_be_withheld_and_older_episodes_forgotten(self):
        past = Past("g", ["z"], [], [], [self.trial(), self.trial()])
        quiet, whole = (TrialHistory(rewards=r, episodes=e) for r, e in ((False, 1), (True, None)))
        assert quiet.render(CHAT, past) == [
            *CHAT.head("g"), *CHAT.observation("x", first=True), *self.a, *CHAT.observation("y"), *self.b,
            *CHAT.observation("over\nepisode 2: over\nz"),
        ]  # fmt: skip
        assert whole.render(CHAT, past).count(self.a[0]) == 2

    def test_another_policy_says_what_is_read_of_the_whole(self):
        policy = TrialHistory(within=RecentObservations(keep=1))
        got = policy.render(CHAT, Past("g", ["z"], [], [], [self.trial()]))
        assert got[: len(CHAT.head("g"))] == CHAT.head("g")
        assert got.count(ids("omitted")[0]) == 2 and got.count(ids("x")[0]) == got.count(ids("y")[0]) == 0

    def test_a_budget_is_seen_around_a_trial_and_not_within(self):
        with pytest.raises(ConfigError, match="put budget_in_view around it"):
            build(ContextPolicy, {"type": "trial_history", "within": {"type": "budget_in_view"}})
        BudgetInView(within=TrialHistory())

    def test_how_turns_and_episodes_are_said_is_a_setting(self):
        policy = TrialHistory(turn="{reward:g}", outcome="next")
        assert policy.render(CHAT, Past("g", ["z"], [], [], [self.trial()])) == [
            *CHAT.head("g"), *CHAT.observation("x", first=True), *self.a,
            *CHAT.observation("y\n1"), *self.b, *CHAT.observation("over\n-0.5\nnext\nz"),
        ]  # fmt: skip

    def test_the_parts_of_a_prompt_are_what_was_read_and_said_in_turn(self):
        past = Past("g", ["z", "y"], [self.b], [0.25], [self.trial()])
        parts = TrialHistory().parts(CHAT, past)
        assert parts is not None and parts[1::2] == [self.a, self.b, self.b]
        assert [i for part in parts for i in part] == TrialHistory().render(CHAT, past)
        made_anew = (TrialHistory(episodes=1), TrialHistory(within=RecentObservations()), RecentObservations())
        assert [policy.parts(CHAT, past) for policy in made_anew] == [None] * 3

    def test_an_only_episode_is_that_policy_with_rewards(self):
        past = Past("g", ["x", "y"], [self.a], [0.0])
        assert TrialHistory(rewards=False).render(CHAT, past) == FullHistory().render(CHAT, past)


class TestPool:
    def test_results_come_in_plan_order_with_ragged_lengths(self):
        player = ScriptedPlayer(lambda e: "answer red" if e.turns == e.plan.ordinal * 7 % 5 else "go north")
        plans = [plan(i, turns=3 + i % 3) for i in range(20)]
        done = []
        got = Pool(player, Line, TaskReward(), batch=4).run(plans, lambda n, total: done.append((n, total)))
        assert [t.ordinal for t in got] == list(range(20))
        assert len({t.length for t in got}) > 2
        assert done[-1] == (20, 20) and done == sorted(done)

    def test_content_does_not_depend_on_the_batch(self):
        def run(batch):
            plans = [plan(i, turns=3 + i % 9) for i in range(40)]
            return [content(t) for t in play(language(), *plans, batch=batch)]

        one = run(1)
        assert one == run(64) == run(7)
        assert len({json.dumps(t) for t in one}) == 40

    def test_free_places_are_filled_at_once_by_the_oldest_plan(self):
        starts = []

        async def note(task, turn):
            if turn == 0:
                starts.append((task.id, sum(not env.closed for env in Line.opened)))

        player = ScriptedPlayer(lambda e: "answer red" if e.turns == e.plan.ordinal % 3 else "go north")
        plans = [plan(i) for i in range(9)]
        random.Random(0).shuffle(plans)
        engine = play(player, *plans, env=lambda: Line(note), batch=3)
        assert [name for name, _ in starts] == [f"t{i}" for i in range(9)]
        assert max(live for _, live in starts) == 3
        assert [t.ordinal for t in engine] == [p.ordinal for p in plans]

    def test_all_live_episodes_take_their_turn_in_one_call(self):
        engine = LineEngine()
        play(language(engine), *(plan(i, turns=1) for i in range(10)), batch=4)
        assert engine.sizes == [4, 4, 2]

    def test_every_session_is_released_and_every_environment_closed(self):
        engine = LineEngine()
        play(language(engine), *(plan(i) for i in range(10)), batch=4)
        assert sorted(engine.released) == sorted({r.session for r in engine.requests if r.session is not None})
        assert len(engine.released) == 10
        assert all(env.closed == 1 for env in Line.opened)

    def test_no_plans_give_no_trajectories(self):
        assert play(script("go north")) == []

    def test_a_pool_without_places_is_refused(self):
        with pytest.raises(ConfigError, match="batch 0"):
            Pool(script("x"), Line, TaskReward(), batch=0)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_environments_are_closed_on_ctrl_c_and_on_bugs(self, error):
        async def boom(task, turn):
            await asyncio.sleep(0)
            if task.id == "t1" and turn == 2:
                raise error

        engine = LineEngine()
        with pytest.raises(error):
            play(language(engine), *(plan(i, seed=5) for i in range(4)), env=lambda: Line(boom), batch=3)
        assert all(env.closed for env in Line.opened)
        assert {r.session for r in engine.requests} <= set(engine.released)

    def test_environments_are_closed_when_the_player_or_a_listener_raises(self):
        def bad(*_):
            raise RuntimeError("bug")

        for player, progress in [(ScriptedPlayer(bad), None), (script("answer red", "go north"), bad)]:
            with pytest.raises(RuntimeError):
                Pool(player, Line, TaskReward()).run([plan(0), plan(1)], progress)
        assert all(env.closed for env in Line.opened)


class TestFailure:
    def failing(self, at, name="t1", times=10**9):
        left = {"n": times}

        async def trouble(task, turn):
            if task.id == name and turn == at and left["n"]:
                left["n"] -= 1
                raise EnvFailure("browser died")

        return lambda: Line(trouble)

    @pytest.mark.parametrize("at", [0, 2])
    def test_a_failure_in_the_environment_gives_a_failed_trajectory_and_never_a_reward(self, at):
        got = play(script("go north", "go north", "answer red"), *(plan(i) for i in range(3)), env=self.failing(at))
        assert [t.stop for t in got] == [StopReason.ANSWERED, StopReason.INFRA_FAILURE, StopReason.ANSWERED]
        assert [t.reward for t in got] == [1.0, 0.0, 1.0]
        assert got[1].evidence == {"failure": "browser died", "task": "t1", "turn": at}
        assert all(env.closed for env in Line.opened)

    def test_a_failure_while_the_state_is_read_is_no_verdict(self):
        class NoState(Line):
            async def final_state(self):
                raise EnvFailure("no state")

        t = play(script("answer red"), plan(), env=NoState)[0]
        assert (t.stop, t.reward, t.evidence["failure"]) == (StopReason.INFRA_FAILURE, 0.0, "no state")

    def test_a_failed_episode_is_tried_again_once_under_the_same_plan(self):
        plans = [plan(i) for i in range(3)]
        whole = [content(t) for t in play(language(), *plans)]
        assert [content(t) for t in play(language(), *plans, env=self.failing(1, times=1))] == whole
        assert len(Line.opened) == 3 + 4
        assert play(language(), *plans, env=self.failing(1, times=2))[1].stop.failed

    def test_a_retry_comes_before_younger_plans(self):
        order = []

        async def note(task, turn):
            if turn == 0:
                order.append(task.id)
                if order.count("t0") == 1 and task.id == "t0":
                    raise EnvFailure("once")

        play(script("answer red"), *(plan(i) for i in range(4)), env=lambda: Line(note), batch=1)
        assert order == ["t0", "t0", "t1", "t2", "t3"]

    def test_an_engine_failure_fails_all_who_waited_for_it_and_they_are_tried_again(self):
        plans = [plan(i) for i in range(3)]
        whole = [content(t) for t in play(language(), *plans)]
        assert [content(t) for t in play(language(LineEngine(fail=1)), *plans)] == whole
        lost = play(language(LineEngine(fail=10**9)), *plans)
        assert [(t.stop.failed, t.reward, t.evidence["failure"]) for t in lost] == [
            (True, 0.0, "engine: server gone")
        ] * 3

    def test_a_hanging_step_is_named_and_the_others_go_on(self):
        async def hang(task, turn):
            if task.id == "t1" and turn == 1:
                await asyncio.sleep(3600)

        began = time.monotonic()
        got = play(script("go north", "answer red"), plan(0), plan(1), env=lambda: Line(hang), step_deadline=0.5)
        assert time.monotonic() - began < SLOW
        assert (got[0].reward, got[1].stop) == (1.0, StopReason.INFRA_FAILURE)
        evidence = got[1].evidence
        assert (evidence["task"], evidence["turn"]) == ("t1", 1)
        assert "0.5 s" in evidence["failure"]
        for place in ("line_world.py", "step", "hang", "sleep"):
            assert place in evidence["where"]

    def test_a_step_that_resists_its_cancellation_is_left_behind(self, monkeypatch):
        monkeypatch.setattr("longstride.rollout.deadline.GRACE", 0.05)
        began = time.monotonic()

        async def stubborn(task, turn):
            while turn and time.monotonic() - began < SLOW:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(SLOW)

        t = play(script("go north"), plan(turns=3), env=lambda: Line(stubborn), step_deadline=0.05, retries=0)[0]
        assert (t.stop, t.length) == (StopReason.INFRA_FAILURE, 0)
        assert time.monotonic() - began < SLOW

    def test_trouble_in_closing_does_not_touch_the_result(self, caplog):
        class Sticky(Line):
            async def close(self):
                raise EnvFailure("stuck tab")

        t = play(script("answer red"), plan(), env=Sticky)[0]
        assert (t.stop, t.reward) == (StopReason.ANSWERED, 1.0)
        assert "stuck tab" in caplog.text


class TestDeadline:
    async def test_what_ends_in_time_is_not_named_and_what_does_not_is(self):
        assert await within(SLOW, asyncio.sleep(0)) == ""
        assert "sleep" in await within(0.01, asyncio.sleep(60))

    async def test_whatever_it_raises_is_raised(self):
        async def boom():
            raise ValueError("boom")

        with pytest.raises(ValueError, match="boom"):
            await within(5, boom())

    async def test_who_is_cancelled_takes_its_coroutine_along(self):
        begun, ended = asyncio.Event(), []

        async def work():
            try:
                begun.set()
                await asyncio.sleep(60)
            finally:
                ended.append(1)

        task = asyncio.create_task(within(60, work()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended


class TestPlayback:
    def stored(self):
        played = play(script("go north", "nonsense", "answer red"), plan(7))[0]
        return Trajectory.from_json(played.to_json())

    def test_an_episode_of_a_world_that_depends_on_its_seed_alone_comes_out_the_same(self):
        again, differences = play_back(self.stored(), Line, TaskReward())
        assert not differences and again.reward == 1 and again.seed == self.stored().seed

    def test_what_comes_out_otherwise_is_named_by_turn_and_field(self):
        class Other(Line):
            async def step(self, text):
                done = await super().step(text)
                return Step(Observation("fog", "/1"), action=done.action) if self.turn == 1 else done

        stored = self.stored()
        _, differences = play_back(stored, Other, TaskReward())
        assert {(d.turn, d.what) for d in differences} >= {(2, "observation"), (2, "url")}
        assert all(d.was != d.now for d in differences)
        stored.reward = 0.5
        assert [(d.turn, d.what, d.was, d.now) for d in play_back(stored, Line, TaskReward())[1]] == [
            (0, "reward", 0.5, 1.0)
        ]

    @pytest.mark.parametrize(
        ("fields", "stop"),
        [
            ({"marks": ((ids("go")[0],),)}, StopReason.MARK),
            ({"task": walk(must_answer=True), "budget": {"turn_tokens": 1}}, StopReason.TOKENS),
            ({"prefix": tuple(ids("go")), "turns": 2}, StopReason.TURNS),
            ({"history": (PastTurn("go north", (*ids("go north"), END)),), "turns": 3}, StopReason.TURNS),
        ],
    )
    def test_an_episode_that_paused_or_was_cut_or_begun_comes_out_the_same(self, fields, stop):
        stored = play(language(), plan(3, **fields))[0]
        assert stored.stop is stop
        again, differences = play_back(stored, Line, TaskReward())
        assert not differences and (again.stop, again.length) == (stored.stop, stored.length)

    def test_a_world_that_fails_now_differs_at_the_end(self):
        async def dead(task, turn):
            raise EnvFailure("gone")

        assert play_back(self.stored(), lambda: Line(dead), TaskReward())[1][-1].what == "stop"

    def test_an_episode_without_a_turn_is_refused(self):
        empty = self.stored()
        empty.turns = []
        with pytest.raises(RunError, match="nothing can be played back"):
            play_back(empty, Line, TaskReward())


class TestSummary:
    def trajectories(self):
        plans = [plan(i, turns=4) for i in range(3)]
        player = ScriptedPlayer(lambda e: ["answer red", "nonsense", "answer blue"][e.plan.ordinal])
        return play(player, *plans)

    def test_keys_and_numbers(self):
        assert summarise(self.trajectories()) == {
            "episodes": 3, "failed": 0, "env_steps": 6, "success": 1 / 3, "supported": 1 / 3, "reward": 1 / 3,
            "length": 2.0, "length_success": 1.0, "timeouts": 1 / 3, "cut": 0.0, "idle": 1.0, "invalid": 4 / 6,
            "sampled_tokens": 0, "slot_steps": 0, "actions": {"answer": 2, "invalid": 4},
            "stops": {"answered": 2, "turns": 1},
            "by_difficulty": {"easy": {"episodes": 3, "success": 1 / 3, "length": 2.0}},
            "by_source": {"line": {"episodes": 3, "success": 1 / 3, "length": 2.0}}, "budget": 4.0,
        }  # fmt: skip

    def test_goal_distance_stands_beside_budget_and_length_where_tasks_know_it(self):
        far = [make_trajectory(2, 1.0, task=make_task(optimal=d)) for d in (2, 2, 5)]
        found = summarise([*far, *self.trajectories()])
        assert (found["goal_distance"], found["budget"]) == (3.0, (3 * far[0].budget.turns + 12) / 6)
        assert found["by_distance"] == {
            "2": {"episodes": 2, "success": 1.0, "length": 2.0},
            "5": {"episodes": 1, "success": 1.0, "length": 2.0},
        }

    def test_failed_episodes_are_counted_in_failed_and_in_nothing_else(self):
        async def dead(task, turn):
            if turn == 1:
                raise EnvFailure("x")

        broken = play(language(), plan(9), env=lambda: Line(dead))
        assert summarise(self.trajectories() + broken) == summarise(self.trajectories()) | {"failed": 1}

    def test_a_summary_of_nothing_has_all_keys(self):
        empty = summarise([])
        assert list(empty) == list(summarise(self.trajectories()))
        assert (empty["episodes"], empty["success"], empty["by_source"]) == (0, 0.0, {})
