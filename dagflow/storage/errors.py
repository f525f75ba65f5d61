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
        "{folder}: {leads:?{path!r} leads out of this folder to {leads}\n"
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
    template = "{path}: {reason:?{reason}|the operating system refused}{elsewhere}, while {doing}."
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Operation not permitted"}
    general_remedy = "fix what the operating system reports, then launch again: the run resumes"

    @property
    def elsewhere(self) -> str:
        """The path that the operating system names, in brackets, if it is not that of the operation."""
        return f" (at {self.at})" if self.at and self.at != self.path else ""


@error("DF411")
class DiskFull(StorageError):
    """No space is left, or the user's quota is used up."""

    quota: bool = False
    template = (
        "{path}: {quota:?the disk quota is used up|no space is left on the device}{elsewhere}, while {doing}. "
        "Free some space ({quota:?`quota -s` shows it|`df -h` shows what is full (`df -i`: out of inodes)}) or choose another "
        "folder, then launch again: committed windows are kept."
    )
    example = {"path": "out", "doing": "writing a record"}


@error("DF412")
class NotWritable(StorageError):
    """Writing is not permitted, or the file system is mounted read-only (`read_only`)."""

    read_only: bool = False
    template = (
        "{path}: {read_only:?the file system is mounted read-only|permission to write was denied}{elsewhere}, while {doing}."
        "{read_only:? Choose a folder on another file system."
        "| Choose another folder, or ask its owner for permission: `ls -ld` on the folder shows owner and permissions.}"
    )
    example = {"path": "out", "doing": "making the output folder"}


@error("DF413")
class NotReadable(StorageError):
    """Reading is not permitted."""

    template = (
        "{path}: permission to read was denied{elsewhere}, while {doing}. "
        "Ask its owner for permission (`chmod u+r`, for a folder `u+rx`); `namei -l {path}` shows each folder on the way."
    )
    example = {"path": "logs/a.txt", "doing": "reading a block"}


@error("DF414")
class PathMissing(StorageError):
    """The file or folder does not exist. `parent` is the deepest folder that exists, `nearest` the most similar path there."""

    parent: str | None = None
    nearest: str | None = None
    template = (
        "{path}: no such file or folder{elsewhere}, while {doing}."
        "{nearest:? Did you mean {nearest}?|{parent:? {parent} exists, but the rest of the path does not.}}"
    )
    example = {"path": "logs/b.txt", "doing": "listing the input", "nearest": "logs/a.txt"}


@error("DF415")
class NotAFolder(StorageError):
    """A path is a file and should be a folder. `file` is that file."""

    file: str | None = None
    template = (
        "{path}: {file_on_the_way} is a file, not a folder{elsewhere}, while {doing}. Give a folder, or move the file away."
    )
    example = {"path": "out", "doing": "making the output folder"}

    @property
    def file_on_the_way(self) -> str:
        """The file, or `it` for the path itself."""
        return self.file if self.file and self.file != self.path else "it"


@error("DF416")
class NotAFile(StorageError):
    """A path is a folder, pipe, socket or device, and should be a file. `kind`: a phrase for it."""

    kind: str = "not a regular file"
    template = (
        "{path}: this is {kind}, not a file that can be read at any position{elsewhere}, while {doing}."
        "{kind:=a folder?| Copy its output to a file first.}"
    )
    example = {"path": "logs/pipe", "doing": "reading a block", "kind": "a pipe"}


@error("DF417")
class DeviceFailed(StorageError):
    """The disk or the network file system reports an I/O error."""

    template = (
        "{path}: the device failed{reason:? ({reason})}{elsewhere}, while {doing}. "
        "Check the system's log (`dmesg`) and the mount; launch again when it is repaired: committed windows are kept."
    )
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Input/output error"}


@error("DF418")
class TooManyOpenFiles(StorageError):
    """The process or the machine has reached its limit of open files."""

    template = (
        "{path}: too many files are open{elsewhere}, while {doing}. "
        "Raise the limit (`ulimit -n 65536`), or run with fewer parallel readers and writers."
    )
    example = {"path": "out/a.txt", "doing": "writing a file"}


@error("DF419")
class SymlinkLoop(StorageError):
    """Symbolic links form a loop."""

    template = "{path}: its symbolic links form a loop{elsewhere}, while {doing}. `namei` on the path shows the loop."
    example = {"path": "logs", "doing": "listing the input"}


