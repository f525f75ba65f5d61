from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Declared although no module imports it, and why.
NOT_IMPORTED = {"pandas": "pyspark's Arrow path imports it"}
# Imported although not declared as a dependency of a user, and why.
NOT_DECLARED = {
    "annotationlib": "Python's own from 3.14 on",
    "app": "the application beside a test, in the templates of `dagflow init`",
    "pytest": "dagflow.testing.plugin is loaded by pytest only",
    "hypothesis": "dagflow.testing's laws need it: the extra `test`",
    "py4j": "comes with pyspark, of which it is a part",
    "botocore": "comes with s3fs of the extra `s3`, whose requests it makes",
    "grpc": "comes with the extra `connect`",
    "compression": "Python's own from 3.14 on",
    "fastavro": "the extra `avro`; without it a message says how to install it",
    "prometheus_client": "the extra `metrics`; without it a message says how to install it",
    "opentelemetry": "the extra `otel`; without it a message says how to install it",
    "openlineage": "the extra `openlineage`; without it a message says how to install it",
    "deltalake": "the extra `delta`; without it a message says how to install it",
    "pyiceberg": "the extra `iceberg`; without it a message says how to install it",
    "psycopg": "the extra `postgres`; without it a message says how to install it",
    "nats": "the extra `nats`; without it a message says how to install it",
    "confluent_kafka": "the extra `kafka`; without it a message says how to install it",
    "backports": "the extra `zstd`; without it a message says how to install it",
    "dagflow_native": "the optional package in native/; without it pyarrow parses",
    "zstandard": "read with where it is there anyhow (`connect` brings it)",
}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w-]", line, maxsplit=1)[0].replace("-", "_") for line in project["dependencies"]}


def imported() -> set[str]:
    names: set[str] = set()
    for package in ("dagflow", "operators"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module.partition(".")[0])
    ours = {"dagflow", "operators"}
    return {"attrs" if name == "attr" else name for name in names} - sys.stdlib_module_names - ours


@pytest.mark.full
def test_what_is_imported_is_declared() -> None:
    assert imported() - declared() - set(NOT_DECLARED) == set()


@pytest.mark.full
def test_what_is_declared_is_imported() -> None:
    """A dependency that nothing uses costs every user its download."""
    assert declared() - imported() - set(NOT_IMPORTED) == set()
