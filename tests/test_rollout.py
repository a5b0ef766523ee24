"""Context policies, the episode's rules, the pool and the summary, on a fake environment, engine and chat format."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, EnvFailure, RunError
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Completion, Request, Sampling
from longstride.envs.base import Observation, Step
from longstride.rewards import TaskReward
from longstride.rollout import (
    ContextPolicy,
    KeepAll,
    KeepLast,
    LanguagePlayer,
    Plan,
    Pool,
    PoolConfig,
    ScriptedPlayer,
    summarise,
)
from longstride.rollout.deadline import within
from longstride.rollout.replay import replay

END = 0


class FakeChat:
    """Ids that tell where they come from; counts what is encoded."""

    end_ids = frozenset({END})
    close = [END]

    def head(self, goal):
        return [1, *(ord(c) for c in goal)]

    def observation(self, text, first=False):
        return [2 if first else 3, *(ord(c) for c in text), 4]

    def decode(self, ids):
        return "".join(chr(i) for i in ids if i != END)


class FakeEngine:
    """Samples from the request's seed alone: letters, then at times `answer`."""

    version = 7

    def __init__(self, fail=0, finish=None):
        self.fail, self.finish, self.released, self.requests, self.sizes = fail, finish, [], [], []
        self.waiting = []

    def submit(self, request):
        self.waiting.append((len(self.requests), request))
        self.requests.append(request)
        return self.waiting[-1][0]

    def poll(self):
        waiting, self.waiting = self.waiting, []
        self.sizes.append(len(waiting))
        if self.fail:
            self.fail -= 1
            return [(ticket, EngineFailure("server gone")) for ticket, _ in waiting]
        return [(ticket, self._one(r)) for ticket, r in waiting]

    def _one(self, request: Request) -> Completion:
        if self.finish == "context":
            return Completion([], [], [], "context")
        rng = random.Random(request.seed)
        text = "answer red" if rng.random() < 0.2 else rng.choice(["go north", "go south", "nonsense"])
        ids = [*map(ord, text), END][: request.max_new]
        finish = "stop" if ids[-1] == END else "length"
        return Completion(ids, [-0.5] * len(ids), [self.version] * len(ids), finish)

    def release(self, session):
        self.released.append(session)


class FakeEnv:
    """Walks a line; `answer x` answers. `trouble(task, turn)` is awaited before the reset (turn 0) and each step."""

    opened: list["FakeEnv"] = []

    def __init__(self, trouble=None, **last):
        self.trouble, self.last, self.turn, self.closed, self.state_asked = trouble, last, 0, 0, False
        FakeEnv.opened.append(self)

    async def reset(self, task, seed):
        self.task, self.at, self.env_seed = task, seed % 5, seed
        if self.trouble:
            await self.trouble(task, 0)
        return Observation(f"at {self.at}", "/start")

    async def step(self, text):
        self.turn += 1
        if self.trouble:
            await self.trouble(self.task, self.turn)
        if text.startswith("answer "):
            return Step(Observation("bye"), terminated=True, action=text, answer=text[7:])
        known = text in ("go north", "go south")
        self.at += {"go north": 1, "go south": -1}.get(text, 0)
        if self.turn == self.task.meta.get("ends_at"):
            return Step(Observation("over"), action=text, **self.last)
        return Step(Observation(f"at {self.at}", f"/{self.at}"), action=text if known else None)

    async def final_state(self):
        self.state_asked = True
        return {"at": self.at}

    async def close(self):
        self.closed += 1


@pytest.fixture(autouse=True)
def _fresh():
    FakeEnv.opened = []


RED = {"type": "answer", "reference": "red"}


def plan(ordinal=0, turns=5, evaluator=RED, seed=None, task=None, **budget):
    task = task or Task(id=f"t{ordinal}", source="line", goal="g", start="", evaluator=evaluator)
    return Plan(task, ordinal, derive(0, ordinal) if seed is None else seed, Budget(turns=turns, **budget))


def script(*texts):
    """Says one text after the other, the last one for ever."""
    return ScriptedPlayer(lambda e: texts[min(e.turns, len(texts) - 1)])


