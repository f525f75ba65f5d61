"""Rules of data entries: the state that they carry, and the rows that they add."""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger.codec import schema_hash
from dagflow.ledger.errors import NothingAdded, NothingExecuted
from dagflow.ledger.events import MAX_OFFSET, AddData, DataFile, DataSlice, ExecuteQuery, LedgerEntry, OffsetInterval
from dagflow.ledger.rules.rule import ChainState, Violation, rule
from dagflow.storage import is_below


def _slice(entry: LedgerEntry) -> DataSlice | None:
    return None if entry.data is None else entry.data.new_data


def _files(entry: LedgerEntry) -> Iterator[tuple[str, DataFile]]:
    """Yield the files that an entry keeps and adds, with their places in it."""
    data = _slice(entry)
    if data is not None:
        for number, each in enumerate(data.kept):
            yield from ((f"new_data.kept[{number}].files[{at}]", file) for at, file in enumerate(each.files))
        yield from ((f"new_data.files[{number}]", file) for number, file in enumerate(data.files))


def _intervals(data: DataSlice) -> Iterator[tuple[str, OffsetInterval]]:
    yield "new_data.interval", data.interval
    for number, file in enumerate(data.files):
        yield f"new_data.files[{number}].interval", file.interval


# The state that a data entry carries from the one before.


@rule(
    "DF530", "prev_offset is the end of the last slice that was not empty, also where no data is added; absent before the first"
)
def offset_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The heart of RFC-014: an entry says which rows are before its own."""
    if entry.data is not None:
        expected = None if before.event is None else before.event.last_offset
        if entry.data.prev_offset != expected:
            yield Violation("prev_offset", expected, entry.data.prev_offset)


@rule("DF534", "prev_checkpoint is the new_checkpoint of the last data entry")
def checkpoint_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An entry of a writer that did not see the last state is refused."""
    if entry.data is not None:
        last = None if before.event is None else before.event.new_checkpoint
        expected = None if last is None else last.hash
        if entry.data.prev_checkpoint != expected:
            yield Violation("prev_checkpoint", expected, entry.data.prev_checkpoint)


@rule("DF535", "A watermark, once set, is on every later data entry, and never smaller")
def watermark_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A watermark does not go back, and does not vanish."""
    last = None if before.event is None else before.event.new_watermark
    if entry.data is not None and last is not None:
        watermark = entry.data.new_watermark
        if watermark is None or watermark < last:
            yield Violation("new_watermark", f"at least {last}", watermark)


@rule("DF540", "The states of all sources are carried, also of those that had nothing new")
def sources_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The propagation error that RFC-014 feared most."""
    if isinstance(entry.event, AddData) and isinstance(before.event, AddData):
        for name in before.event.sources:
            if name not in entry.event.sources:
                yield Violation(f"sources.{name}", before.event.sources[name].value, None)


