"""Verifying a ledger: what is stored is what was written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress

import attrs

from dagflow.errors import DagflowError
from dagflow.ledger.codec import decode_entry
from dagflow.ledger.errors import (
    EntryMissing,
    EntryRewritten,
    FileNotKept,
    ForeignObject,
    InputDiverged,
    LedgerCut,
    LedgerDamaged,
    LedgerError,
    LedgerRuleError,
    NoSuchEntry,
    ObjectDamaged,
    ObjectMissing,
)
from dagflow.ledger.events import DataFile, EntryRef, ExecuteQuery, InputSlice, LedgerEntry
from dagflow.ledger.reader import LedgerReader
from dagflow.ledger.rules.data import path_inside
from dagflow.ledger.rules.rule import ChainState
from dagflow.ledger.rules.table import broken_rules
from dagflow.ledger.snapshots import current_problem
from dagflow.ledger.state import fold, resume
from dagflow.ledger.tail import ENTRIES, HINTS, entry_name, entry_number, parse_hint
from dagflow.storage import file_system, inside, is_object_store, new_hash, translate
from dagflow.storage.errors import PathOutside
from dagflow.storage.records.errors import RecordRefused

_PIECE = 1 << 20


@attrs.frozen(kw_only=True)
class VerifyReport:
    """The result of verifying.

    Attributes:
        entries, files: how many were read and checked; files of replaced rows may be gone.
        rows: the content of the dataset.
        head: the newest entry: noted elsewhere, it shows if the whole ledger is rewritten.
        problems: what is damaged, in the order of entries.
    """

    entries: int
    rows: int
    files: int
    head: EntryRef | None
    problems: tuple[DagflowError, ...]

    @property
    def is_clean(self) -> bool:
        """Return whether nothing is damaged."""
        return not self.problems

    def check(self) -> None:
        """Raise the first problem, if there is one."""
        for problem in self.problems:
            raise problem


def verify(
    ledger: LedgerReader, *, inputs: Mapping[str, LedgerReader], files: bool, noted: EntryRef | None = None
) -> VerifyReport:
    """See `Ledger.verify`."""
    problems: list[DagflowError] = []
    read: list[LedgerEntry] = []
    hashes: dict[int, str] = {}
    content: dict[str, DataFile] = {}
    seen: set[str] = set()
    before: ChainState | None = ChainState()
    numbers = sorted(_numbers(ledger, problems))
    last = numbers[-1] if numbers else -1
    first = _first_content(ledger, numbers)
    for seq, missing in _places(numbers):
        entry = None
        if missing:  # one problem for all of them: a number may be far from the one before
            why = "it is missing" if missing == 1 else f"it and the {missing - 1:,} after it are missing"
            problems.append(EntryMissing(ledger.store.url, seq, f"{why}, but entry {last} is there"))
        else:
            entry = _entry(ledger, seq, problems, hashes)
        if entry is None:
            before = None  # what it said is not known: of the later ones only the links are checked
            continue
        if before is not None:
            problems += broken_rules(before, entry)
            problems += _change(content, entry, ledger.place)
            before = before.after(entry)
        elif seq - 1 in hashes and entry.prev_hash != hashes[seq - 1]:
            problems.append(
                EntryRewritten(
                    ledger.store.url, seq - 1, f"its hash is {hashes[seq - 1]}, but entry {seq} follows {entry.prev_hash}"
                )
            )
        read.append(entry)
        if isinstance(entry.event, ExecuteQuery):
            problems += _inputs(entry, entry.event, inputs)
        for file, problem in _files(ledger, entry, seen if seq == first else None) if files else ():
            if isinstance(problem, ObjectMissing) and seq < first:
                continue  # its rows were replaced, and it was swept
            seen.add(file.path)
            problems += [] if problem is None or _is_known(problem, problems) else [problem]
    problems += _hints(ledger, last, hashes, noted)
    head = read[-1] if read and read[-1].seq == last else None
    if head is not None and not problems and fold(read) != resume(before.data if before is not None else None):
        problems.append(
            LedgerDamaged(ledger.place, head.seq, "what the newest data entry carries is not what all entries add up to")
        )
    if files and head is not None and not problems and (problem := current_problem(ledger, head.seq)) is not None:
        problems.append(problem)
    rows = sum(file.rows for entry in read if entry.seq >= first for _, file in entry.content)
    return VerifyReport(
        entries=len(read), rows=rows, files=len(seen), head=None if head is None else head.ref, problems=tuple(problems)
    )


def _numbers(ledger: LedgerReader, problems: list[DagflowError]) -> Iterator[int]:
    """Return the numbers of all entries: those listed, and those after them that a listing may not show yet."""
    listed: list[int] = []
    for name in ledger.store.names(f"{ENTRIES}/"):
        number = entry_number(name)
        if number is None:
            problems.append(ForeignObject(ledger.store.url, None, f"{name} is not an entry of a ledger"))
        else:
            listed.append(number)
    listed.sort()
    while is_object_store(ledger.store.url) and listed and ledger.store.read(entry_name(listed[-1])) is None:
        listed.pop()  # the listing is older than the ledger
    yield from listed
    newest = listed[-1] if listed else -1
    with suppress(RecordRefused):  # it was listed now, too, or is the next launch's to report
        while ledger.store.read(entry_name(newest + 1)) is not None:
            newest += 1
            yield newest


def _places(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield each number with 0, and each gap before one: its first number, and how many are missing.

    >>> list(_places([0, 1, 5]))
    [(0, 0), (1, 0), (2, 3), (5, 0)]
    """
    expected = 0
    for number in numbers:
        if number > expected:
            yield expected, number - expected
        yield number, 0
        expected = number + 1


