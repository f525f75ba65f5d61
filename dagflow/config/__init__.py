"""Settings: read in layers, converted by the types of their fields, each with its origin.

Read in this order:

1. `run_settings`: the settings of each run; `values`: a value of a setting, by the type of its field.
2. `layers`: all that the environment, files, the command line and code set; `toml_lines` finds their lines.
3. `assembly`: an object of a settings class from these layers; `settings` and `operators` do that for an application's
   settings and for the properties of its operators and modules.
4. `effective`: every value and its origin, as `dagflow config` shows them.
5. `errors`, and `problems`, which collects them.

For users: docs/reference/settings.md.
"""

from dagflow.config.effective import SettingRow, declared, effective, render_json, render_text, show
from dagflow.config.layers import Layers, Setting, read_layers, spark_conf
from dagflow.config.operators import apply_module, apply_operators, apply_ports, apply_to_operator, operator_attributes
from dagflow.config.problems import Problems
from dagflow.config.run_settings import RUN_NAMES, RunSettings
from dagflow.config.settings import SettingsMapping, build_run_settings, build_settings
from dagflow.config.values.conversion import comma_list, from_text, from_value, millis_of, seconds_of, size_of
from dagflow.config.values.units import (
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
from dagflow.model.operator.validators import integer_from, not_empty, not_negative, one_of, positive, share

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
    "RunSettings",
    "Seconds",
    "Secret",
    "Setting",
    "SettingRow",
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
    "declared",
    "effective",
    "format_millis",
    "format_seconds",
    "format_size",
    "from_text",
    "from_value",
    "integer_from",
    "millis_of",
    "not_empty",
    "not_negative",
    "one_of",
    "operator_attributes",
    "positive",
    "read_layers",
    "render_json",
    "render_text",
    "seconds_of",
    "share",
    "show",
    "size_of",
    "spark_conf",
]
