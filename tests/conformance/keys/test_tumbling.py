"""Windows of event time in whole applications: any partitions, forms and restarts come to what a few lines of Python come to."""

from __future__ import annotations

import datetime
import decimal
import enum
import tempfile
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import PlanMismatch, WatermarkMissing
from dagflow.runtime.task.execute import MAPS
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import (
    Count,
    FileSplitterInput,
    Filter,
    JsonLinesFormat,
    JsonLinesWriter,
    Map,
    ScanReader,
    Tumbling,
    Union,
    WindowValue,
)
from operators.aggregate.errors import ValueNotKept, WindowsReopened
from tests.conformance.keys.tumbled import SECOND, SIZE, Fired, Hit, fired_in, late_in, model
from tests.conformance.windows import InWindows
from tests.tiers import examples


@attrs.define
class Given(InWindows[Hit]):
    """Emits one list of hits after the other, each in a window of its own; and says, in seconds, how far they have come."""

    marks: list[int] | None = None

    def watermark(self) -> int | None:
        return None if self.marks is None or not self.at else self.marks[self.at - 1] * SECOND


def by_columns(**more: Any) -> Tumbling[Hit, str, int]:
    return Tumbling(SIZE, time="at", by="key", aggregate="sum", of="n", scope="window", **more)


def by_functions(**more: Any) -> Tumbling[Hit, str, int]:
    def time(hit: Hit) -> int:
        return hit.at

    def key(hit: Hit) -> str:
        return hit.key

    def value(hit: Hit) -> int:
        return hit.n

    return Tumbling(SIZE, time=time, by=key, aggregate="sum", of=value, scope="window", **more)


def application(source: Given, tumbling: Tumbling[Hit, str, int], out: Path, partitions: int) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        hits = dag.add_operator("hits", source)
        windows = dag.add_operator("windows", tumbling, partitioner=StatelessPartitioner(partitions))
        fired = dag.add_operator("fired", JsonLinesWriter[WindowValue[str, int]](str(out / "fired")))
        late = dag.add_operator("late", JsonLinesWriter[Hit](str(out / "late")))
        dag.add_stream("hits", hits.output, windows.input)
        dag.add_stream("fired", windows.output, fired.input)
        dag.add_stream("late", windows.late, late.input)

    return populate_dag


def found(out: Path) -> tuple[Counter[Fired], Counter[Hit]]:
    return fired_in(out / "fired"), late_in(out / "late")


HITS = st.builds(Hit, st.sampled_from("abc"), st.integers(-30, 60).map(lambda second: second * SECOND), st.integers(-5, 5))


@settings(max_examples=examples(12))
@given(
    windows=st.lists(st.lists(HITS, max_size=6).filter(bool), min_size=1, max_size=4),
    lateness=st.sampled_from([0, 5, 20]),
    bound=st.sampled_from([0, 5]),
    partitions=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    of=st.sampled_from([by_columns, by_functions]),
)
def test_any_partitions_forms_and_restarts(
    windows: list[list[Hit]], lateness: int, bound: int, partitions: list[int], of: Any
) -> None:
    """The number of partitions changes between launches, and with it where windows are that are still open."""
    expected = model(windows, lateness, bound)
    with tempfile.TemporaryDirectory() as folder:
        *first, last = (
            application(Given(windows), of(allowed_lateness=lateness, out_of_orderness=bound), Path(folder), each)
            for each in partitions
        )
        for populate_dag in first:
            run_dag(populate_dag, max_windows=1)
        populate_dag = last
        run_dag(populate_dag)
        fired, late = found(Path(folder))
        assert run_dag(populate_dag).windows == 0, "the end comes once"
    assert (fired, late) == expected
    last: dict[tuple[str, int], Fired] = {}
    for each in sorted(fired, key=lambda each: each[-1]):
        last[each[:2]] = each
    assert sum(each[3] for each in last.values()) + sum(late.values()) == sum(map(len, windows)), "each record is somewhere, once"


def hits(*seconds: int) -> list[Hit]:
    return [Hit("a", second * SECOND, 1) for second in seconds]


