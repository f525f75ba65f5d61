"""`modified = "append"`: of a file that grows, what was appended is read, up to the last whole record."""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path

import pytest

from dagflow import launch
from dagflow.storage import FileStatus
from operators import (
    AvroFormat,
    BlockReader,
    CsvFormat,
    FileInput,
    FileSplitterInput,
    FixedBytesReaderContext,
    FSSliceReader,
    JsonLinesFormat,
    JsonLinesWriter,
    LineReaderContext,
    Map,
    ParquetFormat,
    ReadAheadLineReaderContext,
    RecordWriter,
    RegexFormat,
    ScanReader,
)
from operators.files import growing
from operators.files.errors import FileNotAppended
from operators.files.growing import ReadPart, look
from operators.files.scanner import TimeBasedDirectoryScanner
from operators.readers.errors import PartsNotReadable


def append(path: Path, text: str | bytes) -> None:
    """Appends; the time moves on, whatever the file system's clock does."""
    modified = path.stat().st_mtime_ns + 10**9 if path.exists() else 10**18
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.utime(path, ns=(modified, modified))


def rewrite(path: Path, text: str) -> None:
    modified = path.stat().st_mtime_ns + 10**9
    path.write_text(text)
    os.utime(path, ns=(modified, modified))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder / "app.log"


class Watch:
    def __init__(self, folder: Path, drive, clock, *, splitter: dict | None = None, **scanner) -> None:
        made = TimeBasedDirectoryScanner(folder, modified="append", scan_interval_millis=1000, **scanner)
        self.clock = clock
        self.driver = drive(FileSplitterInput(scanner=made, **(splitter or {})), continuous=True, clock=clock)

    def __call__(self) -> list[tuple[int, int]]:
        self.clock.sleep(1)
        return [(b.start, b.stop) for b in self.driver.window().blocks]


def test_parts_follow_each_other_and_end_with_whole_records(log, drive, clock):
    append(log, "one\ntw")
    window = Watch(log.parent, drive, clock)
    assert window() == [(0, 4)]
    append(log, "o")
    assert window() == []
    append(log, "\nthree\nfo")
    assert window() == [(4, 14)]
    assert window() == []
    append(log, "ur\n")
    assert window() == [(14, 19)]
    assert window.driver.counters["files_appended"] == 2
    assert window.driver.counters["bytes_held_back"] == 2 + 3 + 2


def test_ids_and_lengths_are_those_of_the_part(log, drive, clock):
    append(log, "a\nb\n")
    window = Watch(log.parent, drive, clock, splitter={"block_size": 4})
    window()
    append(log, "c\nd\ne\nf")
    clock.sleep(1)
    found = window.driver.window()
    assert [(b.block_id, b.start, b.stop, b.file_length, b.previous_block_id, b.is_last_block) for b in found.blocks] == [
        (1, 4, 8, 10, -1, False),
        (2, 8, 10, 10, 1, True),
    ]
    (metadata,) = found.files
    assert (metadata.file_length, metadata.number_of_blocks, list(metadata.block_ids)) == (10, 2, [1, 2])


def test_a_file_without_a_whole_record_waits(log, drive, clock):
    append(log, "no end")
    empty = log.with_name("empty")
    empty.touch()
    window = Watch(log.parent, drive, clock)
    clock.sleep(1)
    assert window.driver.window().names == ["empty"]
    append(log, "\n")
    append(empty, "x\n")
    assert window() == [(0, 7), (0, 2)]


def test_only_the_time_has_changed(log, drive, clock):
    append(log, "one\n")
    window = Watch(log.parent, drive, clock)
    assert window() == [(0, 4)]
    append(log, "")
    assert window() == []
    append(log, "two\n")
    assert window() == [(4, 8)]


@pytest.mark.parametrize(
    ("text", "why"),
    [("0ne\ntwo\n", "other bytes"), ("o", "shorter"), ("", "shorter"), ("0ne\n", "other bytes"), ("one\r\nsome", "other bytes")],
)
def test_what_was_read_must_be_what_it_was(log, drive, clock, text, why):
    append(log, "one\n")
    window = Watch(log.parent, drive, clock)
    assert window() == [(0, 4)]
    rewrite(log, text)
    with pytest.raises(FileNotAppended, match=why) as caught:
        window()
    assert "scanner.modified=reread" in str(caught.value)


def test_a_file_that_was_not_appended_to_can_be_set_aside(log, drive, clock):
    append(log, "one\n")
    window = Watch(log.parent, drive, clock, splitter={"on_error": "skip"})
    assert window() == [(0, 4)]
    rewrite(log, "other\n")
    append(log.with_name("new"), "x\n")
    assert window() == [(0, 2)]
    assert window() == []
    assert window.driver.counters["files_set_aside"] == 1
    rewrite(log, "one\nmore\n")  # it is what it was again
    assert window() == [(4, 9)]


