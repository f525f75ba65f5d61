from __future__ import annotations

import re
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, OperatorContext, ReaderRecord, RejectLimit
from dagflow.errors import ExpectationFailed
from dagflow.testing import Collector, Window, check_operator, run_dag, run_operator
from operators import Expect, Map
from operators.transform.errors import ExpressionRefused
from tests.conformance.windows import InWindows
from tests.tiers import examples

NUMBERS = st.lists(st.integers(-3, 3), max_size=20)


def test_the_laws_hold() -> None:
    check_operator(Expect[int](lambda n: n > 0), st.integers(-3, 3), max_examples=examples(50))
    check_operator(Expect[int](pc.field("value") > 0), st.integers(-3, 3), max_examples=examples(50))


@given(NUMBERS)
def test_every_record_goes_to_one_port_in_all_forms(numbers: list[int]) -> None:
    expected = {True: [n for n in numbers if n > 0], False: [n for n in numbers if n <= 0]}
    batch = pa.record_batch([pa.array(numbers, pa.int64())], names=["value"])
    for operator, records, form in (
        (Expect[int](lambda n: n > 0, max_share=1.0), numbers, "record"),
        (Expect[int](lambda n: n > 0, max_share=1.0), numbers, "stream"),
        (Expect[int](pc.field("value") > 0, max_share=1.0), [batch], "batch"),
    ):
        emitted = run_operator(operator, {"input": records}, form=form)
        assert (emitted["output"], emitted["failed"]) == (expected[True], expected[False])
        assert emitted.skipped == len(expected[False])


def through(expect: Expect[Any], numbers: list[int], *, routed: bool) -> tuple[list[int], list[int], Any]:
    """Return the records of both ports in a run, and the figures of the operator."""
    passed, failed = Collector[int](), Collector[int]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", InWindows[int]([numbers]))
        check = dag.add_operator("check", expect)
        dag.add_operator("passed", passed)
        dag.add_stream("numbers", source.output, check.input)
        dag.add_stream("passed", check.output, passed.input)
        if routed:
            dag.add_operator("failed", failed)
            dag.add_stream("failed", check.failed, failed.input)

    report = run_dag(populate_dag)
    return passed.records, failed.records, report.operators["check"]


@pytest.mark.parametrize("predicate", [lambda n: n > 0, pc.field("value") > 0], ids=["function", "expression"])
def test_rejected_records_stay_unless_they_are_routed_or_dropped(predicate: Any) -> None:
    numbers = [1, -1, 2]
    *kept, figures = through(Expect[int](predicate, on_breach="warn"), numbers, routed=False)
    assert kept == [[1, -1, 2], []]
    assert figures.errors == 1
    assert figures.samples[0].endswith("(-1)")
    assert through(Expect[int](predicate, on_breach="warn", drop=True), numbers, routed=False)[:2] == ([1, 2], [])
    for drop in (False, True):
        assert through(Expect[int](predicate, on_breach="warn", drop=drop), numbers, routed=True)[:2] == ([1, 2], [-1])


def test_a_unit_test_breaches_the_limit_as_a_run_does() -> None:
    half = Expect[int](lambda n: n > 0, max_share=0.5, name="positive")
    assert run_operator(half, {"input": [1, -1]})["failed"] == [-1]
    with pytest.raises(ExpectationFailed, match=r"rejected 1 of 1 records.*positive"):
        run_operator(half, {"input": [Window([1, -1]), Window([-1])]})
    assert run_operator(attrs.evolve(half, on_breach="warn"), {"input": [-1]})["failed"] == [-1]
    with pytest.raises(ExpectationFailed, match="max_rejects"):
        run_operator(Map(int, on_error="skip", max_rejects=1), {"input": ["a", "b"]})


def test_null_is_rejected() -> None:
    batch = pa.record_batch([pa.array([1, None, 2])], names=["value"])
    emitted = run_operator(Expect(pc.field("value") > 0, max_share=1.0), {"input": [batch]}, form="batch")
    assert (emitted["output"], emitted["failed"]) == ([1, 2], [None])


def test_a_lambda_is_named_by_its_place() -> None:
    expect = Expect[int](lambda n: n > 0)
    (limit,) = expect.reject_limits()
    assert re.fullmatch(r"the lambda at .*test_expect\.py:\d+", limit.name)


def test_samples_name_the_expectation_and_show_the_record() -> None:
    figures = through(Expect(lambda n: n > 0, max_share=1.0, name="positive"), [4, -7], routed=False)[2]
    assert figures.samples == ["expected positive (-7)"]


def test_samples_of_batches_are_records() -> None:
    rows = pa.record_batch({"block_id": [1, 1], "position": [0, 2], "record": ["a", ""]})
    emitted = run_operator(Expect(pc.field("record") != "", max_share=1.0), {"input": [rows]}, form="batch")
    assert emitted["failed"] == [ReaderRecord(1, 2, "")]


def test_values_that_python_cannot_hold_are_counted_without_samples() -> None:
    dates = pa.record_batch({"at": pa.array([2**62], pa.timestamp("s"))})
    context = OperatorContext()
    seen: list[tuple[str, Any, int, Any]] = []
    context.services.on_reject = lambda *rejected: seen.append(rejected)
    operator = Expect(pc.field("at").is_null(), name="no time")
    operator.setup(context)
    operator.output.emit_batch = lambda batch: None
    operator.check_batch(dates)
    assert seen == [("expected no time", [], 1, [0])]


def test_the_limit_is_named_by_the_predicate() -> None:
    def positive(number: int) -> bool:
        return number > 0

    name = Expect(positive).reject_limits()[0].name
    assert name.startswith("positive() (")
    assert Expect(pc.field("value") > 0, max_share=0.5, on_breach="warn", name="").reject_limits() == [
        RejectLimit(name="(value > 0)", max_share=0.5, on_breach="warn", property="max_share")
    ]


@pytest.mark.parametrize("share", [-0.1, 1.1, "1%", True, None, float("nan")])
def test_what_is_not_a_share(share: Any) -> None:
    with pytest.raises(ValueError, match="must be a share from 0 to 1"):
        Expect(bool, max_share=share)


def test_an_expression_that_does_not_fit() -> None:
    with pytest.raises(ExpressionRefused, match="Expect: there is no column 'age'"):
        run_operator(Expect(pc.field("age") > 0), {"input": [pa.record_batch({"value": [1]})]}, form="batch")
