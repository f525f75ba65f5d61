"""Sinks with mode "changelog": what the changes of all launches add up to is what SQL says of all input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import ChangesRefused
from dagflow.ledger import read_dataset
from dagflow.testing import OperatorTask, run_dag, run_operator
from operators import CsvWriter, Deduplicate, DeltaWriter, JsonLinesWriter, KafkaWriter, NatsWriter, ParquetWriter, RecordWriter
from operators.sinks.tables.changelog import CHANGE_TYPE, Changelog
from operators.sinks.tables.errors import ChangeTypeTaken
from tests.operators.sinks.logs.memory_log import LOGS, MemoryWriter
from tests.operators.sinks.test_current import Row, expected, populate, write
from tests.tiers import examples

ADDED = ("insert", "update_postimage")
LOST = ("delete", "update_preimage")


def added_up(rows: list[Any]) -> Counter[Any]:
    """Add up a changelog, and check that each row that goes has come."""
    total: Counter[Any] = Counter()
    for *row, kind in rows:
        total[tuple(row)] += 1 if kind in ADDED else -1
    assert {row[-1] for row in rows} <= {*ADDED, *LOST}
    assert all(count >= 0 for count in total.values())
    return +total


def query(home: Path, reader: str) -> list[Any]:
    return duckdb.sql(f"SELECT shop, sold, most, _change_type FROM {reader}").fetchall()


def json_rows(home: Path) -> list[Any]:
    lines = [line for file in sorted((home / "out").glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [tuple(json.loads(line).values()) for line in lines]


def log_rows(home: Path) -> list[Any]:
    messages = [each for partition in LOGS[str(home)].partitions for each in partition]
    return [tuple(json.loads(each.value or b"").values()) for each in messages]


def rows_of_values(home: Path) -> list[Any]:
    messages = [each for partition in LOGS[str(home)].partitions for each in partition]
    kinds = [dict(each.headers)[CHANGE_TYPE].decode() for each in messages]
    found = [json.loads(each.value or b"") for each in messages]
    return [(each["shop"], each["sold"], each["most"], kind) for each, kind in zip(found, kinds, strict=True)]


SINKS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], list[Any]]]] = {
    "json": (lambda home: JsonLinesWriter(home / "out", mode="changelog", keys="shop"), json_rows),
    "csv": (
        lambda home: CsvWriter(home / "out", mode="changelog"),
        lambda home: query(home, f"read_csv('{home}/out/*.csv', header=true)"),
    ),
    "parquet in folders": (
        lambda home: ParquetWriter(home / "out", mode="changelog", keys="shop", partition_columns="shop"),
        lambda home: query(home, f"read_parquet('{home}/out/*/*.parquet', hive_partitioning=true)"),
    ),
    "log": (lambda home: MemoryWriter(name=str(home), key="shop", mode="changelog"), log_rows),
    "log without keys": (lambda home: MemoryWriter(name=str(home), mode="changelog"), log_rows),
}


@pytest.mark.parametrize("name", SINKS)
@settings(max_examples=examples(3), deadline=None, phases=[Phase.generate])
@given(files=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1), min_size=1, max_size=3))
def test_a_changelog_adds_up_to_the_current_result(
    name: str, files: list[list[Row]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("changelog")
    make, rows_of = SINKS[name]
    for number, rows in enumerate(files):
        write(home, number, rows)
        run_dag(populate(home, make(home)), run_folder=str(home / "run"))
        assert added_up(rows_of(home)) == expected(files[: number + 1])


@pytest.mark.parametrize("make", [JsonLinesWriter, CsvWriter, ParquetWriter])
@pytest.mark.parametrize("changes", [True, False], ids=["changing", "added"])
@pytest.mark.parametrize("schema", [None, "shop: string, price: int64"], ids=["inferred", "declared"])
def test_the_ledger_has_the_kinds_of_changes(make: Any, changes: bool, schema: str | None, tmp_path: Path) -> None:
    """Readers of the dataset see no other columns than those of its ledger."""

    def populate_dag(dag: DAG, conf: object) -> None:
        rows = dag.read(tmp_path / "in", "json_lines", schema=schema)
        if changes:
            rows = rows.to(Deduplicate[Any](by="shop"), name="first")
        rows.to(make(tmp_path / "out", mode="changelog"), name="log")

    write(tmp_path, 0, [("a", 1)])
    run_dag(populate_dag, run_folder=str(tmp_path / "run"))
    assert read_dataset(str(tmp_path / "out")).to_table().to_pylist() == [{"shop": "a", "price": 1, CHANGE_TYPE: "insert"}]


def test_updates_of_one_key_stand_together_in_one_partition(tmp_path: Path) -> None:
    for number, rows in enumerate([[("a", 1), ("b", 2)], [("b", 1), ("c", 1)]]):
        write(tmp_path, number, rows)
        run_dag(populate(tmp_path, SINKS["log"][0](tmp_path)), run_folder=str(tmp_path / "run"))
    by_key: dict[str, list[Any]] = {}
    for place, partition in enumerate(LOGS[str(tmp_path)].partitions):
        for each in partition:
            *row, kind = json.loads(each.value or b"").values()
            by_key.setdefault(row[0], []).append((place, row, kind))
    assert {key: [(row, kind) for _, row, kind in each] for key, each in by_key.items()} == {
        "a": [(["a", 1, 1], "insert")],
        "b": [(["b", 1, 2], "insert"), (["b", 1, 2], "update_preimage"), (["b", 2, 2], "update_postimage")],
        "c": [(["c", 1, 1], "insert")],
    }
    assert all(len({place for place, *_ in each}) == 1 for each in by_key.values())


def test_a_row_that_leaves_is_a_deletion(tmp_path: Path) -> None:
    for number, rows in enumerate([[("a", 1)], [("a", 9)]]):
        write(tmp_path, number, rows)
        run_dag(populate(tmp_path, SINKS["json"][0](tmp_path), least=5), run_folder=str(tmp_path / "run"))
    assert json_rows(tmp_path) == [("a", 1, 1, "insert"), ("a", 1, 1, "delete")]


def changes(keys: Any, *chunks: tuple[int, list[tuple[str, int]]]) -> list[tuple[str, int, str]]:
    with OperatorTask(Changelog(keys=keys), in_batches=True) as task:
        for sign, rows in chunks:
            batch = pa.record_batch(
                {"k": pa.array([k for k, _ in rows], pa.string()), "v": pa.array([v for _, v in rows], pa.int64())}
            )
            task.give("input", batch, retracts=sign < 0)
        return [tuple(row.values()) for row in task.end_window()["output"]]  # type: ignore[misc]  # three columns


CHUNKS = st.lists(st.tuples(st.sampled_from([1, -1]), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)))), min_size=1)


@given(CHUNKS, st.sampled_from(["k", (), ["k", "v"]]))
def test_changes_are_netted_and_paired(chunks: list[tuple[int, list[tuple[str, int]]]], keys: Any) -> None:
    total: Counter[Any] = Counter()
    for sign, rows in chunks:
        for row in rows:
            total[row] += sign
    found = changes(keys, *chunks)
    net: Counter[Any] = Counter()
    for k, v, kind in found:
        net[k, v] += 1 if kind in ADDED else -1
    assert {row: count for row, count in net.items() if count} == {row: count for row, count in total.items() if count}
    assert len(found) == sum(map(abs, total.values()))  # nothing comes and goes
    for before, after in zip(found, [*found[1:], None], strict=False):
        if before[2] == "update_preimage":
            assert after is not None
            assert (after[0], after[2]) == (before[0], "update_postimage")
    kinds = Counter((k, kind) for k, _, kind in found)
    for k in "ab":
        assert kinds[k, "update_preimage"] == kinds[k, "update_postimage"]
        assert keys != "k" or not (kinds[k, "insert"] and kinds[k, "delete"])


def test_rows_that_only_come_are_insertions() -> None:
    LOGS.clear()
    batch = pa.record_batch({"shop": ["a"], "sold": [1]})
    run_operator(MemoryWriter(name="one", key="shop", mode="changelog"), {"input": [batch]})
    assert [each.value for partition in LOGS["one"].partitions for each in partition] == [
        b'{"shop":"a","sold":1,"_change_type":"insert"}'
    ]


def test_a_message_with_a_value_of_its_own_has_the_kind_in_a_header() -> None:
    LOGS.clear()
    batch = pa.record_batch({"shop": ["a"], "sold": [1]})
    run_operator(MemoryWriter(name="two", key="shop", value="sold", mode="changelog"), {"input": [batch]})
    (message,) = (each for partition in LOGS["two"].partitions for each in partition)
    assert (message.value, dict(message.headers)) == (b"1", {CHANGE_TYPE: b"insert"})


def test_a_column_of_that_name_is_refused() -> None:
    with pytest.raises(ChangeTypeTaken, match=r"DF815|_change_type"), OperatorTask(Changelog(), in_batches=True) as task:
        task.give("input", pa.record_batch({CHANGE_TYPE: ["x"]}))


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        (lambda: RecordWriter("out", mode="changelog"), "mode 'changelog' is for sinks of columns"),
        (lambda: JsonLinesWriter("out", keys="k"), "keys is of no use with mode 'append'"),
        (lambda: KafkaWriter("localhost:9092", "sales", keys="k"), "keys is of no use with mode 'append'"),
        (lambda: KafkaWriter("localhost:9092", "sales", key=str, mode="changelog"), "needs columns as parts of messages"),
        (
            lambda: NatsWriter("nats://localhost:4222", "S", "s", mode="changelog", value=str),
            "needs columns as parts of messages",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(sink: Callable[[], Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        sink().check()


def test_a_table_has_no_changelog() -> None:
    with pytest.raises(ValueError, match="changelog"):
        DeltaWriter("out", mode="changelog")  # type: ignore[arg-type]


def test_a_log_without_a_mode_is_refused_where_rows_may_be_taken_back(tmp_path: Path) -> None:
    with pytest.raises(ChangesRefused, match="mode='changelog'"):
        run_dag(populate(tmp_path, MemoryWriter(name=str(tmp_path), key="shop")), run_folder=str(tmp_path / "run"))
