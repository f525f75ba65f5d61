"""Confinement to a folder: the only place where a name in a stored record becomes a path."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from dagflow.storage.errors import BadUrl, PathOutside
from dagflow.storage.urls import is_local, join, local_path

OWN_FOLDER = "_dagflow"
"""The folder in an output folder that holds everything of dagflow: the ledger, staged files, the records of runs."""


def inside(folder: str, name: str) -> str:
    """Return the path of a name below a folder. The name may come from any record. Links within the folder are followed.

    >>> inside("/data/out", "2026/a.txt"), inside("s3://bucket/out/", "a.txt")
    ('/data/out/2026/a.txt', 's3://bucket/out/a.txt')

    Raises PathOutside for absolute paths, `..`, and symbolic links that lead out of the folder.
    """
    root = local_path(folder)
    if not is_below(name) or (root is None and not _is_plain_key(name)):
        raise PathOutside(folder, name)
    if root is None:
        return join(folder, name)
    path = at = os.path.join(root, "")
    path += name
    for word in name.split("/"):
        at = os.path.join(at, word)
        if os.path.islink(at):
            real, top = os.path.realpath(path), os.path.realpath(root or ".")
            if os.path.commonpath([real, top]) != top:
                raise PathOutside(folder, name, real)
            break
    return path


def is_below(name: object) -> bool:
    r"""Return True for a relative path that stays below the folder from which it starts.

    >>> [is_below(name) for name in ("a/b", "../a", "/a", "a//b", "a/./b", "a\0", "s3://bucket/a", "", None)]
    [True, False, False, False, False, False, False, False, False]
    """
    return isinstance(name, str) and "\0" not in name and not any(word in ("", ".", "..") for word in name.split("/"))


def below(folder: str, path: str) -> str | None:
    """Return the name of a path below a folder; None if it lies elsewhere. Links are not resolved.

    >>> below("/data/out", "/data/out/a/b"), below("/data/out/", "/data/outer/a")
    ('a/b', None)
    """
    start = f"{folder.rstrip('/')}/"
    return path[len(start) :] if path.startswith(start) else None


def may_follow(place: str, path: object) -> bool:
    r"""Return whether a command that only reads `place` goes where a stored record says: to no further host.

    The one check of all such commands. The record may be a stranger's, and the credentials are the user's.

    >>> may_follow("s3://bucket/out", "/data"), may_follow("s3://bucket/out", "s3://bucket/run")
    (True, True)
    >>> may_follow("/data", "s3://bucket/run"), may_follow("s3://bucket/out", "s3://other/run")
    (False, False)
    >>> may_follow("/data", "file://host/data"), may_follow("/data", "/a\0b"), may_follow("/data", None)
    (False, False, False)
    """
    if not isinstance(path, str) or not path or "\0" in path:
        return False
    try:
        if is_local(path):
            return True
        here, there = urlsplit(place), urlsplit(path)
    except (BadUrl, ValueError):
        return False
    return (here.scheme, here.netloc) == (there.scheme, there.netloc) and "::" not in path


def _is_plain_key(name: str) -> bool:
    """Return True for names that no driver takes for `..` (decoded) or for another URL (fsspec's `one::other`)."""
    return "::" not in name and is_below(unquote(name))
