"""The trajectory store: what is on the disk after crashes, full disks and resumes."""

import errno
import os
import resource
import signal

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import RunError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.rollout.store import TrajectoryStore


def trajectory(ordinal, tokens=3):
    task = Task(id=f"t{ordinal}", source="s", goal="caf\u00e9 \u2028 \ud83d", start="")
    turn = Turn([1, 2], list(range(tokens)), [-1.0] * tokens, [0] * tokens, "page\nline", "text", action="back")
    return Trajectory(task, ordinal, 1, Budget(), [turn], StopReason.ANSWERED, "red", 1.0)


def ordinals(store):
    return [t.ordinal for t in store]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trajectories.jsonl"


def test_what_was_appended_is_read_back_whole_and_in_order(path):
    store = TrajectoryStore(path)
    assert (len(store), ordinals(store), path.exists()) == (0, [], False)
    batch = [trajectory(i) for i in range(5)]
    store.append(batch[:2])
    store.append([])
    store.append(batch[2:])
    assert list(store) == batch == list(TrajectoryStore(path))
    assert (len(store), len(TrajectoryStore(path))) == (5, 5)


def test_iteration_is_lazy(path):
    TrajectoryStore(path).append([trajectory(0)])
    with open(path, "a") as f:
        f.write("{}\n")
    store = TrajectoryStore(path)
    lines = iter(store)
    assert (len(store), next(lines).ordinal) == (2, 0)
    with pytest.raises(RunError, match="line 2"):
        next(lines)


def test_a_partial_last_line_is_never_read_and_is_cut_off_by_the_next_write(path):
    TrajectoryStore(path).append([trajectory(0), trajectory(1)])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"task":{"id":"t2"')
    store = TrajectoryStore(path)
    assert (len(store), ordinals(store)) == (2, [0, 1])
    assert path.read_bytes() != whole  # a look at a run that is being written changes nothing
    store.append([trajectory(2)])
    assert ordinals(TrajectoryStore(path)) == [0, 1, 2]
    assert path.read_bytes().startswith(whole + b'{"task"') and path.read_bytes().count(b"\n") == 3


def test_every_cut_of_the_file_opens_with_its_whole_lines(path):
    TrajectoryStore(path).append([trajectory(i, tokens=1) for i in range(3)])
    data = path.read_bytes()
    for end in range(0, len(data) + 1, 7):
        path.write_bytes(data[:end])
        store = TrajectoryStore(path)
        assert ordinals(store) == list(range(data[:end].count(b"\n"))) and len(store) == data[:end].count(b"\n")


@pytest.mark.parametrize("chunk", [64, 1000, 2000])
def test_lines_are_counted_and_cut_wherever_a_read_ends(path, monkeypatch, chunk):
    monkeypatch.setattr("longstride.rollout.store._CHUNK", chunk)
    TrajectoryStore(path).append([trajectory(i, tokens=9 * i) for i in range(9)])
    for n in (9, 7, 6, 4, 3, 1, 0):
        store = TrajectoryStore(path)
        store.truncate(n)
        assert ordinals(store) == ordinals(TrajectoryStore(path)) == list(range(n))


def test_truncate_keeps_the_first_lines_and_appending_goes_on_behind_them(path):
    store = TrajectoryStore(path)
    store.append([trajectory(i) for i in range(5)])
    before = path.read_bytes()
    store.truncate(2)
    store.append([trajectory(i) for i in range(2, 5)])
    assert path.read_bytes() == before


@pytest.mark.parametrize("n", [3, -1])
def test_truncate_to_what_is_not_there_is_refused(path, n):
    store = TrajectoryStore(path)
    store.append([trajectory(0)])
    with pytest.raises(RunError, match="holds 1 trajectories"):
        store.truncate(n)
    TrajectoryStore(path.with_name("none")).truncate(0)


def test_a_batch_is_on_the_disk_when_append_returns(path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    TrajectoryStore(path).append([trajectory(0), trajectory(1)])
    assert path.stat().st_size in synced


def test_a_write_that_stops_halfway_leaves_whole_lines_and_says_what_was_kept(path):
    store = TrajectoryStore(path)
    store.append([trajectory(0), trajectory(1)])
    before = path.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) * 2, old[1]))
        with pytest.raises(RunError, match="the 2 trajectories before are kept"):
            store.append([trajectory(i, tokens=100) for i in range(2, 20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    store.append([trajectory(2)])
    assert ordinals(store) == [0, 1, 2]


def test_a_full_disk_is_named(path, monkeypatch):
    store = TrajectoryStore(path)
    store.append([trajectory(0)])

    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device; the 1 trajectories"):
        store.append([trajectory(1)])
    assert ordinals(TrajectoryStore(path)) == [0]


def test_ctrl_c_within_a_batch_leaves_no_part_of_it(path, monkeypatch):
    store = TrajectoryStore(path)
    store.append([trajectory(0)])
    bad = trajectory(2)
    monkeypatch.setattr(
        Trajectory, "to_json", lambda self, real=Trajectory.to_json: _raise() if self is bad else real(self)
    )
    with pytest.raises(KeyboardInterrupt):
        store.append([trajectory(1), bad])
    assert ordinals(TrajectoryStore(path)) == [0]


def _raise():
    raise KeyboardInterrupt


def test_what_another_process_wrote_is_not_destroyed(path):
    store, other = TrajectoryStore(path), TrajectoryStore(path)
    other.append([trajectory(0)])
    with pytest.raises(RunError, match="changed by another"):
        store.append([trajectory(9)])
    assert ordinals(TrajectoryStore(path)) == [0]


def test_a_file_that_cannot_be_read_is_a_user_error(tmp_path):
    with pytest.raises(RunError, match="cannot read"):
        TrajectoryStore(tmp_path)
    with pytest.raises(RunError, match="cannot write"):
        TrajectoryStore(tmp_path / "no" / "folder").append([trajectory(0)])
