"""A folder of plain and compressed files, however they are named and cut: what `zcat | grep` prints, on both runners."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dagflow.testing import run_dag
from operators import BlockReader, RecordWriter
from tests.conformance.apps import by_function, chain, line_filter, lines_in, vectorised, written
from tests.operators.compression.samples import PYTHON, TOOLS
from tests.strategies import kept_lines

FILES = {
    "a.txt": None,
    "b.gz": "gzip",
    "c.bz2": "bz2",
    "d.xz": "xz",
    "e.zst": "zstd",
    "f.bgz": "bgzf",
    "g.vcf.gz": "bgzf",
    "plain.gz": None,
    "gzip-without-a-suffix": "gzip",
    "zstd.txt": "zstd",
    "bgzf.txt": "bgzf",
}


def text(seed: int, lines: int = 6_000) -> bytes:
    at_random = random.Random(seed)
    return b"".join(
        at_random.choice([b"", b".", b"x", "ß".encode()])
        + b"%d %d" % (n, at_random.getrandbits(99))
        + at_random.choice([b"\n", b"\r\n"])
        for n in range(lines)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    source = tmp_path_factory.mktemp("mixed")
    contents = [text(seed) for seed in range(len(FILES))]
    for data, (name, format_) in zip(contents, FILES.items(), strict=True):
        (source / name).write_bytes(data if format_ is None else TOOLS[format_](data))
    return source, contents


@pytest.mark.full
@pytest.mark.parametrize("predicate", [vectorised, by_function])
def test_one_mixed_folder(runner: str, tmp_path: Path, folder: tuple[Path, list[bytes]], predicate: object) -> None:
    source, contents = folder
    expected = Counter(line for data in contents for line in kept_lines(data))
    for block_size in (None, 20_000) if predicate is vectorised else (50_000,):
        output = tmp_path / f"out-{block_size}"
        report = run_dag(line_filter(source, output, predicate(), block_size=block_size), runner=runner)  # type: ignore[operator]
        assert lines_in(output) == expected
        counters = report.operators["lines"].counters
        assert counters["bytes"] == sum(path.stat().st_size for path in source.iterdir())
        assert counters["records"] == sum(data.count(b"\n") for data in contents)
        assert counters.get("blocks_unsplittable", 0) == (
            0 if block_size is None else _blocks_without_records(source, block_size)
        )


def _blocks_without_records(source: Path, block_size: int) -> int:
    sizes = [(source / name).stat().st_size for name in ("gzip-without-a-suffix", "zstd.txt")]
    return sum(-(-size // block_size) - 1 for size in sizes)


@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("zcat", "sed", "grep")), reason="needs zcat, sed and grep")
@pytest.mark.parametrize("block_size", [700, 9_000, None])
def test_what_zcat_and_grep_print(tmp_path: Path, block_size: int | None) -> None:
    (tmp_path / "in").mkdir()
    for seed, name in enumerate(("a.bgz", "b.gz", "c.bgz")):
        format_ = "gzip" if name == "b.gz" else "bgzf"
        (tmp_path / "in" / name).write_bytes(TOOLS[format_](text(seed, 2_000)) + TOOLS[format_](b"another\nmember"))
    run_dag(line_filter(tmp_path / "in", tmp_path / "out", vectorised(), block_size=block_size))
    pipe = r"for file in in/*; do zcat < $file | sed 's/\r$//' | LC_ALL=C grep -v '^\.'; done"
    printed = subprocess.run(["sh", "-c", pipe], cwd=tmp_path, capture_output=True, check=True).stdout
    assert lines_in(tmp_path / "out") == Counter(printed.split(b"\n")[:-1])


def test_a_damaged_file_ends_the_run_or_is_let_go(tmp_path: Path) -> None:
    from dagflow.errors import DagflowError

    source = tmp_path / "in"
    source.mkdir()
    (source / "good").write_bytes(PYTHON["gzip"](b"one\n"))
    packed = PYTHON["gzip"](text(1))
    (source / "short").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(
        DagflowError, match=f"short: the file ends at byte {len(packed) // 2}, within gzip data that begins at byte 0"
    ):
        run_dag(chain(source, sink=RecordWriter(str(tmp_path / "out"))))
    assert written(tmp_path / "out") == []
    reader = BlockReader(on_error="skip")
    report = run_dag(chain(source, sink=RecordWriter(str(tmp_path / "out2")), reader=reader))
    assert report.operators["lines"].errors == 1
    assert lines_in(tmp_path / "out2")[b"one"] == 1
