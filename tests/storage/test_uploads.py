from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from dagflow.storage import errors, remove_uploads
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import run_dag
from tests.conformance.apps import line_filter, vectorised


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def raising(*_: Any) -> int:
        raise error

    monkeypatch.setattr(LocalFileSystem, "remove_uploads", raising)


@pytest.mark.parametrize(
    "error", [PermissionError("Access Denied"), OSError(errno.ENOSYS, "501"), NotImplementedError("no uploads"), OSError("odd")]
)
def test_a_store_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    refuse(monkeypatch, error)
    assert remove_uploads("out", bool) == (getattr(error, "strerror", None) or str(error))


def test_other_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, OSError(errno.EBUSY, "SlowDown"))
    with pytest.raises(errors.StorageBusy):
        remove_uploads("out", bool)
    refuse(monkeypatch, errors.CredentialsMissing(path="out", doing="listing unfinished uploads", reason="ExpiredToken"))
    with pytest.raises(errors.CredentialsMissing):
        remove_uploads("out", bool)


def test_a_launch_warns_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    refuse(monkeypatch, PermissionError("Access Denied"))
    report = run_dag(line_filter(tmp_path / "in", tmp_path / "out", vectorised()))  # type: ignore[arg-type]
    (warning,) = report.warnings
    assert "s3:ListBucketMultipartUploads" in warning
