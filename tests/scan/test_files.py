"""The framework for files, with a format of a few lines: a row a line, `name=value` pairs."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import pyarrow as pa
import pytest

from dagflow.errors import (
    BadRowFound,
    ColumnExtra,
    ColumnMissing,
    ColumnNoSuchPart,
    ColumnReserved,
    ColumnUnknown,
    KeyMisfit,
    ProjectionError,
    ReaderFailed,
    ReaderMisbehaves,
)
from dagflow.scan import Column, FileSchemaNegotiator, Format, ManagedReader, RowOrigin, TableSchema
from dagflow.testing import run_operator, scan_table
from dagflow.testing.files import blocks_of
from operators import JsonLinesFormat, ScanReader


@attrs.define
class Pairs(Format):
    """Whole files; `says`: whether readers say their schema before they read. `trouble`: where a reader raises."""

    suffixes: ClassVar[tuple[str, ...]] = ("pairs",)
    says: Literal["early", "late"] = "late"
    trouble: str = ""
    closed: list[str] = attrs.field(factory=list)

    def make_reader(self) -> PairsReader:
        return PairsReader()

    def sample_schema(self, stream: Any, path: str, length: int) -> pa.Schema:
        names = dict.fromkeys(pair.split("=")[0] for line in stream.read().decode().splitlines() for pair in line.split())
        return pa.schema([pa.field(name, pa.string()) for name in names])


CLOSED: list[str] = []
"""Which files' readers were closed (operators are copied, so the format cannot keep it)."""


class PairsReader(ManagedReader[FileSchemaNegotiator]):
    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        self.format: Any = negotiator.options
        self.path = negotiator.split.path
        self.raise_at("open")
        text = negotiator.stream.read().decode()
        self.lines = text.splitlines()
        if self.lines[:1] == ["skip"]:
            return False
        if self.format.says == "early":
            names = dict.fromkeys(pair.split("=")[0] for line in self.lines for pair in line.split())
            negotiator.set_table_schema(pa.schema([pa.field(name, pa.string()) for name in names]))
        if self.format.trouble != "no build":
            self.loader = negotiator.build()
        return True

    def next(self) -> bool:
        self.raise_at("next")
        if not self.lines:
            return False
        line = self.lines.pop(0)
        if line == "#":
            return True
        self.loader.start(RowOrigin(raw=line))
        for pair in line.split():
            name, _, value = pair.partition("=")
            self.loader.set(name, value)
        self.loader.save()
        return True

    def close(self) -> None:
        CLOSED.append(self.path)
        self.raise_at("close")

    def raise_at(self, doing: str) -> None:
        if self.format.trouble == doing:
            raise KeyError("oh")


@pytest.fixture(autouse=True)
def nothing_closed() -> None:
    CLOSED.clear()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    contents = {"1": "a=1 b=x\na=2 b=y\n", "2": "b=z\n", "3": "a=4 c=new\n"}
    for name, text in contents.items():
        (tmp_path / f"{name}.pairs").write_text(text)
    return [str(tmp_path / f"{name}.pairs") for name in contents]


