"""Classes of every kind of field, from an application's own module, which Spark's workers cannot import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.launching.application import load_application
from dagflow.model.types.forms import schema_of
from dagflow.testing import Collector, run_dag
from tests.conformance.keys.exchanges import read

MODULE = '''
import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar

import attrs
from typing_extensions import TypeAliasType

from dagflow import InputPort, MapState, Operator, OutputPort, ReaderRecord, State
from operators import Count, Map

Id = NewType("Id", int)
Words = TypeAliasType("Words", list[str])
T = TypeVar("T")


@attrs.define
class Place:
    name: str
    since: datetime.date


@attrs.define
class Box(Generic[T]):
    held: T


@attrs.define
class Columns:
    """Fields that columns hold."""

    text: str
    data: bytes
    number: int
    share: float
    flag: bool
    at: datetime.datetime
    day: datetime.date
    span: datetime.timedelta
    maybe: datetime.datetime | None
    several: list[datetime.datetime]
    named: dict[str, datetime.date]
    place: Place
    places: list[Place]
    literal: Literal["a", "b"]
    new: Id
    alias: Words
    noted: Annotated[int, "seconds"]
    box: Box[datetime.timedelta]


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    at: datetime.datetime
    n: int


@attrs.define
class Objects:
    """Fields that only Python's own objects hold."""

    exact: decimal.Decimal
    unique: uuid.UUID
    colour: Colour
    pair: Pair
    either: int | str
    anything: Any
    some: set[int]
    time: datetime.time
    several: tuple[int, ...]
    text: str


def columns(line: ReaderRecord[str]) -> Columns:
    n = int(line.record)
    day = datetime.date(2026, 1, 1 + n % 28)
    at = datetime.datetime(2026, 1, 1, n % 24)
    places = [Place(f"p{n}", day)] * (n % 3)
    span = datetime.timedelta(seconds=n)
    texts = (f"t{n % 5}", b"data")
    times = (at, day, span, None if n % 3 else at, [at], {"day": day})
    return Columns(*texts, n, n / 2, n % 2 == 0, *times, Place("p", day), places, "a", Id(n), ["w"], n, Box(span))


def objects(line: ReaderRecord[str]) -> Objects:
    n = int(line.record)
    pair = Pair(datetime.datetime(2026, 1, 1, n % 24), n)
    either = n if n % 2 else "n"
    return Objects(decimal.Decimal(n), uuid.UUID(int=n), Colour.RED, pair, either, {n}, {n}, datetime.time(n), (n,), f"t{n % 5}")


@attrs.define
class Total:
    n: int


@attrs.define
class Kept:
    total: Total
    before: list[Total]


@attrs.define
class Last(Operator, Generic[T]):
    """Passes on what comes by key, and keeps a class in a class of each."""

    input = InputPort[T](partition_by="text")
    output = OutputPort[T]()
    kept = MapState[str, Kept]()

    @input.process
    def each(self, record: T) -> None:
        before = self.kept.get(record.text, Kept(Total(0), []))
        self.kept[record.text] = Kept(Total(before.total.n + 1), [before.total])
        self.output.emit(record)


def populate(dag, lines, seen):
    seen = list(seen)
    for make, tp in ((columns, Columns), (objects, Objects)):
        made = dag.add_operator(make.__name__, Map(make))
        last = dag.add_operator(f"last {make.__name__}", Last[tp]())
        count = dag.add_operator(f"count {make.__name__}", Count(by="text", scope="window"))
        dag.add_stream(f"text {make.__name__}", made.output, last.input, count.input)
        dag.add_stream(f"last {make.__name__}", last.output, dag.add_operator(f"seen {make.__name__}", seen.pop(0)).input)
        dag.add_stream(f"count {make.__name__}", count.output, dag.add_operator(f"counted {make.__name__}", seen.pop(0)).input)
    lines_to = [dag.operator(make.__name__).input for make in (columns, objects)]
    dag.add_stream("lines", lines.messages, *lines_to)


def populate_dag(dag, conf):
    raise NotImplementedError
'''
HEADERS = {"annotations are types": "", "annotations are text": "from __future__ import annotations\n"}


@pytest.fixture(params=HEADERS)
def module(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The application's module, in a folder that workers do not search."""
    name = f"fields_{'_'.join(request.param.split())}"
    path = tmp_path / f"{name}.py"
    path.write_text(HEADERS[request.param] + MODULE)
    before = sys.path[:]
    load_application(str(path))
    yield sys.modules[name]
    sys.path[:] = before
    del sys.modules[name]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.txt").write_text("".join(f"{n}\n" for n in range(20)))
    return folder


def records(module: Any, source: Path, runner: str) -> list[list[str]]:
    seen = [Collector[Any]() for _ in range(4)]

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, block_size=1 << 20, blocks_threshold=1)
        module.populate(dag, lines, seen)

    run_dag(populate_dag, runner=runner)
    return [sorted(map(repr, each.records)) for each in seen]


def test_records_and_states_come_through(module: Any, source: Path) -> None:
    found = records(module, source, "local")
    assert [len(each) for each in found] == [40, 10, 40, 10]


def test_columns_are_the_same_with_annotations_as_text(module: Any) -> None:
    schema = schema_of(module.Columns)
    assert schema is not None
    assert schema.names == [field.name for field in attrs.fields(module.Columns)]
    assert schema_of(module.Objects) is None


@pytest.mark.spark
def test_fields_of_every_kind_come_through_locally_and_on_spark(spark_session: Any, module: Any, source: Path) -> None:
    found = records(module, source, "spark")
    assert [len(each) for each in found] == [40, 10, 40, 10]
    assert found == records(module, source, "local")
