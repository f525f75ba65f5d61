"""The test kit for users' operators and applications: without Spark and a JVM, unless a test asks for them.

Read `operators` first: it runs one operator as a task does. Then, as needed:

- `tasks`: one operator step by step, with a clock that stands still and files in memory;
- `laws`: the laws of operators, tried with many records (`check_operator`);
- `files`: readers on their own: a file block by block, or files as one table;
- `trackers`, `readers`, `splittable`: the proof that a reader gives every record once, wherever its ranges are split;
- `partitioners`: the number of readers of an operator, window by window;
- `dags`: a whole application, and a sink that keeps what reaches it;
- `cuts`: the law that results do not depend on windows, for a whole application (`check_cuts`);
- `stores`: a store that counts its calls and fails on request;
- `plugin`: the pytest fixtures `runner` and `spark_session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagflow.model.types.records import Window
    from dagflow.testing.cuts import check_cuts
    from dagflow.testing.dags import Collector, run_dag
    from dagflow.testing.files import read_file, scan_reader_of, scan_table
    from dagflow.testing.laws import check_operator
    from dagflow.testing.operators import Emitted, run_operator
    from dagflow.testing.partitioners import ReaderWindows
    from dagflow.testing.readers import CountedFiles, reader_of
    from dagflow.testing.splittable import assert_reader_is_splittable
    from dagflow.testing.tasks import FakeClock, MemoryFiles, OperatorTask

__all__ = [
    "Collector",
    "CountedFiles",
    "Emitted",
    "FakeClock",
    "MemoryFiles",
    "OperatorTask",
    "ReaderWindows",
    "Window",
    "assert_reader_is_splittable",
    "check_cuts",
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
        "Collector": "dagflow.testing.dags",
        "CountedFiles": "dagflow.testing.readers",
        "Emitted": "dagflow.testing.operators",
        "FakeClock": "dagflow.testing.tasks",
        "MemoryFiles": "dagflow.testing.tasks",
        "OperatorTask": "dagflow.testing.tasks",
        "ReaderWindows": "dagflow.testing.partitioners",
        "Window": "dagflow.model.types.records",
        "assert_reader_is_splittable": "dagflow.testing.splittable",
        "check_cuts": "dagflow.testing.cuts",
        "check_operator": "dagflow.testing.laws",
        "read_file": "dagflow.testing.files",
        "reader_of": "dagflow.testing.readers",
        "run_dag": "dagflow.testing.dags",
        "run_operator": "dagflow.testing.operators",
        "scan_reader_of": "dagflow.testing.files",
        "scan_table": "dagflow.testing.files",
    }

    def __getattr__(name: str) -> object:
        """Load a name on first use; pytest loads the plugin of this package in every run, so importing must cost nothing."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'dagflow.testing' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
