"""The packages of table formats, loaded where they are used; and the catalogs of Iceberg tables."""

from __future__ import annotations

import contextlib
import functools
import os
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dagflow.errors import DagflowError, PackageMissing
from operators.extras.errors import TableUnreachable
from operators.extras.unavailable import is_busy, limit_waits

_ENDPOINTS = frozenset({"aws_endpoint_url", "aws_endpoint_url_s3", "aws_endpoint", "endpoint", "endpoint_url"})
_S3 = {
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "client.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
"""Properties of `pyiceberg`, and the variables that say the same to other clients of S3."""
_LOADS = 5
_BETWEEN_LOADS = 0.1  # seconds


def deltalake(operator: str) -> Any:
    """Return the package `deltalake`, which an operator needs. Raises PackageMissing."""
    try:
        import deltalake as package
        import deltalake.exceptions
        import deltalake.transaction
    except ImportError:
        raise PackageMissing(needed_by=operator, package="deltalake", install="'dagflow[delta]'") from None
    return package


def delta_options(path: str, given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options with which `deltalake` opens a table; None for none.

    An endpoint that begins with `http://` allows HTTP, as it does for everything else of dagflow.

    >>> delta_options("s3://shop/orders", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"})["AWS_ALLOW_HTTP"]
    'true'
    """
    names = {name.lower() for name in given} | {name.lower() for name in os.environ}
    endpoints = [*given.items(), *os.environ.items()]
    is_plain = any(name.lower() in _ENDPOINTS and value.startswith("http://") for name, value in endpoints)
    allows = {"AWS_ALLOW_HTTP": "true"} if is_plain and path.startswith("s3") and "aws_allow_http" not in names else {}
    return {**given, **allows} or None


def pyiceberg(operator: str) -> Any:
    """Return the package `pyiceberg`, which an operator needs. Raises PackageMissing."""
    try:
        import pyiceberg as package
        import pyiceberg.catalog
        import pyiceberg.exceptions
        import pyiceberg.io.pyarrow
        import pyiceberg.table.upsert_util
    except ImportError:
        raise PackageMissing(needed_by=operator, package="pyiceberg", install="'dagflow[iceberg]'") from None
    return package


@contextlib.contextmanager
def opening(operator: str, table: str) -> Iterator[None]:
    """Raise TableUnreachable for the errors of a package that opens a table, and of the libraries that it uses."""
    try:
        yield
    except TableUnreachable as error:
        raise TableUnreachable(operator=operator, table=table, reason=error.reason) from error.__cause__
    except DagflowError:
        raise
    except Exception as error:
        raise TableUnreachable.of(error, operator=operator, table=table) from error


def loaded_catalog(operator: str, properties: Mapping[str, str]) -> Any:
    """Load a catalog, once in a process, by the properties of `pyiceberg`; without any, by its own settings.

    Endpoint and region of S3 come from the usual variables where these have none; Arrow takes the keys from there itself.

    A catalog in SQLite is kept for as long as its file is the same: a connection to a removed file would write to nowhere.
    The connections of a catalog in a database are closed with the last use of it. Raises PackageMissing.
    """
    _ = pyiceberg(operator)
    items, file = tuple(sorted(properties.items())), 0
    usual = tuple((name, value) for name, variables in _S3.items() if (value := _first(variables)))
    scheme, _, path = properties.get("uri", "").partition(":///")
    if scheme.startswith("sqlite") and path:
        try:
            file = os.stat(path.partition("?")[0]).st_ino
        except OSError:
            return _loaded.__wrapped__(items, usual, file)  # which makes the file
    return _loaded(items, usual, file)


def _first(variables: Iterable[str]) -> str | None:
    return next((value for name in variables if (value := os.environ.get(name))), None)


@functools.lru_cache(8)  # a catalog in a database keeps connections
def _loaded(properties: tuple[tuple[str, str], ...], usual: tuple[tuple[str, str], ...], file: int) -> Any:
    import pyiceberg.catalog as catalogs

    given = dict(properties)
    name = given.pop("name", None)
    for left in reversed(range(_LOADS)):
        try:
            catalog = catalogs.load_catalog(name, **given)
            catalog.properties = {**dict(usual), **catalog.properties}  # those of `pyiceberg`'s own settings count
            limit_waits(catalog)
            if engine := getattr(catalog, "engine", None):  # of a catalog in a database
                weakref.finalize(catalog, engine.dispose)  # tables of it may outlive its place in the cache
            return catalog
        except Exception as error:
            # The first who load a catalog in a database create its tables, and several tasks may do so at once.
            if not left or not (is_busy(error) or type(error).__module__.partition(".")[0] == "sqlalchemy"):
                raise
            time.sleep(_BETWEEN_LOADS)
    raise AssertionError("unreachable")


def is_place(warehouse: str, properties: Mapping[str, str]) -> bool:
    """Return False if a warehouse is only a name, which the server of its catalog knows. Such names may have slashes.

    >>> is_place("s3://lake", {"type": "rest"}), is_place("prod/lake", {"type": "rest"}), is_place("data/lake", {"type": "sql"})
    (True, False, True)
    """
    if "://" in warehouse or warehouse.startswith(("/", "file:")):
        return True
    is_rest = properties.get("type") == "rest" or properties.get("uri", "").startswith(("http://", "https://"))
    return "/" in warehouse and not warehouse.startswith("arn:") and not is_rest


def plain_location(location: str) -> str:
    """Return the path of a local file or folder, which an Iceberg table holds as it is, not encoded; other locations as they are.

    >>> plain_location("file:///data/a%20b"), plain_location("s3://bucket/a")
    ('/data/a%20b', 's3://bucket/a')
    """
    return f"/{location.removeprefix('file:').lstrip('/')}" if location.startswith("file:") else location
