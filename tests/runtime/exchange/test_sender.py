from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import CombinedKeyChanged, KeyNotHashable, OperatorFailed
from dagflow.model.operator.context import OperatorServices
from dagflow.model.types.forms import to_batch, to_records
from dagflow.model.types.keys import Key, KeyAssignment, group_of, key_of
from dagflow.planning.plan import FORWARD, GATHER, HASH, ROUND_ROBIN
from dagflow.runtime.exchange import sender as module
from dagflow.runtime.exchange.rows import Row, batch_of, records_of
from dagflow.runtime.exchange.sender import Sender
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.program import Combiner, ExchangeLayout, SendPlan, TaskSpec
from tests.tiers import examples


@attrs.frozen
class Hit:
    host: str
    n: int


def first_letter(hit: Hit) -> str:
    return hit.host[:1]


class Bad:
    """The part of a node that a sender needs: it notes the records that do not fit."""

    name, window = "source", 3

    def __init__(self) -> None:
        self.context = SimpleNamespace(services=OperatorServices())
        self.records: list[Any] = []

    def bad_record(self, doing: str, error: BaseException, record: Any) -> None:
        self.records.append(record)


def made(rows: list[Row], kind: str, key: Key | None = None, tp: Any = Hit, combiner: Any = None, partitions: int = 3) -> Sender:
    ends: Any = {"tag": 4, "source": ("a", "output"), "sink": ("b", "input"), "stage": "s1"}
    plan = SendPlan(**ends, kind=kind, key=key, type=tp, combiner=combiner)
    layout = ExchangeLayout(number=5, destinations={"s1": (10, partitions)})
    spec = TaskSpec(window=3, epoch="r", stage="s0", partition=1, partitions=3, layout=layout)
    return Sender(Bad(), plan, spec, rows.append)  # type: ignore[arg-type]


def decoded(rows: Sequence[Row], tp: Any = Hit) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row.src, row.seq)):
        found.setdefault(row.dst, []).extend(records_of(row.blob) if row.tag & 1 else to_records(batch_of(row.blob), tp))
    return found


HITS = st.lists(st.builds(Hit, st.text("ab", max_size=3), st.integers(0, 9)), max_size=60)


@given(
    HITS,
    st.lists(st.integers(0, 60)),
    st.lists(st.booleans(), min_size=62, max_size=62),
    st.sampled_from([HASH, ROUND_ROBIN, GATHER, FORWARD]),
)
@settings(max_examples=examples(60))
def test_rows_depend_on_the_records_and_not_on_the_pieces(hits: list[Hit], cuts: list[int], forms: list[bool], kind: str) -> None:
    """A task that is run again may read in other pieces."""
    key = key_of("host") if kind == HASH else None
    once: list[Row] = []
    again: list[Row] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS", 7)
        patch.setattr(module, "RECORDS", 3)
        patch.setattr(module, "BULK", 5)
        whole = made(once, kind, key)
        whole.take_records(hits)
        whole.finish()
        pieces = made(again, kind, key)
        bounds = sorted({0, len(hits), *(cut for cut in cuts if cut < len(hits))})
        for (start, stop), as_batch in zip(pairwise(bounds), forms, strict=False):
            if as_batch:
                pieces.take_batch(to_batch(hits[start:stop], Hit))
            else:
                pieces.take_records(hits[start:stop])
        pieces.finish()

    def contents(rows: list[Row]) -> list[Any]:
        return sorted((row.dst, row.tag, row.src, row.seq, bytes(row.encoded().blob)) for row in rows)

    assert contents(once) == contents(again)
    assert sum(map(len, decoded(once).values())) == len(hits)
    assert (whole.figures.before, whole.figures.records) == (len(hits), len(hits))


