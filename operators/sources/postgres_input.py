"""PostgresInput: the rows of a table that are new, as one thing."""

from __future__ import annotations

from typing import Any, Generic, get_args

import attrs
from typing_extensions import TypeVar

from dagflow import DAG, Module, ProxyOutputPort
from dagflow.config import Seconds, Secret, seconds_of
from operators.readers.abstract_scan_reader import to_columns
from operators.sources.postgres.ranges import PostgresRanges
from operators.sources.postgres.reader import PostgresReader

T = TypeVar("T", default=Any)


@attrs.define
class PostgresInput(Module, Generic[T]):
    """Reads a table of PostgreSQL by a key that grows, each row once: a PostgresRanges and a PostgresReader.

    The operators inside are called `ranges` and `reader`. What they can do and this module does not name is set there:
    `operator.NAME.reader.drift.extra = "widen"`, `operator.NAME.ranges.window_blocks = 64`. docs/how-to/postgres.md has the
    guarantees, and what they rest on. `PostgresInput[Sale](…)` reads the fields of the attrs class `Sale`.

    Args:
        dsn: `postgresql://user:password@host/database`, or a connection string of libpq, which completes it from its environment
            (`PGHOST`, `PGPASSWORD`, `PGSERVICE`, …). It is shown nowhere.
        table: a table or view, `sales` or `schema.sales`.
        key: an integer column that grows (a sequence), or the time of the last change of a row.
        lag: needed for a key that is a time, with a zone: rows younger than that are left for later. Transactions that write
            must be shorter.
        columns: which columns, `name` or `name::type` with a cast to a type of PostgreSQL; None: all.
        block_rows: rows in a block, which one reader reads; None: about 8 MiB of rows.
        min_readers, max_readers: how many readers a window has.

    >>> from dagflow import plan
    >>> from operators import Console
    >>> def populate_dag(dag, conf):
    ...     sales = dag.add_module("sales", PostgresInput("postgresql://ada:secret@db/shop", "sales", key="id"))
    ...     dag.add_stream("rows", sales.batches, dag.add_operator("shown", Console()).input)
    >>> "secret" in str(plan(populate_dag, {}))
    False
    """

    dsn: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    table: str = attrs.field(validator=attrs.validators.instance_of(str))
    key: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))
    lag: Seconds | None = attrs.field(default=None, kw_only=True, converter=seconds_of)
    columns: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=to_columns)
    block_rows: int | None = attrs.field(default=None, kw_only=True)
    min_readers: int = attrs.field(default=1, kw_only=True)
    max_readers: int = attrs.field(default=16, kw_only=True)

    batches = ProxyOutputPort[T]()

    def populate_dag(self, dag: DAG) -> None:
        """Ranges, reader, and the blocks between them."""
        ranges = dag.add_operator("ranges", self.make(PostgresRanges))
        kind = next(iter(get_args(self.__dict__.get("__orig_class__"))), None)
        made: Any = PostgresReader if kind is None else PostgresReader[kind]  # type: ignore[valid-type]
        reader = dag.add_operator("reader", self.make(made))
        dag.add_stream("blocks", ranges.blocks_metadata_output, reader.blocks_metadata_input)
        self.batches.set(reader.batches)