def rows(files: Any, says: Any = "late", **properties: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scan_table(ScanReader(Pairs(says), **properties), files).to_pylist()
    return found


@pytest.mark.parametrize("says", ["early", "late"])
def test_columns_are_agreed_on_and_missing_ones_are_null(files: list[str], says: str) -> None:
    assert rows(files, says) == [
        {"a": "1", "b": "x", "c": None},
        {"a": "2", "b": "y", "c": None},
        {"a": None, "b": "z", "c": None},
        {"a": "4", "b": None, "c": "new"},
    ]
    assert files == CLOSED


@pytest.mark.parametrize("says", ["early", "late"])
@pytest.mark.parametrize(
    ("extra", "last"),
    [
        ("ignore", {"a": "4", "b": None}),
        ("rescue", {"a": "4", "b": None, "_rescued": '{"c": "new"}'}),
        ("error", None),
    ],
)
def test_columns_that_turn_up_later(files: list[str], says: str, extra: str, last: Any) -> None:
    if last is None:
        with pytest.raises(ColumnExtra, match=r"3.pairs: the file has columns that the schema does not have: c"):
            rows(files, says, drift={"extra": extra}, sample_files=1)
    else:
        assert rows(files, says, drift={"extra": extra}, sample_files=1)[-1] == last


def test_a_schema_that_widens_has_new_columns_from_there_on(files: list[str]) -> None:
    reader = ScanReader(Pairs(), drift={"extra": "widen"}, sample_files=1)
    found = run_operator(reader, {"blocks_metadata_input": [b for path in files for b in blocks_of(path)]})["batches"]
    assert found[-2:] == [{"a": None, "b": "z"}, {"a": "4", "b": None, "c": "new"}]


@pytest.mark.parametrize("says", ["early", "late"])
def test_files_that_lack_columns_may_be_refused(files: list[str], says: str) -> None:
    with pytest.raises(ColumnMissing, match=r"2.pairs: the file lacks a; it has b"):
        rows(files[:2], says, drift={"missing": "error"})
    assert files[:2] == CLOSED
    assert rows(files[:2], says, columns=["b"], drift={"missing": "error"})[-1] == {"b": "z"}


@pytest.mark.parametrize(("says", "is_refused"), [("early", True), ("late", False)])
def test_only_rows_tell_what_a_file_without_rows_lacks(tmp_path: Path, says: str, is_refused: bool) -> None:
    path = tmp_path / "empty.pairs"
    path.write_text("#\n")
    with pytest.raises(ColumnMissing) if is_refused else contextlib.nullcontext():
        rows(path, says, schema="a: int64", drift={"missing": "error"})


def test_columns_in_the_order_asked_for_with_what_is_known_of_files(files: list[str]) -> None:
    assert rows(files[:1], columns=["filename", "b", "suffix"])[0] == {"filename": "1.pairs", "b": "x", "suffix": "pairs"}
    assert list(rows(files, columns=["c", "*", "filename"])[0]) == ["c", "a", "b", "filename"]


def test_only_the_number_of_rows(files: list[str]) -> None:
    table = scan_table(ScanReader(Pairs(), columns=[]), files)
    assert (table.num_rows, table.num_columns) == (4, 0)
    assert scan_table(ScanReader(Pairs(), columns=["filename"]), files).num_rows == 4


def test_a_column_that_nobody_has_is_told_before_anything_is_read(files: list[str]) -> None:
    with pytest.raises(ColumnUnknown, match=r"no file has a column 'B'; 3 sampled files have: a, b, c\n  help: did you mean 'b'"):
        rows(files, columns=["B"])
    assert CLOSED == []
    assert rows(files[:1], columns=["B", "a"], schema="B: date32")[0] == {"B": None, "a": "1"}


def test_a_part_of_a_column_that_has_no_parts(files: list[str]) -> None:
    with pytest.raises(ColumnNoSuchPart, match=r"column 'a.x' is selected, but a is string, which has no fields"):
        rows(files, columns=["a.x"])


def test_a_schema_gives_types_order_and_defaults(files: list[str]) -> None:
    schema = {
        "b": Column("string", default="none"),
        "a": Column("int64", nullable=False, default=-1),
        "d": Column("date32", default="2024-01-01"),
    }
    found = scan_table(ScanReader(Pairs(), schema=schema), files)
    assert found.column_names == ["b", "a", "d", "c"]
    assert found.column("a").to_pylist() == [1, 2, -1, 4]
    assert found.column("b").to_pylist() == ["x", "y", "z", "none"]
    assert str(found.column("d")[0]) == "2024-01-01"
    assert not found.schema.field("a").nullable


def test_a_strict_schema_is_all_that_there_is(files: list[str]) -> None:
    strict = TableSchema({"a": "int64"}, strict=True)
    assert rows(files, schema=strict) == [{"a": 1}, {"a": 2}, {"a": None}, {"a": 4}]
    with pytest.raises(ColumnUnknown):
        rows(files, schema=strict, columns=["b"])


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ("null", [{"b": None}, {"b": 7}]),
        ("rescue", [{"b": None, "_rescued": '{"b": "x"}'}, {"b": 7, "_rescued": None}]),
        ("widen", [{"b": "x"}, {"b": "7"}]),
    ],
)
def test_values_that_are_none_of_their_type(tmp_path: Path, changed: str, found: list[Any]) -> None:
    path = tmp_path / "f.pairs"
    path.write_text("b=x\nb=7\n")
    assert rows(path, columns=["b"], schema="b: int64", drift={"changed": changed}) == found


