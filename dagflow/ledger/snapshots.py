"""Snapshots: the rows of a dataset whose windows replace each other, each in a folder of its own.

The ledger says which snapshot is the content. For readers that know nothing of ledgers, the name `current` leads to it: a
symbolic link on disks, elsewhere a file that holds the name of the snapshot's folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from dagflow.ledger.errors import CurrentDiffers
from dagflow.ledger.events import DataFile
from dagflow.ledger.reader import LedgerReader
from dagflow.storage import below, file_system, inside, is_local, join, local_path

CURRENT = "current"
SNAPSHOTS = "_snapshots"  # engines that list a folder skip names that begin with `_`


def snapshot_of(window: int) -> str:
    """Return the name of the folder of a window's snapshot, relative to the dataset.

    >>> snapshot_of(12)
    '_snapshots/w000012'
    """
    return f"{SNAPSHOTS}/w{window:06d}"


def window_of(snapshot: str | None) -> int:
    """Return the window of a snapshot; -1 for anything else.

    >>> window_of("_snapshots/w000012"), window_of("elsewhere"), window_of(None)
    (12, -1, -1)
    """
    number = "" if snapshot is None else snapshot.strip().removeprefix(f"{SNAPSHOTS}/w")
    return int(number) if number.isdecimal() and number.isascii() else -1


def root_of(folder: str, path: str) -> str:
    """Return the folder below which the folders of a file are columns: the snapshot, or else the dataset.

    >>> root_of("/out", "/out/_snapshots/w000012/country=se/part-0"), root_of("/out", "/out/country=se/part-0")
    ('/out/_snapshots/w000012', '/out')
    """
    words = (below(folder, path) or "").split("/")
    return join(folder, *words[:2]) if len(words) > 2 and window_of("/".join(words[:2])) >= 0 else folder


def remove_current(folder: str) -> None:
    """Remove the name of the newest snapshot. For starting over: first of all, so that no reader sees a part of it."""
    system, place = file_system(folder), join(folder, CURRENT)
    with contextlib.suppress(FileExistsError, FileNotFoundError):
        if window_of(system.pointed(place)) >= 0:
            system.remove(place)


def remove_empty_snapshots(folder: str) -> None:
    """Remove the folders of snapshots whose files are gone."""
    local = local_path(join(folder, SNAPSHOTS))
    for path, _, _ in os.walk(local, topdown=False) if local is not None else ():
        with contextlib.suppress(OSError):  # it is not empty
            os.rmdir(path)


def replaced_files(ledger: LedgerReader, keep: int) -> Iterator[list[DataFile]]:
    """Return the files of the replaced snapshots that are not swept yet, oldest first, but for the newest `keep` of them.

    A snapshot that lacks its folder, or else its first file, counts as swept, and so do those before it: `sweep_snapshots`
    removes these last, and the oldest snapshot first. So a steady run looks at two snapshots, whatever the history.
    """
    head = ledger.refresh()
    replacing = None if head is None else head.carried.replaced
    due: list[list[DataFile]] = []
    while replacing is not None and replacing > 0:
        before = ledger.entry(replacing - 1)
        if keep > 0:
            keep -= 1
        elif before.carried.rows is not None:
            files = _snapshot_files(ledger, before.seq)
            if ledger.folder is None or not files or not _is_there(ledger.folder, files[0]):
                break
            due.append(files)
        replacing = before.carried.replaced
    return reversed(due)


def sweep_snapshots(ledger: LedgerReader, keep: int) -> None:
    """Remove the files of replaced snapshots but for the newest `keep`, and their folders. It may be repeated."""
    assert ledger.folder is not None
    for files in replaced_files(ledger, keep):
        roots = {root_of(ledger.folder, inside(ledger.folder, file.path)) for file in files}
        for file in reversed(files):
            path = inside(ledger.folder, file.path)
            with contextlib.suppress(FileNotFoundError):
                file_system(path).remove(path)
        for root in roots - {ledger.folder}:
            if is_local(root):  # object stores have no folders
                file_system(root).remove_tree(root)


def current_problem(ledger: LedgerReader, newest: int) -> CurrentDiffers | None:
    """Return a problem if `current` does not lead to the content at an entry; None if it does.

    It may lead to a later snapshot, whose launch died before the entry. The next launch writes that.
    """
    folder = ledger.folder
    if folder is None or ledger.entry(newest).carried.replaced is None:
        return None
    roots = {root_of(folder, inside(folder, file.path)) for file in _snapshot_files(ledger, newest)}
    name = (below(folder, roots.pop()) if len(roots) == 1 else None) or ""  # "": rows were added to a snapshot
    place = join(folder, CURRENT)
    try:
        target = file_system(folder).pointed(place)
        leads = f"{CURRENT} is missing" if target is None else f"{CURRENT} leads to {target[:100]}"
    except FileExistsError:
        target, leads = "", f"{CURRENT} leads nowhere: dagflow did not make it"
    actual, window = window_of(target), window_of(name)
    if actual >= window and (actual < 0 or window >= 0):
        return None
    if window < 0:
        return CurrentDiffers(folder, newest, f"{leads}, and rows were added since", f"remove {place}")
    link = f"ln -sfn {name} {place}" if target != "" else f"remove {place}, then ln -s {name} {place}"
    remedy = link if is_local(folder) else f"write {name} into {place}"
    return CurrentDiffers(folder, newest, f"{leads}, and the content is {name}", remedy)


def _snapshot_files(ledger: LedgerReader, newest: int) -> list[DataFile]:
    """Return the files of the content at an entry, in the order of their rows."""
    entries = [entry.data for entry in ledger.content(newest)]
    return [file for data in reversed(entries) if data is not None and data.new_data is not None for file in data.new_data.files]


def _is_there(folder: str, file: DataFile) -> bool:
    """Return whether a snapshot is not swept yet, by its first file: on disks, by the folder that is removed after that."""
    path = inside(folder, file.path)
    root = root_of(folder, path)
    return file_system(path).exists(path if root == folder or not is_local(root) else root)
