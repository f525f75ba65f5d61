"""Rules of data entries: what they carry on, and what they add."""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger import rule_errors as errors
from dagflow.ledger.codec import schema_hash
from dagflow.ledger.events import MAX_OFFSET, AddData, DataSlice, ExecuteQuery, LedgerEntry, OffsetInterval
from dagflow.ledger.rule import Before, Broken, rule
from dagflow.storage import is_below


def _slice(entry: LedgerEntry) -> DataSlice | None:
    return None if entry.data is None else entry.data.new_data


def _intervals(data: DataSlice) -> Iterator[tuple[str, OffsetInterval]]:
    yield "new_data.interval", data.interval
    for number, file in enumerate(data.files):
        yield f"new_data.files[{number}].interval", file.interval


@rule(errors.OffsetNotCarried, "ODF 9, hole 1")
def offset_carried(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """RFC-014's heart."""
    if entry.data is not None:
        expected = None if before.event is None else before.event.last_offset
        if entry.data.prev_offset != expected:
            yield Broken("prev_offset", expected, entry.data.prev_offset)


@rule(errors.OffsetsNotSequential, "ODF 7")
def offsets_sequential(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Offsets are dense. Absent is not 0: a first batch of one row ends at 0."""
    if entry.data is not None and entry.data.new_data is not None:
        expected = 0 if entry.data.prev_offset is None else entry.data.prev_offset + 1
        if entry.data.new_data.interval.start != expected:
            yield Broken("new_data.interval.start", expected, entry.data.new_data.interval.start)


@rule(errors.IntervalInverted, "ODF 8")
def interval_in_order(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """No data is an absent slice, not an empty one."""
    data = _slice(entry)
    if data is not None:
        for field, interval in _intervals(data):
            if interval.end < interval.start:
                yield Broken(f"{field}.end", f"at least {interval.start}", interval.end)


@rule(errors.OffsetTooLarge, "ours, case 42")
def offset_in_range(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """They are stored as int64 by everybody."""
    data = _slice(entry)
    if data is not None and data.interval.end > MAX_OFFSET:
        yield Broken("new_data.interval.end", f"at most {MAX_OFFSET}", data.interval.end)


@rule(errors.CheckpointNotCarried, "ODF 10, hole 1")
def checkpoint_carried(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """So a writer that did not see the last state is found out."""
    if entry.data is not None:
        last = None if before.event is None else before.event.new_checkpoint
        expected = None if last is None else last.hash
        if entry.data.prev_checkpoint != expected:
            yield Broken("prev_checkpoint", expected, entry.data.prev_checkpoint)


@rule(errors.WatermarkWentBack, "ODF 6")
def watermark_goes_on(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Also: it does not vanish."""
    last = None if before.event is None else before.event.new_watermark
    if entry.data is not None and last is not None:
        found = entry.data.new_watermark
        if found is None or found < last:
            yield Broken("new_watermark", f"at least {last}", found)


@rule(errors.SchemaMissing, "ODF 11")
def schema_known(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows without a schema cannot be read."""
    if _slice(entry) is not None and before.schema is None:
        yield Broken("new_data", None, "a slice, with no SetSchema before it")


@rule(errors.SchemaHashWrong, "ODF 8.1")
def schema_in_effect(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A writer that worked with an older schema is found out."""
    data = _slice(entry)
    if data is not None and before.schema is not None and data.schema_hash != schema_hash(before.schema):
        yield Broken("new_data.schema_hash", schema_hash(before.schema), data.schema_hash)


@rule(errors.NothingAdded, "ODF 12, 13")
def something_added(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A year of idle windows costs nothing."""
    event = entry.event
    if isinstance(event, AddData) and event.new_data is None:
        last = before.event
        same_state = event.sources == (last.sources if isinstance(last, AddData) else {})
        checkpoint, watermark = (None, None) if last is None else (last.new_checkpoint, last.new_watermark)
        if same_state and event.new_checkpoint == checkpoint and event.new_watermark == watermark:
            yield Broken("event", "something new", "an AddData that changes nothing")


@rule(errors.NothingExecuted, "ODF 14, 15, hole 4")
def something_executed(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Input that was consumed without a result is progress."""
    event = entry.event
    if isinstance(event, ExecuteQuery) and event.new_data is None and all(each.new_block is None for each in event.inputs):
        last = before.event
        checkpoint, watermark = (None, None) if last is None else (last.new_checkpoint, last.new_watermark)
        if event.new_checkpoint == checkpoint and event.new_watermark == watermark:
            yield Broken("event", "something new", "an ExecuteQuery that changes nothing")


@rule(errors.SourceDropped, "ODF holes 6, 7")
def sources_carried(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """The propagation error that RFC-014 feared most."""
    if isinstance(entry.event, AddData) and isinstance(before.event, AddData):
        for name in before.event.sources:
            if name not in entry.event.sources:
                yield Broken(f"sources.{name}", before.event.sources[name].value, None)


@rule(errors.SourceMisnamed, "ODF 8.1")
def sources_named(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """One source, one name."""
    for name, state in entry.event.sources.items() if isinstance(entry.event, AddData) else ():
        if state.name != name:
            yield Broken(f"sources.{name}.name", name, state.name)


@rule(errors.SliceWithoutFiles, "ODF 8.1")
def slice_has_files(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows are somewhere."""
    data = _slice(entry)
    if data is not None and not data.files:
        yield Broken("new_data.files", "at least one", "none")


@rule(errors.FilesDoNotTile, "ODF 8.1")
def files_tile(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Each row has one place."""
    data = _slice(entry)
    if data is not None and data.files:
        expected = data.interval.start
        for number, file in enumerate(data.files):
            if file.interval.start != expected:
                yield Broken(f"new_data.files[{number}].interval.start", expected, file.interval.start)
            expected = file.interval.end + 1
        if expected != data.interval.end + 1:
            yield Broken("new_data.interval.end", expected - 1, data.interval.end)


@rule(errors.FileRowsWrong, "ODF 8.1")
def rows_match(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """What a reader counts is what offsets say."""
    data = _slice(entry)
    for number, file in enumerate(data.files if data is not None else ()):
        if file.rows != file.interval.rows:
            yield Broken(f"new_data.files[{number}].rows", file.interval.rows, file.rows)


@rule(errors.FilePathOutside, "ours")
def path_inside(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A dataset can be moved as a whole, and no entry makes anybody read elsewhere."""
    data = _slice(entry)
    for number, file in enumerate(data.files if data is not None else ()):
        if not is_below(file.path):
            yield Broken(f"new_data.files[{number}].path", "a relative path inside the dataset", file.path)


@rule(errors.FileTwice, "ours")
def file_once(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A file named twice would double its rows."""
    data = _slice(entry)
    seen: set[str] = set()
    for number, file in enumerate(data.files if data is not None else ()):
        if file.path in seen:
            yield Broken(f"new_data.files[{number}].path", "a file that is not named before", file.path)
        seen.add(file.path)


@rule(errors.SizeNegative, "ours")
def sizes_positive(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Sizes of files and of the checkpoint."""
    data = _slice(entry)
    for number, file in enumerate(data.files if data is not None else ()):
        if file.size < 0:
            yield Broken(f"new_data.files[{number}].size", "at least 0", file.size)
    if entry.data is not None and entry.data.new_checkpoint is not None and entry.data.new_checkpoint.size < 0:
        yield Broken("new_checkpoint.size", "at least 0", entry.data.new_checkpoint.size)


@rule(errors.WindowNotNew, "ODF 8.1; Delta's txn")
def window_new(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """The fact that makes a commit exactly once is in the ledger itself."""
    if entry.data is not None:
        carried = {} if before.previous is None else before.previous.carried.windows
        newest = carried.get(entry.data.txn.app_id, -1)
        if entry.data.txn.window_id <= newest:
            yield Broken("txn.window_id", f"more than {newest}", entry.data.txn.window_id)
