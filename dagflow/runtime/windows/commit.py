"""From reports to a decision, and what follows from it: final names, `committed`, cleaning up. All of it may be done again."""

from __future__ import annotations

import contextlib
import functools
import itertools
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import Any

import attrs

from dagflow.ledger import LedgerEntry
from dagflow.model.context import Cursor
from dagflow.model.operator import Operator
from dagflow.runtime.rebalancing.driver import moved_parts, reports_of
from dagflow.runtime.run_folder.window_log import Decision, PublishedFile, WindowLog, WindowPlan, file_paths
from dagflow.runtime.task.attempt_files import OURS, STAGING
from dagflow.runtime.task.failure import abort
from dagflow.runtime.task.program import TaskSpec
from dagflow.runtime.task.report import AttemptFileInfo, TaskReport, summed, summed_exchanges
from dagflow.runtime.windows.datasets import Datasets
from dagflow.runtime.windows.errors import FileInTheWay, FileLost, StagedFileDamaged
from dagflow.runtime.windows.event_time import latest
from dagflow.state import keyed_state, partition_state
from dagflow.state.partition_state import PartitionStates
from dagflow.storage import absolute, base_name, explained, file_system, inside, join, new_hash

_PIECE = 1 << 20
KeepTrying = Callable[[int, str, Callable[[], Any]], Any]


def decide(
    log: WindowLog,
    plan: WindowPlan,
    round: str,
    tasks: Iterable[TaskSpec],
    now: float,
    durable: bool = True,
    before: PartitionStates | None = None,
    last: Decision | None = None,
) -> Decision:
    """Checks that the reports cover the plan exactly, and publishes the decision: the commit. Raises WindowIncomplete.

    `before`: the states of partitions after the last decision, which is `last`.
    """
    tasks = tuple(tasks)
    done, steals = reports_of(log, plan, tasks)
    reports = [plan.driver, *done]
    notes: dict[str, list[str]] = {}
    for report in reports:
        for name, lines in report.notes.items():
            notes.setdefault(name, []).extend(lines)
    files = _named(plan.window, reports)
    if durable:
        for folder in {file.attempt.rpartition("/")[0] for file in files}:
            above = folder.rpartition("/")[0]
            if above not in log.secured:  # the staging folder itself, which a task has made
                file_system(above).sync_folder(above)
                log.secured.add(above)
            file_system(folder).sync_folder(folder)
    return log.decide(
        Decision(
            window=plan.window,
            round=round,
            files=files,
            operators=summed(report.operators for report in reports),
            notes=notes,
            states=plan.states,
            partition_states=partition_state.carried(before or {}, [report.states for report in reports[1:]]),
            agreed=plan.agreed,
            advanced=plan.advanced,
            watermarks=plan.watermarks,
            inputs=plan.inputs,
            decided_at=now,
            parts=moved_parts(tasks, done),
            steals=steals,
            event_times=latest({} if last is None else last.event_times, *(report.event_times for report in done)),
            exchanges=summed_exchanges(report.exchanges for report in done),
        )
    )


def _named(window: int, reports: list[TaskReport]) -> list[PublishedFile]:
    """Final names: the name that a sink asked for; what is taken in it gets window and number behind it. Raises PathOutside."""
    folders: dict[str, _Names] = {}
    named = []
    for report in reports:
        for file in report.files:
            folder = absolute(file.folder)  # one folder may be spelled in several ways
            inside(folder, file.name)
            names = folders.setdefault(folder, _Names(folder, window))
            name = names.give(file.name)
            named.append(PublishedFile(file.operator, file.folder, name, file.attempt, file.size, file.records, file.hash))
    return named


