"""The same input gives the same tables: in one window, a window for each file, several launches, and with fewer slots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dagflow import DAG, InputPort, MapState, Operator, OutputPort, launch
from dagflow.errors import PlanMismatch
from dagflow.ledger import read_dataset
from dagflow.runtime.run_report import RunReport
from operators import (
    Count,
    DatasetInput,
    Deduplicate,
    Distinct,
    FileSplitterInput,
    Filter,
    HashJoin,
    JsonLinesFormat,
    KeyValue,
    Map,
    ParquetFormat,
    ParquetWriter,
    ScanReader,
    Select,
    TopN,
    Tumbling,
    WindowValue,
)


@attrs.frozen
class Key:
    """A key and a number."""

    k: str
    n: int


ON_BOTH = pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.spark)])
OUTPUTS = ("counts", "first", "joined")


@attrs.frozen
class Home:
    """A folder with rows by key, a name for each key, and three outputs: how many, the first one, and each with its name."""

    folder: Path

    def populate(self, **splitter: Any) -> Any:
        def populate_dag(dag: DAG, conf: object) -> None:
            rows, names = (self._reader(dag, name, splitter) for name in ("rows", "names"))
            operators: list[Any] = [Count[Any, str](by="k"), Deduplicate[Any](by="k"), HashJoin[Any, Any, Any]("k")]
            counts, first, joined = (dag.add_operator(name, operator) for name, operator in zip(OUTPUTS, operators, strict=True))
            dag.add_stream("all rows", rows, counts.input, first.input, joined.left)
            dag.add_stream("all names", names, joined.right)
            for name, operator in zip(OUTPUTS, (counts, first, joined), strict=True):
                writer = dag.add_operator(f"{name}_writer", ParquetWriter(str(self.folder / name)))
                dag.add_stream(f"{name}_rows", operator.output, writer.input)

        return populate_dag

    def _reader(self, dag: DAG, name: str, splitter: dict[str, Any]) -> Any:
        files = dag.add_operator(f"{name}_files", FileSplitterInput([str(self.folder / name)], **splitter))
        reader = dag.add_operator(f"{name}_reader", ScanReader[Any](ParquetFormat(), columns=["k", "n"]))
        dag.add_stream(f"{name}_blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        return reader.batches

    def write(self, path: str, keys: list[str], **options: Any) -> None:
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"k": keys, "n": range(len(keys)), "payload": [b"x" * 100] * len(keys)}), file, **options)

    def launch(self, on: str, **options: Any) -> RunReport:
        splitter = options.pop("splitter", {})
        run = launch(self.populate(**splitter), runner=on, durability="process", run_folder=str(self.folder / "run"), **options)
        return run.report

    def rows(self) -> list[int]:
        return [read_dataset(str(self.folder / name)).count_rows() for name in OUTPUTS]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


CUTS: dict[str, tuple[list[range], dict[str, Any], int]] = {
    "one window": ([range(12)], {}, 1),
    "a window for each file": ([range(12)], {"blocks_threshold": 1}, 12),
    "three launches": ([range(4), range(4, 8), range(8, 12)], {}, 1),
}
"""The files that are new in each launch, the properties of the splitters, and the windows of a launch, at least."""


@ON_BOTH
@pytest.mark.parametrize("cut", CUTS)
def test_twelve_small_files(home: Home, cut: str, on: str) -> None:
    launches, splitter, windows = CUTS[cut]
    home.write("names/names.parquet", [f"k{n}" for n in range(5)])
    for files in launches:
        for number in files:
            home.write(f"rows/{number:02}.parquet", [f"k{n % 5}" for n in range(7)])
        assert home.launch(on, splitter=splitter).windows >= windows
    assert home.rows() == [5, 5, 84]


@ON_BOTH
@pytest.mark.parametrize("window_bytes", [None, "8KiB", "40KiB"])
def test_one_file_in_several_windows(home: Home, window_bytes: str | None, on: str) -> None:
    """Fewer slots make smaller windows: one of 1.5 GB was two with one slot, and one with two slots."""
    home.write("names/names.parquet", [f"key{n}" for n in range(10)])
    home.write("rows/rows.parquet", [f"key{n % 10}" for n in range(1000)], row_group_size=10, compression="none")
    report = home.launch(on, splitter={"block_size": "4KiB", "window_bytes": window_bytes})
    assert (report.windows > 1) == (window_bytes is not None)
    assert home.rows() == [10, 10, 1000]


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.full)])
def test_slots_do_not_matter(home: Home, slots: int) -> None:
    home.write("names/names.parquet", [f"key{n}" for n in range(10)])
    home.write("rows/rows.parquet", [f"key{n % 10}" for n in range(1000)], row_group_size=10, compression="none")
    home.launch("local", splitter={"block_size": "4KiB"}, slots=slots)
    assert home.rows() == [10, 10, 1000]


def in_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(dag: DAG, folder: Path, schema: str, **splitter: Any) -> Any:
    files = dag.add_operator("files", FileSplitterInput([str(folder)], **splitter))
    reader = dag.add_operator("reader", ScanReader[Any](JsonLinesFormat(), schema=schema))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    return reader.batches


def test_a_current_result_becomes_empty(tmp_path: Path) -> None:
    """The newest change of each key, but those that delete it. The last launch deletes all keys."""

    def populate_dag(dag: DAG, conf: object) -> None:
        newest = dag.add_operator("newest", TopN[Any](1, "seq", by="id"))
        live = dag.add_operator("live", Filter[Any](pc.field("op") != "d"))
        writer = dag.add_operator("writer", ParquetWriter(str(tmp_path / "out"), mode="replace"))
        dag.add_stream("changes", read(dag, tmp_path / "in", "seq: int64, op: string, id: int64"), newest.input)
        dag.add_stream("newest_changes", newest.output, live.input)
        dag.add_stream("live_rows", live.output, writer.input)

    seen = []
    for number, changes in enumerate([[(1, "i", 1), (2, "i", 2)], [(3, "d", 1)], [(4, "d", 2)]]):
        in_lines(tmp_path / f"in/{number}.jsonl", [{"seq": seq, "op": op, "id": key} for seq, op, key in changes])
        launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(tmp_path / "run"))
        seen.append(sorted(read_dataset(str(tmp_path / "out")).to_table()["id"].to_pylist()))
    assert seen == [[1, 2], [2], []]


REPLACED: dict[str, tuple[Any, dict[str, int]]] = {
    "distinct": (lambda: Distinct("k"), {"one launch": 5, "three launches": 5}),
    "whole rows": (Distinct, {"one launch": 84, "three launches": 84}),
    "joined": (lambda: HashJoin[Any, Any, Any]("k"), {"one launch": 84, "three launches": 84}),
    "rows": (lambda: Select("k", "n"), {"one launch": 84, "three launches": 28}),
}
"""Operators whose rows stay, each with the rows that `mode="replace"` has behind it: functions of rows have those of a launch."""


@pytest.mark.parametrize("operator", REPLACED)
@pytest.mark.parametrize("blocks_threshold", [1, 5, 100])
@pytest.mark.parametrize("launches", [1, 3])
def test_rows_that_stay_are_replaced(home: Home, operator: str, blocks_threshold: int, launches: int) -> None:
    make, expected = REPLACED[operator]

    def populate_dag(dag: DAG, conf: object) -> None:
        splitter = {"blocks_threshold": blocks_threshold}
        one = dag.add_operator("one", make())
        dag.add_stream("rows", home._reader(dag, "rows", splitter), one.left if operator == "joined" else one.input)
        if operator == "joined":
            dag.add_stream("names", home._reader(dag, "names", splitter), one.right)
        one.output.to(ParquetWriter(str(home.folder / "out"), mode="replace"))

    home.write("names/names.parquet", [f"k{n}" for n in range(5)])
    files = list(range(12))
    for part in range(launches):
        for number in files[part::launches]:
            keys = [f"k{n % 5}" for n in range(7)]
            path = home.folder / f"rows/{number:02}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"k": keys, "n": [7 * number + n for n in range(7)]}), path)
        launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(home.folder / "run"))
    wanted = expected["one launch" if launches == 1 else "three launches"]
    assert read_dataset(str(home.folder / "out")).count_rows() == wanted


def keys_written(home: Home, mode: str) -> int:
    """Launch once more, and return how many keys are in the output."""

    def populate_dag(dag: DAG, conf: object) -> None:
        rows = home._reader(dag, "rows", {})
        rows.to(Distinct("k"), name="keys").to(ParquetWriter(str(home.folder / "out"), mode=mode), name="sink")

    launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(home.folder / "run"))
    return read_dataset(str(home.folder / "out")).count_rows()


def test_a_result_is_not_begun_in_a_later_launch(home: Home) -> None:
    """Earlier rows would be missing in it."""
    home.write("rows/1.parquet", ["a", "b"])
    assert keys_written(home, "append") == 2
    home.write("rows/2.parquet", ["b", "c"])
    with pytest.raises(PlanMismatch, match="mode = append → replace"):
        keys_written(home, "replace")
    assert keys_written(home, "append") == 3


def test_a_result_that_is_kept_stays_kept(home: Home) -> None:
    """An operator that adds rows cannot take over the groups of one that emits its whole result."""
    home.write("rows/1.parquet", ["a"])
    assert keys_written(home, "replace") == 1
    with pytest.raises(PlanMismatch, match="mode = replace → append"):
        keys_written(home, "append")


@attrs.define
class Last(Operator):
    """Emits what it keeps whenever a window ends: a whole state of its own."""

    input = InputPort[Any](partition_by="k")
    output = OutputPort[Key]()
    last = MapState[str, int]()

    @input.process
    def each(self, row: Any) -> None:
        self.last[row["k"]] = row["n"]

    def end_window(self) -> None:
        self.output.emit_all(Key(key, n) for key, n in sorted(self.last.items()))


@attrs.define
class LastOfAll(Last):
    scope = "all"


def test_what_is_emitted_as_windows_end_replaces_what_was_emitted_before(home: Home) -> None:
    """Its class may say that it covers all input: then rows of all windows are kept."""

    def run(operator: Operator) -> int:
        place = type(operator).__name__

        def populate_dag(dag: DAG, conf: object) -> None:
            rows = home._reader(dag, "rows", {"blocks_threshold": 1})
            rows.to(operator, name="last").to(ParquetWriter(str(home.folder / place), mode="replace"), name="sink")

        launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(home.folder / f"run {place}"))
        return read_dataset(str(home.folder / place)).count_rows()

    for number in range(3):
        home.write(f"rows/{number}.parquet", ["a", f"b{number}"])
    assert run(Last()) == 4
    assert run(LastOfAll()) == 2 + 3 + 4


def test_nor_is_it_begun_by_what_a_class_says(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scope of a class is not among the properties that launches compare."""

    def populate_dag(dag: DAG, conf: object) -> None:
        rows = home._reader(dag, "rows", {})
        rows.to(Last(), name="last").to(ParquetWriter(str(home.folder / "out"), mode="replace"), name="sink")

    def run() -> None:
        launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(home.folder / "run"))

    home.write("rows/1.parquet", ["a", "b"])
    run()
    home.write("rows/2.parquet", ["c"])
    with monkeypatch.context() as patch:
        patch.setattr(Last, "scope", "all")
        with pytest.raises(
            PlanMismatch, match=r"would keep the rows that stand from now on, and lack earlier ones:\n    sink\.current"
        ):
            run()
    run()
    assert read_dataset(str(home.folder / "out")).count_rows() == 3


