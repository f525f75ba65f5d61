"""Errors of telemetry that was asked for and cannot begin. Later failures are warnings."""

from __future__ import annotations

import re
from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error
class TelemetryPackageMissing(InfrastructureError):
    """A setting asks for telemetry whose package is not installed."""

    setting: str
    extra: str
    reason: str
    code: ClassVar[str] = "DF485"
    example = {"setting": "metrics_port", "extra": "metrics", "reason": "No module named 'prometheus_client'"}

    def message(self) -> str:
        return f"the setting {self.setting} needs a package that is missing ({self.reason})\n  help: pip install 'dagflow[{self.extra}]'"


@error
class MetricsPortUnusable(InfrastructureError):
    """The port for metrics cannot be opened."""

    address: str
    port: int
    reason: str
    code: ClassVar[str] = "DF486"
    example = {"address": "127.0.0.1", "port": 9464, "reason": "Address already in use"}

    def message(self) -> str:
        return (
            f"metrics cannot be served at {self.address}, port {self.port}: {self.reason}\n"
            "  help: give another port; --metrics-port 0 takes a free one and prints it"
        )


@error
class MetricsFileUnwritable(InfrastructureError):
    """The file for metrics cannot be written."""

    path: str
    reason: str
    code: ClassVar[str] = "DF487"
    example = {"path": "/var/lib/node_exporter/dagflow.prom", "reason": "Permission denied"}

    def message(self) -> str:
        return (
            f"metrics cannot be written to {self.path}: {self.reason}\n"
            "  help: name a file ending in .prom, in a folder that exists and that this user can write to"
        )


@error
class LineageNotConfigured(ConfigError):
    """The configuration of OpenLineage cannot be used."""

    reason: str
    code: ClassVar[str] = "DF288"
    example = {"reason": "RuntimeError: `url` key not passed to HttpConfig"}

    def message(self) -> str:
        return (
            f"OpenLineage cannot start with this configuration: {self.reason}\n"
            "  help: correct OPENLINEAGE_URL, OPENLINEAGE__TRANSPORT__… or openlineage.yml, or launch with --openlineage off"
        )


_POOL = re.compile(r"HTTPS?ConnectionPool\(.*\[Errno -?\d+\] ([^'\")]+)['\")]*|HTTPS?ConnectionPool\([^)]*\): ")


def root_cause(text: str) -> str:
    """Return a message of urllib3 with its innermost cause alone. The layers around it name the receiver once more each.

    >>> root_cause("HTTPConnectionPool(host='h', port=1): Max retries exceeded (Caused by E('[Errno 111] Connection refused'))")
    'Connection refused'
    >>> root_cause("HTTPSConnectionPool(host='h', port=1): Read timed out.")
    'Read timed out.'
    """
    return _POOL.sub(lambda match: match[1] or "", text)