@pytest.mark.parametrize(("says", "third"), [("late", "2024"), ("early", None)])
def test_files_that_lack_a_column_have_what_their_path_says(tmp_path: Path, says: str, third: str | None) -> None:
    folder = tmp_path / "year=2024"
    folder.mkdir()
    (folder / "1.pairs").write_text("a=1\n")
    (folder / "2.pairs").write_text("year=1999\na=2\n")
    found = rows([folder / "1.pairs", folder / "2.pairs"], says, columns=["year"])
    assert [row["year"] for row in found] == ["2024", "1999", third]


@pytest.mark.parametrize("sample_files", [1, 2])
def test_a_column_that_is_called_as_the_rescued_one_is_refused(tmp_path: Path, sample_files: int) -> None:
    first, second = tmp_path / "1.pairs", tmp_path / "2.pairs"
    first.write_text("a=1\n")
    second.write_text("a=1 _rescued=x\n")
    drift = {"extra": "widen", "changed": "rescue"}
    with pytest.raises(ColumnReserved, match="the files have a column '_rescued' of their own"):
        rows([str(first), str(second)], drift=drift, sample_files=sample_files)
    assert rows([str(first), str(second)], columns=["a"], drift=drift, schema="a: int8")[0] == {"a": 1, "_rescued": None}


def test_bad_rows_fail_drop_or_go_their_way(files: list[str]) -> None:
    with pytest.raises(BadRowFound, match=r"1.pairs, column 'b': 'x' is not a valid int64\n  row   'a=1 b=x'"):
        rows(files, schema="b: int64")
    with pytest.raises(BadRowFound, match=r"a type that is wide enough: -D 'operator.reader.schema=b: string'"):
        rows(files, schema="b: int64")
    assert rows(files, schema="b: int64", on_bad_row="drop") == [{"b": None, "a": "4", "c": "new"}]
    reader = ScanReader(Pairs(), schema="b: int64", on_bad_row="route", columns=["b"])
    emitted = run_operator(reader, {"blocks_metadata_input": [b for path in files for b in blocks_of(path)]})
    assert [(bad.column, bad.reason, bad.raw) for bad in emitted["errors"]] == [
        ("b", "'x' is not a valid int64", "a=1 b=x"),
        ("b", "'y' is not a valid int64", "a=2 b=y"),
        ("b", "'z' is not a valid int64", "b=z"),
    ]
    assert emitted.counters["bad_rows"] == 3


def test_a_null_where_none_may_stand_is_a_bad_row(files: list[str]) -> None:
    schema = {"a": Column("int64", nullable=False)}
    with pytest.raises(BadRowFound, match="column 'a': is null, but the column must have a value"):
        rows(files, schema=schema)
    assert [row["a"] for row in rows(files, schema=schema, on_bad_row="drop")] == [1, 2, 4]


def test_a_soft_skip(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "0.pairs").write_text("skip\n")
    assert len(rows([tmp_path / "0.pairs", *files], columns=["a"])) == 4
    assert [str(tmp_path / "0.pairs"), *files] == CLOSED


@pytest.mark.parametrize("doing", ["open", "next", "close"])
def test_what_a_reader_raises_is_told_with_reader_file_and_range(files: list[str], doing: str) -> None:
    with pytest.raises(
        ReaderFailed, match=rf"1.pairs: PairsReader.{doing}\(\) failed in the range 0 to 16: KeyError: 'oh'"
    ) as raised:
        scan_table(ScanReader(Pairs(trouble=doing)), files)
    assert isinstance(raised.value.__cause__, KeyError)
    assert files[:1] == CLOSED


def test_a_reader_that_forgets_to_build_its_loader(files: list[str]) -> None:
    with pytest.raises(ReaderMisbehaves, match=r"PairsReader breaks the rules of readers: .*build"):
        scan_table(ScanReader(Pairs(trouble="no build")), files)
    assert files[:1] == CLOSED


def test_streams_are_closed_whatever_happens(files: list[str]) -> None:
    for trouble in ("", "open", "next", "close", "no build"):
        with contextlib.suppress(ReaderFailed, ReaderMisbehaves):
            scan_table(ScanReader(Pairs(trouble=trouble)), files)
    gc.collect()  # a stream that was left open warns, which fails the test


