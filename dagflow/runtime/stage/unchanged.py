"""Records that must stay as they are once they were received or emitted: what `enforce_immutability` looks after.

Sinks of one stream get the same objects, and what is emitted is handed on later. So each operator gets copies of its own here,
which shows which operator has changed one. For tests: all records of a window are held, and pickled twice.
"""

from __future__ import annotations

import pickle
from typing import Any

import attrs

from dagflow.model.types.records import excerpt
from dagflow.runtime.stage.errors import RecordChanged
from dagflow.runtime.stage.failure import Abort


@attrs.frozen
class _Seen:
    port: str
    how: str
    record: Any
    data: bytes


class Unchanged:
    """The records that one operator has received and emitted in a window, as they were at that moment."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._window: int | None = None
        self._fresh: list[_Seen] = []
        self._all: list[_Seen] = []

    def begin(self, window: int) -> None:
        """Begin a window, of which there are no records yet."""
        self._window = window
        self._fresh, self._all = [], []

    def received(self, port: str, records: Any) -> Any:
        """Note records, or a batch, and return what the handler is to get: copies, where there can be any."""
        if not isinstance(records, list):
            self._note(port, "received", records)
            return records
        copies = []
        for record in records:
            data = _pickled(record)
            copy = record if data is None else pickle.loads(data)  # made the moment before
            copies.append(copy)
            self._note(port, "received", copy)
        return copies

    def emitted(self, port: str, record: Any) -> None:
        """Note a record, or a batch, that is being emitted."""
        self._note(port, "emitted", record)

    def _note(self, port: str, how: str, record: Any) -> None:
        data = _pickled(record)
        if data is not None:
            self._fresh.append(_Seen(port, how, record, data))

    def check(self, doing: str, *, whole_window: bool = False) -> None:
        """End the task if a record has changed: of those noted since the last call, or of all of the window."""
        self._all += self._fresh
        looked_at, self._fresh = self._all if whole_window else self._fresh, []
        for seen in looked_at:
            before = _changed(seen)
            if before is not None:
                error = RecordChanged(
                    operator=self._operator,
                    port=seen.port,
                    how=seen.how,
                    doing=doing,
                    before=_text(before),
                    after=_text(seen.record),
                    window=self._window,
                )
                raise Abort(error)


def _pickled(record: Any) -> bytes | None:
    """Pickle a record; None if that fails: such a record is not checked."""
    import cloudpickle

    try:
        return pickle.dumps(record)
    except Exception:  # noqa: BLE001  # picklers raise anything
        pass
    try:
        data: bytes = cloudpickle.dumps(record)
    except Exception:  # noqa: BLE001
        return None
    return data


def _changed(seen: _Seen) -> Any:
    """Return the record as it was if it has changed, None otherwise."""
    if _pickled(seen.record) == seen.data:
        return None
    before = pickle.loads(seen.data)  # made by this process
    try:
        is_same = bool(before == seen.record)  # of a class without an `==` of its own, no two objects are equal
    except Exception:  # noqa: BLE001  # `==` of any class
        is_same = False
    return None if is_same else before


def _text(record: Any) -> str:
    return excerpt(record.to_pylist() if hasattr(record, "to_pylist") else record)
