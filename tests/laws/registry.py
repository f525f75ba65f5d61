"""The operators of the library that random DAGs are made of, and those that are exempt, with the reason.

A new operator joins with a class of `NodeKind` in KINDS, or a line in EXEMPT. `test_registered.py` names one that is in neither.
"""

from __future__ import annotations

from tests.laws.keyed import (
    Combining,
    Deduplicating,
    Differing,
    Grouping,
    Joining,
    Matching,
    Sorting,
    Topping,
    Totalling,
    Tumbled,
    Windowing,
)
from tests.laws.nodes import NodeKind
from tests.laws.stateless import Expecting, Filtered, Mapping, Sampling, Selecting, Splitting, Uniting, Unnesting

KINDS: dict[str, NodeKind] = {
    "filter": Filtered(),
    "map": Mapping(),
    "select": Selecting(),
    "split": Splitting(),
    "expect": Expecting(),
    "sample": Sampling(),
    "union": Uniting(),
    "unnest": Unnesting(),
    "group": Grouping(),
    "windows": Windowing(),
    "tumbling": Tumbled(),
    "total": Totalling(),
    "distinct": Differing(),
    "deduplicate": Deduplicating(),
    "top": Topping(),
    "sort": Sorting(),
    "join": Joining(),
    "match": Matching(),
    "combine": Combining(),
}
WEIGHTS = {
    "filter": 2,
    "map": 3,
    "select": 3,
    "group": 4,
    "windows": 4,
    "tumbling": 3,
    "total": 2,
    "join": 4,
    "match": 3,
    "distinct": 2,
    "deduplicate": 3,
    "top": 3,
    "sort": 2,
    "union": 2,
    "unnest": 2,
    "combine": 4,
}
"""The weight of a kind among those that are drawn; 1 unless it is here."""

SOURCES = ("FileSplitterInput", "ScanReader")
SINKS = ("ParquetWriter", "JsonLinesWriter", "CsvWriter", "SqlWriter", "DeltaWriter", "IcebergWriter", "PostgresWriter")
"""Operators that `application.py` puts around the nodes. Only some cases have the last two, which are slow."""

_SERVER = "needs a server: its own tests, and those of kills, use one"
_BASE = "is a base class of others"
_LINES = "emits blocks and lines, whose cuts are tried by the proofs of readers (dagflow.testing.check_splittable)"
EXEMPT: dict[str, str] = {
    "AbstractBlockReader": _BASE,
    "AbstractFSBlockReader": _BASE,
    "AbstractFileSplitter": _BASE,
    "AbstractLogReader": _BASE,
    "AbstractLogScanReader": _BASE,
    "AbstractLogSplitterInput": _BASE,
    "AbstractScanReader": _BASE,
    "FileSplitterBase": _BASE,
    "BlockReader": _LINES,
    "FSSliceReader": _LINES,
    "Console": "prints: there is no table to compare",
    "RecordWriter": "writes text, not rows: its windows and kills are tried in tests/conformance/faults",
    "DatasetInput": "reads what another application has committed: chains are tried in tests/conformance/faults/test_derived.py",
    "DeltaInput": "reads versions of a table, which are its windows: tests/conformance/cuts/test_tables.py",
    "IcebergInput": "reads snapshots of a table, which are its windows: tests/conformance/cuts/test_tables.py",
    "KafkaBlockReader": _SERVER,
    "KafkaScanReader": _SERVER,
    "KafkaSplitterInput": _SERVER,
    "KafkaWriter": _SERVER,
    "NatsBlockReader": _SERVER,
    "NatsScanReader": _SERVER,
    "NatsSplitterInput": _SERVER,
    "NatsWriter": _SERVER,
    "PostgresRanges": _SERVER,
    "PostgresReader": _SERVER,
    "SparkOperator": "has scope window: its function gets the DataFrames of one window",
}
