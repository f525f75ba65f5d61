"""A sample of output rows, each with its origin: file, entry, window, task, ranges of the sources, and the line itself."""

from __future__ import annotations

import contextlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from dagflow.errors import DagflowError
from dagflow.ledger import Ledger
from dagflow.ledger.events import DataFile
from dagflow.lineage.history import Item
from dagflow.lineage.trace import ApplicationLocator, Trace, trace
from dagflow.page.run.inputs import item_range
from dagflow.storage import BinaryReader, explained, file_system, inside, is_local, may_follow

MAX_ROWS = 20
MAX_FILES = 10
MAX_RANGES = 12
MAX_TEXT = 2_000
MAX_READ = 32 << 20
"""Remote files of more bytes than this are not read for their rows; nor are larger ranges of sources."""
MAX_SCAN = 2 << 30
"""Nor are larger local files."""
MAX_LINE = 1 << 20
TEXTS = (".txt", ".log", ".jsonl", ".ndjson")
"""The names of sources whose lines are records. A line of CSV or XML may be a part of one."""
CHUNK = 4 << 20
BUDGET = 20.0
"""Seconds: tasks run again for rows until then, and for as long again, rows are traced without that. Others are left out."""
_TOO_SLOW = f"its task was not run again: other rows have taken the {BUDGET:.0f} s for that"


