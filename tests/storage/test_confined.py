from __future__ import annotations

import os
from pathlib import Path

import pytest

from dagflow.errors import BadRecordName, DagflowError, PathOutside, RecordDamaged, RecordTooLarge
from dagflow.storage import LocalStore, below, inside, open_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out" / "sub").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious.txt").write_text("precious")
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["a.txt", "sub/b", "x/y/z", "..a", "a..", "%2e%2e/a", "a::b", "-", "a\nb"])
def test_a_name_below_the_folder_is_its_path(folder: Path, name: str) -> None:
    assert inside(str(folder), name) == f"{folder}/{name}"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../victim", "/etc/passwd", "sub/../../victim", "sub//b", "a/", "a\0", "s3://b/k"]
)
def test_a_name_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(PathOutside) as caught:
        inside(str(folder), name)
    assert isinstance(caught.value, DagflowError)
    assert caught.value.path == name


@pytest.mark.parametrize("name", ["link", "link/precious.txt", "link/not there yet", "file", "dangling", "loop"])
def test_a_link_that_leads_out_is_refused(folder: Path, name: str) -> None:
    (folder / "link").symlink_to(folder.parent / "victim")
    (folder / "file").symlink_to("../victim/precious.txt")
    (folder / "dangling").symlink_to(folder.parent / "gone")
    (folder / "loop").symlink_to("../victim/../out/../victim")
    with pytest.raises(PathOutside, match="leads out of this folder to "):
        inside(str(folder), name)


def test_a_link_that_stays_inside_is_followed_and_so_is_one_to_the_folder(folder: Path) -> None:
    (folder / "link").symlink_to("sub")
    (folder.parent / "alias").symlink_to(folder)
    assert inside(str(folder), "link/b") == f"{folder}/link/b"
    assert inside(str(folder.parent / "alias"), "sub/b") == f"{folder.parent}/alias/sub/b"
    assert inside(str(folder.parent / "alias"), "link/b") == f"{folder.parent}/alias/link/b"


def test_the_name_in_a_file_url_is_no_part_of_the_url(folder: Path) -> None:
    assert inside(f"file://{folder}", "%2e%2e/victim") == f"{folder}/%2e%2e/victim"


@pytest.mark.parametrize(
    "name", ["../key", "/key", "a/../../key", "%2e%2e/key", "%2E./key", "a::memory://b", "a::file:/etc/passwd"]
)
def test_keys_of_object_stores_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(PathOutside):
        inside("s3://bucket/out", name)


def test_below_tells_the_name_of_a_path_in_a_folder() -> None:
    assert below("s3://bucket/out/", "s3://bucket/out/_dagflow/staging/1") == "_dagflow/staging/1"
    assert below("/out", "/out") is None
    assert below("/out", "/out/../victim") == "../victim"  # which `inside` refuses


class TestStores:
    """A record's name comes from other records, and a folder of records may have been put there by others."""

    @pytest.mark.parametrize("url", ["memory://records", None])
    def test_a_name_that_leads_elsewhere_is_an_error_of_ours(self, folder: Path, url: str | None) -> None:
        store = open_store(url or str(folder))
        for call in (store.read, store.discard, lambda name: store.create(name, b"")):
            with pytest.raises(BadRecordName) as caught:
                call("task-states/../../victim/precious.txt")
            assert isinstance(caught.value, DagflowError)

    def test_nothing_is_read_removed_or_listed_through_a_link(self, folder: Path) -> None:
        (folder / "launches").symlink_to("../victim")
        store = LocalStore(str(folder))
        for call in (
            lambda: store.names("launches/"),
            lambda: store.names(),
            lambda: store.read("launches/precious.txt"),
            lambda: store.discard("launches/precious.txt"),
            lambda: store.create("launches/new.txt", b""),
        ):
            with pytest.raises(PathOutside):
                call()
        assert os.listdir(folder.parent / "victim") == ["precious.txt"]

    def test_a_pipe_does_not_stop_a_reader(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        with pytest.raises(RecordDamaged, match="it is not a regular file"):
            LocalStore(str(folder)).read("pipe")

    def test_a_link_within_the_folder_is_not_walked(self, folder: Path) -> None:
        (folder / "plan").mkdir()
        (folder / "plan" / "0000000000").write_bytes(b"a")
        for name in "ab":
            (folder / "plan" / name).symlink_to(".")
        assert LocalStore(str(folder)).names() == ["plan/0000000000"]

    @pytest.mark.parametrize(("name", "size"), [("owner", 1 << 16), ("plan/0000000000", 1 << 30)])
    def test_a_record_that_is_too_large_is_neither_read_nor_written(self, folder: Path, name: str, size: int) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.truncate(path, size + 1)
        with pytest.raises(RecordDamaged, match=f"its {size + 1:,} bytes are more than the {size:,} that it can have"):
            LocalStore(str(folder)).read(name)
        if size < 1 << 20:
            path.unlink()
            with pytest.raises(RecordTooLarge):
                LocalStore(str(folder)).create(name, b"a" * (size + 1))
            assert not path.exists()
