"""Modules, branches by predicate, their union, and samples: the same on both runners."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, Module, ProxyInputPort, ProxyOutputPort, ReaderRecord
from dagflow.testing import Collector, run_dag, run_operator
from operators import FileInput, Map, RecordWriter, Sample, Split, Union
from tests.conformance.apps import lines_in


def upper(line: ReaderRecord[str]) -> str:
    return line.record.upper()


@attrs.define
class Shouting(Module):
    """Lines that are long become loud; the others stay as they are."""

    vectorised: bool
    least: int = 4

    input = ProxyInputPort[ReaderRecord[str]]()
    output = ProxyOutputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        least = self.least
        by_function = Split[ReaderRecord[str]]({"long": lambda line: len(line.record) >= least})
        by_expression = Split[ReaderRecord[str]]({"long": pc.utf8_length(pc.field("record")) >= least})
        split = dag.add_operator("split", by_expression if self.vectorised else by_function)
        loud = dag.add_operator("loud", Map(upper))
        quiet = dag.add_operator("quiet", Map[ReaderRecord[str], str](pc.field("record")))
        both = dag.add_operator("both", Union[str](2))
        dag.add_stream("long", split.outputs["long"], loud.input)
        dag.add_stream("rest", split.rest, quiet.input)
        dag.add_stream("louds", loud.output, both.inputs[0])
        dag.add_stream("quiets", quiet.output, both.inputs[1])
        self.input.set(split.input)
        self.output.set(both.output)


@pytest.mark.parametrize("vectorised", [True, False])
def test_a_module_of_branches(runner: str, tmp_path: Path, vectorised: bool) -> None:
    (tmp_path / "in").mkdir()
    words = ["one", "three", "to", "question", "", "four"] * 20
    (tmp_path / "in" / "a.txt").write_text("".join(f"{word}\n" for word in words))

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(tmp_path / "in"), block_size=50))
        shouting = dag.add_module("shouting", Shouting(vectorised))
        writer = dag.add_operator("writer", RecordWriter(str(tmp_path / "out")))
        dag.add_stream("lines", files.messages, shouting.input)
        dag.add_stream("all", shouting.output, writer.input)

    report = run_dag(populate_dag, {"operator.shouting.least": 5}, runner=runner)
    assert lines_in(tmp_path / "out") == Counter((w.upper() if len(w) >= 5 else w).encode() for w in words)
    assert report.operators["shouting.both"].records_in == len(words)
    assert report.operators["shouting.loud"].records_in == 40


def test_a_sample_is_the_same_everywhere(runner: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [ReaderRecord(0, 3 * n, f"{n % 20:2d}") for n in range(500)]
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line.record}\n" for line in lines))
    found = Collector[ReaderRecord[str]]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(tmp_path / "in"), block_size=100))
        kept = dag.add_operator("kept", Sample[ReaderRecord[str]](0.1, seed=3))
        dag.add_operator("found", found)
        dag.add_stream("lines", files.messages, kept.input)
        dag.add_stream("some", kept.output, found.input)

    run_dag(populate_dag, runner=runner)
    wanted = [line.position for line in run_operator(Sample(0.1, seed=3), {"input": lines})["output"]]
    assert sorted(line.position for line in found.records) == wanted
    assert wanted[:3] == [24, 144, 159]  # nor does it depend on versions or machines
