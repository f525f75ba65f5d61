from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, OperatorTask, Window, check_operator, run_dag, run_operator
from operators import FileSplitterInput, ParquetFormat, ScanReader, TopN
from operators.aggregate.top_n import PartialTopN
from tests.tiers import examples


@attrs.frozen
class Word:
    text: str
    count: int | None
    language: str = "en"


WORDS = st.builds(Word, st.text("abc", max_size=2), st.integers(-3, 3) | st.none(), st.sampled_from(["en", "de"]))


def top(words: list[Word], n: int, smallest: bool, by: Any) -> list[Word]:
    groups: dict[Any, list[Word]] = {}
    for word in words:
        if word.count is not None:
            groups.setdefault(by(word), []).append(word)
    sign = 1 if smallest else -1
    return [
        w for _, g in sorted(groups.items()) for w in sorted(g, key=lambda w: (sign * (w.count or 0), w.text, w.language))[:n]
    ]


def ranks(words: list[Word]) -> list[tuple[str, int | None]]:
    return [(word.language, word.count) for word in words]


@pytest.mark.parametrize(("by", "key"), [(None, lambda w: None), ("language", lambda w: w.language)])
def test_as_sorting_says(by: Any, key: Any) -> None:
    @given(st.lists(WORDS, max_size=40), st.integers(1, 4), st.booleans())
    def hold(words: list[Word], n: int, smallest: bool) -> None:
        found = run_operator(TopN(n, "count", by=by, smallest=smallest), {"input": words})["output"]
        wanted = top(words, n, smallest, key)
        if by is None:
            assert [w.count for w in found] == [w.count for w in wanted]
        else:
            assert ranks(found) == ranks(wanted)

    hold()


@given(st.permutations([Word(text, n % 3, language) for n, text in enumerate("abcdef") for language in ("en", "de")]))
def test_the_order_of_arrival_does_not_matter(words: list[Word]) -> None:
    """Also not among equal values."""
    found = run_operator(TopN(5, "count"), {"input": words})["output"]
    assert found == run_operator(TopN(5, "count"), {"input": sorted(words, key=str)})["output"]


@pytest.mark.parametrize("by", [None, "language", ("language", "text")])
def test_the_laws_of_operators(by: Any) -> None:
    check_operator(TopN(2, "count", by=by), WORDS, max_examples=examples(40))
    check_operator(TopN(1, "count", by=by, smallest=True), WORDS, max_examples=examples(20))


@pytest.mark.full
@pytest.mark.parametrize("form", ["record", "batch"])
def test_what_was_found_ahead_comes_to_the_same(form: str) -> None:
    @given(st.lists(st.lists(WORDS, max_size=12), max_size=4), st.integers(1, 3))
    def hold(parts: list[list[Word]], n: int) -> None:
        whole = TopN(n, "count" if form == "batch" else lambda word: word.count, by="language")
        partial, port = whole.partial_aggregation("input")  # type: ignore[misc]
        found = [word for part in parts for word in run_operator(partial, {"input": part})["output"]]
        words = [word for part in parts for word in part]
        merged = run_operator(whole, {port: found})["output"]
        direct = run_operator(whole, {"input": words})["output"]
        assert sorted(merged, key=str) == sorted(direct, key=str)

    hold()


@pytest.mark.parametrize("form", ["stream", "batch"])
def test_values_that_are_none_or_no_numbers_are_left_out(form: str) -> None:
    values = [math.nan, 2.0, None, 1.0]
    with OperatorTask(TopN[Any](9, scope="window")) as task:
        task.give("input", pa.record_batch({"value": pa.array(values, pa.float64())}) if form == "batch" else values, form)
    assert task.emitted["output"] == [2.0, 1.0]


def test_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.aggregate.top_n.MAX_WAITING_ROWS", 10)
    with OperatorTask(TopN[int](3, scope="window")) as task:
        for start in range(0, 100, 7):
            task.give("input", pa.record_batch({"value": list(range(start, start + 7))}), "batch")
    assert task.emitted["output"] == [104, 103, 102]


