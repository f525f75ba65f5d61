"""Errors of storage: files, disks, object stores, and rejected paths (DF41x to DF43x)."""

from __future__ import annotations

from dagflow.errors import ConfigError, InfrastructureError, RunError
from dagflow.errors.base import error


@error("DF377", is_fatal=True)
class PathOutside(RunError, ValueError):
    """A stored record names a path outside its folder. `leads`: the target of a symbolic link."""

    folder: str
    path: str
    leads: str | None = None
    template = (
        "{folder}: "
        "{leads:?{path!r} leads out of this folder to {leads}\n"
        "  help: dagflow does not follow links out of its folders; replace the link by the folder or file itself"
        "|a stored record names {path!r}, which is not the path of a data file in this folder\n"
        "  help: dagflow never writes such a record. It has not read, moved or removed anything there; "
        "restore the folder from a copy}"
    )
    example = {"folder": "out", "path": "../other/a.txt"}


@error("DF383", is_fatal=True)
class BadRecordName(RunError, ValueError):
    """A name is not valid for a record of a store."""

    name: str
    template = (
        "{name!r} is not a valid name of a record: a name has parts joined by '/', and no part is empty or begins with '.'\n"
        "  help: a stored record that names it is damaged; restore the folder from a copy"
    )
    example = {"name": "../plan"}


@error("DF410")
class StorageError(InfrastructureError):
    """The storage refused an operation.

    `path`: the path of the operation; `doing`: its purpose; `reason`: the message of the operating system.
    `at`: the path that the operating system names, if it is not `path`.
    """

    path: str
    doing: str
    reason: str = ""
    at: str | None = None
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Operation not permitted"}
    general_remedy = "fix what the operating system reports, then launch again: the run resumes"

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


@error("DF411")
class DiskFull(StorageError):
    """No space is left, or the user's quota is used up."""

    quota: bool = False
    example = {"path": "out", "doing": "writing a record"}

    def what(self) -> str:
        return "the disk quota is used up" if self.quota else "no space is left on the device"

    def advice(self) -> str:
        see = "`quota -s` shows it" if self.quota else "`df -h` shows what is full (`df -i`: out of inodes)"
        return f"Free some space ({see}) or choose another folder, then launch again: committed windows are kept."


@error("DF412")
class NotWritable(StorageError):
    """Writing is not permitted, or the file system is mounted read-only (`read_only`)."""

    read_only: bool = False
    example = {"path": "out", "doing": "making the output folder"}

    def what(self) -> str:
        return "the file system is mounted read-only" if self.read_only else "permission to write was denied"

    def advice(self) -> str:
        if self.read_only:
            return "Choose a folder on another file system."
        return "Choose another folder, or ask its owner for permission: `ls -ld` on the folder shows owner and permissions."


@error("DF413")
class NotReadable(StorageError):
    """Reading is not permitted."""

    example = {"path": "logs/a.txt", "doing": "reading a block"}

    def what(self) -> str:
        return "permission to read was denied"

    def advice(self) -> str:
        return f"Ask its owner for permission (`chmod u+r`, for a folder `u+rx`); `namei -l {self.path}` shows each folder on the way."


@error("DF414")
class PathMissing(StorageError):
    """The file or folder does not exist. `parent` is the deepest folder that exists, `nearest` the most similar path there."""

    parent: str | None = None
    nearest: str | None = None
    example = {"path": "logs/b.txt", "doing": "listing the input", "nearest": "logs/a.txt"}

    def what(self) -> str:
        return "no such file or folder"

    def advice(self) -> str:
        if self.nearest:
            return f"Did you mean {self.nearest}?"
        return f"{self.parent} exists, but the rest of the path does not." if self.parent else ""


@error("DF415")
class NotAFolder(StorageError):
    """A path is a file and should be a folder. `file` is that file."""

    file: str | None = None
    example = {"path": "out", "doing": "making the output folder"}

    def what(self) -> str:
        return f"{self.file} is a file, not a folder" if self.file and self.file != self.path else "it is a file, not a folder"

    def advice(self) -> str:
        return "Give a folder, or move the file away."


