"""What dagflow needs around it and does not find: storage, disk, permissions, other launches (DF4xx).

SurroundingsError
├── StorageError             DF410   the operating system refused, for a reason without a class of its own
│   ├── DiskFull             DF411   no space, or the quota is used up
│   ├── NotWritable          DF412   permissions, or a file system mounted read-only
│   ├── NotReadable          DF413   permissions
│   ├── PathMissing          DF414   no such file or folder
│   ├── NotAFolder           DF415   a file stands where a folder should
│   ├── NotAFile             DF416   a folder, pipe, socket or device where a file should be
│   ├── DeviceFailed         DF417   the disk or network file system reports an error
│   ├── TooManyOpenFiles     DF418   the limit of open files is reached
│   ├── SymlinkLoop          DF419   symbolic links that lead to themselves
│   ├── NameTooLong          DF420   a file name longer than the file system takes
│   ├── PathTaken            DF421   something with that name exists
│   ├── StorageBusy          DF422   the storage does not answer, or asks to be left alone, for now
│   └── …                    DF423-DF426   of object stores and other servers: `object_stores`
├── FolderInUse              DF430   another launch works on the run folder
├── UnknownScheme            DF431   a URL that no file system answers to           exit code 2
├── DriverMissing            DF432   the package for a kind of URL is not installed
├── StoreRefused             DF433   a store that cannot publish a record exactly once
├── OutcomeUnknown           DF434   a record may or may not have been published
├── BadUrl                   DF435   a URL that cannot be understood                exit code 2
└── WindowHeldUp             DF436   storage did not answer as often as a window may try
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors.base import SurroundingsError


@attrs.define(slots=False, eq=False, str=False, repr=False)
class StorageError(SurroundingsError):
    """Storage refused: `path` is what was asked for, `doing` what for, `reason` the system's own words.

    `at` is the path that the system complained about, where it is another one than `path`.
    """

    code: ClassVar[str] = "DF410"

    path: str
    doing: str
    reason: str = ""
    at: str | None = None

    def message(self) -> str:
        """What, where, while doing what, and what to do."""
        at = f" (at {self.at})" if self.at and self.at != self.path else ""
        advice = self.advice()
        return f"{self.path}: {self.what()}{at}, while {self.doing}." + (f" {advice}" if advice else "")

    def what(self) -> str:
        """The few words that name the cause."""
        return self.reason or "the operating system refused"

    def advice(self) -> str:
        """What a user can do about it; may be empty."""
        return ""


@attrs.define(slots=False, eq=False, str=False, repr=False)
class DiskFull(StorageError):
    """No space is left, or the user's quota is used up."""

    code: ClassVar[str] = "DF411"
    quota: bool = False

    def what(self) -> str:
        return "the disk quota is used up" if self.quota else "no space is left on the device"

    def advice(self) -> str:
        see = "`quota -s` shows it" if self.quota else "`df -h` shows what is full (`df -i`: out of inodes)"
        return f"Free some space ({see}) or choose another folder, then launch again: what was decided is kept."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class NotWritable(StorageError):
    """Writing is not permitted, or the file system is mounted read-only (`read_only`)."""

    code: ClassVar[str] = "DF412"
    read_only: bool = False

    def what(self) -> str:
        return "the file system is mounted read-only" if self.read_only else "you may not write there"

    def advice(self) -> str:
        if self.read_only:
            return "Choose a folder on another file system."
        return "Choose another folder, or have its owner permit it: `ls -ld` on the folder shows owner and permissions."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class NotReadable(StorageError):
    """Reading is not permitted."""

    code: ClassVar[str] = "DF413"

    def what(self) -> str:
        return "you may not read it"

    def advice(self) -> str:
        return (
            f"Have its owner permit it (`chmod u+r`, for a folder `u+rx`); `namei -l {self.path}` shows each folder on the way."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class PathMissing(StorageError):
    """No such file or folder; `parent` is the deepest folder that exists, `nearest` the most similar path there."""

    code: ClassVar[str] = "DF414"
    parent: str | None = None
    nearest: str | None = None

    def what(self) -> str:
        return "no such file or folder"

    def advice(self) -> str:
        if self.nearest:
            return f"Did you mean {self.nearest}?"
        return f"{self.parent} exists, what follows does not." if self.parent else ""


@attrs.define(slots=False, eq=False, str=False, repr=False)
class NotAFolder(StorageError):
    """A file stands where a folder should; `file` is that file."""

    code: ClassVar[str] = "DF415"
    file: str | None = None

    def what(self) -> str:
        return f"{self.file} is a file, not a folder" if self.file and self.file != self.path else "this is not a folder"

    def advice(self) -> str:
        return "Give a folder, or move the file away."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class NotAFile(StorageError):
    """A folder, pipe, socket or device (`kind`) where a file with a length and positions should be."""

    code: ClassVar[str] = "DF416"
    kind: str = "not a regular file"

    def what(self) -> str:
        return f"this is {self.kind}, not a file that can be read at any position"

    def advice(self) -> str:
        return "" if self.kind == "a folder" else "Copy what comes out of it to a file first."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class DeviceFailed(StorageError):
    """The disk, or the network file system, reports an error of its own."""

    code: ClassVar[str] = "DF417"

    def what(self) -> str:
        return f"the device failed ({self.reason})" if self.reason else "the device failed"

    def advice(self) -> str:
        return "Look at the system's log (`dmesg`) and at the mount; launch again when it is repaired: what was decided is kept."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class TooManyOpenFiles(StorageError):
    """The process (or the machine) has as many files open as it may."""

    code: ClassVar[str] = "DF418"

    def what(self) -> str:
        return "too many files are open"

    def advice(self) -> str:
        return "Raise the limit (`ulimit -n 65536`), or run with fewer parallel readers and writers."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class SymlinkLoop(StorageError):
    """Symbolic links lead to themselves."""

    code: ClassVar[str] = "DF419"

    def what(self) -> str:
        return "its symbolic links lead to themselves"

    def advice(self) -> str:
        return "`namei` on the path shows the circle."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class NameTooLong(StorageError):
    """The file system takes no name of this length (mostly 255 bytes)."""

    code: ClassVar[str] = "DF420"

    def what(self) -> str:
        return "the name is too long for this file system"


@attrs.define(slots=False, eq=False, str=False, repr=False)
class PathTaken(StorageError):
    """Something with that name exists already."""

    code: ClassVar[str] = "DF421"

    def what(self) -> str:
        return "it exists already"

    def advice(self) -> str:
        return "Choose another name, or move it away."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class StorageBusy(StorageError):
    """The storage is busy, does not answer in time, or has lost a connection or handle: what may pass. It is tried again."""

    code: ClassVar[str] = "DF422"

    def what(self) -> str:
        return f"the storage does not answer for now ({self.reason})"


@attrs.define(slots=False, eq=False, str=False, repr=False)
class FolderInUse(SurroundingsError):
    """Another launch works on this run folder.

    `pid` is 0 and `host` empty where it could not be found out. `remove` is the record to remove by hand, where a
    holder on another machine cannot be told to be dead.
    """

    code: ClassVar[str] = "DF430"

    folder: str
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    remove: str | None = None

    def message(self) -> str:
        """Who holds the folder, since when, and what to do."""
        holder = f"process {self.pid} on {self.host}" if self.pid else "another process"
        since = f" since {self.since}" if self.since else ""
        who = f" ({self.who})" if self.who else ""
        stop = f" (`kill {self.pid}` there)" if self.pid else ""
        gone = f" If it is gone for good, remove {self.remove} and launch again." if self.remove else ""
        return (
            f"{self.folder} is in use by {holder}{since}{who}: two launches may not work on one folder. "
            f"Wait until it is done, stop it{stop}, or give this launch another output.{gone}"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class UnknownScheme(SurroundingsError):
    """No file system answers to a URL of this kind."""

    code: ClassVar[str] = "DF431"
    exit_code: ClassVar[int] = 2

    url: str
    scheme: str
    nearest: str | None = None

    def message(self) -> str:
        """The URL, and the nearest scheme that is known."""
        hint = (
            f"Did you mean {self.nearest}://?" if self.nearest else "A plain path, s3://, gs://, abfs://, hdfs://, sftp:// are."
        )
        return f"{self.url}: {self.scheme}:// is no known kind of URL. {hint}"


@attrs.define(slots=False, eq=False, str=False, repr=False)
class DriverMissing(SurroundingsError):
    """The package that reads this kind of URL is not installed; `package` is what pip calls it."""

    code: ClassVar[str] = "DF432"

    url: str
    scheme: str
    package: str
    reason: str = ""

    def message(self) -> str:
        """What to install."""
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.url}: a package for {self.scheme}:// is missing{reason}. Install it here, and where the tasks run: "
            f"`pip install {self.package}`."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class StoreRefused(SurroundingsError):
    """This store cannot publish a record if, and only if, there is none of that name: nothing could be committed once."""

    code: ClassVar[str] = "DF433"

    url: str
    why: str

    def message(self) -> str:
        """Why, and where records can be published."""
        return (
            f"{self.url} cannot hold a run folder: {self.why}. dagflow publishes each record by creating it if it is absent, "
            "which this place does not guarantee. Choose a local or shared disk (with hard links), or s3://, gs:// or abfs://."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class OutcomeUnknown(SurroundingsError):
    """A record was sent, the answer was lost, and reading it back failed: it may be there or not. Nothing was deleted."""

    code: ClassVar[str] = "DF434"

    url: str
    reason: str

    def message(self) -> str:
        """What is not known, and that a launch will find out."""
        return (
            f"{self.url}: whether this record was published is not known ({self.reason}). Nothing was deleted: launch again when "
            "the store answers, and the run continues from what is there."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False)
class BadUrl(SurroundingsError):
    """A URL that cannot be understood."""

    code: ClassVar[str] = "DF435"
    exit_code: ClassVar[int] = 2

    url: str
    why: str

    def message(self) -> str:
        """The URL and what is wrong with it."""
        return f"{self.url}: {self.why}."


@attrs.define(slots=False, eq=False, str=False, repr=False)
class WindowHeldUp(SurroundingsError):
    """What the driver does for a window failed as often as it may, each time for a reason that might have passed."""

    code: ClassVar[str] = "DF436"

    window: int
    doing: str
    attempts: int
    reason: str

    def message(self) -> str:
        """The window, what was being done for it, and why it failed the last time."""
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        return (
            f"window {self.window}: {self.doing} failed {times}; the last time: {self.reason}\n"
            "  help: launch again when the storage answers: the run goes on from there"
        )
