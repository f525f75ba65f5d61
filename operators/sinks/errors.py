"""What can be wrong with what sinks are given.

RunError
├── FileNameRefused   DF333   also a ValueError
└── NotText           DF334   also a TypeError
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileNameRefused(RunError, ValueError):
    """A record is to be written to a file that does not belong into the output folder."""

    code: ClassVar[str] = "DF333"

    operator: str
    name: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.operator}: get_file_name() gave {self.name!r}: {self.reason}\n"
            "  help: name files relative to the output folder, 'errors.txt' or '2026/errors.txt', no part with _ or . before it"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class NotText(RunError, TypeError):
    """A sink of text was given something else. `got` names it, `method` what could be overridden instead."""

    code: ClassVar[str] = "DF334"

    operator: str
    got: str
    method: str = "get_bytes_for_tuple"

    def message(self) -> str:
        return (
            f"{self.operator} writes str, bytes and ReaderRecords of these; it was given {self.got}\n"
            f"  help: put Map(…) before it, which makes text of the record, or override {self.method}(record)"
        )
