"""`DataFrameOperator`: an operator whose work is a function of Spark's DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.forms import schema_of
from dagflow.model.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa

INPUT, OUTPUT = "input", "output"


@attrs.define(slots=False, eq=False)
class DataFrameOperator(Operator):
    """An operator that Spark itself runs: `transform` says what becomes of a window's records, as a DataFrame.

    It has the ports `input` and `output`, both with known columns. `operators.SparkOperator` is one that takes a function.
    """

    def transform(self, frame: Any) -> Any:
        """A DataFrame made of that of a window's records.

        Called on the driver's instance (not set up), once for each attempt of a window.
        """
        raise NotImplementedError

    def columns(self, port: str, kind: Any) -> pa.Schema | None:
        """The columns of `input` or `output`. `kind`: the port's type; None: it does not say them."""
        return schema_of(kind)
