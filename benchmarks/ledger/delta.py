"""Delta Lake's log by its own writer, the `deltalake` package."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.ledger.log import FILE, ROWS, Read, data_file

APP = "benchmark"
CHECKPOINT = 100  # the package's default of delta.checkpointInterval: it makes one with every version that ends in 99
BY_LIBRARY = 2000
STATISTICS = json.dumps({"numRecords": ROWS})


def is_there() -> bool:
    """Return whether the package is installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        return False
    return True


class DeltaLog:
    """A table with the settings that the package gives it. Version 0 creates it, version v commits window v - 1."""

    name = "Delta Lake (syncs nothing)"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "_delta_log"
        self.commits = 0

    def build(self, commits: int) -> None:
        """So many commits: by the package, or for many, all but the first by the bytes that it would write.

        Then the package makes the last checkpoint that it would have made. Older ones are never read.
        """
        from deltalake import DeltaTable

        DeltaTable.create(str(self.folder), schema=_schema())
        if commits <= BY_LIBRARY:
            self.append(commits)
            return
        self.append(1)
        template = (self.log / f"{1:020d}.json").read_text()
        last = (commits + 1) // CHECKPOINT * CHECKPOINT - 1
        self._write(template, last)
        DeltaTable(str(self.folder)).create_checkpoint()
        self._write(template, commits)

    def _write(self, template: str, until: int) -> None:
        for version in range(self.commits + 1, until + 1):
            text = template.replace(FILE.format(0), FILE.format(version - 1))
            text = text.replace(f'"appId":"{APP}","version":0', f'"appId":"{APP}","version":{version - 1}')
            (self.log / f"{version:020d}.json").write_text(text)
        self.commits = until

    def append(self, count: int, tidy: bool = True) -> list[float]:
        """The seconds of each of so many commits by one writer, that of taking its own commit note of in it.

        `tidy`: after each commit, look for versions that are old enough to be removed, as the package does unless told otherwise.
        Without `update_incremental`, the next commit of the same application would be refused as a conflict.
        """
        from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
        from deltalake.transaction import AddAction

        hooks = PostCommitHookProperties(cleanup_expired_logs=None if tidy else False)
        table, schema, taken = DeltaTable(str(self.folder)), _schema(), []
        for window in range(self.commits, self.commits + count):
            data_file(self.folder, window)
            began = perf_counter()
            added = AddAction(FILE.format(window), ROWS, {}, 0, True, STATISTICS)
            properties = CommitProperties(app_transactions=[Transaction(APP, window)])
            table.create_write_transaction(
                [added], "append", schema, commit_properties=properties, post_commithook_properties=hooks
            )
            table.update_incremental()
            taken.append(perf_counter() - began)
        self.commits += count
        return taken

    def resume(self) -> object:
        """Return the newest committed window, knowing only the folder."""
        from deltalake import DeltaTable

        table = DeltaTable(str(self.folder))
        assert table.version() == self.commits
        return table.transaction_version(APP)

    def read(self) -> Read:
        """Read what the protocol prescribes: the pointer to the newest checkpoint, the checkpoint, and the versions after it."""
        pointer = self.log / "_last_checkpoint"
        names, newest = [], -1
        if pointer.exists():
            newest = json.loads(pointer.read_text())["version"]
            names = [pointer, self.log / f"{newest:020d}.checkpoint.parquet"]
        names += [self.log / f"{version:020d}.json" for version in range(newest + 1, self.commits + 1)]
        return Read(len(names), 1, sum(path.stat().st_size for path in names))


def _schema() -> Any:
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    return Schema([Field("value", PrimitiveType("string"))])
