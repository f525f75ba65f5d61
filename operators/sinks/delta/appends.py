"""Versions of a Delta table that add files, written here: their cost does not depend on the versions and files before them.

`deltalake` lists the log of a table, and copies the list of its files, in each commit. An append needs neither. The protocol of
Delta tables has all that is used here: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import attrs
import pyarrow as pa

from dagflow import WindowMark
from dagflow.storage import file_system, join, open_store, split_url
from operators.extras.delta_log import LOG
from operators.sinks.table_formats.rows import StagedRows

_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""Features of tables that ask nothing of a writer who only adds files. `invariants` is among those of any table; a table that has
some is refused (`DeltaLog.rules`)."""
_STORES = frozenset({"file", "s3", "s3a"})
"""Schemes of places where `open_store` and `deltalake` both create a file only if there is none of its name."""
_LOCKING = "AWS_S3_LOCKING_PROVIDER"


@attrs.frozen(kw_only=True)
class OwnVersion:
    """The newest version of a table, which this process has committed.

    Attributes:
        version: the number.
        body: the file of the log, by which a table is known again.
        id: of the table.
        columns: of the table.
        partition_columns: of the table.
        marks: the newest windows that the table holds, by the names of sinks, as far as they are known.
        checkpoint_interval: every so many versions, there is a checkpoint.
    """

    newest: ClassVar[dict[str, OwnVersion]] = {}

    version: int
    body: bytes
    id: str
    columns: pa.Schema
    partition_columns: list[str]
    marks: dict[str, WindowMark]
    checkpoint_interval: int

    @classmethod
    def of(cls, path: str) -> OwnVersion | None:
        """Return the version of a table that this process has committed, if it still is the newest one: two small reads."""
        own = cls.newest.get(path)
        if own is None:
            return None
        is_there = open_store(join(path, LOG), durable=False).read(_name(own.version)) == own.body
        if is_there and not file_system(path).exists(join(path, LOG, _name(own.version + 1))):
            return own
        cls.newest.pop(path, None)
        return None

    def commit(self, path: str) -> bool:
        """Write the version, and wait until it survives a power cut. Return False if there is one of its number."""
        if not open_store(join(path, LOG)).create(_name(self.version), self.body):
            return False
        self.newest[path] = self
        return True


def may_append(path: str, storage_options: Mapping[str, str], protocol: Any) -> bool:
    """Return True if versions of a table may be written here. `protocol`: of the table, as `deltalake` describes it."""
    options = {name.upper() for name, value in storage_options.items() if value}
    return (
        split_url(path)[0] in _STORES
        and not os.environ.get(_LOCKING)  # other writers then rely on a table in DynamoDB
        and _LOCKING not in options
        and (protocol.min_writer_version <= 2 or _FEATURES.issuperset(protocol.writer_features or ["unknown"]))
    )


def append_body(
    files: Iterable[StagedRows], partition_columns: Iterable[str], key: str, mark: WindowMark, custom_metadata: Mapping[str, Any]
) -> bytes:
    """Return the file of the log that adds files, and holds that a sink has published a window."""
    now = int(time.time() * 1000)
    parameters = {"mode": "Append", "partitionBy": json.dumps(list(partition_columns))}
    commit = {"timestamp": now, "operation": "WRITE", "operationParameters": parameters, "isBlindAppend": True}
    actions: list[dict[str, Any]] = [{"commitInfo": {**commit, "engineInfo": "dagflow", **custom_metadata}}]
    for file in files:
        add = {"path": quote(file.name), "partitionValues": file.partition, "size": file.size, "modificationTime": now}
        actions.append({"add": {**add, "dataChange": True, "stats": file.stats}})
    actions += [{"txn": {"appId": name, "version": number, "lastUpdated": now}} for name, number in transactions(key, mark)]
    return "\n".join(json.dumps(action) for action in actions).encode()


def transactions(key: str, mark: WindowMark) -> list[tuple[str, int]]:
    """Return the names and numbers of the `txn` actions that hold a mark: the window, and the identity of its decision.

    >>> transactions("shop-1f/sales", WindowMark(7, "0123456789abcde"))
    [('shop-1f/sales', 7), ('shop-1f/sales#decision', 5124095576030430)]
    """
    decided = [(f"{key}#decision", int(mark.decision, 16))] if mark.decision else []
    return [(key, mark.number), *decided]


def mark_of(key: str, version_of: Callable[[str], int | None]) -> WindowMark:
    """Return the mark that the `txn` actions of a table hold. `version_of`: returns the newest number of a name.

    >>> mark_of("shop-1f/sales", dict(transactions("shop-1f/sales", WindowMark(7, "0123456789abcde"))).get)
    WindowMark(number=7, decision='0123456789abcde')
    """
    window, decision = version_of(key), version_of(f"{key}#decision")
    return WindowMark(-1 if window is None else int(window), "" if decision is None else f"{int(decision):015x}")


def _name(version: int) -> str:
    return f"{version:020d}.json"
