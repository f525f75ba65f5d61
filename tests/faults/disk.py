"""A model of a disk: what was synced, what was not, and what may be left of it after a power cut.

`Disk.of` reads the files that are there before a launch, `apply` replays the launch's calls, and `cut` returns what the next
launch finds. POSIX promises of a name no more than that it survives once its directory was synced, and of data once its file was.
Real file systems keep more; a program that is right with all three models is right on each of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import attrs

from tests.faults.shim import Call, Kind

PAGE = 4096
LONG_AGO = 1_000_000_000.0

Model = Literal["lost", "named", "reordered"]
"""The models of a power cut. `lost`: what was not synced is gone. `named`: all names are there, as file systems with a journal
keep them, and data that were not synced are missing, or zeros (delayed allocation of ext4 and XFS). `reordered`: of the names and
the pages that were not synced, any may be there."""

MODELS: tuple[Model, ...] = ("lost", "named", "reordered")


@attrs.define(eq=False)
class File:
    """A file: its bytes, those of its last sync, and the changes since, `(offset, bytes)`, or `(size, None)` of a truncation."""

    data: bytearray = attrs.field(factory=bytearray)
    synced: bytes = b""
    changes: list[tuple[int, bytes | None]] = attrs.field(factory=list)

    def change(self, offset: int, data: bytes | None) -> None:
        """Write bytes, or cut the file off."""
        _put(self.data, offset, data)
        self.changes.append((offset, data))

    def sync(self) -> None:
        """Keep what the file has now."""
        self.synced = bytes(self.data)
        self.changes.clear()


@attrs.define(eq=False)
class Folder:
    """A directory: its names, and those of its last sync."""

    names: dict[str, Node] = attrs.field(factory=dict)
    synced: dict[str, Node] = attrs.field(factory=dict)


Node = File | Folder | str
"""A string is a symbolic link."""

_Names = list[tuple[Folder, str, Node | None]]


def _put(data: bytearray, offset: int, new: bytes | None) -> None:
    if new is None:
        del data[offset:]
        data.extend(bytes(offset - len(data)))
    elif new:
        data.extend(bytes(max(0, offset - len(data))))
        data[offset : offset + len(new)] = new


@attrs.define
class Disk:
    """The files below a folder, as a launch changes them. `unsynced`: changes of names that were not synced, in their order."""

    root: str
    top: Folder
    inodes: dict[int, Node]
    unsynced: list[_Names] = attrs.field(factory=list)

    @classmethod
    def of(cls, folder: Path) -> Disk:
        """Read what is there. It counts as synced."""
        disk = cls(os.path.realpath(folder), Folder(), {})
        disk.top = disk._read(folder)  # type: ignore[assignment]
        return disk

    def _read(self, path: Path) -> Node:
        node: Node
        if path.is_symlink():
            return os.readlink(path)
        if path.is_dir():
            node = Folder({each.name: self._read(each) for each in path.iterdir()})
            node.synced = dict(node.names)
        else:
            data = path.read_bytes()
            node = File(bytearray(data), data)
        self.inodes[path.stat().st_ino] = node
        return node

    # ------------------------------------------------------------------------------------------------------------------ calls

    def apply(self, call: Call) -> None:
        """Replay a call. Raises KeyError for what the calls before it do not explain."""
        handlers: dict[Kind, Callable[[Call], None]] = {
            Kind.OPEN: self._open,
            Kind.WRITE: lambda call: self._file(call).change(call.offset, call.data),
            Kind.TRUNCATE: lambda call: self._file(call).change(call.offset, None),
            Kind.SYNC: self._sync,
            Kind.RENAME: self._rename,
            Kind.LINK: lambda call: self._name((*self._place(call.target), self._at(call.path))),
            Kind.SYMLINK: lambda call: self._name((*self._place(call.target), call.path)),
            Kind.UNLINK: lambda call: self._name((*self._place(call.path), None)),
            Kind.RMDIR: lambda call: self._name((*self._place(call.path), None)),
            Kind.MKDIR: self._mkdir,
        }
        handlers[call.kind](call)

    def apply_all(self, calls: Iterable[Call]) -> None:
        """Replay calls in their order."""
        for call in calls:
            self.apply(call)

    def _open(self, call: Call) -> None:
        folder, name = self._place(call.path)
        node = folder.names.get(name)
        if isinstance(node, str):  # the file that the link leads to
            node = self.inodes[call.inode]
        if node is None:
            node = self.inodes[call.inode] = File()
            self._name((folder, name, node))
        if call.flags & os.O_TRUNC and isinstance(node, File) and node.data:
            node.change(0, None)

    def _mkdir(self, call: Call) -> None:
        made = self.inodes[call.inode] = Folder()
        self._name((*self._place(call.path), made))

    def _rename(self, call: Call) -> None:
        if call.flags & 2:
            raise NotImplementedError("RENAME_EXCHANGE")
        source = self._place(call.path)
        node = source[0].names[source[1]]
        target = self._place(call.target)
        if target[0].names.get(target[1]) is not node:  # two names of one file: rename does nothing
            self._name((*source, None), (*target, node))

    def _sync(self, call: Call) -> None:
        node = self.inodes[call.inode]
        if isinstance(node, File):
            node.sync()
        elif isinstance(node, Folder):
            node.synced = dict(node.names)
            self.unsynced = [rest for each in self.unsynced if (rest := [one for one in each if one[0] is not node])]

    def _name(self, *changes: tuple[Folder, str, Node | None]) -> None:
        _change_names(changes, lambda folder: folder.names)
        self.unsynced.append(list(changes))

    def _file(self, call: Call) -> File:
        node = self.inodes[call.inode]
        assert isinstance(node, File), f"{call.path} is not a file"
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self._at(parent)
        assert isinstance(folder, Folder), f"{parent} is not a directory"
        return folder, name

    def _at(self, path: str) -> Node:
        node: Node = self.top
        for name in os.path.relpath(path, self.root).split("/"):
            if name != ".":
                assert isinstance(node, Folder), f"{path} leads through what is not a directory"
                node = node.names[name]
        return node

    # ----------------------------------------------------------------------------------------------------------------- power cuts

    def cut(self, model: Model, rng: random.Random) -> Cut:
        """Return what is left after a power cut."""
        if model == "named":
            return Cut(lambda folder: folder.names, lambda file: _without_data(file, rng))
        if model == "lost":
            return Cut(lambda folder: folder.synced, lambda file: file.synced)
        names: dict[int, dict[str, Node]] = {}
        for change in self.unsynced:
            if rng.random() < 0.5:
                _change_names(change, lambda folder: names.setdefault(id(folder), dict(folder.synced)))
        return Cut(lambda folder: names.get(id(folder), folder.synced), lambda file: _some_pages(file, rng))

    def now(self) -> Cut:
        """Return what a launch finds without a power cut."""
        return Cut(lambda folder: folder.names, lambda file: bytes(file.data))


def _change_names(changes: _Names | tuple[tuple[Folder, str, Node | None], ...], of: Callable[[Folder], dict[str, Node]]) -> None:
    for folder, name, node in changes:
        if node is None:
            of(folder).pop(name, None)
        else:
            of(folder)[name] = node


def _without_data(file: File, rng: random.Random) -> bytes:
    """The file as of its last sync; or as long as it is now, with zeros for what was written since."""
    if rng.random() < 0.5:
        return file.synced
    found = bytearray(file.synced)
    for offset, data in file.changes:
        _put(found, offset, None if data is None else bytes(len(data)))
    return bytes(found)


def _some_pages(file: File, rng: random.Random) -> bytes:
    """The file as of its last sync, and some pages of what was written since."""
    found = bytearray(file.synced)
    for offset, data in file.changes:
        for start, part in ((offset, None),) if data is None else _pages(offset, data):
            if rng.random() < 0.5:
                _put(found, start, part)
    return bytes(found)


def _pages(offset: int, data: bytes) -> Iterator[tuple[int, bytes | None]]:
    start = 0
    while start < len(data):
        stop = start + PAGE - (offset + start) % PAGE
        yield offset + start, data[start:stop]
        start = stop


Content = dict[str, bytes | str | None]
"""Bytes of files, texts of symbolic links, and None for directories, by their path."""


@attrs.frozen
class Cut:
    """The files that are found: the names of each directory, and the bytes of each file."""

    names: Callable[[Folder], dict[str, Node]]
    data: Callable[[File], bytes]

    def content(self, folder: Folder) -> Content:
        """Return what is found in a folder."""
        return {path: self.data(node) if isinstance(node, File) else _text(node) for path, node in self._below(folder)}

    def write(self, folder: Folder, place: Path) -> None:
        """Write what is found in a folder to an empty place. A file that has several names keeps them."""
        first: dict[int, Path] = {}
        for name, node in self._below(folder):
            path = place / name
            if isinstance(node, Folder):
                path.mkdir()
            elif isinstance(node, str):
                path.symlink_to(node)
            elif id(node) in first:
                path.hardlink_to(first[id(node)])
            else:
                path.write_bytes(self.data(node))
                os.utime(path, (LONG_AGO, LONG_AGO))  # the machine has started since
                first[id(node)] = path

    def _below(self, folder: Folder, path: str = "") -> Iterator[tuple[str, Node]]:
        for name, node in self.names(folder).items():
            yield path + name, node
            if isinstance(node, Folder):
                yield from self._below(node, f"{path}{name}/")


def _text(node: Node) -> str | None:
    return node if isinstance(node, str) else None


def content_of(folder: Path) -> Content:
    """Return what a folder has."""
    found: Content = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found
