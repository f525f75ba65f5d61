"""The entries of a ledger as text: a line each, or one of them whole."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence

import attrs

from dagflow.errors.shown import visible
from dagflow.ledger import AddData, DataEvent, ExecuteQuery, InputSlice, LedgerEntry, Seed, SetSchema, SetSource, SetTransform
from dagflow.ledger.events import DataSlice, kind_of
from dagflow.ledger.history import Step
from dagflow.ledger.reader import LedgerReader
from dagflow.render.style import Style, indented, narrower, table
from dagflow.render.words import count, counted, size

MOST = 20
"""Entries that are listed where no number is given."""
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


@attrs.frozen(kw_only=True)
class LogHead:
    """The head of a list of entries: their dataset, and the columns that they need."""

    dataset: str
    dataset_id: str
    dataset_kind: str
    entries: int
    rows: int
    watermark: int | None = None
    applications: tuple[str, ...] = ()

    @classmethod
    def of(cls, ledger: LedgerReader, dataset: str) -> LogHead:
        """Return the head of a ledger's list. `dataset`: its place, as it is to be shown."""
        seed, newest, state = ledger.seed(), ledger.head(), ledger.resume()
        return cls(
            dataset=dataset,
            dataset_id=seed.dataset_id,
            dataset_kind=seed.dataset_kind,
            entries=0 if newest is None else newest.seq + 1,
            rows=ledger.content_rows(),
            watermark=state.watermark,
            applications=tuple(state.windows),
        )


def instant(microseconds: int, whole: bool = True) -> str:
    """A time of a ledger (UTC); what no calendar knows as a number of microseconds. Not `whole`: without parts of seconds.

    >>> instant(1_700_000_000_000_000), instant(1_500), instant(1_500, whole=False), instant(2**62)
    ('2023-11-14 22:13:20', '1970-01-01 00:00:00.0015', '1970-01-01 00:00:00', '4611686018427387904 µs')
    """
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} µs"
    fraction = f".{moment.microsecond:06d}".rstrip("0") if whole and moment.microsecond else ""
    return f"{moment.replace(tzinfo=None, microsecond=0).isoformat(sep=' ')}{fraction}"


def log_head(head: LogHead, style: Style) -> str:
    """The line above a list of entries."""
    head = visible(head)
    parts = [f"dataset {head.dataset_id} ({head.dataset_kind})", counted_entries(head.entries), counted(head.rows, "row")]
    if head.watermark is not None:
        parts.append(f"watermark {instant(head.watermark)}")
    return style.cut(f"{head.dataset}: {', '.join(parts)}")


def log_lines(steps: Sequence[Step], head: LogHead, style: Style, *, titled: bool = True) -> list[str]:
    """A line an entry, in the order given; `titled`: the names of the columns above them."""
    steps = visible(list(steps))
    columns = [column for column in _COLUMNS if column[0] not in _without(head)]
    rows = [[title for title, _, _ in columns], *([cell(step) for _, _, cell in columns] for step in steps)]
    title, *lines = table(rows, "".join(align for _, align, _ in columns), style)
    return [style.paint("bold", title), *lines] if titled else lines


def log_end(older: Step | None, style: Style) -> str:
    """Return the line below a list that is cut short. `older`: the first entry left out, if all before it are left out too."""
    number = "older entries" if older is None else f"{counted_entries(older.entry.seq + 1)} before"
    return style.paint("dim", f"… {number} (-n 0 shows all)")


def entry_text(step: Step, dataset: str, style: Style) -> str:
    """One entry whole."""
    step, dataset = visible(step), visible(dataset)
    entry = step.entry
    rows = [
        ["hash", entry.hash],
        ["follows", f"{entry.seq - 1} ({entry.prev_hash})" if entry.prev_hash is not None else "nothing"],
        ["time", f"{instant(entry.system_time)} UTC"],
        ["event", kind_of(entry.event)],
    ]
    blocks: list[list[str]] = []
    if entry.data is not None:
        rows += _data(entry.data, step)
        blocks = [_inputs(entry.data, style), _files(entry.data, style)]
    else:
        rows += _setting(entry)
    unknown = {**entry.unknown, **entry.event.unknown}
    if unknown:
        rows.append(["unknown", json.dumps(unknown, ensure_ascii=False, sort_keys=True)])
    head = f"{style.paint('bold', f'entry {entry.seq}')} of {dataset}"
    first = [head, *indented(table(rows, "lL", narrower(style, 2)))]
    return "\n\n".join("\n".join(block) for block in [first, *blocks] if block)


