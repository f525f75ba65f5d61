"""The commands, one module each, which has a `command`. Read `validate` (an application) and `log` (a dataset) first."""
