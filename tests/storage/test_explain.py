from __future__ import annotations

import copy
import errno
import os
import pickle

import pytest

from dagflow.errors import DagflowError
from dagflow.storage import errors, explained, file_system, translate


@pytest.mark.parametrize(
    ("number", "doing", "kind", "message"),
    [
        (
            errno.ENOSPC,
            "writing output",
            errors.DiskFull,
            (
                "/x/y: no space is left on the device, while writing output. Free some space (`df -h` shows what is full "
                "(`df -i`: out of inodes)) or choose another folder, then launch again: committed windows are kept."
            ),
        ),
        (
            errno.EDQUOT,
            "writing output",
            errors.DiskFull,
            (
                "/x/y: the disk quota is used up, while writing output. Free some space (`quota -s` shows it) or choose another "
                "folder, then launch again: committed windows are kept."
            ),
        ),
        (
            errno.EACCES,
            "writing output",
            errors.NotWritable,
            (
                "/x/y: permission to write was denied, while writing output. Choose another folder, or ask its owner for "
                "permission: `ls -ld` on the folder shows owner and permissions."
            ),
        ),
        (
            errno.EPERM,
            "reading the input",
            errors.NotReadable,
            (
                "/x/y: permission to read was denied, while reading the input. Ask its owner for permission"
                " (`chmod u+r`, for a folder `u+rx`); `namei -l /x/y` shows each folder on the way."
            ),
        ),
        (
            errno.EROFS,
            "creating a folder",
            errors.NotWritable,
            "/x/y: the file system is mounted read-only, while creating a folder. Choose a folder on another file system.",
        ),
        (
            errno.EIO,
            "reading the input",
            errors.DeviceFailed,
            (
                "/x/y: the device failed (Input/output error), while reading the input. Check the system's log (`dmesg`) and "
                "the mount; launch again when it is repaired: committed windows are kept."
            ),
        ),
        (
            errno.EMFILE,
            "opening the input",
            errors.TooManyOpenFiles,
            (
                "/x/y: too many files are open, while opening the input. Raise the limit (`ulimit -n 65536`), or run with fewer "
                "parallel readers and writers."
            ),
        ),
        (
            errno.ELOOP,
            "listing the input",
            errors.SymlinkLoop,
            "/x/y: its symbolic links form a loop, while listing the input. `namei` on the path shows the loop.",
        ),
        (
            errno.ENAMETOOLONG,
            "writing output",
            errors.NameTooLong,
            "/x/y: the name is too long for this file system, while writing output.",
        ),
        (
            errno.EEXIST,
            "writing output",
            errors.PathTaken,
            "/x/y: it exists already, while writing output. Choose another name, or move it away.",
        ),
        (
            errno.EBUSY,
            "writing output",
            errors.StorageBusy,
            "/x/y: the storage is not responding (Device or resource busy), while writing output.",
        ),
    ],
)
def test_each_cause_has_its_class_and_words(number, doing, kind, message):
    error = translate(OSError(number, os.strerror(number)), "/x/y", doing)
    assert type(error) is kind
    assert str(error) == message
    assert error.exit_code == 3
    assert error.code.startswith("DF41") or error.code.startswith("DF42")


def test_codes_are_not_used_twice():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DagflowError)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)


def test_the_nearest_name_is_shown_for_a_missing_path(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "access.log").touch()
    wanted = str(tmp_path / "logs" / "acess.log")
    with pytest.raises(errors.PathMissing) as caught, explained(wanted, "reading the input"):
        os.stat(wanted)
    assert str(caught.value) == (
        f"{wanted}: no such file or folder, while reading the input. Did you mean {tmp_path}/logs/access.log?"
    )
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_missing_folder_far_up_is_named(tmp_path):
    wanted = f"{tmp_path}/zzz/b/c"
    with pytest.raises(errors.PathMissing) as caught, explained(wanted, "listing the input"):
        os.listdir(wanted)
    assert caught.value.parent == str(tmp_path)
    assert str(caught.value).endswith(f"{tmp_path} exists, but the rest of the path does not.")


def test_a_file_that_stands_where_a_folder_should_is_named(tmp_path):
    (tmp_path / "out").touch()
    wanted = f"{tmp_path}/out/part-0"
    with (
        pytest.raises(errors.NotAFolder, match=f"{tmp_path}/out is a file, not a folder") as caught,
        explained(wanted, "writing output"),
    ):
        os.close(os.open(wanted, os.O_CREAT | os.O_WRONLY))
    assert caught.value.file == f"{tmp_path}/out"


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(errors.NotAFile, match="this is a folder, not a file"), explained(str(tmp_path), "reading the input"):
        file_system("").open(str(tmp_path))


def test_the_path_that_the_system_named_is_added(tmp_path):
    wanted = f"{tmp_path}/.staging/x"
    with pytest.raises(errors.StorageError, match=r"\(at .*/\.staging/x\)"), explained("out", "writing output"):
        os.close(os.open(wanted, os.O_CREAT | os.O_WRONLY))


def test_drivers_raise_errors_without_numbers():
    assert isinstance(translate(FileNotFoundError("s3://b/x"), "s3://b/x", "reading"), errors.PathMissing)
    assert isinstance(translate(PermissionError("no"), "s3://b/x", "writing"), errors.NotWritable)
    assert str(translate(TimeoutError(), "s3://b/x", "writing output")) == (
        "s3://b/x: the storage is not responding (TimeoutError), while writing output."
    )


def test_other_errors_pass():
    with pytest.raises(KeyError), explained("x", "reading"):
        raise KeyError("x")
    with explained("x", "reading"):
        pass


def test_errors_travel_between_processes():
    error = translate(OSError(errno.ENOSPC, "full"), "/x", "writing output")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is errors.DiskFull
        assert str(other) == str(error)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            errors.FolderInUse(folder="out", pid=7, host="box", since="2026-01-02T03:04:05Z", who="app line_filter"),
            (
                "out is in use by process 7 on box since 2026-01-02T03:04:05Z (app line_filter): two launches cannot use "
                "the same folder. Wait until it is done, stop it (`kill 7` there), or give this launch another output."
            ),
        ),
        (
            errors.FolderInUse(folder="s3://b/out", remove="s3://b/out/_lock/1"),
            (
                "s3://b/out is in use by another process: two launches cannot use the same folder. Wait until it is done, stop "
                "it, or give this launch another output. If it is gone for good, remove s3://b/out/_lock/1 and launch again."
            ),
        ),
        (
            errors.OutcomeUnknown(url="s3://b/log/7", reason="timed out"),
            (
                "s3://b/log/7: it is not known whether this record was published (timed out). Nothing was deleted: launch again "
                "when the store answers, and the run continues from what is there."
            ),
        ),
    ],
)
def test_other_messages(error, message):
    assert str(error) == message
