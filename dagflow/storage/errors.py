"""Errors of storage: files, disks, object stores, and paths that are not followed (DF41x to DF43x)."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError, RunError
from dagflow.errors.base import error


@error
class PathOutside(RunError, ValueError):
    """A stored record names a path outside of its folder. `leads`: where a symbolic link leads."""

    folder: str
    path: str
    leads: str | None = None
    code: ClassVar[str] = "DF377"
    example = {"folder": "out", "path": "../other/a.txt"}
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
    """A name is not valid for a record of a store."""

    name: str
    code: ClassVar[str] = "DF383"
    example = {"name": "../plan"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.name!r} is not the name of a record: a name is words joined by '/', none of them empty or beginning with '.'\n"
            "  help: a stored record that names it is damaged; restore the folder from a copy"
        )


@error
class StorageError(InfrastructureError):
    """The storage refused an operation. `path` is what was asked for, `doing` what for, `reason` the system's own words.

    `at` is the path that the system complained about, where it is another one than `path`.
    """

    code: ClassVar[str] = "DF410"
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Operation not permitted"}
    general_remedy = "look at what the operating system says; then launch again, the run resumes"

    path: str
    doing: str
    reason: str = ""
    at: str | None = None

    def message(self) -> str:
        at = f" (at {self.at})" if self.at and self.at != self.path else ""
        advice = self.advice()
        return f"{self.path}: {self.what()}{at}, while {self.doing}." + (f" {advice}" if advice else "")

    def what(self) -> str:
        """Return the few words that name the cause."""
        return self.reason or "the operating system refused"

    def advice(self) -> str:
        """Return the remedy; may be empty."""
        return ""


@error
class DiskFull(StorageError):
    """No space is left, or the user's quota is used up."""

    code: ClassVar[str] = "DF411"
    example = {"path": "out", "doing": "writing a record"}
    quota: bool = False

    def what(self) -> str:
        return "the disk quota is used up" if self.quota else "no space is left on the device"

    def advice(self) -> str:
        see = "`quota -s` shows it" if self.quota else "`df -h` shows what is full (`df -i`: out of inodes)"
        return f"Free some space ({see}) or choose another folder, then launch again: what was decided is kept."


@error
class NotWritable(StorageError):
    """Writing is not permitted, or the file system is mounted read-only. `read_only`: it is."""

    code: ClassVar[str] = "DF412"
    example = {"path": "out", "doing": "making the output folder"}
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
    example = {"path": "logs/a.txt", "doing": "reading a block"}

    def what(self) -> str:
        return "you may not read it"

    def advice(self) -> str:
        return (
            f"Have its owner permit it (`chmod u+r`, for a folder `u+rx`); `namei -l {self.path}` shows each folder on the way."
        )


@error
class PathMissing(StorageError):
    """The file or folder does not exist. `parent` is the deepest folder that exists, `nearest` the most similar path there."""

    code: ClassVar[str] = "DF414"
    example = {"path": "logs/b.txt", "doing": "listing the input", "nearest": "logs/a.txt"}
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
    """A path is a file and should be a folder. `file` is that file."""

    code: ClassVar[str] = "DF415"
    example = {"path": "out", "doing": "making the output folder"}
    file: str | None = None

    def what(self) -> str:
        return f"{self.file} is a file, not a folder" if self.file and self.file != self.path else "this is not a folder"

    def advice(self) -> str:
        return "Give a folder, or move the file away."


@error
class NotAFile(StorageError):
    """A path is a folder, pipe, socket or device, and should be a file. `kind`: which."""

    code: ClassVar[str] = "DF416"
    example = {"path": "logs/pipe", "doing": "reading a block", "kind": "a pipe"}
    kind: str = "not a regular file"

    def what(self) -> str:
        return f"this is {self.kind}, not a file that can be read at any position"

    def advice(self) -> str:
        return "" if self.kind == "a folder" else "Copy what comes out of it to a file first."


@error
class DeviceFailed(StorageError):
    """The disk or the network file system reports an error."""

    code: ClassVar[str] = "DF417"
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Input/output error"}

    def what(self) -> str:
        return f"the device failed ({self.reason})" if self.reason else "the device failed"

    def advice(self) -> str:
        return "Look at the system's log (`dmesg`) and at the mount; launch again when it is repaired: what was decided is kept."


@error
class TooManyOpenFiles(StorageError):
    """The process or the machine has reached its limit of open files."""

    code: ClassVar[str] = "DF418"
    example = {"path": "out/a.txt", "doing": "writing a file"}

    def what(self) -> str:
        return "too many files are open"

    def advice(self) -> str:
        return "Raise the limit (`ulimit -n 65536`), or run with fewer parallel readers and writers."


@error
class SymlinkLoop(StorageError):
    """Symbolic links lead to themselves."""

    code: ClassVar[str] = "DF419"
    example = {"path": "logs", "doing": "listing the input"}

    def what(self) -> str:
        return "its symbolic links lead to themselves"

    def advice(self) -> str:
        return "`namei` on the path shows the circle."


@error
class NameTooLong(StorageError):
    """A name is too long for the file system (mostly 255 bytes)."""

    code: ClassVar[str] = "DF420"
    example = {"path": "out/aaaa…", "doing": "writing a file"}
    general_remedy = "use shorter names"

    def what(self) -> str:
        return "the name is too long for this file system"


