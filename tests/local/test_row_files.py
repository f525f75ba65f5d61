"""Rows of exchanges in files between worker processes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from dagflow import DAG, launch
from dagflow.local.row_files import RowFiles, RowWriter, read_rows
from dagflow.runtime.exchange.rows import Row
from dagflow.testing import Collector
from operators import BlockReader, Count, FileSplitterInput

LEVELS = {0: 1, 1: 2}
"""Exchange 0 leads to level 1, exchange 1 to level 2."""


def write(files: RowFiles, attempt: str, *rows: Row) -> RowWriter:
    with RowWriter(files.path_for(attempt), LEVELS) as writer:
        for row in rows:
            writer.put(row)
    return writer


def test_rows_are_read_by_the_task_that_they_are_for_in_their_order(tmp_path: Path) -> None:
    files = RowFiles(str(tmp_path), LEVELS)
    rows = [
        Row(dst, tag, 0, seq, f"{dst} {tag} {seq}".encode()) for dst in (0, 1) for tag in (0, 4) for seq in (1, 0) for src in (0,)
    ]
    files.add(write(files, "7", *rows).rows)
    files.add(write(files, "3", Row(0, 1, 1, 0, b"of another task")).rows)
    assert list(read_rows(files.rows_for(1, 0))) == [rows[1], rows[0], Row(0, 1, 1, 0, b"of another task")]
    assert list(read_rows(files.rows_for(2, 1))) == [rows[7], rows[6]]
    assert list(read_rows(files.rows_for(2, 1))) == [rows[7], rows[6]], "again, for another attempt"
    assert files.rows_for(1, 2) == []
    files.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_rows_of_an_attempt_that_has_died_do_not_count(tmp_path: Path) -> None:
    files = RowFiles(str(tmp_path), LEVELS)
    write(files, "1", Row(0, 0, 0, 0, b"half"))
    files.add(write(files, "2", Row(0, 0, 0, 0, b"all")).rows)
    assert [row.blob for row in read_rows(files.rows_for(1, 0))] == [b"all"]


def test_a_task_that_sends_nothing_leaves_no_file(tmp_path: Path) -> None:
    files = RowFiles(str(tmp_path), LEVELS)
    assert write(files, "1").rows == []
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == []


def test_a_job_without_exchanges_has_no_folder(tmp_path: Path) -> None:
    RowFiles(str(tmp_path), {}).remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kills", [0, 1])
def test_words_meet_in_processes(tmp_path: Path, kills: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "marks").mkdir()
    words = [f"w{n % 17}" for n in range(400)]
    for number in range(2):
        (tmp_path / "in" / f"{number}.txt").write_text("".join(f"{word}\n" for word in words[number::2]))
    marks = str(tmp_path / "marks")

    def key(line: object) -> str:
        word: str = line.record  # type: ignore[attr-defined]
        if word == "w3" and len(os.listdir(marks)) < kills:
            open(f"{marks}/killed", "x").close()
            os._exit(1)
        return word

    seen = Collector[object]()

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=str(tmp_path / "in")))
        lines = dag.add_operator("lines", BlockReader(min_readers=2))
        count = dag.add_operator("count", Count(by=key))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, count.input)
        dag.add_stream("counts", count.output, dag.add_operator("seen", seen).input)

    launch(populate_dag, runner="local", slots=2, durability="process")
    assert {each.key: each.value for each in seen.records} == Counter(words)  # type: ignore[attr-defined]
    assert len(os.listdir(marks)) == kills
