"""The fields of a key that `==` compares, and the keys that are refused with the DAG."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import zoneinfo
from typing import Any, NamedTuple

import attrs
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputPort, Operator
from dagflow.errors import DagErrors, KeyNotHashable, KeyTypeRefused
from dagflow.model.graph.checks import check
from dagflow.model.types.equality import compared, not_hashable
from dagflow.model.types.forms import to_batch
from dagflow.model.types.keys import KeyAssignment, Router, key_hash, key_of
from dagflow.model.types.records import ReaderRecord
from operators import BlockReader, FileSplitterInput, Map
from operators.aggregate.kept_keys import entry_of
from tests.conformance.keys.keyed_classes import GROUPS, KINDS, Colour, Folded, Item, Level, Nested, Noted, Share

EPOCH = datetime.datetime.fromisoformat("1970-01-01")
SECONDS = st.integers(-(2**32), 2**32).map(lambda second: EPOCH + datetime.timedelta(0, second))
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@attrs.define(eq=False)
class Alone:
    name: str


@attrs.frozen
class Own:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


class Caseless(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(self.lower())


@attrs.frozen
class Crossed:
    name: str = attrs.field(eq=False, hash=True)


@attrs.frozen
class Unhashed:
    """Python's own hash need not see what `==` compares."""

    name: str
    size: int = attrs.field(hash=False)


@attrs.frozen
class Within:
    own: Own
    size: int


class Base:
    """Has no `==` of its own; its subclasses have."""


class Kind(enum.StrEnum):
    ONE = "one"


@attrs.frozen
class Derived(Base):
    name: str


class Tagged(NamedTuple):
    alone: Alone


@attrs.frozen
class Tree:
    name: str
    below: list[Tree]


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_equal_keys_have_equal_hashes_and_entries(kind: str, data: st.DataObject) -> None:
    make = KINDS[kind][1]
    group, form = data.draw(st.integers(0, GROUPS - 1)), st.integers(0, 12)
    one, other = make(group, data.draw(form)), make(group, data.draw(form))
    another = make((group + 1) % GROUPS, data.draw(form))
    assert one == other
    assert one != another
    assert key_hash(one) == key_hash(other)
    assert entry_of(one) == entry_of(other) != entry_of(another)
    assert key_hash((one, 1)) == key_hash((other, True))


COLUMNS = [kind for kind, (tp, _) in KINDS.items() if tp in (Noted, Folded, Nested, float)]


@pytest.mark.parametrize("kind", COLUMNS)
@given(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 12))), st.sampled_from(["key", ("key", "group")]))
def test_both_forms_of_records_route_alike(kind: str, drawn: list[tuple[int, int]], names: Any) -> None:
    tp, make = KINDS[kind]
    items = [Item(make(group, form), group) for group, form in drawn]
    key = key_of(names)
    assert key is not None
    router = Router("p", key, Item[tp], KeyAssignment(13))  # type: ignore[valid-type]  # of whatever kind
    places = [router.of_record(item) for item in items]
    assert list(router.of_batch(to_batch(items, Item[tp]))) == places  # type: ignore[valid-type]
    assert all(
        a == b
        for one, a in zip(items, places, strict=True)
        for other, b in zip(items, places, strict=True)
        if one.key == other.key
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Unhashed("a", 1), Unhashed("a", True)),
        (datetime.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), datetime.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)),
        (datetime.time(1, tzinfo=BERLIN), datetime.time(1)),
        (pd.Timestamp("2026-01-01 12:00"), datetime.datetime.fromisoformat("2026-01-01 12:00")),
        (pd.Timedelta(1, "s"), datetime.timedelta(seconds=1)),
        (np.str_("a"), "a"),
        (np.bool_(True), 1),
        (np.uint8(3), decimal.Decimal("3.0")),
        (Share.HALF, 0.5),
        (Level.HIGH, True),
        (Kind.ONE, "one"),
        (float("inf"), decimal.Decimal("Infinity")),
        (decimal.Decimal("1E+30"), 10**30),
        (decimal.Decimal("-1E+30"), -(10**30)),
    ],
    ids=repr,
)
def test_what_python_takes_for_equal(one: Any, other: Any) -> None:
    assert one == other
    assert key_hash(one) == key_hash(other)
    if hash(one) == hash(other):
        assert entry_of(one) == entry_of(other)


def test_a_decimal_with_a_million_zeros_has_a_hash() -> None:
    assert key_hash(decimal.Decimal("1E+99999999")) == key_hash(decimal.Decimal("10E+99999998"))


