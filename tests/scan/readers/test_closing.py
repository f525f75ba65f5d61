"""An error of closing never hides the one that came before, wherever a reader is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.errors import ReaderFailed
from dagflow.scan import FileSchemaNegotiator, Format, ManagedReader
from dagflow.scan.readers.machine import closing
from dagflow.testing import scan_table
from operators import ScanReader


@attrs.define
class Failing(Format):
    """A format whose reader fails in one of its methods, and in `close`."""

    where: str

    def make_reader(self) -> ManagedReader[FileSchemaNegotiator]:
        """A reader."""
        return FailingReader(self.where)


@attrs.define(eq=False)
class FailingReader(ManagedReader[FileSchemaNegotiator]):
    where: str

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        negotiator.build()
        return self._reached("open")

    def next(self) -> bool:
        return self._reached("next")

    def close(self) -> None:
        raise ValueError("second")

    def _reached(self, method: str) -> bool:
        if method == self.where:
            raise ValueError("first")
        return method == "open"


@pytest.mark.parametrize("schema", [None, "a: int64"], ids=["where files are looked at", "where they are read"])
@pytest.mark.parametrize("where", ["open", "next"])
def test_the_first_error_is_told(tmp_path: Path, where: str, schema: Any) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(ReaderFailed, match=rf"FailingReader.{where}\(\) failed in the range 0 to 1: ValueError: first") as caught:
        scan_table(ScanReader(Failing(where), schema=schema), tmp_path / "a")
    assert any("closing the reader failed, too" in note for note in caught.value.__notes__)


def test_an_error_of_closing_alone_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(ReaderFailed, match=r"FailingReader.close\(\) failed .*: ValueError: second"):
        scan_table(ScanReader(Failing("nowhere")), tmp_path / "a")


def test_of_two_errors_of_closing_the_first_is_told() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="one"), closing(lambda: fail("two")):
        fail("one")
