"""Which tokens' keys and values stand in which slot of the store, and who may use them.

What always holds: keys and values stay under their limit of bytes; a slot is one session's or one request's at a time;
what stands in a slot is that of the ids it names, up to the number that is encoded; a prompt takes over the longest
beginning that it shares with any slot, its own session's first. A slot that was given back is still copied from, until
somebody else gets it.

What it does not do: share memory between slots (a prefix is copied), or know of weights (a cache belongs to one version
of them, and a new version gets a new cache).
"""

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from longstride.engines.attention import KeyValueStore
from longstride.engines.base import Refused

WORTH = 16
"""Ids for which a prompt waits, at least, while another request is just encoding them; less is encoded twice."""


@dataclass(slots=True, eq=False)
class Slot:
    """A row of the store."""

    row: int
    session: int | None = None
    busy: bool = False
    """A request is using it."""
    ids: list[int] = field(default_factory=list)
    """Tokens that stand here or, while it is busy, are going to."""
    at: int = 0
    """How many of them are encoded."""
    name: list[int] = field(default_factory=list)
    """What `ids` were when it was taken or given back: the cache looks it up by them."""
    trunk: object = field(default_factory=object)
    """Slots of one trunk were copied from one another, and have a beginning in common."""
    common: float = math.inf
    """How many positions, from the first, are the trunk's; unbounded where the trunk is what stands here."""


