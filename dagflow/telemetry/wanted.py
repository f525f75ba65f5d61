"""The telemetry that a launch's settings and environment ask for. Imports nothing heavy: each launch asks."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dagflow.config.run_settings import RunSettings

_OTEL_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
_OTEL_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def wants_metrics(settings: RunSettings) -> bool:
    """Return whether the run's figures go to a port or a file for Prometheus.

    >>> wants_metrics(RunSettings()), wants_metrics(RunSettings(metrics_port=0))
    (False, True)
    """
    return settings.metrics_port is not None or settings.metrics_file is not None


def opentelemetry_reason(settings: RunSettings, environment: Mapping[str, str]) -> str | None:
    """Return the setting or the variable that asks for OpenTelemetry; None without one.

    >>> opentelemetry_reason(RunSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    'OTEL_EXPORTER_OTLP_ENDPOINT'
    >>> opentelemetry_reason(RunSettings(), {"OTEL_TRACES_EXPORTER": "none"})
    """
    if settings.opentelemetry == "off" or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if settings.opentelemetry == "on":
        return "opentelemetry"
    exporters = [name for name in _OTEL_EXPORTERS if environment.get(name, "none") not in ("", "none")]
    is_off = all(environment.get(name) == "none" for name in _OTEL_EXPORTERS)
    return next((name for name in (*_OTEL_ENDPOINTS, *exporters) if environment.get(name) and not is_off), None)


def openlineage_reason(settings: RunSettings, environment: Mapping[str, str]) -> str | None:
    """Return the setting, the variable or the file that asks for OpenLineage; None without one.

    >>> openlineage_reason(RunSettings(), {"OPENLINEAGE_URL": "http://marquez:5000"})
    'OPENLINEAGE_URL'
    """
    if settings.openlineage == "off" or environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    if settings.openlineage == "on":
        return "openlineage"
    for name, value in environment.items():
        if value and (name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG") or name.startswith("OPENLINEAGE__TRANSPORT")):
            return name
    files = ("openlineage.yml", os.path.join(environment.get("HOME", ""), ".openlineage", "openlineage.yml"))
    return next(filter(os.path.isfile, files), None)


def is_wanted(settings: RunSettings, environment: Mapping[str, str]) -> bool:
    """Return whether any telemetry is asked for."""
    reasons = (opentelemetry_reason(settings, environment), openlineage_reason(settings, environment))
    return wants_metrics(settings) or reasons != (None, None)