def test_parts_and_hashes_are_kept_over_launches(log, drive, clock):
    append(log, "one\ntw")
    window = Watch(log.parent, drive, clock)
    window()
    state = window.driver.states()
    append(log, "o\n")

    def again(**properties):
        scanner = TimeBasedDirectoryScanner(log.parent, **properties)
        return drive(FileSplitterInput(scanner=scanner), states=state, clock=clock)

    assert again(modified="append").window().spans == [("app.log", 4, 8)]
    rewrite(log, "0ne\ntwo\n")
    with pytest.raises(FileNotAppended, match="other bytes"):
        again(modified="append").window()


def test_a_file_that_was_read_before_append_was_set_is_not_guessed_at(log, drive, clock):
    append(log, "one\ntw")
    before = drive(FileSplitterInput([log]), clock=clock)
    before.window()
    append(log, "o\n")
    scanner = TimeBasedDirectoryScanner(log, modified="append")
    after = drive(FileSplitterInput(scanner=scanner), states=before.states(), clock=clock)
    with pytest.raises(FileNotAppended, match="was read before `modified` was append"):
        after.window()


def test_a_part_of_many_windows_is_read_to_its_end_while_the_file_grows(log, drive, clock):
    append(log, "a\nb\nc\nd\n")
    window = Watch(log.parent, drive, clock, splitter={"block_size": 2, "blocks_threshold": 3})
    assert window() == [(0, 2), (2, 4), (4, 6)]
    append(log, "e\n")
    assert window() == [(6, 8), (8, 10)]
    assert window() == []


def test_a_part_of_many_windows_that_is_replaced_ends_the_run(log, drive, clock):
    append(log, "a\nb\nc\nd\n")
    window = Watch(log.parent, drive, clock, splitter={"block_size": 2, "blocks_threshold": 3})
    window()
    rewrite(log, "A\nB\nC\nD\nE\n")
    with pytest.raises(FileNotAppended):
        window()


def test_compressed_files_are_read_whole_and_may_not_change(log, drive, clock):
    packed = log.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(b"one\ntwo"))
    window = Watch(log.parent, drive, clock)
    assert window() == [(0, packed.stat().st_size)]
    append(packed, gzip.compress(b"more"))
    with pytest.raises(FileNotAppended, match="compressed"):
        window()


def test_record_ends_are_found_wherever_reads_end(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "CHUNK", 7)
    path = tmp_path / "f"
    for text, quote, end in [
        (b"a|;b|;c", None, 6),
        (b"aaaaaa|;b|", None, 8),
        (b'1,"x|;y"|;2,"z|;', b'"', 10),
        (b'"' + b"|;" * 20 + b'"|;', b'"', 44),
        (b'"' + b"|;" * 20, b'"', 0),
        (b"", None, 0),
    ]:
        path.write_bytes(text)
        found = look(FileStatus(str(path), len(text), 0, False, True), None, b"|;", quote, "splitter")
        assert (found.part.end, found.held_back) == (end, len(text) - end), text
        for length in range(len(text)):  # the same, seen in two looks
            before = look(FileStatus(str(path), length, 0, False, True), None, b"|;", quote, "splitter").part
            assert (
                look(FileStatus(str(path), len(text), 0, False, True), before, b"|;", quote, "splitter").part.hash
                == found.part.hash
            )


def test_growth_between_the_scan_and_the_look_is_for_the_next_scan(tmp_path):
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    found = look(FileStatus(str(path), 5, 0, False, True), None, b"\n", None, "splitter")
    assert (found.part.end, found.held_back) == (4, 1)
    with pytest.raises(FileNotAppended, match="shorter"):
        look(FileStatus(str(path), 99, 0, False, True), ReadPart(50, ""), b"\n", None, "splitter")


# In runs


def read_lines(log: Path, output: Path, **settings) -> list[str]:
    def populate_dag(dag, conf):
        files = dag.add_module("files", FileInput(log.parent, block_size=5))
        text = dag.add_operator("text", Map(lambda line: f"{line.position} {line.record}"))
        writer = dag.add_operator("writer", RecordWriter(path=str(output)))
        dag.add_stream("lines", files.messages, text.input)
        dag.add_stream("texts", text.output, writer.input)

    launch(populate_dag, {"operator.files.scanner.modified": "append", **settings}, runner="local")
    return sorted(
        (line for p in output.glob("part*") for line in p.read_text().splitlines()), key=lambda line: int(line.split()[0])
    )


