from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG, FileBlockMetadata, InputPort, Operator, OperatorContext
from dagflow.errors import ObjectDamaged, ObjectMissing
from dagflow.ledger import InputSlice
from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.program import RunOptions
from dagflow.runtime.windows.plan_window import Driver
from dagflow.scaling import Backlog, Partition, PartitioningContext
from dagflow.state import MapLog
from dagflow.storage import MemoryStore
from dagflow.testing import FakeClock, run_operator
from operators import BlockReader, DatasetInput
from operators.files.errors import DatasetMissing, DatasetReplaced, DatasetRewritten, RowsReplaced
from tests.operators.files.datasets import Dataset
from tests.tiers import examples


@attrs.define
class Sink(Operator):
    """Stands for readers: what is in the window's plan is what it gets."""

    partitioner = "self"
    input = InputPort[FileBlockMetadata]()

    @input.process
    def each(self, block: FileBlockMetadata) -> None: ...

    def define_partitions(self, partitions: list[Partition], context: PartitioningContext) -> list[Partition]:
        return partitions


@attrs.define
class Planned:
    """A window's plan, after its journey through the window log."""

    plan: WindowPlan

    @property
    def blocks(self) -> list[FileBlockMetadata]:
        return [decode(item, FileBlockMetadata) for _, item in self.plan.items.get("sink", [])]

    @property
    def lines(self) -> list[str]:
        pieces = [Path(block.file_path).read_bytes()[block.start : block.stop].decode() for block in self.blocks]
        return "".join(pieces).splitlines()

    @property
    def slice(self) -> InputSlice:
        found: InputSlice = decode(self.plan.inputs["input"], InputSlice)
        return found

    @property
    def rows(self) -> range:
        new = self.slice
        end = new.last_offset
        return range(0 if new.prev_offset is None else new.prev_offset + 1, 0 if end is None else end + 1)


class Launch:
    """One launch of an application that reads a dataset."""

    def __init__(
        self, stack: ExitStack, operator: DatasetInput, last: Planned | None = None, *, clock: FakeClock, continuous: bool
    ) -> None:
        operator.check()
        dag = DAG()
        source: Any = dag.add_operator("input", operator)
        dag.add_stream("blocks", source.blocks_metadata_output, dag.add_operator("sink", Sink()).input)
        options = RunOptions(slots=2, continuous=continuous, durable=False)
        maps = MapLog(MemoryStore())
        self.driver = stack.enter_context(Driver(make_plan(dag), options, "r", clock, None if last is None else last.plan, maps))
        self.continuous = continuous
        self.number = 0 if last is None else last.plan.window + 1

    def window(self) -> Planned | None:
        plan = self.driver.plan_window(self.number, 0.5 if self.continuous else None, lambda: False)
        if plan is None:
            return None
        self.number += 1
        return Planned(decode(loads(dumps(encode(plan, "plan"))), WindowPlan))

    def windows(self) -> list[Planned]:
        found = []
        while (each := self.window()) is not None:
            found.append(each)
        return found


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def launch(clock: FakeClock) -> Iterator[Callable[..., Launch]]:
    with ExitStack() as stack:

        def make(operator: DatasetInput, last: Planned | None = None, continuous: bool = False) -> Launch:
            return Launch(stack, operator, last, clock=clock, continuous=continuous)

        yield make


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path / "dataset")


def test_all_rows_of_a_dataset_as_blocks(dataset, launch):
    dataset.commit(["a", "b"], ["c"])
    dataset.commit(["d"], watermark=7)
    (dataset.folder / "not-committed").write_text("x\n")
    [window] = launch(DatasetInput(dataset.folder, block_size=2)).windows()
    assert window.lines == ["a", "b", "c", "d"]
    assert [block.block_id for block in window.blocks] == [0, 1, 2, 3]
    assert [block.is_last_block for block in window.blocks] == [False, True, True, True]
    assert {block.modified_ns for block in window.blocks} == {
        (dataset.folder / name).stat().st_mtime_ns for name in ("part-000000-0000", "part-000000-0001", "part-000001-0000")
    }
    whole = dataset.ledger.slice_after(None)
    assert window.slice == whole
    assert window.plan.watermarks == {"input": 7}