@pytest.mark.parametrize("is_partial", [True, False])
def test_wide_rows_do_not_wait_by_their_number(monkeypatch: pytest.MonkeyPatch, is_partial: bool) -> None:
    """Fifty thousand of them may be more than a column of text holds."""
    monkeypatch.setattr("operators.aggregate.top_n.MAX_WAITING_BYTES", 5_000)
    monkeypatch.setattr("operators.aggregate.top_n.MAX_PARTIAL_BYTES", 8_000)
    whole = TopN[Any](1, "value", by="key", scope="window")
    top: Any = whole.partial_aggregation("input")[0] if is_partial else whole  # type: ignore[index]  # it has one
    held = []
    with OperatorTask(top) as task:
        for start in range(0, 100, 2):
            rows = [{"key": n % 20, "value": n, "text": "x" * 1000} for n in (start, start + 1)]
            task.give("input", pa.RecordBatch.from_pylist(rows), "batch")
            held.append(sum(batch.nbytes for batch in top.batches))
    assert max(held) < (8_000 + 5_000 + 3_000 if is_partial else 2 * 20 * 1_100 + 3_000)
    assert (len(task.emitted["output"]) > 20) == is_partial, "what is on top is sent on, or kept"
    found = run_operator(whole, {"input": task.emitted["output"]})["output"]
    assert sorted(row["value"] for row in found) == list(range(80, 100))


@pytest.mark.parametrize("form", ["stream", "batch"])
def test_ahead_only_so_many_groups_are_held(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their partial results are sent on before the window ends; all together they are the same."""
    monkeypatch.setattr("operators.aggregate.top_n.MAX_WAITING_ROWS", 10)
    monkeypatch.setattr("operators.aggregate.top_n.MAX_PARTIAL_GROUPS", 20)
    whole = TopN[Any](1, "value", by="key", scope="window")
    partial: Any = whole.partial_aggregation("input")[0]  # type: ignore[index]  # it has one
    rows = [{"key": n % 35, "value": n} for n in range(140)]
    given = [rows[start : start + 7] for start in range(0, 140, 7)]
    held = []
    with OperatorTask(partial) as task:
        for some in given:
            task.give("input", pa.RecordBatch.from_pylist(some) if form == "batch" else some, form)
            held.append(len(partial.groups) + sum(batch.num_rows for batch in partial.batches))
    assert max(held) <= 20 + 2 * 10 + 7
    assert len(task.emitted["output"]) > 35
    found = run_operator(whole, {"input": task.emitted["output"]})["output"]
    assert sorted(row["value"] for row in found) == list(range(105, 140))


def test_batches_wait_for_as_many_rows_as_are_on_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all that is on top would be sorted again for each few rows that come."""
    monkeypatch.setattr("operators.aggregate.top_n.MAX_WAITING_ROWS", 10)
    sorted_rows = []
    top = TopN[Any](1, "value", by="key", scope="window")

    def counted(self: Any) -> pa.RecordBatch:
        sorted_rows.append(sum(batch.num_rows for batch in self.batches))
        return was(self)

    was = PartialTopN._top
    monkeypatch.setattr(PartialTopN, "_top", counted)
    with OperatorTask(top) as task:
        for start in range(0, 2000, 10):
            task.give("input", pa.record_batch({"key": list(range(start, start + 10)), "value": [1] * 10}), "batch")
    assert len(task.emitted["output"]) == 2000
    assert sum(sorted_rows) < 5 * 2000


def test_a_window_does_not_know_the_one_before() -> None:
    assert run_operator(TopN(1, scope="window"), {"input": [Window([3, 2]), Window([1])]})["output"] == [3, 1]


def test_functions_and_text() -> None:
    words = ["tree", "a", "to", "question", "be"]
    assert run_operator(TopN(2, len), {"input": words})["output"] == ["question", "tree"]
    assert run_operator(TopN(2), {"input": words})["output"] == ["tree", "to"]
    assert run_operator(TopN(1, len, by=lambda word: word[0]), {"input": words})["output"] == ["a", "be", "question", "tree"]


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", True])
def test_numbers_that_are_none(n: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="n"):
        TopN(n)


@pytest.mark.parametrize("by", ["key", ("key", "more")])
def test_keys_that_are_not_a_number_are_one_key(by: Any) -> None:
    records = [{"key": float("nan"), "more": 1, "value": n} for n in range(3)]
    assert run_operator(TopN(1, by=by, scope="window"), {"input": records})["output"] == records[-1:]
    (row,) = run_operator(TopN(1, by=by), {"input": [pa.RecordBatch.from_pylist(records)]})["output"]
    assert row["value"] == 2


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_both_zeros_are_one_key_of_a_batch(kind: Any) -> None:
    keys = pa.array([0.0, -0.0, math.nan, math.nan, None], kind)
    with OperatorTask(TopN[Any](1, by="key")) as task:
        task.give("input", pa.record_batch({"key": keys, "value": [1, 2, 3, 4, 5]}), "batch")
    assert [row["value"] if isinstance(row, dict) else row.value for row in task.emitted["output"]] == [2, 4, 5]


@pytest.mark.parametrize("by", [None, "language", ("language",), ("language", "count")])
def test_tops_are_those_of_all_windows_so_far(by: Any) -> None:
    names = () if by is None else (by,) if isinstance(by, str) else by

    def key(word: Word) -> Any:
        return tuple(getattr(word, name) for name in names)

    @settings(max_examples=examples(30))
    @given(st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=4), st.integers(1, 3))
    def hold(windows: list[list[Word]], n: int) -> None:
        given_windows = {"input": [Window(words) for words in windows]}
        found = run_operator(TopN[Word](n, "count", by=by), given_windows)
        standing = Counter(found.get("output", []))
        standing.subtract(found.retracted.get("output", []))
        wanted = Counter((key(word), word.count) for word in top([w for window in windows for w in window], n, False, key))
        assert Counter((key(word), word.count) for word in standing.elements()) == wanted
        assert min(standing.values(), default=0) >= 0

    hold()