def play(player, *plans, env: Callable[[], FakeEnv] = FakeEnv, batch=512, **pool):
    return Pool(player, env, TaskReward(), batch, PoolConfig(**pool)).run(plans)


def language(engine=None, context=None):
    return LanguagePlayer(cast(Any, engine or FakeEngine()), cast(Any, FakeChat()), context or KeepLast(), Sampling())


def content(trajectory: Trajectory):
    """All of a trajectory but its timings."""
    trajectory.seconds = 0.0
    for turn in trajectory.turns:
        turn.seconds = 0.0
    return trajectory.to_json()


class TestContext:
    def render(self, policy, pages, sampled):
        return policy.render(cast(Any, FakeChat()), "g", pages, sampled)

    def test_keep_all_puts_the_pieces_one_behind_the_other(self):
        chat = FakeChat()
        a, b = [65, END], [66, END]
        assert self.render(KeepAll(), ["x", "y", "z"], [a, b]) == [
            *chat.head("g"), *chat.observation("x", first=True), *a, *chat.observation("y"), *b, *chat.observation("z"),
        ]  # fmt: skip

    def test_keep_last_replaces_older_pages_and_keeps_every_action(self):
        chat = FakeChat()
        got = self.render(KeepLast(pages=2, placeholder="-"), ["x", "y", "z"], [[65, END], [66, END]])
        assert got == [
            *chat.head("g"), *chat.observation("-", first=True), 65, END, *chat.observation("y"), 66, END,
            *chat.observation("z"),
        ]  # fmt: skip

    def test_keep_last_with_enough_pages_is_keep_all(self):
        history = ["x", "y"], [[65, END]]
        assert self.render(KeepLast(pages=2), *history) == self.render(KeepAll(), *history)
        assert self.render(KeepLast(pages=1), *history) != self.render(KeepAll(), *history)

    @pytest.mark.parametrize("cut", [[65], []])
    def test_a_turn_that_was_cut_is_closed_in_the_prompt(self, cut):
        chat = FakeChat()
        got = self.render(KeepAll(), ["x", "y"], [cut])
        assert got == [*chat.head("g"), *chat.observation("x", first=True), *cut, END, *chat.observation("y")]

    def test_rendering_changes_neither_history_nor_the_chats_pieces(self):
        chat, pieces = cast(Any, FakeChat()), {"head": [1], "page": [2]}
        chat.head, chat.observation = lambda goal: pieces["head"], lambda text, first=False: pieces["page"]
        sampled = [[65], [66, END]]
        KeepLast().render(chat, "g", ["x", "y", "z"], sampled)
        assert (pieces, sampled) == ({"head": [1], "page": [2]}, [[65], [66, END]])

    def test_keep_all_grows_by_what_was_sampled_and_seen(self):
        trajectory = play(language(FakeEngine(), KeepAll()), plan(3, turns=8))[0]
        for before, after in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            old = before.prompt_ids + before.sampled_ids
            assert after.prompt_ids[: len(old)] == old

    def test_a_policy_is_built_from_data(self):
        assert build(ContextPolicy, {"type": "keep_last", "pages": 3}) == KeepLast(pages=3)
        with pytest.raises(ConfigError):
            build(ContextPolicy, {"type": "keep_last", "pages": 0})


