"""The trajectory store: what is on the disk after crashes, full disks and resumes."""

import errno
import json
import os
import resource
import signal
import tracemalloc
import zlib

import pytest
from helpers import hard_to_keep, make_trajectory, make_turn

from longstride.core.content import LARGEST, Media
from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory
from longstride.rollout.media import MediaFolder
from longstride.rollout.store import TrajectoryStore


def ordinals(store):
    return [t.ordinal for t in store]


def index(path):
    return path.with_suffix(".index")


def batches(path, *sizes):
    """A store of so many trajectories a batch."""
    store, n = TrajectoryStore(path), 0
    for size in sizes:
        store.append([hard_to_keep(i) for i in range(n, n + size)])
        n += size
    return store


@pytest.fixture
def parsed(monkeypatch):
    """How many lines were parsed so far, as the length of a list."""
    lines, real = [], Trajectory.from_json
    monkeypatch.setattr(
        Trajectory, "from_json", staticmethod(lambda line, *find: (lines.append(line), real(line, *find))[1])
    )
    return lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trajectories.jsonl"


def test_what_was_appended_is_read_back_whole_and_in_order(path):
    store = TrajectoryStore(path)
    assert (len(store), ordinals(store), path.exists()) == (0, [], False)
    batch = [hard_to_keep(i) for i in range(5)]
    store.append(batch[:2])
    store.append([])
    store.append(batch[2:])
    assert list(store) == batch == list(TrajectoryStore(path))
    assert (len(store), len(TrajectoryStore(path))) == (5, 5)


def test_iteration_is_lazy(path):
    TrajectoryStore(path).append([hard_to_keep(0)])
    with open(path, "a") as f:
        f.write("{}\n")
    store = TrajectoryStore(path)
    lines = iter(store)
    assert (len(store), next(lines).ordinal) == (2, 0)
    with pytest.raises(RunError, match="line 2"):
        next(lines)


