"""Types of keys, and positions: integers that order the rows of a table as their keys do."""

from __future__ import annotations

import datetime
from typing import Any

import attrs

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FIRST_YEAR = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
INTEGERS = ("smallint", "integer", "bigint")
TIME = "timestamp with time zone"


@attrs.frozen
class KeyType:
    """The type of a key. The position of an integer is the integer, that of a time its microseconds since the epoch.

    >>> time = KeyType("timestamp with time zone")
    >>> time.position(datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)), time.shown(1769860800000000)
    (1769860800000000, '2026-01-31 12:00:00+00:00')
    >>> time.literal(1769860800000000), KeyType("bigint").literal(-1)
    ("(timestamp with time zone '2026-01-31 12:00:00+00:00')", '(-1)')
    """

    name: str = attrs.field(validator=attrs.validators.in_((*INTEGERS, TIME)))

    @property
    def is_time(self) -> bool:
        """True for timestamps."""
        return self.name == TIME

    @property
    def least(self) -> int | None:
        """The smallest position that is read; None for all. Earlier years, and infinity, have no form in Python."""
        return (_FIRST_YEAR - _EPOCH) // _MICROSECOND if self.is_time else None

    def position(self, value: Any) -> int:
        """Return the position of a key as psycopg returns it."""
        if not self.is_time:
            return int(value)
        time: datetime.datetime = value
        return (time - _EPOCH) // _MICROSECOND

    def literal(self, position: int) -> str:
        """Return the key at a position as it stands in a statement. A session in UTC reads it back."""
        return f"({self.name} '{self.shown(position)}')" if self.is_time else f"({position})"

    def shown(self, position: int) -> str:
        """Return the key at a position as text."""
        return str(_EPOCH + position * _MICROSECOND) if self.is_time else str(position)
