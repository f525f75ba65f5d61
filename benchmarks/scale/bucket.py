"""An object store in this process, behind the driver's interface of s3fs. It counts the requests that S3 would get."""

from __future__ import annotations

import bisect
import contextlib
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
from fsspec import AbstractFileSystem, register_implementation

LARGE = 1 << 16
"""Objects of more bytes lie on disk: they are not the memory of the driver."""
PAGE = 1_000  # keys that a listing or a removal has
POOL = "dagflow-requests"
"""The names of the threads of `dagflow.storage.at_once` begin so."""


@attrs.define
class Requests:
    """The requests of a time: those that wait for each other, and those that are sent at once."""

    kinds: Counter[str] = attrs.field(factory=Counter)
    in_turn: int = 0
    at_once: int = 0

    def __sub__(self, other: Requests) -> Requests:
        return Requests(self.kinds - other.kinds, self.in_turn - other.in_turn, self.at_once - other.at_once)

    def copy(self) -> Requests:
        """Return what has been counted so far."""
        return Requests(Counter(self.kinds), self.in_turn, self.at_once)

    def seconds(self, latency: float, together: int) -> float:
        """Return how long a caller waits for them, if an answer takes so long, and so many are under way together."""
        return latency * (self.in_turn + -(-self.at_once // together))


class Objects:
    """The objects of all buckets by key, in order; and the requests."""

    def __init__(self) -> None:
        self.requests = Requests()
        self._folder = tempfile.TemporaryDirectory(prefix="dagflow-scale-")
        self._content: dict[str, bytes | Path] = {}
        self._keys: list[str] = []
        self._are_sorted = True
        self._lock = threading.RLock()
        self._is_counting = True

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """A context whose requests are those of tasks."""
        self._is_counting = False
        try:
            yield
        finally:
            self._is_counting = True

    def count(self, kind: str, times: int = 1) -> None:
        """Count requests of a kind."""
        if self._is_counting:
            with self._lock:
                self.requests.kinds[kind] += times
                if threading.current_thread().name.startswith(POOL):
                    self.requests.at_once += times
                else:
                    self.requests.in_turn += times

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        content: bytes | Path = data
        if len(data) > LARGE:
            content = Path(self._folder.name, str(abs(hash(key))))
            content.write_bytes(data)
        with self._lock:
            if key not in self._content:
                self._keys.append(key)
                self._are_sorted = False
            self._content[key] = content

    def get(self, key: str) -> bytes:
        """Return an object. Raises FileNotFoundError."""
        content = self._content.get(key)
        if content is None:
            raise FileNotFoundError(key)
        return content.read_bytes() if isinstance(content, Path) else content

    def has(self, key: str) -> bool:
        """Return whether there is an object."""
        return key in self._content

    def size(self, key: str) -> int:
        """Return the bytes of an object."""
        content = self._content[key]
        return content.stat().st_size if isinstance(content, Path) else len(content)

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        content = self._content.pop(key, None)
        if isinstance(content, Path):
            content.unlink()

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix, sorted."""
        with self._lock:
            if not self._are_sorted or len(self._keys) > 2 * len(self._content) + PAGE:
                self._keys = sorted(self._content)
                self._are_sorted = True
            found = []
            for at in range(bisect.bisect_left(self._keys, prefix), len(self._keys)):
                if not self._keys[at].startswith(prefix):
                    break
                if self._keys[at] in self._content:
                    found.append(self._keys[at])
            return found


OBJECTS = Objects()


class Bucket(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The driver: each method makes the requests that s3fs makes."""

    protocol: ClassVar[tuple[str, ...]] = ("s3", "s3a")

    def call_s3(self, method: str, **given: Any) -> dict[str, Any]:
        """Send one request."""
        OBJECTS.count(method)
        key = f"{given['Bucket']}/{given.get('Key', '')}"
        if method == "head_object":
            if not OBJECTS.has(key):
                raise FileNotFoundError(key)
        elif method == "copy_object":
            OBJECTS.put(key, OBJECTS.get("{Bucket}/{Key}".format(**given["CopySource"])))
        elif method == "delete_objects":
            for each in given["Delete"]["Objects"]:
                OBJECTS.remove(f"{given['Bucket']}/{each['Key']}")
        elif method == "list_objects_v2":
            keys = OBJECTS.keys(f"{given['Bucket']}/{given['Prefix']}")
            OBJECTS.count(method, max(0, -(-len(keys) // PAGE) - 1))
            return {"Contents": [{"Key": key.partition("/")[2]} for key in keys]}
        elif method != "list_multipart_uploads":
            raise NotImplementedError(method)
        return {}

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Look at an object, or at a folder."""
        path = self._strip_protocol(path)
        OBJECTS.count("head_object")
        if OBJECTS.has(path):
            return {"name": path, "size": OBJECTS.size(path), "type": "file", "ETag": "1"}
        OBJECTS.count("list_objects_v2")
        if "/" in path and not OBJECTS.keys(f"{path}/"):
            raise FileNotFoundError(path)
        return {"name": path, "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """List a folder."""
        path = self._strip_protocol(path).rstrip("/") + "/"
        names = {path + key[len(path) :].partition("/")[0]: "/" in key[len(path) :] for key in OBJECTS.keys(path)}
        OBJECTS.count("list_objects_v2", max(1, -(-len(names) // PAGE)))
        if not names:
            raise FileNotFoundError(path)
        return [
            {"name": name, "type": "directory" if is_folder else "file", "size": 0 if is_folder else OBJECTS.size(name)}
            for name, is_folder in names.items()
        ]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Read an object."""
        OBJECTS.count("get_object")
        return OBJECTS.get(self._strip_protocol(path))[start:end]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        """Write an object, if there is none of that name where `mode` says so."""
        OBJECTS.count("put_object")
        path = self._strip_protocol(path)
        if mode == "create" and OBJECTS.has(path):
            raise FileExistsError(path)
        OBJECTS.put(path, bytes(value))

    def rm_file(self, path: str) -> None:
        """Remove an object."""
        OBJECTS.count("delete_object")
        OBJECTS.remove(self._strip_protocol(path))


def install() -> None:
    """Let `s3://` lead to this store, in this process."""
    register_implementation("s3", Bucket, clobber=True)
