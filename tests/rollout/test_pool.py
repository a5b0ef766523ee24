"""The asynchronous pool: staleness, pauses, weights between passes, blocked threads, and arbitrary latencies."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest
from helpers import SLOW, eventually, make_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polled_walks import Model, Walk
from two_doors import FORGETFUL, REMEMBERING, Found, TwoDoors

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError, RunError
from longstride.envs.base import Observation, Step
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Player, Pool, PoolConfig, Trial, summarise
from longstride.rollout.planning import at_once

FREE = PoolConfig(lockstep=False)


def plans(first, count, turns=9):
    return [Plan(make_task(), n, n + 100, Budget(turns=turns), group=n) for n in range(first, first + count)]


def turn_over(pool, times=100):
    """Returns when the pool's thread has gone so many times through all that it could do, and its player is idle."""

    async def turns():
        for _ in range(times):
            pool._wake.set()
            await asyncio.sleep(0)

    asyncio.run_coroutine_threadsafe(turns(), pool._loop).result(SLOW)
    pool.run_on_sampler_thread(lambda: None)


def essence(trajectories):
    return [(t.ordinal, t.stop, t.reward, [turn.observation for turn in t.turns]) for t in trajectories]


class TestIterations:
    @pytest.mark.parametrize("lag", [0, 1, 3])
    def test_no_token_is_older_than_the_bound_and_some_are_as_old_as_it_allows(self, lag):
        model = Model()
        with Pool(model, Walk, TaskReward(), 64, PoolConfig(staleness=lag)) as pool:
            for i, trajectories in pool.iterations(lambda i: at_once(plans(8 * i, 8)), 1, 6):
                assert [t.ordinal for t in trajectories] == list(range(8 * i, 8 * i + 8))
                ages = {i - 1 - v for t in trajectories for turn in t.turns for v in turn.versions}
                assert ages == {min(lag, i - 1)}  # as all that may be is played before the policy changes
                eventually(lambda i=i: len(pool.finished()) == 8 * min(lag, 6 - i))
                pool.run_on_sampler_thread(lambda i=i: setattr(model, "version", i))
        assert Walk.live == 0 and not model.rows and set(model.released.values()) == {1}

    def test_later_iterations_are_played_while_one_is_trained(self):
        model = Model()
        with Pool(model, Walk, TaskReward(), 64, PoolConfig(staleness=1)) as pool:
            for i, _ in pool.iterations(lambda i: at_once(plans(4 * i, 4)), 1, 3):
                if i == 1:
                    eventually(lambda: len(pool.finished()) == 4)
                    assert [t.ordinal for t in pool.finished()] == [8, 9, 10, 11]

    def test_without_staleness_nothing_is_played_ahead(self):
        planned = []

        def stages(i):
            planned.append(i)
            return at_once(plans(4 * i, 4))

        with Pool(Model(), Walk, TaskReward(), 64) as pool:
            for i, _ in pool.iterations(stages, 1, 3):
                turn_over(pool)
                assert planned == list(range(1, i + 1))
                assert not pool.finished() and Walk.live == 0

    def test_what_was_finished_before_is_not_played_again(self):
        with Pool(Model(), Walk, TaskReward()) as pool:
            pool.submit(plans(4, 4))
            done = pool.collect(range(4, 8))
        model = Model()
        with Pool(model, Walk, TaskReward(), config=PoolConfig(staleness=1)) as pool:
            pool.restore(done[:3])
            got = dict(pool.iterations(lambda i: at_once(plans(4 * i, 4)), 1, 2))
        assert essence(got[1]) == essence(done)
        assert len(model.released) == 1 + 4

    def test_free_or_in_lockstep_the_episodes_are_the_same(self):
        ways = (PoolConfig(), FREE, PoolConfig(staleness=2), PoolConfig(staleness=2, lockstep=True))
        runs = []
        for way in ways:
            with Pool(Model(), lambda: Walk(seconds=0.003), TaskReward(), 5, way) as pool:
                runs.append([essence(t) for _, t in pool.iterations(lambda i: at_once(plans(8 * i, 8)), 1, 3)])
        assert all(run == runs[0] for run in runs)


