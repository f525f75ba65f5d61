"""Blocks of object stores are read as the version that was planned, without a request for each file's status."""

from __future__ import annotations

import errno
import hashlib
import io
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.asyn import get_loop
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from dagflow.storage import file_system
from dagflow.storage.remote import s3
from dagflow.testing import run_operator
from operators import BlockReader, FileSplitterInput
from operators.readers.errors import FileChanged, FileGone


class VersionedStore(AbstractFileSystem):
    """An object store that counts requests for a status, and whose reads name the version they want, as s3fs does."""

    protocol = "versioned"
    cachable = False
    contents: ClassVar[dict[str, bytes]] = {}
    heads: ClassVar[list[str]] = []

    def _entry(self, name: str) -> dict[str, Any]:
        data = self.contents[name]
        return {"name": name, "size": len(data), "type": "file", "ETag": hashlib.md5(data).hexdigest()}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        found = [self._entry(name) for name in self.contents if name.startswith(f"{path.rstrip('/')}/")]
        return found if detail else [each["name"] for each in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        if listed := self._ls_from_cache(name):
            return next(each for each in listed if each["name"] == name)
        if any(each.startswith(f"{name}/") for each in self.contents):
            return {"name": name, "size": 0, "type": "directory"}
        if name not in self.contents:
            raise FileNotFoundError(name)
        self.heads.append(name)
        return self._entry(name)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        return VersionedFile(self, path, mode)

    # What requests of S3 need besides

    retries = 1

    @property
    def loop(self) -> Any:
        return get_loop()

    async def _call_s3(self, method: str, **request: str) -> dict[str, Any]:
        name = f"{request['Bucket']}/{request['Key']}"
        if name not in self.contents:
            raise FileNotFoundError(name)
        entry = self._entry(name)
        if request["IfMatch"] != entry["ETag"]:
            raise OSError(errno.EINVAL, "At least one of the pre-conditions you specified did not hold")
        start, last = map(int, request["Range"].removeprefix("bytes=").split("-"))
        return {"ETag": entry["ETag"], "Body": Body(self.contents[name][start : last + 1])}


class Body(io.BytesIO):
    async def read(self, size: int | None = -1) -> bytes:  # type: ignore[override]  # of the asynchronous client
        return super().read(size)


class VersionedFile(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        data = VersionedStore.contents.get(self.path)
        if data is None:
            raise FileNotFoundError(self.path)
        if hashlib.md5(data).hexdigest() != self.details["ETag"]:
            raise OSError("the file is another version")
        return data[start:end]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> type[VersionedStore]:
    fsspec.register_implementation("versioned", VersionedStore, clobber=True)
    monkeypatch.setattr(s3, "SCHEMES", ("versioned",))
    monkeypatch.setattr(VersionedStore, "contents", {f"in/{n}.txt": f"line {n}\n".encode() for n in range(20)})
    monkeypatch.setattr(VersionedStore, "heads", [])
    return VersionedStore


def blocks_of(folder: str) -> list[Any]:
    return run_operator(FileSplitterInput(files=folder), {})["blocks_metadata_output"]


def lines_of(blocks: list[Any]) -> list[str]:
    return [each.record for each in run_operator(BlockReader(), {"blocks_metadata_input": blocks})["messages"]]


def test_one_listing_is_enough_for_the_status_of_all_files(store: type[VersionedStore]) -> None:
    blocks = blocks_of("versioned://in")
    store.heads.clear()
    assert sorted(lines_of(blocks)) == sorted(f"line {n}" for n in range(20))
    assert store.heads == []


def test_a_file_that_was_replaced_by_one_of_equal_size_is_refused(store: type[VersionedStore]) -> None:
    blocks = blocks_of("versioned://in")
    store.contents["in/7.txt"] = b"LINE 7\n"
    with pytest.raises(FileChanged, match=r"7\.txt"):
        lines_of(blocks)


def test_a_file_that_is_gone_is_named(store: type[VersionedStore]) -> None:
    blocks = blocks_of("versioned://in")
    del store.contents["in/7.txt"]
    with pytest.raises(FileGone, match=r"7\.txt"):
        lines_of(blocks)


def test_other_drivers_look_when_they_open(store: type[VersionedStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "SCHEMES", ())
    blocks = blocks_of("versioned://in")
    store.heads.clear()
    lines_of(blocks)
    assert len(store.heads) == 20
    assert file_system("versioned://in/7.txt").status("versioned://in/7.txt").version is not None


def test_a_file_that_may_grow_is_read_up_to_its_planned_length(store: type[VersionedStore]) -> None:
    blocks = blocks_of("versioned://in")
    store.contents["in/7.txt"] += b"more\n"
    found = run_operator(BlockReader(allow_growth=True), {"blocks_metadata_input": blocks})["messages"]
    assert sorted(each.record for each in found) == sorted(f"line {n}" for n in range(20))
