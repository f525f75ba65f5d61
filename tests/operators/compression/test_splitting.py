"""Names that say that a file cannot be split get one block; the splitter opens no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagflow import FileInfo
from dagflow.testing import run_operator
from operators import FileSplitterBase


def counts(folder: Path, splitter: FileSplitterBase) -> dict[str, int]:
    names = sorted(path.name for path in folder.iterdir())
    found = run_operator(splitter, {"input": [FileInfo(str(folder), name) for name in names]})
    ends = {block.file_path: block.stop for block in found["blocks_metadata_output"] if block.is_last_block}
    assert set(ends.values()) == {10}
    return {metadata.file_name: metadata.number_of_blocks for metadata in found["files_metadata_output"]}


def test_one_block_for_names_of_compressed_text(tmp_path: Path) -> None:
    for name in ("a.gz", "b.GZ", "c.bz2", "d.xz", "e.zst", "f.bgz", "g.gzip", "h"):
        (tmp_path / name).write_bytes(bytes(10))
    found = counts(tmp_path, FileSplitterBase(block_size=3))
    assert found == {"a.gz": 1, "b.GZ": 1, "c.bz2": 1, "d.xz": 1, "e.zst": 1, "f.bgz": 4, "g.gzip": 4, "h": 4}


@pytest.mark.parametrize(("suffixes", "count"), [((), 4), ((".txt",), 4), ([".gz"], 1)])
def test_which_names_can_be_told(tmp_path: Path, suffixes: tuple[str, ...], count: int) -> None:
    (tmp_path / "a.gz").write_bytes(bytes(10))
    assert counts(tmp_path, FileSplitterBase(block_size=3, one_block_suffixes=suffixes)) == {"a.gz": count}
