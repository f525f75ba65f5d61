from __future__ import annotations

import io
import random
import re
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord, Window
from dagflow.testing import OperatorTask, run_operator
from operators import ParquetWriter
from operators.sinks.errors import ColumnsChanged, FileNameRefused, PartitionColumnRefused, RowsNotWritable, TypeNotWritable
from operators.sinks.files.partitions import NO_VALUE
from operators.sinks.parquet.encodings import LARGE

KEYS = st.lists(st.tuples(st.sampled_from(["a", "b/c", "å ", "", None, NO_VALUE]), st.integers(0, 2)), min_size=1, max_size=40)


def given_batches(operator: ParquetWriter[Any], *batches: pa.RecordBatch, window: int = 0) -> OperatorTask:
    with OperatorTask(operator, window=window) as task:
        for batch in batches:
            task.give("input", batch, "batch")
    assert not any(file.is_open for file in task.files.files.values())
    assert sum(file.rows for file in task.files.files.values()) == sum(batch.num_rows for batch in batches)
    return task


def files_of(task: OperatorTask) -> dict[str, pq.ParquetFile]:
    return {name: pq.ParquetFile(io.BytesIO(data)) for name, data in task.files.contents.items()}


def numbers(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, stop), pa.int64())})


def test_one_file_a_partition_and_window() -> None:
    with OperatorTask(ParquetWriter("out"), window=7, partition=2) as task:
        task.give("input", numbers(0, 3), "batch")
        task.give("input", numbers(3, 5), "batch")
    ((name, file),) = files_of(task).items()
    assert name == "part-000007-0002.parquet"
    assert file.read().to_pydict() == {"n": [0, 1, 2, 3, 4]}
    assert file.metadata.num_row_groups == 1
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_no_rows_make_no_file() -> None:
    assert given_batches(ParquetWriter("out"), numbers(0, 0)).files.contents == {}


@given(KEYS, st.integers(1, 10), st.integers(1, 3), st.sampled_from([1, 600, 5_000, 64 << 20]))
def test_every_row_is_in_the_folder_of_its_values_once_and_in_order(
    keys: list[tuple[str | None, int]], cut: int, max_open: int, buffer: int
) -> None:
    rows = [{"key": key, "day": day, "n": n} for n, (key, day) in enumerate(keys)]
    schema = pa.schema({"key": pa.string(), "day": pa.int32(), "n": pa.int64()})
    batches = [pa.RecordBatch.from_pylist(rows[at : at + cut], schema) for at in range(0, len(rows), cut)]
    writer = ParquetWriter[Any](
        "out", partition_columns=["key", "day"], max_open_files=max_open, buffer_bytes=buffer, row_group_bytes=buffer
    )
    task = given_batches(writer, *batches)
    assert task.files.most_open <= len(task.files.files)
    found: dict[str, list[int]] = {}
    for name, file in files_of(task).items():
        found.setdefault(name.rpartition("/")[0], []).extend(file.read().column("n").to_pylist())
    text = {"a": "a", "b/c": "b%2Fc", "å ": "%C3%A5%20", "": "", None: NO_VALUE, NO_VALUE: "%5F" + NO_VALUE[1:]}
    expected: dict[str, list[int]] = {}
    for row in rows:
        expected.setdefault(f"key={text[row['key']]}/day={row['day']}", []).append(row["n"])  # type: ignore[index]
    assert found == expected
    assert list(found) == list(expected), "folders are begun in the order of their first rows"


def test_arrow_reads_the_folders_back(tmp_path: Path) -> None:
    @attrs.frozen
    class Sale:
        country: str | None
        year: int
        amount: float

    sales = [Sale("s/e", 2026, 1.0), Sale(None, 2025, 2.0), Sale("s/e", 2026, 3.0), Sale("no", 2026, 4.0)]
    run_operator(
        ParquetWriter[Sale](str(tmp_path), partition_columns=["country", "year"]), {"input": [Window(sales), Window(sales[:1])]}
    )
    table = ds.dataset(tmp_path, partitioning="hive").to_table()
    rows = sorted((r["amount"], r["country"], r["year"]) for r in table.to_pylist())
    expected = sorted((s.amount, s.country, s.year) for s in [*sales, sales[0]])
    assert [(a, c or None, y) for a, c, y in rows] == expected