def test_each_line_once_with_the_position_that_it_has_in_the_file(log, tmp_path):
    text = "".join(f"line {n}\n" for n in range(40))
    expected = [f"{7 * n if n < 10 else 70 + 8 * (n - 10)} line {n}" for n in range(40)]
    cuts = [0, 3, 50, 51, 57, 130, 200, len(text)]
    for start, stop in itertools.pairwise(cuts):
        append(log, text[start:stop])
        read_lines(log, tmp_path / "out")
    assert read_lines(log, tmp_path / "out") == expected


def test_a_file_that_grows_while_it_is_read(log, tmp_path):
    """The plan stands; what was appended after it is for the next launch."""

    class Growing(BlockReader):
        def setup_stream(self, block):
            if block.start == 0:
                append(log, "late\n")
            return super().setup_stream(block)

    def populate_dag(dag, conf):
        files = dag.add_operator("files", FileSplitterInput(log.parent, block_size=4))
        reader = dag.add_operator("reader", Growing())
        text = dag.add_operator("text", Map(lambda line: line.record))
        writer = dag.add_operator("writer", RecordWriter(path=str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, text.input)
        dag.add_stream("texts", text.output, writer.input)

    append(log, "one\ntwo\n")
    for _ in range(2):
        launch(populate_dag, {"operator.files.scanner.modified": "append"}, runner="local")
    assert sorted(line for p in (tmp_path / "out").glob("part*") for line in p.read_text().splitlines()) == ["late", "one", "two"]


def rows(log: Path, output: Path, format, **scanner) -> list[str]:
    def populate_dag(dag, conf):
        made = TimeBasedDirectoryScanner(log.parent, modified="append", **scanner)
        files = dag.add_operator("files", FileSplitterInput(scanner=made, block_size=6))
        reader = dag.add_operator("reader", ScanReader(format))
        writer = dag.add_operator("writer", JsonLinesWriter(str(output)))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, writer.input)

    launch(populate_dag, runner="local")
    return sorted(line for p in output.glob("*.jsonl") for line in p.read_text().splitlines())


def test_json_lines(log, tmp_path):
    append(log, '{"n": 1}\n{"n": 2')
    assert rows(log, tmp_path / "out", JsonLinesFormat()) == ['{"n":1}']
    append(log, '}\n{"n": 3}\n')
    assert rows(log, tmp_path / "out", JsonLinesFormat()) == ['{"n":1}', '{"n":2}', '{"n":3}']


def test_csv_with_line_ends_in_quotes(log, tmp_path):
    text = 'n,s\n1,"a\nb"\n2,"c\n\n"\n3,d\n'
    for stop in (14, 17, 19, len(text)):
        append(log, text[log.stat().st_size if log.exists() else 0 : stop])
        found = rows(log, tmp_path / "out", CsvFormat(), record_quote='"')
    assert found == ['{"n":1,"s":"a\\nb"}', '{"n":2,"s":"c\\n\\n"}', '{"n":3,"s":"d"}']


@pytest.mark.parametrize("format", [CsvFormat(), CsvFormat(comment="#"), ParquetFormat(), AvroFormat(), RegexFormat("(?P<a>.*)")])
def test_formats_whose_records_may_not_end_there_are_refused(log, tmp_path, format):
    append(log, "n\n1\n")
    quote = '"' if (isinstance(format, CsvFormat) and format.comment) or isinstance(format, RegexFormat) else None
    with pytest.raises(PartsNotReadable, match=type(format).__name__):
        rows(log, tmp_path / "out", format, **({} if quote is None else {"record_quote": quote}))
    assert not list((tmp_path / "out").glob("*.jsonl"))


def test_what_contexts_say():
    def can(context, end: bytes = b"\n") -> bool:
        return context.ends_records(end)

    assert can(ReadAheadLineReaderContext())
    assert can(LineReaderContext())
    assert not can(LineReaderContext(), b"\r")
    assert can(LineReaderContext(terminators=["\n", "\r\n", "\r"]))
    assert not can(LineReaderContext(terminators=["\n", "\r\n", "\r"]), b"\r")
    assert can(LineReaderContext(terminators="|;"), b"|;")
    assert not can(LineReaderContext(terminators="||"), b"||"), "which of them ends a record depends on those before"
    assert not can(FixedBytesReaderContext(length=4))
    assert not FSSliceReader().ends_records("\n", None)
    assert not BlockReader().ends_records("\n", '"')


def test_parts_need_the_plan_to_stand(log):
    operator = FileSplitterInput(scanner=TimeBasedDirectoryScanner(log, modified="append"), idempotent=False)
    with pytest.raises(ValueError, match="idempotent"):
        operator.check()
