"""Files of text that are full, and files that are packed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from typing import Any

import attrs
import pyarrow as pa
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, read_file, run_operator
from operators import BlockReader, RecordWriter
from operators.compression import recognise
from operators.sinks.file_sink import numbered

UNPACK: dict[str, Any] = {
    "none": bytes,
    "gzip": gzip.decompress,
    "bgzf": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zstd": zstd.decompress,
}
SUFFIXES = {"none": "", "gzip": ".gz", "bgzf": ".bgz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst"}
TEXTS = st.lists(st.text(alphabet="ab€", max_size=9), max_size=30)


def full_after(texts: list[str], rows: int | None, size: int | None) -> list[bytes]:
    """The contents of the files, made record by record."""
    files: list[list[bytes]] = [[]]
    for text in texts:
        if len(files[-1]) == rows or (size is not None and sum(map(len, files[-1])) >= size):
            files.append([])
        files[-1].append(text.encode() + b"\n")
    return [b"".join(file) for file in files if file]


def write(operator: RecordWriter[Any], texts: list[str], form: str, cut: int = 8) -> OperatorTask:
    with OperatorTask(operator) as task:
        for at in range(0, len(texts), cut):
            some: Any = texts[at : at + cut]
            task.give("input", pa.record_batch({"value": pa.array(some, pa.string())}) if form == "batch" else some, form)
    assert sum(file.rows for file in task.files.files.values()) == len(texts)
    return task


@given(
    TEXTS,
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 40),
    st.sampled_from(["none", "gzip", "bgzf"]),
    st.integers(1, 9),
)
def test_all_forms_make_the_same_files(texts: list[str], rows: int | None, size: int | None, packing: str, cut: int) -> None:
    for form in ("record", "stream", "batch"):
        writer = RecordWriter[Any]("out", suffix=".txt", max_file_rows=rows, max_file_bytes=size, compression=packing)
        task = write(writer, texts, form, cut)
        assert [UNPACK[packing](data) for data in task.files.contents.values()] == full_after(texts, rows, size)
        names = [f"part-000000-0000{f'_{n}' if n else ''}.txt{SUFFIXES[packing]}" for n in range(len(task.files.contents))]
        assert list(task.files.contents) == names


@pytest.mark.parametrize("packing", UNPACK)
@pytest.mark.parametrize("form", ["record", "stream", "batch"])
def test_packed_files(packing: str, form: str) -> None:
    texts = [f"line {n}" for n in range(100_000)]
    task = write(RecordWriter("out", compression=packing), texts, form, 8_192)
    ((name, data),) = task.files.contents.items()
    assert name == f"part-000000-0000{SUFFIXES[packing]}"
    assert UNPACK[packing](data) == "".join(f"{text}\n" for text in texts).encode()
    assert recognise(data[:64]) == (None if packing == "none" else packing)
    assert packing == "none" or len(data) < 500_000


@attrs.define
class OwnFile(RecordWriter[str]):
    def get_file_name(self, record: str) -> str | None:
        return record


@pytest.mark.parametrize("packing", UNPACK)
def test_packed_files_are_closed_and_appended_to(packing: str) -> None:
    records = [f"file{n}" for n in (0, 1, 0, 2, 0, 1, 0)]
    with OperatorTask(OwnFile("out", max_open_files=1, compression=packing)) as task:
        task.give("input", records)
    assert task.files.most_open == 1
    assert {name: UNPACK[packing](data) for name, data in task.files.contents.items()} == {
        f"{name}{SUFFIXES[packing]}": f"{name}\n".encode() * records.count(name) for name in set(records)
    }


@pytest.mark.parametrize(("packing", "level", "most"), [("gzip", None, 20), ("xz", None, 2), ("xz", 6, 1), ("bz2", 9, 7)])
def test_compressors_take_little_memory_together(packing: str, level: int | None, most: int) -> None:
    with OperatorTask(OwnFile("out", compression=packing, compression_level=level)) as task:
        task.give("input", [f"file{n}" for n in range(20)])
    assert task.files.most_open == most


@pytest.mark.parametrize("packing", UNPACK)
def test_what_is_packed_can_be_read(packing: str, tmp_path: Any) -> None:
    lines = [f"line {n}" for n in range(20_000)]
    run_operator(RecordWriter(str(tmp_path), compression=packing), {"input": lines})
    (path,) = tmp_path.glob("part-*")
    assert read_file(BlockReader(), str(path), block_size=10_000) == lines


def test_names_that_meet_stay_apart() -> None:
    """A user's own name may be the one under which a full file continues."""
    with OperatorTask(OwnFile("out", max_file_rows=1)) as task:
        task.give("input", ["a.txt", "a_1.txt", "a.txt", "a.txt", "a_1.txt"])
    assert task.files.contents == {
        "a.txt": b"a.txt\n",
        "a_1.txt": b"a_1.txt\n",
        "a_2.txt": b"a.txt\n",
        "a_3.txt": b"a.txt\n",
        "a_1_1.txt": b"a_1.txt\n",
    }


def test_a_name_that_has_the_suffix_gets_no_other() -> None:
    with OperatorTask(OwnFile("out", max_file_rows=1, compression="gzip")) as task:
        task.give("input", ["a.txt.gz", "a.txt.gz", "b"])
    assert list(task.files.contents) == ["a.txt.gz", "a_1.txt.gz", "b.gz"]


@pytest.mark.parametrize(
    ("name", "suffix", "expected"),
    [("a", "", "a_3"), ("x.y/a", "", "x.y/a_3"), ("a.b.c", ".b.c", "a_3.b.c"), ("a.b", "", "a_3.b")],
)
def test_numbers_in_names(name: str, suffix: str, expected: str) -> None:
    assert numbered(name, 3, suffix) == expected


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"compression": "lzo"}, "compression is 'lzo', and must be one of none, gzip, bgzf, bz2, xz, zstd"),
        ({"compression_level": 3}, "compression_level is 3, but none has no levels"),
        ({"compression": "gzip", "compression_level": 10}, "compression_level is 10, but gzip has levels 1 to 9"),
        ({"max_file_bytes": 0}, "max_file_bytes is 0, and must be at least 1 (leave it out for no limit)"),
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        RecordWriter(**{"path": "out", **properties}).check()
