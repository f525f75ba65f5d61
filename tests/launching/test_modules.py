"""Applications with modules from settings to a second launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, Module, ProxyInputPort, ReaderRecord, State
from dagflow.errors import BadValue, ConfigError, DagflowError, PlanMismatch, UnknownOperatorName, UnknownProperty
from dagflow.launching.build import build, examine
from dagflow.model.operator.base import Operator
from dagflow.model.operator.ports import InputPort
from dagflow.testing import Collector, run_dag
from operators import FileInput, Filter, RecordWriter


@attrs.define
class Counted(Operator):
    input = InputPort[ReaderRecord[str]]()
    count = State(0, merge=sum)

    @input.process
    def each(self, record: ReaderRecord[str]) -> None:
        self.count += 1

    def end_window(self) -> None:
        self.counted.append(self.count)

    def setup(self, context: Any) -> None:
        self.counted = COUNTED


COUNTED: list[int] = []


@attrs.define
class Kept(Module):
    """Writes lines that begin as is said, and counts them."""

    path: str
    prefix: str = ""
    broken: bool = False

    input = ProxyInputPort[ReaderRecord[str]]()

    def populate_dag(self, dag: DAG) -> None:
        if self.broken:
            raise KeyError("broken")
        keep = dag.add_operator("keep", Filter[ReaderRecord[str]](lambda line: line.record.startswith(self.prefix)))
        writer = dag.add_operator("writer", RecordWriter(self.path))
        count = dag.add_operator("count", Counted())
        dag.add_stream("kept", keep.output, writer.input, count.input)
        self.input.set(keep.input)


@pytest.fixture
def application(tmp_path: Path) -> Any:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\n.two\nthree\n")
    COUNTED.clear()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(tmp_path / "in")))
        kept = dag.add_module("kept", Kept(str(tmp_path / "out")))
        dag.add_stream("lines", files.messages, kept.input)

    return populate_dag


def texts(folder: Path) -> list[str]:
    return sorted(line for path in folder.glob("part-*") for line in path.read_text().split())


def test_a_second_launch_knows_it_again_and_goes_on(application: Any, tmp_path: Path) -> None:
    run_dag(application, {"operator.kept.prefix": "t"})
    (tmp_path / "in" / "b.txt").write_text("ten\n")
    report = run_dag(application, {"operator.kept.prefix": "t"})
    assert texts(tmp_path / "out") == ["ten", "three"]
    assert report.operators["files.splitter"].counters["blocks_planned"] == 1
    assert COUNTED == [1, 2]


def test_another_application_is_told_by_the_names_inside(application: Any, tmp_path: Path) -> None:
    run_dag(application)

    def other(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(tmp_path / "in")))
        writer = dag.add_operator("writer", RecordWriter(str(tmp_path / "out")))
        dag.add_stream("lines", files.messages, writer.input)

    with pytest.raises(PlanMismatch, match=r"operator kept\.keep is gone"):
        run_dag(other)


def test_settings_reach_modules_and_what_is_in_them(application: Any) -> None:
    made = build(
        application,
        definitions=["operator.kept.prefix=t", "operator.kept.writer.on_error=skip", "operator.*.on_error=route"],
        environment={"DAGFLOW_OPERATOR__FILES__READER__MAX_READERS": "3"},
    )
    assert list(made.dag.modules) == ["files", "kept"]
    assert made.expanded.modules["kept"].module.prefix == "t"  # type: ignore[attr-defined]
    assert made.expanded.operators["kept.writer"].operator.on_error == "skip"
    assert made.expanded.operators["kept.keep"].operator.on_error == "route"
    assert made.applied["kept"]["prefix"].origin == "-D"
    assert made.applied["kept.writer"]["on_error"].origin == "-D"


def test_a_port_of_a_module_hands_its_attributes_on(application: Any) -> None:
    made = build(application, definitions=["operator.kept.port.input.partition_parallel=true"])
    assert made.expanded.operators["kept.keep"].port_attributes == {"input": {"partition_parallel": True}}
    assert list(made.applied_ports) == ["kept.keep"]


@pytest.mark.parametrize(
    ("definition", "kind", "names"),
    [
        ("operator.kept.prefiks=t", UnknownProperty, ("kept", "prefiks")),
        ("operator.kept.writr.path=t", UnknownProperty, ("kept", "writr.path")),
        ("operator.kept.writer.paht=t", UnknownProperty, ("kept.writer", "paht")),
        ("operator.kept.partitioner=3", UnknownProperty, ("kept", "partitioner")),
        ("operator.files.scanner.recursif=no", UnknownProperty, ("files", "recursif")),
        ("operator.keep.prefix=t", UnknownOperatorName, (None, "keep")),
    ],
)
def test_what_cannot_be_set_is_told(application: Any, definition: str, kind: type, names: tuple[str | None, str]) -> None:
    with pytest.raises(ConfigError) as found:
        build(application, definitions=[definition])
    assert type(found.value) is kind
    assert (getattr(found.value, "operator", None), found.value.name) == names  # type: ignore[attr-defined]


def test_a_module_that_cannot_be_filled_is_told_once(application: Any) -> None:
    """Settings of the operators inside are not a mistake: they are missing because of the other one."""

    def problems(*definitions: str) -> list[DagflowError]:
        return list(examine(application, definitions=["operator.kept.writer.on_error=skip", *definitions])[2])

    assert [type(problem) for problem in problems("operator.kept.broken=perhaps")] == [BadValue]
    (problem,) = problems("operator.kept.broken=true")
    assert "module 'kept': Kept.populate_dag() failed: KeyError: 'broken'" in str(problem)


def test_errors_of_operators_inside_are_told_with_their_whole_names(application: Any, tmp_path: Path) -> None:
    lines = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(tmp_path / "in"), convert_to_record=int))
        dag.add_operator("lines", lines)
        dag.add_stream("numbers", files.messages, lines.input)

    with pytest.raises(DagflowError, match=r"files\.reader"):
        run_dag(populate_dag)
