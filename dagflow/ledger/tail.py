"""Finding the newest entry: by a hint and a few probes. No record says authoritatively where the end is.

Entries are `ledger/SHARD/NUMBER.json`, a thousand to a folder, so that one listing shows what stands near an entry however
long the chain is. A hint is a record `ledger-hint/NUMBER` that is written after its entry: it may be old, missing or garbage;
one that is whole and ahead of the entries proves that entries are gone.
"""

from __future__ import annotations

import re
from contextlib import suppress

from dagflow.bounded_json import parse
from dagflow.ledger.codec import canonical, hash_of
from dagflow.ledger.errors import EntryMissing, EntryRewritten, LedgerCut
from dagflow.ledger.events import EntryRef
from dagflow.storage import Store, hash_bytes, is_object_store

ENTRIES = "ledger"
HINTS = "ledger-hint"
SHARD = 1000
HINT_EVERY = 16
"""Entries from one hint to the next, in object stores."""
_ENTRY = re.compile(rf"{ENTRIES}/(\d{{9}})/(\d{{12}})\.json")


def entry_name(seq: int) -> str:
    """Return the name of an entry's record.

    >>> entry_name(12345)
    'ledger/000000012/000000012345.json'
    """
    return f"{ENTRIES}/{seq // SHARD:09d}/{seq:012d}.json"


def entry_number(name: str) -> int | None:
    """Return the number of an entry by its record's name, None for other names.

    >>> entry_number("ledger/000000012/000000012345.json"), entry_number("ledger/000000000/000000012345.json")
    (12345, None)
    """
    match = _ENTRY.fullmatch(name)
    return int(match[2]) if match is not None and int(match[2]) // SHARD == int(match[1]) else None


def hint_bytes(ref: EntryRef) -> bytes:
    """Return the record of a hint: sealed, as entries are, so that garbage is not mistaken for one."""
    body = canonical({"hash": ref.hash, "seq": ref.seq}) + b"\n"
    return body + canonical(hash_bytes(body)) + b"\n"


def parse_hint(stored: bytes | None) -> EntryRef | None:
    """Return the hint in a record, None for garbage."""
    body, end, seal = (stored or b"").partition(b"\n")
    if not end or seal != canonical(hash_bytes(body + end)) + b"\n":
        return None
    try:
        fields = parse(body)
        return EntryRef(int(fields["seq"]), str(fields["hash"]))
    except (ValueError, KeyError, TypeError):
        return None


class Tail:
    """The end of a chain, as far as one handle knows it.

    Args:
        store: the store of the entries.
        hints: the store of the hints, in the same place; it need not be durable.
    """

    def __init__(self, store: Store, hints: Store) -> None:
        self.store = store
        self.hints = hints
        self._seen: set[str] = set()
        self._every = HINT_EVERY if is_object_store(hints.url) else 1

    def hint(self) -> EntryRef | None:
        """Return the newest hint that can be read, if any."""
        with suppress(Exception):
            names = self.hints.names(f"{HINTS}/")
            self._seen.update(names)
            for name in sorted(names, reverse=True):
                ref = parse_hint(self.hints.read(name))
                if ref is not None and name == f"{HINTS}/{ref.seq:012d}":
                    return ref
        return None

    def note(self, ref: EntryRef) -> None:
        """Publish a hint, and remove the older ones that are known. Best effort: nothing depends on it.

        In object stores, where each hint is two requests, only some entries get one.
        """
        if ref.seq % self._every:
            return
        name = f"{HINTS}/{ref.seq:012d}"
        with suppress(Exception):
            self.hints.create(name, hint_bytes(ref))
            older = [each for each in self._seen if each < name]
            self.hints.discard_all(older)
            self._seen.difference_update(older)
            self._seen.add(name)

    def find(self, read_before: EntryRef | None) -> tuple[int, bytes] | None:
        """Return the number and bytes of the newest entry, None for an empty ledger; `read_before`: the newest one read so far.

        Reads the hint, the hinted entry and the absent one after it; galloping when the hint is old or missing. An entry that is
        listed behind the end says that there is a hole: entries are published in their order. A listing may be old, so it never
        tells the end.
        Raises LedgerCut, EntryRewritten, EntryMissing.
        """
        start, stored = -1, b""
        refs = [ref for ref in (read_before, self.hint()) if ref is not None]
        for ref in refs:
            if ref.seq < max(each.seq for each in refs):
                continue  # the newer one says more
            if start < 0:
                data = self.store.read(entry_name(ref.seq))
                if data is None:
                    reason = f"it was written (hash {ref.hash}) and is not there: the end of the ledger is lost"
                    raise LedgerCut(self.store.url, ref.seq, reason)
                start, stored = ref.seq, data
            if hash_of(stored) != ref.hash:
                raise EntryRewritten(self.store.url, ref.seq, f"its hash is {hash_of(stored)}, but {ref.hash} was written")
        near, listed = start, self._numbers_near(start) if self._every > 1 else None
        if listed is not None:
            start, stored = self._skip_listed(listed, start, stored)
        while True:
            start, stored = self._gallop(start, stored)
            if listed is None or _shard(start) != _shard(near):
                near, listed = start, self._numbers_near(start)
            behind = self._behind(start, listed)
            if behind is None:
                return None if start < 0 else (start, stored)
            # another writer may have appended in the meantime; otherwise there is a hole
            after = self.store.read(entry_name(start + 1))
            if after is None:
                raise EntryMissing(self.store.url, start + 1, f"it is missing, but entry {behind} is there")
            start, stored, listed = start + 1, after, None

    def _behind(self, end: int, listed: list[int]) -> int | None:
        """Return an entry behind the end, None for none. What is listed there and cannot be read is of an old listing."""
        numbers = (number for number in listed if number > end)
        return next((number for number in numbers if self.store.read(entry_name(number)) is not None), None)

    def _skip_listed(self, listed: list[int], start: int, stored: bytes) -> tuple[int, bytes]:
        """Return the last of the listed entries that follow without a gap: one request for what galloping takes several for."""
        numbers, last = set(listed), start
        while last + 1 in numbers:
            last += 1
        data = self.store.read(entry_name(last)) if last > start else None
        return (start, stored) if data is None else (last, data)

    def _gallop(self, low: int, stored: bytes) -> tuple[int, bytes]:
        step = 1
        while (data := self.store.read(entry_name(low + step))) is not None:
            low, stored = low + step, data
            step *= 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            data = self.store.read(entry_name(middle))
            if data is None:
                high = middle
            else:
                low, stored = middle, data
        return low, stored

    def _numbers_near(self, seq: int) -> list[int]:
        """Return the numbers of entries in the folder of an entry and in the next one."""
        numbers = []
        for shard in (_shard(seq), _shard(seq) + 1):
            numbers += [
                number for name in self.store.names(f"{ENTRIES}/{shard:09d}/") if (number := entry_number(name)) is not None
            ]
        return sorted(numbers)


def _shard(seq: int) -> int:
    return max(seq, 0) // SHARD
