r"""The output is what `sed 's/\r$//' | grep -v '^\.'` prints, as a multiset of lines, however the files are cut."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagflow import Operator
from dagflow.testing import run_dag
from tests.conformance.apps import by_function, line_filter, lines_in, vectorised
from tests.strategies import file_contents, kept_lines, small_files
from tests.tiers import examples

PREDICATES = [vectorised, by_function]
needs_tools = pytest.mark.skipif(shutil.which("sed") is None or shutil.which("grep") is None, reason="needs sed and grep")


def put(folder: Path, contents: Iterable[bytes]) -> Path:
    folder.mkdir()
    for number, data in enumerate(contents):
        (folder / f"{number:05d}.txt").write_bytes(data)
    return folder


def reference(contents: Iterable[bytes]) -> Counter[bytes]:
    return Counter(line for data in contents for line in kept_lines(data))


@settings(max_examples=examples(30))
@given(
    contents=st.lists(file_contents(), min_size=1, max_size=4),
    block_size=st.integers(1, 40),
    predicate=st.sampled_from(PREDICATES),
    blocks_threshold=st.none() | st.integers(1, 9),
)
def test_any_files_at_any_block_size(
    contents: list[bytes], block_size: int, predicate: Callable[[], Operator], blocks_threshold: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, output = put(Path(folder, "in"), contents), Path(folder, "out")
        splitter = {"block_size": block_size, "blocks_threshold": blocks_threshold}
        run_dag(line_filter(source, output, predicate(), **splitter))
        assert lines_in(output) == reference(contents)


@pytest.mark.parametrize(
    ("block_size", "predicate"),
    [(1, vectorised), (2, by_function), (3, vectorised), (5, by_function), (None, vectorised), (None, by_function)],
)
def test_many_files_at_once(runner: str, tmp_path: Path, block_size: int | None, predicate: Callable[[], Operator]) -> None:
    contents = list(small_files())
    source, output = put(tmp_path / "in", contents), tmp_path / "out"
    report = run_dag(line_filter(source, output, predicate(), block_size=block_size), runner=runner)
    assert lines_in(output) == reference(contents)
    kept = sum(reference(contents).values())
    assert report.operators["m0"].records_out == report.operators["sink"].records_in == kept


def printed(data: bytes) -> Counter[bytes]:
    """The output of the tools themselves, line by line."""
    pipe = r"sed 's/\r$//' | LC_ALL=C grep -av '^\.' || test $? = 1"  # grep's 1: nothing to print
    return Counter(subprocess.run(["sh", "-c", pipe], input=data, capture_output=True, check=True).stdout.split(b"\n")[:-1])


@needs_tools
@settings(max_examples=examples(40), deadline=None)
@given(data=file_contents())
@example(data=b"\r")
@example(data=b"a\n\r")
@example(data=b"a\n\r\r")
@example(data=b".\r\n\r\n")
def test_the_reference_is_what_the_tools_print(data: bytes) -> None:
    assert reference([data]) == printed(data)


@needs_tools
def test_the_output_is_what_the_tools_print(runner: str, tmp_path: Path) -> None:
    data = "a\r\n.b\n\n\r\nßé日\r\n.日\n🙂\r\rc\r\n\tlast without end".encode()
    contents = [data, b"half an end\n\r", b"\r"]
    source, output = put(tmp_path / "in", contents), tmp_path / "out"
    run_dag(line_filter(source, output, vectorised(), block_size=7), runner=runner)
    assert lines_in(output) == sum(map(printed, contents), Counter()) == reference(contents)
