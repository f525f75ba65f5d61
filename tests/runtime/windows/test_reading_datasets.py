"""The files that are read of datasets, and those that never get into them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, OutputPort, State, launch
from dagflow.errors import ObjectDamaged, ObjectMissing, StateMistyped
from dagflow.ledger import read_dataset
from dagflow.runtime.run_folder.window_log import WindowLog
from operators import RecordWriter
from tests.runtime.windows.test_datasets import WINDOWS, Application, Spread, Windows, rows, run


class TestReading:
    def test_lines_are_lines_whatever_the_files_are_called(self, tmp_path: Path) -> None:
        run(Application(WINDOWS, [str(tmp_path / "out")], suffix=".csv"))
        assert rows(tmp_path / "out") == list("abcdef")

    def test_files_that_have_changed_are_no_data(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]))
        file = next(out.glob("part-000000*"))
        content = file.read_bytes()
        file.write_bytes(content + b"more\n")
        with pytest.raises(ObjectDamaged, match="bytes"):
            read_dataset(out)
        file.unlink()
        with pytest.raises(ObjectMissing):
            read_dataset(out)
        file.write_bytes(content)
        assert rows(out) == list("abcdef")

    @pytest.mark.parametrize("as_of", [True, "2026-11-20", 5.0])
    def test_an_entry_or_a_time(self, tmp_path: Path, as_of: Any) -> None:
        with pytest.raises(TypeError, match="give the number of an entry"):
            read_dataset(str(tmp_path), as_of=as_of)


@attrs.define
class Careless(Spread):
    """Keeps a value that is not what it has declared."""

    input = InputPort[str]()
    output = OutputPort[str]()
    total = State(0, merge=sum)

    @input.process
    def each(self, line: str) -> None:
        self.total = "x"  # type: ignore[assignment]
        self.output.emit(line)


def test_a_state_of_another_type_is_refused_before_it_is_committed(tmp_path: Path) -> None:
    def populate(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", Windows(WINDOWS))
        spread = dag.add_operator("spread", Careless())
        out = dag.add_operator("out", RecordWriter[str](str(tmp_path / "out")))
        dag.add_stream("lines", source.output, spread.input)
        dag.add_stream("spread lines", spread.output, out.input)

    with pytest.raises(StateMistyped) as caught:
        launch(populate, runner="local", progress="none")
    assert str(caught.value) == (
        "State 'total' of operator 'spread' is declared as int, but it holds 'x'\n"
        "  help: assign values of that type, or declare what it may hold: State[int | None](…)"
    )
    assert WindowLog.open(str(tmp_path / "out" / "_dagflow"), False).windows("decision") == []