@error("DF416")
class NotAFile(StorageError):
    """A path is a folder, pipe, socket or device, and should be a file. `kind`: a phrase for it."""

    kind: str = "not a regular file"
    example = {"path": "logs/pipe", "doing": "reading a block", "kind": "a pipe"}

    def what(self) -> str:
        return f"this is {self.kind}, not a file that can be read at any position"

    def advice(self) -> str:
        return "" if self.kind == "a folder" else "Copy its output to a file first."


@error("DF417")
class DeviceFailed(StorageError):
    """The disk or the network file system reports an I/O error."""

    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Input/output error"}

    def what(self) -> str:
        return f"the device failed ({self.reason})" if self.reason else "the device failed"

    def advice(self) -> str:
        return "Check the system's log (`dmesg`) and the mount; launch again when it is repaired: committed windows are kept."


@error("DF418")
class TooManyOpenFiles(StorageError):
    """The process or the machine has reached its limit of open files."""

    example = {"path": "out/a.txt", "doing": "writing a file"}

    def what(self) -> str:
        return "too many files are open"

    def advice(self) -> str:
        return "Raise the limit (`ulimit -n 65536`), or run with fewer parallel readers and writers."


@error("DF419")
class SymlinkLoop(StorageError):
    """Symbolic links form a loop."""

    example = {"path": "logs", "doing": "listing the input"}

    def what(self) -> str:
        return "its symbolic links form a loop"

    def advice(self) -> str:
        return "`namei` on the path shows the loop."


@error("DF420")
class NameTooLong(StorageError):
    """A name is too long for the file system (mostly 255 bytes)."""

    example = {"path": "out/aaaa…", "doing": "writing a file"}
    general_remedy = "use shorter names"

    def what(self) -> str:
        return "the name is too long for this file system"


@error("DF421")
class PathTaken(StorageError):
    """A file or folder of that name exists already."""

    example = {"path": "out/a.txt", "doing": "writing a file"}

    def what(self) -> str:
        return "it exists already"

    def advice(self) -> str:
        return "Choose another name, or move it away."


@error("DF422", is_transient=True)
class StorageBusy(StorageError):
    """The storage is busy, does not answer in time, or has lost a connection. The operation is retried."""

    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Connection timed out"}
    general_remedy = "launch again when the storage answers; the run resumes"

    def what(self) -> str:
        return f"the storage is not responding ({self.reason})"


@error("DF430")
class FolderInUse(InfrastructureError):
    """Another launch uses this run folder.

    `pid` is 0 and `host` is empty if they are not known. `remove`: the record to remove by hand, if the holder may have died on
    another machine and has no lease, as holders of earlier versions.
    """

    folder: str
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    remove: str | None = None
    example = {"folder": "out/_dagflow", "pid": 4711, "host": "head", "since": "12:00"}
    general_remedy = "wait until the other launch is done, stop it, or name another output"

    def message(self) -> str:
        holder = f"process {self.pid} on {self.host}" if self.pid else "another process"
        since = f" since {self.since}" if self.since else ""
        who = f" ({self.who})" if self.who else ""
        stop = f" (`kill {self.pid}` there)" if self.pid else ""
        gone = f" If it is gone for good, remove {self.remove} and launch again." if self.remove else ""
        return (
            f"{self.folder} is in use by {holder}{since}{who}: two launches cannot use the same folder. "
            f"Wait until it is done, stop it{stop}, or give this launch another output.{gone}"
        )


@error("DF439")
class LeaseLost(InfrastructureError):
    """Another launch has taken over the run folder from this one, which did not renew its lease in time.

    `pid` is 0 if the other launch is not known, or has ended. `reason`: why the last renewal failed, if it did.
    """

    folder: str
    lease: float
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    reason: str = ""
    example = {"folder": "s3://logs/out/_dagflow", "lease": 60.0, "pid": 4711, "host": "head", "since": "12:00"}
    general_remedy = "let the other launch run; raise lock_lease if this machine pauses for longer"

    def message(self) -> str:
        who = f" ({self.who})" if self.who else ""
        other = f"process {self.pid} on {self.host} took over since {self.since}{who}" if self.pid else "another launch took over"
        reason = f" (its last renewal failed: {self.reason})" if self.reason else ""
        return (
            f"{self.folder}: {other}. This launch did not renew its lease for more than {self.lease:g} s{reason}, so it ends. "
            "Nothing is lost or doubled: the other launch continues from what is committed. If this machine pauses for longer, "
            "raise lock_lease."
        )


