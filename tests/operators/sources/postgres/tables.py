"""A table that grows, its source, and launches that read it. Judged by what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG
from dagflow.testing import Collector, run_dag
from operators import JsonLinesWriter, PostgresInput
from tests.operators.databases import Database

SALES = "CREATE TABLE sales (id bigserial PRIMARY KEY, item text, at timestamptz DEFAULT now())"


def rows(*values: Any) -> str:
    """A statement that adds rows with these items."""
    return "INSERT INTO sales (item) VALUES " + ", ".join(f"('{value}')" for value in values)


@attrs.frozen
class Reading:
    """An application that reads a table; each launch continues where the last one was."""

    database: Database
    folder: Path
    table: str = "sales"
    properties: dict[str, Any] = attrs.field(factory=lambda: {"key": "id"})
    runner: str = "local"

    def populate(self, *further: Any) -> Callable[[DAG, Any], None]:
        """The application. `further`: operators that get the rows, too."""

        def populate_dag(dag: DAG, conf: Any) -> None:
            source = dag.add_module("sales", PostgresInput[Any](self.database.address, self.table, **self.properties))
            sinks = [dag.add_operator(f"further{number}", each) for number, each in enumerate(further)]
            written = dag.add_operator("written", JsonLinesWriter(str(self.folder / "out")))
            dag.add_stream("rows", source.batches, written.input, *(sink.input for sink in sinks))

        return populate_dag

    def launch(self, settings: dict[str, Any] | None = None, **options: Any) -> tuple[list[dict[str, Any]], Any]:
        """Launch once. Return the records that arrived, and the report."""
        found = Collector[Any]()
        report = run_dag(self.populate(found), settings or {}, self.runner, run_folder=str(self.folder / "run"), **options)
        return found.records, report

    def ids(self, settings: dict[str, Any] | None = None, **options: Any) -> list[Any]:
        """Launch once, and return the keys that arrived, in order."""
        return [record["id"] for record in self.launch(settings, **options)[0]]


def kept_files(folder: Path) -> Iterator[Path]:
    """All files that a launch has left."""
    return (path for path in folder.rglob("*") if path.is_file())
