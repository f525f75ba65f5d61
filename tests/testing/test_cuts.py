from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dagflow import DAG
from dagflow.errors import InputMissing
from dagflow.testing import check_cuts
from operators import (
    Console,
    Count,
    CsvFormat,
    CsvWriter,
    FileSplitterInput,
    Filter,
    GroupBy,
    JsonLinesWriter,
    ScanReader,
    agg,
)

FILES = {f"in/{name}.csv": "k\n" + "".join(f"{n % 3}\n" for n in range(40)) for name in "abc"}
SETTINGS = {"input": "{home}/in", "output": "{home}/out"}


def application(*between: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("files", FileSplitterInput(conf["input"]))
        last: Any = dag.add_operator("rows", ScanReader[Any](CsvFormat(), schema="k: int64"))
        dag.add_stream("blocks", splitter.blocks_metadata_output, last.blocks_metadata_input)
        port = last.batches
        for number, make in enumerate(between):
            operator = dag.add_operator(f"operator{number}", make())
            dag.add_stream(f"to {number}", port, operator.input)
            port = operator.output
        writer = dag.add_operator("writer", CsvWriter(conf["output"]))
        dag.add_stream("out", port, writer.input)

    return populate_dag


@pytest.mark.parametrize("between", [(), (lambda: Count[Any, int](by="k"),)], ids=["rows", "count"])
def test_tables_do_not_depend_on_the_cut(between: Any) -> None:
    check_cuts(application(*between), SETTINGS, FILES, cuts=4)


def test_a_result_of_each_window_does_and_the_operator_is_named() -> None:
    with pytest.raises(AssertionError) as caught:
        check_cuts(application(lambda: Count[Any, int](by="k", scope="window")), SETTINGS, FILES, cuts=10)
    assert "the results depend on the cut: block_size=" in str(caught.value)
    assert "out: missing 1 times {'key': 0, 'value': 42}" in str(caught.value)
    assert "operator 'operator0'" in str(caught.value)
    assert "has scope window" in str(caught.value)


def test_tables_are_read_as_the_caller_says() -> None:
    read: list[str] = []

    def rows(home: Any) -> Any:
        read.append(str(home))
        return {"numbers": pa.table({"n": [len(read)]})}

    with pytest.raises(AssertionError, match=r"numbers: missing 1 times \{'n': 1\}"):
        check_cuts(application(), SETTINGS, FILES, cuts=1, read=rows)
    assert len(set(read)) == 2


def test_what_is_wrong_with_an_application_is_raised() -> None:
    with pytest.raises(InputMissing):
        check_cuts(application(lambda: Filter(lambda row: True)), {**SETTINGS, "input": "{home}/other"}, FILES, cuts=1)


def test_changes_of_a_changelog_are_added_up() -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(conf["input"], "csv", "k: int64, n: int64")
        rows.to(GroupBy("k", n=agg.sum("n"))).to(JsonLinesWriter[Any](conf["output"], mode="changelog"))

    files = {f"in/{number}.csv": "k,n\n" + "".join(f"{n % 3},{n}\n" for n in range(number * 7)) for number in range(4)}
    check_cuts(populate_dag, SETTINGS, files, cuts=5)


def test_nothing_to_compare_is_an_error() -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(conf["input"], "csv").to(Console())

    with pytest.raises(AssertionError, match=r"nothing to compare(.|\n)*give read="):
        check_cuts(populate_dag, {"input": "{home}/in"}, {"in/a.csv": "k\n1\n"}, cuts=1)
