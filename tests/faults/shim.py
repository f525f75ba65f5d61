"""The Python side of `shim.c`: compiles it, arms a launch with it, and reads the calls that it has recorded."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import attrs

SOURCE = Path(__file__).with_name("shim.c")
CONTROL_VARIABLE, PRELOAD = "DAGFLOW_FAULTS_CONTROL", "LD_PRELOAD"
_CONTROL = struct.Struct("=qqiiiiii1024s1024s")
_RECORD = struct.Struct("=qqqqiiii")


class Action(IntEnum):
    """The effect of a fault on the call that is hit; as in `shim.c`."""

    COUNT = 0
    KILL = 1
    TEAR = 2
    EIO = 3
    ENOSPC = 4
    FULL = 5
    CUT = 6


class Kind(IntEnum):
    """The kind of a call; as in `shim.c`."""

    OPEN = 1
    WRITE = 2
    TRUNCATE = 3
    SYNC = 4
    RENAME = 5
    LINK = 6
    SYMLINK = 7
    UNLINK = 8
    RMDIR = 9
    MKDIR = 10
    SEND = 11


@attrs.frozen
class Call:
    """A call that has succeeded.

    Attributes:
        number: in the order of all calls of the launch, from 1.
        inode: of the file or directory.
        flags: of `open` and `renameat2`.
        offset: of a write; the new size of a truncation.
        path, target: the names; of a symbolic link, `path` is its text.
        data: that were written.
    """

    number: int
    kind: Kind
    inode: int
    flags: int
    offset: int
    path: str
    target: str
    data: bytes


def unsupported() -> str:
    """Return why nothing can be preloaded here, or an empty string."""
    if sys.platform != "linux":
        return "libraries are preloaded on Linux only"
    return "" if shutil.which("cc") else "there is no C compiler `cc`"


def compiled(folder: Path) -> Path:
    """Compile the library into a folder. Raises CalledProcessError."""
    library = folder / "shim.so"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


@attrs.frozen
class Control:
    """The page that a launch's processes share with the harness, as a file. `record`: where calls are recorded, with CUT."""

    path: Path
    record: Path

    @classmethod
    def create(cls, path: Path, root: Path, action: Action = Action.COUNT, target: int = 0, sockets: bool = False) -> Control:
        """Write the page for a launch whose files are below `root`. `target`: the number of the call that is hit, from 1."""
        control = cls(path, path.with_suffix(".calls"))
        control.record.unlink(missing_ok=True)
        names = os.fsencode(root.resolve()), os.fsencode(control.record)
        path.write_bytes(_CONTROL.pack(0, target, action, sockets, 0, 0, 0, 0, *names).ljust(mmap.PAGESIZE, b"\0"))
        return control

    @contextlib.contextmanager
    def armed(self, library: str) -> Iterator[None]:
        """Arm this process, which has the library, and those that it starts, as long as this context."""
        os.environ |= {CONTROL_VARIABLE: str(self.path), PRELOAD: library}
        loaded = ctypes.CDLL(None)
        if loaded.faults_arm(os.fsencode(self.path)):
            raise OSError(f"{self.path} cannot be mapped")
        try:
            yield
        finally:
            loaded.faults_disarm()
            for name in (CONTROL_VARIABLE, PRELOAD):
                del os.environ[name]

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return int(self._fields()[0])

    @property
    def hits(self) -> int:
        """The number of calls that were hit: more than one where the disk stays full."""
        return int(self._fields()[4])

    @property
    def kind(self) -> Kind | None:
        """The kind of the call that was hit first."""
        number = self._fields()[5]
        return Kind(number) if number else None

    def _fields(self) -> tuple[int, ...]:
        return _CONTROL.unpack_from(self.path.read_bytes())

    def calls(self) -> Iterator[Call]:
        """Yield the recorded calls in their order."""
        data = memoryview(self.record.read_bytes() if self.record.exists() else b"")
        while data:
            number, inode, offset, length, kind, flags, *sizes = _RECORD.unpack_from(data)
            data = data[_RECORD.size :]
            parts = []
            for size in (*sizes, length if kind == Kind.WRITE else 0):
                parts.append(bytes(data[:size]))
                data = data[size:]
            path, target, written = parts
            yield Call(number, Kind(kind), inode, flags, offset, os.fsdecode(path), os.fsdecode(target), written)