class _Names:
    """The names in one output folder, existing and given ones. No rename after the decision may fail for a name.

    So a file gets no name of a folder and below no file (`a`, `a/b`), and where the file system does not tell `A` from `a`, no
    two files get names that differ in case only.
    """

    def __init__(self, folder: str, window: int) -> None:
        self._folder = folder
        self._window = window
        self._system = file_system(folder)
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._is_folding = self._system.exists(join(folder, OURS)) and self._system.exists(join(folder, OURS.upper()))

    def give(self, wanted: str) -> str:
        """The free name that is nearest to the wanted one."""
        path = ""
        *above, last = wanted.split("/")
        with explained(join(self._folder, wanted), "naming an output file"):
            for name in above:
                path = self._free(path, name, self._may_be_folder)
                self._folders.add(self._key(path))
            path = self._free(path, last, self._may_be_file)
        self._files.add(self._key(path))
        return path

    def _free(self, folder: str, name: str, may_be: Callable[[str], bool]) -> str:
        tried = path = f"{folder}/{name}" if folder else name
        number = 0
        while not may_be(tried):
            stem, dot, extension = path.rpartition(".") if "." in name else (path, "", "")
            tried = f"{stem}-{self._window:06d}-{number:04d}{dot}{extension}"
            number += 1
        return tried

    def _may_be_folder(self, path: str) -> bool:
        key = self._key(path)
        if key in self._folders:
            return True
        if key in self._files:
            return False
        try:
            return self._system.status(join(self._folder, path)).is_directory
        except FileNotFoundError:
            return True

    def _may_be_file(self, path: str) -> bool:
        key = self._key(path)
        return key not in self._files and key not in self._folders and not self._system.exists(join(self._folder, path))

    def _key(self, path: str) -> str:
        return unicodedata.normalize("NFC", path.casefold()) if self._is_folding else path


def publish(decision: Decision, durable: bool, again: bool = False) -> list[PublishedFile]:
    """Gives the files of a decision their final names, as often as it takes; those that lie in neither place.

    Attempts are durable before the decision, and only this renames them: a missing one was published and taken away since, or is
    lost, which the ledger knows (`roll_forward`). `again`: another launch may have done it before, so attempts are read before
    they are published. Raises FileInTheWay rather than replace another file, StagedFileDamaged.
    """
    folders: set[str] = set()
    missing = []
    for file in decision.files:
        attempt, target = file_paths(file)
        system = file_system(file.folder)
        with explained(target, "giving a file its final name"):
            is_there = system.exists(target)
            if is_there and system.exists(attempt):  # an object store copies first, and removes then
                _check(decision.window, file, target)
                system.remove(attempt)
            elif not is_there:
                try:
                    if again and (reason := difference(file, attempt)) is not None:
                        raise StagedFileDamaged(decision.window, target, attempt, reason)
                    if "/" in file.name:
                        system.make_folders(target.rpartition("/")[0])
                    system.rename(attempt, target)
                except FileNotFoundError:
                    missing.append(file)
                    continue
        if durable:
            below = file.name.split("/")[:-1]
            folders.update(join(file.folder, *below[:depth]) for depth in range(len(below) + 1))
    for folder in folders:
        with explained(folder, "giving files their final names"):
            file_system(folder).sync_folder(folder)
    return missing


def _check(window: int, file: PublishedFile, target: str) -> None:
    """Raises FileInTheWay where another file than the decided one has its name."""
    if (reason := difference(file, target)) is not None:
        raise FileInTheWay(window, target, reason)


def difference(file: AttemptFileInfo | PublishedFile, path: str) -> str | None:
    """How a file differs from what its task has written; None: not at all. Raises OSError."""
    system = file_system(path)
    size = system.status(path).length
    if size != file.size:
        return f"it has {size:,} bytes, {file.size:,} were written"
    if file.hash:
        digest = new_hash(file.hash.partition(":")[0])
        with contextlib.closing(system.open(path)) as reader:
            while piece := reader.read(_PIECE):
                digest.update(piece)
        if (actual := f"{file.hash.partition(':')[0]}:{digest.hexdigest()}") != file.hash:
            return f"it has the hash {actual}, {file.hash} was written"
    return None