@pytest.mark.parametrize("key", ["host", first_letter])
@pytest.mark.parametrize("form", ["records", "batch"])
def test_records_find_the_partition_of_their_key_in_their_order(key: Any, form: str) -> None:
    hits = [Hit(host, n) for n in range(50) for host in ("alpha", "beta", "gamma", "delta")]
    rows: list[Row] = []
    sender = made(rows, HASH, key_of(key))
    sender.take_records(hits) if form == "records" else sender.take_batch(to_batch(hits, Hit))
    sender.finish()
    place = (lambda hit: hit.host) if key == "host" else first_letter
    for dst, found in decoded(rows).items():
        assert found == [hit for hit in hits if 10 + KeyAssignment(3).of_group(group_of(place(hit))) == dst]
    assert {(row.src, row.tag) for row in rows} == {(5, 16)}


def test_dealing_is_even_and_starts_elsewhere_in_each_task() -> None:
    rows: list[Row] = []
    sender = made(rows, ROUND_ROBIN)
    sender.take_records([Hit("a", n) for n in range(4)])
    sender.take_batch(to_batch([Hit("a", n) for n in range(4, 8)], Hit))
    sender.finish()
    assert {dst: [hit.n for hit in hits] for dst, hits in decoded(rows).items()} == {12: [0, 3, 6], 10: [1, 4, 7], 11: [2, 5]}


@pytest.mark.parametrize(("kind", "place"), [(GATHER, 10), (FORWARD, 11)])
def test_to_one_and_along(kind: str, place: int) -> None:
    rows: list[Row] = []
    sender = made(rows, kind, partitions=1 if kind == GATHER else 3)
    sender.take_records([Hit("a", 1)])
    sender.take_batch(to_batch([Hit("a", 2)], Hit))
    sender.finish()
    assert decoded(rows) == {place: [Hit("a", 1), Hit("a", 2)]}


def test_wide_records_make_more_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.runtime.exchange.rows.BLOB", 1000)
    rows: list[Row] = []
    sender = made(rows, GATHER, tp=str)
    sender.take_records(["x" * 300] * 10)
    sender.finish()
    assert decoded(rows, str) == {10: ["x" * 300] * 10}
    assert all(row.encoded().blob.size < 2000 for row in rows)
    assert len(rows) == 4


def test_a_sender_holds_little_whatever_it_is_given() -> None:
    """Memory of a task does not grow with what it sends."""
    rows: list[Row] = []
    sender = made(rows, GATHER, tp=bytes)
    for _ in range(8):
        sender.take_batch(to_batch([b"x" * (1 << 20)], bytes))
    assert sum(row.encoded().blob.size for row in rows) >= 4 << 20, "the first are sent before the last come"


def test_types_without_an_arrow_form_are_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.runtime.exchange.rows.BLOB", 100)
    rows: list[Row] = []
    sender = made(rows, HASH, key_of(lambda record: sorted(record)), tp=set[int])
    sender.take_records([{n, n + 1} for n in range(100)])
    sender.finish()
    assert sorted(map(min, (record for records in decoded(rows).values() for record in records))) == list(range(100))
    assert all(row.tag == 17 for row in rows)
    assert len(rows) > 6


class Summing:
    def combine(self, one: Hit, other: Hit) -> Hit:
        return Hit(one.host, one.n + other.n)


def test_a_combiner_makes_one_record_of_those_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEYS", 3)
    rows: list[Row] = []
    combiner = Combiner(Summing(), {"record": "combine"})  # type: ignore[arg-type]
    sender = made(rows, HASH, key_of("host"), combiner=combiner)
    sender.take_records([Hit(host, 1) for host in "aabacabdad"])
    sender.finish()
    found = [hit for hits in decoded(rows).values() for hit in hits]
    sums = {host: sum(hit.n for hit in found if hit.host == host) for host in "abcd"}
    assert sums == {"a": 5, "b": 2, "c": 1, "d": 2}
    assert (sender.figures.before, sender.figures.records) == (10, len(found))
    assert len(found) == 8, "three times, as there were three keys twice"


class Renaming:
    def combine(self, one: Hit, other: Hit) -> Hit:
        return Hit(one.host + other.host, one.n)

    def combine_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return to_batch([Hit("q", 1), Hit("r", 1), Hit("s", 1), Hit("t", 1)], Hit)


