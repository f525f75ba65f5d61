"""Replaying: windows of earlier runs are run again from their plans, and what comes out is compared with what was committed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from itertools import islice, zip_longest
from typing import IO, Any

import attrs

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.ledger import DataFile, Ledger, LedgerEntry
from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.dataset.tables import FileGroup, kind_of_file
from dagflow.lineage.errors import CodeNotNamed, ReplayDiffers, SourceChanged
from dagflow.lineage.history import FileOrigin, PastWindow, changed_sources, stage_of, standing_in, states_kept
from dagflow.lineage.row_search import stages_leading_to
from dagflow.lineage.trace import ApplicationLocator
from dagflow.local.spool import Spool
from dagflow.planning.plan import Plan
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.attempt_files import place
from dagflow.runtime.task.flow import run_flow
from dagflow.runtime.task.recording_files import RecordedFile, RecordingFiles
from dagflow.runtime.windows.jobs import levels_of
from dagflow.state.task_states import TaskStates
from dagflow.storage import absolute, file_system, inside, new_hash

_PIECE = 1 << 20


@attrs.frozen(kw_only=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        windows, rows: how many were made again, and came out as they were committed.
        problems: what came out differently.
        left_out: for each window that could not be run again, why.
    """

    windows: int = 0
    rows: int = 0
    problems: tuple[ReplayDiffers, ...] = ()
    left_out: tuple[tuple[int, DagflowError], ...] = ()


def replay(dataset: str, *, locator: ApplicationLocator | None = None, windows: int | None = None) -> ReplayReport:
    """Run the windows of a dataset again, in this process and in a temporary place, as far as their plans are kept.

    Files must have the hash that was committed; where hashes differ, their rows are compared: lines of text one by one, in
    their order; Parquet and the like as tables.

    Args:
        dataset: its folder, by path or URL, or anything in it.
        locator: how to find the application again: it names the application or trusts the run folder.
        windows: only so many, the newest; None: all.

    Raises CodeNotNamed, LedgerError, and StorageError where the ledger cannot be read.
    """
    folder = find_dataset(dataset)
    ledger = Ledger.open(folder, durable=False)
    replaying = _Replaying(folder, locator or ApplicationLocator())
    report = ReplayReport()
    committed = (entry for entry in ledger.entries(newest_first=True) if entry.data is not None)
    for entry in islice(committed, windows):
        assert entry.data is not None
        window = entry.data.txn.window_id
        try:
            problems = tuple(replaying.window(entry))
        except CodeNotNamed:
            raise
        except DagflowError as error:
            report = attrs.evolve(report, left_out=(*report.left_out, (window, error)))
            continue
        rows = 0 if problems or entry.data.new_data is None else entry.data.new_data.interval.rows
        report = attrs.evolve(
            report,
            windows=report.windows + (not problems),
            rows=report.rows + rows,
            problems=(*report.problems, *problems),
        )
    return report


def check_trust(dataset: str, locator: ApplicationLocator) -> None:
    """Raise CodeNotNamed where replaying the newest window would run code that only the run folder names. Runs nothing."""
    if locator.application is not None or locator.trust:
        return
    try:
        entry = next(entry for entry in Ledger.open(dataset, durable=False).entries(newest_first=True) if entry.data is not None)
        locator.built(PastWindow.of(dataset, entry, locator.run_folder))
    except CodeNotNamed:
        raise
    except (StopIteration, DagflowError):  # which `verify` and `replay` tell
        return


@attrs.define
class _Replaying:
    """The applications that made the windows, each loaded once."""

    dataset: str
    locator: ApplicationLocator
    known: dict[str, tuple[LoadedApplication, Plan, str]] = attrs.field(factory=dict)

    def window(self, entry: LedgerEntry) -> Iterator[ReplayDiffers]:
        """Run the tasks of a window that lead to the dataset, and return the differences in their output."""
        past = PastWindow.of(self.dataset, entry, self.locator.run_folder)
        built, plan, base = self._application(past)
        changed = past.check_application(built, plan)
        remark = f" (properties have changed since: {'; '.join(changed)})" if changed else ""
        assert entry.data is not None
        expected: dict[FileOrigin, DataFile] = {}
        folders = {self.dataset}  # and as it was called then
        for file in entry.data.new_data.files if entry.data.new_data is not None else ():
            published = past.published(self.dataset, file)
            if published is not None:
                written = past.written(published)
                stage_of(plan, written, past.window)  # what the driver wrote is not written again
                expected[written] = file
                folders.add(absolute(published.folder))
        sinks = {written.operator for written in expected}
        for name, node in plan.dag.nodes.items():
            if folders & {place(folder, base) for folder in node.operator.output_folders()}:
                sinks.add(name)
        with standing_in(base), Spool() as spool:
            for stage, program in stages_leading_to(plan, sinks):
                for spec in past.tasks(plan, stage, base):
                    spool.transform(plan, spec)
                    channels = spool.channels(spec, levels_of(plan))
                    with tempfile.TemporaryDirectory(prefix="dagflow-replay-") as temporary:
                        folder = _TemporaryFolder(temporary)
                        _run(program, spec, folder, past.states(plan, stage, spec), channels)
                        for name, reason in self._differences(spec.name, expected, folder, folders, base):
                            for change in changed_sources(past.items_of(stage, spec.partition)):
                                raise SourceChanged(past.window, change)
                            yield ReplayDiffers(past.window, entry.seq, name, reason + remark)

    def _differences(
        self, task: str, expected: Mapping[FileOrigin, DataFile], folder: _TemporaryFolder, folders: Collection[str], base: str
    ) -> Iterator[tuple[str, str]]:
        """Return the files of a task that differ from the committed ones, each with its difference."""
        files = (file for file in folder.files.opened.values() if place(file.folder, base) in folders)
        now = {FileOrigin(file.operator, task, file.number): file for file in files}
        for written, committed in expected.items():
            if written.task == task:
                file = now.pop(written, None)
                if file is None:
                    yield committed.path, "it is not made at all"
                elif (reason := _difference(folder.path_of(file), file.rows, committed, self.dataset)) is not None:
                    yield committed.path, reason
        for extra in now.values():
            if extra.rows:
                yield extra.name, f"it was not made then, and has {extra.rows} rows now"

    def _application(self, past: PastWindow) -> tuple[LoadedApplication, Plan, str]:
        if (launch := past.launch) not in self.known:
            built, base, _ = self.locator.built(past)
            with standing_in(base):
                self.known[launch] = (built, past.planned(built), base)
        return self.known[launch]