def test_what_is_kept_comes_back_as_it_was() -> None:
    import datetime
    import decimal

    schema = pa.schema(
        {
            "value": pa.float64(),
            "at": pa.timestamp("us", "UTC"),
            "tags": pa.list_(pa.struct({"d": pa.decimal128(9, 2)})),
            "raw": pa.binary(),
        }
    )
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [{"value": float(n), "at": at, "tags": [{"d": decimal.Decimal("1.10")}], "raw": b"\xff"} for n in range(3)]
    windows = [Window([pa.RecordBatch.from_pylist([row], schema=schema)]) for row in rows]
    found = run_operator(TopN(2), {"input": windows})
    assert (found["output"], found.retracted["output"]) == (rows, rows[:1])


@pytest.mark.parametrize(
    ("kept", "new"),
    [
        (pa.array([2.5, math.nan]), pa.array([1, 2])),
        (pa.array([1000, 2**40]), pa.array([1, 2], pa.int8())),
        (pa.array([0.1, 0.2]), pa.array([0.5, None], pa.float32())),
        (pa.array([1, 2], pa.int8()), pa.array([2.5, 0.5])),
    ],
    ids=["floats", "large integers", "doubles", "small integers"],
)
def test_what_is_kept_stays_as_it_was_beside_columns_of_other_types(kept: pa.Array, new: pa.Array) -> None:
    first = pa.record_batch({"value": [7, 6], "other": kept, "gone": ["a", "b"]})
    second = pa.record_batch({"value": [9, 8], "other": new})
    found = run_operator(TopN(2), {"input": [Window([first]), Window([second])]})
    assert [row["value"] for row in found["output"]] == [7, 6, 9, 8]
    assert [row["gone"] for row in found["output"][2:]] == [None, None]
    assert [row["other"] for row in found["output"][2:]] == new.to_pylist()
    assert [(row["value"], row["gone"]) for row in found.retracted["output"]] == [(7, "a"), (6, "b")]
    others = [row["other"] for row in found.retracted["output"]]
    assert all(each == own or math.isnan(own) for each, own in zip(others, kept.to_pylist(), strict=True))