def counted_entries(number: int) -> str:
    """A number of entries.

    >>> counted_entries(1), counted_entries(1000)
    ('1 entry', '1,000 entries')
    """
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _without(head: LogHead) -> set[str]:
    """The columns that would say nothing."""
    without = set()
    if len(head.applications) < 2:
        without.add("application")
    if head.watermark is None:
        without.add("watermark")
    return without


def _rows(step: Step) -> str:
    data = step.entry.data
    if data is None:
        return ""
    return "-" if data.new_data is None else f"[{data.new_data.interval.start}, {data.new_data.interval.end}]"


def _file_count(step: Step) -> str:
    data = step.entry.data
    return "" if data is None or data.new_data is None else count(len(data.new_data.files))


def _bytes(step: Step) -> str:
    data = step.entry.data
    return "" if data is None or data.new_data is None else size(data.new_data.size)


def _watermark(step: Step) -> str:
    data = step.entry.data
    return "" if data is None or data.new_watermark is None else instant(data.new_watermark)


def _moved(step: Step) -> str:
    event = step.entry.event
    if isinstance(event, ExecuteQuery):
        slices = {each.dataset_id: each for each in event.inputs}
        return ", ".join(f"{name} +{count(slices[name].rows)}" if name in slices else name for name in step.moved)
    data = step.entry.data
    return (
        "; ".join([", ".join(step.moved), *_replacing(data), *_changes(data), *_expectations(data, only="warned")])
        if data is not None
        else "; ".join(" ".join(row) for row in _setting(step.entry) if row[0] not in ("spec", "plan"))
    )


def _replacing(data: DataEvent) -> list[str]:
    return [f"replaces {_what_is_replaced(data.new_data)}"] if data.new_data is not None and data.new_data.replaces else []


def _changes(data: DataEvent) -> list[str]:
    """Return how many rows came into a result, and left it."""
    changes = data.extra.get("changes")
    inserted, retracted = map(changes.get, ("inserted", "retracted")) if isinstance(changes, Mapping) else (None, None)
    if not isinstance(inserted, int) or not isinstance(retracted, int):
        return []
    return [f"{counted(inserted, 'row')} inserted, {count(retracted)} retracted"]


def _what_is_replaced(data: DataSlice) -> str:
    kept = len(data.kept_files)
    return f"rows, and keeps {counted(kept, 'file')}" if kept else "all rows"


_COLUMNS: tuple[tuple[str, str, Callable[[Step], str]], ...] = (
    ("entry", "r", lambda step: str(step.entry.seq)),
    ("time (UTC)", "l", lambda step: instant(step.entry.system_time, whole=False)),
    ("event", "l", lambda step: kind_of(step.entry.event)),
    ("window", "r", lambda step: "" if step.entry.data is None else str(step.entry.data.txn.window_id)),
    ("application", "l", lambda step: "" if step.entry.data is None else step.entry.data.txn.app_id[:12]),
    ("rows", "l", _rows),
    ("files", "r", _file_count),
    ("bytes", "r", _bytes),
    ("watermark", "l", _watermark),
    ("what moved", "L", _moved),
)


def _setting(entry: LedgerEntry) -> list[list[str]]:
    """Return the metadata that an entry sets."""
    event = entry.event
    if isinstance(event, Seed):
        return [["dataset", f"{event.dataset_id} ({event.dataset_kind})"]]
    if isinstance(event, SetSchema):
        fields = (f"{field.name}: {field.type}{' or null' if field.optional else ''}" for field in event.schema)
        written = ", ".join(f"{name} {value!r}" for name, value in event.written.items())
        return [["schema", ", ".join(fields)], *([["written", written]] if written else [])]
    if isinstance(event, SetTransform):
        paths = event.spec.get("paths")
        places = paths if isinstance(paths, dict) else {}
        rows = [["made of", ", ".join(f"{places[name]} ({name})" if name in places else name for name in event.inputs)]]
        rows.append(["plan", event.plan_hash])
        return rows + ([["spec", json.dumps(event.spec, ensure_ascii=False, sort_keys=True)]] if event.spec else [])
    if isinstance(event, SetSource):
        rows = [["source", f"{event.name} ({event.merge})"]]
        return rows + ([["spec", json.dumps(event.spec, ensure_ascii=False, sort_keys=True)]] if event.spec else [])
    return []


