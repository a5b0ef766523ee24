"""The promises of the scheduler on a virtual clock, whatever servers and environments do; that the clock and the
distributions are what they say; and what the simulation measures where the answer is known."""

import dataclasses
import itertools
import math
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from longstride.core.budget import StopReason
from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory
from longstride.rollout.planning import at_once
from longstride.rollout.simulated import (
    PASSES,
    Report,
    SimulatedWorld,
    Spread,
    VirtualLoop,
    Workload,
    iterations,
    make_pool,
    pass_seconds,
    plans_of,
    simulate,
    turns_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::longstride.core.errors.LongstrideWarning")
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""Without shrinking, which takes minutes."""
SMALL = Workload(6, 2, iterations=3, turns=Spread(3, 0.7, 8))


def essence(trajectories: list[Trajectory]) -> list[Any]:
    """All but versions and what depends on them."""
    return [
        (t.ordinal, t.stop, t.reward, [(turn.prompt_ids, turn.sampled_ids) for turn in t.turns]) for t in trajectories
    ]


def content(trajectories: list[Trajectory]) -> list[Any]:
    return [(e, [turn.versions for turn in t.turns]) for e, t in zip(essence(trajectories), trajectories, strict=True)]


workloads = st.builds(
    Workload,
    places=st.integers(1, 12),
    servers=st.integers(1, 4),
    staleness=st.integers(0, 3),
    episodes=st.integers(1, 12),
    iterations=st.just(4),
    lockstep=st.sampled_from([None, True, False]),
    turns=st.just(Spread(3, 0.8, 12)),
    latency=st.sampled_from([Spread(0.5, 1.5, 50), Spread(1e-4, 0.1, 1), Spread(20, 1, 55)]),
    learn=st.sampled_from([0.0, 30.0, 1000.0]),
    crashes=st.sampled_from([0.0, 0.05]),
    hangs=st.sampled_from([0.0, 0.02]),
    hours=st.sampled_from([math.inf, 0.2, 0.03]),
    repair=st.sampled_from([10.0, 300.0]),
    seed=st.integers(0, 10**6),
)


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(workload=workloads)
def test_whatever_happens_no_token_is_too_old_and_every_plan_gives_one_trajectory_of_its_length(workload):
    """Promises 1 and 4: the bound on staleness, and trained horizons are started horizons."""
    report, seen = Report(workload), []
    for i, trajectories in iterations(workload, report):
        seen += [t.ordinal for t in trajectories]
        for t in trajectories:
            assert all(0 <= i - 1 - v <= workload.staleness for turn in t.turns for v in turn.versions)
            assert t.stop in (StopReason.ENV_ENDED, StopReason.INFRA_FAILURE)
            assert t.stop.failed or t.length == turns_of(workload, t.seed)
    assert seen == list(range(4 * workload.size))
    assert not report.failed or workload.crashes or workload.hangs or workload.hours < math.inf
    if not report.failed:
        assert report.bias == 0


@settings(max_examples=3, deadline=None, phases=PHASES)
@given(workload=workloads)
def test_with_nothing_stale_it_is_the_synchronous_loop(workload):
    """Promise 2: who plays beside whom, how long anything takes and which server samples change nothing."""
    workload = dataclasses.replace(workload, staleness=0, crashes=0.0, hangs=0.0)
    quiet = {"latency": Spread(1, 0.1, 2), "hours": math.inf, "learn": 0.0}
    one_by_one = dataclasses.replace(workload, places=1, servers=1, episodes=workload.size, **quiet)
    ways = zip(iterations(workload, Report(workload)), iterations(one_by_one, Report(one_by_one)), strict=True)
    for (_, ours), (_, plain) in ways:
        assert [c for c, t in zip(content(ours), ours, strict=True) if not t.stop.failed] == [
            c for c, t in zip(content(plain), ours, strict=True) if not t.stop.failed
        ]


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(workload=workloads, at=st.integers(1, 3))
def test_a_run_that_was_killed_plays_what_the_other_one_played(workload, at):
    """Promise 3: what was finished is taken over, the rest is played again, and nothing is older than it may be."""
    workload = dataclasses.replace(workload, crashes=0.0, hangs=0.0, hours=math.inf)
    whole = {i: content(t) if not workload.staleness else essence(t) for i, t in iterations(workload, Report(workload))}
    with make_pool(SimulatedWorld(workload)) as pool:
        for i, _ in pool.iterations(lambda i: at_once(plans_of(workload, i)), 1, 4):
            pool.train(i)
            if i == at:
                break
        kept = pool.finished()
    before = content(kept)
    with make_pool(SimulatedWorld(workload)) as pool:
        pool.train(at)
        pool.restore(kept)
        found = {}
        for i, trajectories in pool.iterations(lambda i: at_once(plans_of(workload, i)), at + 1, 4):
            found[i] = content(trajectories) if not workload.staleness else essence(trajectories)
            assert all(i - 1 - v <= workload.staleness for t in trajectories for turn in t.turns for v in turn.versions)
            mine, old = {t.ordinal for t in trajectories}, {k.ordinal for k in kept}
            taken = [c for c, t in zip(content(trajectories), trajectories, strict=True) if t.ordinal in old]
            assert taken == [c for c, k in zip(before, kept, strict=True) if k.ordinal in mine]
            pool.train(i)
    assert found == {i: t for i, t in whole.items() if i > at}


def test_the_same_numbers_give_the_same_events():
    rough = dataclasses.replace(SMALL, crashes=0.05, hours=0.1)
    assert simulate(rough) == simulate(rough) != simulate(dataclasses.replace(rough, seed=1))


def test_servers_that_die_cost_time_and_no_episode():
    calm = dataclasses.replace(SMALL, places=24, servers=4, iterations=4)
    rough = dataclasses.replace(calm, hours=0.03, repair=30.0)
    quiet, stormy = simulate(calm), simulate(rough)
    assert stormy.failures >= 4 and stormy.asked_again and not stormy.failed
    assert stormy.trained == quiet.trained and stormy.seconds > quiet.seconds


def test_utilisation_is_below_the_bound_and_what_it_is_by_hand_where_nothing_varies():
    """One episode at a time, of turns of 128 tokens and 1 second of the environment."""
    exact = Workload(
        1, 1, staleness=0, episodes=4, iterations=3, push=0.0, turns=Spread(5, 0, 5), tokens=Spread(128, 0, 128),
        latency=Spread(1, 0, 1), lockstep=False,
    )  # fmt: skip
    turn = 128 * pass_seconds(1) + 1 + 256 / 100_000
    assert exact.bound() == pytest.approx(128 / turn, rel=1e-3)
    report = simulate(exact)
    # the reset takes as long as a step, and the head is read once
    assert report.utilisation == pytest.approx(5 * turn / (5 * turn + 1 + (384 / 100_000)), rel=2e-2)


def test_passes_take_as_long_as_they_were_measured_to():
    assert [pass_seconds(n) for n, _ in PASSES] == [seconds for _, seconds in PASSES]
    assert pass_seconds(160) == pytest.approx((0.032 + 0.039) / 2)
    assert pass_seconds(0.1) == PASSES[0][1] and pass_seconds(5000) == PASSES[-1][1]


def test_a_spread_has_its_median_its_mean_and_its_end():
    spread = Spread(100, 1.0, 1000)
    drawn = sorted(spread.at(k * 7919) for k in range(4000))
    assert drawn[2000] == pytest.approx(100, rel=0.1) and max(drawn) == 1000
    assert spread.mean == pytest.approx(sum(drawn) / 4000, rel=0.05)


def test_time_passes_only_where_nothing_is_left_to_do():
    import asyncio

    loop, order = VirtualLoop(), []

    async def main() -> None:
        async def one(seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append((seconds, loop.time()))

        await asyncio.gather(*map(one, (3600.0, 1.0, 60.0)))

    loop.run_until_complete(main())
    assert order == [(s, pytest.approx(s)) for s in (1.0, 60.0, 3600.0)]
    with pytest.raises(RunError, match="stands still"):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_an_error_of_an_environment_reaches_who_waits(monkeypatch):
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("longstride.rollout.simulated.SimulatedEnv._wait", broken)
    with pytest.raises(ZeroDivisionError):
        simulate(SMALL)


def test_the_longest_turn_does_not_grow_with_what_is_in_flight():
    """Steps of the event loop a turn: what the scheduler does for one is the same with many beside it."""

    def steps(places: int) -> float:
        workload, counted = dataclasses.replace(SMALL, places=places, servers=1, iterations=2), itertools.count()
        world = SimulatedWorld(workload)
        loop: Any = world.loop
        run = loop._run_once
        loop._run_once = lambda: (next(counted), run())[1]
        with make_pool(world) as pool:
            for i, _ in pool.iterations(lambda i: at_once(plans_of(workload, i)), 1, 2):
                pool.train(i)
        return next(counted) / world.turns

    assert steps(64) < 1.2 * steps(8)
