"""The tree of exceptions.

DagflowError
├── DagError (ValueError)              the DAG is wrong                    exit code 2   DF1xx   errors/dag.py
├── ConfigError (ValueError)           a setting or the command line is    exit code 2   DF2xx   errors/config.py
├── RunError (RuntimeError)            a run failed                        exit code 1   DF3xx   errors/run.py
└── SurroundingsError (RuntimeError)   Java, cluster, permissions, disk    exit code 3   DF4xx   errors/surroundings.py
"""

from dagflow.errors.base import ConfigError, DagError, DagflowError, RunError, SurroundingsError
from dagflow.errors.dag import PortTypeError
from dagflow.errors.paste import definition

__all__ = ["ConfigError", "DagError", "DagflowError", "PortTypeError", "RunError", "SurroundingsError", "definition"]