@pytest.mark.parametrize("texts", [["ß", "ss", "e\u0301", "é", "a"]])
def test_text_is_compared_as_it_is_written(texts: list[str]) -> None:
    assert len({key_hash(text) for text in texts}) == len(texts)


@given(
    st.lists(
        SECONDS,
        min_size=1,
    )
)
def test_times_of_any_unit_route_alike(times: list[datetime.datetime]) -> None:
    key = key_of("value")
    assert key is not None
    router = Router("p", key, Any, KeyAssignment(16))
    expected = [router.of_record(at) for at in times]
    for kind in (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")):
        column = pa.array(times, kind)
        for each in (column, column.dictionary_encode()):
            assert list(router.of_batch(pa.RecordBatch.from_arrays([each], ["value"]))) == expected
    zoned = [router.of_record(at.replace(tzinfo=datetime.UTC)) for at in times]
    for zone in ("UTC", "+05:00", "Asia/Tokyo"):
        column = pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
        assert list(router.of_batch(pa.RecordBatch.from_arrays([column], ["value"]))) == zoned


REFUSED = [
    (Own, "class Own has an == of its own, and no hash is known that agrees with it"),
    (Caseless, "class Caseless has an == of its own, and no hash is known that agrees with it"),
    (Alone, "class Alone has no == that compares values: each object is equal to itself only"),
    (Crossed, "class Crossed has a field, 'name', that hash() sees and == does not"),
    (set[int], "a set has no hash that all processes agree on"),
    (dict[str, int] | None, "a dict has no hash that all processes agree on"),
    (Within, "in field 'own' of Within, class Own has an =="),
    (tuple[int, Own], "class Own has an =="),
    (Tagged, "in field 'alone' of Tagged, class Alone has no =="),
]


@pytest.mark.parametrize(("tp", "reason"), REFUSED, ids=[str(tp) for tp, _ in REFUSED])
def test_types_whose_keys_would_not_meet(tp: Any, reason: str) -> None:
    assert (not_hashable(tp) or "").startswith(reason)


@pytest.mark.parametrize(
    "tp", [Any, object, Base, Derived, Tree, Unhashed, Colour, ReaderRecord[str], str | None, tuple[int, ...]]
)
def test_types_of_keys(tp: Any) -> None:
    assert not_hashable(tp) is None


@pytest.mark.parametrize(
    "key", [Own("a"), Caseless("a"), Alone("a"), Crossed("a"), (1, Own("a")), decimal.Decimal("sNaN"), np.float32(0.1)], ids=repr
)
def test_a_key_that_cannot_be_compared_is_refused_at_run_time(key: Any) -> None:
    by = key_of(lambda record: record)
    assert by is not None
    with pytest.raises(KeyNotHashable, match=r"has no hash: (a|class) "):
        Router("count.input", by, Any, KeyAssignment(2)).of_record(key)
    with pytest.raises(TypeError):
        entry_of(key)


def test_a_field_compared_by_a_class_is_as_good_as_its_eq() -> None:
    @attrs.frozen
    class Row:
        values: Any = attrs.field(eq=attrs.cmp_using(eq=np.array_equal))

    assert "has an == of its own" in str(not_hashable(Row))
    with pytest.raises(TypeError, match="an == of its own"):
        key_hash(Row(np.array([1])))


@attrs.frozen
class Visit:
    own: Own
    n: int


def visit(line: ReaderRecord[str]) -> Visit:
    return Visit(Own(line.record), 1)


def own(record: Visit) -> Own:
    return record.own


def test_the_dag_refuses_such_keys_together() -> None:
    @attrs.define
    class Two(Operator):
        one = InputPort[Visit](partition_by="own")
        other = InputPort[Visit](partition_by=own)

        @one.process
        @other.process
        def each(self, record: Visit) -> None: ...

    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
    lines = dag.add_operator("lines", BlockReader[str]())
    visits, two = dag.add_operator("visits", Map(visit)), dag.add_operator("two", Two())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, visits.input)
    dag.add_stream("both", visits.output, two.one, two.other)
    with pytest.raises(DagErrors) as caught:
        check(dag)
    problems = caught.value.problems
    assert [(type(p), getattr(p, "port", None)) for p in problems] == [(KeyTypeRefused, "two.one"), (KeyTypeRefused, "two.other")]
    assert "test_equality.py" in str(problems[0])


def test_subclasses_compare_as_their_base_does() -> None:
    class Word(str):
        __slots__ = ()

    class Deeper(Noted):
        pass

    assert compared(Word("a")) == "a"
    assert type(compared(Word("a"))) is str
    assert compared(Deeper("a", 1)) == ("a",)
    assert compared(dataclasses.make_dataclass("Made", ["x"])(3)) == (3,)