class TestPlayer:
    def test_in_lockstep_all_live_episodes_are_asked_together_whatever_their_latency(self):
        model = Model(most=1)
        Pool(model, lambda: Walk(longest=1, seconds=0.01), TaskReward(), 8).run(plans(0, 16))
        assert model.sizes == [8, 8]

    def test_parts_of_an_engine_go_in_a_lockstep_each_and_none_waits_for_another(self):
        gate = threading.Event()

        class Parts(Model):
            parts = 2

            def ask(self, episode):
                super().ask(episode)
                batches.append(episode.plan.ordinal)
                if batches.count(1) == 3:  # the other part has gone on while episode 0 was at work
                    gate.set()

        class Slow(Walk):
            async def reset(self, task, seed):
                first = await super().reset(task, seed)
                self.left = 3
                if seed == 100:
                    assert await asyncio.to_thread(gate.wait, SLOW)
                return first

        batches, runs = [], []
        for seconds in (0.0, 0.003):
            batches.clear()
            gate.clear()
            runs.append(essence(Pool(Parts(), lambda s=seconds: Slow(seconds=s), TaskReward(), 8).run(plans(0, 12))))
            # of each part four at once, all that live together, and then the other two
            for part in (0, 1):
                mine = [n for n in batches if n % 2 == part]
                assert mine == [part + 2 * k for k in (0, 1, 2, 3) * 3 + (4, 5) * 3], seconds
        assert runs[0] == runs[1]
        assert essence(Pool(Parts(), lambda: Slow(), TaskReward(), 1).run(plans(0, 1)))

    def test_free_of_it_nobody_waits_for_the_slowest(self):
        gate = threading.Event()

        class Slow(Walk):
            async def reset(self, task, seed):
                first = await super().reset(task, seed)
                if seed == 100:
                    assert await asyncio.to_thread(gate.wait, SLOW)
                return first

        with Pool(Model(), Slow, TaskReward(), 8, FREE) as pool:
            pool.submit(plans(0, 4))
            assert len(pool.collect([1, 2, 3])) == 3
            gate.set()
            assert pool.collect([0])[0].reward == 1

    def test_it_is_asked_by_one_thread_only_and_never_by_who_waits(self):
        model = Model()
        with Pool(model, Walk, TaskReward(), 4, FREE) as pool:
            pool.submit(plans(0, 8))
            pool.collect(range(8))
            pool.run_on_sampler_thread(lambda: model.threads.add(threading.get_ident()))
        assert len(model.threads) == 1 and threading.get_ident() not in model.threads

    def test_in_a_pause_it_has_no_open_question_and_afterwards_all_go_on(self):
        over = threading.Event()

        class Long(Walk):
            async def step(self, text):
                self.left = 1 if over.is_set() else 2
                return await super().step(text)

        model = Model(most=2)
        with Pool(model, Long, TaskReward(), 8, PoolConfig(staleness=1)) as pool:
            pool.submit(plans(0, 32, turns=10**6))
            for _ in range(5):
                before = len(model.sizes)
                eventually(lambda before=before: len(model.sizes) > before)
                with pool.paused():
                    before = len(model.sizes)
                    assert not model.rows
                    turn_over(pool)
                    assert len(model.sizes) == before and len(pool._asked[0]) == 8
            over.set()
            assert [t.reward for t in pool.collect(range(32))] == [1] * 32

    def test_an_engine_failure_is_the_episodes_alone_and_is_tried_again(self):
        def run(retries):
            config = PoolConfig(retries=retries, lockstep=False)
            return Pool(Model(fails=[2]), lambda: Walk(longest=6), TaskReward(), 4, config).run(plans(0, 8))

        lengths = {t.ordinal: t.length for t in Pool(Model(), lambda: Walk(longest=6), TaskReward()).run(plans(0, 8))}
        assert lengths[2] > 1
        assert [t.ordinal for t in run(1) if t.stop.failed] == [2]
        assert sum(t.reward for t in run(1)) == 7


