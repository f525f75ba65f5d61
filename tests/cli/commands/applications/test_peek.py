"""`dagflow peek`: the records of a port as a table, as blocks and as JSON; the list of ports; what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.lineage.peek import PeekedRecord, PeekedRecords
from dagflow.model.types.records import ReaderRecord
from dagflow.render.peek import Peek, peek_text
from dagflow.render.style import Style
from tests.cli.conftest import LINE_FILTER, Answer
from tests.test_logs import bare_root

Dagflow = Callable[..., Answer]
GIVEN = ["-D", "input=logs", "-D", "output=out"]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("one\n.hidden\nthree\n")


def test_records_as_a_table(dagflow: Dagflow, tmp_path: Path) -> None:
    answer = dagflow("peek", LINE_FILTER, "keep.output", *GIVEN)
    assert answer == Answer(
        0,
        "keep.output  ReaderRecord[str]  all 2 records of logs/a.log\nposition  record\n       0  one\n      12  three\n",
        "",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert "first 2 records" in dagflow("peek", LINE_FILTER, "reader.messages", "-n", "2", *GIVEN).out


def test_records_as_json(dagflow: Dagflow, tmp_path: Path) -> None:
    answer = json.loads(dagflow("peek", LINE_FILTER, "writer.input", "--json", "-n1", *GIVEN).out)
    records = answer.pop("records")
    path, record = str(tmp_path / "logs" / "a.log"), {"block_id": 0, "position": 0, "record": "one"}
    assert records == [{"window": 0, "path": path, "position": 0, "retracted": False, "record": record}]
    assert answer == {
        "v": 1,
        "ok": True,
        "application": "line_filter",
        "port": "writer.input",
        "type": "ReaderRecord[str]",
        "all": False,
        "remarks": [],
        "problems": [],
    }


def test_without_a_port_the_ports_are_listed(dagflow: Dagflow) -> None:
    answer = dagflow("peek", LINE_FILTER, *GIVEN)
    assert answer.out.splitlines() == [
        "line_filter: 3 ports to peek at",
        "  splitter.blocks_metadata_output  FileBlockMetadata  → reader.blocks_metadata_input",
        "  reader.messages                  ReaderRecord[str]  → keep.input",
        "  keep.output                      ReaderRecord[str]  → writer.input",
        "",
        f"To see records: dagflow peek {LINE_FILTER} keep.output, with the same settings.",
    ]
    ports = json.loads(dagflow("peek", LINE_FILTER, "--json", *GIVEN).out)["ports"]
    assert ports[1] == {
        "port": "reader.messages",
        "type": "ReaderRecord[str]",
        "stream": "reader.messages",
        "sinks": ["keep.input"],
    }


def test_an_unknown_port(dagflow: Dagflow) -> None:
    answer = dagflow("peek", LINE_FILTER, "keep.ouput", *GIVEN)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "error[DF017] there is no port 'keep.ouput'. Did you mean 'keep.output'?\n"


APP = """
from operators import *

def number(line):
    return int(line.record)

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["numbers"]))
    lines = dag.add_operator("lines", BlockReader())
    numbers = dag.add_operator("numbers", Map(number))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, numbers.input)
    dag.add_stream("numbers", numbers.output, dag.add_operator("show", Console()).input)
"""


def test_an_error_of_user_code_stands_below_the_records_before_it(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "numbers").write_text("1\n2\nthree\n")
    answer = dagflow("peek", "app.py", "numbers")
    assert answer.code == 1
    assert [line.split() for line in answer.out.splitlines()[1:]] == [["position", "value"], ["0", "1"], ["2", "2"]]
    assert answer.err.startswith("error[DF310] operator 'numbers' failed in add_all()") or "ValueError" in answer.err
    assert "numbers, position 4" in answer.err
    assert "app.py:5 in number" in answer.err
    failed = json.loads(dagflow("peek", "app.py", "numbers", "--json").out)
    assert (failed["ok"], len(failed["records"]), failed["problems"][0]["fields"]["operator"]) == (False, 2, "numbers")


def peeked(*records: object, **more: object) -> PeekedRecords:
    places = [PeekedRecord(record=each, path=f"{number}.txt", position=number) for number, each in enumerate(records)]
    return PeekedRecords(application="a", port="b.output", type="Any", records=tuple(places), **more)  # type: ignore[arg-type]


def test_records_stand_below_each_other_where_their_columns_do_not_fit() -> None:
    wide = peeked({f"column{number}": number for number in range(9)})
    assert peek_text(wide, Style(width=80)).splitlines()[1:4] == ["record 1  0", "  column0  0", "  column1  1"]
    assert peek_text(wide).splitlines()[1].split()[:2] == ["position", "column0"]


def test_records_of_several_files_and_shapes() -> None:
    found = peeked(ReaderRecord(0, 0, {"a": 1}), {"b": b"x\xff"}, remarks=("something is left out",))
    assert peek_text(found).splitlines()[1:] == [
        "position  a  b",
        " 0.txt:0  1",
        " 1.txt:1     x\\xff",
        "note: something is left out",
    ]
    assert Peek(found).as_json()["records"][1]["record"] == {"b": {"base64": "eP8="}}
    assert len(Peek(found)) == 2


LOGS = """
import logging

from dagflow import DAG
from operators import BlockReader, FileSplitterInput, Map, RecordWriter


def warned(line):
    logging.getLogger("mine").warning("at %s", line.position)
    return line.record


def populate_dag(dag: DAG, conf) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    mine = dag.add_operator("mine", Map(warned))
    sink = dag.add_operator("sink", RecordWriter("out"))
    dag.add_stream("a", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("b", lines.messages, mine.input)
    dag.add_stream("c", mine.output, sink.input)
"""


@bare_root()
def test_operators_log_as_they_do_in_a_launch(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "logging_app.py").write_text(LOGS)
    answer = dagflow("peek", "logging_app.py", "mine.output", "-n1", "-D", "log_format=json")
    line = json.loads(answer.err.splitlines()[0])
    assert (line["logger"], line["message"], line["operator"], line["window"]) == ("mine", "at 0", "mine", 0)
    assert dagflow("peek", "logging_app.py", "mine.output", "-n1", "-D", "log_level=ERROR").err == ""
