"""The sink of files: what tasks have staged gets its final name in an output folder."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Sequence

import attrs

from dagflow.ledger.snapshots import CURRENT, PARTITIONS, SNAPSHOTS, snapshot_of, window_of
from dagflow.model.operator.sink import StagedWindow
from dagflow.runtime.run_folder.files import difference, file_paths
from dagflow.runtime.run_folder.layout import STAGED, STAGING, swept_after
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.runtime.windows.datasets import ContentChange, Datasets
from dagflow.runtime.windows.errors import FileInTheWay, FileLost, StagedFileDamaged
from dagflow.storage import (
    FileStatus,
    at_once,
    base_name,
    explained,
    file_system,
    is_local,
    is_object_store,
    join,
    remove_uploads,
)


@attrs.define
class Directories:
    """The output folders of an application as a sink (`PublishesWindows`). What is staged for a window are its `StagedFile`s.

    Attributes:
        again: another launch may have published before, so staged files are read before they get their names.
        datasets: the ledgers of the folders. An entry for a window says that all of its files were published.
        taken_away: the files of the window published last that are no longer there, though its ledger has them.
    """

    durable: bool
    again: bool = False
    datasets: Datasets | None = None
    taken_away: list[StagedFile] = attrs.field(factory=list, init=False)

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if the ledgers have the window and all of its files are there."""
        files = [file for change in self._changes(window).values() for file in change.added]
        return (
            all(self._has_window(folder, window.number) for folder in {file.folder for file in files})
            and all(file_system(file.folder).exists(file_paths(file)[1]) for file in files)
            and all(_current(folder, window.number) >= window.number for folder in _replaced(window))
        )

    def publish(self, window: StagedWindow) -> None:
        """Give files their final names, and then let `current` lead to those of a snapshot.

        Raises FileInTheWay rather than replace another file, StagedFileDamaged, FileLost.
        """
        changes = self._changes(window)
        files = [file for change in changes.values() for file in change.added]
        self.taken_away = self.give_names(window.number, files)
        if self.taken_away or self.again:
            self._check_published(window.number, files)
        for folder in _replaced(window):
            self._point(folder, window.number)
        for folder, change in changes.items():
            if any(file.is_partition for file in window.staged if file.folder == folder):
                self._show(folder, window.number, change)
        for folder in {file.folder for file in window.staged if file.records and not file.is_snapshot and not file.is_partition}:
            if self.datasets is not None and self.datasets.is_replaced(folder):
                self._forget_current(folder, window.number)

    def _changes(self, window: StagedWindow) -> dict[str, ContentChange]:
        """Return the change of each folder's content."""
        by_folder: dict[str, list[StagedFile]] = {}
        for file in window.staged:
            by_folder.setdefault(file.folder, []).append(file)
        if self.datasets is None:
            return {folder: ContentChange(files, replaces=False) for folder, files in by_folder.items()}
        return {folder: self.datasets.change(folder, window.number, files) for folder, files in by_folder.items()}

    def _show(self, folder: str, window: int, change: ContentChange) -> None:
        """Let `current` lead to links to all files of the content after a window; where there are no links, remove it."""
        assert self.datasets is not None
        if not change.added and not change.replaces:
            return
        names = self.datasets.names_after(folder, change)
        system, snapshot = file_system(folder), join(folder, snapshot_of(window))
        folders = {folder, join(folder, SNAPSHOTS), snapshot}
        is_linked = True
        with explained(snapshot, "linking the files of a snapshot"):
            for name in names if is_local(folder) else ():
                above, _, last = name.removeprefix(f"{PARTITIONS}/").rpartition("/")
                place = join(snapshot, above)
                if place not in folders:
                    system.make_folders(place)
                    parts = above.split("/")
                    folders.update(join(snapshot, *parts[:depth]) for depth in range(1, len(parts) + 1))
                is_linked = is_linked and system.link(join(folder, name), join(place, last))
            if not names or not is_linked or not is_local(folder):
                self._forget_current(folder, window)
                return
            for each in folders if self.durable else ():
                system.sync_folder(each)
        self._point(folder, window)

    def _point(self, folder: str, window: int) -> None:
        """Let `current` lead to the snapshot of a window, unless it leads to a later one."""
        place = join(folder, CURRENT)
        if _current(folder, window) < window:
            with explained(place, "letting it lead to the newest snapshot"):
                file_system(folder).point(place, snapshot_of(window))
        if self.durable:
            with explained(folder, "letting its name lead to the newest snapshot"):
                file_system(folder).sync_folder(folder)

    def _forget_current(self, folder: str, window: int) -> None:
        """Remove `current`: rows were added to the last snapshot, so it is not all of the content any more."""
        if _current(folder, window) >= 0:
            with explained(folder, "removing the name of its last snapshot"), contextlib.suppress(FileNotFoundError):
                file_system(folder).remove(join(folder, CURRENT))

    def _has_window(self, folder: str, window: int) -> bool:
        return self.datasets is not None and self.datasets.has_window(folder, window)

    def give_names(self, window: int, files: Iterable[StagedFile]) -> list[StagedFile]:
        """Give files their final names, and return those that are neither staged nor published.

        Staged files are durable before the decision, and only this renames them: a missing one was published and taken away
        since, or is lost, which the ledger knows.
        """
        folders: set[str] = set()
        missing = []
        by_folder: dict[str, list[StagedFile]] = {}
        for file in files:
            by_folder.setdefault(file.folder, []).append(file)
        for folder, mine in by_folder.items():
            are_there = at_once(functools.partial(self._give_name, window), mine, folder)
            for file, is_there in zip(mine, are_there, strict=True):
                if not is_there:
                    missing.append(file)
                elif self.durable:
                    below = file.name.split("/")[:-1]
                    folders.update(join(folder, *below[:depth]) for depth in range(len(below) + 1))
        for folder in folders:
            with explained(folder, "giving files their final names"):
                file_system(folder).sync_folder(folder)
        return missing

    def _give_name(self, window: int, file: StagedFile) -> bool:
        """Give a file its final name. Return False if it is neither staged nor published."""
        attempt, target = file_paths(file)
        system = file_system(file.folder)
        with explained(target, "giving a file its final name"):
            is_there = system.is_taken(target)
            if is_there and system.is_taken(attempt):  # an object store copies first, and removes then
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
                    return False
        return True

    def _check_published(self, window: int, files: Sequence[StagedFile]) -> None:
        """Raise FileLost and FileInTheWay for files that are not as decided, unless a ledger entry says that they have been.

        What has an entry was published: since then readers of the dataset may move it, and `dagflow verify` checks it.
        """
        folders = dict.fromkeys(file.folder for file in files)
        committed = {folder for folder in folders if self.again and self._has_window(folder, window)}
        for file in files:
            if file.folder in committed:
                continue
            attempt, target = file_paths(file)
            if file in self.taken_away:
                raise FileLost(window, target, attempt)
            with explained(target, "checking a file that was published before"):
                _check(window, file, target)

    def sweep(self, window: StagedWindow) -> None:
        """Remove what the window before and zombies have left in the staging folders, and snapshots that are not to be kept."""
        for folder in {file.folder for file in window.staged}:
            if windows := swept_after(folder, window.number):
                sweep_staging([folder], windows)
                if is_object_store(folder):
                    sweep_uploads([folder], windows)
        if self.datasets is not None:
            in_part = [file.folder for file in window.staged if file.is_partition]
            self.datasets.sweep_snapshots(dict.fromkeys((*_replaced(window), *in_part)))


