from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, ReaderRecord
from dagflow.errors import NotPicklable
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
from dagflow.runtime.task.compile import driver_program, loaded, pickled, stage_program
from operators import BlockReader, FileSplitterInput, Filter


@attrs.define
class Mine(Operator):
    """An operator of a module that executors do not have."""

    held: Any = None
    input = InputPort[ReaderRecord[str]]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None: ...


def plan_with(held: Any) -> Plan:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    lines = dag.add_operator("lines", BlockReader())
    keep = dag.add_operator("keep", Filter(lambda line: line.record != ""))
    mine = dag.add_operator("mine", Mine(held))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, keep.input)
    dag.add_stream("kept", keep.output, mine.input)
    return make_plan(dag)


def test_what_travels_needs_no_module_of_the_user(tmp_path: Path) -> None:
    plan = plan_with({"x": 1})
    path = tmp_path / "program"
    path.write_bytes(pickled(stage_program(plan, "s0"), plan))
    code = (
        "import pickle, sys; program = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print([type(o.operator).__name__ for o in program.operators], 'tests.runtime.task.test_compile' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['BlockReader', 'Filter', 'Mine'] False"


def test_what_stays_here_is_of_the_same_classes_and_changes_none() -> None:
    plan = plan_with(None)
    before = dict(vars(Mine))
    for program in (stage_program(plan, "s0"), driver_program(plan)):
        found = loaded(pickled(program, plan, travels=False))
        assert [type(o.operator) for o in found.operators] == [type(o.operator) for o in program.operators]
    assert dict(vars(Mine)) == before


def test_what_cannot_travel_is_named_with_operator_and_property() -> None:
    plan = plan_with(threading.Lock())
    with pytest.raises(NotPicklable) as caught:
        pickled(stage_program(plan, "s0"), plan)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("operator 'mine' cannot be sent to the tasks: its property 'held' cannot be pickled (TypeError: ")
    assert lines[1].startswith("  tests/runtime/task/test_compile.py:")
    assert lines[2].endswith("help: make connections, locks and open files in setup(), which each task calls")


def test_the_drivers_program_collects_what_crosses() -> None:
    program = driver_program(plan_with(None))
    assert [item.name for item in program.operators] == ["files", "lines.blocks_metadata_input"]
    assert program.operators[0].outputs["blocks_metadata_output"].sinks == (("lines.blocks_metadata_input", "input"),)
    assert pickle.loads(pickle.dumps(program.operators[1].inputs)) == program.operators[1].inputs
