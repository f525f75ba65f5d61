from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, ReaderRecord
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import FileInput, Sample
from tests.tiers import examples


def sample(records: list[Any], fraction: float = 0.5, **more: Any) -> list[Any]:
    return run_operator(Sample(fraction, **more), {"input": records})["output"]


def test_the_laws_of_operators() -> None:
    check_operator(Sample[str](0.5), st.text(max_size=3), max_examples=examples(50))
    check_operator(Sample[int](0.3, key=lambda n: n % 7), st.integers(0, 99), max_examples=examples(50))
    check_operator(Sample[int](0.3, key=pc.field("value")), st.integers(0, 99), max_examples=examples(50))
    check_operator(
        Sample[ReaderRecord[str]](0.5),
        st.builds(ReaderRecord, st.integers(0, 3), st.integers(0, 99), st.text(max_size=3)),
        max_examples=examples(50),
    )


KINDS = {
    "numbers": [f"{n}" for n in range(20_000)],
    "padded": [f"{n:012d}" for n in range(20_000)],
    "ints": list(range(0, 20_000 * 256, 256)),
    "small floats": [n / 1024 for n in range(20_000)],
    "lines": [ReaderRecord(1, 100 * n, "the same text") for n in range(20_000)],
    "powers": [1 << n for n in range(20_000 // 10)],
    "letters": ["a" * n for n in range(1, 3_000)],
}


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", list(KINDS))
def test_about_that_fraction_is_kept_of_records_of_any_kind(kind: str, seed: int, fraction: float) -> None:
    """Within five standard deviations of what independent draws would give."""
    records = KINDS[kind]
    spread = (len(records) * fraction * (1 - fraction)) ** 0.5
    assert abs(len(sample(records, fraction, seed=seed)) - len(records) * fraction) < 5 * spread


def test_samples_of_other_seeds_are_independent() -> None:
    """Of two halves, the common part is a quarter."""
    records = KINDS["padded"]
    one, other = set(sample(records, 0.5, seed=1)), set(sample(records, 0.5, seed=2))
    assert abs(len(one & other) - len(records) / 4) < 5 * (len(records) * 3 / 16) ** 0.5


@given(st.lists(st.integers(-9, 9)), st.integers(-3, 3))
def test_a_larger_sample_holds_the_smaller_ones(numbers: list[int], seed: int) -> None:
    small, large = sample(numbers, 0.3, seed=seed), sample(numbers, 0.6, seed=seed)
    assert not Counter(small) - Counter(large)
    assert sample(numbers, 0.0, seed=seed) == []
    assert sample(numbers, 1.0, seed=seed) == numbers


def test_all_of_a_key_or_none() -> None:
    visits = [(name, n) for n in range(20) for name in ("ann", "bob", "cy", "di", "eve")]
    found = Counter(name for name, _ in sample(visits, key=lambda visit: visit[0]))
    assert set(found.values()) == {20}
    assert 0 < len(found) < 5


def test_a_key_as_an_expression_does_what_a_function_does() -> None:
    numbers = list(range(500))
    with OperatorTask(Sample(0.4, key=pc.bit_wise_and(pc.field("value"), 63))) as task:
        task.give("input", pa.record_batch({"value": numbers}), "batch")
    assert task.emitted["output"] == sample(numbers, 0.4, key=lambda number: number & 63)


@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_fractions_that_are_none(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        Sample(fraction)


def test_records_that_are_no_plain_data_need_a_key() -> None:
    with pytest.raises(Exception, match="object is not plain data: name what counts with key="):
        sample([object()])


@pytest.mark.parametrize("block_size", [7, 100, 10_000])
def test_the_same_lines_whatever_the_cut_and_the_number_of_readers(tmp_path: Path, block_size: int) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).write_text("".join(f"{name} {n % 10}\n" for n in range(300)))
    found = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput([str(tmp_path / "in")], block_size=block_size, min_readers=3))
        kept = dag.add_operator("kept", Sample[ReaderRecord[str]](0.2))
        dag.add_operator("found", found)
        dag.add_stream("lines", files.messages, kept.input)
        dag.add_stream("some", kept.output, found.input)

    run_dag(populate_dag)
    lines = [ReaderRecord(0, 4 * n, f"{name} {n % 10}") for name in "ab" for n in range(300)]
    wanted = Counter((line.position, line.record) for line in sample(lines, 0.2))
    assert Counter((line.position, line.record) for line in found.records) == wanted