class Cache:
    """Slots for requests and sessions.

    Args:
        bytes_per_token: of keys and values.
        limit: bytes of all keys and values, at most.
        max_slots: at most, even where there is room for more.
        max_context: positions that a slot needs at most.
        store: whose memory is used again, of the same limits; what stands in it is forgotten.
    """

    def __init__(
        self, bytes_per_token: int, limit: int, max_slots: int, max_context: int, store: KeyValueStore | None = None
    ) -> None:
        self.store = store or KeyValueStore()
        self._bytes_per_token, self._limit = bytes_per_token, limit
        self._max_slots, self._max_context = max_slots, max_context
        self._least = max_context if max_slots * max_context * bytes_per_token <= limit else 1
        """Positions of a slot, at least: where there is room for all, slots need not grow later."""
        self._slots = [Slot(row) for row in range(self.store.slots)]
        """All of them, by row."""
        self._sessions: dict[int, Slot] = {}
        """The one used longest ago first."""
        self._free = [(slot.row, slot) for slot in self._slots]
        """A heap: low rows first, so that rows in use lie close together."""
        self._named: list[Slot] = []
        """Slots in the order of their names, so that those that begin like a prompt stand side by side."""

    def room(self, need: int) -> int:
        """How many slots of `need` positions there may be."""
        return min(self._max_slots, self._limit // (self._capacity(need) * self._bytes_per_token))

    def expect(self, sessions: Iterable[int | None], need: int) -> None:
        """Grows at once for requests of these sessions, of at most `need` positions each, as far as there is room."""
        asked = list(sessions)
        new = asked.count(None) + len(set(asked) - self._sessions.keys() - {None})
        slots, most = self.store.slots - len(self._free) + new, self.room(need)
        if min(slots, most) > self.store.slots:
            self._resize(min(max(slots, 2 * self.store.slots), most), self._capacity(need))

    def must_wait(self, session: int | None, ids: list[int]) -> bool:
        """Whether a prompt had better wait: its session is busy, or another request is just encoding all of it, or as
        much of its beginning as is worth a wait."""
        own = None if session is None else self._sessions.get(session)
        if own is not None and own.busy:
            return True
        source, same, held = self._like(ids, own, len(ids))
        return source is not None and source.at < same and (same == len(ids) or same >= held + WORTH)

    def take(self, session: int | None, ids: list[int], need: int, most: int) -> Slot:
        """A slot of at least `need` positions in which all that can be taken over of the prompt stands. There must be
        `room` for it beside the slots that are busy; sessions used longest ago are dropped for it.

        Args:
            session: whose slot it is to be; it must not be busy.
            ids: the prompt; the slot keeps this very list, so ids appended to it are the slot's too.
            need: positions.
            most: ids that are taken over at most: all but the last, where its logits are still wanted.

        Raises:
            Refused: there is never so much room.
        """
        if self.room(need) < 1:
            raise Refused(
                f"keys and values of {need} tokens take {self._capacity(need) * self._bytes_per_token} bytes, over the "
                f"limit of {self._limit}: raise engine.cache_gigabytes, or lower the budget"
            )
        own = None if session is None else self._sessions.pop(session, None)
        if own is not None and session is not None:
            self._sessions[session] = own  # the last to be dropped
        self._make_room(need, own)
        slot = own or heapq.heappop(self._free)[1]
        source, same, held = self._like(ids, own, most)
        if source is not None and source.at < same:  # not worth the wait
            source, same = own, held
        if source is not None and source is not slot:
            self.store.copy(source.row, slot.row, held, same)
            if same > source.common:
                source.trunk, source.common = object(), math.inf
            slot.trunk, slot.common = source.trunk, same
        elif same:
            slot.common = min(slot.common, same)
        else:
            slot.trunk, slot.common = object(), math.inf
        self._hold(slot, ids, same)
        slot.busy, slot.session = True, session
        if session is not None:
            self._sessions[session] = slot
        return slot

    def give_back(self, slot: Slot) -> None:
        """Ends a request: what is encoded stays its session's, or stands there until the slot is wanted."""
        self._hold(slot, slot.ids[: slot.at], slot.at)
        slot.busy = False
        if slot.session is None:
            heapq.heappush(self._free, (slot.row, slot))

    def forget(self, slot: Slot) -> None:
        """Drops what stands in a slot, which may not be numbers."""
        self.store.clear(slot.row)
        slot.trunk, slot.common = object(), math.inf
        self._hold(slot, [], 0)

    def release(self, session: int) -> None:
        """Gives a session's slot back, as soon as no request uses it. Unknown sessions are ignored."""
        slot = self._sessions.pop(session, None)
        if slot is not None:
            slot.session = None
            if not slot.busy:
                heapq.heappush(self._free, (slot.row, slot))

    def _like(self, ids: list[int], own: Slot | None, most: int) -> tuple[Slot | None, int, int]:
        """The slot that begins most like a prompt, how many ids they share, and how many its own slot does, each at
        most `most`. Of slots that share as many its own comes first, then one that has encoded them."""
        held = 0 if own is None else common_prefix(own.ids, ids, most)
        found, best = own, held
        here = bisect_left(self._named, ids, key=lambda slot: slot.name)
        for side in (range(here, len(self._named)), range(here - 1, -1, -1)):
            for slot in map(self._named.__getitem__, side):
                same = common_prefix(slot.name, ids, most)
                if same < best or same == held:
                    break
                if same > best or slot.at >= same:
                    found, best = slot, same
                if slot.at >= same:
                    break
        return found, best, held

    def _make_room(self, need: int, own: Slot | None) -> None:
        most, capacity = self.room(need), self._capacity(need)
        used = self.store.slots - len(self._free) + (own is None)
        if used > most:
            idle = [session for session, slot in self._sessions.items() if not slot.busy and slot is not own]
            for session in idle[: used - most]:
                self.release(session)
            used = most
        if capacity > self.store.capacity or used > self.store.slots:
            self._resize(min(most, max(1 << (used - 1).bit_length(), self.store.slots)), capacity)

    def _resize(self, slots: int, capacity: int) -> None:
        """Where slots become fewer, those that nobody has are dropped."""
        free = {slot for _, slot in self._free}
        kept = sorted(self._slots, key=lambda slot: slot in free)
        for slot in kept[slots:]:
            self._hold(slot, [], 0)
        del kept[slots:]
        self.store.resize(slots, capacity, [(slot.row, slot.at) for slot in kept])
        self._slots = kept + [Slot(row) for row in range(len(kept), slots)]
        for row, slot in enumerate(kept):
            slot.row = row
        self._free = [(slot.row, slot) for slot in self._slots if slot in free or slot.row >= len(kept)]

    def _capacity(self, need: int) -> int:
        """Positions of a slot: a power of two or all, so that growing is rare."""
        return max(self.store.capacity, self._least, min(1 << (need - 1).bit_length(), self._max_context))

    def _hold(self, slot: Slot, ids: list[int], at: int) -> None:
        """Says what stands in a slot, or is going to."""
        if slot.name:
            self._named.remove(slot)
        slot.ids, slot.at, slot.name = ids, at, list(ids)
        if ids:
            insort(self._named, slot, key=lambda slot: slot.name)


def shared_beginnings(slots: Iterable[Slot], least: int) -> list[tuple[list[Slot], int]]:
    """Groups of slots, each with the number of positions that begin all of them, for which reading these once spares at
    least `least` positions. What follows them costs some of that, as it is gathered before it is read."""
    trunks: dict[int, list[tuple[int, Slot]]] = {}
    for slot in slots:
        trunks.setdefault(id(slot.trunk), []).append((int(min(slot.common, slot.at)), slot))
    found = []
    for members in trunks.values():
        if len(members) == 1:
            continue
        members.sort(key=lambda member: (-member[0], member[1].row))
        best, count, ends = least, 0, 0
        for n, (length, slot) in enumerate(members):
            ends += slot.at + 1
            spared = n * length - 2 * (ends - (n + 1) * length)
            if spared >= best:
                best, count = spared, n + 1
        if count:
            found.append(([slot for _, slot in members[:count]], members[count - 1][0]))
    return found


def common_prefix(a: Sequence[int], b: Sequence[int], most: int | None = None) -> int:
    """How many items the two share from the start, counted up to `most`."""
    low, high = 0, min(len(a), len(b), len(b) if most is None else most)
    while low < high:  # a[:low] == b[:low]; comparing slices is much faster than items
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