def _first_content(ledger: LedgerReader, numbers: list[int]) -> int:
    """Return the number of the first entry whose rows are content, by the newest entry that can be read."""
    entries = (_entry(ledger, seq, [], {}) for seq in reversed(numbers))
    newest = next((entry for entry in entries if entry is not None), None)
    return 0 if newest is None or newest.carried.replaced is None else newest.carried.replaced


def _entry(ledger: LedgerReader, seq: int, problems: list[DagflowError], hashes: dict[int, str]) -> LedgerEntry | None:
    try:
        stored = ledger.store.read(entry_name(seq))  # not from what the handle remembers
        if stored is None:
            problems.append(EntryMissing(ledger.store.url, seq, "it is listed, but cannot be read"))
            return None
        entry = decode_entry(stored, seq, ledger.store.url)
    except (LedgerError, RecordRefused) as problem:
        problems.append(problem)
        return None
    hashes[seq] = entry.hash
    return entry


def _hints(ledger: LedgerReader, last: int, hashes: Mapping[int, str], newest_ref: EntryRef | None) -> Iterator[LedgerDamaged]:
    """Check hints: each one names an entry that was written."""
    hints = []
    for name in ledger.store.names(f"{HINTS}/"):
        with suppress(RecordRefused):  # garbage, as `parse_hint` takes it
            hints.append(parse_hint(ledger.store.read(name)))
    hints += [newest_ref, None if ledger._head is None else ledger._head.ref]
    distinct = {(each.seq, each.hash) for each in hints if each is not None}
    for ref in sorted(EntryRef(*each) for each in distinct):
        if ref.seq > last:
            yield LedgerCut(
                ledger.store.url, ref.seq, f"it was written (hash {ref.hash}) and is not there: the end of the ledger is lost"
            )
        elif ref.seq in hashes and hashes[ref.seq] != ref.hash:
            yield EntryRewritten(ledger.store.url, ref.seq, f"its hash is {hashes[ref.seq]}, but {ref.hash} was written")


