"""The law: for any cut of the input, the results of an operator are those of SQL over the whole input. DuckDB is the oracle."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.testing import Collector, run_dag
from operators import (
    Average,
    Count,
    Deduplicate,
    Distinct,
    FileSplitterInput,
    GroupBy,
    HashJoin,
    JsonLinesFormat,
    KeyValue,
    Max,
    Min,
    ScanReader,
    Sum,
    TopN,
    agg,
)
from tests.tiers import examples

Row = tuple[int | None, int | None]
COLUMNS = "k: int64, v: int64"


@attrs.frozen
class Law:
    """An operator with the columns of its results, and the same in SQL over the table `rows`, and `names` for joins."""

    make: Callable[[], Any]
    columns: Callable[[Any], tuple[Any, ...]]
    sql: str


def pair(result: KeyValue[Any, Any]) -> tuple[Any, ...]:
    return result.key, result.value


def row(result: Any) -> tuple[Any, ...]:
    return tuple(result.values())


LAWS = {
    "Count": Law(lambda: Count(by="k"), pair, "SELECT k, count(*) FROM rows GROUP BY k"),
    "Sum": Law(lambda: Sum("v", by="k"), pair, "SELECT k, sum(v)::BIGINT FROM rows GROUP BY k"),
    "Min": Law(lambda: Min("v", by="k"), pair, "SELECT k, min(v) FROM rows GROUP BY k"),
    "Max": Law(lambda: Max("v", by="k"), pair, "SELECT k, max(v) FROM rows GROUP BY k"),
    "Average": Law(lambda: Average("v", by="k"), pair, "SELECT k, avg(v) FROM rows GROUP BY k"),
    "Deduplicate": Law(lambda: Deduplicate(), row, "SELECT DISTINCT k, v FROM rows"),
    "GroupBy": Law(
        lambda: GroupBy("k", n=agg.count(), total=agg.sum("v"), mean=agg.mean("v"), least=agg.min("v"), most=agg.max("v")),
        row,
        "SELECT k, count(*), sum(v)::BIGINT, avg(v), min(v), max(v) FROM rows GROUP BY k",
    ),
    "Distinct": Law(lambda: Distinct("k"), row, "SELECT DISTINCT k FROM rows"),
    "Distinct of all": Law(lambda: Distinct(), row, "SELECT DISTINCT k, v FROM rows"),
    "Deduplicate by": Law(
        lambda: Deduplicate(by="k"),
        row,
        "SELECT k, v FROM rows QUALIFY row_number() OVER (PARTITION BY k ORDER BY v NULLS LAST) = 1",
    ),
    "newest": Law(
        lambda: Deduplicate(by="k", keep="last", order_by="v"),
        row,
        "SELECT k, v FROM rows QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) = 1",
    ),
    "TopN": Law(
        lambda: TopN(2, "v", by="k"),
        row,
        "SELECT k, v FROM rows WHERE v IS NOT NULL QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 2",
    ),
    "TopN of all": Law(
        lambda: TopN(3, "v", smallest=True),
        row,
        "SELECT k, v FROM rows WHERE v IS NOT NULL QUALIFY row_number() OVER (ORDER BY v, k NULLS LAST) <= 3",
    ),
    "inner join": Law(lambda: HashJoin("k"), row, "SELECT rows.k, rows.v, names.name FROM rows JOIN names USING (k)"),
    "left join": Law(
        lambda: HashJoin("k", how="left"), row, "SELECT rows.k, rows.v, names.name FROM rows LEFT JOIN names USING (k)"
    ),
    "semi join": Law(lambda: HashJoin("k", how="semi"), row, "SELECT k, v FROM rows SEMI JOIN names USING (k)"),
    "anti join": Law(lambda: HashJoin("k", how="anti"), row, "SELECT k, v FROM rows ANTI JOIN names USING (k)"),
}
NAMES = [(1, "one"), (2, "two"), (2, "zwei"), (9, "nine")]


@attrs.frozen
class Input:
    """Rows in files, and the cut: the files that are new in each launch, bytes of a block, blocks of a window."""

    files: Sequence[Sequence[Row]]
    block_size: int
    threshold: int | None
    slots: int


numbers = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**31), 2**31))
inputs = st.builds(
    Input,
    files=st.lists(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), numbers), max_size=12), min_size=1, max_size=4),
    block_size=st.integers(1, 200),
    threshold=st.one_of(st.none(), st.integers(1, 3)),
    slots=st.just(1),
)


def expected(law: Law, files: Sequence[Sequence[Row]]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows (k BIGINT, v BIGINT)")
        connection.execute("CREATE TABLE names (k BIGINT, name VARCHAR)")
        for table, values in (("rows", [each for file in files for each in file]), ("names", NAMES)):
            for value in values:
                connection.execute(f"INSERT INTO {table} VALUES (?, ?)", value)
        return Counter(connection.execute(law.sql).fetchall())


def results(law: Law, given: Input, launches: int) -> Counter[tuple[Any, ...]]:
    seen = Collector[Any]()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "rows").mkdir()
        (home / "names.jsonl").write_text("".join(json.dumps({"k": k, "name": name}) + "\n" for k, name in NAMES))

        def populate_dag(dag: DAG, conf: object) -> None:
            operator = dag.add_operator("operator", law.make())
            rows = reader(dag, "rows", home / "rows", COLUMNS)
            if isinstance(operator, HashJoin):
                dag.add_stream("left", rows, operator.left)
                dag.add_stream("right", reader(dag, "names", home / "names.jsonl", "k: int64, name: string"), operator.right)
            else:
                dag.add_stream("rows", rows, operator.input)
            dag.add_operator("seen", seen)
            dag.add_stream("results", operator.output, seen.input)

        def reader(dag: DAG, name: str, files: Path, schema: str) -> Any:
            splitter = FileSplitterInput([str(files)], block_size=given.block_size, blocks_threshold=given.threshold)
            found = dag.add_operator(f"{name}_files", splitter)
            read = dag.add_operator(f"{name}_reader", ScanReader[Any](JsonLinesFormat(), schema=schema))
            dag.add_stream(f"{name}_blocks", found.blocks_metadata_output, read.blocks_metadata_input)
            return read.batches

        for number, file in enumerate(given.files):
            text = "".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in file)
            (home / "rows" / f"{number}.jsonl").write_text(text)
            if number % launches == launches - 1 or number == len(given.files) - 1:
                run_dag(populate_dag, run_folder=str(home / "run"), slots=given.slots)
    return Counter(map(law.columns, seen.records))


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=examples(12), deadline=None)
@given(given=inputs)
def test_any_cut_of_one_launch(name: str, given: Input) -> None:
    assert results(LAWS[name], given, launches=len(given.files)) == expected(LAWS[name], given.files)


@pytest.mark.parametrize("name", LAWS)
def test_several_partitions(name: str) -> None:
    """Each keeps the keys that its rows go to."""
    files = [[(1, 2), (2, 3), (None, None)], [(1, 2), (None, 4), (2, 5), (3, 1)]]
    given = Input(files=files, block_size=10, threshold=None, slots=3)
    assert results(LAWS[name], given, launches=1) == expected(LAWS[name], files)


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=examples(8), deadline=None)
@given(given=inputs, launches=st.integers(1, 3))
def test_any_cut_of_several_launches(name: str, given: Input, launches: int) -> None:
    assert results(LAWS[name], given, launches) == expected(LAWS[name], given.files)
