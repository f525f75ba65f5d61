"""The tree of errors, and one place from which all of them are imported.

DagflowError
├── DagError (ValueError)                 DF0xx   the DAG is wrong                         exit code 2
├── ConfigError (ValueError)              DF2xx   a setting or the command line is wrong   exit code 2
├── RunError (RuntimeError)               DF3xx   a run failed                             exit code 1
│   ├── LedgerError                       DF5xx   a ledger cannot be read or appended to   exit code 1
│   ├── …                                 DF6xx   a file cannot be scanned                 exit code 1
│   └── …                                 DF7xx to DF9xx  a run failed, more causes        exit code 1
└── InfrastructureError (RuntimeError)    DF4xx   Java, cluster, permissions, disk         exit code 3

The first digit of a code names the branch, and the branch the exit code. `Interrupted` is the one exception: it ends with 130,
as shells expect it.

Each class lives beside the code that raises it, in the `errors` module of its package. This package imports them when they
are first asked for, so `from dagflow.errors import WindowFailed` works for every class. Read `base` first, then `templates`
(how messages are written), `shown`, `packages` (the one error that all layers raise), `wording` (parts of messages), `frames`
(the user's own code in a traceback) and `misspelt` (the name that it meant). `codes` finds classes by their codes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dagflow.errors.base import ConfigError, DagError, DagflowError, InfrastructureError, RunError, error
from dagflow.errors.packages import PackageMissing
from dagflow.errors.wording import definition, suggest

if TYPE_CHECKING:
    from dagflow.catalogue.errors import *
    from dagflow.config.errors import *
    from dagflow.launching.errors import *
    from dagflow.ledger.errors import *
    from dagflow.lineage.errors import *
    from dagflow.model.errors.classes import *
    from dagflow.model.errors.dag import *
    from dagflow.model.errors.partitioning import *
    from dagflow.model.errors.running import *
    from dagflow.packaging.errors import *
    from dagflow.page.errors import *
    from dagflow.planning.errors import *
    from dagflow.ranges.errors import *
    from dagflow.runtime.exchange.errors import *
    from dagflow.runtime.run_folder.errors import *
    from dagflow.runtime.stage.errors import *
    from dagflow.runtime.task.errors import *
    from dagflow.runtime.windows.errors import *
    from dagflow.scaling.errors import *
    from dagflow.scan.errors import *
    from dagflow.spark.errors import *
    from dagflow.state.errors import *
    from dagflow.storage.errors import *
    from dagflow.storage.records.errors import *
    from dagflow.telemetry.errors import *
    from dagflow.testing.errors import *

__all__ = [
    "ConfigError",
    "DagError",
    "DagflowError",
    "InfrastructureError",
    "PackageMissing",
    "RunError",
    "definition",
    "error",
    "suggest",
]

# Where classes live, in the order in which they are searched. A test compares this list with the modules there are.
MODULES = (
    "dagflow.model.errors.dag",
    "dagflow.model.errors.classes",
    "dagflow.model.errors.partitioning",
    "dagflow.model.errors.running",
    "dagflow.planning.errors",
    "dagflow.catalogue.errors",
    "dagflow.config.errors",
    "dagflow.storage.errors",
    "dagflow.storage.records.errors",
    "dagflow.ranges.errors",
    "dagflow.state.errors",
    "dagflow.launching.errors",
    "dagflow.packaging.errors",
    "dagflow.lineage.errors",
    "dagflow.page.errors",
    "dagflow.spark.errors",
    "dagflow.telemetry.errors",
    "dagflow.testing.errors",
    "dagflow.cli.errors",
    "dagflow.runtime.stage.errors",
    "dagflow.runtime.task.errors",
    "dagflow.runtime.exchange.errors",
    "dagflow.runtime.run_folder.errors",
    "dagflow.runtime.windows.errors",
    "dagflow.scaling.errors",
    "dagflow.ledger.errors",
    "dagflow.scan.errors",
    "operators.aggregate.errors",
    "operators.compression.errors",
    "operators.contexts.errors",
    "operators.database.errors",
    "operators.files.errors",
    "operators.formats.errors",
    "operators.formats.delimited.errors",
    "operators.join.errors",
    "operators.logs.errors",
    "operators.readers.errors",
    "operators.sinks.errors",
    "operators.sinks.table_formats.errors",
    "operators.sinks.tables.errors",
    "operators.sinks.database.errors",
    "operators.sinks.logs.errors",
    "operators.sources.errors",
    "operators.extras.errors",
    "operators.tables.errors",
    "operators.transform.errors",
)


def __getattr__(name: str) -> type[DagflowError]:
    """Return an error class from the module in which it lives."""
    if name[:1].isupper():
        for module in MODULES:
            cls = vars(import_module(module)).get(name)
            if isinstance(cls, type) and cls.__module__ == module:
                return cls
    raise AttributeError(f"module 'dagflow.errors' has no attribute {name!r}")