@pytest.mark.parametrize("told", [None, "modified"])
def test_a_watermark_that_nobody_tells_is_not_waited_for(tmp_path: Path, told: Any) -> None:
    """Nothing would ever fire."""
    (tmp_path / "in.jsonl").write_text('{"at": 5}\n')
    seen = Collector[Any]()

    def application(**more: Any) -> Any:
        def populate_dag(dag: DAG, conf: Any) -> None:
            files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "in.jsonl")], event_time=told))
            rows = dag.add_operator("rows", ScanReader(JsonLinesFormat(), columns=["*"]))
            windowed = Tumbling[Any, Any, int](SIZE, time="at", scope="window", out_of_orderness=None, **more)
            windows = dag.add_operator("windows", windowed)
            dag.add_operator("seen", seen)
            dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
            dag.add_stream("rows", rows.batches, windows.input)
            dag.add_stream("fired", windows.output, seen.input)

        return populate_dag

    if told is None:
        with pytest.raises(WatermarkMissing, match=r"(?s)'windows' would never emit .*fire_at_end=False .*'files' has none"):
            run_dag(application(fire_at_end=False))
        run_dag(application())
    else:
        run_dag(application(fire_at_end=False))
    assert [each.count for each in seen.records] == [1]


def test_both_runners(runner: str, tmp_path: Path) -> None:
    windows = [hits(1, 2, 12), hits(3, 41), hits(4, 15), hits(35)]
    run_dag(application(Given(windows), by_columns(allowed_lateness=25), tmp_path, 2), runner=runner)
    fired, late = found(tmp_path)
    assert (fired, late) == model(windows, 25, 0)
    assert late == Counter(hits(4)), "the first window closed at 35 s, when 41 s had come"


@pytest.mark.parametrize("of", [by_columns, by_functions])
def test_open_windows_move_when_the_number_of_partitions_changes(runner: str, tmp_path: Path, of: Any) -> None:
    """Also what has been emitted of a window goes along (how often), and whether something is late."""
    seconds = [(1, 12), (2, 13, 41), (3, 14, 60), (5,)]
    windows = [[Hit(key, second * SECOND, 1) for second in each for key in "abcdefgh"] for each in seconds]
    for launch, partitions in enumerate((2, 5, 1, 3)):
        MAPS.clear()  # another process
        is_last = launch == len(windows) - 1
        populate_dag = application(Given(windows), of(allowed_lateness=40), tmp_path, partitions)
        report = run_dag(populate_dag, runner=runner, **({} if is_last else {"max_windows": 1}))
        assert (report.readers["windows"].lowest, report.readers["windows"].highest) == (partitions, partitions)
    fired, late = found(tmp_path)
    assert (fired, late) == model(windows, 40, 0)
    assert {count for *_, count, _ in fired} == {1, 2, 3}
    assert len({start for _, start, *_ in fired}) == 4
    assert {firing for *_, firing in fired} == {0, 1}
    assert len(late) == 8


@pytest.mark.parametrize("of", [by_columns, by_functions])
def test_the_watermark_of_sources(tmp_path: Path, of: Any) -> None:
    """A watermark of a window holds for the records of that window: they are not late by it, and windows fire at once."""
    source = Given([hits(1, 12), [], hits(2, 25)], marks=[9, 12, 30])
    populate_dag = application(source, of(out_of_orderness=None, fire_at_end=False), tmp_path, 2)
    assert run_dag(populate_dag, max_windows=1).windows == 1
    assert found(tmp_path) == (Counter(), Counter())
    run_dag(populate_dag, max_windows=1)  # no record, but the watermark
    assert found(tmp_path) == (Counter({("a", 0, 1, 1, 0): 1}), Counter())
    run_dag(populate_dag)
    assert found(tmp_path) == (
        Counter({("a", 0, 1, 1, 0): 1, ("a", 10, 1, 1, 0): 1, ("a", 20, 1, 1, 0): 1}),
        Counter(hits(2)),
    )


@pytest.mark.parametrize("partitions", [1, 3])
def test_counts_know_the_type_of_their_records(tmp_path: Path, partitions: int) -> None:
    """Also with functions that say nothing of it; `late` goes to a sink of that type."""
    windows = [hits(1, 2, 12), hits(3, 41), hits(4, 15)]
    counted = Tumbling(SIZE, time=lambda hit: hit.at, by=lambda hit: hit.key, scope="window")
    run_dag(application(Given(windows), counted, tmp_path, partitions))
    assert found(tmp_path) == model(windows, 0, 0)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("names", [("key",), ("key", "n")])
