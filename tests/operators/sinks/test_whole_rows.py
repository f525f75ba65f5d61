"""Upserts by whole rows (`keys="*"`): tables hold the rows that stand, equal ones as often, against a multiset."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG, SinkLaunch
from dagflow.errors import ChangesRefused, RowsMissing, TableHasRows, TableRefused, TableSchemaDiffers
from dagflow.testing import run_dag
from operators import GroupBy, PostgresWriter, Select, SqlWriter, agg
from tests.operators.databases import Database
from tests.operators.sinks.test_table_changes import Change, content, publish, sink_of, staged
from tests.tiers import examples

kinds = pytest.mark.parametrize(
    "kind",
    ["sqlite", "delta", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("postgres", "iceberg"))],
)
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "name": pa.string(),
        "day": pa.date32(),
        "price": pa.decimal128(9, 2),
        "real": pa.float64(),
        "all": pa.struct({"n": pa.list_(pa.int64())}),
    }
)
ROWS = st.fixed_dictionaries(
    {
        "n": st.sampled_from([1, None]),
        "name": st.sampled_from(["a", "A", "", "a,'", None]),
        "day": st.sampled_from([datetime.date(2026, 1, 2), None]),
        "price": st.sampled_from([decimal.Decimal("1.50"), None]),
        "real": st.sampled_from([0.0, -0.0, 0.1, None]),
        "all": st.sampled_from([{"n": [1, None]}, {"n": None}, None]),
    }
)


class Table:
    """A table of a kind in a place of its own."""

    def __init__(self, kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
        self.kind, self.folder = kind, folder
        self.name = f"rows_{uuid.uuid4().hex[:8]}"
        self.database = Database("sqlite", f"sqlite:///{folder}/db")
        if kind == "postgres":
            self.database = request.getfixturevalue("postgres")
            self.database.run("DROP TABLE IF EXISTS _dagflow_windows")  # of the example before

    def sink(self, **options: Any) -> Any:
        options = {"mode": "upsert", "keys": "*"} | options
        if self.kind in ("sqlite", "postgres"):
            return self.database.writer(self.name, **options)
        return sink_of(self.kind, self.folder, options.pop("keys"), options.pop("mode"), **options)

    def rows(self) -> Counter[str]:
        """The rows as texts that do not depend on the kind."""
        if self.kind not in ("sqlite", "postgres"):
            return Counter(as_text(row) for row in content(self.kind, self.folder))
        return Counter(as_text(dict(zip(SCHEMA.names, row, strict=True))) for row in self.database.rows(self.name))


def as_text(row: dict[str, Any]) -> str:
    whole = json.loads(row["all"]) if isinstance(row["all"], str) else row["all"]
    number = None if row["real"] is None else row["real"] + 0.0
    return repr(
        [row["n"], row["name"], *(None if row[name] is None else str(row[name]) for name in ("day", "price")), number, whole]
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[list[Change]], list[dict[str, Any]]]]:
    """The changes of windows by task, in any order, and the rows that stand after each."""
    stands: list[dict[str, Any]] = []
    windows = []
    for _ in range(draw(st.integers(1, 4))):
        gone = draw(st.integers(0, len(stands)))
        changes: list[Change] = [(-1, stands.pop(draw(st.integers(0, len(stands) - 1)))) for _ in range(gone)]
        for row in draw(st.lists(ROWS, max_size=4)):
            stands.append(row)
            changes.append((1, row))
        changes = [(sign, pa.RecordBatch.from_pylist([row], SCHEMA)) for sign, row in draw(st.permutations(changes))]
        cut = draw(st.integers(0, len(changes)))
        windows.append(([changes[:cut], changes[cut:]], list(stands)))
    return windows


@kinds
@given(history=histories())
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changes(
    kind: str, history: list[Any], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    table, had_rows = Table(kind, tmp_path_factory.mktemp("rows"), request), False
    for number, (tasks, expected) in enumerate(history):
        publish(table.sink(), number, *tasks)
        had_rows = had_rows or any(tasks)
        assert (table.rows() if had_rows else Counter()) == Counter(map(as_text, expected))


ROW = {"n": 1, "name": "a", "day": None, "price": None, "real": 0.5, "all": None}


def changes(*signed: tuple[int, dict[str, Any]]) -> list[Change]:
    return [(sign, pa.RecordBatch.from_pylist([row], SCHEMA)) for sign, row in signed]


@kinds
@pytest.mark.parametrize("other", [{"n": 2}, {"name": None}, {"real": 0.25}, {}])
def test_a_row_that_is_not_there_is_named_before_the_decision(
    kind: str, other: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = Table(kind, tmp_path, request)
    publish(table.sink(), 0, changes((1, ROW)))
    window = staged(table.sink(), 1, changes((-1, ROW | other), *([(-1, ROW)] if not other else [])))
    with pytest.raises(RowsMissing, match=r"a row that is taken back is not in the table: \{'n': ") as raised:
        table.sink().check_window(window)
    assert ": {'n': " + repr((ROW | other)["n"]) in str(raised.value)
    assert table.rows() == Counter([as_text(ROW)])


@kinds
def test_new_columns(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A row that came before a column did is found by its null there."""
    table = Table(kind, tmp_path, request)
    narrow = pa.RecordBatch.from_pylist([{"n": 1}], pa.schema({"n": pa.int64()}))
    wide = [
        pa.RecordBatch.from_pylist([{"n": 1, "name": name}], pa.schema({"n": pa.int64(), "name": pa.string()})) for name in "ab"
    ]
    publish(table.sink(on_schema_change="evolve"), 0, [(1, narrow)])
    publish(table.sink(on_schema_change="evolve"), 1, [(1, each) for each in wide])
    publish(table.sink(on_schema_change="evolve"), 2, [(-1, narrow), (-1, wide[1])])
    rows = table.database.rows(table.name) if kind in ("sqlite", "postgres") else content(kind, tmp_path)
    assert [tuple(row.values()) if isinstance(row, dict) else row for row in rows] == [(1, "a")]


