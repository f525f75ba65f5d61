"""Scans of text whose columns may have no names: the array `columns` of a row's fields, and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from dagflow.scan.errors import ProjectionError
from dagflow.scan.files import FileScan
from dagflow.scan.schema.projection import is_implicit
from dagflow.scan.schema.shape import COLUMNS

if TYPE_CHECKING:
    from dagflow.scan.format import Format
    from dagflow.scan.settings import ScanSettings

MOST_COLUMNS = 65_536


def reads_array(format: Format, settings: ScanSettings) -> bool:
    """Return whether rows are read as the array `columns` (a list of texts), not by the names of a header or a schema.

    The rules are those of Drill, for formats that say `offers_array`:

    - `columns` or elements of it (`columns[2]`), or columns with names, but not both. Implicit columns go with either.
    - Several elements may be selected, `columns` itself once. It is a list and does not have fields (`columns.x`).
    - With a header, `columns` is still the array: the header is left out, and its names are not used.
    - `*` is `columns` for files without a header, the names of the header for those with one.
    - Without a header, the only names are those of a schema, which are the columns of the files in order.

    Raises ProjectionError.
    """
    if not format.offers_array:
        return False
    paths = settings.projection.paths or ()
    table = [each for each in paths if not each.is_star and not is_implicit(each.root)]
    of_array = [each for each in table if each.root == COLUMNS]
    by_name = [each for each in table if each.root != COLUMNS]
    has_names = format.has_header or (settings.schema is not None and bool(settings.schema.columns))
    if of_array and settings.schema is not None and COLUMNS in settings.schema.columns:
        return False  # the user's own column of that name
    if of_array and by_name:
        raise ProjectionError(
            f"{of_array[0].name!r} and {by_name[0].name!r} are selected, but `columns` does not go with named columns",
            f"either columns[0], columns[1], …; or names, which come from a header or a schema: {by_name[0].name}",
        )
    for each in of_array:
        step = each.steps[0] if each.steps else 0
        if isinstance(step, str) or len(each.steps) > 1:
            raise ProjectionError(f"{each.name!r} is selected, but `columns` is a list of texts", "columns[0] is its first")
        if step >= MOST_COLUMNS:
            raise ProjectionError(
                f"{each.name!r} is selected, but a row has at most {MOST_COLUMNS} fields",
                f"columns[0] to columns[{MOST_COLUMNS - 1}]",
            )
    if by_name and not has_names:
        raise ProjectionError(
            f"{by_name[0].name!r} is selected, but the files have no header: there is only the array `columns`",
            "columns[0], columns[1], …; or give a schema, whose columns are those of the files in order",
        )
    return bool(of_array) or not has_names


@attrs.define(eq=False, kw_only=True)
class ColumnsScan(FileScan):
    """The framework for files of text whose columns may have no names."""

    def _reads_array(self) -> bool:
        return reads_array(self.format, self.settings)


def make_scan(format: Format) -> type[FileScan]:
    """Return the framework that a format needs."""
    return ColumnsScan if format.offers_array else FileScan
