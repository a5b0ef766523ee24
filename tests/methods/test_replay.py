"""Replay by reference: records are drawn like the trajectories that they stand for, and read back from the store."""

import random

import pytest
from helpers import Collected, make_task, make_trajectory

from longstride.core.budget import StopReason
from longstride.core.task import DIFFICULTIES
from longstride.core.trajectory import EpisodeRecord, TaskKey, Trajectory
from longstride.methods import OnPolicy, Replay
from longstride.papers.tti.method import TTIReplay
from longstride.rollout.store import TrajectoryStore

NOTHING = Collected()


def episode(ordinal: int, rng: random.Random) -> Trajectory:
    k = rng.randrange(9)
    task = make_task(f"t{k}", source=f"s{k % 3}", difficulty=DIFFICULTIES[k % 2], template_id=f"m{k // 4}")
    turns = rng.randrange(1, 9)
    stop, answer = rng.choice(STOPS), rng.choice([None, "red", " N/A "])
    reward = float(rng.randrange(2))
    return make_trajectory(turns, reward, task=task, ordinal=ordinal, stop=stop, answer=answer, group=ordinal // 4)


STOPS = [
    StopReason.ANSWERED, StopReason.ENV_ENDED, StopReason.TURNS, StopReason.TOKENS, StopReason.TOOL_CALLS,
    StopReason.SECONDS, StopReason.CONTEXT, StopReason.PARSE_FAILURE, StopReason.INFRA_FAILURE,
]  # fmt: skip


def history(n: int) -> list[Trajectory]:
    rng = random.Random(1)
    return [episode(i, rng) for i in range(n)]


def records(trajectories: list[Trajectory]) -> list[EpisodeRecord]:
    return [t.record() for t in trajectories]


def test_a_record_has_the_facts_of_its_trajectory():
    task = make_task(difficulty="hard", template_id="m")
    stop = StopReason.ANSWERED
    t = make_trajectory(3, 0.5, task=task, ordinal=7, stop=stop, answer=" N/A ", group=4, iteration=2, role="explore")
    key = TaskKey("t", "s", "hard", "m")
    assert t.record() == EpisodeRecord(key, 7, 0.5, True, 3, stop, True, 4, 2, "explore")


def test_success_of_a_record_is_what_the_verdict_said_and_not_that_the_reward_is_positive():
    assert not make_trajectory(1, 0.5, success=False).record().success
    assert make_trajectory(1, 0.0, success=True).record().success
    assert not TTIReplay().admits(make_trajectory(1, 0.5, success=False).record())


@pytest.mark.parametrize(("answer", "infeasible"), [("N/A", True), (" n/a\n", True), ("n/a red", False), (None, False)])
def test_an_answer_says_that_a_task_cannot_be_done_in_any_case_and_spacing(answer, infeasible):
    t = make_trajectory(answer=answer)
    assert t.infeasible == t.record().infeasible == infeasible


@pytest.mark.parametrize("replay", [TTIReplay(), OnPolicy()])
def test_a_failed_episode_is_admitted_by_no_replay(replay: Replay):
    admitted = [t for t in history(200) if replay.admits(t.record())]
    assert 0 < len(admitted) < 200 and not any(t.stop.failed for t in admitted)


def test_draws_stay_what_they_were_when_only_trajectories_were_drawn():
    kept = [r for r in records(history(120)) if TTIReplay().admits(r)]
    drawn = TTIReplay(keep=8, top_p=0.9).draw(kept, 0, random.Random(3), NOTHING)
    assert [r.ordinal for r in drawn] == [31, 32, 42, 44, 65, 79, 99, 100]


@pytest.mark.parametrize(
    "replay",
    [
        TTIReplay(keep=20),
        TTIReplay(keep=500),
        TTIReplay(keep=20, mix=1.0, top_p=0.5),
        TTIReplay(keep=10, mix=0.2, balance="difficulty", top_p=0.8),
        TTIReplay(keep=10, mix=0.0, balance="template_id"),
    ],
)
def test_a_draw_is_a_function_of_its_random_stream(replay: Replay):
    kept = [r for r in records(history(300)) if replay.admits(r)]
    drawn = [[r.ordinal for r in replay.draw(kept, 7, random.Random(seed), NOTHING)] for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] == sorted(drawn[0]) != []
    assert (drawn[0] == drawn[2]) == (len(drawn[0]) == len(kept))


def test_on_policy_draws_what_is_fresh():
    kept = [r for r in records(history(30)) if OnPolicy().admits(r)]
    assert OnPolicy().draw(kept, 7, random.Random(0), NOTHING) == kept[-7:]
    assert OnPolicy().draw(kept, 0, random.Random(0), NOTHING) == []


def test_what_is_drawn_is_read_from_the_store_by_its_ordinals_before_and_after_a_resume(tmp_path):
    replay, episodes = TTIReplay(keep=9), history(100)
    store = TrajectoryStore(tmp_path / "trajectories.jsonl")
    for start in range(0, 100, 25):
        store.append(episodes[start : start + 25])
    kept = [t for t in episodes if replay.admits(t.record())]
    expected = {r.ordinal for r in replay.draw(records(kept), 0, random.Random(2), NOTHING)}
    for there in (store, TrajectoryStore(store.path)):
        drawn = replay.draw([r for r in there.records if replay.admits(r)], 0, random.Random(2), NOTHING)
        assert there.read(r.ordinal for r in drawn) == [t for t in episodes if t.ordinal in expected]
