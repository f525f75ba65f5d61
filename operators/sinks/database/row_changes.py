"""Upserts by whole rows: each row that comes is added, and for each that is taken back an equal one is removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from operators.sinks.database.dialect import PARAMETER, Session, SqlDialect
from operators.sinks.database.staging import SIGN

_CONTENT, _COPIES, _NUMBER, _PLACE = "_dagflow_content", "_dagflow_copies", "_dagflow_number", "_dagflow_place"


@attrs.frozen
class RowChanges:
    """The changes of a window in the table `net`, whose columns have the types of those of the table that the changes are for.

    Attributes:
        columns: of the changes, with types. Rows are equal if these are.
        others: the columns that only the table has. Of equal rows, those with nulls there are removed first: they came without.
    """

    session: Session
    dialect: SqlDialect
    table: str
    net: str
    columns: Mapping[str, str]
    others: Sequence[str]

    def create(self) -> None:
        """Create the table of changes, without any."""
        columns = f"SELECT {self._names()}, 0 AS {self.dialect.quoted(SIGN)} FROM {self.session.qualified(self.table)}"
        self.session.run(f"CREATE TABLE {self.session.qualified(self.net)} AS {columns} WHERE 1 = 0")

    def sums(self) -> tuple[int, int]:
        """Return how many rows come, and how many go."""
        copies = self.dialect.quoted(_COPIES)
        come, go = (f"coalesce(sum(CASE WHEN {copies} {sign} 0 THEN abs({copies}) END), 0)" for sign in "><")
        [[coming, going]] = self.session.select(f"SELECT {come}, {go} FROM ({self._sums()}) AS sums")
        return int(coming), int(going)

    def remove(self) -> int:
        """Remove the rows that go. Return how many were in the table."""
        content, copies, number, weight = map(self.dialect.quoted, (_CONTENT, _COPIES, _NUMBER, "_dagflow_weight"))
        table, place = self.session.qualified(self.table), self.dialect.row_place([*self.columns, *self.others])
        aliases = [self.dialect.quoted(f"{_PLACE}{n}") for n, _ in enumerate(place)]
        shown = ", ".join(f"{each} AS {alias}" for each, alias in zip(place, aliases, strict=True))
        filled = " + ".join(f"CASE WHEN {self.dialect.quoted(name)} IS NULL THEN 0 ELSE 1 END" for name in self.others) or "0"
        kept = f"SELECT {shown}, {filled} AS {weight}, {self._content()} AS {content} FROM {table}"
        gone = f"{self._sums()} HAVING sum({self.dialect.quoted(SIGN)}) < 0"
        places = ", ".join(aliases)
        counted = (
            f"SELECT {places}, {copies}, row_number() OVER (PARTITION BY kept.{content} ORDER BY {weight}) AS {number}"
            # a cross join, so that SQLite looks up what is gone by an index
            f" FROM ({kept}) AS kept CROSS JOIN ({gone}) AS gone WHERE kept.{content} = gone.{content}"
        )
        removed = f"SELECT {places} FROM ({counted}) AS counted WHERE {number} <= -{copies}"
        return self.session.run(f"DELETE FROM {table} WHERE ({', '.join(place)}) IN ({removed})")

    def missing(self) -> str:
        """Return a row that should go and is not there, or not so often, as text."""
        content, sign, net = self._content(), self.dialect.quoted(SIGN), self.session.qualified(self.net)
        gone = f"SELECT {content} FROM {net} WHERE {sign} < 0"
        absent = self.session.select(f"{gone} EXCEPT SELECT {content} FROM {self.session.qualified(self.table)} LIMIT 1")
        condition = "".join(f" AND {content} = {PARAMETER}" for _ in absent)
        statement = f"SELECT {self._names()} FROM {net} WHERE {sign} < 0{condition} LIMIT 1"
        [row] = self.session.select(statement, *(each for (each,) in absent))
        return str(dict(zip(self.columns, row, strict=True)))

    def add(self) -> int:
        """Add the rows that come. Return how many the table took."""
        sign, copies, number = map(self.dialect.quoted, (SIGN, _COPIES, _NUMBER))
        names, content = self._names(), self._content()
        counted = (
            f"SELECT {names}, {sign}, row_number() OVER (PARTITION BY {content}, {sign}) AS {number},"
            f" sum({sign}) OVER (PARTITION BY {content}) AS {copies} FROM {self.session.qualified(self.net)}"
        )
        rows = f"SELECT {names} FROM ({counted}) AS counted WHERE {sign} > 0 AND {number} <= {copies}"
        return self.session.run(f"INSERT INTO {self.session.qualified(self.table)} ({names}) {rows}")

    def _sums(self) -> str:
        content, sign = self._content(), self.dialect.quoted(SIGN)
        columns = f"{content} AS {self.dialect.quoted(_CONTENT)}, sum({sign}) AS {self.dialect.quoted(_COPIES)}"
        return f"SELECT {columns} FROM {self.session.qualified(self.net)} GROUP BY {content}"

    def _content(self) -> str:
        return self.dialect.content(self.columns)

    def _names(self) -> str:
        return ", ".join(map(self.dialect.quoted, self.columns))
