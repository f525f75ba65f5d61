"""The origin of a row, as text and as JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from dagflow.errors.shown import visible, without_secrets
from dagflow.ledger import InputSlice
from dagflow.lineage.contributions import Contribution
from dagflow.lineage.history import Item
from dagflow.lineage.trace import SourceRecord, Trace
from dagflow.model.types.plain_data import encode, shown
from dagflow.render.datasets.ledger import instant
from dagflow.render.errors import error_json
from dagflow.render.style import Style, narrower, table
from dagflow.render.words import count, counted, size

VERSION = 1
SHOWN = 20
"""So many ranges are shown."""


def trace_text(trace: Trace, style: Style | None = None) -> str:
    """Return the origin of a row, one line for each step, without the problems."""
    style, trace = style or Style(), visible(trace)
    entry = trace.entry
    rows = [
        ["file", f"{trace.file.path}, row {count(trace.row + 1)} of {count(trace.file.rows)}"],
        ["entry", f"{entry.seq}, committed {instant(entry.system_time)} UTC"],
        ["window", f"{trace.window} of application {trace.application}"],
    ]
    rows += [["input" if not number else "", _input(each)] for number, each in enumerate(trace.inputs)]
    if trace.written is not None:
        task = f"task {trace.written.task}" if trace.written.task is not None else "the driver"
        rows.append(["written by", f"{trace.written.operator}, in {task}"])
    if trace.parts:
        rows += [["made of" if not number else "", line] for number, line in enumerate(_parts(trace))]
    else:
        rows += [["read" if not number else "", line] for number, line in enumerate(_read(trace))]
    if trace.source is not None:
        rows += _source(trace.source)
    if trace.several is not None:
        rows.append(["made of", f"all of that: {trace.several}"])
    rows += [["note", remark] for remark in trace.remarks]
    head = f"{style.paint('bold', f'row {count(trace.offset)}')} of {trace.dataset}"
    return "\n".join([head, *(f"  {line}" for line in table(rows, "lL", narrower(style, 2)))])


def trace_json(trace: Trace) -> dict[str, Any]:
    """The same as plain data, with all work items, and with what stands in the way; `v` is the version of the form."""
    trace = without_secrets(trace)
    written, source = trace.written, trace.source
    return {
        "v": VERSION,
        "ok": trace.problem is None,
        "dataset": trace.dataset,
        "offset": trace.offset,
        "file": {"path": trace.file.path, "row": trace.row, "rows": trace.file.rows, "hash": trace.file.physical_hash},
        "entry": {"seq": trace.entry.seq, "hash": trace.entry.hash, "system_time": trace.entry.system_time},
        "window": trace.window,
        "application": trace.application,
        "run_folder": trace.run_folder,
        "operator": None if written is None else written.operator,
        "task": None if written is None else written.task,
        "head": trace.head,
        "inputs": [
            {"dataset": each.dataset_id, "after": each.prev_offset, "up_to": each.new_offset, "entries": _blocks(each)}
            for each in trace.inputs
        ],
        "items": [{"port": item.port, "item": item.value} for item in trace.items],
        "source": None if source is None else _source_json(source),
        "parts": [
            {
                "window": part.window,
                "path": part.path,
                "records": part.rows,
                "positions": [encode(position, "a position") for position in part.positions],
            }
            for part in trace.parts
        ],
        "several": trace.several,
        "remarks": list(trace.remarks),
        "problems": [] if trace.problem is None else error_json(trace.problem),
    }


def ranges(items: Sequence[Item]) -> list[str]:
    """Work items as people read them; blocks of a file that follow each other as one.

    >>> block = lambda path, start, stop: Item("blocks", {"file_path": path, "start": start, "stop": stop})
    >>> ranges([block("a", 0, 4), block("a", 4, 8), block("b", 2, 3), Item("rows", {"start": {"$bytes": "YQ=="}})])
    ['a, bytes [0, 8)', 'b, bytes [2, 3)', "start=b'a'"]
    >>> ranges([Item("blocks", {"topic": "clicks", "partition": 0, "start": 3, "stop": 9, "size": 80})])
    ['clicks[0], offsets [3, 9)']
    """
    texts: list[str] = []
    path, start, stop = None, 0, 0
    for item in items:
        if item.path is None or item.start is None or item.stop is None:
            path, log = None, _partition(item)
            texts.append(f"{log}, offsets [{item.value['start']}, {item.value['stop']})" if log else shown(item.value))
        elif item.path == path and item.start == stop:
            stop = item.stop
            texts[-1] = f"{path}, bytes [{start}, {stop})"
        else:
            path, start, stop = item.path, item.start, item.stop
            texts.append(f"{path}, bytes [{start}, {stop})")
    return texts


def _partition(item: Item) -> str:
    """Return the partition of a message log that a work item is a part of; "" for other items."""
    value = item.value
    is_of_log = isinstance(value, Mapping) and value.keys() >= {"topic", "partition", "start", "stop"}
    return f"{value['topic']}[{value['partition']}]" if is_of_log else ""


def _parts(trace: Trace) -> list[str]:
    """Return the records that a row was made of: their number, and those of each window and file."""
    total = counted(sum(part.rows for part in trace.parts), "record")
    lines = [
        f"{counted(part.rows, 'record')} of {part.path or ', '.join(ranges(part.items))}, window {part.window}{_begins(part)}"
        for part in trace.parts
    ]
    more = len(lines) - SHOWN
    shown_lines = lines if more <= 0 else [*lines[:SHOWN], f"… and {counted(more, 'part')} more (--json names all)"]
    return shown_lines if len(lines) == 1 else [f"{total}:", *shown_lines]


def _begins(part: Contribution) -> str:
    if not part.positions:
        return ""
    where = "byte" if part.path else "position"
    places = ", ".join(map(str, part.positions))
    return f", at {where} {places}{' …' if len(part.positions) < part.rows else ''}"


def _read(trace: Trace) -> list[str]:
    lines = ranges(trace.items)
    more = len(lines) - SHOWN
    return lines if more <= 0 else [*lines[:SHOWN], f"… and {counted(more, 'range')} more (--json names all)"]


def _source(source: SourceRecord) -> list[list[str]]:
    line = "" if source.line is None else f"line {source.line:,}, "
    if source.path:
        end = source.position + source.length
        where = f"{source.path}, {line}bytes [{source.position}, {end}): {size(source.length)}"
    else:  # positions are the source's own
        log = _partition(source.item)
        place = f"{log}, offset" if log else "position"
        where = f"{place} {source.position!r}: {size(source.length)}"
    more = "" if source.length == len(source.data) else f" … (the first {size(len(source.data))})"
    return [["record", where], ["", f"{printable(source.data)}{more}"]]


def printable(data: bytes) -> str:
    r"""Bytes as text on one line: bytes that are not text or would break the line are escaped.

    >>> printable("größe\tx\r\n".encode() + b"\xff")
    'größe\\tx\\r\\n\\xff'
    """
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _source_json(source: SourceRecord) -> dict[str, Any]:
    try:
        text = source.data.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "path": source.path,
        "position": encode(source.position, "a position"),
        "line": source.line,
        "length": source.length,
        "text": text,
        "base64": base64.b64encode(source.data).decode("ascii"),
    }


def _input(each: InputSlice) -> str:
    if each.new_block is None:
        return f"{each.dataset_id}: nothing new"
    after = "start" if each.prev_offset is None else each.prev_offset
    rows = f"rows ({after}, {each.new_offset}]" if each.new_offset is not None else "no rows"
    first = 0 if each.prev_block is None else each.prev_block.seq + 1
    return f"{each.dataset_id}: {rows}, entries {first} to {each.new_block.seq}"


def _blocks(each: InputSlice) -> list[int] | None:
    if each.new_block is None:
        return None
    return [0 if each.prev_block is None else each.prev_block.seq + 1, each.new_block.seq]