def test_records_of_readers_are_written_with_their_place(tmp_path: Path) -> None:
    run_operator(ParquetWriter(str(tmp_path)), {"input": [ReaderRecord(7, 0, "a"), ReaderRecord(7, 2, "b")]})
    (file,) = tmp_path.glob("*.parquet")
    assert pq.read_table(file).to_pylist() == [
        {"block_id": 7, "position": 0, "record": "a"},
        {"block_id": 7, "position": 2, "record": "b"},
    ]


def test_bare_values_are_a_column(tmp_path: Path) -> None:
    run_operator(ParquetWriter(str(tmp_path)), {"input": [1, 2]})
    (file,) = tmp_path.glob("*.parquet")
    assert pq.read_table(file).to_pydict() == {"value": [1, 2]}


def test_row_groups_by_rows() -> None:
    task = given_batches(ParquetWriter("out", row_group_rows=4), numbers(0, 3), numbers(3, 13))
    (file,) = files_of(task).values()
    assert [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)] == [4, 4, 4, 1]
    assert file.read().column("n").to_pylist() == list(range(13))


def test_row_groups_by_bytes() -> None:
    task = given_batches(
        ParquetWriter("out", row_group_bytes=80_000, buffer_bytes=80_000), numbers(0, 5_000), numbers(5_000, 50_000)
    )
    (file,) = files_of(task).values()
    groups = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
    assert sum(groups) == 50_000
    assert max(groups) <= 2 * 10_000
    assert min(groups[:-1]) >= 5_000


def test_files_by_rows() -> None:
    task = given_batches(ParquetWriter("out", max_file_rows=5), numbers(0, 3), numbers(3, 15))
    assert {name: file.read().column("n").to_pylist() for name, file in files_of(task).items()} == {
        "part-000000-0000.parquet": [0, 1, 2, 3, 4],
        "part-000000-0000_000001.parquet": [5, 6, 7, 8, 9],
        "part-000000-0000_000002.parquet": [10, 11, 12, 13, 14],
    }


def test_files_by_bytes() -> None:
    writer = ParquetWriter[Any]("out", compression="none", row_group_rows=1_000, max_file_bytes=20_000)
    batches = [pa.record_batch({"x": [n / 7 for n in range(at, at + 700)]}) for at in range(0, 14_000, 700)]
    task = given_batches(writer, *batches)
    files = files_of(task)
    assert [x for file in files.values() for x in file.read().column("x").to_pylist()] == [n / 7 for n in range(14_000)]
    assert len(files) > 3
    assert all(20_000 <= len(data) < 40_000 for data in list(task.files.contents.values())[:-1])


def test_few_files_are_open_and_little_waits() -> None:
    keys = [f"k{n % 50}" for n in range(2_000)]
    batches = [pa.record_batch({"key": keys[at : at + 100], "text": ["x" * 100] * 100}) for at in range(0, 2_000, 100)]
    writer = ParquetWriter[Any]("out", partition_columns=["key"], max_open_files=3, buffer_bytes=50_000, row_group_bytes=50_000)
    with OperatorTask(writer) as task:
        for batch in batches:
            task.give("input", batch, "batch")
            parts = writer._files._parts.values()
            assert sum(part.writer is not None for part in parts) <= 3
            assert sum(part.bytes_waiting for part in parts) <= 50_000
    assert task.counters["files_closed_early"] >= len(task.files.files) - 50 > 0
    table = pa.concat_tables([file.read() for file in files_of(task).values()])
    assert table.num_rows == 2_000


