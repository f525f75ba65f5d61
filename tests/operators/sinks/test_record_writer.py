from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputOperator, Operator, OutputPort, ReaderRecord, validate
from dagflow.errors import PortTypeError
from dagflow.testing import OperatorTask
from operators import RecordWriter
from operators.sinks.errors import FileNameRefused, NotText
from operators.sinks.files.open_files import WRITE_BYTES

TEXTS = st.lists(st.text(alphabet="ab\n\r é€😀", max_size=4), max_size=12)
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.text(alphabet="ab\né", max_size=3)), max_size=12).map(
    lambda pairs: [ReaderRecord(block, at, text) for at, (block, text) in enumerate(pairs)]
)
KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view()]


def written(operator: Any, data: Any, form: str, cuts: tuple[int, ...] = ()) -> dict[str, bytes]:
    """The files after one window; `data` in several portions where there are cuts."""
    with OperatorTask(operator) as task:
        bounds = [0, *sorted(cuts), len(data)]
        for start, stop in pairwise(bounds):
            task.give("input", data[start:stop], form)
    assert sum(file.rows for file in task.files.files.values()) == len(data)
    assert not any(file.is_open for file in task.files.files.values())
    return task.files.contents


def values(texts: list[str], kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch([pa.array([t.encode() for t in texts], pa.binary()).cast(kind)], names=["value"])


def reader_batch(records: list[ReaderRecord[Any]], kind: pa.DataType | None = None) -> pa.RecordBatch:
    columns = [pa.array([r[i] for r in records], k) for i, k in ((0, pa.int64()), (1, pa.int64()), (2, kind or pa.string()))]
    return pa.record_batch(columns, names=["block_id", "position", "record"])


@given(TEXTS, st.sampled_from(["\n", "", "\r\n", "€"]), st.sampled_from(KINDS), st.integers(0, 12))
def test_all_forms_write_the_same_bytes(texts: list[str], terminator: str, kind: pa.DataType, at: int) -> None:
    expected = {"part-000000-0000": "".join(text + terminator for text in texts).encode()} if texts else {}
    cuts = (min(at, len(texts)),)
    assert written(RecordWriter("out", terminator=terminator), texts, "record", cuts) == expected
    assert written(RecordWriter("out", terminator=terminator), texts, "stream", cuts) == expected
    assert written(RecordWriter("out", terminator=terminator), [t.encode() for t in texts], "stream", cuts) == expected
    assert written(RecordWriter("out", terminator=terminator), values(texts, kind), "batch", cuts) == expected


@given(RECORDS, st.booleans(), st.sampled_from(["\n", ""]), st.integers(0, 12))
def test_reader_records_in_all_forms(records: list[ReaderRecord[str]], per_block: bool, terminator: str, at: int) -> None:
    def writer() -> RecordWriter[Any]:
        return RecordWriter("out", per_block=per_block, terminator=terminator, suffix=".txt")

    expected: dict[str, bytes] = {}
    for record in records:
        name = f"{record.block_id:x}.txt" if per_block else "part-000000-0000.txt"
        expected[name] = expected.get(name, b"") + (record.record + terminator).encode()
    cuts = (min(at, len(records)),)
    assert written(writer(), records, "record", cuts) == expected
    assert written(writer(), records, "stream", cuts) == expected
    assert written(writer(), reader_batch(records), "batch", cuts) == expected


def test_fixed_size_binary() -> None:
    column = pa.array([b"ab", b"cd", b"ef"], pa.binary(2)).slice(1)
    assert written(RecordWriter("out", terminator=""), pa.record_batch([column], names=["value"]), "batch") == {
        "part-000000-0000": b"cdef"
    }


def test_a_file_a_partition_and_window() -> None:
    with OperatorTask(RecordWriter("out", suffix=".log"), window=12, partition=3) as task:
        task.give("input", ["a"])
    assert task.files.contents == {"part-000012-0003.log": b"a\n"}


def test_no_records_make_no_file() -> None:
    with OperatorTask(RecordWriter("out")) as task:
        task.give("input", [], "record")
        task.give("input", [], "stream")
        task.give("input", values([], pa.string()), "batch")
    assert task.files.contents == {}


def test_per_block_names_are_hexadecimal() -> None:
    block = (7 << 32) | 255
    assert list(written(RecordWriter("out", per_block=True), [ReaderRecord(block, 0, "a")], "stream")) == ["7000000ff"]


def test_a_file_name_can_be_asked_of_a_writer_that_was_not_set_up() -> None:
    assert RecordWriter("out", per_block=True, suffix=".txt").get_file_name(ReaderRecord(255, 0, "a")) == "ff.txt"


def test_its_folder() -> None:
    assert RecordWriter("s3://bucket/out").output_folders() == ["s3://bucket/out"]


@attrs.define
class ByLevel(RecordWriter[str]):
    def get_file_name(self, record: str) -> str | None:
        return {"E": "errors/all.txt", "W": "warnings.txt", "?": ""}.get(record[:1])

    def get_bytes_for_tuple(self, record: str) -> bytes:
        return record[2:].encode()


@pytest.mark.parametrize("form", ["record", "stream"])
def test_methods_are_overridden(form: str) -> None:
    with OperatorTask(ByLevel("out")) as task:
        task.give("input", ["E first", "W second", "I third", "?", "E fourth"], form)
    assert task.files.contents == {"errors/all.txt": b"first\nfourth\n", "warnings.txt": b"second\n"}
    assert task.counters == {"dropped": 2}


def test_who_overrides_a_method_gets_no_batches() -> None:
    assert ByLevel("out").offered_forms("input") == {"record", "stream"}
    assert RecordWriter("out").offered_forms("input") == {"record", "stream", "batch"}
    assert RecordWriter("out", encoding="UTF8").offered_forms("input") == {"record", "stream", "batch"}
    assert RecordWriter("out", encoding="latin-1").offered_forms("input") == {"record", "stream"}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "shift_jis"])