class TestEnding:
    def test_a_right_answer_is_judged(self):
        t = play(script("go north", "answer red"), plan())[0]
        assert (t.stop, t.answer, t.reward, t.length) == (StopReason.ANSWERED, "red", 1.0, 2)
        assert t.evidence["matched"]

    def test_an_answer_in_the_last_turn_is_answered_and_not_a_timeout(self):
        assert play(script("go north", "answer red"), plan(turns=2))[0].stop is StopReason.ANSWERED

    @pytest.mark.parametrize("evaluator", [RED, {"type": "state", "expected": {"at": 2}}])
    def test_an_episode_cut_by_a_budget_gets_0_without_being_judged(self, evaluator):
        t = play(script("go north"), plan(turns=2, seed=0, evaluator=evaluator))[0]
        assert (t.stop, t.reward, t.answer, t.evidence) == (StopReason.TURNS, 0.0, None, {})
        assert not FakeEnv.opened[0].state_asked

    def test_a_state_is_judged_when_the_episode_was_answered(self):
        state = {"type": "state", "expected": {"at": 2}}
        t = play(script("go north", "go north", "answer done"), plan(seed=0, evaluator=state))[0]
        assert (t.stop, t.reward) == (StopReason.ANSWERED, 1.0)

    @pytest.mark.parametrize(("last", "stop"), [("terminated", StopReason.ENV_ENDED), ("truncated", StopReason.TURNS)])
    def test_an_end_by_the_environment_is_told_from_a_cut_by_it(self, last, stop):
        task = Task(id="t", source="line", goal="g", start="", evaluator=RED, meta={"ends_at": 2})
        t = play(script("go north"), plan(task=task), env=lambda: FakeEnv(**{last: True}))[0]
        assert (t.stop, t.length, t.reward) == (stop, 2, 0.0)

    def test_without_an_evaluator_the_rewards_of_the_environment_are_the_reward(self):
        task = Task(id="t", source="line", goal="g", start="", meta={"ends_at": 1})
        t = play(script("go north"), plan(task=task), env=lambda: FakeEnv(terminated=True, reward=0.25))[0]
        assert (t.reward, t.turns[0].reward) == (0.25, 0.25)

    def test_the_tasks_own_horizon_is_a_cap_and_no_extension(self):
        def length(horizon):
            task = Task(id="t", source="line", goal="g", start="", evaluator=RED, horizon=horizon)
            t = play(script("go north"), plan(task=task, turns=5))[0]
            return t.length, t.budget.turns

        assert length(3) == (3, 3)
        assert length(9) == (5, 5)

    def test_the_token_budget_stops_the_episode_and_caps_the_last_turn(self):
        engine = FakeEngine()
        t = play(language(engine), plan(1, turns=99, tokens=12, turn_tokens=5))[0]
        assert t.stop is StopReason.TOKENS
        assert [len(turn.sampled_ids) for turn in t.turns] == [r.max_new for r in engine.requests] == [5, 5, 2]

    def test_tool_calls_are_turns_that_do_not_answer(self):
        assert play(script("go north"), plan(tool_calls=2))[0].stop is StopReason.TOOL_CALLS
        assert play(script("go north", "answer red"), plan(tool_calls=2))[0].stop is StopReason.ANSWERED

    def test_the_wall_clock_stops_the_episode(self):
        async def slow(task, turn):
            await asyncio.sleep(0.01)

        t = play(script("go north"), plan(turns=99, seconds=0.03), env=lambda: FakeEnv(slow))[0]
        assert t.stop is StopReason.SECONDS
        assert t.length < 10

    def test_a_full_context_ends_the_episode_without_a_step(self):
        t = play(language(FakeEngine(finish="context")), plan())[0]
        assert (t.stop, t.length, t.reward) == (StopReason.CONTEXT, 0, 0.0)
        assert FakeEnv.opened[0].turn == 0

    def test_a_turn_says_what_was_seen_and_whether_it_changed_anything(self):
        t = play(script("nonsense", "go north"), plan(turns=2, seed=0))[0]
        assert [(x.observation, x.url, x.action, x.changed) for x in t.turns] == [
            ("at 0", "/start", None, False),
            ("at 0", "/0", "go north", True),
        ]


