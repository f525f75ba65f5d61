"""Columns that do not exist are reported with the DAG, where the reader says which ones there are."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, Operator
from dagflow.errors import ColumnNeeded, ColumnsRefused, DagError, KeyRefused
from dagflow.model.graph.checks import check
from dagflow.scan import Drift, TableSchema
from operators import (
    Count,
    CsvFormat,
    CsvWriter,
    FileSplitterInput,
    Filter,
    JsonLinesWriter,
    Map,
    Max,
    ParquetWriter,
    RecordWriter,
    ScanReader,
    Sum,
    TopN,
    Tumbling,
)


@attrs.frozen
class Sale:
    country: str
    price: int


def scan(*operators: Operator, reader: ScanReader[Any]) -> None:
    """Checks a DAG of a reader and operators behind it, one after the other."""
    dag = DAG("sales")
    files = dag.add_operator("files", FileSplitterInput(["in"]))
    last: Any = dag.add_operator("sales", reader)
    dag.add_stream("blocks", files.blocks_metadata_output, last.blocks_metadata_input)
    port: Any = last.batches
    for number, operator in enumerate(operators):
        last = dag.add_operator(f"{type(operator).__name__.lower()}", operator)
        dag.add_stream(f"stream {number}", port, last.input)
        port = getattr(last, "output", None)
    check(dag)


ASKED: dict[str, Any] = {"columns": ["country", "price", "filename"]}


@pytest.mark.parametrize("writer", [ParquetWriter, CsvWriter, JsonLinesWriter])
def test_folders_of_a_column_that_nobody_has(writer: Any) -> None:
    with pytest.raises(
        ColumnNeeded, match=re.escape("partition_columns of port") + ".*'contry'.*Did you mean 'country'"
    ) as caught:
        scan(writer("out", partition_columns=["contry"]), reader=ScanReader(CsvFormat(), **ASKED))
    assert (caught.value.column, caught.value.known) == ("contry", ("country", "price", "filename"))
    scan(writer("out", partition_columns=["country", "filename"]), reader=ScanReader(CsvFormat(), **ASKED))


@attrs.frozen
class Message:
    country: str
    key: bytes


@pytest.mark.parametrize("writer", [CsvWriter, JsonLinesWriter])
def test_columns_that_a_writer_has_no_form_for(writer: Any) -> None:
    """They would fail in the first task, after Spark has started."""

    def message(sale: Any) -> Message:
        return Message("DE", b"")

    with pytest.raises(ColumnsRefused, match=r"port .*writer\.input cannot take its records .*column 'key' .*binary"):
        scan(Map(message), writer("out"), reader=ScanReader(CsvFormat(), **ASKED))
    scan(Map(message), writer("out", partition_columns=["key"]), reader=ScanReader(CsvFormat(), **ASKED))
    scan(Map(message), ParquetWriter("out"), reader=ScanReader(CsvFormat(), **ASKED))


def test_columns_are_followed_through_what_lets_batches_pass() -> None:
    cheap = Filter[Any](pc.field("price") < 7)
    with pytest.raises(ColumnNeeded):
        scan(cheap, ParquetWriter("out", partition_columns=["contry"]), reader=ScanReader(CsvFormat(), **ASKED))


@pytest.mark.parametrize("operator", [Count[Any, Any](by="contry"), Sum[Any, Any](by=("price", "contry"), of="price")])
def test_groups_by_a_column_that_nobody_has(operator: Operator) -> None:
    with pytest.raises(KeyRefused, match=r"'contry': its records have no such column.*Did you mean 'country'"):
        scan(operator, Map[Any, str](str), RecordWriter("out"), reader=ScanReader(CsvFormat(), **ASKED))


@pytest.mark.parametrize(
    "operator",
    [
        Sum[Any, Any](by="country", of="prise"),
        Max[Any, Any](of="prise"),
        TopN[Any](3, "prise", scope="window"),
        Tumbling[Any, Any, Any](60, time="prise"),
        Tumbling[Any, Any, Any](60, time="price", aggregate="sum", of="prise"),
    ],
    ids=lambda operator: type(operator).__name__,
)
def test_values_of_a_column_that_nobody_has(operator: Operator) -> None:
    for reader in (ScanReader(CsvFormat(), **ASKED), ScanReader[Sale](CsvFormat())):
        with pytest.raises(ColumnNeeded, match=r"(of|time) of port .*input names column 'prise'.*Did you mean 'price'"):
            scan(operator, Map[Any, str](str), RecordWriter("out"), reader=reader)


def test_a_strict_schema_says_all_that_there_is() -> None:
    strict = TableSchema("country: string, price: int64", strict=True)
    several: list[dict[str, Any]] = [{}, {"columns": ["filename", "*"]}, {"drift": Drift(changed="rescue")}]
    for said in several:
        with pytest.raises(ColumnNeeded, match="'country'"):
            scan(ParquetWriter("out", partition_columns=["contry"]), reader=ScanReader(CsvFormat(), schema=strict, **said))
    scan(ParquetWriter("out", partition_columns=["country"]), reader=ScanReader(CsvFormat(), schema=strict))
    rescuing = ScanReader(CsvFormat(), schema=strict, drift=Drift(changed="rescue"))
    scan(Count[Any, Any](by="_rescued"), Map[Any, str](str), RecordWriter("out"), reader=rescuing)


def test_columns_of_a_class() -> None:
    with pytest.raises(ColumnNeeded, match="Did you mean 'country'"):
        scan(ParquetWriter[Sale]("out", partition_columns=["contry"]), reader=ScanReader[Sale](CsvFormat()))
    scan(ParquetWriter[Sale]("out", partition_columns=["country"]), reader=ScanReader[Sale](CsvFormat()))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"columns": ["price", "*"]},
        {"schema": "price: int64"},
        {"columns": ["price", "*"], "drift": {"changed": "rescue"}},
    ],
)
def test_what_files_and_folders_may_have_is_not_refused(said: dict[str, Any]) -> None:
    said = {**said, "drift": Drift(**said["drift"])} if "drift" in said else said
    scan(ParquetWriter("out", partition_columns=["year"]), reader=ScanReader(CsvFormat(), **said))


def test_a_projection_that_is_wrong_is_told_as_such() -> None:
    with pytest.raises(DagError, match="does not name a column"):
        scan(ParquetWriter("out", partition_columns=["year"]), reader=ScanReader(CsvFormat(), columns=["a["]))