@pytest.mark.parametrize("form", ["record", "stream"])
def test_encodings(encoding: str, form: str) -> None:
    texts = ["a", "", "b c"] if encoding == "shift_jis" else ["é", "", "ü"]
    expected = b"".join((text + "\n").encode(encoding) for text in texts)
    assert written(RecordWriter("out", encoding=encoding), texts, form) == {"part-000000-0000": expected}


@attrs.define
class OwnFile(RecordWriter[str]):
    def get_file_name(self, record: str) -> str | None:
        return record


@pytest.mark.parametrize("form", ["record", "stream"])
def test_few_files_are_open_at_once_and_all_are_whole(form: str) -> None:
    records = [f"file{n}" for n in (0, 1, 0, 2, 0, 1, 0)]
    with OperatorTask(OwnFile("out", max_open_files=2)) as task:
        task.give("input", records, form)
    assert task.files.most_open == 2
    assert task.files.contents == {name: f"{name}\n".encode() * records.count(name) for name in set(records)}
    assert {name: file.rows for name, file in task.files.files.items()} == {name: records.count(name) for name in set(records)}
    opened = {name: file.times_opened for name, file in task.files.files.items()}
    assert opened == {"file0": 1, "file1": 2, "file2": 1}  # the one that is used most is never closed


def test_writes_are_long() -> None:
    with OperatorTask(RecordWriter("out")) as task:
        for _ in range(10):
            task.give("input", ["x" * 99] * 1000, "stream")
        task.give("input", ["x" * 99] * 10_000, "record")
    (file,) = task.files.files.values()
    assert len(file.data) == 2_000_000
    assert min(file.writes[:-1]) >= WRITE_BYTES