class TestTrouble:
    @pytest.mark.parametrize("waits", ["collect", "paused"])
    def test_a_blocked_thread_is_named_by_task_and_place(self, waits, monkeypatch):
        monkeypatch.setattr("longstride.rollout.pool.GRACE", 0.05)
        monkeypatch.setattr("longstride.rollout.pool.TICK", 0.05)
        inside, release = threading.Event(), threading.Event()

        class Blocked(Walk):
            async def step(self, text):
                inside.set()
                release.wait(SLOW)
                return await super().step(text)

        pool = Pool(Model(), Blocked, TaskReward(), config=PoolConfig(step_deadline=0.05))
        try:
            with pytest.raises(RunError, match=r"task t has blocked its thread .*step.*await"), pool:
                pool.submit(plans(0, 2))
                assert inside.wait(SLOW)
                pool.collect(range(2)) if waits == "collect" else pool.paused().__enter__()
        finally:
            release.set()

    def test_a_bug_ends_the_pool_and_whoever_waits_or_pauses_gets_the_error(self):
        class Bug(Walk):
            async def step(self, text):
                raise ZeroDivisionError("a bug")

        with pytest.raises(ZeroDivisionError), Pool(Model(), Bug, TaskReward(), config=FREE) as pool:
            pool.submit(plans(0, 4))
            with pytest.raises(ZeroDivisionError):
                pool.collect(range(4))
            with pool.paused():
                pass
        assert Walk.live == 0

    def test_who_leaves_in_the_middle_leaves_nothing_behind(self):
        class Endless(Walk):
            async def step(self, text):
                at_work.release()
                await asyncio.Event().wait()
                return await super().step(text)

        model, at_work = Model(), threading.Semaphore(0)
        with pytest.raises(KeyboardInterrupt), Pool(model, Endless, TaskReward(), 8, FREE) as pool:
            pool.submit(plans(0, 32))
            assert all(at_work.acquire(timeout=SLOW) for _ in range(8)) and Walk.live == 8
            raise KeyboardInterrupt
        assert Walk.live == 0 and not model.rows

    async def test_a_pool_may_be_used_inside_a_running_event_loop(self):
        assert len(Pool(Model(), Walk, TaskReward()).run(plans(0, 3))) == 3


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lag=st.integers(0, 3),
    lockstep=st.sampled_from([None, True, False]),
    batch=st.integers(1, 9),
    sizes=st.integers(1, 6),
    trouble=st.frozensets(st.integers(0, 4), max_size=2),
    fails=st.frozensets(st.integers(0, 30), max_size=5),
    seconds=st.sampled_from([0.0, 0.001, 0.003]),
    retries=st.integers(0, 2),
    learn=st.sampled_from([0.0, 0.004]),
)
def test_whatever_happens_every_plan_gives_one_trajectory_in_order_and_fresh_enough(
    lag, lockstep, batch, sizes, trouble, fails, seconds, retries, learn
):
    model = Model(fails=fails)
    config = PoolConfig(staleness=lag, lockstep=lockstep, retries=retries)
    seen = []
    with Pool(model, lambda: Walk(seconds=seconds, trouble=trouble), TaskReward(), batch, config) as pool:
        for i, trajectories in pool.iterations(lambda i: at_once(plans(sizes * i, sizes)), 1, 4):
            seen += [t.ordinal for t in trajectories]
            for t in trajectories:
                assert t.stop in (StopReason.ENV_ENDED, StopReason.INFRA_FAILURE)
                cause = str(t.evidence.get("failure", ""))
                assert t.stop.failed == bool(cause)
                assert not cause or "trouble" in cause or (t.ordinal in fails and t.length == 1)
                assert t.reward == (not t.stop.failed)
                assert all(0 <= i - 1 - v <= lag for turn in t.turns for v in turn.versions)
            time.sleep(learn)
            pool.run_on_sampler_thread(lambda i=i: setattr(model, "version", i))
    assert seen == list(range(sizes, 5 * sizes))
    assert Walk.live == 0 and not model.rows and set(model.released.values()) <= {1}


def trials(count, length=2, first=0, turns=9, **fields):
    """Plans of so many trials, each a group; episodes may take `turns`, and `fields` are those of `Trial`."""
    trial = Trial(episodes=length, **fields)
    return [
        Plan(make_task(), s + p, s, Budget(turns=turns), s + p, trial=trial, after=tuple(range(s, s + p)))
        for s in range(first, first + length * count, length)
        for p in range(length)
    ]


