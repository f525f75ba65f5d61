"""`dagflow warm`: makes the class archive and says where it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagflow.cli.commands.general import warm
from dagflow.errors import ArchiveNotMade
from dagflow.spark.jvm.class_archive import ARCHIVE, ClassArchive
from tests.cli.conftest import Answer


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    place = ClassArchive(tmp_path / "classes")

    def make(java: Any, environ: Any) -> ClassArchive:
        place.folder.mkdir(exist_ok=True)
        (place.folder / ARCHIVE).write_bytes(b"x" * 1024)
        return place

    monkeypatch.setattr(warm, "archive_for", lambda java, environ: place)
    monkeypatch.setattr(warm, "make_archive", make)
    return place


def test_it_says_where_the_archive_is(dagflow: Callable[..., Answer], place: ClassArchive) -> None:
    answer = dagflow("warm")
    assert answer.code == 0
    assert "1 KiB, made in " in answer.out
    assert answer.out.rstrip().endswith(str(place.folder))
    report = json.loads(dagflow("warm", "--json").out)
    assert (report["bytes"], report["folder"]) == (1024, str(place.folder))


def test_another_process_may_be_making_it(
    dagflow: Callable[..., Answer], place: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "make_archive", lambda java, environ: None)
    assert "another process is making it" in dagflow("warm").out
    assert json.loads(dagflow("warm", "--json").out)["folder"] is None


def test_a_failure_is_one_of_the_machine(
    dagflow: Callable[..., Answer], place: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(java: Any, environ: Any) -> None:
        raise ArchiveNotMade("there is no room for it", "free 400 MB")

    monkeypatch.setattr(warm, "make_archive", fail)
    answer = dagflow("warm")
    assert answer.code == 3
    assert "there is no room for it" in answer.err
