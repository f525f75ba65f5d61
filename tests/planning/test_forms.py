from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, InputPort, NetRows, Operator, OutputPort, ReaderRecord
from dagflow.errors import NotSupported
from dagflow.planning.plan import Forms
from dagflow.planning.steps import make_plan
from operators import BlockReader, Console, FileSplitterInput, Filter, Map, RecordWriter

T = TypeVar("T")


def forms_of(*middle: Operator, reader: Any = None, sink: Operator | None = None) -> Forms:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    lines = dag.add_operator("lines", reader or BlockReader())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    port: Any = lines.messages
    for number, operator in enumerate([*middle, sink or RecordWriter("/tmp/out")]):
        added: Any = dag.add_operator(f"m{number}" if number < len(middle) else "sink", operator)
        dag.add_stream(f"s{number}", port, added.input)
        port = getattr(added, "output", None)
    return make_plan(dag).forms


def shown(forms: dict[Any, str]) -> dict[str, str]:
    return {str(port): form for port, form in forms.items() if not str(port).startswith(("files", "lines.blocks"))}


def test_batches_where_both_sides_take_them() -> None:
    forms = forms_of(Filter[Any](pc.field("record") != ""))
    assert shown(forms.emitted) == {"lines.messages": "batch", "m0.output": "batch"}
    assert shown(forms.handled) == {"m0.input": "batch", "sink.input": "batch"}
    assert forms.converted == {}


def test_records_for_functions() -> None:
    forms = forms_of(Filter(bool))
    assert shown(forms.emitted) == {"lines.messages": "record", "m0.output": "record"}
    assert shown(forms.handled) == {"m0.input": "stream", "sink.input": "stream"}
    assert forms.converted == {}


def test_a_sink_that_takes_no_batches_gets_records() -> None:
    forms = forms_of(sink=Console())
    assert shown(forms.emitted) == {"lines.messages": "record"}
    assert forms.converted == {}


def test_conversions_stand_only_where_one_side_cannot() -> None:
    forms = forms_of(Filter[Any](pc.field("record") != ""), Map(lambda line: line.record), Filter[str](pc.field("value") != ""))
    assert shown(forms.converted) == {"m1.input": "batches → records", "m2.input": "records → batches"}


def test_a_reader_that_converts_one_by_one_emits_records() -> None:
    forms = forms_of(Filter[ReaderRecord[int]](pc.field("record") > 1), reader=BlockReader(int), sink=Console())
    assert shown(forms.emitted)["lines.messages"] == "record"
    assert shown(forms.converted) == {"m0.input": "records → batches", "sink.input": "batches → records"}


@attrs.define
class Objects(Operator):
    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[complex]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None: ...


def test_types_without_an_arrow_form_cannot_become_batches() -> None:
    with pytest.raises(NotSupported, match=r"records of complex cannot become batches on the way from m0\.output to m1\.input"):
        forms_of(Objects(), Filter[complex](pc.field("value") != 0), sink=Console())
    assert forms_of(Objects(), Filter(bool), sink=Console()).converted == {}


@attrs.define
class Nets(Operator, Generic[T]):
    input = InputPort[ReaderRecord[str]](partition_by="record")
    output = OutputPort[T]()

    @input.net
    def add(self, net: NetRows[Any]) -> None: ...


def test_net_changes_come_as_batches_and_what_follows_has_the_form_that_fits() -> None:
    forms = forms_of(Nets[str](), Filter[str](pc.field("value") != ""), sink=Console())
    assert shown(forms.handled)["m0.input"] == "net"
    assert (shown(forms.emitted)["lines.messages"], shown(forms.emitted)["m0.output"]) == ("batch", "batch")
    assert shown(forms_of(Nets[complex](), sink=Console()).emitted)["m0.output"] == "record"
    with pytest.raises(NotSupported, match=r"records of complex cannot become batches on the way from m0\.output to m1\.input"):
        forms_of(Objects(), NetsObjects(), sink=Console())


@attrs.define
class NetsObjects(Operator):
    input = InputPort[complex](partition_by="*")
    output = OutputPort[str]()

    @input.net
    def add(self, net: NetRows[Any]) -> None: ...
