"""`spark.read.format("dagflow")`: what Spark reads of a dataset is what `read_dataset` reads."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow.ledger import Ledger, read_dataset
from dagflow.ledger.dataset.files import committed_files
from dagflow.ledger.dataset.tables import FileGroup
from dagflow.spark import data_source
from dagflow.spark.data_source import DatasetSource, register, spark_schema
from dagflow.spark.errors import ColumnNotInSpark, OptionWrong
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import run_dag
from operators import CsvWriter, JsonLinesWriter, Map, ParquetWriter
from tests.conformance.apps import line_filter, vectorised
from tests.operators.sinks.test_replace import Numbers, run

WRITERS: dict[str, Any] = {"csv": CsvWriter, "json": JsonLinesWriter, "parquet": ParquetWriter}


@attrs.frozen
class Sale:
    country: str
    day: datetime.date
    at: datetime.datetime
    price: float | None
    units: int


def sale(number: int) -> Sale:
    at = datetime.datetime(2026, 1, 1 + number % 2, 12, tzinfo=datetime.UTC).replace(tzinfo=None)
    return Sale(["se", "no"][number % 2], at.date(), at, number / 4 if number % 5 else None, number)


def written(out: Path, sink: Any) -> None:
    def populate_dag(dag: Any, conf: Any) -> None:
        numbers = dag.add_operator("numbers", Numbers([list(range(12)), list(range(12, 20))]))
        sales = dag.add_operator("sales", Map[int, Sale](sale))
        dag.add_stream("read", numbers.output, sales.input)
        dag.add_stream("sold", sales.output, dag.add_operator("sink", sink).input)

    run_dag(populate_dag)


class TestOptions:
    def test_a_path_is_needed(self) -> None:
        with pytest.raises(OptionWrong, match=r"load\(FOLDER\)"):
            DatasetSource({}).schema()

    @pytest.mark.parametrize("as_of", ["yesterday", "-1", "2026-11-23T10:00:00"])
    def test_an_entry_or_a_time(self, as_of: str, tmp_path: Path) -> None:
        with pytest.raises(OptionWrong, match="give the number of an entry, or a time with its zone"):
            DatasetSource({"path": str(tmp_path), "as_of": as_of}).schema()


class TestColumns:
    def test_types_that_spark_lacks_are_held_by_others(self) -> None:
        schema = spark_schema(pa.schema({"small": pa.uint8(), "large": pa.uint64(), "text": pa.large_string()}))
        assert [field.dataType.simpleString() for field in schema] == ["smallint", "decimal(20,0)", "string"]

    def test_types_that_nothing_holds(self) -> None:
        with pytest.raises(ColumnNotInSpark, match="column 'span' as month_day_nano_interval"):
            spark_schema(pa.schema({"span": pa.month_day_nano_interval()}))


class TestParts:
    def test_a_task_gets_files_up_to_a_size(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(data_source, "MAX_BYTES", 100)
        monkeypatch.setattr(data_source, "OPEN_COST", 10)
        sizes = [30, 30, 30, 500, 1, 1]
        group = FileGroup("text", [str(number) for number in range(6)], sizes=sizes)
        parts = list(data_source.parts_of(group))
        assert [path for part in parts for path in part.paths] == list(group.paths)
        assert [size for part in parts for size in part.sizes] == sizes
        assert [len(part.paths) for part in parts] == [2, 1, 1, 2]

    def test_each_file_is_looked_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In an object store, that is a request for each."""
        written(tmp_path, ParquetWriter[Sale](str(tmp_path), max_file_rows=4))
        looked_at: list[str] = []
        status = LocalFileSystem.status
        monkeypatch.setattr(LocalFileSystem, "status", lambda self, path: looked_at.append(path) or status(self, path))
        source = DatasetSource({"path": str(tmp_path)})
        _ = source.reader(source.schema()).partitions()
        files = [path for path in looked_at if path.endswith(".parquet")]
        assert sorted(files) == sorted(committed_files(str(tmp_path)))
        assert len(files) == 5

    def test_without_spark_batches_are_rows_of_the_dataset(self, tmp_path: Path) -> None:
        written(tmp_path, ParquetWriter[Sale](str(tmp_path), partition_columns=["country"]))
        source = DatasetSource({"path": str(tmp_path)})
        reader = source.reader(source.schema())
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        rows = pa.Table.from_batches(batches).to_pylist()
        assert sorted(row["units"] for row in rows) == list(range(20))
        assert {(row["country"], row["units"] % 2) for row in rows} == {("se", 0), ("no", 1)}


@pytest.mark.spark
class TestSpark:
    @pytest.mark.parametrize("partition_columns", [[], ["country"]])
    @pytest.mark.parametrize("kind", WRITERS)
    def test_spark_reads_the_same_rows(self, kind: str, partition_columns: list[str], tmp_path: Path, spark_session: Any) -> None:
        written(tmp_path, WRITERS[kind][Sale](str(tmp_path), partition_columns=partition_columns))
        (tmp_path / "stray.csv").write_text("not,committed\n")
        register(spark_session)
        frame = spark_session.read.format("dagflow").load(str(tmp_path))
        found = {row["units"]: row.asDict() for row in frame.collect()}
        expected = {row["units"]: row for row in read_dataset(tmp_path).to_table().to_pylist()}
        assert found.keys() == expected.keys() == set(range(20))
        assert found == expected
        assert frame.where("country = 'se' and price is null").count() == 2

    def test_spark_reads_the_newest_snapshot_or_an_earlier_one(self, tmp_path: Path, spark_session: Any) -> None:
        run(tmp_path)
        register(spark_session)
        reading = spark_session.read.format("dagflow")
        assert [row["number"] for row in reading.load(str(tmp_path)).collect()] == [30]
        before = [entry.seq for entry in Ledger.open(str(tmp_path)).data_entries()][1]
        found = reading.option("as_of", before).load(str(tmp_path)).collect()
        assert sorted(row["number"] for row in found) == [20, 21, 22, 23]

    def test_spark_reads_lines(self, tmp_path: Path, spark_session: Any) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.txt").write_text("one\n.two\nthree\n")
        run_dag(line_filter(tmp_path / "in", tmp_path / "out", vectorised()))
        register(spark_session)
        frame = spark_session.read.format("dagflow").load(str(tmp_path / "out"))
        assert sorted(row["value"] for row in frame.collect()) == ["one", "three"]
