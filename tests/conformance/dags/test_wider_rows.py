"""Files of a later launch have a further column: rows that came without it can be taken back, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest

from dagflow import DAG, InputPort, NetRows, Operator, OutputPort, TableState, launch
from operators import Deduplicate, Distinct, GroupBy, HashJoin, ParquetWriter, ScanReader, Sort, SqlWriter, TopN, agg
from tests.operators.databases import Database

FIRST, SECOND = "k,n\n1,1\n2,2\n3,3\n4,4\n4,4\n5,5\n", "b,k,n\nx,1,11\n,2,12\ny,3,2\n,4,4\nz,7,7\n,7,6\n"
ALL = "(SELECT NULL::VARCHAR AS b, k, n FROM read_csv('{0}/1.csv') UNION ALL SELECT b, k, n FROM read_csv('{0}/2.csv'))"
NEWEST = "SELECT * FROM rows QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) = 1"


@attrs.define
class Standing(Operator):
    """Emits the net rows of each window, and takes back those that are gone."""

    input = InputPort[Any](partition_by="*")
    output = OutputPort[Any]()
    rows = TableState()

    @input.net
    def follow(self, net: NetRows[Any]) -> None:
        """Count and hand them on."""
        counts = net.kept(self.rows.lookup(net.keys), "n#") + net.counts
        assert (counts >= 0).all()
        self.rows.keep(net, "n#", counts)
        for count, row in zip(net.counts.tolist(), range(len(net.counts)), strict=True):
            for _ in range(abs(count)):
                (self.output.emit_batch if count > 0 else self.output.retract_batch)(net.rows.slice(row, 1))


def newest(dag: DAG, rows: Any) -> Any:
    return rows.to(Deduplicate(by="k", order_by="n"))


def joined(dag: DAG, rows: Any) -> Any:
    join = dag.add_operator("join", HashJoin[Any, Any, Any]("k"))
    dag.connect(newest(dag, rows), join.left)
    dag.connect(rows, join.right)
    return join.output


SHAPES: dict[str, tuple[Callable[[DAG, Any], Any], str]] = {
    "Deduplicate": (newest, NEWEST),
    "TopN": (lambda dag, rows: rows.to(TopN(2, of="n")), "SELECT * FROM rows ORDER BY n DESC LIMIT 2"),
    "Sort": (lambda dag, rows: rows.to(Sort("n", limit=3)), "SELECT * FROM rows ORDER BY n LIMIT 3"),
    "Distinct": (lambda dag, rows: rows.to(Distinct()), "SELECT DISTINCT * FROM rows"),
    "Distinct of changes": (lambda dag, rows: newest(dag, rows).to(Distinct()), f"SELECT DISTINCT * FROM ({NEWEST})"),
    "HashJoin": (joined, f"SELECT l.*, r.b AS b_right, r.n AS n_right FROM ({NEWEST}) l JOIN rows r USING (k)"),
    "@input.net": (lambda dag, rows: newest(dag, rows).to(Standing()), NEWEST),
    "GroupBy": (
        lambda dag, rows: newest(dag, rows).to(GroupBy("n", k=agg.max("k"))),
        f"SELECT n, max(k) AS k FROM ({NEWEST}) GROUP BY n",
    ),
}


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_result_is_that_of_all_files(shape: str, slots: int, tmp_path: Path) -> None:
    make, query = SHAPES[shape]
    files = tmp_path / "in"
    files.mkdir()

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(str(files), "csv", name="rows")
        reader: Any = dag.operators["rows"].operator
        assert isinstance(reader, ScanReader)
        reader.drift = {"extra": "widen"}
        made = make(dag, rows)
        made.to(ParquetWriter[Any](str(tmp_path / "out"), mode="replace" if shape != "Distinct" else None))
        table = SqlWriter[Any](f"sqlite:///{tmp_path}/out.db", "rows", on_schema_change="evolve")
        made.to(table, name="table")

    for name, text in (("1.csv", FIRST), ("2.csv", SECOND)):
        (files / name).write_text(text)
        launch(populate_dag, runner="local", slots=slots, run_folder=str(tmp_path / "run"))
    with duckdb.connect() as database:
        query = query.replace("FROM rows", f"FROM {ALL.format(files)}").replace("JOIN rows", f"JOIN {ALL.format(files)}")
        right = database.sql(query)
        names = right.columns
        columns = ", ".join(f'"{name}"' for name in names)
        pattern = f"{tmp_path}/out/{'' if shape == 'Distinct' else 'current/'}*.parquet"
        result = database.sql(f"SELECT {columns} FROM read_parquet('{pattern}', union_by_name = true)").fetchall()
        expected = right.fetchall()
    assert sorted(result, key=str) == sorted(expected, key=str)
    assert sorted(Database("sqlite", f"sqlite:///{tmp_path}/out.db").run(f"SELECT {columns} FROM rows"), key=str) == sorted(
        expected, key=str
    )
