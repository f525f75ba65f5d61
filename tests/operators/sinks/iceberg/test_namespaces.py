"""Namespaces of tables that do not exist yet, and those within others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError

from dagflow.testing import run_operator
from operators import IcebergInput, IcebergWriter
from operators.extras.tables import loaded_catalog
from tests.operators.sinks.iceberg.rest import Fault, serving
from tests.operators.sinks.tables import staged_window

pytestmark = pytest.mark.full  # each commit takes a tenth of a second


def check(sink: IcebergWriter[Any]) -> None:
    """A window of one row gets into the table, and is read from there."""
    sink.publish(staged_window(sink, 0, pa.RecordBatch.from_pydict({"n": [1]})))
    blocks = run_operator(IcebergInput(sink.path, sink.catalog), {})["blocks_metadata_output"]
    assert [Path(block.file_path).parent.parent.name for block in blocks] == ["rows"]


@pytest.mark.parametrize("known", ["", "shop", "shop.north", "shop.north.oslo"])
def test_namespaces_are_created_as_far_as_they_are_not_there(known: str, tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        sink = IcebergWriter[Any]("shop.north.oslo.rows", rest.properties, staging=f"{tmp_path}/staging")
        parts = known.split(".") if known else []
        for depth in range(1, len(parts) + 1):
            loaded_catalog("IcebergWriter", sink.catalog).create_namespace(tuple(parts[:depth]))
        check(sink)
        assert rest.namespaces == {("shop",), ("shop", "north"), ("shop", "north", "oslo")}


def test_a_catalog_in_a_file_has_namespaces_within_others(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    check(IcebergWriter[Any]("shop.north.rows", catalog))


def test_the_right_to_create_a_namespace_is_not_needed_for_one_that_is_there(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        sink = IcebergWriter[Any]("shop.rows", rest.properties, staging=f"{tmp_path}/staging")
        rest.schedule = lambda request: Fault.FORBIDDEN if request == "POST namespaces" else None
        with pytest.raises(ForbiddenError):
            check(sink)
        rest.answer("POST", ["namespaces"], {}, {"namespace": ["shop"]})
        check(sink)
