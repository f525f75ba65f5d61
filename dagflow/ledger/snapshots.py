"""Snapshots: the rows of a dataset whose windows replace each other.

The ledger says which files are the content. Where windows replace all rows, each has a folder of its own. For readers that know
nothing of ledgers, the name `current` leads to the newest: a symbolic link on disks, elsewhere a file that holds the name of the
snapshot's folder.

Where windows replace the rows of some partitions, the files of all windows are in one folder, and the ledger tells which of them
count. On disks, a snapshot is a folder of links to these files, so it costs no copies. Object stores have no such links, and
`current` is not there.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Collection, Iterator

from dagflow.ledger.errors import CurrentDiffers
from dagflow.ledger.events import DataFile
from dagflow.ledger.reader import LedgerReader
from dagflow.storage import below, file_system, inside, is_local, join, local_path

CURRENT = "current"
SNAPSHOTS = "_snapshots"  # engines that list a folder skip names that begin with `_`
PARTITIONS = "_partitions"


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
    """Return the folder below which the folders of a file are columns: the snapshot, that of all partitions, or the dataset.

    >>> root_of("/out", "/out/_snapshots/w000012/country=se/part-0"), root_of("/out", "/out/country=se/part-0")
    ('/out/_snapshots/w000012', '/out')
    >>> root_of("/out", "/out/_partitions/country=se/part-0")
    '/out/_partitions'
    """
    words = (below(folder, path) or "").split("/")
    if words[0] == PARTITIONS:
        return join(folder, PARTITIONS)
    return join(folder, *words[:2]) if len(words) > 2 and window_of("/".join(words[:2])) >= 0 else folder


def remove_current(folder: str) -> None:
    """Remove the name of the newest snapshot. For starting over: first of all, so that no reader sees a part of it."""
    system, place = file_system(folder), join(folder, CURRENT)
    with contextlib.suppress(FileExistsError, FileNotFoundError):
        if window_of(system.pointed(place)) >= 0:
            system.remove(place)


def remove_empty_snapshots(folder: str) -> None:
    """Remove the folders of snapshots and partitions whose files are gone."""
    for name in (SNAPSHOTS, PARTITIONS):
        local = local_path(join(folder, name))
        for path, _, _ in os.walk(local, topdown=False) if local is not None else ():
            with contextlib.suppress(OSError):  # it is not empty
                os.rmdir(path)


def remove_links(folder: str, names: Collection[str]) -> None:
    """Remove the links in snapshots that lead to files of partitions. For starting over: before the files themselves."""
    top = local_path(join(folder, SNAPSHOTS))
    for path, _, files in os.walk(top) if top is not None else ():
        snapshot, _, below_it = os.path.relpath(path, top).partition(os.sep)
        for name in files if window_of(f"{SNAPSHOTS}/{snapshot}") >= 0 else ():
            if posixpath.join(PARTITIONS, below_it, name) in names:
                os.unlink(os.path.join(path, name))


def replaced_files(ledger: LedgerReader, keep: int) -> Iterator[list[DataFile]]:
    """Return the files of the replaced snapshots that are not swept yet, oldest first, but for the newest `keep` of them.

    Files that are content of later snapshots, too, are left out. A snapshot that lacks its folder, or else its first file, counts
    as swept, and so do those before it: `sweep_snapshots` removes these last, and the oldest snapshot first. So a steady run
    looks at two snapshots, whatever the history.
    """
    head = ledger.refresh()
    replacing = None if head is None else head.carried.replaced
    due: list[list[DataFile]] = []
    while replacing is not None and replacing > 0:
        data, before = ledger.entry(replacing).data, ledger.entry(replacing - 1)
        if keep > 0:
            keep -= 1
        elif before.carried.rows is not None:
            kept = set() if data is None or data.new_data is None else {file.path for file in data.new_data.kept_files}
            files = [file for _, _, file in ledger.content_files(before.seq) if file.path not in kept]
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
            if root_of(ledger.folder, path) == join(ledger.folder, PARTITIONS):
                _remove_empty_folders(path.rpartition("/")[0], above=ledger.folder)
        for root in roots - {ledger.folder, join(ledger.folder, PARTITIONS)}:
            if is_local(root):  # object stores have no folders
                file_system(root).remove_tree(root)
    _sweep_links(ledger.folder, keep)


def _sweep_links(folder: str, keep: int) -> None:
    """Remove the snapshots that are links to files of partitions, but for the newest one and `keep` before it."""
    top = local_path(join(folder, SNAPSHOTS))
    if top is None or not os.path.isdir(local_path(join(folder, PARTITIONS)) or "") or not os.path.isdir(top):
        return
    windows = sorted(window for name in os.listdir(top) if (window := window_of(f"{SNAPSHOTS}/{name}")) >= 0)
    for window in windows[: -(keep + 1)]:
        file_system(folder).remove_tree(join(folder, snapshot_of(window)))


def _remove_empty_folders(folder: str, above: str) -> None:
    """Remove a folder that has become empty, and those around it, but not `above`."""
    while is_local(folder) and below(above, folder):
        try:
            os.rmdir(local_path(folder) or "")
        except OSError:  # it is not empty, or gone
            return
        folder = folder.rpartition("/")[0]


def current_problem(ledger: LedgerReader, newest: int) -> CurrentDiffers | None:
    """Return a problem if `current` does not lead to the content at an entry; None if it does.

    It may lead to a later snapshot, whose launch died before the entry. The next launch writes that.
    """
    folder, carried = ledger.folder, ledger.entry(newest).carried
    if folder is None:
        return None
    last = None if carried.rows is None else ledger.entry(carried.rows)
    if last is not None and last.data is not None and all(file.path.startswith(f"{PARTITIONS}/") for _, file in last.content):
        name = snapshot_of(last.data.txn.window_id)
        name = name if file_system(folder).exists(join(folder, name)) else ""  # "": the file system has no links
    elif carried.replaced is None:
        return None
    else:
        roots = {root_of(folder, inside(folder, file.path)) for _, _, file in ledger.content_files(newest)}
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


def _is_there(folder: str, file: DataFile) -> bool:
    """Return whether a snapshot is not swept yet, by its first file: on disks, by the folder that is removed after that."""
    path = inside(folder, file.path)
    root = root_of(folder, path)
    is_shared = root in (folder, join(folder, PARTITIONS))
    return file_system(path).exists(path if is_shared or not is_local(root) else root)