@attrs.frozen
class Followed:
    """What has followed from a decision: the entries of ledgers by folder, and the files that were taken away since."""

    entries: list[tuple[str, LedgerEntry]]
    taken_away: list[PublishedFile]


def roll_forward(
    log: WindowLog,
    decision: Decision,
    operators: dict[str, Operator],
    durable: bool,
    again: bool = False,
    datasets: Datasets | None = None,
    keep_trying: KeepTrying | None = None,
) -> Followed:
    """Does what follows from a decision, as often as it takes: names, entries, `committed`, `show`, sweeping, the mark of done.

    `again`: see `publish`. `keep_trying`: does a step of a window, more than once where storage does not answer.
    Raises FileLost and FileInTheWay where a decided file is not there, unless its ledger says that it was published.
    """
    window, keep_trying = decision.window, keep_trying or _once
    entries: dict[str, LedgerEntry] = {}
    tries = itertools.count()

    def append() -> None:
        if datasets is not None:  # a try begins with all ledgers anew, and finds what those before it have appended
            entries.update(datasets.follow(decision, again or next(tries) > 0))

    def give_names() -> list[PublishedFile]:
        missing = publish(decision, durable, again)
        if missing or again:
            _check_published(decision, missing, datasets if again else None)
        return missing

    taken_away = keep_trying(window, "giving its files their final names", give_names)
    keep_trying(window, "appending its ledger entries", append)
    for name, operator in operators.items():
        _tell(name, window, "committed()", functools.partial(operator.committed, window))
        if (lines := decision.notes.get(name)) is not None:
            _tell(name, window, "show()", functools.partial(operator.show, lines, window))
    keep_trying(window, "marking it as done", lambda: _finish(log, decision))
    return Followed(list(entries.items()), taken_away)


def _check_published(decision: Decision, missing: Collection[PublishedFile], datasets: Datasets | None) -> None:
    """Raises FileLost and FileInTheWay for files that are not what was decided, where no ledger entry says that they have been.

    What has an entry was published: since then it is for those who read the dataset to move, and for `dagflow verify` to check.
    """
    folders = dict.fromkeys(file.folder for file in decision.files)
    committed = {folder for folder in folders if datasets is not None and datasets.has_window(folder, decision.window)}
    for file in decision.files:
        if file.folder in committed:
            continue
        attempt, target = file_paths(file)
        if file in missing:
            raise FileLost(decision.window, target, attempt)
        with explained(target, "checking a file that was published before"):
            _check(decision.window, file, target)


def _tell(operator: str, window: int, doing: str, call: Callable[[], None]) -> None:
    """Calls an operator's own code. Raises Abort; a reader of our output who has gone is no failure of it."""
    try:
        call()
    except BrokenPipeError:
        raise
    except Exception as error:
        raise abort(operator, window, doing, error, None, Cursor()) from error


def _once(window: int, doing: str, action: Callable[[], Any]) -> Any:
    return action()


def _finish(log: WindowLog, decision: Decision) -> None:
    partition_state.sweep(log.passing, decision.window, decision.partition_states)
    keyed_state.sweep(log.store.url, decision.window, decision.partition_states)
    log.done(decision.window)
    # the window before: so the folder of reports never becomes empty, and is not removed and made again
    sweep(log, {decision.window - 1}, {file.folder for file in decision.files})


def sweep(log: WindowLog, windows: Collection[int], folders: Iterable[str]) -> None:
    """Removes reports and attempt files of windows that are done, also what zombies have left there since."""
    log.forget(windows)
    for folder in folders:
        system = file_system(folder)
        place = join(folder, STAGING)
        for found in list(system.scan(place)) if system.exists(place) else ():
            window = base_name(found.path).partition(".")[0]
            if window.isdigit() and int(window) in windows:
                with contextlib.suppress(FileNotFoundError):
                    system.remove(found.path)
