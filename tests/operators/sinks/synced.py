"""Notes what is synced to a disk."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest


@attrs.define
class Synced:
    """The files and directories that were synced, by their inodes."""

    inodes: set[int] = attrs.field(factory=set)

    @classmethod
    def noted(cls, monkeypatch: pytest.MonkeyPatch) -> Synced:
        """Note from now on."""
        synced = cls()
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.inodes.add(os.fstat(descriptor).st_ino))
        return synced

    def has(self, *paths: Path) -> bool:
        """Return whether all of them were synced."""
        return {path.stat().st_ino for path in paths} <= self.inodes