def _data(event: DataEvent, step: Step) -> list[list[str]]:
    txn = event.txn
    rows = [["window", f"{txn.window_id} of application {txn.app_id}, attempt {txn.attempt_id}"]]
    if event.new_data is None:
        rows.append(["rows", f"none; the newest is {'none' if event.prev_offset is None else event.prev_offset}"])
    else:
        interval = event.new_data.interval
        kept = event.new_data.kept_files
        stays = f" but those of {counted(len(kept), 'file')}" if kept else ""
        place = f", in the place of all earlier rows{stays}" if event.new_data.replaces else ""
        text = f"[{interval.start}, {interval.end}]: {counted(interval.rows, 'row')}, {size(event.new_data.size)}{place}"
        rows.append(["rows", text])
    if event.new_watermark is not None:
        rows.append(["watermark", f"{instant(event.new_watermark)} UTC"])
    if isinstance(event, AddData):
        for number, (name, state) in enumerate(sorted(event.sources.items())):
            moved = "" if name in step.moved else " (as before)"
            rows.append(["sources" if not number else "", f"{name}{moved}: {state.kind} {state.value}"])
    if event.new_checkpoint is not None:
        moved = " (as before)" if event.new_checkpoint.hash == event.prev_checkpoint else ""
        rows.append(["checkpoint", f"{event.new_checkpoint.hash}{moved}"])
    verdicts = _expectations(event)
    rows += [["expected" if not number else "", text] for number, text in enumerate(verdicts)]
    shown_above = {"expectations": verdicts, "changes": _changes(event)}
    rows += [["changes", text] for text in shown_above["changes"]]
    extra = {name: value for name, value in event.extra.items() if not shown_above.get(name)}
    if extra:
        rows.append(["extra", json.dumps(extra, ensure_ascii=False, sort_keys=True)])
    return rows


def _expectations(event: DataEvent, only: str | None = None) -> list[str]:
    """Return the verdicts on the rejected records of a window, a line each. `only`: those of a status."""
    results = event.extra.get("expectations")
    known = [each for each in results if isinstance(each, dict)] if isinstance(results, list | tuple) else []
    return [
        "{operator} rejected {rejected:,} of {records:,} records; limit {limit} ({name}): {status}".format_map(each)
        for each in known
        if each.keys() >= _VERDICT and isinstance(each["rejected"], int) and isinstance(each["records"], int)
        if only in (None, each["status"])
    ]


_VERDICT = {"operator", "rejected", "records", "name", "limit", "status"}


def _inputs(event: DataEvent, style: Style) -> list[str]:
    if not isinstance(event, ExecuteQuery):
        return []
    rows = [["input", "rows", "offsets", "entries", "watermark"]]
    rows += [[each.dataset_id, count(each.rows), _offsets(each), _entries(each), _seen(each)] for each in event.inputs]
    return _titled(table(rows, "lrllL", style), style)


def _offsets(each: InputSlice) -> str:
    return f"({_or_start(each.prev_offset)}, {each.new_offset}]" if each.new_offset is not None else "nothing new"


def _entries(each: InputSlice) -> str:
    if each.new_block is None:
        return "nothing new"
    return f"({_or_start(None if each.prev_block is None else each.prev_block.seq)}, {each.new_block.seq}]"


def _seen(each: InputSlice) -> str:
    return "" if each.watermark is None else instant(each.watermark)


def _or_start(number: int | None) -> str:
    return "start" if number is None else str(number)


def _files(event: DataEvent, style: Style) -> list[str]:
    if event.new_data is None:
        return []
    rows = [["file", "rows", "offsets", "bytes", "hash"]]
    for file in event.new_data.files:
        offsets = f"[{file.interval.start}, {file.interval.end}]"
        rows.append([file.path, count(file.rows), offsets, size(file.size), file.physical_hash])
    return _titled(table(rows, "LrlrL", style), style)


def _titled(lines: list[str], style: Style) -> list[str]:
    return [style.paint("bold", lines[0]), *lines[1:]]