def test_a_launch_goes_on_where_the_last_one_was(dataset, launch):
    dataset.commit(["a"])
    [first] = launch(DatasetInput(dataset.folder)).windows()
    assert launch(DatasetInput(dataset.folder), first).windows() == []
    dataset.commit(["b"], watermark=5)
    dataset.commit(["c"])
    [second] = launch(DatasetInput(dataset.folder), first).windows()
    assert second.lines == ["b", "c"]
    assert second.slice == dataset.ledger.slice_after(first.slice)
    assert (second.slice.prev_offset, second.slice.new_offset, second.slice.rows) == (0, 2, 2)
    assert [block.block_id for block in second.blocks] == [1, 2]


def test_a_window_takes_whole_entries_up_to_its_size(dataset, launch):
    for size in (4, 4, 4, 30, 2, 2):
        dataset.commit(["x" * (size - 1)])
    windows = launch(DatasetInput(dataset.folder, window_bytes=9)).windows()
    assert [[block.stop for block in each.blocks] for each in windows] == [[4, 4], [4], [30], [2, 2]]
    assert [each.slice.rows for each in windows] == [2, 1, 1, 2]
    for before, after in itertools.pairwise(windows):
        assert (after.slice.prev_block, after.slice.prev_offset) == (before.slice.new_block, before.slice.new_offset)


def test_progress_without_rows_makes_a_window_without_blocks(dataset, launch):
    dataset.commit(["a"], watermark=1)
    [first] = launch(DatasetInput(dataset.folder)).windows()
    dataset.commit(watermark=2)
    dataset.commit(watermark=3)
    [second] = launch(DatasetInput(dataset.folder), first).windows()
    assert (second.blocks, second.plan.watermarks) == ([], {"input": 3})
    assert (second.slice.new_offset, second.slice.prev_offset, second.slice.watermark) == (None, 0, 3)
    assert second.slice == dataset.ledger.slice_after(first.slice)
    assert launch(DatasetInput(dataset.folder), second).windows() == []


def test_a_dataset_without_data_is_known_by_its_id(dataset, launch):
    running = launch(DatasetInput(dataset.folder))
    assert running.windows() == []
    found = running.driver.operator("input")
    assert isinstance(found, DatasetInput)
    assert (found.dataset_id(), found.input_path) == (dataset.dataset_id, str(dataset.folder))
    assert DatasetInput(dataset.folder).dataset_id() == dataset.dataset_id
    assert DatasetInput(dataset.folder / "none").dataset_id() is None
    assert found.input_slice() == InputSlice(dataset_id=dataset.dataset_id)


def test_once_ends_where_the_dataset_ended_when_it_looked(dataset, launch):
    dataset.commit(["a"])
    running = launch(DatasetInput(dataset.folder))
    dataset.commit(["b"])
    assert [each.lines for each in running.windows()] == [["a"]]
    assert running.driver.exhausted


def test_a_continuous_run_looks_again_after_each_interval(dataset, launch, clock):
    dataset.commit(["a"])
    running = launch(DatasetInput(dataset.folder, scan_interval_millis=2000), continuous=True)
    assert running.window().lines == ["a"]
    dataset.commit(["b"])
    assert running.window() is None
    clock.advance(2)
    assert running.window().lines == ["b"]
    dataset.commit(watermark=9)
    clock.advance(2)
    found = running.window()
    assert (found.lines, found.plan.watermarks) == ([], {"input": 9})
    assert not running.driver.exhausted