@attrs.frozen
class Hour:
    """An hour and the number of records in it."""

    start: str
    n: int


def hour_of(value: WindowValue[Any, int]) -> Hour:
    return Hour(str(value.start), value.value)


def test_hours_of_several_launches_add_up(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        hours = dag.add_operator("hours", Tumbling[Any, None, int](3600, time="t"))
        plain = dag.add_operator("plain", Map[Any, Hour](hour_of))
        writer = dag.add_operator("writer", ParquetWriter(str(tmp_path / "out")))
        dag.add_stream("times", read(dag, tmp_path / "in", "t: int64"), hours.input)
        dag.add_stream("fired", hours.output, plain.input)
        dag.add_stream("rows", plain.output, writer.input)

    for number in range(4):
        in_lines(tmp_path / f"in/{number}.jsonl", [{"t": (number * 900 + each) * 1_000_000} for each in range(100)])
        launch(populate_dag, runner="local", slots=1, durability="process", run_folder=str(tmp_path / "run"))
    assert sum(read_dataset(str(tmp_path / "out")).to_table()["n"].to_pylist()) == 400


def test_a_dataset_that_is_read_again_replaces_what_followed_from_it(home: Home) -> None:
    """Each state of it is a window of its own, also behind a join, which covers all input elsewhere."""

    def totals(dag: DAG, conf: object) -> None:
        rows = home._reader(dag, "rows", {})
        rows.to(Count[Any, str](by="k"), name="count").to(Map(as_key), name="made")
        dag.operators["made"].operator.output.to(ParquetWriter(str(home.folder / "totals")), name="sink")

    def named(dag: DAG, conf: object) -> None:
        dataset = dag.add_operator("dataset", DatasetInput(str(home.folder / "totals"), on_replace="reread"))
        reader = dag.add_operator("reader", ScanReader[Any](ParquetFormat()))
        dag.add_stream("blocks", dataset.blocks_metadata_output, reader.blocks_metadata_input)
        joined = dag.add_operator("joined", HashJoin[Any, Any, Any]("k"))
        dag.add_stream("totals", reader.batches, joined.left)
        dag.add_stream("names", home._reader(dag, "names", {}), joined.right)
        joined.output.to(ParquetWriter(str(home.folder / "out"), mode="replace"), name="sink")

    home.write("names/names.parquet", ["a", "b", "c"])
    for number in range(3):
        home.write(f"rows/{number}.parquet", ["a", "b", "c"][: number + 1])
        for application in (totals, named):
            run = str(home.folder / f"run {application.__name__}")
            launch(application, runner="local", slots=1, durability="process", run_folder=run)
    rows = read_dataset(str(home.folder / "out")).to_table().select(["k", "n"]).to_pylist()
    assert sorted((row["k"], row["n"]) for row in rows) == [("a", 3), ("b", 2), ("c", 1)]


def as_key(counted: KeyValue[str, int]) -> Key:
    return Key(counted.key, counted.value)
