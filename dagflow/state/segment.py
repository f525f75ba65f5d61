"""A segment: the changes of a window in maps, as one sealed record of a store. Two lines of JSON, the head and the parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.model.types.plain_data import dumps, loads
from dagflow.state.errors import SegmentDamaged, SegmentMissing
from dagflow.storage import SealedRecord, Store, seal, seal_of, unseal
from dagflow.storage.records.errors import RecordMisplaced, RecordRefused

FOLDER = "state"
_NAMES = re.compile(rf"{FOLDER}/(\d{{10}})-[0-9a-f]{{16}}")

MapId = tuple[str, str]
"""An operator's name, and that of its `MapState`."""


@attrs.frozen
class SegmentRef:
    """A reference to a segment: its name, the hash and the size of its bytes.

    Attributes:
        name: `state/WINDOW-HASH`. If the plan of a window was never published, the number is used again; other bytes then have
            another name.
        hash: `sha256:` and hexadecimal digits.
        size: in bytes.
    """

    name: str
    hash: str
    size: int


@attrs.frozen
class MapHead:
    """The header of one map in a segment.

    Attributes:
        since: the window at which the map began. Older segments do not have it, or have another one of its name.
        weight: about the number of bytes of its entries.
    """

    operator: str
    state: str
    since: int
    weight: int


@attrs.frozen(kw_only=True)
class SegmentHead:
    """The header of a segment: itself, and those before it.

    Attributes:
        window: the window that wrote it.
        level: how often its content was merged; see `dagflow.state.log`.
        weight: about the number of bytes of its entries.
        log: the weights of all segments that count, this one included.
        maps: all maps, with their weights.
        first: segments of windows before this one do not count.
        sweeping: the window at which the current sweep began.
        previous: the segment before it.
    """

    window: int
    level: int
    weight: int
    log: int
    maps: list[MapHead]
    first: int
    sweeping: int | None
    previous: SegmentRef | None


@attrs.frozen
class MapEntries:
    """The entries of one map in a segment: keys with their encoded values, and removed keys."""

    id: MapId
    keys: list[Any]
    values: list[Any]
    removed: list[Any]


def write(store: Store, head: SegmentHead, parts: list[MapEntries]) -> SegmentRef:
    """Publish a segment."""
    body = [[*part.id, part.keys, part.values, part.removed] for part in parts]
    record = f"{FOLDER}/{head.window:010d}"
    data = seal(record, b"%s\n%s" % (dumps(attrs.asdict(head)), dumps(body)))
    ref = SegmentRef(_name(record, seal_of(data)), seal_of(data), len(data))
    if not store.create(ref.name, data):
        check(store, ref, head.window)  # an earlier attempt, or a launch that died before its plan, wrote the same
    return ref


def check(store: Store, ref: SegmentRef, needed_by: int) -> bytes:
    """Read and check the content of a segment. Raises SegmentMissing, SegmentDamaged."""
    data = store.read(ref.name)
    path = f"{store.url}/{ref.name}"
    if data is None:
        raise SegmentMissing(path=path, window=needed_by)
    if len(data) != ref.size:
        raise SegmentDamaged(path=path, window=needed_by, reason=f"it has {len(data)} bytes, and should have {ref.size}")
    try:
        record = unseal_segment(data, ref.name, store.url)
    except RecordRefused as error:
        raise SegmentDamaged(path=path, window=needed_by, reason=error.reason) from error
    if record.hash != ref.hash:
        raise SegmentDamaged(path=path, window=needed_by, reason="its bytes are not those that were written")
    return record.body


def unseal_segment(data: bytes, name: str, place: str) -> SealedRecord:
    """Check the bytes of a segment, and return it as a record. Raises the errors of `unseal`."""
    record = name.partition("-")[0]
    sealed = unseal(data, record, place)
    if _name(record, sealed.hash) != name:
        raise RecordMisplaced(place, name, f"it is {_name(record, sealed.hash)}")
    return sealed


def _name(record: str, digest: str) -> str:
    return f"{record}-{digest.partition(':')[2][:16]}"


def read(store: Store, ref: SegmentRef, needed_by: int) -> tuple[SegmentHead, list[MapEntries]]:
    """Read a segment. Raises SegmentMissing, SegmentDamaged."""
    first, _, rest = check(store, ref, needed_by).partition(b"\n")
    try:
        fields = loads(first)
        previous = fields.pop("previous")
        maps = [MapHead(**each) for each in fields.pop("maps")]
        head = SegmentHead(**fields, maps=maps, previous=None if previous is None else SegmentRef(**previous))
        return head, [MapEntries((part[0], part[1]), *part[2:]) for part in loads(rest)]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:  # it is sealed, but not by dagflow
        raise SegmentDamaged(path=f"{store.url}/{ref.name}", window=needed_by, reason=f"it is not a segment: {error}") from error


def window_of(name: str) -> int:
    """Return the window that wrote a segment, from its name; -1 for other names.

    >>> window_of("state/0000000012-0123456789abcdef"), window_of("state/notes")
    (12, -1)
    """
    match = _NAMES.fullmatch(name)
    return int(match[1]) if match else -1


def segments(store: Store) -> list[str]:
    """Return the names of all segments in a store, also of those that do not count."""
    return [name for name in store.names(f"{FOLDER}/") if window_of(name) >= 0]


def erase_segments(store: Store) -> None:
    """Remove all segments from a store."""
    for name in segments(store):
        store.discard(name)


def weight_of(encoded: Any) -> int:
    """Return about the number of bytes of a key or an encoded value in a segment; always the same for the same one."""
    if type(encoded) is str:
        return len(encoded) + 3
    return 8 if encoded is None or isinstance(encoded, int | float) else len(dumps(encoded)) + 1


def keys_of(parts: list[MapEntries], since: Mapping[MapId, int], window: int) -> dict[MapId, dict[Any, None]]:
    """Return the keys in a segment of a window, by map."""
    return {p.id: dict.fromkeys([*p.keys, *p.removed]) for p in parts if p.id in since and window >= since[p.id]}
