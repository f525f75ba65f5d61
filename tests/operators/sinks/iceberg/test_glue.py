"""Tables in the catalog of AWS Glue, which `moto` stands for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError

from dagflow import StagedWindow
from dagflow.errors import TableUnreachable
from dagflow.testing import run_operator
from operators import IcebergInput, IcebergWriter
from operators.extras import unavailable
from operators.extras.tables import loaded_catalog
from tests.operators.sinks.tables import staged_window
from tests.storage.s3 import servers

pytestmark = pytest.mark.full  # starts a server


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IcebergWriter[Any]]:
    """A sink whose rows lie on this machine: only its catalog is Glue."""
    pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3,server]'")
    monkeypatch.setattr(unavailable, "PAUSES", (0.0, 0.0, 0.0))
    keys = {"glue.access-key-id": "key", "glue.secret-access-key": "secret", "glue.region": "us-east-1"}
    with servers.moto() as endpoint:
        yield IcebergWriter("shop.rows", {"type": "glue", "glue.endpoint": endpoint, "warehouse": f"file://{tmp_path}", **keys})


def staged(sink: IcebergWriter[Any], number: int, *values: int) -> StagedWindow:
    return staged_window(sink, number, pa.RecordBatch.from_pydict({"n": list(values)}))


def table_of(sink: IcebergWriter[Any]) -> Any:
    opened = sink.open_table()
    assert opened is not None
    return opened.table


def rows(sink: IcebergWriter[Any]) -> list[int]:
    return sorted(table_of(sink).scan().to_arrow().column("n").to_pylist())


def test_windows(sink: IcebergWriter[Any]) -> None:
    for number in range(2):
        window = staged(sink, number, number)
        assert not sink.is_published(window)
        sink.publish(window)
        sink.publish(window)
    table_of(sink).append(pa.table({"n": [9]}))
    sink.publish(staged(sink, 2, 2))
    assert rows(sink) == [0, 1, 2, 9]
    blocks = run_operator(IcebergInput(sink.path, sink.catalog), {})["blocks_metadata_output"]
    assert len(blocks) == 4


def test_an_update_that_is_repeated_after_a_lost_answer(sink: IcebergWriter[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The client tries again by itself, and gets a conflict with its first request. `moto` knows no conflicts."""
    sink.publish(staged(sink, 0, 1))
    glue = loaded_catalog("IcebergWriter", sink.catalog).glue
    update = glue.update_table

    def twice(**arguments: Any) -> None:
        update(**arguments)
        error = {"Error": {"Code": "ConcurrentModificationException", "Message": "the version is another one"}}
        raise glue.exceptions.ConcurrentModificationException(error, "UpdateTable")

    with monkeypatch.context() as patch:
        patch.setattr(glue, "update_table", twice)
        sink.publish(staged(sink, 1, 2))
    sink.publish(staged(sink, 2, 3))
    assert rows(sink) == [1, 2, 3]


def test_throttling(sink: IcebergWriter[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    glue = loaded_catalog("IcebergWriter", sink.catalog).glue
    get, left = glue.get_table, [3]

    def throttled(**arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "GetTable")
        return get(**arguments)

    monkeypatch.setattr(glue, "get_table", throttled)
    assert sink.open_table() is None
    left[0] = 4
    with pytest.raises(TableUnreachable, match=r"cannot be opened: ClientError: .*Rate exceeded"):
        sink.open_table()