@pytest.mark.parametrize("form", ["record", "batch"])
def test_a_combiner_must_not_change_the_key(form: str) -> None:
    name = "combine" if form == "record" else "combine_batch"
    sender = made([], HASH, key_of("host"), combiner=Combiner(Renaming(), {form: name}))  # type: ignore[arg-type]
    sender.take_records([Hit("a", 1), Hit("a", 2)])
    with pytest.raises(Abort) as caught:
        sender.finish()
    assert isinstance(caught.value.error, CombinedKeyChanged)
    assert caught.value.error.port == "b.input"


@pytest.mark.parametrize(("form", "wanted"), [("record", "a record"), ("batch", "a pyarrow.RecordBatch")])
def test_a_combiner_must_return_something(form: str, wanted: str) -> None:
    forgetting: Any = SimpleNamespace(combine=lambda one, other: None, combine_batch=lambda batch: None)
    name = "combine" if form == "record" else "combine_batch"
    sender = made([], HASH, key_of("host"), combiner=Combiner(forgetting, {form: name}))
    sender.take_records([Hit("a", 1), Hit("a", 2)])
    with pytest.raises(Abort, match=f"it returned None(Type)?, and must return {wanted}"):
        sender.finish()


# Keys without a hash of Python's are sent as they are: the repr() of two of them does not tell whether they are equal.
@pytest.mark.parametrize(("key", "sent"), [(float("nan"), 1), ((float("nan"), 1), 1), ([1, 2], 2), (1, 1)])
def test_keys_that_a_combiner_leaves_alone(key: Any, sent: int) -> None:
    rows: list[Row] = []
    keep = SimpleNamespace(combine=lambda one, other: one)
    sender = made(rows, HASH, key_of(lambda record: record[0]), tp=object, combiner=Combiner(keep, {"record": "combine"}))  # type: ignore[arg-type]
    sender.take_records([(key, 1), (key, 2)])
    sender.finish()
    assert len([record for records in decoded(rows).values() for record in records]) == sent


def test_records_that_do_not_fit_go_where_on_error_says() -> None:
    rows: list[Row] = []
    sender = made(rows, GATHER, tp=str)
    sender.take_records(["a", "\ud800", "b"])  # text, but Arrow has no such
    sender.finish()
    assert decoded(rows, str) == {10: ["a", "b"]}
    assert sender._node.records == ["\ud800"]  # type: ignore[attr-defined]


def test_a_key_that_raises_names_the_operator_behind_the_exchange() -> None:
    sender = made([], HASH, key_of(lambda hit: hit.nothing))
    for take, what in ((sender.take_records, [Hit("a", 1)]), (sender.take_batch, to_batch([Hit("a", 1)], Hit))):
        with pytest.raises(Abort) as caught:
            take(what)  # type: ignore[operator]
        error = caught.value.error
        assert isinstance(error, OperatorFailed)
        assert (error.operator, error.window, error.doing) == ("b", 3, "the key (a function) of b.input")
        assert error.record == "Hit(host='a', n=1)"


def test_a_column_that_is_not_there_is_told() -> None:
    sender = made([], HASH, Key(columns=("missing",)), tp=Any)
    with pytest.raises(Abort) as caught:
        sender.take_batch(pa.RecordBatch.from_pydict({"a": [1]}))
    assert "missing" in str(caught.value.error)


def test_a_key_without_a_hash_ends_the_task() -> None:
    sender = made([], HASH, key_of(lambda hit: {hit.n}))
    with pytest.raises(Abort) as caught:
        sender.take_records([Hit("a", 1)])
    assert isinstance(caught.value.error, KeyNotHashable)


def test_batches_of_other_columns_are_sent_apart() -> None:
    """As scans make them of files that differ."""
    rows: list[Row] = []
    sender = made(rows, GATHER, tp=Any)
    sender.take_batch(pa.RecordBatch.from_pydict({"a": [1]}))
    sender.take_batch(pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]}))
    sender.finish()
    assert [batch_of(row.blob).schema.names for row in rows] == [["a"], ["a", "b"]]