def _change(content: dict[str, DataFile], entry: LedgerEntry, place: str) -> Iterator[FileNotKept]:
    """Change the content, its files by path, as an entry does. Yield a problem for each file that it keeps, but was not there."""
    data = None if entry.data is None else entry.data.new_data
    if data is not None and data.replaces:
        for file in data.kept_files:
            if content.get(file.path) != file:
                yield FileNotKept(place, entry.seq, f"it keeps {file.path}, which was not content before, or was another file")
        content.clear()
    content.update((file.path, file) for _, file in entry.content)


def _files(
    ledger: LedgerReader, entry: LedgerEntry, seen: Collection[str] | None
) -> Iterator[tuple[DataFile, DagflowError | None]]:
    """Yield the files that an entry adds, each with a problem or None.

    `seen`: those that were looked at, where the content begins with the entry: the others that it keeps are yielded, too.
    """
    data = None if entry.data is None else entry.data.new_data
    if data is not None and ledger.folder is not None:
        kept = () if seen is None else [file for file in data.kept_files if file.path not in seen]
        for file in (*kept, *data.files):
            yield file, file_problem(ledger.folder, entry.seq, file)


def file_problem(folder: str, seq: int, file: DataFile) -> DagflowError | None:
    """Return what is wrong with a committed file, by its size and hash; None if nothing is."""
    try:
        path = inside(folder, file.path)
    except PathOutside as problem:
        return problem
    system = file_system(path)
    try:
        size = system.status(path).length
        if size != file.size:
            return ObjectDamaged(folder, seq, f"{file.path} has {size} bytes, {file.size} were committed")
        digest = new_hash(file.physical_hash.partition(":")[0])
        with closing(system.open(path)) as reader:
            while piece := reader.read(_PIECE):
                digest.update(piece)
    except FileNotFoundError:
        return ObjectMissing(folder, seq, f"{file.path} is not there; {file.rows} rows were committed in it")
    except KeyError:
        return ObjectDamaged(folder, seq, f"{file.path}: the hash {file.physical_hash} is of no kind that is known here")
    except OSError as error:
        return translate(error, path, "reading it to check its hash")
    actual = f"{file.physical_hash.partition(':')[0]}:{digest.hexdigest()}"
    if actual != file.physical_hash:
        return ObjectDamaged(folder, seq, f"{file.path} has the hash {actual}, {file.physical_hash} was committed")
    return None


def _is_known(problem: DagflowError, problems: list[DagflowError]) -> bool:
    """Return True for a path that a rule has reported already."""
    paths = {known.actual for known in problems if isinstance(known, LedgerRuleError) and known.rule == path_inside.code}
    return isinstance(problem, PathOutside) and problem.path in paths


def _inputs(entry: LedgerEntry, event: ExecuteQuery, inputs: Mapping[str, LedgerReader]) -> Iterator[DagflowError]:
    for number, each in enumerate(event.inputs):
        if each.dataset_id in inputs:
            yield from _input(entry.seq, f"inputs[{number}]", each, inputs[each.dataset_id])


def _input(seq: int, field: str, each: InputSlice, upstream: LedgerReader) -> Iterator[DagflowError]:
    """Compare an entry with the ledger of an input: the entry that it names is there, and its rows end where it says."""
    try:
        if upstream.seed().dataset_id != each.dataset_id:
            yield InputDiverged(seq, f"{field}.dataset_id", upstream.seed().dataset_id, each.dataset_id)
        for name, ref in (("prev_block", each.prev_block), ("new_block", each.new_block)):
            if ref is not None and upstream.entry(ref.seq).ref != ref:
                yield InputDiverged(seq, f"{field}.{name}", str(upstream.entry(ref.seq).ref), str(ref))
        if each.last_block is not None:
            at = upstream.entry(each.last_block.seq).carried.data
            offset = resume(None if at is None else upstream.entry(at)).last_offset
            if offset != each.last_offset:
                yield InputDiverged(seq, f"{field}.new_offset", offset, each.last_offset)
    except NoSuchEntry as error:
        yield InputDiverged(seq, field, f"an entry of {upstream.place}", error.what)
    except LedgerError as error:
        yield error
