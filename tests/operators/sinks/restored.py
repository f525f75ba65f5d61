"""Applications whose run folder, table, ledger, notes and state are restored from copies, each from one of another time."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, launch
from dagflow.ledger import Ledger
from operators import (
    CsvFormat,
    DeltaWriter,
    FileSplitterInput,
    IcebergWriter,
    JsonLinesWriter,
    PostgresWriter,
    ScanReader,
    SqlWriter,
)
from tests.operators.sinks.logs.memory_log import LOGS, MemoryLog, MemoryWriter

LAUNCHES = 3
STATES = ("state", "keyed-state", "task-states")
MODES = ("append", "upsert", "replace")
KINDS = [f"{kind}_{mode}" for kind in ("sqlite", "postgres", "delta", "iceberg") for mode in MODES] + ["log_append"]


@attrs.frozen
class Subject:
    """An application that writes its rows to a table and to files, in `root`, and the copies of it that each launch has left.

    Attributes:
        kind: of the table, and the mode: `delta_upsert`.
        parts: the paths of each part that is restored by itself, relative to `root`. They may be missing.
        database: of PostgreSQL: runs a statement on the server. The database is a part of its own, beside the files.
    """

    kind: str
    root: Path
    copies: Path
    database: Any = None

    @property
    def mode(self) -> Any:
        """The mode of the sink of the table."""
        return self.kind.partition("_")[2]

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts."""
        has_notes = self.kind.startswith(("delta", "iceberg", "log"))
        return ("run", "state", "ledger", "table", *(["notes"] if has_notes else []))

    def sink(self) -> Any:
        """Return the sink of the table."""
        how: dict[str, Any] = {"mode": self.mode, **({"keys": ["id"]} if self.mode == "upsert" else {})}
        if self.kind.startswith("delta"):
            return DeltaWriter(self.root / "table", **how)
        if self.kind.startswith("iceberg"):
            return IcebergWriter("shop.sales", self.catalog, **how)
        if self.kind.startswith("sqlite"):
            return SqlWriter(f"sqlite:///{self.root}/t.db", "sales", **how)
        if self.kind.startswith("postgres"):
            return PostgresWriter(self.database.address, "sales", **how)
        return MemoryWriter(name=str(self.root), key="id")

    @property
    def catalog(self) -> dict[str, str]:
        """The catalog of Iceberg tables."""
        return {"type": "sql", "uri": f"sqlite:///{self.root}/c.db", "warehouse": f"file://{self.root}/warehouse"}

    def populate(self, dag: DAG, conf: Any) -> None:
        """Let rows go to the table, and to files."""
        files = dag.add_operator("files", FileSplitterInput(str(self.root / "in")))
        reader = dag.add_operator("reader", ScanReader(CsvFormat()))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        table = dag.add_operator("table", self.sink())
        out = dag.add_operator("out", JsonLinesWriter(str(self.root / "out")))
        dag.add_stream("rows", reader.batches, table.input, out.input)

    def launch(self) -> Any:
        """Run what is new."""
        return launch(self.populate, {"run_folder": str(self.root / "run")}, runner="local")

    def deliver(self, number: int) -> None:
        """Add a file of input with one row."""
        (self.root / "in").mkdir(parents=True, exist_ok=True)
        path = self.root / "in" / f"{number}.csv"
        path.write_text(f"id\n{number}\n")
        os.utime(path, (0, 0))  # the same file as before, when it is delivered again

    def delivered(self) -> list[int]:
        """Return the rows of the input."""
        return sorted(int(path.stem) for path in (self.root / "in").iterdir())

    def prepare(self) -> None:
        """Launch it a few times, and keep a copy of all that each launch has left."""
        if self.kind.startswith("log"):
            LOGS[str(self.root)] = MemoryLog()
        for number in range(LAUNCHES):
            self.deliver(number)
            self.launch()
            shutil.copytree(self.root, self.copies / str(number))
            self._keep_table(number)

    def paths(self, part: str, of: Path) -> Iterator[Path]:
        """Yield the files and folders of a part, below one of the copies or the root, as paths relative to that."""
        run = sorted((of / "run").iterdir()) if (of / "run").exists() else []
        own = [of / "table" / "_dagflow"] if self.kind.startswith("delta") else [of / "warehouse" / "shop.sales"]
        if part == "run":
            notes = self.kind.startswith("log")
            found: Iterable[Path] = [each for each in run if each.name not in (*STATES, *(["staged"] if notes else []))]
        elif part == "state":
            found = [each for each in run if each.name in STATES]
        elif part == "ledger":
            found = [of / "out"]
        elif part == "notes":
            found = [of / "run" / "staged"] if self.kind.startswith("log") else own
        else:
            places = {"delta": ["table"], "iceberg": ["c.db", "warehouse"], "sqlite": ["t.db"]}.get(
                self.kind.partition("_")[0], []
            )
            tops = [of / place for place in places]
            found = itertools.chain.from_iterable(top.iterdir() if top.is_dir() else [top] for top in tops if top.exists())
            found = [each for each in found if each not in own]
        return (each.relative_to(of) for each in found if each.exists())

    def restore(self, times: dict[str, int]) -> None:
        """Bring each part back as a launch has left it. The input is as it was in the end."""
        self.bring(times)
        for path in (self.root / "in").iterdir():
            path.unlink()
        for number in range(LAUNCHES):
            self.deliver(number)

    def bring(self, times: dict[str, int]) -> None:
        """Bring some parts back, each as a launch has left it."""
        for part in times:
            for path in list(self.paths(part, self.root)):
                shutil.rmtree(self.root / path) if (self.root / path).is_dir() else (self.root / path).unlink()
        for part, number in times.items():
            source = self.copies / str(number)
            for path in list(self.paths(part, source)):
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                copying: Callable[..., Any] = shutil.copytree if (source / path).is_dir() else shutil.copy2
                copying(source / path, self.root / path)
        if "table" in times:
            self._bring_table(times["table"])

    def _keep_table(self, number: int) -> None:
        if self.kind.startswith("log"):
            LOGS[f"{self.root}/{number}"] = copy.deepcopy(LOGS[str(self.root)])
        elif self.database is not None:
            self.database.keep(number)

    def _bring_table(self, number: int) -> None:
        if self.kind.startswith("log"):
            LOGS[str(self.root)] = copy.deepcopy(LOGS[f"{self.root}/{number}"])
        elif self.database is not None:
            self.database.bring(number)

    def table_rows(self) -> list[int]:
        """Return the rows of the table, sorted."""
        if self.kind.startswith("delta"):
            import deltalake

            return sorted(deltalake.DeltaTable(self.root / "table").to_pyarrow_table().column("id").to_pylist())
        if self.kind.startswith("iceberg"):
            rows: Any = self.sink().open_table()
            return sorted(rows.table.scan().to_arrow().column("id").to_pylist())
        if self.kind.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(self.root / "t.db")) as connection:
                return sorted(row[0] for row in connection.execute("SELECT id FROM sales"))
        if self.kind.startswith("postgres"):
            return sorted(row[0] for row in self.database.run("SELECT id FROM sales"))
        log = LOGS[str(self.root)]
        return sorted(int(each.value.rpartition(b":")[2].rstrip(b"}")) for part in log.partitions for each in part if each.value)

    def file_rows(self) -> list[int]:
        """Return the rows of the files that the ledger names, sorted."""
        rows = []
        for entry in Ledger.open(str(self.root / "out"), durable=False).entries():
            for file in () if entry.data is None or entry.data.new_data is None else entry.data.new_data.files:
                text = (self.root / "out" / file.path).read_text()
                rows += [int(line.rpartition(":")[2].rstrip("}")) for line in text.splitlines()]
        return sorted(rows)

    def wrong_rows(self) -> str | None:
        """Return what is wrong with the rows after a launch that has succeeded; None if they are right."""
        expected, table, files = self.delivered(), self.table_rows(), self.file_rows()
        newest = expected[-len(table) :] if self.mode == "replace" and table else expected  # those of the newest window
        is_right = table == newest
        return None if is_right and files == expected else f"table {table}, files {files}, input {expected}"
