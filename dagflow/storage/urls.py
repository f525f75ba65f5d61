"""Paths and URLs: split and joined."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from dagflow.storage.errors import BadUrl

# Two letters at least, so that "C:/x" is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")

BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""The schemes of object stores: they have buckets and no folders, and each request takes tens of milliseconds."""


def split_url(url: str) -> tuple[str, str]:
    """Return the scheme and the rest of a URL; the scheme of local paths is `file`, and their rest is the plain path.

    `file://` URLs are decoded (`%20`); plain paths are taken literally, `~` included.

    >>> split_url("s3://bucket/logs")
    ('s3', 'bucket/logs')
    >>> split_url("logs/2026"), split_url("file:///logs/a%20b")
    (('file', 'logs/2026'), ('file', '/logs/a b'))

    Raises BadUrl for a `file://` URL of another host.
    """
    match = _SCHEME.match(url)
    if match is None:
        # Hadoop and Spark write file:/a/b for file:///a/b
        return "file", unquote(url[5:]) if url[:6].lower() == "file:/" else url
    scheme, rest = match[1].lower(), url[match.end() :]
    if scheme != "file":
        return scheme, rest
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost"):
        why = f"a file:// URL has no host, and {host!r} stands where one would (for a local path write file:///…)"
        raise BadUrl(url=url, why=why)
    if not slash:
        raise BadUrl(url=url, why="a file:// URL needs an absolute path, as in file:///folder/name")
    return "file", unquote(slash + path)


def is_local(url: str) -> bool:
    """Return whether a path or URL is a local path or a `file://` URL, which the operating system's own calls reach.

    >>> is_local("logs"), is_local("file:///logs"), is_local("s3://bucket/logs")
    (True, True, False)
    """
    return split_url(url)[0] == "file"


def is_object_store(url: str) -> bool:
    """Return whether a URL is one of an object store, in which each request counts.

    >>> is_object_store("logs"), is_object_store("s3://bucket/logs"), is_object_store("memory://logs")
    (False, True, False)
    """
    return split_url(url)[0] in BUCKETS


def local_path(url: str) -> str | None:
    """Return the plain path of a local URL, None for others.

    >>> local_path("file:///logs/a%20b"), local_path("s3://bucket/logs")
    ('/logs/a b', None)
    """
    scheme, path = split_url(url)
    return path if scheme == "file" else None


def join(url: str, *names: str) -> str:
    """Return the path of a name below a folder. The folder stays as it was written; `names` may hold slashes.

    >>> join("s3://bucket/logs/", "2026", "a.txt"), join("/", "logs"), join("", "logs"), join("memory://", "logs")
    ('s3://bucket/logs/2026/a.txt', '/logs', 'logs', 'memory://logs')
    """
    for name in names:
        if name.startswith("/") or _SCHEME.match(name):
            raise ValueError(f"{name!r} is not a name below {url!r}: it stands for itself")
        if name:
            url = f"{url}{name}" if not url or url.endswith("/") else f"{url}/{name}"
    return url


def base_name(url: str) -> str:
    """Return the last name of a path or URL.

    >>> base_name("s3://bucket/logs/a.txt"), base_name("logs/")
    ('a.txt', 'logs')
    """
    return split_url(url)[1].rstrip("/").rpartition("/")[2]


def absolute(url: str) -> str:
    """Return a path or URL as absolute: independent of the working directory, and with the scheme of a URL in lower case.

    >>> absolute("/logs/../out"), absolute("S3://bucket/Logs"), absolute("FILE:///logs")
    ('/out', 's3://bucket/Logs', '/logs')
    """
    scheme, rest = split_url(url)
    return os.path.abspath(rest) if scheme == "file" else f"{scheme}://{rest}"
