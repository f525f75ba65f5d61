"""Errors of scans."""

from __future__ import annotations

import re
import shlex

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.errors.wording import definition, suggest


@error("DF608", kw_only=True)
class ScanError(RunError):
    """A file cannot be scanned. `reader` is the name of the operator, for the settings that a message shows."""

    reader: str = "READER"


@error("DF600", kw_only=True)
class ReaderFailed(ScanError):
    """The reader of a format raised an exception. `doing`: `open`, `next` or `close`; the range in bytes."""

    format: str
    doing: str
    path: str
    start: int
    stop: int
    error: str
    template = (
        "{path}: {format}.{doing}() failed in the range {start} to {stop}: {error}\n"
        "  help: the file has another format or is damaged, or the reader of the format has a bug"
    )
    example = {
        "format": "MyReader",
        "doing": "next",
        "path": "logs/a.bin",
        "start": 0,
        "stop": 4096,
        "error": "IndexError: list index out of range",
    }


_NOT_TEXT = re.compile(r"\((?:0x[0-9a-f]{2} ?)+\) is not ")
_FINE = re.compile(r":[0-9]{2}\.[0-9]{7,9}\S* is not a valid timestamp\[us(, tz=[^]]+)?\]")
"""The reason for a time with more digits than microseconds have."""


_SPELLED = re.compile(r"^is null, .*: the file has (.*), in another case$")
"""The reason for a null in a column that the file has in another case."""


@error("DF601", kw_only=True)
class BadRowFound(ScanError, ValueError):
    """A row cannot be read, and `on_bad_row` is "fail". `position`, `line` and `column` are None where they are not known.

    `record_class`: the class whose fields are the schema; `has_encoding`: the format has the option `encoding`.
    """

    path: str
    position: int | None
    line: int | None
    column: str | None
    reason: str
    raw: str
    record_class: str = ""
    has_encoding: bool = False
    example = {
        "reader": "rows",
        "path": "logs/a.csv",
        "position": 120,
        "line": 7,
        "column": "count",
        "reason": "'x' is not a valid int64",
        "raw": "a,x",
    }

    def message(self) -> str:
        where = [] if self.line is None else [f"line {self.line}"]
        where += [] if self.position is None else [f"byte {self.position}"]
        place = f": {', '.join(where)}" if where else ""
        column = "" if self.column is None else f", column {self.column!r}"
        raw = self.raw if len(self.raw) <= 200 else self.raw[:200] + "…"
        row = f"\n  row   {raw!r}" if raw else ""
        drop = definition(self.reader, "on_bad_row", "drop")
        spelled = _SPELLED.search(self.reason)
        rename = "" if spelled is None else f"name the column {spelled[1]} in your schema, as the file does;\n        or "
        return (
            f"{self.path}{place}{column}: {self.reason}{row}\n"
            f'  help: {rename}correct the file, or leave such rows out: {drop} (counted), or "route" (to the port `errors`)'
            f"{self._about_type()}{self._about_encoding()}"
        )

    def _about_encoding(self) -> str:
        """Return further help for bytes that are not text of the encoding."""
        if _NOT_TEXT.search(self.reason) is None:
            return ""
        if self.has_encoding:
            named = definition(self.reader, "format.encoding", "latin-1")
            return f";\n        or, if the file has another encoding, name it: {named} (or cp1252, …)"
        return f";\n        or, if the file has another encoding, rewrite it: iconv -f latin1 -t utf-8 {shlex.quote(self.path)} > FILE"

    def _about_type(self) -> str:
        """Return further help where the type of the column may be too narrow: it may come from some of the files only."""
        if self.column is None:
            return ""
        if self.record_class and self.reason.startswith("is null"):
            return f";\n        or let it be null, in class {self.record_class}: `{self.column}: … | None`"
        if " is not a valid " not in self.reason:
            return ""
        if self.record_class:
            return f";\n        or give the field a type that is wide enough, in class {self.record_class}: `{self.column}: str`"
        fine_time = _FINE.search(self.reason)
        kind = "string" if fine_time is None else f"timestamp[ns{fine_time[1] or ''}]"
        wider = definition(self.reader, "schema", f"{self.column}: {kind}")
        rescue = definition(self.reader, "drift.changed", "rescue")
        return f";\n        or give the column a type that is wide enough: {wider}; or keep such values in _rescued: {rescue}"


@error("DF602", kw_only=True)
class RowTooLarge(ScanError, ValueError):
    """A single row is larger than `limit` bytes; `size` None: it was not read to its end. `column`: the one that is too long."""

    path: str
    position: int | None
    size: int | None
    limit: int
    column: str | None = None
    example = {"reader": "rows", "path": "logs/a.csv", "position": 120, "size": 70_000_000, "limit": 67_108_864}

    def message(self) -> str:
        where = "" if self.position is None else f": byte {self.position}"
        return (
            f"{self.path}{where}: a row{'' if self.size is None else f' of {self.size} bytes'} is larger than "
            f"max_record_bytes = {self.limit}{'' if self.column is None else f', by its column {self.column!r}'}\n"
            f"  help: the file has another format; or allow larger rows: "
            f"{definition(self.reader, 'limits.max_record_bytes', (self.size or 2 * self.limit) * 2)}"
        )


def _list(names: tuple[str, ...]) -> str:
    text = ", ".join(names[:20]) or "none"
    return f"{text}, … ({len(names)} in all)" if len(names) > 20 else text


