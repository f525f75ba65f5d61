from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

from dagflow import InputPort, MapState, Operator, OutputPort, ReaderRecord, State, WindowState
from dagflow.errors import HypothesisMissing, WrongRecordType
from dagflow.testing import check_operator
from operators import Console, Filter, FlatMap, Map, RecordWriter
from tests.tiers import examples

READ = st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 1000), st.text(max_size=3))


@pytest.mark.parametrize(
    ("operator", "records"),
    [
        (Filter(lambda line: not line.startswith(".")), st.text(alphabet=".a\n")),
        (Filter[Any](~pc.starts_with(pc.field("record"), ".")), READ),
        (Map(len), st.text()),
        (Map(int, on_error="skip"), st.text(alphabet="1x", max_size=2)),
        (Map(int, on_error="route"), st.text(alphabet="1x", max_size=2)),
        (Map[float, float](pc.sqrt(pc.field("value"))), st.floats()),
        (FlatMap(str.split), st.text(alphabet="a ")),
        (Console(limit=3), st.text()),
        (RecordWriter("/never/written"), st.text()),
        (RecordWriter("/never/written", per_block=True), READ),
        (RecordWriter("/never/written", encoding="latin-1", on_error="skip"), st.text(max_size=2)),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_the_library_obeys(operator: Operator, records: Any) -> None:
    check_operator(operator, records, max_examples=examples(25))


@attrs.define
class Base(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()


@attrs.define
class FormsDiffer(Base):
    @Base.input.process
    def each(self, record: int) -> None:
        self.output.emit(record)

    @Base.input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        self.output.emit_batch(batch.filter(pc.field("value") < 100))


@attrs.define
class Numbers(Base):
    """Numbers records, which depends on who else is there."""

    @Base.input.stream
    def all(self, records: Iterator[int]) -> None:
        self.output.emit_all(n for n, _ in enumerate(records))


@attrs.define
class Remembers(Base):
    """Keeps what it must not in a mutable field."""

    seen: list[int] = attrs.field(factory=list)

    @Base.input.process
    def each(self, record: int) -> None:
        if record not in self.seen:
            self.seen.append(record)
            self.output.emit(record)


@attrs.define
class RemembersElsewhere(Base):
    def setup(self, context: object) -> None:
        self.seen: list[int] = []

    @Base.input.process
    def each(self, record: int) -> None:
        if record not in self.seen:
            self.seen.append(record)
            self.output.emit(record)


@attrs.define
class Random(Base):
    @Base.input.process
    def each(self, record: int) -> None:
        self.output.emit(next(_COUNTER))


@attrs.define
class Sums(Base):
    """A sum per task, without saying that it keeps something."""

    def setup(self, context: object) -> None:
        self.box = [0]

    def begin_window(self, window: int) -> None:
        self.box[0] = 0

    @Base.input.process
    def each(self, record: int) -> None:
        self.box[0] += record

    def end_window(self) -> None:
        self.output.emit(self.box[0])


@attrs.define
class Declared(Base):
    """The same sum, declared."""

    total = WindowState(0)

    @Base.input.process
    def each(self, record: int) -> None:
        self.total += record

    def end_window(self) -> None:
        self.output.emit(self.total)


_COUNTER = itertools.count()


@pytest.mark.parametrize(
    ("operator", "law"),
    [
        (FormsDiffer(), "FormsDiffer: forms agree: batch: port output differ\n  records  [100]"),
        (Numbers(), "Numbers: chunks do not matter: stream"),
        (Remembers(), "Remembers: it travels: its property 'seen' has changed while it ran\n  before  []\n  after   [0]"),
        (RemembersElsewhere(), "RemembersElsewhere: it forgets"),
        (Random(), "Random: it travels: two copies give the same"),
        (Sums(), "Sums: partitions do not matter"),
    ],
)
def test_a_law_that_is_broken_is_named(operator: Operator, law: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_operator(operator, st.integers(0, 120), max_examples=30)
    assert str(caught.value).startswith(law)


@attrs.define
class RaisesAtTheEnd(Base):
    @Base.input.process
    def each(self, record: int) -> None:
        pass

    def end_window(self) -> None:
        raise KeyError("always")


@attrs.define
class RaisesAlways(Base):
    @Base.input.process
    def each(self, record: int) -> None:
        raise ValueError(f"no {record}")


@attrs.define
class ChangesItsClass(Base):
    KNOWN: ClassVar[set[int]] = set()

    @Base.input.process
    def each(self, record: int) -> None:
        self.KNOWN.add(record)


@attrs.define
class SharesASet(Base):
    seen = set()  # type: ignore[var-annotated]  # the mistake

    @Base.input.process
    def each(self, record: int) -> None:
        self.seen.add(record)


@attrs.define
class ChangesInPlace(Operator):
    input = InputPort[int](partition_by=abs)
    kept = MapState[int, list[int]]()

    @input.process
    def each(self, record: int) -> None:
        if record not in self.kept:
            self.kept[record] = []
        self.kept[record].append(1)


@pytest.mark.parametrize(
    ("operator", "law", "help"),
    [
        (RaisesAtTheEnd(), "it runs: operator 'operator' failed in end_window(): KeyError: 'always'", "raises=KeyError"),
        (RaisesAlways(), "it runs: operator 'operator' failed in each() of port 'input': ValueError: no 0", "raises=ValueError"),
        (RaisesAtTheEnd(on_error="skip"), "it runs: operator 'operator' failed in end_window()", "raises=KeyError"),
        (ChangesItsClass(), "it forgets: the class attribute 'KNOWN' has changed while it ran", "WindowState(factory=set)"),
        (SharesASet(), "a DAG refuses it: class SharesASet: seen is a set", "WindowState(factory=set)"),
        (
            ChangesInPlace(),
            "state resumes: ChangesInPlace has changed the value of 0 in MapState 'kept' in place",
            "assign it again",
        ),
    ],
)
def test_mistakes_that_every_operator_may_make_are_found(operator: Operator, law: str, help: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_operator(operator, st.integers(0, 3), max_examples=10)
    assert str(caught.value).startswith(f"{type(operator).__name__}: {law}")
    assert help in str(caught.value)


def test_records_that_it_refuses_or_skips_are_no_mistake() -> None:
    check_operator(Map(int), st.text(alphabet="1x", max_size=2), raises=ValueError, max_examples=25)
    check_operator(RaisesAlways(), st.integers(), raises=(TypeError, ValueError), max_examples=5)
    check_operator(RaisesAlways(on_error="skip"), st.integers(), max_examples=5)


def test_declared_state_may_depend_on_the_partition() -> None:
    check_operator(Declared(), st.integers(0, 9))


def test_records_of_the_wrong_type_are_caught() -> None:
    wrong: Any = Map[str, int](lambda text: text)  # type: ignore[arg-type, return-value]
    with pytest.raises(WrongRecordType):
        check_operator(wrong, st.text())


def test_of_several_ports_one_must_be_named() -> None:
    @attrs.define
    class Two(Operator):
        left = InputPort[int]()
        right = InputPort[int]()

        @left.process
        def each(self, record: int) -> None:
            pass

        @right.process
        def other(self, record: int) -> None:
            pass

    with pytest.raises(ValueError, match="has the input ports left, right: say which"):
        check_operator(Two(), st.integers())
    check_operator(Two(), st.integers(), port="right", max_examples=5)


def kept(*states: State[Any]) -> Operator:
    """An operator that puts each record into its states by `+`."""

    @attrs.define
    class Keeps(Operator):
        input = InputPort[Any]()
        kept = states[0]

        @input.process
        def each(self, record: Any) -> None:
            self.kept = self.kept + record

    Keeps.kept.__set_name__(Keeps, "kept")
    return Keeps()


def appended(parts: list[list[int]]) -> list[int]:
    return [item for part in parts for item in part]


@pytest.mark.parametrize(
    ("state", "records"),
    [
        (State(0, merge=sum), st.integers()),
        (State(0), st.integers()),
        (State("", merge="".join), st.text()),
        (State(b"", merge=b"".join), st.binary()),
        (State[list[int]](factory=list, merge=appended), st.lists(st.integers())),
    ],
)
def test_states_that_obey(state: State[Any], records: Any) -> None:
    check_operator(kept(state), records, max_examples=examples(50))


@pytest.mark.parametrize(
    ("state", "records", "law"),
    [
        (State((), merge=lambda parts: sum(parts, ())), st.tuples(st.integers()), "what is read again: State 'kept' differs"),
        (State(5, merge=sum), st.integers(), "merged with that of an idle partition: State 'kept' differs"),
        (State(0.0, merge=lambda parts: sum(parts) / len(parts)), st.just(1.0), "merged with that of an idle partition"),
        (State(0, merge=lambda parts: parts[0]), st.integers(), "merged"),
        (
            State("", merge=lambda parts: "".join(part for part in parts if part)[:3] if len(parts) > 2 else "".join(parts)),
            st.text(min_size=1),
            "merged at once and one after the other",
        ),
    ],
)
def test_states_that_do_not(state: State[Any], records: Any, law: str) -> None:
    with pytest.raises(AssertionError, match=f"Keeps: state resumes: {law}"):
        check_operator(kept(state), records, max_examples=200)


def test_without_hypothesis_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(HypothesisMissing, match="pip install hypothesis"):
        check_operator(Declared(), None)  # type: ignore[arg-type]
