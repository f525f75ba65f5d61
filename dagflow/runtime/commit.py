"""From reports to a decision, and what follows from it: final names, `committed`, cleaning up. All of it may be done again."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Collection, Iterable

from dagflow.errors.run import WindowIncomplete
from dagflow.errors.surroundings import PathMissing
from dagflow.model.operator import Operator
from dagflow.runtime.files import OURS, STAGING
from dagflow.runtime.program import TaskSpec
from dagflow.runtime.report import TaskReport, summed
from dagflow.runtime.window_log import Decision, PublishedFile, WindowLog, WindowPlan
from dagflow.storage import base_name, explained, file_system, join


def decide(log: WindowLog, plan: WindowPlan, round: str, tasks: Iterable[TaskSpec], now: float, durable: bool = True) -> Decision:
    """Checks that the reports cover the plan exactly, and publishes the decision: the commit. Raises WindowIncomplete."""
    tasks = tuple(tasks)
    found = [(task, log.read_report(task.report_name)) for task in tasks]
    missing = tuple(task.name for task, report in found if report is None or report.items != len(task.items))
    if missing:
        raise WindowIncomplete(plan.window, missing)
    reports = [plan.driver, *(report for _, report in found if report is not None)]
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
            decided_at=now,
        )
    )


def _named(window: int, reports: list[TaskReport]) -> list[PublishedFile]:
    """Final names: the name that a sink asked for; what is taken in it gets window and number behind it."""
    folders: dict[str, _Names] = {}
    named = []
    for report in reports:
        for file in report.files:
            names = folders.setdefault(file.folder, _Names(file.folder, window))
            named.append(PublishedFile(file.operator, file.folder, names.give(file.name), file.attempt, file.size, file.records))
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
    """Gives the files of a decision their final names, as often as it takes.

    `again`: another launch may have done it before. Files that lie neither where they were written nor where they belong then
    count as published and taken away since: attempts are durable before the decision, and only this renames them. Returns those.
    Raises PathMissing for them otherwise.
    """
    folders: set[str] = set()
    taken_away = []
    for file in decision.files:
        target = join(file.folder, file.name)
        system = file_system(file.folder)
        with explained(target, "giving a file its final name"):
            if system.exists(file.attempt):
                if "/" in file.name:
                    system.make_folders(target.rpartition("/")[0])
                system.rename(file.attempt, target)
            elif not system.exists(target):
                if not again:
                    raise PathMissing(path=file.attempt, doing=f"publishing {target}")
                taken_away.append(file)
                continue
        if durable:
            below = file.name.split("/")[:-1]
            folders.update(join(file.folder, *below[:depth]) for depth in range(len(below) + 1))
    for folder in folders:
        with explained(folder, "giving files their final names"):
            file_system(folder).sync_folder(folder)
    return taken_away


def roll_forward(
    log: WindowLog, decision: Decision, operators: dict[str, Operator], durable: bool, again: bool = False
) -> list[PublishedFile]:
    """Does what follows from a decision, as often as it takes: names, `committed`, `show`, cleaning up, the mark of done.

    `again` and what is returned: see `publish`.
    """
    taken_away = publish(decision, durable, again)
    for name, operator in operators.items():
        operator.committed(decision.window)
        if name in decision.notes:
            operator.show(decision.notes[name], decision.window)
    log.done(decision.window)
    # the window before: so the folder of reports never becomes empty, and is not removed and made again
    sweep(log, {decision.window - 1}, {file.folder for file in decision.files})
    return taken_away


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
