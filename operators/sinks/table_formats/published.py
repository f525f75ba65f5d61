"""The notes of a sink on a table: the window that it published last, and the table as that left it.

The table itself says whether a window is in it. The notes say what the table must still hold, so that a table that was dropped,
recreated or rolled back between two launches is noticed.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from dagflow.errors import RecordRefused
from dagflow.storage import SealedRecord, Store, open_store, read_sealed, seal

_PREFIX = "published/"


@attrs.frozen(kw_only=True)
class Published:
    """A note.

    Attributes:
        window: the newest window that was published, also without rows.
        committed: the newest window that has a transaction of its own; -1 for none.
        table: the id of the table; None as long as no window had rows.
        version: the version, or snapshot, of the table that holds that window.
        columns: of the table after that, `(name, Arrow type)`.
        facts: of that version, which the table may no longer know later (`OpenedTable.facts`). Earlier releases wrote none.
    """

    window: int
    committed: int = -1
    table: str | None = None
    version: int = -1
    columns: list[tuple[str, str]] = attrs.field(factory=list)
    facts: dict[str, int] = attrs.field(factory=dict)


@attrs.define
class PublishedNotes:
    """The notes of a sink, in its folder beside the table. Only the newest one counts."""

    folder: str

    def newest(self) -> Published | None:
        """Return the newest note that is whole; None without one.

        Notes are not synced where there is a table: a power cut may leave one damaged.
        """
        store = self._store()
        record = next((each for name in reversed(store.names(_PREFIX)) if (each := _whole(store, name)) is not None), None)
        following = record
        while following is not None:  # the listing may be old
            record = following
            following = _whole(store, f"{_PREFIX}{int(record.name.removeprefix(_PREFIX)) + 1:010d}")
        if record is None:
            return None
        fields: dict[str, Any] = json.loads(record.body)
        fields["columns"] = [(column, kind) for column, kind in fields["columns"]]
        return Published(**fields)

    def write(self, note: Published) -> None:
        """Publish the note of a window, if there is none that is whole.

        A table says itself what it holds, so a note is synced only where there is no table yet.
        """
        store, name = self._store(durable=note.table is None), f"{_PREFIX}{note.window:010d}"
        data = seal(name, json.dumps(attrs.asdict(note)).encode())
        if not store.create(name, data) and _whole(store, name) is None:
            store.discard(name)
            store.create(name, data)

    def forget(self, window: int) -> None:
        """Remove the notes of windows before this one."""
        store = self._store()
        for name in store.names(_PREFIX):
            if name < f"{_PREFIX}{window:010d}":
                store.discard(name)

    def _store(self, *, durable: bool = False) -> Store:
        return open_store(self.folder, durable=durable)


def _whole(store: Store, name: str) -> SealedRecord | None:
    """Read a note. None if it is damaged: the table, which is compared with the run folder at each launch, says what counts."""
    try:
        return read_sealed(store, name)
    except RecordRefused:
        return None
