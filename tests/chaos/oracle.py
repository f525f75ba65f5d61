"""The promises of an output whose launches were killed, whenever the last of them got through."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dagflow.ledger import DataFile, Ledger, LedgerEntry, committed_files, fold
from operators.sinks.file_sink import KEPT_SNAPSHOTS

Content = Callable[[Path], object]
HIDDEN = ("_dagflow",)


def lines(output: Path) -> Counter[bytes]:
    """The rows of all visible files, as a multiset."""
    found: Counter[bytes] = Counter()
    for name in visible(output):
        data = (output / name).read_bytes()
        assert data.endswith(b"\n") or not data, f"{name} does not end with a line feed"
        found.update(data.split(b"\n")[:-1])
    return found


def files(output: Path) -> dict[str, bytes]:
    """The bytes of all visible files."""
    return {name: (output / name).read_bytes() for name in visible(output)}


def totals(output: Path) -> Counter[str]:
    """The last of the running totals that lines `word,total` tell: each word has one of them once."""
    found = lines(output)
    assert set(found.values()) <= {1}, f"told twice: {[line for line, times in found.items() if times > 1][:5]}"
    last: Counter[str] = Counter()
    for line in found:
        word, total = line.decode().split(",")
        last[word] = max(last[word], int(total))
    return last


def current(output: Path) -> Counter[str]:
    """The totals of the newest snapshot, which has each word once; it is what the ledger names, and few others are kept."""
    files = sorted(path for path in (output / "current").iterdir())
    assert sorted(path.resolve() for path in files) == sorted(Path(path).resolve() for path in committed_files(str(output)))
    assert len(list((output / "_snapshots").iterdir())) <= KEPT_SNAPSHOTS + 1
    rows = [line.split(",") for path in files for line in path.read_text().splitlines()]
    assert len(dict(rows)) == len(rows), "a word has two totals"
    return Counter({word: int(total) for word, total in rows})


def texts(output: Path) -> Counter[str]:
    """The lines of all visible files, as text."""
    return Counter({line.decode(): times for line, times in lines(output).items()})


def rejected(output: Path) -> Counter[str]:
    """The lines that could not be read, of the JSON lines that tell them."""
    return Counter(json.loads(line)["raw"] for line in lines(output).elements())


def visible(output: Path) -> list[str]:
    """All files in an output folder but those of dagflow's own folder."""
    inner = (path.relative_to(output) for path in output.rglob("*") if not path.is_dir())
    return sorted(str(path) for path in inner if path.parts[0] not in HIDDEN)


def left_over(output: Path) -> list[str]:
    """Return the files that no finished launch may leave: attempt files, reports, temporary files of records, undone windows."""
    ours = output / "_dagflow"
    found = [path for name in ("staging", "reports", "probe") for path in (ours / name).glob("*")]
    found += ours.rglob(".tmp-*")
    numbers = {kind: {path.name for path in (ours / kind).glob("[0-9]*")} for kind in ("plan", "decision", "done")}
    undone = numbers["plan"] ^ numbers["decision"] | numbers["decision"] ^ numbers["done"]
    return sorted(str(path.relative_to(output)) for path in found) + [f"window {name} is not done" for name in sorted(undone)]


def wrong(output: Path, content: Content, expected: object, rows_of: Callable[[bytes], int]) -> Iterator[str]:
    """Everything that does not hold; `content` of the output is to be `expected`, `rows_of` counts the rows in a file's bytes."""
    found = content(output)
    if found != expected:
        yield f"the content differs: {difference(found, expected)}"
    yield from wrong_in_ledger(output, rows_of)
    if remains := left_over(output):
        yield f"left over: {remains}"


def wrong_in_ledger(output: Path, rows_of: Callable[[bytes], int]) -> Iterator[str]:
    """Return the broken promises of the ledger, by itself and against the files in the folder."""
    ledger = Ledger.open(str(output))
    report = ledger.verify()
    yield from (f"verify: {problem}" for problem in report.problems)
    entries = list(Ledger.open(str(output)).entries())
    yield from wrong_in_entries(entries)
    if ledger.resume() != fold(entries):
        yield f"resume() is {ledger.resume()}, all entries together are {fold(entries)}"
    named = list(files_of(entries))
    names = Counter(file.path for file in named)
    if twice := [name for name, count in names.items() if count > 1]:
        yield f"several entries name {twice}"
    if foreign := [name for name in visible(output) if name not in names]:
        yield f"no entry names {foreign}"
    for file in named:
        path = output / file.path
        if path.exists() and (rows := rows_of(path.read_bytes())) != file.rows:
            yield f"{file.path} has {rows} rows, {file.rows} were committed"


def wrong_in_entries(entries: list[LedgerEntry]) -> Iterator[str]:
    """Return True if rows have the offsets 0 to n-1, each once, and windows come in their order, each once."""
    offset, window, applications = 0, -1, set()
    for entry in entries:
        event = entry.data
        if event is None:
            continue
        applications.add(event.txn.app_id)
        if event.txn.window_id <= window:
            yield f"entry {entry.seq} is of window {event.txn.window_id}, after one of window {window}"
        window = event.txn.window_id
        if event.new_data is not None:
            interval = event.new_data.interval
            if interval.start != offset:
                yield f"entry {entry.seq} begins with offset {interval.start}, not {offset}"
            if sum(file.rows for file in event.new_data.files) != interval.rows:
                yield f"the files of entry {entry.seq} do not have its {interval.rows} rows"
            offset += interval.rows
    if len(applications) > 1:
        yield f"entries of several applications: {applications}"


def files_of(entries: list[LedgerEntry]) -> Iterator[DataFile]:
    """All files that entries name."""
    for entry in entries:
        if entry.data is not None and entry.data.new_data is not None:
            yield from entry.data.new_data.files


def difference(found: object, expected: object) -> str:
    """Return the difference of two contents in a few words."""
    if isinstance(found, Counter) and isinstance(expected, Counter):
        return f"too many {_some(found - expected)}, missing {_some(expected - found)}"
    assert isinstance(found, dict)
    assert isinstance(expected, dict)
    changed = [name for name in found if name in expected and found[name] != expected[name]]
    return f"too many {sorted(found.keys() - expected)}, missing {sorted(expected.keys() - found)}, others {changed}"


def _some(rows: Counter[Any]) -> str:
    return f"{rows.total()} rows {list(rows.items())[:5]}"