class TestSampledTokens:
    def test_every_sampled_token_has_its_log_probability_and_version_and_prompts_are_what_was_asked(self):
        engine = FakeEngine()
        trajectories = play(language(engine), *(plan(i, turns=4) for i in range(6)))
        turns = [turn for t in trajectories for turn in t.turns]
        for turn in turns:
            assert len(turn.sampled_ids) == len(turn.logprobs) == len(turn.versions)
            assert set(turn.versions) == {7}
        asked = sorted(r.prompt for r in engine.requests)
        assert sorted(turn.prompt_ids for turn in turns) == asked

    def test_a_group_shares_the_environment_and_not_the_samples(self):
        engine = FakeEngine()
        play(language(engine), plan(0, turns=1, seed=4), plan(1, turns=1, seed=4))
        assert {env.env_seed for env in FakeEnv.opened} == {4}
        assert engine.requests[0].prompt == engine.requests[1].prompt
        assert engine.requests[0].seed != engine.requests[1].seed

    def test_every_turn_has_a_seed_of_its_own(self):
        engine = FakeEngine()
        play(language(engine), *(plan(i, turns=6) for i in range(4)))
        seeds = [r.seed for r in engine.requests]
        assert len(set(seeds)) == len(seeds)

    def test_a_scripted_player_samples_nothing(self):
        t = play(script("go north"), plan())[0]
        assert t.sampled_tokens == 0


class TestPool:
    def test_results_come_in_plan_order_with_ragged_lengths(self):
        player = ScriptedPlayer(lambda e: "answer red" if e.turns == e.plan.ordinal * 7 % 5 else "go north")
        plans = [plan(i, turns=3 + i % 3) for i in range(20)]
        done = []
        got = Pool(player, FakeEnv, TaskReward(), batch=4).run(plans, lambda n, total: done.append((n, total)))
        assert [t.ordinal for t in got] == list(range(20))
        assert len({t.length for t in got}) > 2
        assert done[-1] == (20, 20) and done == sorted(done)

    def test_content_does_not_depend_on_the_batch(self):
        def run(batch):
            plans = [plan(i, turns=3 + i % 9) for i in range(40)]
            return [content(t) for t in play(language(), *plans, batch=batch)]

        one = run(1)
        assert one == run(64) == run(7)
        assert len(set(one)) == 40

    def test_free_places_are_filled_at_once_by_the_oldest_plan(self):
        starts = []

        async def note(task, turn):
            if turn == 0:
                starts.append((task.id, sum(not env.closed for env in FakeEnv.opened)))

        player = ScriptedPlayer(lambda e: "answer red" if e.turns == e.plan.ordinal % 3 else "go north")
        plans = [plan(i) for i in range(9)]
        random.Random(0).shuffle(plans)
        engine = play(player, *plans, env=lambda: FakeEnv(note), batch=3)
        assert [name for name, _ in starts] == [f"t{i}" for i in range(9)]
        assert max(live for _, live in starts) == 3
        assert [t.ordinal for t in engine] == [p.ordinal for p in plans]

    def test_all_live_episodes_take_their_turn_in_one_call(self):
        engine = FakeEngine()
        play(language(engine), *(plan(i, turns=1) for i in range(10)), batch=4)
        assert engine.sizes == [4, 4, 2]

    def test_every_session_is_released_and_every_environment_closed(self):
        engine = FakeEngine()
        play(language(engine), *(plan(i) for i in range(10)), batch=4)
        assert sorted(engine.released) == sorted({r.session for r in engine.requests})
        assert len(engine.released) == 10
        assert all(env.closed == 1 for env in FakeEnv.opened)

    def test_no_plans_give_no_trajectories(self):
        assert play(script("go north")) == []

    def test_a_pool_without_places_is_refused(self):
        with pytest.raises(ConfigError, match="batch 0"):
            Pool(script("x"), FakeEnv, TaskReward(), batch=0)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_environments_are_closed_on_ctrl_c_and_on_bugs(self, error):
        async def boom(task, turn):
            await asyncio.sleep(0)
            if task.id == "t1" and turn == 2:
                raise error

        engine = FakeEngine()
        with pytest.raises(error):
            play(language(engine), *(plan(i, seed=5) for i in range(4)), env=lambda: FakeEnv(boom), batch=3)
        assert all(env.closed for env in FakeEnv.opened)
        assert {r.session for r in engine.requests} <= set(engine.released)

    def test_environments_are_closed_when_the_player_or_a_listener_raises(self):
        def bad(*_):
            raise RuntimeError("bug")

        for player, progress in [(ScriptedPlayer(bad), None), (script("answer red", "go north"), bad)]:
            with pytest.raises(RuntimeError):
                Pool(player, FakeEnv, TaskReward()).run([plan(0), plan(1)], progress)
        assert all(env.closed for env in FakeEnv.opened)


