"""The settings of a scan, except its format."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.scan.bad_rows import OnBadRow
from dagflow.scan.schema.projection import Projection
from dagflow.scan.schema.table import Drift, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.scan.readers.loader import BatchLimits

SAMPLE_FILES = 64


@attrs.frozen(kw_only=True, slots=False)
class ScanSettings:
    """The settings of a scan, except its format: the properties of operators.ScanReader, described there.

    `only`: the columns that operators behind the scan read; None: all. Batches have no others. Which rows are bad does not depend
    on it.
    """

    columns: tuple[str, ...] | None = None
    schema: TableSchema | None = None
    drift: Drift = attrs.field(factory=Drift)
    on_bad_row: OnBadRow = "fail"
    limits: BatchLimits | None = None
    null_type: Any = "string"
    root: str | None = None
    sample_files: int = SAMPLE_FILES
    only: frozenset[str] | None = None

    @functools.cached_property
    def projection(self) -> Projection:
        """The selected columns. Raises ProjectionError."""
        return Projection.of(self.columns)

    @property
    def null_arrow_type(self) -> pa.DataType:
        """The type of columns without a value so far."""
        from dagflow.scan.schema.types import to_type

        return to_type(self.null_type)
