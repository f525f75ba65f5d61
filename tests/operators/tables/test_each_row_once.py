"""Any series of appends and compactions, read in any number of launches that may die, gives each row once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.extras.tables import loaded_catalog
from tests.operators.tables.applications import catalog_in, delta, files_in, iceberg, numbers, plans, read_on
from tests.tiers import examples


class DeltaTable:
    """A Delta table of the numbers from 0 on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, 0
        self.append(1)

    def append(self, rows: int) -> None:
        values = range(self.rows, self.rows + rows)
        deltalake.write_deltalake(self.folder / "table", pa.table({"n": pa.array(values, pa.int64())}), mode="append")
        self.rows += rows

    def rearrange(self, how: int) -> None:
        table = deltalake.DeltaTable(self.folder / "table")
        if how % 3 == 0:
            table.optimize.compact()
        elif how % 3 == 1:
            table.optimize.z_order(["n"])
        else:
            table.create_checkpoint()

    def input(self, **options: Any) -> Any:
        return delta(self.folder, **options)


class IcebergTable:
    """An Iceberg table of the numbers from 0 on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, 0
        catalog = loaded_catalog("IcebergInput", catalog_in(folder))
        catalog.create_namespace("shop")
        # with merged manifests, those of a snapshot name the files of earlier ones, too
        properties = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "3"}
        self.table = catalog.create_table("shop.numbers", pa.schema({"n": pa.int64()}), properties=properties)
        self.append(1)

    def append(self, rows: int) -> None:
        self.table.append(pa.table({"n": pa.array(range(self.rows, self.rows + rows), pa.int64())}))
        self.rows += rows

    def rearrange(self, how: int) -> None:
        with self.table.transaction() as transaction:
            transaction.set_properties({"how": str(how)})

    def input(self, **options: Any) -> Any:
        return iceberg(self.folder, **options)


STEPS = st.lists(
    st.tuples(st.just("append"), st.integers(1, 3))
    | st.tuples(st.just("rearrange"), st.integers(0, 2))
    | st.tuples(st.just("launch"), st.integers(1, 3))
    | st.tuples(st.just("look"), st.integers(1, 3)),
    max_size=12,
)


def check(table: Any, steps: list[tuple[str, int]]) -> None:
    for step, size in steps:
        if step == "append":
            table.append(size)
        elif step == "rearrange":
            table.rearrange(size)
        elif step == "launch":  # with windows of so many files
            read_on(table.input(blocks_threshold=size), table.folder)
            assert sorted(numbers(table.folder)) == list(range(table.rows))
        else:  # a launch that has planned, and dies before it publishes a plan
            for _ in zip(range(size), plans(table.input(blocks_threshold=1)), strict=False):
                pass
    read_on(table.input(), table.folder)
    assert sorted(numbers(table.folder)) == list(range(table.rows))


@settings(max_examples=examples(25), deadline=None)
@given(STEPS)
def test_a_delta_table(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(DeltaTable(Path(folder)), steps)


@pytest.mark.full
@settings(max_examples=examples(15), deadline=None)
@given(STEPS)
def test_an_iceberg_table(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(IcebergTable(Path(folder)), steps)


CUTS = st.lists(st.integers(1, 4), min_size=1, max_size=8)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), CUTS)
def test_windows_of_launches_that_die_give_each_file_once(appends: list[int], windows: list[int]) -> None:
    """Each launch resumes from the last plan of the one before, which is published before it is run."""
    with tempfile.TemporaryDirectory() as folder:
        table, last, read = DeltaTable(Path(folder)), None, list[str]()
        for at, count in enumerate([*windows, 1000]):
            for _ in range(appends[at % len(appends)] if at < len(windows) else 0):
                table.append(1)
            for _, plan in zip(range(count), plans(table.input(blocks_threshold=2, from_version=0), last), strict=False):
                last = plan
                read += files_in(plan)
            if at % 3 == 0:
                table.rearrange(0)
        values = [n for path in read for n in pq.read_table(path).column("n").to_pylist()]
        assert values == list(range(table.rows))