class TestFailure:
    def failing(self, at, name="t1", times=10**9):
        left = {"n": times}

        async def trouble(task, turn):
            if task.id == name and turn == at and left["n"]:
                left["n"] -= 1
                raise EnvFailure("browser died")

        return lambda: FakeEnv(trouble)

    @pytest.mark.parametrize("at", [0, 2])
    def test_a_failure_in_the_environment_gives_a_failed_trajectory_and_never_a_reward(self, at):
        got = play(script("go north", "go north", "answer red"), *(plan(i) for i in range(3)), env=self.failing(at))
        assert [t.stop for t in got] == [StopReason.ANSWERED, StopReason.INFRA_FAILURE, StopReason.ANSWERED]
        assert [t.reward for t in got] == [1.0, 0.0, 1.0]
        assert got[1].evidence == {"failure": "browser died", "task": "t1", "turn": at}
        assert all(env.closed for env in FakeEnv.opened)

    def test_a_failure_while_the_state_is_read_is_no_verdict(self):
        class NoState(FakeEnv):
            async def final_state(self):
                raise EnvFailure("no state")

        t = play(script("answer red"), plan(), env=NoState)[0]
        assert (t.stop, t.reward, t.evidence["failure"]) == (StopReason.INFRA_FAILURE, 0.0, "no state")

    def test_a_failed_episode_is_tried_again_once_under_the_same_plan(self):
        plans = [plan(i) for i in range(3)]
        whole = [content(t) for t in play(language(), *plans)]
        assert [content(t) for t in play(language(), *plans, env=self.failing(1, times=1))] == whole
        assert len(FakeEnv.opened) == 3 + 4
        assert play(language(), *plans, env=self.failing(1, times=2))[1].stop.failed

    def test_a_retry_comes_before_younger_plans(self):
        order = []

        async def note(task, turn):
            if turn == 0:
                order.append(task.id)
                if order.count("t0") == 1 and task.id == "t0":
                    raise EnvFailure("once")

        play(script("answer red"), *(plan(i) for i in range(4)), env=lambda: FakeEnv(note), batch=1)
        assert order == ["t0", "t0", "t1", "t2", "t3"]

    def test_an_engine_failure_fails_all_who_waited_for_it_and_they_are_tried_again(self):
        plans = [plan(i) for i in range(3)]
        whole = [content(t) for t in play(language(), *plans)]
        assert [content(t) for t in play(language(FakeEngine(fail=1)), *plans)] == whole
        lost = play(language(FakeEngine(fail=10**9)), *plans)
        assert [(t.stop.failed, t.reward, t.evidence["failure"]) for t in lost] == [
            (True, 0.0, "engine: server gone")
        ] * 3

    def test_a_hanging_step_is_named_and_the_others_go_on(self):
        async def hang(task, turn):
            if task.id == "t1" and turn == 1:
                await asyncio.sleep(3600)

        began = time.monotonic()
        got = play(script("go north", "answer red"), plan(0), plan(1), env=lambda: FakeEnv(hang), step_deadline=0.05)
        assert time.monotonic() - began < 2
        assert (got[0].reward, got[1].stop) == (1.0, StopReason.INFRA_FAILURE)
        evidence = got[1].evidence
        assert (evidence["task"], evidence["turn"]) == ("t1", 1)
        assert "0.05 s" in evidence["failure"]
        for place in ("test_rollout.py", "step", "hang", "sleep"):
            assert place in evidence["where"]

    def test_a_step_that_resists_its_cancellation_is_left_behind(self, monkeypatch):
        monkeypatch.setattr("longstride.rollout.deadline.GRACE", 0.05)

        async def stubborn(task, turn):
            for _ in range(3 if turn else 0):
                try:
                    await asyncio.sleep(0.2)
                except asyncio.CancelledError:
                    continue

        t = play(script("go north"), plan(turns=3), env=lambda: FakeEnv(stubborn), step_deadline=0.05, retries=0)[0]
        assert (t.stop, t.length) == (StopReason.INFRA_FAILURE, 0)

    def test_trouble_in_closing_does_not_touch_the_result(self, caplog):
        class Sticky(FakeEnv):
            async def close(self):
                raise EnvFailure("stuck tab")

        t = play(script("answer red"), plan(), env=Sticky)[0]
        assert (t.stop, t.reward) == (StopReason.ANSWERED, 1.0)
        assert "stuck tab" in caplog.text