def test_keys_of_names_in_a_tuple(names: tuple[str, ...], partitions: int) -> None:
    """Of one name, too, a tuple: it is kept in the partition that its records go to."""
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("hits", Given([[Hit(key, SECOND, 1) for key in "abcdefgh"], hits(2)]))
        counted = Tumbling[Hit, Any, int](SIZE, time="at", by=names, scope="window")
        tumbling = dag.add_operator("windows", counted, partitioner=StatelessPartitioner(partitions))
        dag.add_operator("seen", seen)
        dag.add_stream("hits", source.output, tumbling.input)
        dag.add_stream("fired", tumbling.output, seen.input)

    run_dag(populate_dag)
    found = {each.key: each.value for each in seen.records}
    assert found == {(*key, *(1 for _ in names[1:])): 2 if key == "a" else 1 for key in "abcdefgh"}


KEYS = {
    "a": ("x", decimal.Decimal("1.50"), None),
    "b": datetime.date(2026, 1, 1),
    "c": (b"\0", True, (uuid.UUID(int=7), 1.5)),
}


@attrs.frozen
class Place:
    name: str


class Colour(enum.Enum):
    RED = 1


@pytest.fixture(params=[0, 4])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that find in memory what the window before has left, and others that read it."""
    MAPS.clear()
    monkeypatch.setattr(MAPS, "size", request.param)


def counted_by(keys: dict[str, Any], seen: Collector[Any]) -> Any:
    windows = [[Hit(key, 1, 1) for key in "abc"], [Hit(key, 2, 1) for key in "aab"], [Hit("a", 11 * SECOND, 1)]]

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("hits", Given(windows))
        windowed = Tumbling[Any, Any, Any](SIZE, time=lambda hit: hit.at, by=lambda hit: keys[hit.key], scope="window")
        tumbling = dag.add_operator("windows", windowed)
        dag.add_operator("seen", seen)
        dag.add_stream("hits", source.output, tumbling.input)
        dag.add_stream("fired", tumbling.output, seen.input)

    return populate_dag


@pytest.mark.usefixtures("workers")
def test_keys_come_back_wherever_a_window_runs() -> None:
    seen = Collector[Any]()
    run_dag(counted_by(KEYS, seen))
    first = {repr(each.key): each.count for each in seen.records if each.start.second == 0}
    assert first == {repr(KEYS[key]): n for key, n in (("a", 3), ("b", 2), ("c", 1))}


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("key", [Place("a"), Colour.RED, ("a", Place("b"))])
def test_keys_that_would_not_are_refused_with_the_first_window(key: Any) -> None:
    with pytest.raises(ValueNotKept, match=r"(?s)type (Place|Colour) cannot be kept.*operator 'windows'.*window 0"):
        run_dag(counted_by(dict.fromkeys("abc", key), Collector[Any]()))


GIVEN = [hits(1, 2), hits(200), hits(201), hits(3, 202)]


def refused(folder: Path, error: type[Exception], match: str, partitions: int, **changed: Any) -> None:
    """Another launch over the same: it is refused, whether windows are still open or not, and nothing is taken in by it."""
    run_dag(application(Given(GIVEN[:3]), by_columns(), folder, 2))
    with pytest.raises(error, match=f"(?s){match}"):
        run_dag(application(Given(GIVEN), attrs.evolve(by_columns(), **changed), folder, partitions))
    run_dag(application(Given(GIVEN), by_columns(), folder, partitions))
    fired, late = found(folder)
    assert late == Counter(hits(3))
    assert max(Counter((key, start, firing) for key, start, *_, firing in fired).values()) == 1


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"size": 2 * SIZE}, "windows.size = 10.0 → 20.0"),
        ({"aggregate": "max"}, "windows.aggregate = sum → max"),
        ({"by": ("key",)}, r"windows.by = key → \(key\)"),
        ({"by": None}, "windows.by = key → None"),
        ({"by": lambda hit: hit.key}, "windows.by = key → a function"),
        ({"of": "at"}, "windows.of = n → at"),
        ({"time": "n"}, "windows.time = at → n"),
    ],
)
def test_windows_of_another_kind_are_refused(tmp_path: Path, changed: dict[str, Any], match: str, partitions: int) -> None:
    refused(tmp_path, PlanMismatch, match, partitions, **changed)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    "changed", [{"allowed_lateness": 1}, {"out_of_orderness": 0.5}, {"out_of_orderness": None}, {"allowed_lateness": 1000}]
)
def test_windows_that_are_over_stay_so(tmp_path: Path, changed: dict[str, Any], partitions: int) -> None:
    match = "had allowed_lateness=0 s and out_of_orderness=0 s: .*--fresh"
    refused(tmp_path, WindowsReopened, match, partitions, **changed)


def test_the_same_size_written_in_another_way_is_the_same(tmp_path: Path) -> None:
    run_dag(application(Given([hits(1, 2)]), by_columns(), tmp_path, 2))
    other = attrs.evolve(by_columns(), size=datetime.timedelta(seconds=SIZE))
    run_dag(application(Given([hits(1, 2), hits(3)]), other, tmp_path, 2))
    assert found(tmp_path)[0] == Counter({("a", 0, 2, 2, 0): 1, ("a", 0, 3, 3, 1): 1})


def test_windows_may_be_over_sooner_but_then_not_later_again(tmp_path: Path) -> None:
    windows = [hits(1, 100), hits(2, 101), hits(3, 4, 102)]
    longer = {"allowed_lateness": 90, "out_of_orderness": 30}
    run_dag(application(Given(windows[:1]), by_columns(**longer), tmp_path, 2))
    run_dag(application(Given(windows[:2]), by_columns(), tmp_path, 3))
    with pytest.raises(WindowsReopened):
        run_dag(application(Given(windows), by_columns(**longer), tmp_path, 1))
    run_dag(application(Given(windows), by_columns(), tmp_path, 2))
    fired, late = found(tmp_path)
    assert fired == Counter({("a", 0, 1, 1, 0): 1, ("a", 100, 1, 1, 0): 1, ("a", 100, 2, 2, 1): 1, ("a", 100, 3, 3, 2): 1})
    assert late == Counter(hits(2, 3, 4))


def test_what_goes_along_with_readers_gets_what_fires_at_the_end(runner: str) -> None:
    """Though the readers have nothing to read in that window; and what these send to reaches its place."""
    seen, counted = Collector[Hit](), Collector[Any]()

    def again(window: WindowValue[str, int]) -> Hit:
        return Hit(window.key, -1, window.count)

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("hits", Given([hits(1, 2), hits(31)]))
        first = dag.add_operator("first", Filter[Hit](lambda hit: True), partitioner=StatelessPartitioner(2))
        tumbling = dag.add_operator("windows", by_columns(), partitioner=StatelessPartitioner(3))
        fired = dag.add_operator("fired", Map(again))
        both = dag.add_operator("both", Union[Hit](2))
        dag.set_port_attributes(both.inputs[1], partition_parallel=False)
        count = dag.add_operator("count", Count[Hit, str](by="key", scope="window"), partitioner=StatelessPartitioner(2))
        dag.add_stream("hits", source.output, first.input)
        dag.add_stream("some", first.output, tumbling.input, both.inputs[0], count.input)
        dag.add_stream("windows", tumbling.output, fired.input)
        dag.add_stream("fired", fired.output, both.inputs[1])
        dag.add_stream("all", both.output, dag.add_operator("seen", seen).input)
        dag.add_stream("counts", count.output, dag.add_operator("counted", counted).input)

    assert run_dag(populate_dag, runner=runner).windows == 3
    assert Counter(seen.records) == Counter([*hits(1, 2, 31), Hit("a", -1, 2), Hit("a", -1, 1)])
    assert [each.value for each in counted.records] == [2, 1]


def test_a_later_launch_goes_on_where_the_end_has_fired(tmp_path: Path) -> None:
    run_dag(application(Given([hits(1, 2)]), by_columns(), tmp_path, 1))
    run_dag(application(Given([hits(1, 2), hits(3, 14)]), by_columns(), tmp_path, 1))
    assert found(tmp_path)[0] == Counter({("a", 0, 2, 2, 0): 1, ("a", 0, 3, 3, 1): 1, ("a", 10, 1, 1, 0): 1})
