"""Errors of storage: files, disks, object stores, and paths that are not followed (DF41x to DF43x)."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError, RunError
from dagflow.errors.base import error


@error
class PathOutside(RunError, ValueError):
    """A stored record names a path that does not lie in its folder. `leads`: where a symbolic link leads."""

    folder: str
    path: str
    leads: str | None = None
    code: ClassVar[str] = "DF377"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        if self.leads is not None:
            return (
                f"{self.folder}: {self.path!r} leads out of this folder, to {self.leads}\n"
                "  help: dagflow follows no link out of a folder of its own; put the folder or file itself in its place"
            )
        return (
            f"{self.folder}: a stored record names {self.path!r}, which is not a path of data inside this folder\n"
            "  help: dagflow writes no such record, and has read, moved and removed nothing there; restore the folder from a copy"
        )


@error
class BadRecordName(RunError, ValueError):
    """A record of a store is asked for by something that cannot be its name."""

    name: str
    code: ClassVar[str] = "DF383"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.name!r} is not the name of a record: a name is words joined by '/', none of them empty or beginning with '.'\n"
            "  help: a stored record that names it is damaged; restore the folder from a copy"
        )


@error
class StorageError(InfrastructureError):
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


@error
class DiskFull(StorageError):
    """No space is left, or the user's quota is used up."""

    code: ClassVar[str] = "DF411"
    quota: bool = False

    def what(self) -> str:
        return "the disk quota is used up" if self.quota else "no space is left on the device"

    def advice(self) -> str:
        see = "`quota -s` shows it" if self.quota else "`df -h` shows what is full (`df -i`: out of inodes)"
        return f"Free some space ({see}) or choose another folder, then launch again: what was decided is kept."


@error
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


@error
class NotReadable(StorageError):
    """Reading is not permitted."""

    code: ClassVar[str] = "DF413"

    def what(self) -> str:
        return "you may not read it"

    def advice(self) -> str:
        return (
            f"Have its owner permit it (`chmod u+r`, for a folder `u+rx`); `namei -l {self.path}` shows each folder on the way."
        )


@error
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


@error
class NotAFolder(StorageError):
    """A file stands where a folder should; `file` is that file."""

    code: ClassVar[str] = "DF415"
    file: str | None = None

    def what(self) -> str:
        return f"{self.file} is a file, not a folder" if self.file and self.file != self.path else "this is not a folder"

    def advice(self) -> str:
        return "Give a folder, or move the file away."


@error
class NotAFile(StorageError):
    """A folder, pipe, socket or device (`kind`) where a file with a length and positions should be."""

    code: ClassVar[str] = "DF416"
    kind: str = "not a regular file"

    def what(self) -> str:
        return f"this is {self.kind}, not a file that can be read at any position"

    def advice(self) -> str:
        return "" if self.kind == "a folder" else "Copy what comes out of it to a file first."


@error
class DeviceFailed(StorageError):
    """The disk, or the network file system, reports an error of its own."""

    code: ClassVar[str] = "DF417"

    def what(self) -> str:
        return f"the device failed ({self.reason})" if self.reason else "the device failed"

    def advice(self) -> str:
        return "Look at the system's log (`dmesg`) and at the mount; launch again when it is repaired: what was decided is kept."


@error
class TooManyOpenFiles(StorageError):
    """The process (or the machine) has as many files open as it may."""

    code: ClassVar[str] = "DF418"

    def what(self) -> str:
        return "too many files are open"

    def advice(self) -> str:
        return "Raise the limit (`ulimit -n 65536`), or run with fewer parallel readers and writers."


@error
class SymlinkLoop(StorageError):
    """Symbolic links lead to themselves."""

    code: ClassVar[str] = "DF419"

    def what(self) -> str:
        return "its symbolic links lead to themselves"

    def advice(self) -> str:
        return "`namei` on the path shows the circle."


@error
class NameTooLong(StorageError):
    """The file system takes no name of this length (mostly 255 bytes)."""

    code: ClassVar[str] = "DF420"

    def what(self) -> str:
        return "the name is too long for this file system"


@error
class PathTaken(StorageError):
    """Something with that name exists already."""

    code: ClassVar[str] = "DF421"

    def what(self) -> str:
        return "it exists already"

    def advice(self) -> str:
        return "Choose another name, or move it away."


@error
class StorageBusy(StorageError):
    """The storage is busy, does not answer in time, or has lost a connection or handle: what may pass. It is tried again."""

    code: ClassVar[str] = "DF422"

    def what(self) -> str:
        return f"the storage does not answer for now ({self.reason})"


@error
class FolderInUse(InfrastructureError):
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


@error
class UnknownScheme(InfrastructureError):
    """No file system answers to a URL of this kind."""

    code: ClassVar[str] = "DF431"

    url: str
    scheme: str
    nearest: str | None = None

    def message(self) -> str:
        """The URL, and the nearest scheme that is known."""
        hint = (
            f"Did you mean {self.nearest}://?" if self.nearest else "A plain path, s3://, gs://, abfs://, hdfs://, sftp:// are."
        )
        return f"{self.url}: {self.scheme}:// is no known kind of URL. {hint}"


@error
class DriverMissing(InfrastructureError):
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


@error
class StoreRefused(InfrastructureError):
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


@error
class OutcomeUnknown(InfrastructureError):
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


@error
class BadUrl(ConfigError):
    """A URL that cannot be understood."""

    code: ClassVar[str] = "DF268"
    is_fatal: ClassVar[bool] = True

    url: str
    why: str

    def message(self) -> str:
        """The URL and what is wrong with it."""
        return f"{self.url}: {self.why}."


@error
class StorageUnreachable(StorageBusy):
    """There is no connection to the server of a URL. It is tried again, and may pass."""

    code: ClassVar[str] = "DF423"

    def what(self) -> str:
        return f"its server cannot be reached ({self.reason})"

    def advice(self) -> str:
        return "Look at the URL, and at the endpoint that the environment names (S3: AWS_ENDPOINT_URL), then launch again."


@error
class CredentialsMissing(StorageError):
    """The server wants keys, and there are none, or it refuses those that there are."""

    code: ClassVar[str] = "DF424"

    def what(self) -> str:
        return f"the server wants other credentials ({self.reason})"

    def advice(self) -> str:
        return "S3 takes them from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the machine's role."


@error
class BucketMissing(StorageError):
    """There is no such bucket. dagflow makes none: who may read it is for its owner to say."""

    code: ClassVar[str] = "DF425"

    def what(self) -> str:
        return "there is no such bucket"

    def advice(self) -> str:
        return "Look at its name, or make it first: dagflow makes no buckets."


@error
class FolderPage(StorageError):
    """A URL of HTTP where the server answers with a page of HTML that stands for a folder."""

    code: ClassVar[str] = "DF426"

    def what(self) -> str:
        return "the server answers with a page of HTML, as it does for folders"

    def advice(self) -> str:
        return "HTTP has no folders: name the files, each by its URL."
