"""The files that windows write: where they are staged, their final names, and whether they are what was written."""

from __future__ import annotations

import contextlib
import enum
import unicodedata
from collections.abc import Callable, Mapping, Sequence

import attrs

from dagflow.ledger.snapshots import PARTITIONS, snapshot_of
from dagflow.runtime.run_folder.layout import STAGING
from dagflow.runtime.run_folder.reports import StagedFile, TaskReport
from dagflow.storage import (
    OWN_FOLDER,
    absolute,
    at_once,
    below,
    explained,
    file_system,
    inside,
    is_local,
    is_object_store,
    join,
    new_hash,
)
from dagflow.storage.errors import PathOutside

_PIECE = 1 << 20


def moved_file(file: StagedFile, moved: Mapping[str, str]) -> StagedFile:
    """Return a file at its present place; `moved`: old and new folders."""
    then = absolute(file.folder)
    now = moved.get(then, then)
    if now == then or not file.attempt.startswith(f"{file.folder.rstrip('/')}/"):
        return file
    return attrs.evolve(file, folder=now, attempt=join(now, file.attempt[len(file.folder.rstrip("/")) + 1 :]))


def file_paths(file: StagedFile) -> tuple[str, str]:
    """Return the staged path and the final path of a file of a decision. Raises PathOutside for paths outside the folder."""
    attempt = below(join(file.folder, STAGING), file.attempt)
    if attempt is None:
        raise PathOutside(join(file.folder, STAGING), file.attempt)
    if file.name.partition("/")[0].casefold() == OWN_FOLDER:
        raise PathOutside(file.folder, file.name)
    return inside(join(file.folder, STAGING), attempt), inside(file.folder, file.name)


def difference(file: StagedFile, path: str) -> str | None:
    """Return how a file differs from what its task has written; None if it does not. Raises OSError."""
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


class Replaces(enum.Enum):
    """The files of earlier windows that those of a window replace."""

    ROWS = "all, if the window has rows"
    RESULT = "all"
    PARTITIONS = "those of the partitions in which they are"


def named(window: int, reports: list[TaskReport], replacing: Mapping[str, Replaces] | None = None) -> list[StagedFile]:
    """Final names: the name that a sink asked for; what is taken in it gets window and number behind it. Raises PathOutside.

    `replacing`: the operators whose files replace others. Those that replace all become a snapshot, in a folder of its own.
    """
    replacing = replacing or {}
    wanted: list[tuple[StagedFile, str, str]] = []
    by_folder: dict[str, list[str]] = {}
    for report in reports:
        for file in report.files:
            folder = absolute(file.folder)  # one folder may be spelled in several ways
            inside(folder, file.name)
            replaces = replacing.get(file.operator)
            above = PARTITIONS if replaces is Replaces.PARTITIONS else snapshot_of(window)
            name = file.name if replaces is None else f"{above}/{file.name}"
            wanted.append((file, folder, name))
            by_folder.setdefault(folder, []).append(name)
    names = {folder: _Names(folder, window, mine) for folder, mine in by_folder.items()}
    return [
        attrs.evolve(
            file,
            name=names[folder].give(name),
            is_snapshot=replacing.get(file.operator) in (Replaces.ROWS, Replaces.RESULT),
            is_whole=replacing.get(file.operator) is Replaces.RESULT,
            is_partition=replacing.get(file.operator) is Replaces.PARTITIONS,
        )
        for file, folder, name in wanted
    ]


class _Names:
    """The names in one output folder, existing and given ones. No rename after the decision may fail for a name.

    So a file gets no name of a folder and below no file (`a`, `a/b`), and where the file system does not tell `A` from `a`, no
    two files get names that differ in case only.

    `wanted`: the names that will be asked for. In an object store, these are looked for several at a time.
    """

    def __init__(self, folder: str, window: int, wanted: Sequence[str]) -> None:
        self._folder = folder
        self._window = window
        self._system = file_system(folder)
        self._looked_for: dict[str, bool] = {}
        if is_object_store(folder):
            distinct = list(dict.fromkeys(wanted))
            with explained(folder, "naming output files"):
                self._looked_for = dict(zip(distinct, at_once(self._is_taken, distinct, folder), strict=True))
        self._files: set[str] = set()
        self._folders: set[str] = set()
        own = join(folder, OWN_FOLDER)
        self._is_folding = is_local(folder) and self._system.exists(own) and self._system.exists(join(folder, OWN_FOLDER.upper()))

    def give(self, wanted: str) -> str:
        """Return the free name nearest to the requested one."""
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
        if key in self._files or key in self._folders:
            return False
        return not (self._looked_for[path] if path in self._looked_for else self._is_taken(path))

    def _is_taken(self, path: str) -> bool:
        return self._system.is_taken(join(self._folder, path))

    def _key(self, path: str) -> str:
        return unicodedata.normalize("NFC", path.casefold()) if self._is_folding else path