class TestDeadline:
    async def test_what_ends_in_time_is_not_named_and_what_does_not_is(self):
        assert await within(5, asyncio.sleep(0)) == ""
        assert "sleep" in await within(0.01, asyncio.sleep(60))

    async def test_whatever_it_raises_is_raised(self):
        async def boom():
            raise ValueError("boom")

        with pytest.raises(ValueError, match="boom"):
            await within(5, boom())

    async def test_who_is_cancelled_takes_its_coroutine_along(self):
        ended = []

        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(1)

        task = asyncio.create_task(within(5, work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended


class TestReplay:
    def stored(self):
        played = play(script("go north", "nonsense", "answer red"), plan(7))[0]
        return Trajectory.from_json(played.to_json())

    def test_an_episode_of_a_world_that_depends_on_its_seed_alone_comes_out_the_same(self):
        again, differences = replay(self.stored(), FakeEnv, TaskReward())
        assert not differences and again.reward == 1 and again.seed == self.stored().seed

    def test_what_comes_out_otherwise_is_named_by_turn_and_field(self):
        class Other(FakeEnv):
            async def step(self, text):
                done = await super().step(text)
                return Step(Observation("fog", "/1"), action=done.action) if self.turn == 1 else done

        stored = self.stored()
        _, differences = replay(stored, Other, TaskReward())
        assert {(d.turn, d.what) for d in differences} >= {(2, "observation"), (2, "url")}
        assert all(d.was != d.now for d in differences)
        stored.reward = 0.5
        assert [(d.turn, d.what, d.was, d.now) for d in replay(stored, FakeEnv, TaskReward())[1]] == [
            (0, "reward", 0.5, 1.0)
        ]

    def test_a_world_that_fails_now_differs_at_the_end(self):
        async def dead(task, turn):
            raise EnvFailure("gone")

        assert replay(self.stored(), lambda: FakeEnv(dead), TaskReward())[1][-1].what == "stop"

    def test_an_episode_without_a_turn_is_refused(self):
        empty = self.stored()
        empty.turns = []
        with pytest.raises(RunError, match="nothing can be replayed"):
            replay(empty, FakeEnv, TaskReward())


class TestSummary:
    def trajectories(self):
        plans = [plan(i, turns=4) for i in range(3)]
        player = ScriptedPlayer(lambda e: ["answer red", "nonsense", "answer blue"][e.plan.ordinal])
        return play(player, *plans)

    def test_keys_and_numbers(self):
        assert summarise(self.trajectories()) == {
            "episodes": 3, "failed": 0, "env_steps": 6, "success": 1 / 3, "length": 2.0, "length_success": 1.0,
            "timeouts": 1 / 3, "invalid": 4 / 6, "sampled_tokens": 0, "actions": {"answer": 2, "invalid": 4},
            "stops": {"answered": 2, "turns": 1},
            "by_difficulty": {"easy": {"episodes": 3, "success": 1 / 3, "length": 2.0}},
            "by_source": {"line": {"episodes": 3, "success": 1 / 3, "length": 2.0}},
        }  # fmt: skip

    def test_failed_episodes_are_counted_in_failed_and_in_nothing_else(self):
        async def dead(task, turn):
            if turn == 1:
                raise EnvFailure("x")

        broken = play(language(), plan(9), env=lambda: FakeEnv(dead))
        assert summarise(self.trajectories() + broken) == summarise(self.trajectories()) | {"failed": 1}

    def test_a_summary_of_nothing_has_all_keys(self):
        empty = summarise([])
        assert list(empty) == list(summarise(self.trajectories()))
        assert (empty["episodes"], empty["success"], empty["by_source"]) == (0, 0.0, {})