class TestTrials:
    def play(self, plans, player: Player = REMEMBERING, batch=512, **pool):
        return Pool(player, TwoDoors, Found(), batch, PoolConfig(**pool)).run(plans)

    @pytest.mark.parametrize("lockstep", [True, False])
    @pytest.mark.parametrize("batch", [1, 3, 512])
    def test_a_later_episode_uses_what_the_first_one_showed(self, lockstep, batch):
        played = self.play(trials(6, 3), batch=batch, lockstep=lockstep)
        assert [t.ordinal for t in played] == list(range(18)) and [t.place for t in played] == [0, 1, 2] * 6
        assert [t.success for t in played if not t.place] == [s % 2 == 0 for s in range(0, 18, 3)]
        assert all(t.success for t in played if t.place)
        forgetful = self.play(trials(6, 3), FORGETFUL)
        assert [t.success for t in forgetful] == [t.success for t in forgetful if not t.place for _ in range(3)]

    def test_what_was_seen_last_is_kept_for_the_episodes_to_come_and_for_no_other(self):
        played = self.play([*trials(1), *trials(1, length=1, first=2)])
        assert [t.final for t in played] == ["lamp", "lamp", ""]

    def test_a_summary_tells_the_places_apart(self):
        found = summarise(self.play(trials(4, 2)))
        assert found["by_place"]["2"] == {"episodes": 4, "success": 1.0, "length": 1.0} and found["unplayed"] == 0
        assert "by_place" not in summarise(self.play(trials(4, 1)))

    def test_a_trial_that_is_over_leaves_its_other_episodes_unplayed(self):
        played = self.play(trials(2, 3, until_success=True, first=1))  # seeds 1 and 4
        assert [t.success for t in played] == [False, True, False, True, False, False]
        rest = [t for t in played if t.stop is StopReason.UNPLAYED]
        assert [t.ordinal for t in rest] == [3, 5, 6] and all(not t.turns and t.stop.failed for t in rest)
        found = summarise(played)
        assert (found["episodes"], found["failed"], found["unplayed"], found["success"]) == (3, 0, 3, 2 / 3)

    @pytest.mark.parametrize(
        ("limit", "lengths"), [(Trial(), [4, 4, 4, 4]), (Trial(turns=6), [4, 2, 0, 0]), (Trial(tokens=9), [4, 4, 1, 0])]
    )
    def test_a_trials_own_budget_is_what_its_episodes_have_together(self, limit, lengths):
        plans = [replace(p, trial=limit.replace(episodes=4)) for p in trials(1, 4, turns=4)]
        played = Pool(Model(most=1), Endless, TaskReward()).run(plans)  # a turn is a token
        assert [t.length for t in played] == lengths
        assert [t.stop is StopReason.UNPLAYED for t in played] == [not n for n in lengths]

    def test_a_trial_goes_on_without_an_episode_that_failed(self):
        seen = {}

        class Noting(Model):
            def ask(self, episode):
                seen[episode.plan.ordinal] = [t.ordinal for t in episode.past.earlier]
                super().ask(episode)

        played = Pool(Noting(fails={1}), Endless, TaskReward()).run(trials(2, 3, turns=2))
        assert [t.stop.failed for t in played] == [False, True, False] + [False] * 3
        assert seen == {0: [], 1: [0], 2: [0], 3: [], 4: [3], 5: [3, 4]}

    def test_what_was_finished_of_a_trial_is_taken_up_again(self):
        whole = self.play(trials(2, 3))
        for n in range(7):
            pool = Pool(REMEMBERING, TwoDoors, Found(), config=PoolConfig(staleness=1))
            done = [t for t in whole if t.place < n - 3 * (t.ordinal // 3)]
            with pool:
                pool.restore(done)
                ((_, again),) = pool.iterations(lambda i: at_once(trials(2, 3)), 1, 1)
            assert essence(again) == essence(whole), n

    def test_a_plan_after_an_episode_that_is_not_played_is_refused(self):
        with (
            pytest.raises(ConfigError, match="episode 1 comes after episode 0, which is not played"),
            Pool(REMEMBERING, TwoDoors, Found()) as pool,
        ):
            pool.submit(trials(1)[1:])


class Endless(Walk):
    """Ends by its budget alone."""

    async def step(self, text):
        return Step(Observation("on"), action=text)