@error("DF420")
class NameTooLong(StorageError):
    """A name is too long for the file system (mostly 255 bytes)."""

    template = "{path}: the name is too long for this file system{elsewhere}, while {doing}."
    example = {"path": "out/aaaa…", "doing": "writing a file"}
    general_remedy = "use shorter names"


@error("DF421")
class PathTaken(StorageError):
    """A file or folder of that name exists already."""

    template = "{path}: it exists already{elsewhere}, while {doing}. Choose another name, or move it away."
    example = {"path": "out/a.txt", "doing": "writing a file"}


@error("DF422", is_transient=True)
class StorageBusy(StorageError):
    """The storage is busy, does not answer in time, or has lost a connection. The operation is retried."""

    template = "{path}: the storage is not responding ({reason}){elsewhere}, while {doing}."
    example = {"path": "logs/a.txt", "doing": "reading a block", "reason": "Connection timed out"}
    general_remedy = "launch again when the storage answers; the run resumes"


@error("DF430")
class FolderInUse(InfrastructureError):
    """Another launch uses this run folder.

    `pid` and `host` are 0 and empty if they are not known. `remove`: the record to remove by hand, if the holder may have died on
    another machine and has no lease, as holders of earlier versions.
    """

    folder: str
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    remove: str | None = None
    template = (
        "{folder} is in use by {host:?process {pid} on {host}|another process}{since:? since {since}}{who:? ({who})}: "
        "two launches cannot use the same folder. Wait until it is done, stop it{host:? (`kill {pid}` there)}, "
        "or give this launch another output.{remove:? If it is gone for good, remove {remove} and launch again.}"
    )
    example = {"folder": "out/_dagflow", "pid": 4711, "host": "head", "since": "12:00"}
    general_remedy = "wait until the other launch is done, stop it, or name another output"


@error("DF439")
class LeaseLost(InfrastructureError):
    """Another launch has taken over the run folder from this one, which did not renew its lease in time.

    `pid` and `host` are 0 and empty if the other launch is not known, or has ended. `reason`: why the last renewal failed, if
    it did.
    """

    folder: str
    lease: float
    pid: int = 0
    host: str = ""
    since: str = ""
    who: str = ""
    reason: str = ""
    template = (
        "{folder}: {host:?process {pid} on {host} took over since {since}{who:? ({who})}|another launch took over}. "
        "This launch did not renew its lease for more than {lease:g} s{reason:? (its last renewal failed: {reason})}, "
        "so it ends. Nothing is lost or doubled: the other launch continues from what is committed. "
        "If this machine pauses for longer, raise lock_lease."
    )
    example = {"folder": "s3://logs/out/_dagflow", "lease": 60.0, "pid": 4711, "host": "head", "since": "12:00"}
    general_remedy = "let the other launch run; raise lock_lease if this machine pauses for longer"


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

    template = (
        "{path}: its server cannot be reached ({reason}){elsewhere}, while {doing}. "
        "Check the URL, and the endpoint that the environment names (S3: AWS_ENDPOINT_URL), then launch again."
    )
    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "connection refused"}


@error("DF424")
class CredentialsMissing(StorageError):
    """The server requires credentials, or rejects the given ones."""

    template = "{path}: the credentials are missing or were rejected ({reason}){elsewhere}, while {doing}. {source}"
    example = {"path": "s3://bucket/logs", "doing": "listing the input", "reason": "InvalidAccessKeyId"}

    @property
    def source(self) -> str:
        """Say where the credentials of this storage come from."""
        scheme = self.path.partition("://")[0]
        if scheme in ("abfs", "abfss", "az"):
            return "Azure takes them from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY."
        if scheme in ("gs", "gcs"):
            return "Google takes them from the file that GOOGLE_APPLICATION_CREDENTIALS names, or from the machine's role."
        return "S3 takes them from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the machine's role."


@error("DF425")
class BucketMissing(StorageError):
    """The bucket does not exist. dagflow does not create buckets."""

    template = (
        "{path}: there is no such bucket{elsewhere}, while {doing}. "
        "Check its name, or create it first: dagflow does not create buckets."
    )
    example = {"path": "s3://bucket/logs", "doing": "listing the input"}


@error("DF426")
class FolderPage(StorageError):
    """The server returned an HTML page instead of a file."""

    template = (
        "{path}: the server returned an HTML page instead of a file, as servers do for folders{elsewhere}, while {doing}. "
        "HTTP has no folders: name each file by its URL."
    )
    example = {"path": "https://host/logs/", "doing": "reading a block"}


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