def test_a_large_batch_is_written_as_it_lies() -> None:
    column = pa.array([b"x" * 1000] * 1000, pa.binary())
    with OperatorTask(RecordWriter("out", terminator="")) as task:
        task.give("input", pa.record_batch([column], names=["value"]), "batch")
    (file,) = task.files.files.values()
    assert file.writes == [1_000_000]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/passwd", "it is an absolute path"),
        ("a/../../b", "it leads out of the output folder"),
        ("..", "it leads out of the output folder"),
        ("a//b", "a part of it is empty"),
        ("a/", "a part of it is empty"),
        ("_dagflow/x", "a part of it begins with _ or ."),
        ("a/.hidden", "a part of it begins with _ or ."),
        ("a\nb", "it has a line feed or a zero byte in it"),
        ("é" * 121, "a part of it is longer than 240 bytes"),
    ],
)
def test_names_that_are_refused(name: str, reason: str) -> None:
    with OperatorTask(OwnFile("out")) as task, pytest.raises(FileNameRefused) as caught:
        task.give("input", [name])
    assert str(caught.value) == (
        f"OwnFile: get_file_name() gave {name!r}: {reason}\n"
        "  help: name files relative to the output folder, 'errors.txt' or '2026/errors.txt', no part begins with _ or ."
    )
    assert task.files.contents == {}


def test_a_name_that_is_no_text() -> None:
    @attrs.define
    class Wrong(RecordWriter[str]):
        def get_file_name(self, record: str) -> str | None:
            return len(record)  # type: ignore[return-value]

    with OperatorTask(Wrong("out")) as task, pytest.raises(FileNameRefused, match="it is of type int, but must be str or None"):
        task.give("input", ["a"])


@pytest.mark.parametrize("form", ["record", "stream"])
@pytest.mark.parametrize(
    ("record", "got"),
    [(7, "7 (int)"), (ReaderRecord(1, 2, 0.5), "0.5 (float)"), (["a"], "['a'] (list)")],
)
def test_records_that_are_no_text(record: Any, got: str, form: str) -> None:
    with OperatorTask(RecordWriter("out")) as task, pytest.raises(NotText) as caught:
        task.give("input", [record], form)
    assert str(caught.value) == (
        f"RecordWriter writes str, bytes and ReaderRecords of these, but got {got}\n"
        "  help: put Map(…) before it to turn each record into a string, or override get_bytes_for_tuple(record)"
    )


def test_none_is_blamed_on_the_function_before_it() -> None:
    with OperatorTask(RecordWriter("out")) as task, pytest.raises(NotText) as caught:
        task.give("input", [None], "stream")
    assert str(caught.value) == (
        "RecordWriter writes str, bytes and ReaderRecords of these, but got None (NoneType)\n"
        "  help: a function before it returns None: let it return the record that is to be written"
    )


@pytest.mark.parametrize(
    ("batch", "got"),
    [
        (pa.record_batch({"value": [1, 2]}), "batches of value (int64)"),
        (pa.record_batch({"a": ["x"], "b": [1]}), "batches of a (string), b (int64)"),
        (pa.record_batch({"value": ["x", None]}), "null in column 'value' (1 of 2 records)"),
        (pa.record_batch({"value": [None]}), "batches of value (null)"),
    ],
)
def test_batches_that_are_no_text(batch: pa.RecordBatch, got: str) -> None:
    writer = RecordWriter[Any]("out")
    with OperatorTask(writer) as task:
        task.begin_window()
        with pytest.raises(NotText) as caught:
            writer.write_batch(batch)
    assert caught.value.got == got
    assert task.files.contents == {}


@pytest.mark.parametrize("bad", [7, None, "\ud800", b"bytes amid text"])
def test_a_bad_record_in_a_stream_is_told_exactly_and_what_is_around_it_is_written(bad: Any) -> None:
    operator = RecordWriter[Any]("out")
    records = iter(["a", "b", bad, "c", "d"])
    with OperatorTask(operator) as task:
        task.begin_window()
        if not isinstance(bad, bytes):
            with pytest.raises((NotText, UnicodeEncodeError)):
                operator.write_all(records)
            assert records.__length_hint__() == 2
        operator.write_all(records)
    middle = b"bytes amid text\n" if isinstance(bad, bytes) else b""
    assert task.files.contents == {"part-000000-0000": b"a\nb\n" + middle + b"c\nd\n"}