def _run(
    program: bytes,
    spec: TaskSpec,
    folder: _TemporaryFolder,
    states: TaskStates,
    channels: TaskChannels,
) -> None:
    try:
        with reported_errors(), few_collections(), states_kept(spec):
            run_flow(program, spec, folder.files, states=states, channels=channels)
    finally:
        folder.finish()


@attrs.define
class _TemporaryFolder:
    """Keeps the files that a task writes in a temporary folder."""

    path: str
    files: RecordingFiles = attrs.field(init=False)
    _paths: dict[RecordedFile, str] = attrs.field(factory=dict, init=False)
    _open: dict[RecordedFile, IO[bytes]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.files = RecordingFiles(on_write=self._write, on_close=self._close)

    def path_of(self, file: RecordedFile) -> str:
        """Return the file's path here. Its suffix names its format."""
        suffix = os.path.splitext(file.name)[1]
        return self._paths.setdefault(file, os.path.join(self.path, f"{len(self._paths)}{suffix}"))

    def finish(self) -> None:
        """Close all files, also those to which nothing was written."""
        for file in self.files.opened.values():
            self._write(file, b"")
            self._close(file)

    def _write(self, file: RecordedFile, data: Any) -> None:
        if file not in self._open:
            self._open[file] = open(self.path_of(file), "ab")  # noqa: SIM115  # closed in _close()
        self._open[file].write(data)

    def _close(self, file: RecordedFile) -> None:
        if (opened := self._open.pop(file, None)) is not None:
            opened.close()


def _difference(made: str, rows: int, file: DataFile, dataset: str) -> str | None:
    """Return the difference between the new file and the committed one; None if they are equal."""
    if _hash(made, file.physical_hash.partition(":")[0]) == file.physical_hash:
        return None
    if rows != file.rows:
        return f"it has {rows} rows, {file.rows} were committed"
    committed = inside(dataset, file.path)
    try:
        if _hash(committed, file.physical_hash.partition(":")[0]) != file.physical_hash:
            return "its bytes are others; the committed file cannot be compared, for it has changed too"
        kind = kind_of_file(file.path)
        if kind == "text":
            return _different_lines(made, committed)
        same = FileGroup(kind, [made]).dataset().to_table().equals(FileGroup(kind, [committed]).dataset().to_table())
        return None if same else "its rows are others"
    except FileNotFoundError:
        return "its bytes are others; the committed file is not there"


def _different_lines(made: str, committed: str) -> str | None:
    """Return the first line that differs, and whether the lines are the same in another order."""
    first: str | None = None
    balance = 0
    with closing(file_system(made).open(made)) as one, closing(file_system(committed).open(committed)) as other:
        for number, (now, then) in enumerate(zip_longest(_lines(one), _lines(other))):
            if now != then:
                first = first or f"row {number + 1} is {_shown(now)}, {_shown(then)} was committed"
                balance += hash(now) - hash(then)
    if first is None:
        return None
    return f"the same rows in another order: {first}" if balance == 0 else first


def _lines(reader: Any) -> Iterator[bytes]:
    rest = b""
    while piece := reader.read(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _shown(line: bytes | None) -> str:
    if line is None:
        return "absent"
    return repr(line if len(line) <= 60 else line[:60] + b"...")[1:]


def _hash(path: str, algorithm: str) -> str:
    digest = new_hash(algorithm)
    with closing(file_system(path).open(path)) as reader:
        while piece := reader.read(_PIECE):
            digest.update(piece)
    return f"{algorithm}:{digest.hexdigest()}"