def test_files_that_make_room_for_others_have_rows_that_wait_themselves() -> None:
    chance = random.Random(138)
    keys = chance.choice([5, 10, 20, 50])
    writer = ParquetWriter[Any]("out", partition_columns=["key"], buffer_bytes=150_000, row_group_bytes=150_000)
    batches = []
    for number in range(keys * 60):
        if number % keys == 0:
            base = chance.choice([20, 60, 100, 300])
        rows = base + chance.randrange(-base // 4, base // 4)
        batches.append(pa.record_batch({"key": [f"k{number % keys}"] * rows, "n": list(range(rows))}))
    task = given_batches(writer, *batches)
    found = sum(file.metadata.num_rows for file in files_of(task).values())
    assert found == sum(batch.num_rows for batch in batches)


def test_with_room_no_folder_gets_two_files() -> None:
    batches = [pa.record_batch({"key": [f"k{n}" for n in range(50)], "n": range(50)}) for _ in range(20)]
    task = given_batches(ParquetWriter("out", partition_columns=["key"], max_open_files=1), *batches)
    assert len(task.files.files) == 50, "what fits into the buffer is never written in pieces"
    assert "files_closed_early" not in task.counters


def test_the_first_large_value_of_a_file_that_was_begun_is_in_the_next_one() -> None:
    def row(n: int, column: str = "") -> pa.RecordBatch:
        return pa.record_batch({"n": [n], **{name: ["x" * (LARGE + 1 if name == column else 1)] for name in "ab"}})

    batches = [row(0), row(1), row(2, "a"), row(3), row(4, "b"), row(5, "a"), row(6, "b")]
    files = files_of(given_batches(ParquetWriter("out", row_group_rows=1), *batches)).values()
    assert [file.read().column("n").to_pylist() for file in files] == [[0, 1], [2, 3], [4, 5, 6]]
    described = [[file.metadata.row_group(0).column(n).is_stats_set for n in range(3)] for file in files]
    assert described == [[True, True, True], [True, False, True], [True, False, False]]
    (file,) = files_of(given_batches(ParquetWriter("out"), *batches)).values()
    assert file.read().column("n").to_pylist() == list(range(7))


def test_columns_in_another_order_are_put_in_order() -> None:
    one, other = pa.record_batch({"a": [1], "b": ["x"]}), pa.record_batch({"b": ["y"], "a": [2]})
    (file,) = files_of(given_batches(ParquetWriter("out"), one, other)).values()
    assert file.read().to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_columns_that_change_are_an_error_that_names_both() -> None:
    with OperatorTask(ParquetWriter("out")) as task:
        task.give("input", pa.record_batch({"a": [1], "b": [1]}), "batch")
        with pytest.raises(ColumnsChanged) as caught:
            task.give("input", pa.record_batch({"a": ["x"], "c": [1]}), "batch")
    assert str(caught.value).splitlines()[0] == (
        "ParquetWriter: a batch does not fit the columns of part-000000-0000.parquet: column 'a' is string, and was int64; "
        "column 'b' (int64) is missing; column 'c' (int64) is new"
    )


def test_columns_that_change_get_files_of_their_own() -> None:
    one, other = pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})
    task = given_batches(ParquetWriter("out", on_schema_change="new_file"), one, other, one)
    assert {name: file.read().to_pydict() for name, file in files_of(task).items()} == {
        "part-000000-0000.parquet": {"a": [1, 1]},
        "part-000000-0000_000001.parquet": {"a": ["x"]},
    }


def test_metadata_and_nullability_are_no_other_columns() -> None:
    one = pa.record_batch([[1]], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={"x": "y"}))
    (file,) = files_of(given_batches(ParquetWriter("out"), one, pa.record_batch({"a": pa.array([None], pa.int64())}))).values()
    assert file.read().to_pydict() == {"a": [1, None]}


@pytest.mark.parametrize(
    ("partition_columns", "reason"),
    [
        (["x"], "there is none\n  help: the columns are a, b"),
        (["b"], "it is of type double: folders are named by text, integers, dates and booleans\n  help: remove it from"),
        (["a"], None),
    ],
)
def test_columns_that_name_no_folder(partition_columns: list[str], reason: str | None) -> None:
    batch = pa.record_batch({"a": ["x"], "b": [0.5]})
    if reason is None:
        given_batches(ParquetWriter("out", partition_columns=partition_columns), batch)
        batch, reason = batch.select(["a"]), "no column is left for the files"
    with (
        OperatorTask(ParquetWriter("out", partition_columns=partition_columns)) as task,
        pytest.raises(PartitionColumnRefused, match=re.escape(reason)),
    ):
        task.give("input", batch, "batch")
    assert task.files.files == {}


