"""The test kit for users' operators and applications: without Spark and a JVM, unless a test asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagflow.model.types.records import Window
    from dagflow.testing.clock import FakeClock
    from dagflow.testing.collector import Collector
    from dagflow.testing.dags import run_dag
    from dagflow.testing.files import read_file
    from dagflow.testing.laws import check_operator
    from dagflow.testing.operators import Emitted, run_operator
    from dagflow.testing.readers import CountedFiles, reader_of
    from dagflow.testing.splittable import assert_reader_is_splittable
    from dagflow.testing.tables import scan_reader_of, scan_table
    from dagflow.testing.tasks import MemoryFiles, OperatorTask

__all__ = [
    "Collector",
    "CountedFiles",
    "Emitted",
    "FakeClock",
    "MemoryFiles",
    "OperatorTask",
    "Window",
    "assert_reader_is_splittable",
    "check_operator",
    "read_file",
    "reader_of",
    "run_dag",
    "run_operator",
    "scan_reader_of",
    "scan_table",
]

if not TYPE_CHECKING:  # type checkers know the names above only, so that they find a misspelt one
    _MODULE_OF = {
        "Collector": "dagflow.testing.collector",
        "CountedFiles": "dagflow.testing.readers",
        "Emitted": "dagflow.testing.operators",
        "FakeClock": "dagflow.testing.clock",
        "MemoryFiles": "dagflow.testing.tasks",
        "OperatorTask": "dagflow.testing.tasks",
        "Window": "dagflow.model.types.records",
        "assert_reader_is_splittable": "dagflow.testing.splittable",
        "check_operator": "dagflow.testing.laws",
        "read_file": "dagflow.testing.files",
        "reader_of": "dagflow.testing.readers",
        "run_dag": "dagflow.testing.dags",
        "run_operator": "dagflow.testing.operators",
        "scan_reader_of": "dagflow.testing.tables",
        "scan_table": "dagflow.testing.tables",
    }

    def __getattr__(name: str) -> object:
        """Loads what is asked for; the pytest plugin in this room is loaded in every test run, and must cost nothing."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'dagflow.testing' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
