"""From reports to a decision, and what follows from it: final names, `committed`, cleaning up. All of it may be done again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable

from dagflow.errors.run import WindowIncomplete
from dagflow.errors.surroundings import PathMissing
from dagflow.model.operator import Operator
from dagflow.runtime.files import STAGING
from dagflow.runtime.program import TaskSpec
from dagflow.runtime.report import AttemptFileInfo, TaskReport, summed
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
    """Final names: the name that a sink asked for; when it is taken, with window and number behind it."""
    taken: set[tuple[str, str]] = set()
    named = []
    for report in reports:
        for file in report.files:
            name = file.name
            number = 0
            while (file.folder, name) in taken or _exists(file, name):
                stem, dot, extension = file.name.rpartition(".") if "." in os.path.basename(file.name) else (file.name, "", "")
                name = f"{stem}-{window:06d}-{number:04d}{dot}{extension}"
                number += 1
            taken.add((file.folder, name))
            named.append(PublishedFile(file.operator, file.folder, name, file.attempt, file.size, file.records))
    return named


def _exists(file: AttemptFileInfo, name: str) -> bool:
    return file_system(file.folder).exists(join(file.folder, name))


def roll_forward(log: WindowLog, decision: Decision, operators: dict[str, Operator], durable: bool) -> None:
    """Does what follows from a decision, as often as it takes: names, `committed`, `show`, cleaning up, the mark of done."""
    folders = set()
    for file in decision.files:
        target = join(file.folder, file.name)
        system = file_system(file.folder)
        with explained(target, "giving a file its final name"):
            if system.exists(file.attempt):
                if "/" in file.name:
                    system.make_folders(target.rpartition("/")[0])
                system.rename(file.attempt, target)
            elif not system.exists(target):
                raise PathMissing(path=file.attempt, doing=f"publishing {target}")
        folders.add(target.rpartition("/")[0])
    if durable:
        for folder in folders:
            file_system(folder).sync_folder(folder)
    for name, operator in operators.items():
        operator.committed(decision.window)
        if name in decision.notes:
            operator.show(decision.notes[name], decision.window)
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