@kinds
def test_a_new_column_and_a_row_that_came_before_it_in_one_window(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = Table(kind, tmp_path, request)
    narrow, wide = pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [1], "name": ["a"]})
    publish(table.sink(on_schema_change="evolve"), 0, [(1, narrow), (1, wide.select(["n"]))])
    publish(table.sink(on_schema_change="evolve"), 1, [(-1, narrow.slice(0, 1))], [(1, wide)])
    rows = table.database.rows(table.name) if kind in ("sqlite", "postgres") else content(kind, tmp_path)
    found = [tuple(row.values()) if isinstance(row, dict) else row for row in rows]
    assert sorted(found, key=str) == [(1, "a"), (1, None), (2, None)]
    publish(table.sink(on_schema_change="evolve"), 2, [(-1, narrow.slice(0, 1))])  # of equal rows, that without the column
    rows = table.database.rows(table.name) if kind in ("sqlite", "postgres") else content(kind, tmp_path)
    assert sorted([tuple(row.values()) if isinstance(row, dict) else row for row in rows], key=str) == [(1, "a"), (2, None)]


@kinds
def test_a_row_is_taken_back_before_there_is_a_table(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    sink = Table(kind, tmp_path, request).sink()
    with pytest.raises(RowsMissing, match="a row that is taken back is not in the table"):
        sink.check_window(staged(sink, 0, changes((-1, ROW))))


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([decimal.Decimal(2**60 + 1), decimal.Decimal(2**60 + 2)], pa.decimal128(38, 0)),
        pa.array([decimal.Decimal("900719925474099.93"), decimal.Decimal(1)], pa.decimal128(20, 2)),
        pa.array([2**63 + 1, 2**63 + 2], pa.uint64()),
        pa.array([2**62 + 1, 2**62 + 2], pa.int64()),
        pa.array([1_767_225_600_001_001, -1], pa.timestamp("us")),
        pa.array(["x" * 100, "é"]),
        pa.array([True, False]),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("name", ["v", "a.b", "v w"])
def test_values_of_files_that_are_left_out_by_bounds(kind: str, column: Any, name: str, tmp_path: Path) -> None:
    batch = pa.record_batch([column], [name])
    sink = sink_of(kind, tmp_path, "*")
    publish(sink, 0, [(1, batch)])
    publish(sink, 1, [(-1, batch.slice(0, 1))])
    assert len(content(kind, tmp_path)) == 1
    publish(sink, 2, [(-1, batch.slice(1))])
    assert not content(kind, tmp_path)


def test_a_table_that_deltalake_does_not_read_for_others(tmp_path: Path) -> None:
    sink = sink_of("delta", tmp_path, "*")
    publish(sink, 0, changes((1, ROW)))
    table = deltalake.DeltaTable(f"{tmp_path}/table")
    table.alter.add_feature(deltalake.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(TableSchemaDiffers, match=r"keys='\*' reads its rows, and deltalake cannot"):
        sink.check_store(SinkLaunch(name="app", sink="sink"))


@pytest.mark.full
def test_partitions_and_other_columns_in_postgres(postgres: Database) -> None:
    """Rows with the same place in two partitions are two rows. A column of the table's own takes no part."""
    postgres.run("CREATE TABLE parts (n bigint, v text, at timestamptz DEFAULT now(), id serial) PARTITION BY LIST (n)")
    for n in (1, 2):
        postgres.run(f"CREATE TABLE part{n} PARTITION OF parts FOR VALUES IN ({n})")
    sink = PostgresWriter[Any](postgres.address, "parts", mode="upsert", keys="*")
    rows = {n: pa.RecordBatch.from_pylist([{"n": n, "v": "x"}]) for n in (1, 2)}
    publish(sink, 0, [(1, rows[1]), (1, rows[1]), (1, rows[2])])
    publish(sink, 1, [(-1, rows[1])])
    assert postgres.run("SELECT n, v FROM parts ORDER BY n") == [(1, "x"), (2, "x")]


def test_a_table_of_sqlite_with_a_row_number_of_its_own(tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/db")
    database.run("CREATE TABLE own (id INTEGER PRIMARY KEY, n INTEGER, v TEXT COLLATE NOCASE)")
    sink = database.writer("own", mode="upsert", keys="*")
    batch = pa.RecordBatch.from_pylist([{"n": 1, "v": "a"}, {"n": 1, "v": "A"}])
    publish(sink, 0, [(1, batch)])
    publish(sink, 1, [(-1, batch.slice(1))])
    assert database.run("SELECT n, v FROM own") == [(1, "a")]


def totals(folder: Path, sink: Any) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        sales = dag.read(folder / "in", "csv").to(GroupBy("shop", sold=agg.sum("n")), name="totals")
        sales.to(Select("sold"), name="numbers").to(sink, name="sink")  # several shops have sold as much

    return populate_dag


@pytest.mark.parametrize("kind", ["sqlite", "delta"])
def test_launches(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    table = Table(kind, tmp_path, request)
    (tmp_path / "in").mkdir()
    shops: Counter[str] = Counter()
    for number, day in enumerate([{"a": 1, "b": 1, "c": 2}, {"a": 1}, {"b": 3, "c": 1}]):
        shops.update(day)
        lines = "".join(f"{shop},{n}\n" for shop, n in day.items())
        (tmp_path / "in" / f"{number}.csv").write_text("shop,n\n" + lines)
        run_dag(totals(tmp_path, table.sink()), run_folder=str(tmp_path / "run"))
        rows = content(kind, tmp_path) if kind == "delta" else table.database.rows(table.name)
        assert sorted(row["sold"] if kind == "delta" else row[0] for row in rows) == sorted(shops.values())
    with pytest.raises(TableHasRows):
        run_dag(totals(tmp_path, table.sink()), run_folder=str(tmp_path / "run"), fresh=True)


def test_other_writers_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken back from the Delta table as others have left it."""
    sink = sink_of("delta", tmp_path, "*")
    publish(sink, 0, changes((1, ROW), (1, ROW)))
    commit = type(sink).commit

    def late(self: Any, *arguments: Any) -> Any:
        monkeypatch.setattr(type(sink), "commit", commit)
        deltalake.write_deltalake(f"{tmp_path}/table", pa.Table.from_pylist([ROW], SCHEMA), mode="append")
        return commit(self, *arguments)

    monkeypatch.setattr(type(sink), "commit", late)
    publish(sink, 1, changes((-1, ROW)))
    assert len(content("delta", tmp_path)) == 2


@pytest.mark.parametrize(("mode", "keys"), [("append", "*"), ("upsert", ["*", "n"]), (None, "*")])
def test_a_star_stands_for_all_columns_of_an_upsert(mode: Any, keys: Any, tmp_path: Path) -> None:
    with pytest.raises((ValueError, ChangesRefused), match="which stands alone, for all columns, and needs mode 'upsert'"):
        SqlWriter[Any](f"sqlite:///{tmp_path}/db", "t", mode=mode, keys=keys).check()


@pytest.mark.parametrize("columns", [["rowid"], ["rowid", "OID"], ["RowId", "oid", "x"]])
def test_columns_of_sqlite_that_have_the_name_of_the_number_of_a_row(columns: list[str], tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/db")
    batch = pa.RecordBatch.from_pylist([dict.fromkeys(columns, value) for value in (1, None, 3, 3)])
    publish(database.writer("own", mode="upsert", keys="*"), 0, [(1, batch)])
    publish(database.writer("own", mode="upsert", keys="*"), 1, [(-1, batch.slice(1, 2))])
    assert [row[0] for row in database.rows("own")] == [1, 3]


def test_texts_of_sqlite_with_the_character_nul(tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/db")
    first, second = (pa.record_batch({"v": [text]}) for text in ("a\0x", "a\0y"))
    publish(database.writer("own", mode="upsert", keys="*"), 0, [(1, first)])
    publish(database.writer("own", mode="upsert", keys="*"), 1, [(-1, first), (1, second)])
    assert database.rows("own") == [("a\0y",)]


@pytest.mark.parametrize("on_schema_change", ["fail", "evolve"])
def test_columns_that_only_the_table_has(on_schema_change: str, tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/db")
    database.run("CREATE TABLE own (id INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP, v INTEGER)")
    sink = database.writer("own", mode="upsert", keys="*", on_schema_change=on_schema_change)
    batch = pa.record_batch({"v": [1, 1, 2]})
    publish(sink, 0, [(1, batch)])
    publish(sink, 1, [(-1, batch.slice(1))])
    assert database.run("SELECT v FROM own") == [(1,)]


def test_a_table_of_sqlite_whose_rows_have_no_number(tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/db")
    database.run("CREATE TABLE own (v INTEGER PRIMARY KEY) WITHOUT ROWID")
    with pytest.raises(TableRefused, match="rows have no place of their own"):
        database.writer("own", mode="upsert", keys="*").check_store(SinkLaunch(name="app", sink="sink"))


@pytest.mark.full
def test_numbers_of_postgres_that_have_several_texts(postgres: Database) -> None:
    postgres.run("DROP TABLE IF EXISTS _dagflow_windows")
    postgres.run("CREATE TABLE numbers (n numeric, f double precision)")
    mark = "&" if "?" in postgres.address else "?"
    sink = PostgresWriter[Any](f"{postgres.address}{mark}options=-c%20extra_float_digits%3D0", "numbers", mode="upsert", keys="*")
    floats = (0.1, 0.10000000000000002)
    rows = [pa.record_batch({"n": pa.array([decimal.Decimal("1.5")], pa.decimal128(9, 2)), "f": [f]}) for f in floats]
    publish(sink, 0, [(1, each) for each in rows])
    longer = rows[1].set_column(0, "n", rows[1].column(0).cast(pa.decimal128(9, 3)))
    publish(sink, 1, [(-1, longer)])
    assert postgres.run("SELECT f FROM numbers") == [(0.1,)]
