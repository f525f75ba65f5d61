"""Layered settings with the origin of each value.

`read_layers` reads what was given; `build_settings` and `build_run_settings` make objects of it, `apply_operators` and
`apply_ports` set what is known once the DAG is; `effective` tells every value and where it comes from.
For users: docs/reference/settings.md.
"""

from dagflow.config.effective import Row, effective, render_json, render_text, show
from dagflow.config.layers import Layers, Setting, read_layers, spark_conf
from dagflow.config.operators import apply_module, apply_operators, apply_ports, apply_to_operator, operator_attributes
from dagflow.config.problems import Problems
from dagflow.config.run_settings import RUN_NAMES, RunSettings
from dagflow.config.settings import SettingsMapping, build_run_settings, build_settings
from dagflow.config.units import (
    SECRET,
    Bytes,
    GiB,
    KiB,
    MiB,
    Millis,
    Seconds,
    Secret,
    TiB,
    Unit,
    format_millis,
    format_seconds,
    format_size,
)
from dagflow.config.values import comma_list, from_text, from_value
from dagflow.model.operator.validators import integer_from, not_empty, not_negative, one_of, positive

__all__ = [
    "RUN_NAMES",
    "SECRET",
    "Bytes",
    "GiB",
    "KiB",
    "Layers",
    "MiB",
    "Millis",
    "Problems",
    "Row",
    "RunSettings",
    "Seconds",
    "Secret",
    "Setting",
    "SettingsMapping",
    "TiB",
    "Unit",
    "apply_module",
    "apply_operators",
    "apply_ports",
    "apply_to_operator",
    "build_run_settings",
    "build_settings",
    "comma_list",
    "effective",
    "format_millis",
    "format_seconds",
    "format_size",
    "from_text",
    "from_value",
    "integer_from",
    "not_empty",
    "not_negative",
    "one_of",
    "operator_attributes",
    "positive",
    "read_layers",
    "render_json",
    "render_text",
    "show",
    "spark_conf",
]