@error("DF431")
class UnknownScheme(InfrastructureError):
    """The scheme of a URL is not supported."""

    url: str
    scheme: str
    nearest: str | None = None
    template = (
        "{url}: {scheme}:// is not supported. "
        "{nearest:?Did you mean {nearest}://?|Supported: plain paths, s3://, gs://, abfs://, hdfs://, sftp://.}"
    )
    example = {"url": "ss3://bucket/logs", "scheme": "ss3", "nearest": "s3"}
    general_remedy = "use a supported scheme"


@error("DF433")
class StoreRefused(InfrastructureError):
    """The store does not support create-if-absent, so windows could be committed twice."""

    url: str
    why: str
    template = (
        "{url} cannot hold a run folder, a ledger or a table: {why}. dagflow publishes each record by create-if-absent, "
        "which this storage does not guarantee. Choose a local or shared disk (with hard links), or s3://, gs:// or abfs://."
    )
    example = {"url": "http://host/out", "why": "it cannot be written"}
    general_remedy = "choose a local or shared disk, or s3://, gs:// or abfs://"


@error("DF434", is_transient=True)
class OutcomeUnknown(InfrastructureError):
    """A record was sent and the answer was lost, so the record may or may not be there."""

    url: str
    reason: str
    template = (
        "{url}: it is not known whether this record was published ({reason}). Nothing was deleted: "
        "launch again when the store answers, and the run continues from what is there."
    )
    example = {"url": "s3://bucket/out/_dagflow/plan/3", "reason": "the connection was reset"}
    general_remedy = "launch again when the store answers"


@error("DF268", is_fatal=True)
class BadUrl(ConfigError):
    """A URL cannot be parsed."""

    url: str
    why: str
    template = "{url}: {why}."
    example = {"url": "s3:/bucket", "why": "it lacks a slash"}
    general_remedy = "write it as SCHEME://HOST/PATH"


@error("DF423")
class StorageUnreachable(StorageBusy):
    """The server of a URL cannot be reached. The operation is retried."""

    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "connection refused"}

    def what(self) -> str:
        return f"its server cannot be reached ({self.reason})"

    def advice(self) -> str:
        return "Check the URL, and the endpoint that the environment names (S3: AWS_ENDPOINT_URL), then launch again."


@error("DF424")
class CredentialsMissing(StorageError):
    """The server requires credentials, or rejects the given ones."""

    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "InvalidAccessKeyId"}

    def what(self) -> str:
        return f"the credentials are missing or were rejected ({self.reason})"

    def advice(self) -> str:
        scheme = self.path.partition("://")[0]
        if scheme in ("abfs", "abfss", "az"):
            return "Azure takes them from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY."
        if scheme in ("gs", "gcs"):
            return "Google takes them from the file that GOOGLE_APPLICATION_CREDENTIALS names, or from the machine's role."
        return "S3 takes them from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the machine's role."


@error("DF425")
class BucketMissing(StorageError):
    """The bucket does not exist. dagflow does not create buckets."""

    example = {"path": "s3://bucket/logs", "doing": "listing the input"}

    def what(self) -> str:
        return "there is no such bucket"

    def advice(self) -> str:
        return "Check its name, or create it first: dagflow does not create buckets."


@error("DF426")
class FolderPage(StorageError):
    """The server returned an HTML page instead of a file."""

    example = {"path": "https://host/logs/", "doing": "reading a block"}

    def what(self) -> str:
        return "the server returned an HTML page instead of a file, as servers do for folders"

    def advice(self) -> str:
        return "HTTP has no folders: name each file by its URL."


@error("DF830", kw_only=True, is_fatal=True)
class RowsNotPutAside(RunError):
    """The rows of a large window could not be written to a temporary file. No `on_error` skips it, since no record is at fault."""

    folder: str
    reason: str
    template = (
        "the rows of a large window could not be put aside in {folder}: {reason}\n"
        "  help: make room there, or set TMPDIR to a folder on a larger disk; then launch again"
    )
    example = {"folder": "/tmp", "reason": "[Errno 28] No space left on device"}
