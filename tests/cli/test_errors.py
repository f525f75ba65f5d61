"""Users' mistakes: golden messages, each with its exit code."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import LINE_FILTER, Answer
from tests.golden.compare import Golden

Dagflow = Callable[..., Answer]
Write = Callable[..., None]

HEAD = """
from dagflow import DAG
from operators import BlockReader, Console, FileSplitterInput, Filter, Map, RecordWriter

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
"""
WRITER = """
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("text", lines.messages, writer.input)
"""
GIVEN = ["-D", "input=logs", "-D", "output=out"]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    """The input, which `validate` looks for."""
    for name in ("logs", "a", "it's"):
        (tmp_path / name).mkdir()


APPLICATIONS = {
    "port_type": HEAD
    + """
    def twice(number: int) -> int:
        return 2 * number
    doubled = dag.add_operator("doubled", Map(twice))
    show = dag.add_operator("show", Console())
    dag.add_stream("text", lines.messages, doubled.input)
    dag.add_stream("all", doubled.output, show.input)
""",
    "unconnected": HEAD
    + """
    keep = dag.add_operator("keep", Filter(bool))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("kept", keep.output, writer.input)
""",
    "unconnected_input": HEAD.replace("import DAG", "import DAG, InputPort, Operator").replace(
        "def populate_dag",
        """class Join(Operator):
    left = InputPort[object]()
    right = InputPort[object]()

    @left.process
    def on_left(self, record): ...

    @right.process
    def on_right(self, record): ...

def populate_dag""",
    )
    + """
    join = dag.add_operator("join", Join())
    dag.add_stream("text", lines.messages, join.left)
""",
    "cycle": HEAD
    + """
    one = dag.add_operator("one", Map(str))
    two = dag.add_operator("two", Map(str))
    dag.add_stream("there", one.output, two.input)
    dag.add_stream("back", two.output, one.input)
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("text", lines.messages, writer.input)
""",
    "column_needed": """
from dagflow import DAG
from operators import Count, CsvFormat, FileSplitterInput, Map, ParquetWriter, RecordWriter, ScanReader

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    sales = dag.add_operator("sales", ScanReader(CsvFormat(), columns=["country", "price", "filename"]))
    dag.add_stream("blocks", files.blocks_metadata_output, sales.blocks_metadata_input)
    writer = dag.add_operator("writer", ParquetWriter("out", partition_columns=["year", "contry"]))
    count = dag.add_operator("count", Count(by="contry"))
    text = dag.add_operator("text", Map(str))
    told = dag.add_operator("told", RecordWriter("told"))
    dag.add_stream("sales", sales.batches, writer.input, count.input)
    dag.add_stream("counts", count.output, text.input)
    dag.add_stream("texts", text.output, told.input)
""",
    "readers": (HEAD + WRITER).replace("BlockReader()", "BlockReader(min_readers=9, max_readers=4)"),
    "block_size": (HEAD + WRITER).replace('files=["logs"]', 'files=["logs"], block_size=0'),
    "regular_expression": (HEAD + WRITER)
    .replace("import BlockReader,", "import TimeBasedDirectoryScanner, BlockReader,")
    .replace('files=["logs"]', 'files=["logs"], scanner=TimeBasedDirectoryScanner(file_pattern_regular_exp="*.log")'),
    "several": HEAD
    + """
    dag.add_operator("files", Console())
    show = dag.add_operator("show", Console())
    dag.add_stream("blocks", lines.messages, show.input)
    dag.add_operator("lonely", Filter(bool))
""",
    "unpicklable": (HEAD + WRITER).replace("def populate_dag", "import threading\nLOCK = threading.Lock()\n\ndef populate_dag")
    + """
    guarded = dag.add_operator("guarded", Filter(lambda record, lock=LOCK: lock.locked()))
    dag.add_stream("bad", lines.errors, guarded.input)
""",
    "state_without_merge": (HEAD + WRITER)
    .replace("import DAG", "import DAG, InputPort, Operator, State")
    .replace(
        "def populate_dag",
        """class Counted(Operator):
    input = InputPort[object]()
    total = State[dict[str, int]](factory=dict)
    count = State(0)

    @input.process
    def each(self, record):
        self.count += 1

def populate_dag""",
    )
    .replace(", writer.input)", ", writer.input, dag.add_operator('counted', Counted()).input)"),
    "broken": "import nowhere_to_be_found\n",
    "raises": """
def populate_dag(dag, conf):
    size = {"small": 1}
    return size["large"]
