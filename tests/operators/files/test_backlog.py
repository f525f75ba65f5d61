"""The backlog of splitters: blocks that they know of and have not emitted yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagflow.scaling import Backlog, KnowsBacklog
from dagflow.storage import file_system
from operators import FileSplitterBase, FileSplitterInput
from operators.files.splitter_input import Arriving
from operators.files.tree import Visit


def test_splitters_know() -> None:
    assert isinstance(FileSplitterInput(files=["/tmp"]), KnowsBacklog)
    assert isinstance(FileSplitterBase(), KnowsBacklog)


def test_each_visit_is_looked_through_once(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"12345")
    found = [file_system(str(tmp_path)).status(str(tmp_path / name)) for name in "abc"]
    asked = []

    def blocks_of(status: object) -> Backlog:
        asked.append(status)
        return Backlog(1, 5)

    arriving, first, other = Arriving(), Visit(None, found), Visit(None, found[:1])
    arriving.begin(first)
    next(arriving.found)
    assert arriving.weigh([other], blocks_of) == Backlog(3, 15)
    assert len(asked) == 3, "two that are left, and the one that waits"
    next(arriving.found)
    arriving.taken(Backlog(1, 5))
    assert arriving.weigh([other], blocks_of) == Backlog(2, 10)
    arriving.begin(other)
    assert arriving.weigh([], blocks_of) == Backlog(1, 5)
    assert len(asked) == 3


@pytest.mark.parametrize(("block_size", "blocks"), [(2, 3), (5, 1), (100, 1)])
def test_the_blocks_of_a_file(tmp_path: Path, block_size: int, blocks: int) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    splitter = FileSplitterInput(files=[str(tmp_path)], block_size=block_size)
    splitter._at_hand = type("AtHand", (), {})()
    status = file_system(str(tmp_path)).status(str(tmp_path / "a"))
    assert splitter.blocks_of(status) == Backlog(blocks, 5)
    assert splitter.blocks_of(file_system(str(tmp_path)).status(str(tmp_path))) == Backlog()