def _replaced(window: StagedWindow) -> list[str]:
    """Return the folders whose content a window replaces."""
    return list(dict.fromkeys(file.folder for file in window.staged if file.replaces))


def _current(folder: str, window: int) -> int:
    """Return the window of the snapshot that `current` leads to; -1 for none. Raises FileInTheWay where that is another file."""
    place = join(folder, CURRENT)
    with explained(place, "looking for the newest snapshot"):
        try:
            target = file_system(folder).pointed(place)
        except FileExistsError as error:
            raise FileInTheWay(window, place, "it is to lead to the newest snapshot, and dagflow did not make it") from error
    if target is not None and window_of(target) < 0:
        raise FileInTheWay(window, place, f"it is to lead to the newest snapshot, and leads to {target[:100]!r}")
    return window_of(target)


def _check(window: int, file: StagedFile, target: str) -> None:
    """Raise FileInTheWay where another file than the decided one has its name."""
    if (reason := difference(file, target)) is not None:
        raise FileInTheWay(window, target, reason)


def sweep_staging(folders: Iterable[str], windows: Collection[int]) -> None:
    """Remove the staged files of windows that are done."""
    for folder in folders:
        system = file_system(folder)
        staged: list[FileStatus] = []
        with contextlib.suppress(FileNotFoundError):
            staged += system.scan(join(folder, STAGING))
        for file in staged:
            name = STAGED.match(f"{STAGED.folder}/{base_name(file.path)}")
            if name is not None and int(name["window"]) in windows:
                with contextlib.suppress(FileNotFoundError):
                    system.remove(file.path)


def sweep_uploads(folders: Iterable[str], windows: Collection[int]) -> str | None:
    """Remove the uploads of staged files that tasks of windows that are done have begun, and were killed before the end.

    Return a warning where the store refuses, None where it does not.
    """

    def is_stale(name: str) -> bool:
        staged = STAGED.match(f"{STAGED.folder}/{name}")
        return staged is not None and int(staged["window"]) in windows

    refused = {folder: reason for folder in folders if (reason := remove_uploads(join(folder, STAGING), is_stale)) is not None}
    if not refused:
        return None
    reason = next(iter(refused.values())).rstrip(".")
    return (
        f"{', '.join(refused)}: uploads that killed tasks leave unfinished cannot be removed, and are billed: {reason}. Allow "
        "s3:ListBucketMultipartUploads and s3:AbortMultipartUpload, or let a lifecycle rule of the bucket remove them"
    )