""",
    "no_populate_dag": "def populate(dag, conf): ...\n",
    "empty": "def populate_dag(dag, conf): ...\n",
}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_wrong_application(dagflow: Dagflow, write: Write, golden: Golden, name: str) -> None:
    write("app.py", APPLICATIONS[name])
    answer = dagflow("validate", ".")
    assert answer.code == 2
    assert answer.out == ""
    golden(f"error_{name}.txt", answer.err)
    assert dagflow("launch", ".", "--runner", "local").err == answer.err  # found before anything runs
    assert not Path("out").exists()


COMMAND_LINES = {
    "unknown_setting": ["-D", "inptu=logs", "-D", "output=out"],
    "missing_settings": [],
    "unknown_operator": [*GIVEN, "-D", "operator.raeder.max_readers=3"],
    "unknown_property": [*GIVEN, "-D", "operator.reader.max_reader=3"],
    "unknown_port": [*GIVEN, "-D", "operator.keep.port.inptu.partition_parallel=true"],
    "set_readers": [*GIVEN, "-D", "operator.reader.min_readers=9", "-D", "operator.reader.max_readers=4"],
    "set_block_size": [*GIVEN, "-D", "operator.splitter.block_size=0"],
    "set_regular_expression": [*GIVEN, "-D", "operator.splitter.scanner.file_pattern_regular_exp=*.log"],
    "wrong_runner": [*GIVEN, "--runner", "sparc"],
    "wrong_window": [*GIVEN, "--window", "soon"],
    "wrong_definition": [*GIVEN, "-D", "prefix"],
    "all_at_once": ["-D", "inptu=logs", "--runner", "sparc", "-D", "run.windows_in_flight=0"],
    "wrong_files": [*GIVEN, "--conf", "nowhere.toml", "-D", "prefix"],
    "once_continuous": [*GIVEN, "--once", "--continuous"],
    "two_runners": [*GIVEN, "--runner", "local", "--runner", "spark", "-D", "inptu=logs"],
    "local_master": [*GIVEN, "--runner", "local", "--master", "local[2]", "-D", "spark.remote=sc://there"],
    "slots_on_spark": [*GIVEN, "--slots", "3"],
    "two_inputs": ["-D", "input=a", "-D", "input=it's", "-D", "output=out"],
    "nearly_given": ["-D", "input", "-D", "output=out", "--window", "soon", "-D", "prefxi=#"],
    "unread_file": ["--conf", "nowhere.toml", "-D", "prefxi=#", "--runner", "sparc"],
    "properties_at_once": [*GIVEN, "-D", "operator.reader.max_reader=3", "-D", "operator.splitter.block_size=big"],
}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_wrong_command_line(dagflow: Dagflow, golden: Golden, name: str) -> None:
    answer = dagflow("validate", LINE_FILTER, *COMMAND_LINES[name])
    assert answer.code == 2
    assert answer.out == ""
    golden(f"error_{name}.txt", answer.err)


def test_wrong_properties_and_a_wrong_dag_are_told_together(dagflow: Dagflow, write: Write) -> None:
    write("app.py", APPLICATIONS["several"])
    answer = dagflow("validate", ".", "-D", "operator.lines.max_reader=1")
    assert re.findall(r"error\[(DF\d+)\]", answer.err) == ["DF203", "DF001", "DF001", "DF015", "DF015"]


def test_a_wrong_command_line_hides_nothing_of_the_dag(dagflow: Dagflow, write: Write) -> None:
    write("app.py", APPLICATIONS["several"])
    answer = dagflow("validate", ".", "-D", "nonsense", "-D", "operator.lines.max_reader=1", "--window", "soon")
    assert re.findall(r"error\[(DF\d+)\]", answer.err) == ["DF211", "DF206", "DF203", "DF001", "DF001", "DF015", "DF015"]
    assert answer.code == 2
    write("app.py", APPLICATIONS["raises"])
    for command in ("validate", "config"):
        answer = dagflow(command, ".", "-D", "nonsense", "--window", "soon", "--fresh", "--no-fresh")
        assert re.findall(r"(?:error|\d\. )\[(DF\d+)\]", answer.err) == ["DF208", "DF211", "DF206", "DF252"], command
    answer = dagflow("validate", "nowhere", "-D", "nonsense")
    assert re.findall(r"error\[(DF\d+)\]", answer.err) == ["DF251", "DF211"]


@pytest.mark.parametrize(
    ("path", "name"), [("nowhere", "no_application"), ("empty_folder", "no_app_py"), ("app.py:populate_dga", "no_name")]
)
def test_no_such_application(dagflow: Dagflow, write: Write, golden: Golden, path: str, name: str) -> None:
    write("app.py", HEAD + WRITER)
    Path("empty_folder").mkdir()
    answer = dagflow("validate", path)
    assert answer.code == 2
    golden(f"error_{name}.txt", answer.err)


def run(dagflow: Dagflow, *more: str) -> Answer:
    return dagflow("launch", ".", "--runner", "local", "--progress", "none", *more)


def test_a_missing_path(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("app.py", HEAD + WRITER)
    Path("logs").rmdir()
    write("log/a.txt", "one\n")
    answer = run(dagflow)
    assert answer.code == 2
    golden("error_missing_path.txt", answer.err)


def test_an_exception_in_user_code(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("logs/a.txt", "1\n2\nthree\n4\n")
    write(
        "numbers.py",
        """
        def parse(text):
            return int(text)
        """,
    )
    write(
        "app.py",
        HEAD.replace(
            "def populate_dag",
            "from numbers_of_mine import parse\n\ndef square(record):\n    return parse(record.record) ** 2\n\ndef populate_dag",
        )
        + """
    squared = dag.add_operator("squared", Map(square))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("text", lines.messages, squared.input)
    dag.add_stream("all", squared.output, writer.input)
