"""Stamps: by what a file is known again. One short text each, since a run keeps one for every file."""

from __future__ import annotations

import datetime

from dagflow.storage import FileStatus

FOLDER = "folder"  # the stamp of folders: they are reported once, whatever happens in them


def key_of(status: FileStatus) -> str:
    """Return the key under which a file is remembered: its path, or the real path that a symbolic link leads to."""
    return status.path if status.target is None else status.target


def stamp(status: FileStatus) -> str:
    """Modification time, length, and the mark that the server has for the content, where it has one.

    >>> stamp(FileStatus("a", 5, 17, False, True)), stamp(FileStatus("http://host/a", 5, 0, False, True, version='"3f"'))
    ('17:5', '0:5:"3f"')
    """
    if status.is_directory:
        return FOLDER
    plain = f"{status.modified_ns}:{status.length}"
    return plain if status.version is None else f"{plain}:{status.version}"


def is_same(before: str | None, status: FileStatus) -> bool:
    """Return True if a file matches its stamp, None without a stamp. Stamps of earlier launches may lack the server's mark."""
    if before is None:
        return False
    now = stamp(status)
    return before == now or (status.version is not None and before.count(":") == 1 and now.startswith(f"{before}:"))


def length_in(text: str) -> int:
    """Return the length in a stamp, 0 for folders."""
    return 0 if text == FOLDER else int(text.split(":")[1])


def in_words(text: str) -> str:
    """Describe a stamp for users."""
    if text == FOLDER:
        return "a folder"
    modified_ns = int(text.partition(":")[0])
    moment = datetime.datetime.fromtimestamp(modified_ns // 10**9, tz=datetime.UTC)
    return f"{length_in(text):,} bytes, modified {moment:%Y-%m-%d %H:%M:%S}.{modified_ns % 10**9:09d} UTC"