def test_a_partial_last_line_is_never_read_and_is_cut_off_by_the_next_write(path):
    TrajectoryStore(path).append([hard_to_keep(0), hard_to_keep(1)])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"task":{"id":"t2"')
    store = TrajectoryStore(path)
    assert (len(store), ordinals(store)) == (2, [0, 1])
    assert path.read_bytes() != whole  # a look at a run that is being written changes nothing
    store.append([hard_to_keep(2)])
    assert ordinals(TrajectoryStore(path)) == [0, 1, 2]
    assert path.read_bytes().startswith(whole + b'{"task"') and path.read_bytes().count(b"\n") == 3


def test_every_cut_of_the_file_opens_with_its_whole_lines(path):
    TrajectoryStore(path).append([hard_to_keep(i, tokens=1) for i in range(3)])
    data = path.read_bytes()
    for end in range(0, len(data) + 1, 7):
        path.write_bytes(data[:end])
        store = TrajectoryStore(path)
        assert ordinals(store) == list(range(data[:end].count(b"\n"))) and len(store) == data[:end].count(b"\n")


@pytest.mark.parametrize("indexed", [True, False])
def test_lines_are_counted_and_cut_with_and_without_an_index(path, indexed):
    TrajectoryStore(path).append([hard_to_keep(i, tokens=9 * i) for i in range(9)])
    for n in (9, 7, 6, 4, 3, 1, 0):
        if not indexed:
            index(path).unlink(missing_ok=True)
        store = TrajectoryStore(path)
        store.truncate(n)
        assert ordinals(store) == ordinals(TrajectoryStore(path)) == list(range(n))


def test_truncate_keeps_the_first_lines_and_appending_goes_on_behind_them(path):
    store = TrajectoryStore(path)
    store.append([hard_to_keep(i) for i in range(5)])
    before = path.read_bytes()
    store.truncate(2)
    store.append([hard_to_keep(i) for i in range(2, 5)])
    assert path.read_bytes() == before


@pytest.mark.parametrize("n", [3, -1])
def test_truncate_to_what_is_not_there_is_refused(path, n):
    store = TrajectoryStore(path)
    store.append([hard_to_keep(0)])
    with pytest.raises(RunError, match="holds 1 trajectories"):
        store.truncate(n)
    TrajectoryStore(path.with_name("none")).truncate(0)


def test_a_batch_is_on_the_disk_when_append_returns(path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    TrajectoryStore(path).append([hard_to_keep(0), hard_to_keep(1)])
    assert path.stat().st_size in synced


def test_a_write_that_stops_halfway_leaves_whole_lines_and_says_what_was_kept(path):
    store = TrajectoryStore(path)
    store.append([hard_to_keep(0), hard_to_keep(1)])
    before = path.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) * 2, old[1]))
        with pytest.raises(RunError, match="the 2 trajectories before are kept"):
            store.append([hard_to_keep(i, tokens=100) for i in range(2, 20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    store.append([hard_to_keep(2)])
    assert ordinals(store) == [0, 1, 2]


def test_a_full_disk_is_named(path, monkeypatch):
    store = TrajectoryStore(path)
    store.append([hard_to_keep(0)])

    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device; the 1 trajectories"):
        store.append([hard_to_keep(1)])
    assert ordinals(TrajectoryStore(path)) == [0]


def test_ctrl_c_within_a_batch_leaves_no_part_of_it(path, monkeypatch):
    store = TrajectoryStore(path)
    store.append([hard_to_keep(0)])
    bad = hard_to_keep(2)
    monkeypatch.setattr(
        Trajectory, "to_json", lambda self, real=Trajectory.to_json: _raise() if self is bad else real(self)
    )
    with pytest.raises(KeyboardInterrupt):
        store.append([hard_to_keep(1), bad])
    assert ordinals(TrajectoryStore(path)) == [0]


def _raise():
    raise KeyboardInterrupt


def test_what_another_process_wrote_is_not_destroyed(path):
    store, other = TrajectoryStore(path), TrajectoryStore(path)
    other.append([hard_to_keep(0)])
    with pytest.raises(RunError, match="changed by another"):
        store.append([hard_to_keep(9)])
    assert ordinals(TrajectoryStore(path)) == [0]


def test_a_file_that_cannot_be_read_is_a_user_error(tmp_path):
    with pytest.raises(RunError, match="cannot read"):
        TrajectoryStore(tmp_path)
    with pytest.raises(RunError, match="cannot write"):
        TrajectoryStore(tmp_path / "no" / "folder").append([hard_to_keep(0)])


class TestReading:
    def test_single_trajectories_are_read_in_the_order_asked_for_and_no_other_is(self, path, parsed):
        batches(path, 3, 3)
        store = TrajectoryStore(path)
        assert store[4] == hard_to_keep(4) and store[-1] == hard_to_keep(5)
        assert store.read([5, 0, 0]) == [hard_to_keep(5), hard_to_keep(0), hard_to_keep(0)]
        assert len(parsed) == 5 and store.read([]) == []

    @pytest.mark.parametrize("place", [2, -3])
    def test_a_place_without_a_trajectory_is_an_index_error(self, path, place):
        with pytest.raises(IndexError):
            batches(path, 2)[place]

    def test_a_damaged_line_is_named(self, path):
        path.write_text("{}\n" * 3)
        with pytest.raises(RunError, match="line 2: it is not what was written there"):
            TrajectoryStore(path).read([1])

    @pytest.mark.parametrize("indexed", [True, False])
    def test_a_line_that_is_not_the_one_that_was_written_is_an_error(self, path, indexed):
        batches(path, 3)
        path.write_bytes(path.read_bytes().replace(b'"t1"', b'"u1"'))
        if not indexed:
            index(path).unlink()
        store = TrajectoryStore(path)
        assert store[2].task.id == "t2"
        for use in (lambda: store.read([1]), lambda: store.check(2)):
            with pytest.raises(RunError, match=r"trajectories\.jsonl, line 2: it is not what was written there"):
                use()
        store.check(1)

    @pytest.mark.parametrize("order", [[0, 2], [0, 1, 1, 2], [1, 0, 2], [0, 0, 1]], ids=str)
    def test_a_lost_doubled_or_moved_line_is_named(self, path, order):
        batches(path, 3)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[k] for k in order))
        store = TrajectoryStore(path)
        first = next(k for k, line in enumerate(order) if line != k)
        with pytest.raises(RunError, match=f"line {first + 1}: "):
            store.check(3)
        with pytest.raises(RunError, match=f"line {first + 1}: "):
            list(store)

    def test_a_run_counts_its_episodes_from_0(self, path):
        TrajectoryStore(path).append([hard_to_keep(0), hard_to_keep(7)])
        with pytest.raises(RunError, match="line 2: expected the episode of ordinal 1, got 7"):
            TrajectoryStore(path).check(2)


class TestRecords:
    def test_records_are_those_of_the_trajectories_and_opening_parses_none(self, path, parsed):
        store = batches(path, 3, 1, 2)
        expected = [hard_to_keep(i).record() for i in range(6)]
        assert store.records == expected == TrajectoryStore(path).records
        assert len(TrajectoryStore(path)) == 6 and not parsed

    def test_records_of_one_task_share_what_is_kept_of_it(self, path):
        batch = [hard_to_keep(0), hard_to_keep(0), hard_to_keep(1)]
        store = TrajectoryStore(path)
        store.append(batch)
        for records in (store.records, TrajectoryStore(path).records):
            assert records[0].task is records[1].task is not records[2].task

    def test_memory_of_a_trajectory_is_small_and_does_not_grow_with_its_content(self, path):
        used = []
        for tokens in (3, 100):
            path.unlink(missing_ok=True)
            batch = [hard_to_keep(k % 10, tokens) for k in range(2000)]
            for k, t in enumerate(batch):
                t.ordinal = t.group = k
            TrajectoryStore(path).append(batch)
            TrajectoryStore(path)  # what is made once and kept
            tracemalloc.start()
            store = TrajectoryStore(path)
            assert len(store.records) == 2000
            used.append(tracemalloc.get_traced_memory()[0] / 2000)
            tracemalloc.stop()
        assert max(used) < 200 and used[1] < used[0] + 30  # the content is 4 kB more


class TestIndex:
    def test_a_missing_index_is_made_anew_by_the_next_write_once_records_were_asked_for(self, path, parsed):
        batches(path, 2, 2)
        index(path).unlink()
        store = TrajectoryStore(path)
        assert store.records == [hard_to_keep(i).record() for i in range(4)] and len(parsed) == 4
        assert not index(path).exists()  # a look changes nothing
        store.append([hard_to_keep(4)])
        parsed.clear()
        assert TrajectoryStore(path).records == [hard_to_keep(i).record() for i in range(5)] and not parsed

    def test_an_append_that_no_records_were_asked_for_before_reads_nothing(self, path, parsed):
        batches(path, 2)
        index(path).unlink()
        store = TrajectoryStore(path)
        store.append([hard_to_keep(2)])
        assert not parsed and not index(path).exists()
        assert [r.ordinal for r in store.records] == ordinals(store) == [0, 1, 2]

    def test_every_cut_and_every_damage_of_the_index_is_made_good(self, path):
        batches(path, 2, 1, 2)
        whole, expected = index(path).read_bytes(), [hard_to_keep(i) for i in range(5)]
        cuts = [whole[:n] for n in range(0, len(whole), 23)]
        damaged = [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(0, len(whole), 23)]
        for data in cuts + damaged:
            index(path).write_bytes(data)
            store = TrajectoryStore(path)
            assert store.records == [t.record() for t in expected]
            assert store.read(range(5)) == expected

    def test_what_was_damaged_is_replaced_by_the_next_write(self, path, parsed):
        batches(path, 2, 2)
        index(path).write_bytes(index(path).read_bytes()[:-5] + b"junk\n")
        store = TrajectoryStore(path)
        assert len(store.records) == 4 and len(parsed) == 2  # those of the first block are known
        store.append([hard_to_keep(4)])
        parsed.clear()
        assert len(TrajectoryStore(path).records) == 5 and not parsed

    def test_rows_of_the_right_checksum_and_the_wrong_form_are_left_out(self, path):
        batches(path, 2)
        for rows in ([[1]], {"a": 1}, 3, [[-1, -1, ["t"] * 4, [0] * 7]], [["x", 0, ["t"] * 4, [0] * 7]]):
            block = json.dumps(rows).encode() + b"\n"
            index(path).write_bytes(b"%08x %s" % (zlib.crc32(block), block))
            assert TrajectoryStore(path).records == [hard_to_keep(i).record() for i in range(2)]

    def test_the_index_of_another_file_is_not_used(self, path):
        batches(path, 2, 1)
        other = path.with_name("other.jsonl")
        TrajectoryStore(other).append([hard_to_keep(i, tokens=5) for i in range(7, 13)])
        index(path).write_bytes(index(other).read_bytes())
        assert [r.ordinal for r in TrajectoryStore(path).records] == [0, 1, 2]

    @pytest.mark.parametrize("n", range(6))
    def test_a_file_that_was_cut_and_grew_again_without_its_index_is_read_right(self, path, n):
        batches(path, 2, 1, 2)
        old = index(path).read_bytes()
        TrajectoryStore(path).truncate(n)
        TrajectoryStore(path).append([hard_to_keep(i, tokens=4) for i in range(10, 15)])
        expected = TrajectoryStore(path).records
        index(path).write_bytes(old)
        assert TrajectoryStore(path).records == expected == [t.record() for t in TrajectoryStore(path)]

    @pytest.mark.parametrize("n", range(6))
    def test_truncate_and_append_keep_the_index_whole(self, path, parsed, n):
        store = batches(path, 2, 1, 2)
        store.truncate(n)
        store.append([hard_to_keep(n)])
        assert store.records == TrajectoryStore(path).records == [hard_to_keep(i).record() for i in range(n + 1)]
        assert not parsed and store[n] == hard_to_keep(n)

    def test_an_index_that_cannot_be_written_costs_no_trajectory_and_is_written_later(self, path, parsed):
        index(path).mkdir()
        store = batches(path, 2)
        assert ordinals(store) == ordinals(TrajectoryStore(path)) == [0, 1]
        index(path).rmdir()
        store.append([hard_to_keep(2)])
        parsed.clear()
        assert [r.ordinal for r in TrajectoryStore(path).records] == [0, 1, 2] and not parsed

    def test_a_store_that_is_opened_while_another_writes_sees_whole_batches(self, path):
        writer = batches(path, 2)
        with_one_row_less = index(path).read_bytes()
        writer.append([hard_to_keep(2)])
        index(path).write_bytes(with_one_row_less)  # between the write of a batch and that of its rows
        assert [r.ordinal for r in TrajectoryStore(path).records] == [0, 1, 2]

    def test_large_batches_are_decoded_in_parts(self, path, monkeypatch):
        monkeypatch.setattr("longstride.rollout.index.BLOCK", 4)
        batches(path, 9, 1)
        assert index(path).read_bytes().count(b"\n") == 4
        assert [r.ordinal for r in TrajectoryStore(path).records] == list(range(10))


class TestMedia:
    RED, TABLE = Media(b"red"), Media(b"{}", "application/json")

    def seen(self, ordinal):
        turn = make_turn([1], [0, self.RED.placeholder], observation=("look", self.RED, self.TABLE), media=(self.RED,))
        return make_trajectory([turn], ordinal=ordinal)

    def test_they_are_kept_once_and_given_back(self, path):
        store = TrajectoryStore(path)
        store.append([self.seen(0), hard_to_keep(1), self.seen(2)])
        assert {p.name: p.read_bytes() for p in (path.parent / "media").iterdir()} == {
            self.RED.name: b"red", self.TABLE.name: b"{}"
        }  # fmt: skip
        again = TrajectoryStore(path)
        again.check(3)
        first, plain, last = again
        assert (first, plain, last) == (self.seen(0), hard_to_keep(1), self.seen(2))
        (red, table), (same, _) = first.media, last.media
        assert (red.data, red.kind, table.data, table.kind) == (b"red", "image/png", b"{}", "application/json")
        assert red is same

    def test_a_store_of_text_alone_has_no_folder_of_them(self, path):
        TrajectoryStore(path).append([hard_to_keep(0)])
        assert not (path.parent / "media").exists()

    @pytest.mark.parametrize(
        ("damage", "said"),
        [
            (lambda file: file.unlink(), "is missing, and an episode refers to it"),
            (lambda file: file.write_bytes(b"blue"), "is damaged: its bytes are not those of its name"),
            (lambda file: os.truncate(file, LARGEST + 1), "is larger than"),
        ],
    )
    def test_what_is_not_what_was_written_is_named_when_a_run_goes_on(self, path, damage, said):
        TrajectoryStore(path).append([self.seen(0)])
        damage(path.parent / "media" / self.RED.name)
        with pytest.raises(RunError, match=f"line 1: .*{self.RED.name} {said}"):
            TrajectoryStore(path).check(1)

    def test_a_damaged_file_is_written_anew_by_the_next_that_has_it(self, path):
        TrajectoryStore(path).append([self.seen(0)])
        (path.parent / "media" / self.RED.name).write_bytes(b"bl")
        TrajectoryStore(path).append([self.seen(1)])
        TrajectoryStore(path).check(2)

    @pytest.mark.parametrize("name", ["../secret", "", "a" * 63, "A" * 64, "a" * 64 + "\n"])
    def test_a_name_is_no_path(self, tmp_path, name):
        (tmp_path / "secret").write_bytes(b"x")
        with pytest.raises(RunError, match="expected a SHA-256 as the name"):
            MediaFolder(tmp_path / "media").find(name, "image/png")