def sample_rows(
    datasets: Sequence[str], locator: ApplicationLocator | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[dict[str, Any]]:
    """Yield rows of the newest windows of each dataset as plain data.

    `locator`: with it, the task of a row runs again to find its record, and its output is discarded. Without it, a record is
    named if its task read only one line, or exactly one line with the text of the row. `problem` says why a row could not be
    traced.
    """
    began = clock()
    remark = None
    for dataset in datasets:
        try:
            chosen = list(_choose(dataset, max(1, MAX_ROWS // len(datasets))))
        except DagflowError as problem:
            yield {"dataset": dataset, "problem": _problem(problem)}
            continue
        for file, offsets in groupby(chosen, key=lambda row: row[1]):
            rows = [offset for offset, _ in offsets]
            if locator is None and clock() - began > BUDGET:
                return
            texts = row_texts(dataset, file, [offset - file.interval.start for offset in rows])
            for offset in rows:
                if clock() - began > BUDGET:
                    if locator is None:
                        return
                    began, locator, remark = clock(), None, _TOO_SLOW
                row = _row(dataset, offset, file, texts, locator)
                yield row if remark is None else {**row, "remarks": [*row.get("remarks", ()), remark]}


def _choose(dataset: str, count: int) -> Iterator[tuple[int, DataFile]]:
    """Choose rows: of the newest files, the first one, the last one, and some between."""
    files: list[DataFile] = []
    for entry in Ledger.open(dataset, durable=False).content():
        files += [file for _, file in entry.content if file.rows]
        if len(files) >= MAX_FILES:
            break
    each = max(2, count // max(1, len(files)))
    left = count
    for file in files:
        number = min(each, file.rows, left)
        left -= number
        steps = [n * (file.rows - 1) // max(1, number - 1) for n in range(number)]
        yield from ((file.interval.start + step, file) for step in dict.fromkeys(steps))


def _row(
    dataset: str, offset: int, file: DataFile, texts: Mapping[int, str] | DagflowError, locator: ApplicationLocator | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset, "offset": offset, "file": file.path, "row": offset - file.interval.start}
    if isinstance(texts, DagflowError):
        return {**row, "problem": _problem(texts)}
    try:
        row["text"] = texts.get(row["row"])
        with contextlib.nullcontext() if locator is None else _without_output():
            origin = trace(dataset, offset, exact=locator is not None, locator=locator)
    except DagflowError as problem:
        return {**row, "problem": _problem(problem)}
    row.update(window=origin.window, entry=origin.entry.seq, head=origin.head, remarks=list(origin.remarks))
    row["committed"] = origin.entry.system_time / 1e6
    if origin.written is not None:
        row.update(operator=origin.written.operator, task=origin.written.task)
    row["ranges"] = [item_range(item) for item in origin.items[:MAX_RANGES]]
    row["more_ranges"] = max(0, len(origin.items) - MAX_RANGES)
    if origin.several is not None:
        row["several"] = origin.several
    if origin.problem is not None:
        row["problem"] = _problem(origin.problem)
    row["source"] = _source(origin)
    if row["source"] is None and locator is None:
        row["source"] = (_alike(origin, row["text"]) if row["text"] else None) or _only_line(origin)
    return row


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    """Discard what code prints, logs and warns of meanwhile: tasks that run again for rows repeat it for each row."""
    disabled = logging.root.manager.disable
    with open(os.devnull, "w") as nothing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable()
        try:
            with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
                yield
        finally:
            logging.disable(disabled)


def _source(origin: Trace) -> dict[str, Any] | None:
    source = origin.source
    if source is None:
        return None
    text = _short(source.data.decode("utf-8", "backslashreplace"))
    place = {"path": source.path, "position": source.position, "length": source.length, "line": source.line}
    return {**place, "text": text, "how": "the task was run again up to this row"}


def _alike(origin: Trace, text: str) -> dict[str, Any] | None:
    """Return the line of the ranges that has the text of the row; None if there is none, or more than one."""
    wanted = text.encode("utf-8", "backslashreplace")
    if len(origin.items) > MAX_RANGES or not wanted or len(text) >= MAX_TEXT:
        return None
    places: list[tuple[str, int]] = []
    for item in origin.items:
        if (part := _range(origin, item)) is None or part[2] - part[1] > MAX_READ:
            return None
        path, start, stop = part
        try:
            with explained(path, "looking for a line"), file_system(path).open(path) as file:
                file.seek(start)
                data = file.read(stop - start + len(wanted) + 2)  # a range's last line may end behind it
        except (DagflowError, OSError):
            return {"path": path, "gone": True}
        at = data.find(wanted)
        while at >= 0 and len(places) < 2:
            begins = (at == 0 and start == 0) or data[at - 1 : at] == b"\n"
            ends = data[at + len(wanted) : at + len(wanted) + 1] in (b"", b"\n", b"\r")
            if begins and ends:
                places.append((path, start + at))
            at = data.find(wanted, at + 1)
    if len(set(places)) != 1:
        return None
    path, position = places[0]
    how = "the only line with exactly this text in what this task read"
    return {"path": path, "position": position, "length": len(wanted), "line": None, "text": text, "how": how}


def _only_line(origin: Trace) -> dict[str, Any] | None:
    """Return the line of the ranges if there is only one; None where files are compressed, or not text."""
    if len(origin.items) != 1 or origin.several is not None:
        return None
    (item,) = origin.items
    part = _range(origin, item)
    if part is None or not part[0].endswith(TEXTS):
        return None
    path, start, stop = part
    begin = max(0, start - 1)
    try:
        with explained(path, "looking for a line"), file_system(path).open(path) as file:
            file.seek(begin)
            data = file.read(min(stop - begin, MAX_LINE) + MAX_LINE)  # a range's last line may end behind it
    except (DagflowError, OSError):
        return None
    if start > 0:  # what stands before the first line end belongs to the range before
        at = data.find(b"\n") + 1
        if not at:
            return None
        begin, data = begin + at, data[at:]
    line, end, _ = data.partition(b"\n")
    after = begin + len(line) + len(end)
    if begin >= stop or after < stop or not (end or len(data) < MAX_LINE):
        return None
    text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    how = "the only line that this task read"
    return {"path": path, "position": begin, "length": len(line), "line": None, "text": _short(text), "how": how}


def _range(origin: Trace, item: Item) -> tuple[str, int, int] | None:
    """Return the file, start and stop of a work item; None where it has none, or its file is on a host that only it names."""
    path, start, stop = item.path, item.start, item.stop
    if path is None or start is None or stop is None or not 0 <= start <= stop < 1 << 63:
        return None
    return (path, start, stop) if may_follow(origin.dataset, path) else None


def row_texts(dataset: str, file: DataFile, rows: Sequence[int]) -> dict[int, str] | DagflowError:
    """Return rows of a committed file as text, by their number; without those whose form is not known, or the file is too large.

    Returns the error when the file is gone.
    """
    path = inside(dataset, file.path)
    try:
        with explained(path, "reading a row"):
            if path.endswith(".parquet"):
                return {row: text for row in rows if (text := _parquet_row(path, row)) is not None}
            if path.endswith((".gz", ".zst", ".bz2", ".xz", ".arrow", ".avro")):
                return {}
            if file.size > (MAX_SCAN if is_local(path) else MAX_READ):
                return {}
            with file_system(path).open(path) as stream:
                lines, number = _lines(stream, {row + head for row in rows for head in (0, 1)})
    except DagflowError as problem:
        return problem
    head = number - file.rows  # a file of CSV may have a line of names
    if head not in (0, 1):
        return {}
    texts = {row: lines[row + head].decode("utf-8", "backslashreplace").removesuffix("\r") for row in rows}
    return {row: _short(text) for row, text in texts.items()}


def _lines(stream: BinaryReader, wanted: set[int]) -> tuple[dict[int, bytes], int]:
    """Return the beginnings of the wanted lines of a file, and how many lines it has."""
    lines: dict[int, bytes] = {}
    number, begun = 0, b""  # the line at the end of what has been read; kept if it is wanted
    is_open = False
    while chunk := stream.read(CHUNK):
        breaks = chunk.count(b"\n")
        if wanted.isdisjoint(range(number, number + breaks + 1)):
            number += breaks
        else:
            parts = chunk.split(b"\n")
            parts[0] = begun + parts[0]
            lines.update((number + n, part[: 4 * MAX_TEXT + 4]) for n, part in enumerate(parts) if number + n in wanted)
            number += breaks
        begun = lines.get(number, b"")
        is_open = not chunk.endswith(b"\n")
    return lines, number + is_open


def _parquet_row(path: str, row: int) -> str | None:
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from dagflow.arrow_types import held

    try:
        with file_system(path).open(path) as stream, pq.ParquetFile(stream) as file:
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if row < rows:
                    record = held.rows(file.read_row_group(group).slice(row, 1))[0]
                    return _short(json.dumps(record, ensure_ascii=False, default=str))
                row -= rows
    except pa.ArrowException:
        return None
    return None


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _problem(problem: DagflowError) -> dict[str, str]:
    return {"code": problem.code, "text": problem.message()}
