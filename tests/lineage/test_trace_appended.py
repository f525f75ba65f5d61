"""Rows of files that are appended to lead back to their bytes, also when the file has grown since."""

from __future__ import annotations

from pathlib import Path

from dagflow.launching.launch import launch
from dagflow.lineage.trace import ApplicationLocator, trace
from operators.readers.errors import FileChanged
from tests.lineage import traced


def test_rows_of_parts_lead_to_their_lines(tmp_path: Path) -> None:
    source, out = tmp_path / "in" / "log", tmp_path / "out"
    source.parent.mkdir()
    given = {"input": str(source), "output": str(out), "operator.splitter.scanner.modified": "append", "block_size": 4}
    for text in ("1\n22\n3", "33\n.\n4444\n", "5\n", "not ended"):
        with source.open("a") as file:
            file.write(text)
        launch(traced.filtered, given, runner="local", durability="process")
    lines = [("1\n", 0), ("22\n", 2), ("333\n", 5), ("4444\n", 11), ("5\n", 16)]
    for row, (line, position) in enumerate(lines):
        found = trace(str(out), row, exact=True, locator=ApplicationLocator(trust=True))
        assert found.source is not None, found.problem
        assert (found.source.data.decode(), found.source.position) == (line, position)
        assert found.remarks == ()
    with source.open("r+") as file:
        file.truncate(8)
    assert isinstance(trace(str(out), 3, exact=True, locator=ApplicationLocator(trust=True)).problem, FileChanged)
    assert trace(str(out), 0, exact=True, locator=ApplicationLocator(trust=True)).problem is None
