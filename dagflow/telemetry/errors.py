"""Errors of telemetry that was asked for and cannot begin. Later failures are warnings."""

from __future__ import annotations

import re

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error("DF485")
class TelemetryPackageMissing(InfrastructureError):
    """A setting asks for telemetry whose package is not installed."""

    setting: str
    extra: str
    reason: str
    template = "the setting {setting} needs a package that is missing ({reason})\n  help: pip install 'dagflow[{extra}]'"
    example = {"setting": "metrics_port", "extra": "metrics", "reason": "No module named 'prometheus_client'"}


@error("DF486")
class MetricsPortUnusable(InfrastructureError):
    """The port for metrics cannot be opened."""

    address: str
    port: int
    reason: str
    template = (
        "metrics cannot be served at {address}, port {port}: {reason}\n"
        "  help: give another port; --metrics-port 0 takes a free one and prints it"
    )
    example = {"address": "127.0.0.1", "port": 9464, "reason": "Address already in use"}


@error("DF487")
class MetricsFileUnwritable(InfrastructureError):
    """The file for metrics cannot be written."""

    path: str
    reason: str
    template = (
        "metrics cannot be written to {path}: {reason}\n"
        "  help: name a file ending in .prom, in a folder that exists and that this user can write to"
    )
    example = {"path": "/var/lib/node_exporter/dagflow.prom", "reason": "Permission denied"}


@error("DF288")
class LineageNotConfigured(ConfigError):
    """The configuration of OpenLineage cannot be used."""

    reason: str
    template = (
        "OpenLineage cannot start with this configuration: {reason}\n"
        "  help: correct OPENLINEAGE_URL, OPENLINEAGE__TRANSPORT__… or openlineage.yml, or launch with --openlineage off"
    )
    example = {"reason": "RuntimeError: `url` key not passed to HttpConfig"}


_POOL = re.compile(r"HTTPS?ConnectionPool\(.*\[Errno -?\d+\] ([^'\")]+)['\")]*|HTTPS?ConnectionPool\([^)]*\): ")


def root_cause(text: str) -> str:
    """Return a message of urllib3 with its innermost cause alone. The layers around it name the receiver once more each.

    >>> root_cause("HTTPConnectionPool(host='h', port=1): Max retries exceeded (Caused by E('[Errno 111] Connection refused'))")
    'Connection refused'
    >>> root_cause("HTTPSConnectionPool(host='h', port=1): Read timed out.")
    'Read timed out.'
    """
    return _POOL.sub(lambda match: match[1] or "", text)