def test_a_type_that_parquet_does_not_know() -> None:
    batch = pa.record_batch({"a": [1], "span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with OperatorTask(ParquetWriter("out")) as task, pytest.raises(TypeNotWritable) as caught:
        task.give("input", batch, "batch")
    assert str(caught.value) == (
        "ParquetWriter: column 'span' is of type month_day_nano_interval, which Parquet does not support\n"
        "  help: cast it, or leave it out, before it comes here"
    )
    assert task.files.files == {}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"path": ""}, "path is empty: name the output folder"),
        ({"suffix": "/x"}, "suffix is '/x': it cannot name a folder"),
        ({"max_file_rows": 0}, "max_file_rows is 0, and must be at least 1 (leave it out for no limit)"),
        ({"partition_columns": ["a", "a"]}, "partition_columns names a column twice: a, a"),
        ({"partition_columns": ["_a"]}, "partition_columns has '_a': a folder that begins with _ or . is not part of the data"),
        ({"buffer_bytes": 1 << 20}, "row_group_bytes is 33554432, more than buffer_bytes (1048576) lets wait"),
        ({"compression": "snappy", "compression_level": 3}, "compression_level is 3, but snappy has no levels"),
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ParquetWriter(**{"path": "out", **properties}).check()


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_compressions(codec: str) -> None:
    (file,) = files_of(given_batches(ParquetWriter("out", compression=codec), numbers(0, 9))).values()  # type: ignore[arg-type]
    assert file.read().column("n").to_pylist() == list(range(9))
    assert file.metadata.row_group(0).column(0).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


def test_several_windows_with_one_instance() -> None:
    operator = ParquetWriter[Any]("out", max_file_rows=2)
    with OperatorTask(operator) as task:
        task.give("input", numbers(0, 3), "batch")
        task.end_window()
        task.give("input", pa.record_batch({"other": [1]}), "batch")
    names = ["part-000000-0000.parquet", "part-000000-0000_000001.parquet", "part-000001-0000.parquet"]
    assert list(task.files.contents) == names


def test_a_value_that_is_too_long_for_a_folder() -> None:
    batch = pa.record_batch({"a": ["y", "x" * 239], "n": [1, 2]})
    writer = ParquetWriter[Any]("out", partition_columns=["a"])
    with OperatorTask(writer) as task:
        task.begin_window()
        with pytest.raises(FileNameRefused) as caught:
            writer.write_batch(batch)
    assert str(caught.value).startswith("ParquetWriter: partition_columns gave 'a=xxx")
    assert ": a part of it is longer than 240 bytes\n" in str(caught.value)
    assert task.files.files == {}, "all of a batch is written, or nothing"


def test_rows_that_arrow_cannot_write_end_the_run_whatever_on_error_says(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": [1, 2], "at": pa.array([[1], [2**62]], pa.list_(pa.timestamp("s")))})
    writer = ParquetWriter[Any](str(tmp_path), on_error="skip")
    with OperatorTask(writer) as task:
        task.give("input", batch, "batch")
        with pytest.raises(RowsNotWritable) as caught:
            writer.end_window()
        writer._files._parts.clear()
    assert str(caught.value).startswith(
        "ParquetWriter: rows of part-000000-0000.parquet (n: int64, at: list<item: timestamp[s]>) cannot be written: "
    )
    assert caught.value.is_fatal


def test_one_column_may_come_without_a_list(tmp_path: Path) -> None:
    assert ParquetWriter(str(tmp_path), partition_columns="country").partition_columns == ("country",)
    assert ParquetWriter(str(tmp_path), partition_columns=["country", "day"]).partition_columns == ("country", "day")
