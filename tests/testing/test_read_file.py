from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import UnknownName
from dagflow.testing import read_file
from dagflow.testing.files import blocks_of
from operators import BlockReader, Filter, FixedBytesReaderContext, FSSliceReader, LineReaderContext


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("read_file") / "lines"
    path.write_bytes("one\r\n\nzwölf\n…\r\nlast".encode())
    return path


@given(block_size=st.integers(1, 30), consecutive=st.booleans())
def test_every_block_size_gives_the_lines(lines: Path, block_size: int, consecutive: bool) -> None:
    assert read_file(BlockReader(), lines, block_size, consecutive=consecutive) == ["one", "", "zwölf", "…", "last"]


@given(cuts=st.sets(st.integers(0, 20)))
def test_all_cuts_give_the_lines(lines: Path, cuts: set[int]) -> None:
    assert read_file(BlockReader(), str(lines), cuts=cuts) == ["one", "", "zwölf", "…", "last"]


def test_blocks_are_read_on_their_own_unless_told_otherwise(lines: Path) -> None:
    """Malhar's context yields the tail of a line that its block begins in, whichever reader had the block before."""
    assert read_file(BlockReader(reader_context=LineReaderContext()), lines, cuts=[2]) == ["one", "e", "", "zwölf", "…", "last"]


def test_records_of_fixed_length_depend_on_the_cuts(tmp_path: Path) -> None:
    path = tmp_path / "digits"
    path.write_bytes(b"0123456789")
    reader = FSSliceReader(reader_context=FixedBytesReaderContext(length=4))
    assert read_file(reader, path, cuts=[5, 6]) == [b"0123", b"4", b"5", b"6789"]


def test_an_empty_file_has_no_blocks(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert blocks_of(str(path)) == []
    assert read_file(BlockReader(), path, block_size=1) == []


def test_blocks_know_their_neighbours(lines: Path) -> None:
    first, second = blocks_of(str(lines), cuts=[7])
    assert (first.start, first.stop, first.is_last_block, first.previous_block_id) == (0, 7, False, -1)
    assert (second.start, second.stop, second.is_last_block, second.previous_block_id) == (7, 22, True, 0)
    assert first.file_length == second.file_length == lines.stat().st_size


def test_what_makes_no_sense_is_refused(lines: Path) -> None:
    with pytest.raises(ValueError, match="give block_size or cuts, not both"):
        read_file(BlockReader(), lines, 3, [4])
    with pytest.raises(ValueError, match="block_size is 0, and must be at least 1"):
        read_file(BlockReader(), lines, 0)
    with pytest.raises(ValueError, match="has 22 bytes: it cannot be cut at 23"):
        read_file(BlockReader(), lines, cuts=[23])
    with pytest.raises(UnknownName, match="no output port of Filter 'messages'"):
        read_file(Filter(bool), lines)
    with pytest.raises(FileNotFoundError):
        read_file(BlockReader(), lines.parent / "nowhere")