ROWS = {
    "key": pa.array(["a", "b", "c", "d"]),
    "value": pa.array([1, 2, 3, 4], pa.int32()),
    "price": pa.nulls(4, pa.decimal128(9, 2)),
    "at": pa.array([0, None, 1, 2], pa.timestamp("us", "UTC")),
    "two words": pa.array([[7], None, [], None], pa.list_(pa.int16())),
}


def test_partitions_keep_rows_of_any_types(tmp_path: Path) -> None:
    """Also those that a window has no rows for, and in another number of them."""
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(tmp_path / "in"))
        reader = dag.add_operator("reader", ScanReader(ParquetFormat()))
        partitions = 3 if (tmp_path / "in" / "1.parquet").exists() else 2
        top = dag.add_operator("top", TopN[Any](1, by="key"), partitioner=StatelessPartitioner(partitions))
        dag.add_operator("seen", seen)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, top.input)
        dag.add_stream("tops", top.output, seen.input)

    before, more = pa.table(ROWS), pa.table(ROWS).slice(1, 1).set_column(1, "value", pa.array([9], pa.int32()))
    (tmp_path / "in").mkdir()
    for number, rows in enumerate((before, more, before.slice(0, 0), before.slice(0, 1))):
        pq.write_table(rows, tmp_path / "in" / f"{number}.parquet")
        run_dag(populate_dag, run_folder=str(tmp_path / "run"))
    standing = [*before.slice(0, 1).to_pylist(), *more.to_pylist(), *before.slice(2).to_pylist()]
    assert sorted(seen.records, key=lambda row: str(row["key"])) == standing


SALES = [("a", 1, 5.0), ("a", 1, 7.0), ("a", 2, None), ("b", 2, 7.0), ("b", None, 1.0), ("b", 2, math.nan)]


@pytest.mark.parametrize("scope", ["all", "window"])
@pytest.mark.parametrize("combiner", [True, False])
@pytest.mark.parametrize(
    ("order_by", "expected"),
    [
        (["day", "-price"], [("a", 1, 7.0), ("b", 2, math.nan)]),
        ("-day", [("a", 2, None), ("b", 2, 7.0)]),
        (["-price"], [("a", 1, 7.0), ("b", 2, math.nan)]),
        (["price", "day"], [("a", 1, 5.0), ("b", None, 1.0)]),
    ],
)
def test_several_columns_in_both_directions(order_by: Any, expected: list[Any], combiner: bool, scope: Any) -> None:
    """Nulls are last, and NaN is larger than all numbers, whatever the direction. No row is left out."""
    rows = pa.record_batch(dict(zip(("shop", "day", "price"), map(list, zip(*SALES, strict=True)), strict=True)))
    operator = TopN[Any](1, by="shop", order_by=order_by, combiner=combiner, scope=scope)
    found = run_operator(operator, {"input": [rows.slice(0, 2), rows.slice(2)]})["output"]
    assert repr(sorted((tuple(row.values()) for row in found), key=lambda row: row[0])) == repr(expected)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"order_by": []}, "order_by=[] must name columns"),
        ({"order_by": ["day", "-day"]}, "names the column 'day' twice"),
        ({"order_by": "day", "of": "price"}, "order_by says the order: leave out of and smallest"),
        ({"order_by": "day", "smallest": True}, "order_by says the order: leave out of and smallest"),
    ],
)
def test_an_order_that_is_none(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        TopN[Any](1, **given).check()


def test_an_order_is_of_columns() -> None:
    with pytest.raises(TypeError, match="takes the name of a column, or a list of them; got <function"):
        TopN[Any](1, order_by=lambda row: row)  # type: ignore[arg-type]  # refused while it runs, too
    assert "order_by" in TopN[Any](1, order_by="day").state_properties()