def test_a_scan_without_rows_has_the_schema_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "empty.pairs"
    path.write_text("")
    assert scan_table(ScanReader(Pairs()), path).schema == pa.schema([])
    assert scan_table(ScanReader(Pairs(), schema="a: int64"), path).schema == pa.schema([("a", pa.int64())])
    path.write_text("skip\n")
    assert scan_table(ScanReader(Pairs(), schema="a: int64", columns=["a", "dir0"]), path).schema.names == ["a", "dir0"]


def test_keys_of_folders_are_columns(tmp_path: Path) -> None:
    paths = []
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}" / "x"
        folder.mkdir(parents=True)
        (folder / "f.pairs").write_text(f"a={year % 10}\n")
        paths.append(folder / "f.pairs")
    assert rows(paths) == [{"a": "3", "year": 2023}, {"a": "4", "year": 2024}]
    assert rows(paths, columns=["year", "dir1", "dir2"])[0] == {"year": 2023, "dir1": "x", "dir2": None}
    assert rows(paths, columns=["dir0"], root=str(tmp_path / "year=2024"))[1] == {"dir0": "x"}
    assert rows(paths, columns=["year"], schema="year: string")[0] == {"year": "2023"}
    odd = tmp_path / "year=?" / "f.pairs"
    odd.parent.mkdir()
    odd.write_text("a=1\n")
    assert [row["year"] for row in rows([*paths, odd])] == ["2023", "2024", "?"]
    with pytest.raises(KeyMisfit, match=r"f.pairs: the value of year=\? is not of type int64"):
        rows([*paths, odd], schema="year: int64")


@attrs.frozen
class Numbered:
    a: int
    year: int


@pytest.mark.parametrize("says", ["early", "late"])
def test_keys_of_folders_beside_a_schema(tmp_path: Path, says: str) -> None:
    folder = tmp_path / "year=2024" / "month=1"
    folder.mkdir(parents=True)
    own, path = folder / "1.pairs", folder / "2.pairs"
    own.write_text("a=1 year=1999\n")
    path.write_text("a=2\n")
    strict = TableSchema("a: int64", strict=True)
    assert rows([own, path], says, schema=strict) == [{"a": 1}, {"a": 2}]
    assert rows(path, says, schema=strict, columns=["month", "*"]) == [{"month": 1, "a": 2}]
    both = [{"year": 1999, "a": 1}, {"year": 2024, "a": 2}]
    for schema in (TableSchema("year: int64, a: int64", strict=True), "year: int64, a: int64"):
        assert rows([own, path], says, schema=schema, columns=["year", "a"], drift={"missing": "error"}) == both
    assert rows([own, path], says, schema=strict, columns=["year"]) == [{"year": 2024}, {"year": 2024}]
    assert rows([own, path], says, schema="year: int64, a: int64") == [{**row, "month": 1} for row in both]
    reader = ScanReader[Numbered](Pairs(says))  # type: ignore[arg-type]
    blocks = [*blocks_of(str(own)), *blocks_of(str(path))]
    assert run_operator(reader, {"blocks_metadata_input": blocks})["batches"] == [Numbered(1, 1999), Numbered(2, 2024)]


def test_files_are_left_out_by_what_their_paths_say(tmp_path: Path) -> None:
    for year in (2022, 2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        (folder / "f.pairs").write_text(f"a={year % 10}\n")
    paths = sorted(tmp_path.glob("*/*"))
    assert rows(paths, where=[("year", ">", 2022), ("filename", "=", "f.pairs")]) == [
        {"a": "3", "year": 2023},
        {"a": "4", "year": 2024},
    ]
    assert [str(path) for path in paths[1:]] == CLOSED
    assert rows(paths, where=[("year", "in", [1])]) == []
    with pytest.raises(ProjectionError, match="where has a condition on 'a', which paths do not say; they say year, filename"):
        rows(paths, where=[("a", "=", "3")])


def test_parts_of_nested_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"m": {"l": [{"x": 1}, {"x": 2}]}, "a.b": 5}\n{"m": {"l": [{"x": 3}]}}\n{"m": null}\n')
    columns = ["m.l[1].x", "`a.b`", "m.l[0]"]
    assert scan_table(ScanReader(JsonLinesFormat(), columns=columns), path).to_pylist() == [
        {"m.l[1].x": 2, "a.b": 5, "m.l[0]": {"x": 1}},
        {"m.l[1].x": None, "a.b": None, "m.l[0]": {"x": 3}},
        {"m.l[1].x": None, "a.b": None, "m.l[0]": None},
    ]