@pytest.mark.parametrize("form", ["record", "stream", "batch"])
def test_per_block_without_blocks(form: str) -> None:
    data = values(["a"], pa.string()) if form == "batch" else ["a"]
    with OperatorTask(RecordWriter("out", per_block=True)) as task, pytest.raises(NotText, match=r"come.? from no block"):
        task.give("input", data, form)
    assert task.files.contents == {}


def test_bytes_that_are_text() -> None:
    @attrs.define
    class Wrong(RecordWriter[str]):
        def get_bytes_for_tuple(self, record: str) -> bytes:
            return record  # type: ignore[return-value]

    with (
        OperatorTask(Wrong("out")) as task,
        pytest.raises(NotText, match=r"got 'a' \(str\), returned by get_bytes_for_tuple\(\)"),
    ):
        task.give("input", ["a"])


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"path": ""}, "path is empty: name the output folder"),
        ({"suffix": "/x"}, "suffix is '/x': it cannot name a folder"),
        ({"encoding": "utf-9"}, "encoding 'utf-9' is not a text encoding that Python knows (utf-8, latin-1, cp1252, …)"),
        ({"encoding": "utf-16"}, "encoding 'utf-16' puts a byte-order mark before every record: name one without, as utf-8"),
        ({"encoding": "ascii", "terminator": "é"}, "terminator 'é' cannot be written in ascii"),
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        RecordWriter(**{"path": "out", **properties}).check()


def test_max_open_files_is_positive() -> None:
    with pytest.raises(ValueError, match="'max_open_files' must be >= 1: 0"):
        RecordWriter("out", max_open_files=0)


def test_several_windows_with_one_instance() -> None:
    operator = RecordWriter[str]("out")
    with OperatorTask(operator) as task:
        task.give("input", ["a"])
        task.end_window()
        task.give("input", ["b"], "stream")
    assert task.files.contents == {"part-000000-0000": b"a\n", "part-000001-0000": b"b\n"}


@attrs.define
class Numbers(InputOperator):
    output = OutputPort[int]()


@attrs.define
class WritesNumbers(RecordWriter[int]):
    def get_bytes_for_tuple(self, record: int) -> bytes:
        return b"%d" % record


@attrs.define
class Sources(InputOperator):
    text = OutputPort[str]()
    data = OutputPort[bytearray]()
    either = OutputPort[int | str]()
    anything = OutputPort[object]()
    lines = OutputPort[ReaderRecord[str]]()
    numbers = OutputPort[ReaderRecord[int]]()


def writing(source: Operator, port: str, sink: Operator) -> list[Any]:
    def populate_dag(dag: DAG, conf: object) -> None:
        dag.add_stream("s", getattr(dag.add_operator("a", source), port), dag.add_operator("b", sink).input)

    return list(validate(populate_dag).problems)


def test_a_stream_of_what_is_not_text_is_refused_before_a_run() -> None:
    [problem] = writing(Numbers(), "output", RecordWriter("out"))
    assert isinstance(problem, PortTypeError)
    assert (problem.source, problem.sink, problem.source_type) == ("a.output", "b.input", "int")
    assert "difference: int is not str, bytes, or a ReaderRecord of these" in str(problem)
    assert "or override get_bytes_for_tuple(record)" in str(problem)
    assert writing(Sources(), "numbers", RecordWriter("out"))
    assert not writing(Numbers(), "output", WritesNumbers("out"))


@pytest.mark.parametrize("port", ["text", "data", "either", "anything", "lines"])
def test_streams_that_may_be_text_are_not_refused(port: str) -> None:
    assert not writing(Sources(), port, RecordWriter("out"))