@error("DF603", kw_only=True)
class ColumnUnknown(ScanError, LookupError):
    """A column is selected that no file has."""

    column: str
    known: tuple[str, ...]
    files: int
    example = {"reader": "rows", "column": "contry", "known": ("country", "city"), "files": 3}

    def message(self) -> str:
        near = suggest(self.column, self.known)
        hint = f"did you mean {near!r}? Names are case-sensitive" if near else "select one of these"
        sampled = "1 sampled file has" if self.files == 1 else f"{self.files} sampled files have"
        scope = sampled if self.files else "known are"
        return (
            f"no file has a column {self.column!r}; {scope}: {_list(self.known)}\n"
            f"  help: {hint}. For a column of nulls, give it a type: {definition(self.reader, 'schema', f'{self.column}: string')}"
        )


@error("DF604", kw_only=True)
class ColumnMissing(ScanError, LookupError):
    """A file lacks columns, and `drift.missing` is "error"."""

    path: str
    missing: tuple[str, ...]
    found: tuple[str, ...]
    example = {"reader": "rows", "path": "logs/b.csv", "missing": ("city",), "found": ("country",)}

    def message(self) -> str:
        return (
            f"{self.path}: the file lacks {_list(self.missing)}; it has {_list(self.found)}\n"
            f"  help: nulls in their place: {definition(self.reader, 'drift.missing', 'null')}"
        )


@error("DF613", kw_only=True)
class MissingUntold(ScanError, ValueError):
    """`drift.missing` is "error", but files of this format do not declare their columns."""

    path: str
    format: str
    template = (
        '{path}: drift.missing is "error", but files of {format} do not declare their columns: each row has its own\n'
        "  help: keep {reader:-D drift.missing=null}, and declare which columns a row must have: schema={{'id': Column('int64', "
        "nullable=False), …}}; rows without are bad rows"
    )
    example = {"reader": "rows", "path": "logs/a.jsonl", "format": "JSON lines"}


@error("DF605", kw_only=True)
class ColumnExtra(ScanError, ValueError):
    """A file has columns that the others do not have, and `drift.extra` is "error"."""

    path: str
    extra: tuple[str, ...]
    known: tuple[str, ...]
    example = {"reader": "rows", "path": "logs/b.csv", "extra": ("town",), "known": ("country", "city")}

    def message(self) -> str:
        return (
            f"{self.path}: the file has columns that the schema does not have: {_list(self.extra)}\n"
            f"  the schema has {_list(self.known)}{self._about_case()}\n"
            f"  help: keep their values in the column _rescued: {definition(self.reader, 'drift.extra', 'rescue')};\n"
            '        or "ignore" them; or name the columns that you want, or give a schema\n'
            '        "widen" adds such columns to the schema, but only of windows that are planned from then on: this one is planned'
        )

    def _about_case(self) -> str:
        """Return further words for a name that another has in another case."""
        spellings = {name.casefold(): name for name in self.known}
        pairs = [(name, spellings[name.casefold()]) for name in self.extra if name.casefold() in spellings]
        return "".join(
            f"\n  {name!r} differs from {known!r} only in case: names are compared as written" for name, known in pairs
        )


@error("DF606", kw_only=True)
class ColumnNoSuchPart(ScanError, TypeError):
    """A part of a column is selected that its type does not have: `m.a` of a number, `a[0]` of a string."""

    column: str
    part: str
    type: str
    template = (
        "column {column!r} is selected, but {part} is {type}\n"
        "  help: NAME.FIELD is a field of a struct, NAME[0] an element of a list; `a.b` in backticks is a column of that name"
    )
    example = {"column": "count.a", "part": "count", "type": "int64"}


@error("DF607", kw_only=True)
class ReaderMisbehaves(ScanError):
    """The reader of a format breaks the rules of readers."""

    format: str
    reason: str
    template = "the reader of {format} breaks the rules of readers: {reason}"
    example = {"format": "MyReader", "reason": "next() has returned 3, but must return True or False"}
    general_remedy = "correct the reader: docs/explanation/scans.md says what it promises"


@error("DF609", kw_only=True)
class KeyMisfit(ScanError, ValueError):
    """The value in the name of a folder (`year=2024`) does not have the type of this key."""

    path: str
    key: str
    value: str
    type: str
    template = (
        "{path}: the value of {key}={value} is not of type {type}, as in the other folders\n"
        "  help: give the key a type that is wide enough: {reader:-D schema={key}: string}"
    )
    example = {"reader": "rows", "path": "logs/year=x/a.csv", "key": "year", "value": "x", "type": "int64"}


@error("DF611", kw_only=True)
class ColumnTwice(ScanError, ValueError):
    """A file has two columns of the same name, and that name is selected."""

    path: str
    column: str
    template = (
        "{path}: the file has several columns {column!r}, so the name is ambiguous\n"
        "  help: select other columns only, or write the file again with unique names"
    )
    example = {"path": "logs/a.csv", "column": "count"}


@error("DF612", kw_only=True)
class ColumnReserved(ScanError, ValueError):
    """Files have a column with the name that `drift` needs for rescued values."""

    column: str
    template = (
        "the files have a column {column!r} of their own, but drift puts rescued values into a column of that name\n"
        "  help: rescue nothing: {reader:-D drift.changed=null}; or name the columns that you want"
    )
    example = {"reader": "rows", "column": "_rescued"}


@error("DF271")
class ProjectionError(ConfigError):
    """The selected columns contradict each other."""

    reason: str
    help: str
    template = "{reason}\n  help: {help}"
    example = {"reason": "columns name both `a` and `a.b`", "help": "select one of them"}