def test_a_dataset_that_is_not_there(tmp_path, dataset, launch):
    near = tmp_path / "datase"
    with pytest.raises(DatasetMissing, match=f"no dataset in {near}: there is no such folder\n  did you mean {dataset.folder}"):
        DatasetInput(near).check_inputs(OperatorContext(name="input"))
    (tmp_path / "plain").mkdir()
    with pytest.raises(DatasetMissing, match="the folder has no ledger") as told:
        DatasetInput(tmp_path / "plain", wait=True).check_inputs(OperatorContext(name="input"))
    assert "applies to continuous runs only" in str(told.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(Abort) as ended:
        launch(DatasetInput(tmp_path / "file"))
    assert isinstance(ended.value.error, DatasetMissing)
    assert "it is a file" in str(ended.value.error)


def test_a_continuous_run_may_wait_for_a_dataset(tmp_path, launch, clock):
    running = launch(DatasetInput(tmp_path / "later", wait=True), continuous=True)
    assert running.window() is None
    Dataset(tmp_path / "later").commit(["a"])
    clock.advance(1)
    found = running.window()
    assert (found.lines, found.slice.prev_block) == (["a"], None)


def ending(launch: Callable[..., Launch], *given: Any) -> BaseException:
    with pytest.raises(Abort) as ended:
        launch(*given).windows()
    return ended.value.error


def test_another_dataset_in_its_place(dataset, launch):
    dataset.commit(["a"])
    [first] = launch(DatasetInput(dataset.folder)).windows()
    shutil.rmtree(dataset.folder)
    other = Dataset(dataset.folder)
    other.commit(["b"])
    error = ending(launch, DatasetInput(dataset.folder), first)
    assert isinstance(error, DatasetReplaced)
    assert (error.before, error.after) == (dataset.dataset_id, other.dataset_id)


def test_another_dataset_while_it_runs(dataset, launch, clock):
    dataset.commit(["a"])
    running = launch(DatasetInput(dataset.folder), continuous=True)
    assert running.window().lines == ["a"]
    shutil.rmtree(dataset.folder)
    Dataset(dataset.folder).commit(["b"])
    clock.advance(1)
    with pytest.raises(Abort) as ended:
        running.window()
    assert isinstance(ended.value.error, DatasetReplaced)


def test_a_dataset_that_was_put_back(dataset, launch, tmp_path):
    dataset.commit(["a"])
    shutil.copytree(dataset.folder, tmp_path / "copy")
    dataset.commit(["b"])
    [first] = launch(DatasetInput(dataset.folder)).windows()
    shutil.rmtree(dataset.folder)
    shutil.copytree(tmp_path / "copy", dataset.folder)
    error = ending(launch, DatasetInput(dataset.folder), first)
    assert isinstance(error, DatasetRewritten)
    assert "before  entry 3 (sha256:" in str(error)
    assert "now     its newest entry is 2 (sha256:" in str(error)


def test_a_dataset_that_was_put_back_and_went_on_otherwise(dataset, launch, tmp_path):
    dataset.commit(["a"])
    shutil.copytree(dataset.folder, tmp_path / "copy")
    dataset.commit(["b"])
    [first] = launch(DatasetInput(dataset.folder)).windows()
    shutil.rmtree(dataset.folder)
    shutil.copytree(tmp_path / "copy", dataset.folder)
    again = Dataset(dataset.folder)
    again.commit(["c", "d"])
    error = ending(launch, DatasetInput(dataset.folder), first)
    assert isinstance(error, DatasetRewritten)
    assert error.before != error.after
    assert "entry 3 (sha256:" in error.after


def test_a_dataset_that_was_moved_goes_on(dataset, launch, tmp_path):
    dataset.commit(["a"])
    [first] = launch(DatasetInput(dataset.folder)).windows()
    dataset.folder.rename(tmp_path / "moved")
    Dataset(tmp_path / "moved").commit(["b"])
    [second] = launch(DatasetInput(tmp_path / "moved"), first).windows()
    assert second.lines == ["b"]


def test_files_that_are_not_as_they_were_committed(dataset, launch):
    dataset.commit(["a"])
    file = dataset.folder / "part-000000-0000"
    file.write_text("longer\n")
    error = ending(launch, DatasetInput(dataset.folder))
    assert isinstance(error, ObjectDamaged)
    assert "entry 2: part-000000-0000 has 7 bytes, 2 were committed" in str(error)
    file.unlink()
    error = ending(launch, DatasetInput(dataset.folder))
    assert isinstance(error, ObjectMissing)
    assert "entry 2: part-000000-0000 is not there; 1 rows were committed in it" in str(error)


def test_rows_that_were_replaced_are_not_read(dataset, launch):
    dataset.commit(["a", "b"])
    dataset.commit(["c"], replaces=True)
    dataset.commit(["d"])
    [window] = launch(DatasetInput(dataset.folder)).windows()
    assert window.lines == ["c", "d"]
    assert window.slice == dataset.ledger.slice_after(None)
    assert [file.rows for _, file in dataset.ledger.files_of(window.slice)] == [1, 1]


def test_rows_that_are_replaced_after_they_were_read(dataset, launch):
    dataset.commit(["a", "b"])
    [window] = launch(DatasetInput(dataset.folder)).windows()
    dataset.commit(["c"], replaces=True)
    with pytest.raises(Abort) as aborted:
        launch(DatasetInput(dataset.folder), window).windows()
    error = aborted.value.error
    assert isinstance(error, RowsReplaced)
    assert (error.entry, error.rows) == (3, 2)


def test_each_new_state_is_read_whole_in_a_window_of_its_own(dataset, launch, clock):
    first = launch(DatasetInput(dataset.folder, on_replace="reread", scan_interval_millis=1000), continuous=True)
    dataset.commit(["a", "b"])
    clock.advance(1)
    assert first.window().lines == ["a", "b"]
    dataset.commit(["c"])
    clock.advance(1)
    assert first.window().lines == ["c"]
    dataset.commit(["skipped"], replaces=True)
    dataset.commit(["d", "e"], replaces=True)
    dataset.commit(["f"])
    clock.advance(1)
    window = first.window()
    assert window.lines == ["d", "e", "f"]
    assert (window.slice.prev_offset, window.slice.new_offset) == (2, 6)
    dataset.commit(["g"])
    dataset.commit(["h"], replaces=True)
    clock.advance(1)
    assert first.window().lines == ["h"]


def test_properties_that_cannot_work(tmp_path):
    with pytest.raises(ValueError, match=r"(?s)path is empty.*block_size is 0.*window_bytes is -1"):
        DatasetInput("", block_size=0, window_bytes=-1).check()
    with pytest.raises(ValueError, match="scan_interval_millis"):
        DatasetInput(str(tmp_path), scan_interval_millis=-1)


def test_any_reader_reads_what_it_emits(dataset):
    dataset.commit(["a", "bb"], ["ccc"])
    dataset.commit(["d"])
    blocks = run_operator(DatasetInput(dataset.folder, block_size=2), {})["blocks_metadata_output"]
    assert len(blocks) == 6
    read = run_operator(BlockReader(), {"blocks_metadata_input": blocks})["messages"]
    assert [line.record for line in read] == ["a", "bb", "ccc", "d"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
@given(
    script=st.lists(st.one_of(st.integers(0, 4), st.just("launch")), max_size=12),
    window_bytes=st.integers(1, 12),
)
def test_every_row_is_taken_once_in_order(tmp_path_factory, script, window_bytes):
    """Whatever is committed between launches, and however windows are bounded."""
    dataset = Dataset(tmp_path_factory.mktemp("law") / "dataset")
    taken: list[Planned] = []
    made: list[str] = []
    for number, step in enumerate((*script, "launch")):
        if step != "launch":
            lines = [str(len(made) + n) for n in range(step)]
            made += lines
            dataset.commit(*([[line] for line in lines[:1]] + ([lines[1:]] if lines[1:] else [])), watermark=number)
            continue
        with ExitStack() as stack:
            operator = DatasetInput(dataset.folder, window_bytes=window_bytes)
            last = taken[-1] if taken else None
            taken += Launch(stack, operator, last, clock=FakeClock(), continuous=False).windows()
    assert [line for each in taken for line in each.lines] == made
    assert [n for each in taken for n in each.rows] == list(range(len(made)))
    positions = [None, *(each.slice for each in taken)]
    for before, each in zip(positions, taken, strict=False):
        assert each.slice.new_block is not None
        assert each.slice == dataset.ledger.slice_after(before, each.slice.new_block.seq)
    if taken:
        end = dataset.ledger.resume()
        assert (taken[-1].slice.new_block, taken[-1].plan.watermarks["input"]) == (end.at, end.watermark)
    ids = [block.block_id for each in taken for block in each.blocks]
    assert ids == list(range(len(ids)))


def test_the_backlog_is_what_was_committed_and_not_emitted(dataset, launch):
    for line in "abcdef":
        dataset.commit([line * 9], [])
    running = launch(DatasetInput(dataset.folder, window_bytes=20, block_size=5))
    found = running.driver.operator("input")
    assert found.backlog() == Backlog()  # nothing was emitted: the weight of a row is unknown
    waiting = []
    while running.window() is not None:
        dataset.commit(["later"])  # the input operator has not looked since
        waiting.append(found.backlog())
    assert waiting == [Backlog(8, 40), Backlog(4, 20), Backlog(0, 0)]


def test_the_backlog_of_a_launch_that_goes_on(dataset, launch):
    for line in "abcd":
        dataset.commit([line * 9])
    first = launch(DatasetInput(dataset.folder, window_bytes=10)).window()
    running = launch(DatasetInput(dataset.folder, window_bytes=10), first)
    assert running.window().lines == ["b" * 9]
    assert running.driver.operator("input").backlog().size == 20