""",
    )
    os.rename("numbers.py", "numbers_of_mine.py")
    answer = run(dagflow)
    assert answer.code == 1
    assert ": failed\n  windows  0\n" in answer.out
    golden("error_user_code.txt", answer.err)


def test_an_exception_in_an_input_operator(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write(
        "app.py",
        """
        from dagflow import InputOperator, OutputPort
        from operators import Console

        class Source(InputOperator):
            output = OutputPort[int]()

            def emit_tuples(self):
                self.output.emit(1 // 0)

        def populate_dag(dag, conf):
            source = dag.add_operator("source", Source())
            show = dag.add_operator("show", Console())
            dag.add_stream("numbers", source.output, show.input)
        """,
    )
    answer = run(dagflow)
    assert answer.code == 1
    assert ": failed\n  windows  0\n" in answer.out
    golden("error_input_operator.txt", answer.err)


def test_text_that_is_no_utf_8(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("app.py", HEAD + WRITER)
    Path("logs/a.txt").write_bytes(b"one\ncaf\xe9\n")
    answer = run(dagflow)
    assert answer.code == 1
    golden("error_not_utf_8.txt", answer.err)


def test_a_record_that_is_too_long(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("app.py", HEAD + WRITER)
    write("logs/a.txt", "short\n" + "x" * 100 + "\n")
    answer = run(dagflow, "-D", "operator.lines.reader_context.max_record_bytes=50")
    assert answer.code == 1
    golden("error_record_too_long.txt", answer.err)
    given = re.findall(r"-D (\S+)", answer.err)
    assert run(dagflow, "-D", *given).code == 0  # what the message says can be pasted


def test_what_messages_say_of_settings_can_be_pasted(dagflow: Dagflow, write: Write) -> None:
    write("app.py", (HEAD + WRITER).replace('"lines", BlockReader', '"all lines", BlockReader'))
    Path("logs/a.txt").write_bytes(b"one\ncaf\xe9\n")
    shown = re.findall(r"\((-D .*?)[,)]", run(dagflow).err)
    assert len(shown) == 2
    for text in shown:
        assert run(dagflow, *shlex.split(text), "--fresh").code == 0


def test_an_output_folder_with_foreign_files(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("app.py", HEAD + WRITER)
    write("logs/a.txt", "one\n")
    write("out/thesis.txt", "do not touch\n")
    answer = run(dagflow)
    assert answer.code == 2
    golden("error_foreign_files.txt", answer.err)


def test_an_output_folder_below_a_file(dagflow: Dagflow, write: Write, golden: Golden) -> None:
    write("app.py", (HEAD + WRITER).replace('"out"', '"logs/a.txt/out"'))
    write("logs/a.txt", "one\n")
    answer = run(dagflow)
    assert answer.code == 3
    golden("error_output_below_a_file.txt", answer.err)


def test_an_output_that_is_a_file(dagflow: Dagflow, write: Write) -> None:
    write("app.py", (HEAD + WRITER).replace('"out"', '"taken"'))
    write("logs/a.txt", "one\n")
    write("taken", "a file\n")
    answer = run(dagflow)
    assert answer.code == 3
    assert "taken: it is a file, not a folder, while making the output folder" in answer.err
    assert "dagflow report" not in answer.out, "there is nothing to report of a launch that was refused"
    assert dagflow("validate", ".").err == answer.err


MAPPED = """
    words = dag.add_operator("words", Map(FUNCTION))
    dag.add_stream("text", lines.messages, words.input)
    dag.add_stream("out", words.output, dag.add_operator("sink", RecordWriter("out")).input)
"""


@pytest.mark.parametrize("function", ["lambda: 3", "lambda line, other: 3", "str.upper"])
def test_a_function_that_cannot_take_the_record(dagflow: Dagflow, write: Write, function: str) -> None:
    write("app.py", HEAD + MAPPED.replace("FUNCTION", function))
    write("logs/a.txt", "one\n")
    answer = run(dagflow)
    assert answer.code == 1
    assert "help: the function was called with one argument, and did not begin" in answer.err
    assert "on_error=skip" not in answer.err


def test_a_function_that_returns_nothing(dagflow: Dagflow, write: Write) -> None:
    write("app.py", HEAD + MAPPED.replace("FUNCTION", "lambda line: None"))
    write("logs/a.txt", "one\n")
    answer = run(dagflow)
    assert answer.code == 1
    told = answer.err[answer.err.index("error[DF334]") :]
    assert "  operator 'sink' in write_all() of port 'input', window 0\n  source " in told
    assert "logs/a.txt" in told
    assert told.rstrip().endswith("help: a function before it returns None: let it return the record that is to be written")


@pytest.mark.skipif(not os.path.isdir("/proc/sys"), reason="needs a folder that even root cannot write to")
def test_an_output_folder_that_cannot_be_written_to(dagflow: Dagflow, write: Write) -> None:
    write("app.py", (HEAD + WRITER).replace('"out"', '"/proc/sys/out"'))
    write("logs/a.txt", "one\n")
    answer = run(dagflow)
    assert answer.code == 3
    assert re.match(r"error\[DF41\d\] /proc/sys/out: .*, while making the output folder", answer.err)


def test_an_application_that_ends_python(dagflow: Dagflow, write: Write) -> None:
    write("app.py", "raise SystemExit(0)")
    answer = dagflow("validate", ".")
    assert answer == Answer(1, "", "error: the application called sys.exit(0)\n")


@pytest.mark.parametrize("form", ["operators/__init__.py", "operators.py"])
def test_a_folder_of_the_user_that_hides_the_library(
    begin: Callable[..., object], write: Write, golden: Golden, form: str
) -> None:
    write("app.py", HEAD + WRITER)
    write(form, "MINE = 1\n")
    process = begin("validate", ".")
    _, err = process.communicate(timeout=60)  # type: ignore[attr-defined]
    assert process.returncode == 2  # type: ignore[attr-defined]
    golden(f"error_shadowed_{form.replace('/', '_').removesuffix('.py')}.txt", err)


HIDING = {
    "lacks_a_name": ("colorsys.py", "MINE = 1\n", "from colorsys import rgb_to_hsv\n"),  # which nothing of ours loads
    "lacks_an_attribute": ("wave/__init__.py", "MINE = 1\n", "import wave\n\nwave.Error\n"),
    "found_too_late": ("types.py", "class Mine: ...\n", "from types import Mine\n"),
}


@pytest.mark.parametrize("name", HIDING)
def test_a_module_of_the_user_that_has_the_name_of_a_standard_one(
    begin: Callable[..., object], write: Write, golden: Golden, name: str
) -> None:
    path, text, more = HIDING[name]
    write("application/app.py", more + HEAD + WRITER)
    write(f"application/{path}", text)
    process = begin("validate", "application")
    _, err = process.communicate(timeout=60)  # type: ignore[attr-defined]
    assert process.returncode == 2, err  # type: ignore[attr-defined]
    golden(f"error_hidden_{name}.txt", err)


def test_a_standard_module_may_also_be_missed_later(
    dagflow: Dagflow, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("planning") from ImportError("cannot import name 'Queue' from 'queue' (somewhere)", name="queue")

    write("queue.py", "MINE = 1\n")
    monkeypatch.setattr("dagflow.cli.prepare.examine", broken)
    assert dagflow("validate", LINE_FILTER).code == 1
    monkeypatch.syspath_prepend(str(tmp_path))
    answer = dagflow("validate", LINE_FILTER)
    assert answer.code == 2
    assert answer.err.startswith("error[DF260] queue.py and Python's own module 'queue' hide each other: ImportError: cannot")


def test_a_module_of_a_standard_name_that_nobody_misses_does_no_harm(begin: Callable[..., object], write: Write) -> None:
    write("application/app.py", HEAD + WRITER)
    write("application/antigravity.py", "MINE = 1\n")
    assert begin("validate", "application").wait(timeout=60) == 0  # type: ignore[attr-defined]


def test_a_folder_of_that_name_without_init_hides_nothing(begin: Callable[..., object], write: Write) -> None:
    write("app.py", HEAD + WRITER)
    write("operators/mine.py", "MINE = 1\n")
    assert begin("validate", ".").wait(timeout=60) == 0  # type: ignore[attr-defined]
