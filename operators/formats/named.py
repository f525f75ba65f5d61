"""Formats by name: those of the library, and those of packages that offer one as an entry point."""

from __future__ import annotations

import importlib
from typing import Any

from dagflow.errors.wording import did_you_mean, known_names
from dagflow.scan import Format

NAMES = {
    "avro": ("operators.formats.avro", "AvroFormat"),
    "csv": ("operators.formats.csv", "CsvFormat"),
    "json_lines": ("operators.formats.json_lines", "JsonLinesFormat"),
    "parquet": ("operators.formats.parquet", "ParquetFormat"),
}
"""The formats that need no options."""


def format_named(value: Any) -> Any:
    """Return the format that a name stands for; a format stays as it is. Raises ValueError.

    >>> from operators import CsvFormat
    >>> format_named("csv") == CsvFormat()
    True
    >>> format_named("cvs")
    Traceback (most recent call last):
        ...
    ValueError: there is no format 'cvs'. Did you mean 'csv'?
    """
    if not isinstance(value, str):
        return value
    if value in NAMES:
        module, name = NAMES[value]
        return getattr(importlib.import_module(module), name)()
    from dagflow.plugins import FORMATS, plugin_named, plugin_names

    cls = plugin_named(FORMATS, value)
    if cls is None:
        known = [*NAMES, *plugin_names(FORMATS)]
        raise ValueError(f"there is no format {value!r}.{did_you_mean(value, known, otherwise=known_names(known))}")
    if not issubclass(cls, Format):
        raise ValueError(f"the format {value!r} is the class {cls.__name__}, which does not derive from dagflow.scan.Format")
    try:
        return cls()
    except TypeError as error:
        raise ValueError(f"the format {value!r} needs options: {error}") from None
