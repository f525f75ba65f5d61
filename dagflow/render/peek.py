"""The records that flow through a port, as a table and as JSON, and `dagflow.peek` for programs."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dagflow.errors.shown import visible, without_secrets
from dagflow.launching.build import LoadedApplication, build
from dagflow.lineage.peek import SAMPLE, PeekablePort, PeekedRecord, PeekedRecords, peek_at, peekable_ports
from dagflow.model.operator.call_sites import shown
from dagflow.model.types.records import ReaderRecord
from dagflow.render.errors import error_json
from dagflow.render.notebook import html_table
from dagflow.render.style import LEAST, Style, indented, narrower, pad, table
from dagflow.render.values import cell, plain
from dagflow.render.words import counted

VERSION = 1


@attrs.frozen
class Peek:
    """The first records that came through a port: the objects, and the text and JSON of `dagflow peek`."""

    data: PeekedRecords

    @property
    def records(self) -> list[Any]:
        """The records as they came; rows of batches whose type is not known are dictionaries."""
        return [each.record for each in self.data.records]

    def text(self, style: Style | None = None) -> str:
        """The text that `dagflow peek` prints."""
        return peek_text(self.data, style)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return peek_json(self.data)

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": peek_html(self.data)}

    def __len__(self) -> int:
        return len(self.data.records)


def peek(
    populate_dag: Any, settings: object = None, port: str = "", *, n: int = 20, sample: int = SAMPLE, **options: Any
) -> Peek:
    r"""Return the first records that flow through a port. What leads to it runs in this process; nothing is written.

    Args:
        populate_dag: the function that fills the DAG, an object with such a method, or what the command line would name.
        settings: an object of its Settings class, or a mapping of keys as for `-D`.
        port: `operator.port`, or the name of an operator with a single stream.
        n: the number of records.
        sample: the number of records of each reader after which a window ends.
        options: settings of the run, as for `launch`.

    Raises ConfigError and DagError for what is wrong, and the error of an operator that fails before there are `n` records.

    >>> import pathlib, tempfile, dagflow
    >>> from operators import BlockReader, Console, FileSplitterInput
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    ...     lines = dag.add_operator("lines", BlockReader())
    ...     dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    ...     dag.add_stream("text", lines.messages, dag.add_operator("show", Console()).input)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("one\ntwo\nthree\n")
    ...     dagflow.peek(populate_dag, {"input": folder}, "lines.messages", n=2).records
    [ReaderRecord(block_id=0, position=0, record='one'), ReaderRecord(block_id=0, position=4, record='two')]
    """
    built = build(populate_dag, code=settings, environment=os.environ, run=options)
    peeked = peek_at(built, port or default_port(built), n=n, sample=sample)
    if peeked.problem is not None:
        raise peeked.problem
    return Peek(peeked)


def default_port(built: LoadedApplication) -> str:
    """Return the last port of an application at which a stream starts."""
    return peekable_ports(built)[-1].port


def ports_text(application: str, ports: Sequence[PeekablePort], style: Style | None = None) -> str:
    """Return the ports of an application that records flow through, as a table."""
    style = style or Style()
    rows = [[each.port, each.type, f"→ {', '.join(each.sinks)}" if each.sinks else ""] for each in ports]
    head = style.paint("bold", f"{application}: {counted(len(ports), 'port')} to peek at")
    return "\n".join([head, *indented(table(rows, "lLL", narrower(style, 2)))])


def peek_text(peeked: PeekedRecords, style: Style | None = None) -> str:
    """Return the records as a table; one below the other where their columns do not fit."""
    style, records = style or Style(), peeked.records
    head = f"{style.paint('bold', peeked.port)}  {peeked.type}  {_number(peeked)}"
    paths = {each.path for each in records if each.path is not None}
    if len(paths) == 1:
        head += f" of {visible(shown(*paths))}"
    lines = [style.cut(head)] if not style.colour else [head]
    if records:
        names = columns_of(records)
        places = _places(records, with_path=len(paths) > 1)
        fits = style.width is None or (len(names) + bool(places)) * (LEAST + 2) <= style.width
        lines += (_table if fits else _blocks)(records, names, places, style)
    lines += [style.paint("dim", f"note: {remark}") for remark in visible(peeked.remarks)]
    return "\n".join(lines)


def peek_json(peeked: PeekedRecords) -> dict[str, Any]:
    """Return the same as plain data; `v` is the version of the form."""
    records = [
        {
            "window": each.window,
            "path": each.path,
            "position": plain(each.position),
            "retracted": each.is_retracted,
            "record": plain(each.record),
        }
        for each in peeked.records
    ]
    return {
        "v": VERSION,
        "ok": peeked.problem is None,
        "application": peeked.application,
        "port": peeked.port,
        "type": peeked.type,
        "all": peeked.is_all,
        "records": without_secrets(records),
        "remarks": list(peeked.remarks),
        "problems": [] if peeked.problem is None else error_json(peeked.problem),
    }


def ports_json(ports: Sequence[PeekablePort]) -> dict[str, Any]:
    """Return the ports of an application as plain data."""
    return {"v": VERSION, "ports": [attrs.asdict(each) for each in ports]}


def columns_of(records: Sequence[PeekedRecord]) -> list[str]:
    """Return the names of all fields of the records, in their order."""
    return list(dict.fromkeys(name for each in records for name in fields_of_record(each.record)))


def fields_of_record(record: Any) -> Mapping[str, Any]:
    """Return the fields of a record by name. A value without fields is the field `value`.

    >>> fields_of_record(ReaderRecord(0, 17, "line")), fields_of_record({"a": 1})
    ({'record': 'line'}, {'a': 1})
    """
    if isinstance(record, Mapping):
        return {str(name): value for name, value in record.items()}
    if isinstance(record, ReaderRecord):
        inner = fields_of_record(record.record)
        return {"record": record.record} if tuple(inner) == ("value",) else inner
    if attrs.has(type(record)):
        return {field.name: getattr(record, field.name) for field in attrs.fields(type(record))}
    if isinstance(record, tuple) and (names := getattr(record, "_fields", None)):
        return dict(zip(names, record, strict=True))
    return {"value": record}


def _number(peeked: PeekedRecords) -> str:
    """Return how many records came, and whether these are all."""
    if not peeked.records:
        return "no records"
    which = "all" if peeked.is_all else "first"
    return (
        f"{which} {counted(len(peeked.records), 'record')}"
        if len(peeked.records) > 1
        else f"{which.replace('all', 'only')} record"
    )


def _places(records: Sequence[PeekedRecord], with_path: bool) -> list[str]:
    """Return the place of each record in its source; empty where no place is known."""
    places = []
    for each in records:
        position = "" if each.position is None else cell(each.position)
        parts = [visible(shown(each.path))] if with_path and each.path is not None else []
        place = ":".join([*parts, position] if position else parts)
        places.append(" ".join([place, "taken back"] if place else ["taken back"]) if each.is_retracted else place)
    return places if any(places) else []


def peek_html(peeked: PeekedRecords) -> str:
    """Return the records as a table for notebooks."""
    paths = {each.path for each in peeked.records if each.path is not None}
    head, rows, align = _cells(peeked.records, columns_of(peeked.records), _places(peeked.records, with_path=len(paths) > 1))
    title = html.escape(f"{peeked.port}  {peeked.type}  {_number(peeked)}")
    notes = "".join(f"<p>note: {html.escape(remark)}</p>" for remark in peeked.remarks)
    return f"<p>{title}</p>{html_table(head, rows, align) if rows else ''}{notes}"


def _table(records: Sequence[PeekedRecord], names: list[str], places: list[str], style: Style) -> list[str]:
    head, rows, align = _cells(records, names, places)
    first, *rest = table([head, *rows], align, style)
    return [style.paint("dim", first), *rest]


def _cells(records: Sequence[PeekedRecord], names: list[str], places: list[str]) -> tuple[list[str], list[list[str]], str]:
    """Return the header, the rows and the alignment of a table."""
    fields = [fields_of_record(each.record) for each in records]
    rows = [[cell(row[name]) if name in row else "" for name in names] for row in fields]
    are_numbers = [all(isinstance(row.get(name), int | float) for row in fields) for name in names]
    head, align = list(names), "".join("r" if is_number else "L" for is_number in are_numbers)
    if places:
        head, rows, align = ["position", *head], [[place, *row] for place, row in zip(places, rows, strict=True)], f"r{align}"
    return head, rows, align


def _blocks(records: Sequence[PeekedRecord], names: list[str], places: list[str], style: Style) -> list[str]:
    lines: list[str] = []
    width = max(map(len, names))
    for number, each in enumerate(records):
        where = f"  {places[number]}" if places and places[number] else ""
        lines.append(style.paint("dim", f"record {number + 1}{where}"))
        fields = fields_of_record(each.record)
        lines += [style.cut(f"  {pad(name, width)}  {cell(value)}") for name, value in fields.items()]
    return lines
