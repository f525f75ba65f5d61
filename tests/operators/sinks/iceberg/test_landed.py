"""Commits to catalogs on servers whose answer does not say what has happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagflow import StagedWindow
from operators import IcebergWriter
from tests.operators.sinks.iceberg.rest import Fault, RestCatalog, serving
from tests.operators.sinks.tables import staged_window

pytestmark = pytest.mark.full  # each commit takes a tenth of a second
COMMIT = "POST namespaces/shop/tables/rows"


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestCatalog]:
    with serving(tmp_path) as catalog:
        yield catalog


def sink_of(rest: RestCatalog, mode: Any = "append") -> IcebergWriter[Any]:
    keys = ["n"] if mode == "upsert" else []
    return IcebergWriter("shop.rows", rest.properties, mode, keys=keys, staging=f"{rest.folder}/staging")


def staged(sink: IcebergWriter[Any], number: int, *values: int) -> StagedWindow:
    return staged_window(sink, number, pa.RecordBatch.from_pydict({"n": list(values)}))


def table_of(sink: IcebergWriter[Any]) -> Any:
    opened = sink.open_table()
    assert opened is not None
    return opened.table


def rows(sink: IcebergWriter[Any]) -> list[int]:
    return sorted(table_of(sink).scan().to_arrow().column("n").to_pylist())


def check(sink: IcebergWriter[Any], expected: list[int], *, orphans: int = 0) -> None:
    """The table has these rows and takes another window; only so many lists of manifests belong to no snapshot."""
    assert rows(sink) == expected
    sink.publish(staged(sink, 9, 9))
    assert rows(sink) == [*(expected if sink.mode != "replace" else []), 9]
    table = table_of(sink)
    written = list((Path(table.location().removeprefix("file://")) / "metadata").glob("snap-*.avro"))
    assert len(written) - len(table.snapshots()) == orphans


EXPECTED = {"append": [1, 2, 3], "replace": [3], "upsert": [1, 2, 3]}


@pytest.mark.parametrize(
    ("mode", "fault"), [*((mode, Fault.TWICE) for mode in EXPECTED), ("append", Fault.LOST), ("append", Fault.FAILED_AFTERWARDS)]
)
def test_a_commit_that_is_in_the_table_counts_whatever_the_answer_is(mode: str, fault: Fault, rest: RestCatalog) -> None:
    """`TWICE`: the answer is a conflict with the commit itself, for which `pyiceberg` removes its manifests."""
    sink = sink_of(rest, mode)
    sink.publish(staged(sink, 0, 1, 2))
    rest.once(fault, COMMIT)
    sink.publish(staged(sink, 1, 3))
    commits = [each for each in rest.requests if each == COMMIT]
    assert len(commits) == 3, "one creates the table, and each window is one"
    check(sink, EXPECTED[mode])


def test_a_commit_of_the_first_window_that_arrives_twice(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    rest.once(Fault.TWICE, COMMIT, skip=1)
    sink.publish(staged(sink, 0, 1))
    check(sink, [1])


def test_a_table_whose_creation_arrives_twice(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    rest.once(Fault.TWICE, COMMIT)
    sink.publish(staged(sink, 0, 1))
    check(sink, [1])


def test_a_commit_that_gets_into_the_table_after_the_conflict(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    sink.publish(staged(sink, 0, 1))
    rest.once(Fault.OVERTAKEN, COMMIT)
    sink.publish(staged(sink, 1, 2))
    check(sink, [1, 2])


def test_a_conflict_with_another_writer_leaves_no_manifests(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    sink.publish(staged(sink, 0, 1))
    others = [5, 6]

    def schedule(request: str) -> Fault | None:
        if request == COMMIT and others:
            rest.kept.load_table("shop.rows").append(pa.table({"n": [others.pop()]}))
        return None

    rest.schedule = schedule
    sink.publish(staged(sink, 1, 2))
    check(sink, [1, 2, 5, 6])


def test_a_commit_whose_snapshot_has_expired_before_the_look(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    sink.publish(staged(sink, 0, 1))
    requests: list[str] = []

    def schedule(request: str) -> Fault | None:
        requests.append(request)
        if requests.count(COMMIT) == 1 and request.startswith("GET") and len(requests) > requests.index(COMMIT) + 1:
            requests.append(COMMIT)  # only before the first look
            table = rest.kept.load_table("shop.rows")
            ours = [each.snapshot_id for each in table.snapshots()]
            table.append(pa.table({"n": [7]}))
            table.refresh().maintenance.expire_snapshots().by_ids(ours).commit()
        return Fault.TWICE if request == COMMIT else None

    rest.schedule = schedule
    sink.publish(staged(sink, 1, 2))
    rest.schedule = lambda request: None
    check(sink, [1, 2, 7], orphans=2)  # those of the expired snapshots


def test_a_conflict_after_which_the_catalog_does_not_answer(rest: RestCatalog) -> None:
    sink = sink_of(rest)
    sink.publish(staged(sink, 0, 1))
    requests: list[str] = []

    def schedule(request: str) -> Fault | None:
        requests.append(request)
        if request == COMMIT:
            return Fault.TWICE
        return Fault.BUSY if requests[-2:-1] == [COMMIT] else None

    rest.schedule = schedule
    sink.publish(staged(sink, 1, 2))
    check(sink, [1, 2])
