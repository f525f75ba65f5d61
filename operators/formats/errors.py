"""Errors of files of binary formats."""

from __future__ import annotations

from typing_extensions import override

from dagflow.errors import error
from operators.compression import recognise, recognise_other
from operators.contexts.errors import ReadError


@error("DF650", kw_only=True)
class NotOfFormat(ReadError, ValueError):
    """A file is not of the expected format. `head`: its first bytes."""

    path: str
    format: str
    head: bytes
    position: int = 0
    example = {"path": "logs/a.parquet", "format": "Parquet", "head": b"\x1f\x8b"}

    @override
    def message(self) -> str:
        known = _KNOWN.get(self.head[:4]) or recognise(self.head) or recognise_other(self.head)
        shown = f"it begins with {self.head[:8].hex(' ')}" + (f", which is {known}" if known else "")
        return (
            f"{self.path}: at byte 0: this is not {'an' if self.format[0] in 'AEIO' else 'a'} {self.format} file: {shown}\n"
            "  help: read it with its own format, or leave it out (the scanner's ignore pattern)"
        )


_KNOWN = {b"PAR1": "Parquet", b"PARE": "encrypted Parquet", b"Obj\x01": "Avro", b"ORC\0": "ORC", b"ARRO": "Arrow"}


@error("DF651", kw_only=True)
class FileCutShort(ReadError, EOFError):
    """A file ends before it is complete. `position`: its end, in bytes; `missing`: the missing part."""

    path: str
    format: str
    position: int
    missing: str
    template = (
        "{path}: the {format} file ends at byte {position}, without {missing}: it is incomplete\n"
        "  help: fetch or make it again, or leave it out (the scanner's ignore pattern)"
    )
    example = {"path": "logs/a.parquet", "format": "Parquet", "position": 4096, "missing": "its footer"}


@error("DF652", kw_only=True)
class FileDamaged(ReadError, ValueError):
    """A part of a file cannot be read. `part`: a phrase for it; `position`: its first byte."""

    path: str
    format: str
    position: int
    part: str
    reason: str
    template = (
        "{path}: {part} of the {format} file, at byte {position}, cannot be read: {reason}\n"
        "  help: the file is damaged: fetch or make it again, or leave it out (the scanner's ignore pattern)"
    )
    example = {
        "path": "logs/a.parquet",
        "format": "Parquet",
        "position": 100,
        "part": "row group 0",
        "reason": "its checksum is wrong",
    }


@error("DF655", kw_only=True)
class FormatUnsupported(ReadError, NotImplementedError):
    """A file uses a feature of its format that dagflow does not support. `part`: the part of the file that does; `position`: its first byte."""

    path: str
    format: str
    position: int
    part: str
    reason: str
    template = (
        "{path}: {part} of the {format} file, at byte {position}, is not supported: {reason}\n"
        "  help: write the file without this feature (docs/reference/formats.md lists the limits), "
        "or leave it out (the scanner's ignore pattern)"
    )
    example = {"path": "logs/a.avro", "format": "Avro", "position": 0, "part": "the schema", "reason": "recursive records"}


@error("DF653", kw_only=True)
class ValueMisfit(ReadError, TypeError):
    """A condition compares a column with a value of another type. `type`: the type of the column in this file."""

    path: str
    column: str
    condition: str
    type: str
    reason: str
    template = (
        "{path}: where = {condition}: column {column!r} is of type {type} there: {reason}\n"
        "  help: compare with a value of that type; dates and times may be strings"
    )
    example = {
        "path": "logs/a.parquet",
        "column": "count",
        "condition": "count > 'a'",
        "type": "int64",
        "reason": "'a' is not a number",
    }