@error
class PathTaken(StorageError):
    """A file or folder of that name exists already."""

    code: ClassVar[str] = "DF421"
    example = {"path": "out/a.txt", "doing": "writing a file"}

    def what(self) -> str:
        return "it exists already"

    def advice(self) -> str:
        return "Choose another name, or move it away."


@error
class StorageBusy(StorageError):
    """The storage is busy, does not answer in time, or has lost a connection. The operation is tried again."""

    code: ClassVar[str] = "DF422"
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Connection timed out"}
    general_remedy = "launch again when the storage answers; the run resumes"

    def what(self) -> str:
        return f"the storage does not answer for now ({self.reason})"


@error
class FolderInUse(InfrastructureError):
    """Another launch uses this run folder.

    `pid` is 0 and `host` empty where they are not known. `remove` is the record to remove by hand, where the holder on another
    machine may be dead.
    """

    code: ClassVar[str] = "DF430"
    example = {"folder": "out/_dagflow", "pid": 4711, "host": "head", "since": "12:00"}
    general_remedy = "wait until the other launch is done, stop it, or name another output"

    folder: str
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    remove: str | None = None

    def message(self) -> str:
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
    """The scheme of a URL is not known."""

    code: ClassVar[str] = "DF431"
    example = {"url": "ss3://bucket/logs", "scheme": "ss3", "nearest": "s3"}
    general_remedy = "use a kind of URL that is known"

    url: str
    scheme: str
    nearest: str | None = None

    def message(self) -> str:
        hint = (
            f"Did you mean {self.nearest}://?"
            if self.nearest
            else "Known are plain paths, s3://, gs://, abfs://, hdfs://, sftp://."
        )
        return f"{self.url}: {self.scheme}:// is not a known kind of URL. {hint}"


@error
class DriverMissing(InfrastructureError):
    """The package that reads this kind of URL is not installed; `package` is what pip calls it."""

    code: ClassVar[str] = "DF432"
    example = {"url": "s3://bucket/logs", "scheme": "s3", "package": "s3fs"}
    general_remedy = "install the package here, and where the tasks run"

    url: str
    scheme: str
    package: str
    reason: str = ""

    def message(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.url}: a package for {self.scheme}:// is missing{reason}. Install it here, and where the tasks run: "
            f"`pip install {self.package}`."
        )


@error
class StoreRefused(InfrastructureError):
    """The store cannot create a record only if it is absent, so windows could be committed twice."""

    code: ClassVar[str] = "DF433"
    example = {"url": "http://host/out", "why": "it cannot be written"}
    general_remedy = "choose a local or shared disk, or s3://, gs:// or abfs://"

    url: str
    why: str

    def message(self) -> str:
        return (
            f"{self.url} cannot hold a run folder: {self.why}. dagflow publishes each record by creating it if it is absent, "
            "which this place does not guarantee. Choose a local or shared disk (with hard links), or s3://, gs:// or abfs://."
        )


@error
class OutcomeUnknown(InfrastructureError):
    """A record was sent and the answer was lost, so the record may or may not be there."""

    code: ClassVar[str] = "DF434"
    example = {"url": "s3://bucket/out/_dagflow/plan/3", "reason": "the connection was reset"}
    general_remedy = "launch again when the store answers"

    url: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.url}: whether this record was published is not known ({self.reason}). Nothing was deleted: launch again when "
            "the store answers, and the run continues from what is there."
        )


@error
class BadUrl(ConfigError):
    """A URL cannot be parsed."""

    code: ClassVar[str] = "DF268"
    example = {"url": "s3:/bucket", "why": "it lacks a slash"}
    general_remedy = "write it as SCHEME://HOST/PATH"
    is_fatal: ClassVar[bool] = True

    url: str
    why: str

    def message(self) -> str:
        return f"{self.url}: {self.why}."


@error
class StorageUnreachable(StorageBusy):
    """The server of a URL cannot be reached. The operation is tried again."""

    code: ClassVar[str] = "DF423"
    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "connection refused"}

    def what(self) -> str:
        return f"its server cannot be reached ({self.reason})"

    def advice(self) -> str:
        return "Look at the URL, and at the endpoint that the environment names (S3: AWS_ENDPOINT_URL), then launch again."


@error
class CredentialsMissing(StorageError):
    """The server asks for credentials, or refuses the given ones."""

    code: ClassVar[str] = "DF424"
    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "InvalidAccessKeyId"}

    def what(self) -> str:
        return f"the server asks for other credentials ({self.reason})"

    def advice(self) -> str:
        return "S3 takes them from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the machine's role."


@error
class BucketMissing(StorageError):
    """The bucket does not exist. dagflow makes no buckets."""

    code: ClassVar[str] = "DF425"
    example = {"path": "s3://bucket/logs", "doing": "listing the input"}

    def what(self) -> str:
        return "there is no such bucket"

    def advice(self) -> str:
        return "Look at its name, or make it first: dagflow makes no buckets."


@error
class FolderPage(StorageError):
    """The server answers with a page of HTML for a folder."""

    code: ClassVar[str] = "DF426"
    example = {"path": "https://host/logs/", "doing": "reading a block"}

    def what(self) -> str:
        return "the server answers with a page of HTML, as it does for folders"

    def advice(self) -> str:
        return "HTTP has no folders: name the files, each by its URL."
