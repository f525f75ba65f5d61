"""Finding the newest entry: by a hint and a few probes. No record says authoritatively where the end is.

Entries are `ledger/SHARD/NUMBER.json`, a thousand to a folder, so that one listing shows what stands near an entry however
long the chain is. A hint is a record `ledger-hint/NUMBER` that is written after its entry: it may be old, missing or garbage;
one that is whole and ahead of the entries proves that entries are gone.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from dagflow.ledger.codec import canonical, hash_of
from dagflow.ledger.errors import EntryMissing, EntryRewritten, LedgerCut
from dagflow.ledger.events import EntryRef
from dagflow.storage import Store, hash_bytes

ENTRIES = "ledger"
HINTS = "ledger-hint"
SHARD = 1000
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
        fields = json.loads(body)
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
        """Publish a hint, and remove the older ones that are known. Best effort: nothing depends on it."""
        name = f"{HINTS}/{ref.seq:012d}"
        with suppress(Exception):
            self.hints.create(name, hint_bytes(ref))
            for older in [each for each in self._seen if each < name]:
                self.hints.discard(older)
                self._seen.discard(older)
            self._seen.add(name)

    def find(self, read_before: EntryRef | None) -> tuple[int, bytes] | None:
        """Return the number and bytes of the newest entry, None for an empty ledger; `read_before`: the newest one read so far.

        Reads the hint, the hinted entry and the absent one after it; galloping when the hint is old or missing.
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
        while True:
            start, stored = self._gallop(start, stored)
            beyond = [number for number in self._numbers_near(max(start, 0)) if number > start]
            if not beyond:
                return None if start < 0 else (start, stored)
            # another writer may have appended in the meantime; otherwise there is a hole
            after = self.store.read(entry_name(start + 1))
            if after is None:
                raise EntryMissing(self.store.url, start + 1, f"it is missing, but entry {beyond[0]} is there")
            start, stored = start + 1, after

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
        for shard in (seq // SHARD, seq // SHARD + 1):
            numbers += [
                number for name in self.store.names(f"{ENTRIES}/{shard:09d}/") if (number := entry_number(name)) is not None
            ]
        return sorted(numbers)
