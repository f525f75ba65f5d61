"""Publishing on object stores, where the store itself offers a conditional write."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

from dagflow.storage.confined import inside
from dagflow.storage.errors import BucketMissing, CredentialsMissing, OutcomeUnknown, StoreRefused
from dagflow.storage.explain import explained, translate
from dagflow.storage.parallel import at_once
from dagflow.storage.remote import s3
from dagflow.storage.remote.drivers import code_of, driver_errors, explain
from dagflow.storage.remote.files import remote_file_system
from dagflow.storage.store import check_name, is_name
from dagflow.storage.urls import split_url

# Drivers whose `pipe_file(mode="create")` becomes a condition that the store itself checks: s3fs sends If-None-Match, gcsfs
# ifGenerationMatch=0, adlfs If-None-Match. All others look first and write then, which lets two writers win.
CONDITIONAL = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
_MEMORY = threading.Lock()
_ATTEMPTS = 3
_CONFLICTS = 10


class FsspecStore:
    """A store below a URL, whose objects are the records: s3, gs, abfs, and memory (this process only).

    Records are as durable as the object store. Raises StoreRefused for other kinds of URL, which have no conditional write.
    """

    def __init__(self, url: str) -> None:
        scheme, _ = split_url(url)
        files = remote_file_system(url)
        if scheme not in CONDITIONAL and scheme != "memory":
            raise StoreRefused(url=url, why=f"{scheme}:// offers no write that succeeds only if the name is absent")
        self.url = url
        self._scheme = scheme
        self._files = files

    def __reduce__(self) -> tuple[Callable[..., FsspecStore], tuple[str]]:
        return FsspecStore, (self.url,)

    def __repr__(self) -> str:
        return f"FsspecStore({self.url!r})"

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """See `Store.create`. After a lost answer, the record is read back, and sent again if it is not there.

        Drivers repeat requests by themselves. If an answer was lost on the way, the repeated request is refused, because the
        name exists: the record's own bytes are there. So a refusal says nothing yet; the bytes tell whose record it is.
        """
        target = inside(self.url, check_name(name))
        driver, path = self._files.resolve(target)
        data = bytes(data)
        for attempt in range(_ATTEMPTS):
            try:
                self._send_through(driver, path, data)
                return True
            except Exception as error:
                if isinstance(error, NotImplementedError | TypeError):  # an old driver that does not know the condition
                    why = f"its driver refuses conditional writes ({error}); a newer one may not"
                    raise StoreRefused(url=self.url, why=why) from error
                explained_error = explain(error, target, "publishing a record")
                if isinstance(explained_error, BucketMissing | CredentialsMissing):
                    raise explained_error from error
                refused = _says_exists(error)
                if refused and self._scheme == "memory":
                    return False
                stored = self._look(driver, path, target, error)
                if stored is not None:  # ours, when a request before this one took effect and its answer was lost
                    return stored == data
                if attempt == _ATTEMPTS - 1:
                    if isinstance(error, OSError):
                        raise translate(error, target, "publishing a record") from error
                    raise OutcomeUnknown(url=target, reason=f"{type(error).__name__}: {error}; it is not there now") from error
        raise AssertionError("unreachable")

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        target = inside(self.url, check_name(name))
        driver, path = self._files.resolve(target)
        with explained(target, "reading a record"), driver_errors(target, "reading a record"):
            return _read(driver, path)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See `Store.read_ranges`."""
        target = inside(self.url, check_name(name))
        driver, path = self._files.resolve(target)
        with explained(target, "reading a record"), driver_errors(target, "reading a record"):
            few = len(ranges) < 2 or self._scheme not in s3.SCHEMES
            parts: dict[int, bytes | None] = {} if few else {**s3.read_parts(driver, path, ranges)}
            left = [number for number in range(len(ranges)) if number not in parts]
            parts |= zip(left, at_once(lambda number: _read(driver, path, *ranges[number]), left, self.url), strict=True)
        pieces = [part for _, part in sorted(parts.items()) if part is not None]
        return pieces if len(pieces) == len(ranges) else None

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`."""
        driver, top = self._files.resolve(self.url)
        top = top.rstrip("/") + "/"
        with explained(self.url, "listing records"), driver_errors(self.url, "listing records"):
            paths = s3.keys(driver, top + prefix) if self._scheme in s3.SCHEMES else _found(driver, top, prefix)
            names = [str(path)[len(top) :] for path in paths if str(path).startswith(top)]
        return sorted(name for name in names if name.startswith(prefix) and is_name(name))

    def discard(self, name: str) -> None:
        """See `Store.discard`."""
        target = inside(self.url, check_name(name))
        driver, path = self._files.resolve(target)
        with explained(target, "removing a record"), suppress(FileNotFoundError):
            driver.rm_file(path)

    def discard_all(self, names: Sequence[str]) -> None:
        """See `Store.discard_all`."""
        if self._scheme in s3.SCHEMES and len(names) > 1:
            targets = [inside(self.url, check_name(name)) for name in names]
            with explained(self.url, "removing records"), driver_errors(self.url, "removing records"):
                driver, _ = self._files.resolve(self.url)
                try:
                    s3.remove(driver, [self._files.resolve(target)[1] for target in targets])
                    return
                except OSError as error:
                    if error.errno != errno.ENOSYS:  # 501: the store removes one object at a time only
                        raise
        for name in names:
            self.discard(name)

    def _send_through(self, driver: Any, path: str, data: bytes) -> None:
        """Send a record, again if writers of one name were in conflict (409), until one of them has won."""
        for attempt in range(_CONFLICTS):
            try:
                self._send(driver, path, data)
                return
            except Exception as error:
                if not _says_conflict(error) or attempt == _CONFLICTS - 1:
                    raise
                time.sleep(min(0.5, 0.01 * 2**attempt))

    def _send(self, driver: Any, path: str, data: bytes) -> None:
        if self._scheme == "memory":
            # fsspec's own memory driver looks first and writes then; and it shows what is written while it is being written.
            with _MEMORY:
                if driver.exists(path):
                    raise FileExistsError(errno.EEXIST, "File exists", path)
                driver.pipe_file(path, data)
        else:
            driver.pipe_file(path, data, mode="create")

    def _look(self, driver: Any, path: str, target: str, cause: Exception) -> bytes | None:
        try:
            return _read(driver, path)
        except Exception as error:  # noqa: BLE001  # drivers have exceptions of all kinds
            why = f"{type(cause).__name__}: {cause}; reading it back failed too: {type(error).__name__}: {error}"
            raise OutcomeUnknown(url=target, reason=why) from cause


def _found(driver: Any, top: str, prefix: str) -> Iterable[str]:
    """Return the paths of the objects below the folder in which a prefix ends."""
    driver.invalidate_cache()
    try:
        return cast("Iterable[str]", driver.find((top + prefix.rpartition("/")[0]).rstrip("/"), withdirs=False))
    except FileNotFoundError:
        return ()


def _says_conflict(error: Exception) -> bool:
    """Return whether the store answered that writers of the name conflict (HTTP status 409)."""
    codes = {code_of(each) for each in (error, error.__cause__) if each is not None}
    return bool(codes & {"409", "ConditionalRequestConflict", "OperationAborted"})


def _says_exists(error: Exception) -> bool:
    """Return whether the store itself answered that the name exists (HTTP status 412), however a driver words it."""
    if isinstance(error, FileExistsError):
        return True
    response = getattr(error.__cause__, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else getattr(error, "code", None)
    return str(code) in ("412", "PreconditionFailed")


def _read(driver: Any, path: str, start: int | None = None, stop: int | None = None) -> bytes | None:
    try:
        return bytes(driver.cat_file(path) if start is None else driver.cat_file(path, start=start, end=stop))
    except (FileNotFoundError, IsADirectoryError):
        return None
