"""The changes of an upsert by whole rows: those that come are added, and for each that is taken back an equal one is removed."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from operators.sinks.database.dialect import PARAMETER, Session, SqlDialect
from operators.sinks.database.staging import SIGN

_CONTENT, _COPIES, _NUMBER, _PLACE = "_dagflow_content", "_dagflow_copies", "_dagflow_number", "_dagflow_place"


@attrs.frozen
class RowChanges:
    """Changes in a table `net` that has columns of the table they are for, as that holds them, and the sign of each row.

    Attributes:
        names: the columns by which rows are equal. `written`: those of them that rows come with.
    """

    session: Session
    dialect: SqlDialect
    table: str
    net: str
    names: Sequence[str]
    written: Sequence[str]

    def create(self) -> None:
        """Create the table of changes, without any."""
        columns = ", ".join(map(self.dialect.quoted, self.names))
        what = f"SELECT {columns}, 0 AS {self.dialect.quoted(SIGN)} FROM {self.session.qualified(self.table)} WHERE 1 = 0"
        self.session.run(f"CREATE TABLE {self.session.qualified(self.net)} AS {what}")

    def sums(self) -> tuple[int, int]:
        """Return how many rows come, and how many go."""
        copies = self.dialect.quoted(_COPIES)
        come, go = (f"coalesce(sum(CASE WHEN {copies} {sign} 0 THEN abs({copies}) END), 0)" for sign in "><")
        [[coming, going]] = self.session.select(f"SELECT {come}, {go} FROM ({self._sums()}) AS sums")
        return int(coming), int(going)

    def remove(self) -> int:
        """Remove the rows that go. Return how many were there."""
        content, copies, number = map(self.dialect.quoted, (_CONTENT, _COPIES, _NUMBER))
        places = [self.dialect.quoted(f"{_PLACE}{n}") for n, _ in enumerate(self.dialect.row_place)]
        found, table = ", ".join(places), self.session.qualified(self.table)
        own = ", ".join(f"{each} AS {place}" for each, place in zip(self.dialect.row_place, places, strict=True))
        kept = f"(SELECT {own}, {self._content()} AS {content} FROM {table}) AS kept"
        gone = f"({self._sums()} HAVING sum({self.dialect.quoted(SIGN)}) < 0) AS gone"
        counted = (
            f"SELECT {found}, {copies}, row_number() OVER (PARTITION BY kept.{content}) AS {number}"
            f" FROM {kept} CROSS JOIN {gone} WHERE kept.{content} = gone.{content}"  # so SQLite looks up what is gone by an index
        )
        which = f"SELECT {found} FROM ({counted}) AS counted WHERE {number} <= -{copies}"
        return self.session.run(f"DELETE FROM {table} WHERE ({', '.join(self.dialect.row_place)}) IN ({which})")

    def missing(self) -> str:
        """Return a row that should go and is not there, or not so often, as text."""
        content, sign, net = self._content(), self.dialect.quoted(SIGN), self.session.qualified(self.net)
        gone = f"SELECT {content} FROM {net} WHERE {sign} < 0"
        absent = self.session.select(f"{gone} EXCEPT SELECT {content} FROM {self.session.qualified(self.table)} LIMIT 1")
        columns = ", ".join(map(self.dialect.quoted, self.written))
        which = "".join(f" AND {content} = {PARAMETER}" for _ in absent)
        statement = f"SELECT {columns} FROM {net} WHERE {sign} < 0{which} LIMIT 1"
        [row] = self.session.select(statement, *(each for (each,) in absent))
        return str(dict(zip(self.written, row, strict=True)))

    def add(self) -> int:
        """Add the rows that come. Return how many the table took."""
        sign, copies, number = map(self.dialect.quoted, (SIGN, _COPIES, _NUMBER))
        columns, content = ", ".join(map(self.dialect.quoted, self.written)), self._content()
        counted = (
            f"SELECT {columns}, {sign}, row_number() OVER (PARTITION BY {content}, {sign}) AS {number},"
            f" sum({sign}) OVER (PARTITION BY {content}) AS {copies} FROM {self.session.qualified(self.net)}"
        )
        rows = f"SELECT {columns} FROM ({counted}) AS counted WHERE {sign} > 0 AND {number} <= {copies}"
        return self.session.run(f"INSERT INTO {self.session.qualified(self.table)} ({columns}) {rows}")

    def _sums(self) -> str:
        content, sign = self._content(), self.dialect.quoted(SIGN)
        columns = f"{content} AS {self.dialect.quoted(_CONTENT)}, sum({sign}) AS {self.dialect.quoted(_COPIES)}"
        return f"SELECT {columns} FROM {self.session.qualified(self.net)} GROUP BY {content}"

    def _content(self) -> str:
        there = self.session.columns(self.table)
        return self.dialect.content({name: there[name] for name in self.names})
