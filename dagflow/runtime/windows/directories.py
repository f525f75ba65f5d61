"""The sink of files: what tasks have staged gets its final name in an output folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable

import attrs

from dagflow.model.operator.sink import StagedWindow
from dagflow.runtime.run_folder.files import difference, file_paths
from dagflow.runtime.run_folder.layout import STAGED, STAGING
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.runtime.windows.errors import FileInTheWay, FileLost, StagedFileDamaged
from dagflow.storage import base_name, explained, file_system, join


@attrs.define
class Directories:
    """The output folders of an application as a sink (`PublishesWindows`). What is staged for a window are its `StagedFile`s.

    Attributes:
        again: another launch may have published before, so staged files are read before they get their names.
        has_window: returns whether the ledger of a folder has an entry for a window: all of its files were published.
        taken_away: the files of the window published last that are no longer there, though its ledger has them.
    """

    durable: bool
    again: bool = False
    has_window: Callable[[str, int], bool] = lambda folder, window: False
    taken_away: list[StagedFile] = attrs.field(factory=list, init=False)

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if the ledgers have the window and all of its files are there."""
        folders = {file.folder for file in window.staged}
        return all(self.has_window(folder, window.number) for folder in folders) and all(
            file_system(file.folder).exists(file_paths(file)[1]) for file in window.staged
        )

    def publish(self, window: StagedWindow) -> None:
        """Give files their final names. Raises FileInTheWay rather than replace another file, StagedFileDamaged, FileLost."""
        self.taken_away = self.give_names(window.number, window.staged)
        if self.taken_away or self.again:
            self._check_published(window)

    def give_names(self, window: int, files: Iterable[StagedFile]) -> list[StagedFile]:
        """Give files their final names, and return those that are neither staged nor published.

        Staged files are durable before the decision, and only this renames them: a missing one was published and taken away
        since, or is lost, which the ledger knows.
        """
        folders: set[str] = set()
        missing = []
        for file in files:
            attempt, target = file_paths(file)
            system = file_system(file.folder)
            with explained(target, "giving a file its final name"):
                is_there = system.exists(target)
                if is_there and system.exists(attempt):  # an object store copies first, and removes then
                    _check(window, file, target)
                    system.remove(attempt)
                elif not is_there:
                    try:
                        if self.again and (reason := difference(file, attempt)) is not None:
                            raise StagedFileDamaged(window, target, attempt, reason)
                        if "/" in file.name:
                            system.make_folders(target.rpartition("/")[0])
                        system.rename(attempt, target)
                    except FileNotFoundError:
                        missing.append(file)
                        continue
            if self.durable:
                below = file.name.split("/")[:-1]
                folders.update(join(file.folder, *below[:depth]) for depth in range(len(below) + 1))
        for folder in folders:
            with explained(folder, "giving files their final names"):
                file_system(folder).sync_folder(folder)
        return missing

    def _check_published(self, window: StagedWindow) -> None:
        """Raise FileLost and FileInTheWay for files that are not as decided, unless a ledger entry says that they have been.

        What has an entry was published: since then readers of the dataset may move it, and `dagflow verify` checks it.
        """
        folders = dict.fromkeys(file.folder for file in window.staged)
        committed = {folder for folder in folders if self.again and self.has_window(folder, window.number)}
        for file in window.staged:
            if file.folder in committed:
                continue
            attempt, target = file_paths(file)
            if file in self.taken_away:
                raise FileLost(window.number, target, attempt)
            with explained(target, "checking a file that was published before"):
                _check(window.number, file, target)

    def sweep(self, window: StagedWindow) -> None:
        """Remove what the window before has left in the staging folders, and what zombies have left there since."""
        sweep_staging({file.folder for file in window.staged}, {window.number - 1})


def _check(window: int, file: StagedFile, target: str) -> None:
    """Raise FileInTheWay where another file than the decided one has its name."""
    if (reason := difference(file, target)) is not None:
        raise FileInTheWay(window, target, reason)


def sweep_staging(folders: Iterable[str], windows: Collection[int]) -> None:
    """Remove the staged files of windows that are done."""
    for folder in folders:
        system = file_system(folder)
        place = join(folder, STAGING)
        for file in list(system.scan(place)) if system.exists(place) else ():
            name = STAGED.match(f"{STAGED.folder}/{base_name(file.path)}")
            if name is not None and int(name["window"]) in windows:
                with contextlib.suppress(FileNotFoundError):
                    system.remove(file.path)