@rule("DF541", "The state of a source stands under the source's name")
def sources_named(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A source has one name."""
    for name, state in entry.event.sources.items() if isinstance(entry.event, AddData) else ():
        if state.name != name:
            yield Violation(f"sources.{name}.name", name, state.name)


@rule("DF548", "The windows of an application are committed once each, in their order, from 0")
def window_new(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The fact that makes a commit exactly once is in the ledger itself."""
    if entry.data is not None:
        carried = {} if before.previous is None else before.previous.carried.windows
        newest = carried.get(entry.data.txn.app_id, -1)
        if entry.data.txn.window_id <= newest:
            yield Violation("txn.window_id", f"more than {newest}", entry.data.txn.window_id)


# The rows that a data entry adds.


@rule("DF531", "New data begins at prev_offset + 1, at 0 if there was none")
def offsets_sequential(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Offsets are dense. Absent is not 0: a first batch of one row ends at 0."""
    if entry.data is not None and entry.data.new_data is not None:
        expected = 0 if entry.data.prev_offset is None else entry.data.prev_offset + 1
        if entry.data.new_data.interval.start != expected:
            yield Violation("new_data.interval.start", expected, entry.data.new_data.interval.start)


@rule("DF532", "An interval of offsets does not end before it starts")
def interval_in_order(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An entry without data has no slice, rather than an empty one. One that takes the place of all rows may be empty."""
    data = _slice(entry)
    if data is not None:
        least = 1 if data.replaces and len(data.files) <= 1 else 0
        for field, interval in _intervals(data):
            if interval.end < interval.start - least:
                yield Violation(f"{field}.end", f"at least {interval.start - least}", interval.end)


@rule("DF533", "Offsets fit into 63 bits")
def offset_in_range(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """All readers store them as int64."""
    data = _slice(entry)
    if data is not None and data.interval.end > MAX_OFFSET:
        yield Violation("new_data.interval.end", f"at most {MAX_OFFSET}", data.interval.end)


@rule("DF536", "Data needs a SetSchema before it")
def schema_known(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows without a schema cannot be read."""
    if _slice(entry) is not None and before.schema is None:
        yield Violation("new_data", None, "a slice, with no SetSchema before it")


@rule("DF537", "A slice names the hash of the schema in effect")
def schema_in_effect(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An entry of a writer that worked with an older schema is refused."""
    data = _slice(entry)
    if data is not None and before.schema is not None and data.schema_hash != schema_hash(before.schema):
        yield Violation("new_data.schema_hash", schema_hash(before.schema), data.schema_hash)


@rule("DF542", "A slice has at least one file, unless it replaces some; no data is an absent slice")
def slice_has_files(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows are in files."""
    data = _slice(entry)
    if data is not None and not data.files and not data.replaces:
        yield Violation("new_data.files", "at least one", "none")


@rule("DF543", "The files of a slice follow each other without a gap, from its start to its end")
def files_tile(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Each row has one place."""
    data = _slice(entry)
    if data is not None and (data.files or data.replaces):
        expected = data.interval.start
        for number, file in enumerate(data.files):
            if file.interval.start != expected:
                yield Violation(f"new_data.files[{number}].interval.start", expected, file.interval.start)
            expected = file.interval.end + 1
        if expected != data.interval.end + 1:
            yield Violation("new_data.interval.end", expected - 1, data.interval.end)


@rule("DF544", "A file has as many rows as its interval has offsets")
def rows_match(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A reader counts as many rows as there are offsets."""
    data = _slice(entry)
    for number, file in enumerate(data.files if data is not None else ()):
        if file.rows != file.interval.rows:
            yield Violation(f"new_data.files[{number}].rows", file.interval.rows, file.rows)


@rule("DF545", "The path of a file is relative to the dataset, and stays in it")
def path_inside(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A dataset can be moved as a whole, and no entry makes a reader open files elsewhere."""
    for field, file in _files(entry):
        if not is_below(file.path):
            yield Violation(f"{field}.path", "a relative path inside the dataset", file.path)


@rule("DF546", "A slice names a file once")
def file_once(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A file named twice would double its rows."""
    seen: set[str] = set()
    for field, file in _files(entry):
        if file.path in seen:
            yield Violation(f"{field}.path", "a file that is not named before", file.path)
        seen.add(file.path)


@rule("DF840", "Files are kept where others are replaced, in the order of their rows, which come before the new ones")
def kept_before(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The content is in the order of offsets, whatever was replaced."""
    data = _slice(entry)
    if data is None or not data.kept:
        return
    if not data.replaces:
        yield Violation("new_data.kept", "nothing, since nothing is replaced", "files")
    least = 0
    for field, file in _files(entry):
        if field.startswith("new_data.kept"):
            if not least <= file.interval.start <= file.interval.end < data.interval.start:
                expected = f"rows from {least} to {data.interval.start - 1}"
                yield Violation(f"{field}.interval", expected, f"{file.interval.start} to {file.interval.end}")
            least = file.interval.end + 1


@rule("DF547", "Sizes are bytes, 0 or more")
def sizes_positive(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Sizes of files and of the checkpoint."""
    data = _slice(entry)
    for number, file in enumerate(data.files if data is not None else ()):
        if file.size < 0:
            yield Violation(f"new_data.files[{number}].size", "at least 0", file.size)
    if entry.data is not None and entry.data.new_checkpoint is not None and entry.data.new_checkpoint.size < 0:
        yield Violation("new_checkpoint.size", "at least 0", entry.data.new_checkpoint.size)


@rule("DF538", "An AddData changes something: data, checkpoint, watermark or the state of a source", error=NothingAdded)
def something_added(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A year of idle windows costs nothing."""
    event = entry.event
    if isinstance(event, AddData) and event.new_data is None:
        last = before.event
        same_state = event.sources == (last.sources if isinstance(last, AddData) else {})
        checkpoint, watermark = (None, None) if last is None else (last.new_checkpoint, last.new_watermark)
        if same_state and event.new_checkpoint == checkpoint and event.new_watermark == watermark:
            yield Violation("event", "something new", "an AddData that changes nothing")


@rule("DF539", "An ExecuteQuery changes something: data, checkpoint, watermark or an input", error=NothingExecuted)
def something_executed(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Input that was consumed without a result is progress."""
    event = entry.event
    if isinstance(event, ExecuteQuery) and event.new_data is None and all(each.new_block is None for each in event.inputs):
        last = before.event
        checkpoint, watermark = (None, None) if last is None else (last.new_checkpoint, last.new_watermark)
        if event.new_checkpoint == checkpoint and event.new_watermark == watermark:
            yield Violation("event", "something new", "an ExecuteQuery that changes nothing")
