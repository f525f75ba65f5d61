"""`dagflow show`: committed rows of all formats, in their order, and no other files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG
from dagflow.ledger.dataset import first_rows as reading
from dagflow.ledger.dataset.first_rows import FirstRows
from dagflow.render.datasets.rows import rows_text
from dagflow.render.style import Style, cells
from dagflow.testing import run_dag
from operators import CsvWriter, FileSplitterInput, JsonLinesFormat, JsonLinesWriter, ParquetWriter, ScanReader
from tests.cli.conftest import Answer
from tests.cli.datasets import sensors

Dagflow = Callable[..., Answer]
WRITERS: dict[str, Any] = {
    "parquet": ParquetWriter,
    "folders": lambda path: ParquetWriter(path, partition_columns=["name"]),
    "csv": CsvWriter,
    "csv.zst": lambda path: CsvWriter(path, compression="zstd"),
    **{
        f"jsonl.{codec}": lambda path, codec=codec: JsonLinesWriter(path, compression=codec)
        for codec in ("none", "gzip", "bz2", "xz", "zstd")
    },
}


@attrs.frozen
class Row:
    """A row of all datasets."""

    number: int
    name: str
    share: float


def populate_dag(dag: DAG, conf: Any) -> None:
    files = dag.add_operator("files", FileSplitterInput([conf["input"]]))
    rows = dag.add_operator("rows", ScanReader[Row](JsonLinesFormat()))
    dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
    sinks = [dag.add_operator(name.replace(".", "_"), make(f"{conf['output']}/{name}")) for name, make in WRITERS.items()]
    dag.add_stream("all", rows.batches, *(sink.input for sink in sinks))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset for each writer."""
    folder = tmp_path_factory.mktemp("formats")
    lines = (json.dumps({"number": n, "name": "größe" if n % 2 else "a, b", "share": n / 4}) for n in range(7))
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run_dag(populate_dag, {"input": str(folder / "in.jsonl"), "output": str(folder), "run_folder": str(folder / "_run")})
    return folder


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "folders"])
def test_rows_of_each_format(dagflow: Dagflow, outputs: Path, name: str) -> None:
    answer = dagflow("show", str(outputs / name), "-n", "3")
    assert (answer.code, answer.err) == (0, "")
    head, *table = answer.out.splitlines()
    assert head == f"{outputs / name}: 3 of 7 rows"
    assert table == [
        "schema: number int64, name string, share double",
        "",
        "number  name   share",
        "     0  a, b     0.0",
        "     1  größe   0.25",
        "     2  a, b     0.5",
        "… 4 more rows (-n 0 shows all)",
    ]


def test_columns_that_are_folders(dagflow: Dagflow, outputs: Path) -> None:
    answer = dagflow("show", str(outputs / "folders"), "-n", "0", "--columns", "name, number", "--json")
    assert {(row["name"], row["number"]) for row in json.loads(answer.out)["rows"]} == {
        ("größe" if n % 2 else "a, b", n) for n in range(7)
    }


def test_json(dagflow: Dagflow, outputs: Path) -> None:
    answer = dagflow("show", str(outputs / "parquet"), "-n", "1", "--columns", "share", "--columns", "number", "--json")
    assert json.loads(answer.out) == {
        "v": 1,
        "dataset": str(outputs / "parquet"),
        "window": None,
        "total": 7,
        "first": 0,
        "schema": [{"name": "share", "type": "double"}, {"name": "number", "type": "int64"}],
        "rows": [{"share": 0.0, "number": 0}],
    }


def test_only_committed_files_are_shown(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    (tmp_path / "out" / "0.txt").write_text("foreign\n")
    (tmp_path / "out" / "_dagflow" / "staged.txt").write_text("not committed\n")
    answer = dagflow("show", "out", "-n", "7")
    assert answer.out.splitlines() == [
        "out: 7 of 1,006 rows",
        "schema: value string",
        "",
        "value",
        *"1234567",
        "… 999 more rows (-n 0 shows all)",
    ]
    assert "foreign" not in dagflow("show", "out", "-n", "0").out


def test_one_window(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    answer = dagflow("show", "out", "--window", "1")
    assert answer.out.splitlines() == ["out: 3 rows of window 1", "schema: value string", "", "value", "4", "5", "6"]
    assert dagflow("show", "out", "--window", "2").out.splitlines() == ["out: no rows of window 2", "schema: value string"]
    assert json.loads(dagflow("show", "out", "--window", "4", "-n", "1", "--json").out)["first"] == 6
    answer = dagflow("show", "out", "--window", "9")
    assert (answer.code, answer.out) == (2, "")
    assert "has no window 9; its newest window is 4" in answer.err


def test_only_the_files_that_are_needed_are_read(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    (tmp_path / "out" / "e.txt").unlink()
    assert dagflow("show", "out", "-n", "6").code == 0
    answer = dagflow("show", "out", "-n", "7")
    assert answer.code == 1
    assert "DF508" in answer.err
    assert "e.txt is not there; 1000 rows were committed in it" in answer.err


def test_a_changed_file_is_named(dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensors(tmp_path / "out")
    (tmp_path / "out" / "b.txt").write_text("5\n")
    answer = dagflow("show", "out")
    assert answer.code == 1
    assert "b.txt has the hash" in answer.err
    monkeypatch.setattr(reading, "MAX_HASHED", 0)
    assert dagflow("show", "out").code == 0
    (tmp_path / "out" / "b.txt").write_text("55\n")
    assert "b.txt has 3 bytes, 2 were committed" in dagflow("show", "out").err


@pytest.mark.parametrize("name", ["parquet", "csv.zst", "jsonl.gzip", "jsonl.xz"])
def test_a_file_that_cannot_be_decoded_is_named(
    dagflow: Dagflow, outputs: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reading, "MAX_HASHED", 0)
    path = next(path for path in (outputs / name).glob("part-*"))
    content = path.read_bytes()
    try:
        path.write_bytes(content[:8] + bytes(len(content) - 8))
        answer = dagflow("show", str(outputs / name))
    finally:
        path.write_bytes(content)
    assert answer.code == 1
    assert "DF509" in answer.err
    assert f"{path.name} cannot be read: " in answer.err


def test_an_unknown_column_is_refused(dagflow: Dagflow, outputs: Path) -> None:
    answer = dagflow("show", str(outputs / "csv"), "--columns", "nam")
    assert (answer.code, answer.out) == (2, "")
    assert "has no column 'nam'. Did you mean 'name'? Known: number, name, share." in answer.err


def view(**columns: list[Any]) -> FirstRows:
    return FirstRows(pa.table(columns), 0, len(next(iter(columns.values()))))


def test_a_table_fits_the_terminal() -> None:
    wide = view(id=[1], text=["日本語" * 100], **{f"column_{n}": ["x" * 30] for n in range(12)})
    lines = rows_text(wide, "out", Style(width=80)).splitlines()
    assert max(map(cells, lines)) <= 80
    assert "…" in lines[-3]
    assert " ".join(lines).count("column_11") == 2  # in the schema, and among those that did not fit


def test_control_characters_are_escaped_and_nothing_is_masked() -> None:
    text = rows_text(view(value=["\x1b[2J", "a\nb", "/?token=abc", None, "x" * 500]), "out", Style())
    assert text.splitlines()[4:] == ["\\x1b[2J", "a\\nb", "/?token=abc", "null", "x" * 200 + "…"]
