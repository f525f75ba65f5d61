"""The remedies of DF601, followed to the letter."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import DagflowError
from dagflow.testing import Collector, run_dag
from operators import CsvFormat, FileSplitterInput, FixedWidthFormat, JsonLinesFormat, RegexFormat, ScanReader


@attrs.frozen
class Trip:
    n: int
    name: str


@attrs.frozen
class TripOfText:
    n: str
    name: str


@attrs.frozen
class TripWithNulls:
    n: int | None
    name: str


def reading(path: Path, reader: ScanReader[Any], seen: Collector[Any]) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(path)]))
        rows = dag.add_operator("rows", reader)
        dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("rows", rows.batches, dag.add_operator("seen", seen).input)

    return populate_dag


def refused(path: Path, reader: ScanReader[Any]) -> str:
    with pytest.raises(DagflowError) as caught:
        run_dag(reading(path, reader, Collector[Any]()))
    return str(caught.value)


def followed(path: Path, reader: ScanReader[Any], message: str, key: str) -> list[Any]:
    """Run with the `-D` of a message that sets a key of the reader, as its text stands there."""
    options = [each for each in shlex.split(re.sub(r"[;(),]", " ", message)) if each.startswith(f"operator.rows.{key}=")]
    name, _, value = options[0].partition("=")
    seen = Collector[Any]()
    run_dag(reading(path, reader, seen), {name: value})
    return list(seen.records)


LATIN = "1 Malmö\n".encode("latin-1")


@pytest.mark.parametrize(
    ("content", "make"),
    [
        ("id,town\n1,Malmö\n", CsvFormat),
        ("id,größe\n1,2\n", CsvFormat),
        ("1 Malmö\n", lambda: RegexFormat(r"(?P<id>.) (?P<town>.*)")),
        ("1 Malmö\n", lambda: FixedWidthFormat({"id": (0, 1), "town": (2, 5)})),
    ],
    ids=["csv", "header of csv", "regex", "fixed"],
)
def test_a_file_in_latin_1(content: str, make: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content.encode("latin-1"))
    message = refused(tmp_path / "a", ScanReader(make()))
    assert re.search(r"\(0x(f6|fc|df)\)", message)
    assert "-D operator.rows.format.encoding=latin-1" in message
    [row] = followed(tmp_path / "a", ScanReader(make()), message, "format.encoding")
    assert "ö" in str(row)


def test_json_in_latin_1_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "a b.jsonl").write_bytes('{"town": "Malmö"}\n'.encode("latin-1"))
    message = refused(tmp_path / "a b.jsonl", ScanReader(JsonLinesFormat()))
    assert f"iconv -f latin1 -t utf-8 '{tmp_path}/a b.jsonl' > FILE" in message
    assert "format.encoding" not in message


@pytest.mark.parametrize("given", ["in brackets", "as the schema"])
def test_the_schema_of_a_class(given: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,name\n1,a\nx,b\n")
    reader = ScanReader[Trip](CsvFormat()) if given == "in brackets" else ScanReader(CsvFormat(), schema=Trip)
    message = refused(tmp_path / "a.csv", reader)
    assert "in class Trip: `n: str`" in message
    assert "schema=" not in message, "the reader refuses a schema beside a class"


def test_a_field_that_the_message_names_takes_the_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,name\n1,a\nx,b\n")
    seen = Collector[Any]()
    run_dag(reading(tmp_path / "a.csv", ScanReader[TripOfText](CsvFormat()), seen))
    assert [each.n for each in seen.records] == ["1", "x"]
    (tmp_path / "a.csv").write_text("n,name\n,a\n")
    assert "in class Trip: `n: … | None`" in refused(tmp_path / "a.csv", ScanReader[Trip](CsvFormat()))
    seen = Collector[Any]()
    run_dag(reading(tmp_path / "a.csv", ScanReader[TripWithNulls](CsvFormat()), seen))
    assert [each.n for each in seen.records] == [None]


def test_a_schema_of_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,name\n1,a\nx,b\n")
    message = refused(tmp_path / "a.csv", ScanReader(CsvFormat(), schema="n: int64"))
    assert [row["n"] for row in followed(tmp_path / "a.csv", ScanReader(CsvFormat()), message, "schema")] == ["1", "x"]
